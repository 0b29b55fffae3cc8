#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Protected paths: what programs outside would run or obey cannot be written from inside, in a
# directory that is granted for writing. Each as the user, as root, and as root for the user.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2153 # BRIG is lib's

load lib

# jail WHO ARGS...: brig as user, root, or sudo (root acting for the user). Its storage is in SCRATCH.
jail() {
    local who=$1
    shift
    local variables=(XDG_DATA_HOME="$SCRATCH/data" GIT_CONFIG_GLOBAL="$SCRATCH/gitconfig")
    case $who in
    sudo) env "${variables[@]}" SUDO_UID="$(id -u "$LIB_USER")" SUDO_GID="$(id -g "$LIB_USER")" \
        "$BRIG" -m sealed "$@" ;;
    *) as "$who" env "${variables[@]}" "$BRIG" -m sealed "$@" ;;
    esac
}

# A git that finds its settings in the jail, for `jail WHO "${GIT[@]}" …`.
GIT=(--setenv GIT_CONFIG_GLOBAL=/dev/null --setenv GIT_AUTHOR_NAME=n --setenv GIT_AUTHOR_EMAIL=e
    --setenv GIT_COMMITTER_NAME=n --setenv GIT_COMMITTER_EMAIL=e)

everyone() {
    each_user
    ! lib_is_root || echo sudo
}

owner() {
    [ "$1" = root ] && echo root || echo user
}

# project WHO: a repository of WHO's with a commit, and the working directory in it.
project() {
    needs git
    scratch_make "$(owner "$1")"
    cd "$SCRATCH" || return
    as "$(owner "$1")" sh -c '
        mkdir p data && cd p && git init -q . &&
        git -c user.name=n -c user.email=e commit -q --allow-empty -m first' || return
    cd p || return
}

# what is in the working directory, with inodes: to be compared
listing() {
    find . -printf '%p %i %y %s\n' | sort
}

teardown() {
    cd /
    [ -z "${JOB:-}" ] || kill "$JOB" 2>/dev/null || true
    scratch_remove
}

@test "git's hooks and settings cannot be written, moved away or replaced" {
    for who in $(everyone); do
        project "$who"
        for attempt in 'echo x >.git/hooks/pre-commit' 'echo x >>.git/config' 'rm -rf .git/hooks' \
            'mv .git/hooks h' 'mv .git g' 'mv .git/config c' 'chmod 777 .git/config' \
            'ln .git/config other' 'echo y >c; mv c .git/config' 'echo y >c; ln -f c .git/config' \
            'rm -rf .git/hooks; ln -s /tmp .git/hooks' 'echo /tmp >.git/commondir' 'rm -f .git/commondir' \
            'echo "[a]" >.git/config.worktree' 'touch -d 2000-01-01 .git/config' \
            'git config core.fsmonitor x' 'git config --worktree core.fsmonitor x'; do
            must_fail jail "$who" -- sh -c "$attempt"
            rm -rf h g c other
            must jail "$who" --no-protect -- sh -c "cp -a .git .keep; { $attempt; } && rm -rf .git && mv .keep .git"
            rm -rf h g c other
        done
        must jail "$who" -- cat .git/config
        rm -rf "$SCRATCH"
    done
}

@test "what is missing is held for the run and gone after it" {
    for who in $(everyone); do
        project "$who"
        before=$(listing)
        for attempt in 'mkdir .vscode/x' 'rmdir .vscode' 'mv .vscode v' 'echo x >.envrc' \
            'rm -rf .envrc; echo x >.envrc' 'mkdir .claude/hooks' 'echo x >.claude/settings.json' \
            'mkdir -p .husky/_' 'echo x >.mcp.json' 'echo x >.brig.conf' 'mkdir .idea/x' \
            'mkdir x; mv -T x .idea' 'ln -sfn /tmp .cursor' 'echo x >.codex/config.toml'; do
            must_fail jail "$who" -- sh -c "$attempt"
        done
        rmdir x
        must jail "$who" -- git status --short
        [ -z "$output" ]
        [ "$(listing)" = "$before" ]
        must jail "$who" --unprotect .vscode -- mkdir .vscode
        must jail "$who" --no-protect -- sh -c 'echo x >.envrc'
        # What exists is protected as well, file or directory.
        must_fail jail "$who" -- sh -c 'echo y >>.envrc'
        must_fail jail "$who" -- touch .vscode/tasks.json
        must jail "$who" --unprotect .vscode --unprotect .envrc -- touch .vscode/tasks.json .envrc
        rm -rf "$SCRATCH"
    done
}

@test "with hooks missing nobody makes them" {
    for who in $(everyone); do
        project "$who"
        rm -rf .git/hooks
        must_fail jail "$who" -- sh -c 'mkdir -p .git/hooks && echo x >.git/hooks/pre-commit'
        [ ! -e .git/hooks ]
        must jail "$who" --unprotect .git/hooks -- sh -c 'mkdir -p .git/hooks && echo x >.git/hooks/pre-commit'
        rm -rf "$SCRATCH"
    done
}

@test "git works, or fails with the remedy" {
    for who in $(everyone); do
        project "$who"
        must jail "$who" "${GIT[@]}" -- sh -c '
            echo a >a && git add a && git commit -q -m a && git checkout -q -b b && git stash list &&
            git branch c && git merge -q c && git tag t && git gc -q && git log --oneline'
        must jail "$who" "${GIT[@]}" -- git clone -q . clone
        must jail "$who" "${GIT[@]}" -- git -C clone config a.b c
        must jail "$who" "${GIT[@]}" -- git init -q fresh
        must jail "$who" "${GIT[@]}" -- sh -c 'git worktree add -q wt c && git -C wt commit -q --allow-empty -m w'
        for command in 'config a.b c' 'remote add o /x' 'init'; do
            # shellcheck disable=SC2086 # words
            must_fail jail "$who" "${GIT[@]}" -- git $command
            output_has "--unprotect"
            # shellcheck disable=SC2086
            must jail "$who" "${GIT[@]}" --unprotect .git -- git $command
            git -c safe.directory='*' -C . status >/dev/null 2>&1 || true
        done
        must git -c safe.directory='*' fsck
        rm -rf "$SCRATCH"
    done
}

@test "a longer run that tries to change git's settings is told why it could not" {
    project user
    # Names are watched a quarter of a second after the start.
    watched() {
        grep -qs '^inotify wd' "/proc/$(find_brig "$JOB")"/fdinfo/*
    }
    start user 'await_file go; git config a.b c; true'
    await watched
    touch go
    wait "$JOB"
    run cat "$SCRATCH/out"
    output_has ".git/config' is protected"
    output_has "--unprotect"
    rm go
    start user 'await_file go; git commit -q --allow-empty -m x'
    await watched
    touch go
    wait "$JOB"
    JOB=
    run cat "$SCRATCH/out"
    output_lacks "protected"
}

@test "in a directory without a repository none is made, and a note says how" {
    for who in $(everyone); do
        needs git
        scratch_make "$(owner "$who")"
        cd "$SCRATCH"
        as "$(owner "$who")" mkdir plain data
        cd plain
        must_fail jail "$who" -- sh -c 'mkdir -p .git/hooks'
        must_fail jail "$who" -- sh -c 'rmdir .git; mkdir x; mv -T x .git'
        rmdir x
        must_fail jail "$who" "${GIT[@]}" -- git init
        output_has "--unprotect .git"
        must jail "$who" -- cat .git/protected-by-brig
        output_has "--unprotect"
        [ -z "$(ls -A)" ]
        must jail "$who" "${GIT[@]}" --unprotect .git -- git init -q
        [ -e .git/HEAD ]
        cd /
    done
}

@test "where nobody can look what there is to protect, it is said what to do" {
    project user
    as user mkdir ../closed
    chmod 000 ../closed
    must_exit 125 jail user -d ../closed true
    output_has "cannot protect '$SCRATCH/closed/"
    output_has "--no-protect"
    must jail user -r ../closed true
    must jail user --no-protect -d ../closed true
    chmod 700 ../closed
    must jail user -d ../closed true
}

@test "what --unprotect is given must mean something" {
    project user
    must_exit 125 jail user --unprotect .git/hooks/pre-commit -- true
    output_has "is protected as a whole"
    must_exit 125 jail user --unprotect .gti -- true
    output_has "not a protected path"
    must jail user --unprotect "$PWD/.git" -- sh -c 'echo x >.git/hooks/a'
    must jail user --unprotect ./.git/hooks/ -- sh -c 'echo x >.git/hooks/a'
    must_fail jail user --unprotect .git/hooks -- sh -c 'echo x >>.git/config'
}

@test "submodules are protected, nested ones too" {
    project user
    run_as_user sh -c '
        export GIT_CONFIG_GLOBAL=/dev/null; g() { git -c protocol.file.allow=always -c user.name=n -c user.email=e "$@"; }
        g clone -q . ../inner && g clone -q . ../outer &&
        g -C ../outer submodule --quiet add "$PWD/../inner" libs/inner && g -C ../outer commit -q -m s &&
        g submodule --quiet add "$PWD/../outer" libs/outer &&
        g -C libs/outer submodule --quiet update --init'
    nested=.git/modules/libs/outer/modules/libs/inner
    [ -e "$nested/config" ]
    for git in .git/modules/libs/outer "$nested"; do
        must_fail jail user -- sh -c "echo x >>$git/config"
        must_fail jail user -- sh -c "echo x >$git/hooks/pre-commit"
        must_fail jail user -- sh -c "mv $git $git.x"
        must jail user --unprotect "$git" -- sh -c "echo '# x' >>$git/config"
    done
    must_fail jail user -- mv .git/modules .git/m
    must jail user "${GIT[@]}" -- git -C libs/outer commit -q --allow-empty -m x
    # In the submodule alone its repository is granted, and protected.
    cd libs/outer
    must jail user "${GIT[@]}" -- git commit -q --allow-empty -m y
    must_fail jail user -- sh -c 'echo x >>../../.git/modules/libs/outer/config'
    must_fail jail user -- sh -c 'echo x >>../../.git/modules/libs/outer/hooks/a'
    must_fail jail user -- ls ../../.git/refs
}

@test "a worktree's repository is granted, with hooks and settings read-only" {
    for who in $(everyone); do
        project "$who"
        as "$(owner "$who")" git worktree add -q ../w
        cd ../w
        must jail "$who" "${GIT[@]}" -- git commit -q --allow-empty -m in-worktree
        output_lacks "warning"
        main=$SCRATCH/p/.git
        must jail "$who" -- touch "$main/objects/x"
        for attempt in "echo x >>$main/config" "echo x >$main/hooks/a" "mv $main/hooks $main/h" \
            "echo x >$main/worktrees/w/config.worktree" "echo x >$main/worktrees/w/commondir" \
            "rm -f $main/worktrees/w/commondir" "echo 'gitdir: /etc' >.git" 'rm .git' 'mv .git x'; do
            must_fail jail "$who" -- sh -c "$attempt"
        done
        must_fail jail "$who" -- ls "$SCRATCH/p/a" "$SCRATCH/inner"
        must jail "$who" --unprotect .git/hooks -- sh -c "echo x >$main/hooks/a"
        rm -rf "$SCRATCH"
    done
}

@test "a planted .git file has nothing foreign granted" {
    project user
    run_as_user git init -q ../secret
    run_as_user git -C ../secret worktree add -q ../w2 2>/dev/null || true
    run_as_user mkdir ../x
    cd ../x
    for target in "$SCRATCH/secret/.git" "$SCRATCH/p/.git" "$HOME" / /etc ../secret/.git; do
        run_as_user sh -c "echo 'gitdir: $target' >.git"
        must jail user -- true
        output_has "not granted"
        must_fail jail user -- ls "$SCRATCH/secret/.git"
        must_fail jail user -- ls "$SCRATCH/p/.git"
    done
    # A link of its own making that leads to another's repository.
    run_as_user sh -c "
        mkdir -p fake/worktrees/x fake/objects fake/refs; echo ref: refs/heads/m >fake/HEAD
        echo '$PWD/.git' >fake/worktrees/x/gitdir; echo $SCRATCH/secret/.git >fake/worktrees/x/commondir
        echo 'gitdir: $PWD/fake/worktrees/x' >.git"
    must_fail jail user -- ls "$SCRATCH/secret/.git"
    run_as_user sh -c "rm -rf fake; ln -s $SCRATCH/secret/.git fake; echo 'gitdir: $PWD/fake' >.git"
    must_fail jail user -- ls "$SCRATCH/secret/.git"
    # The user may insist.
    must jail user -d "$SCRATCH/secret/.git" -- ls "$SCRATCH/secret/.git"
}

@test "a .git that is a symbolic link stays what it is" {
    project user
    run_as_user sh -c 'mv .git store; ln -s store .git'
    must jail user "${GIT[@]}" -- git commit -q --allow-empty -m x
    for attempt in 'rm .git' 'mv .git x' 'ln -sfn /tmp .git' 'echo x >.git/hooks/a' \
        'echo x >>store/config' 'mv store y'; do
        must_fail jail user -- sh -c "$attempt"
    done
    must jail user --no-protect -- sh -c 'echo x >.git/hooks/a'
    # One that leads out has nothing granted.
    run_as_user sh -c "mv store ../store; ln -sfn ../store .git"
    must_fail jail user -- ls .git/
    must_fail jail user -- rm .git
}

@test "a planted symbolic link in a protected path is held with what it leads to" {
    project user
    run_as_user sh -c 'mkdir real; ln -s real .vscode; ln -s ../nowhere .idea; mkdir .claude; echo {} >s; ln -s ../s .claude/settings.json'
    for attempt in 'rm .vscode' 'ln -sfn /tmp .vscode' 'echo x >real/tasks.json' 'mv real r' \
        'rm .idea' 'echo x >s' 'rm .claude/settings.json' 'mv .claude c'; do
        must_fail jail user -- sh -c "$attempt"
    done
    must jail user -- sh -c 'echo x >.claude/CLAUDE.md'
}

@test "a second name of a protected file is told of" {
    project user
    run_as_user ln .git/config second
    must jail user -- true
    output_has "hard links"
}

@test "the same directory granted by another path is protected there too" {
    project user
    must_fail jail user -d "$SCRATCH:/up" -- sh -c 'echo x >/up/p/.git/hooks/a'
    must_fail jail user -d "$PWD:/again" -- sh -c 'echo x >>/again/.git/config'
    must_fail jail user -d "$PWD:/again" -- sh -c 'mkdir /again/.vscode/x'
    must_fail jail user -d "$PWD:/again" -- mv /again/.git /again/x
    must_fail jail user -D -d "$PWD:/only" -- sh -c 'echo x >/only/.git/hooks/a'
    must jail user -d "$PWD:/again" --no-protect -- sh -c 'echo x >/again/.git/hooks/a'
}

@test "a directory that is no project is not filled with placeholders" {
    project user
    run_as_user mkdir ../cache
    must jail user -d ../cache -- ls -A "$SCRATCH/cache"
    [ -z "$output" ]
    run_as_user git init -q ../cache
    must_fail jail user -d ../cache -- sh -c "echo x >$SCRATCH/cache/.git/hooks/a"
    must_fail jail user -d ../cache -- mkdir "$SCRATCH/cache/.vscode/x"
    # Nor is one that cannot be written anyway.
    must jail user -r . -- ls -A
    output_lacks ".vscode"
}

@test "a repository that is granted itself is protected" {
    project user
    run_as_user git clone -q --bare . ../bare.git
    must_fail jail user -d ../bare.git -- sh -c "echo x >$SCRATCH/bare.git/hooks/post-receive"
    must_fail jail user -d ../bare.git -- sh -c "echo x >>$SCRATCH/bare.git/config"
    must jail user "${GIT[@]}" -d ../bare.git -- git push -q ../bare.git HEAD:refs/heads/new
}

@test "what a run makes look like a repository is still looked at" {
    for who in $(everyone); do
        project "$who"
        must jail "$who" --no-protect -- sh -c 'mkdir objects refs; echo "ref: refs/heads/m" >HEAD'
        for attempt in 'echo x >>.git/config' 'echo x >.git/hooks/a' 'mkdir .vscode/x' 'echo x >.envrc' \
            'echo x >config' 'mkdir -p hooks && echo x >hooks/a'; do
            must_fail jail "$who" -- sh -c "$attempt"
        done
        must jail "$who" --no-protect -- sh -c 'echo "# x" >>.git/config'
        rm -rf "$SCRATCH"
    done
}

@test "a repository granted itself stays one without its HEAD" {
    project user
    run_as_user git clone -q --bare . ../bare.git
    must jail user -d ../bare.git -- rm -r "$SCRATCH/bare.git/HEAD" "$SCRATCH/bare.git/refs"
    must_fail jail user -d ../bare.git -- sh -c "echo x >$SCRATCH/bare.git/hooks/post-receive"
    must_fail jail user -d ../bare.git -- sh -c "echo x >>$SCRATCH/bare.git/config"
    must jail user -d ../bare.git --no-protect -- sh -c "echo '# x' >>$SCRATCH/bare.git/config"
}

# with_submodules: submodules libs/sub and hooks, whose repositories are in .git/modules.
with_submodules() {
    project user
    run_as_user sh -c '
        export GIT_CONFIG_GLOBAL=/dev/null; g() { git -c protocol.file.allow=always -c user.name=n -c user.email=e "$@"; }
        g clone -q . ../inner && g submodule --quiet add "$PWD/../inner" libs/sub &&
        g submodule --quiet add "$PWD/../inner" hooks && g commit -q -m s'
}

@test "a run cannot make submodules look like something else" {
    for planted in 'mv .git/modules/libs/sub/HEAD .git/modules/libs/sub/H' 'echo x >.git/modules/HEAD' \
        'echo x >.git/modules/libs/HEAD' 'echo x >.git/modules/libs/config' 'mkdir .git/modules/objects' \
        'mv .git/modules/libs/sub/HEAD h; mv .git/modules/libs/sub/objects o'; do
        with_submodules
        must jail user -- sh -c "$planted"
        for sub in libs/sub hooks; do
            must_fail jail user -- sh -c "echo x >>.git/modules/$sub/config"
            must_fail jail user -- sh -c "echo x >.git/modules/$sub/hooks/pre-commit"
            must jail user --unprotect .git/modules -- sh -c "echo '# x' >>.git/modules/$sub/config"
        done
        rm -rf "$SCRATCH"
    done
}

@test "where submodules' repositories would be, a run puts nothing else" {
    for who in $(everyone); do
        project "$who"
        before=$(listing)
        for attempt in 'ln -s ../evil .git/modules' 'mkdir .git/modules/sub' 'echo x >.git/modules'; do
            must_fail jail "$who" -- sh -c "rmdir .git/modules; $attempt && [ ! -d .git/modules ] || [ -e .git/modules/sub ]"
            [ "$(listing)" = "$before" ]
        done
        must jail "$who" --unprotect .git/modules -- sh -c 'mkdir -p evil/sub && ln -s ../evil .git/modules'
        # One that is there already is held with what it leads to.
        for attempt in 'rm .git/modules' 'mv .git/modules m' 'echo x >evil/sub/config' 'mv evil e'; do
            must_fail jail "$who" -- sh -c "$attempt"
        done
        must jail "$who" --no-protect -- sh -c 'echo x >evil/sub/config'
        rm -rf "$SCRATCH"
    done
}

# plant: in the jail, a repository at the top with settings of its own, as far as it can be made.
PLANT='mkdir objects refs; mkdir -p refs/heads; echo "ref: refs/heads/m" >HEAD
    printf "[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = touch %s/obeyed; false\\n" "$PWD" >config'

@test "a run cannot make the working directory itself a repository" {
    for who in $(everyone); do
        for before in 'true' 'rm -rf .git' 'rm .git/HEAD'; do
            project "$who"
            as "$(owner "$who")" sh -c "$before"
            run jail "$who" -- sh -c "$PLANT"
            [ ! -e refs ]
            as "$(owner "$who")" git status >/dev/null 2>&1 || true
            [ ! -e obeyed ]
            # The twin: without protection it is obeyed.
            rm -rf .git HEAD objects refs config
            run jail "$who" --no-protect -- sh -c "$PLANT"
            as "$(owner "$who")" git status >/dev/null 2>&1 || true
            [ -e obeyed ]
            rm -rf "$SCRATCH"
        done
    done
}

@test "git takes HEAD for a revision, and the name that is held does not show" {
    for who in $(everyone); do
        project "$who"
        before=$(listing)
        must jail "$who" "${GIT[@]}" -- sh -c 'git diff HEAD && git log -1 --oneline HEAD && git status --short && git reset -q HEAD'
        output_lacks refs
        must_fail jail "$who" -- mkdir refs/x
        must jail "$who" --unprotect refs -- mkdir refs
        must_fail jail "$who" -- mkdir objects/x
        must jail "$who" -- mkdir refs/x
        rm -rf "$SCRATCH"
    done
}

@test "a run that leaves what git outside obeys is told of" {
    project user
    must jail user -- rm .git/HEAD
    output_has "damaged the repository"
    run_as_user sh -c 'echo "ref: refs/heads/master" >.git/HEAD'
    must jail user -- sh -c 'echo garbage >.git/HEAD'
    output_has "damaged the repository"
    run_as_user sh -c 'echo "ref: refs/heads/master" >.git/HEAD'
    must jail user -- mkdir .git/rebase-merge
    output_has "rebase-merge"
    must jail user -- true # not again
    output_lacks "rebase-merge"
    must jail user "${GIT[@]}" -- sh -c 'git init -q evil && git -C evil commit -q --allow-empty -m x && git add evil 2>/dev/null'
    output_has "evil' a submodule"
    must jail user "${GIT[@]}" -- sh -c 'echo a >a && git add a && git commit -q -m a'
    output_lacks "warning"
    must jail user "${GIT[@]}" -- git update-index --index-version 4
    output_lacks "warning"
    must jail user "${GIT[@]}" -- git update-index --split-index
    output_has "cannot be searched"
    must jail user --unprotect refs --unprotect objects -- sh -c 'mkdir objects refs && echo "ref: refs/heads/m" >HEAD'
    output_has "a git repository, whose settings"
}

# plant DIR: in the jail, a repository in DIR whose settings run something for who asks for its status.
WITH_PLANT='plant() { git init -q "$1" && git -C "$1" commit -q --allow-empty -m x &&
    git -C "$1" config core.fsmonitor "touch $PWD/planted; false"; };'

# obeyed: whether git outside, asked for the status of the project, runs what was planted.
obeyed() {
    rm -f planted
    run_as_user env GIT_CONFIG_GLOBAL=/dev/null git status >/dev/null 2>&1
    [ -e planted ]
}

@test "a submodule that a run makes is not obeyed outside, whatever the index is like" {
    for version in 2 4; do
        project user
        run_as_user git config index.version "$version"
        must jail user "${GIT[@]}" --no-protect -- sh -c "$WITH_PLANT plant evil && git add evil"
        obeyed
        rm -rf "$SCRATCH"
        project user
        run_as_user git config index.version "$version"
        must jail user "${GIT[@]}" -- sh -c "$WITH_PLANT plant evil && git add evil"
        output_has "its .git was renamed to '.git.made-in-jail'"
        [ -d evil/.git.made-in-jail ] && [ ! -e evil/.git ]
        run obeyed
        [ "$status" -ne 0 ]
        # A second run cannot put it back, nor write what was there before.
        must_fail jail user -- sh -c 'mv evil/.git.made-in-jail evil/.git'
        must_fail jail user -- sh -c 'mv evil e'
        # Where its directory is missing it can be made, and is put aside.
        rm -rf evil
        must jail user "${GIT[@]}" -- sh -c "$WITH_PLANT plant evil"
        output_has "its .git was renamed to '.git.made-in-jail'"
        run obeyed
        [ "$status" -ne 0 ]
        rm -rf "$SCRATCH"
    done
}

@test "a submodule with a repository of its own is protected" {
    project user
    run_as_user sh -c '
        g() { git -c user.name=n -c user.email=e "$@"; }
        git init -q own && g -C own commit -q --allow-empty -m x && g add own 2>/dev/null &&
        git init -q own/inner && g -C own/inner commit -q --allow-empty -m x && g -C own add inner 2>/dev/null &&
        g commit -q -m own && mkdir -p own/hooks && git -C own config core.hooksPath hooks'
    for git in own/.git own/inner/.git; do
        must_fail jail user -- sh -c "echo x >>$git/config"
        must_fail jail user -- sh -c "echo x >$git/hooks/pre-commit"
        must_fail jail user -- sh -c "mv $git $git.x"
        must jail user --unprotect "$PWD/$git" -- sh -c "echo '# x' >>$git/config"
    done
    must_fail jail user -- sh -c 'echo x >own/hooks/pre-commit'
    must jail user "${GIT[@]}" -- git -C own commit -q --allow-empty -m y
    # In the submodule's own index a new one is no more obeyed than at the top.
    must jail user "${GIT[@]}" -- sh -c "$WITH_PLANT cd own && plant evil && git add evil"
    output_has "own/evil' a submodule"
    run obeyed
    [ "$status" -ne 0 ] && [ ! -e own/planted ]
}

@test "a repository with very many submodules can be worked in" {
    project user
    # 300 that are not checked out: the first are held, the others looked at afterwards
    commit=$(run_as_user git rev-parse HEAD)
    for i in $(seq 300); do printf '160000 %s 0\ts/%03d\n' "$commit" "$i"; done >"$SCRATCH/links"
    chmod a+r "$SCRATCH/links"
    run_as_user sh -c 'git update-index --index-info <"$1"; for i in $(seq 300); do mkdir -p s/$(printf %03d $i); done' - "$SCRATCH/links"
    must_fail jail user -- mkdir s/001/.git
    must jail user "${GIT[@]}" -- sh -c "$WITH_PLANT plant s/300"
    output_has "s/300' a submodule"
    run obeyed
    [ "$status" -ne 0 ]
    # 150 that are
    for i in $(seq 150); do echo "s/$(printf %03d "$i")"; done >"$SCRATCH/dirs"
    chmod a+r "$SCRATCH/dirs"
    run_as_user sh -c 'while read -r d; do git init -q "$d"; done <"$1"' - "$SCRATCH/dirs"
    must jail user -- true
    output_has "more than 128 submodules"
    output_lacks "made-in-jail"
    [ -d s/150/.git ] && [ -d s/001/.git ]
    must_fail jail user -- sh -c 'echo x >>s/001/.git/config'
    # with as many fds as most systems begin with: brig takes more, the command has these
    few() { (ulimit -S -n 1024 && jail "$@"); }
    must few user -- sh -c 'echo "soft $(ulimit -S -n) hard $(ulimit -H -n)"'
    output_has "soft 1024 hard $(ulimit -H -n)"
    must few user --open-files 300 -- sh -c 'echo "soft $(ulimit -S -n)"'
    output_has "soft 300"
}

@test "where submodules' repositories are, a run adds none" {
    project user
    run_as_user sh -c 'git init -q --bare .git/modules/mine'
    must jail user "${GIT[@]}" --unprotect .git/modules -- git init -q --bare .git/modules/wanted
    output_lacks "warning"
    [ -e .git/modules/wanted/HEAD ]
    must jail user "${GIT[@]}" -- sh -c 'git init -q --bare .git/modules/a/evil; ln -s /x .git/modules/link'
    output_has "modules/a/evil"
    output_has "modules/link"
    [ ! -e .git/modules/a/evil ] && [ ! -L .git/modules/link ] && [ -e .git/modules/mine/HEAD ]
    [ "$(find .git -maxdepth 1 -name 'modules.made-in-jail*' | wc -l)" -eq 2 ]
    must jail user -- true
    output_lacks "warning"
}

@test "settings that git finds by the home are protected where they can be written" {
    project user
    home=$(lib_user_home)
    [ "${PWD#"$home"/}" != "$PWD" ]
    # shellcheck disable=SC2088 # for git to expand
    run_as_user git config --add include.path "~/${PWD#"$home"/}/settings"
    run_as_user git config --add include.path ':(optional)opt'
    for file in settings .git/opt; do
        must_fail jail user -- sh -c "echo x >$file"
        must jail user --unprotect "$PWD/$file" -- sh -c "echo '# x' >$file"
        must_fail jail user -- sh -c "echo x >$file"
    done
}

@test "what git's settings name is protected: hooks elsewhere, and included settings" {
    for who in $(everyone); do
        project "$who"
        as "$(owner "$who")" sh -c '
            mkdir -p tools/hooks && echo "[include] path = deeper.conf" >shared.conf && echo "[a]" >deeper.conf &&
            git config core.hooksPath tools/hooks && git config include.path ../shared.conf &&
            git config "includeIf.gitdir:/x].path" "$PWD/missing.conf"'
        before=$(listing)
        for attempt in 'echo x >tools/hooks/pre-commit' 'mv tools t' 'echo x >>shared.conf' 'rm shared.conf' \
            'echo x >>deeper.conf' 'echo x >missing.conf' 'mkdir -p missing.conf/x'; do
            must_fail jail "$who" -- sh -c "$attempt"
        done
        must jail "$who" "${GIT[@]}" -- git commit -q --allow-empty -m x
        [ ! -e missing.conf ]
        must jail "$who" -- touch tools/other
        must jail "$who" --no-protect -- sh -c 'echo x >tools/hooks/pre-commit; echo "# x" >>shared.conf'
        as "$(owner "$who")" git config core.hooksPath missing/hooks
        must_fail jail "$who" -- mkdir -p missing/hooks/x
        rm -rf "$SCRATCH"
    done
}

# For a script in the jail: waits until git's hooks and settings cannot be written (again).
AGAIN='is_protected() { [ ! -w .git/config ] && [ ! -w .git/hooks ]; }; await is_protected'

# A run in the background, once it has made the file `up`.
start() { # start WHO SCRIPT
    rm -f up
    jail "$1" "${GIT[@]}" -- sh -c "$AWAIT; touch up; $2" >"$SCRATCH/out" 2>&1 &
    JOB=$!
    await_file up
}

@test "what brig goes by is protected: configuration elsewhere, scripts and programs" {
    local who
    for who in $(everyone); do
        project "$who"
        # A link in the configuration's directory, which this run does not read; and what a file of
        # the directory, and the command line, name.
        as "$(owner "$who")" sh -c '
            mkdir ../config ../config/brig dots && echo "# mine" | tee dots/other.conf dots/part.conf here.conf >/dev/null &&
            ln -s ../../p/dots/other.conf ../config/brig/other.conf &&
            echo "conf $PWD/dots/part.conf" >../config/brig/default.conf &&
            echo : >script && printf "#!/bin/sh\n" >program && chmod +x program'
        export XDG_CONFIG_HOME=$SCRATCH/config
        must_fail jail "$who" -- sh -c 'echo x >>dots/other.conf'
        must_fail jail "$who" -- sh -c 'echo x >>dots/part.conf'
        must_fail jail "$who" -- mv dots gone
        as "$(owner "$who")" sh -c 'mkdir ../config/brig/sub && ln -s "$PWD/dots/other.conf" ../config/brig/sub/deep.conf && rm ../config/brig/other.conf && echo "conf sub/deep.conf" >../config/brig/deep.conf'
        must_fail jail "$who" -C deep -- sh -c 'echo x >>dots/other.conf'
        as "$(owner "$who")" ln -s ../../p/dots/other.conf ../config/brig/other.conf
        must_fail jail "$who" -C ./here.conf -- sh -c 'echo x >>here.conf'
        must_fail jail "$who" -C ./dots/../here.conf -- sh -c 'echo x >>here.conf'
        must_fail jail "$who" --script ./script -- sh -c 'echo x >>script'
        must_fail jail "$who" --initjail ./program -- sh -c 'echo x >>program'
        must_fail jail "$who" -d "$SCRATCH/p:/data" -- sh -c 'echo x >>/data/dots/other.conf'
        [ "$(cat dots/*.conf here.conf)" = "$(printf '# mine\n# mine\n# mine')" ]
        # What was not named is a file as any other; and who insists may.
        must jail "$who" -- sh -c 'echo "# x" >>here.conf; echo : >>script'
        must jail "$who" --unprotect "$SCRATCH/p/dots/part.conf" -- sh -c 'echo "# x" >>dots/part.conf'
        must jail "$who" --no-protect -- sh -c 'echo "# x" >>dots/other.conf'
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "what brig goes by is protected over several links, and where nothing is yet" {
    local who
    for who in $(everyone); do
        project "$who"
        as "$(owner "$who")" sh -c '
            mkdir ../config ../config/brig dots && echo "# mine" >dots/last.conf && ln -s last.conf dots/next.conf &&
            ln -s ../../p/dots/next.conf ../config/brig/other.conf &&
            ln -s "$PWD/dots/missing.conf" ../config/brig/missing.conf'
        export XDG_CONFIG_HOME=$SCRATCH/config
        must_fail jail "$who" -- rm dots/next.conf
        must_fail jail "$who" -- mv dots/next.conf dots/gone
        must_fail jail "$who" -- ln -sfn /etc/passwd dots/next.conf
        must_fail jail "$who" -- sh -c 'echo x >>dots/next.conf'
        must_fail jail "$who" -- sh -c 'echo x >>dots/missing.conf'
        must_fail jail "$who" -- rm -f dots/missing.conf
        must jail "$who" -- [ ! -s dots/missing.conf ]
        [ "$(readlink dots/next.conf)" = last.conf ]
        [ ! -e dots/missing.conf ]
        must jail "$who" -- sh -c 'echo x >>dots/any.conf' # the twin
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "when the host replaces a file, its protection is put back and reported" {
    for who in $(everyone); do
        project "$who"
        start "$who" "await grep -q outside .git/config; $AGAIN
            echo x >>.git/config && echo LOST; mv .git/config c && echo LOST; cat .git/config"
        as "$(owner "$who")" git config from.outside yes
        wait "$JOB" || true
        JOB=
        run cat "$SCRATCH/out"
        output_has outside
        output_lacks LOST
        output_has "was replaced while it ran, and is protected again"
        rm -rf "$SCRATCH"
    done
}

@test "when the host replaces the directory above, too" {
    project user
    start user "await_file .git/mark; $AGAIN
        echo x >>.git/config && echo LOST; echo x >.git/hooks/a && echo LOST; mv .git g && echo LOST; true"
    run_as_user sh -c 'cp -a .git new; touch new/mark; mv .git old; mv new .git'
    wait "$JOB" || true
    JOB=
    run cat "$SCRATCH/out"
    output_lacks LOST
    output_has "protected again"
}

@test "two runs at once share what is held, and the last removes it" {
    project user
    before=$(listing)
    start user 'await_file go; mkdir .vscode/x && echo LOST; true'
    must_fail jail user -- mkdir .vscode/x
    must_fail jail user -- mkdir .claude/x
    [ -d .vscode ] && [ -d .claude ]
    touch go
    wait "$JOB"
    JOB=
    rm -f go up
    [ "$(cat "$SCRATCH/out")" = "$(grep -v LOST "$SCRATCH/out")" ]
    [ "$(listing)" = "$before" ]
}

@test "the other way round: the first run ends before the second" {
    project user
    before=$(listing)
    start user 'await_file go'
    first=$JOB
    rm -f up
    jail user -- sh -c "$AWAIT"'; touch up; await_file go2; mkdir .vscode/x && echo LOST; true' >"$SCRATCH/out2" 2>&1 &
    JOB=$!
    await_file up
    touch go
    wait "$first"
    [ -d .vscode ] && [ -e .git/commondir ]
    touch go2
    wait "$JOB"
    JOB=
    run cat "$SCRATCH/out2"
    output_lacks LOST
    rm -f go go2 up
    [ "$(listing)" = "$before" ]
}

@test "what a crash leaves the next run removes" {
    for who in $(everyone); do
        project "$who"
        before=$(listing)
        start "$who" "sleep 600"
        brig=$(find_brig "$JOB")
        kill -9 "$brig"
        wait "$JOB" || true
        JOB=
        [ -d .vscode ] && [ -e .git/commondir ]
        as "$(owner "$who")" mkdir .idea/mine
        as "$(owner "$who")" mkdir "$SCRATCH/elsewhere"
        (cd "$SCRATCH/elsewhere" && must jail "$who" -- true)
        [ ! -e .vscode ] && [ ! -e .git/commondir ] && [ -d .idea/mine ]
        rm -rf .idea up
        [ "$(listing)" = "$before" ]
        rm -rf "$SCRATCH"
    done
}

@test "a run without a place for its journal still protects and cleans up" {
    project user
    before=$(listing)
    run_as_user mkdir -m 0555 "$SCRATCH/locked"
    must_fail as user env XDG_DATA_HOME="$SCRATCH/locked" "$BRIG" -m sealed -- mkdir .vscode/x
    [ "$(listing)" = "$before" ]
}

@test "names with blanks and odd characters" {
    project user
    odd="$SCRATCH/a b \\ ü"
    run_as_user mv "$SCRATCH/p" "$odd"
    cd "$odd"
    before=$(listing)
    must_fail jail user -- sh -c 'echo x >.git/hooks/a'
    start user "await grep -q outside .git/config; $AGAIN
        echo x >>.git/config && echo LOST; true"
    run_as_user git config from.outside yes
    wait "$JOB"
    JOB=
    run cat "$SCRATCH/out"
    output_lacks LOST
    output_has "protected again"
    [ ! -e .vscode ] && [ ! -e .git/commondir ]
}

@test "--dry-run shows what is protected and makes nothing" {
    project user
    before=$(listing)
    must jail user --dry-run
    output_has "protect     $PWD/.git/hooks"
    output_has "[protected]"
    output_has ".vscode"
    must jail user --no-protect --dry-run
    output_lacks "[protected]"
    [ "$(listing)" = "$before" ]
}

@test "what root's jail has mounted is not mounted on the host" {
    lib_is_root || skip "needs root"
    project root
    # As systemd has it: whatever is mounted in one namespace appears in the other.
    cat >"$SCRATCH/twice" <<'SCRIPT'
mount --bind "$PWD" "$PWD" && mount --make-shared "$PWD" && cd "$PWD" || exit
for run in 1 2; do
    "$@" || exit
    ! grep -F "$PWD/" /proc/self/mountinfo || exit 1
done
mount --bind .git/hooks .git/hooks && grep -qF "$PWD/.git/hooks" /proc/self/mountinfo
SCRIPT
    must env XDG_DATA_HOME="$SCRATCH/data" unshare -m --propagation private \
        sh "$SCRATCH/twice" "$BRIG" -m sealed -- sh -c 'test -d .vscode && ! mkdir .vscode/x'
    [ ! -e .vscode ]
}

@test "it holds in every mode" {
    for who in $(everyone); do
        project "$who"
        for mode in casual bare strict; do
            for attempt in 'echo x >.git/hooks/a' 'mv .git g' 'mkdir .vscode/x' 'echo x >.brig.conf'; do
                must_fail jail "$who" -m "$mode" -- sh -c "$attempt"
                must jail "$who" -m "$mode" --no-protect -- sh -c "cp -a .git .keep; mkdir .vscode; { $attempt; } && rm -rf .git .vscode .brig.conf g && mv .keep .git"
            done
            must jail "$who" -m "$mode" -- sh -c 'touch written && rm written'
        done
        rm -rf "$SCRATCH"
    done
}

@test "where nothing can be mounted, it is said that nothing is protected" {
    project user
    must jail user --disable namespaces -v -- true
    output_has "protected paths can be written to"
}
