#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Protected paths: existing files that programs outside would run or obey, and those that configure brig, cannot
# be written from inside, in a directory that is granted for writing. Each as the user, as root, and as root for
# the user. What git does is in git.bats and git-hostile.bats, new files are in held.bats.

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
    sudo) env "${variables[@]}" SUDO_UID="$LIB_USER_ID" SUDO_GID="$LIB_USER_GROUP" "$BRIG" -m sealed "$@" ;;
    *) as "$who" env "${variables[@]}" "$BRIG" -m sealed "$@" ;;
    esac
}

# A git that finds its settings in the jail, for `jail WHO "${GIT[@]}" …`.
GIT=(--setenv GIT_CONFIG_GLOBAL=/dev/null --setenv GIT_AUTHOR_NAME=n --setenv GIT_AUTHOR_EMAIL=e
    --setenv GIT_COMMITTER_NAME=n --setenv GIT_COMMITTER_EMAIL=e)

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

# all_fail WHO [OPTIONS…] -- SCRIPT…: in one jail each of the scripts fails.
all_fail() {
    local options=() script all=
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    for script; do
        all+="if ($script); then echo ${script@Q} has worked; exit 1; fi"$'\n'
    done
    must jail "${options[@]}" -- sh -c "$all exit 0"
}

# what is in the working directory, with inodes: to be compared
listing() {
    find . -printf '%p %i %y %s\n' | sort
}

# the same of the git directory; a transfer may make directories there
git_files() {
    find .git ! -type d -printf '%p %i %y %s %m\n' | sort
}

teardown() {
    cd /
    [ -z "${JOB:-}" ] || kill "$JOB" 2>/dev/null || true
    scratch_remove
}

# A run in the background, once it has made the file `up`.
start() { # start WHO SCRIPT
    rm -f up
    jail "$1" "${GIT[@]}" -- sh -c "$AWAIT; touch up; $2" >"$SCRATCH/out" 2>&1 &
    JOB=$!
    await_file up
}

@test "the user's git directory is not what the jail sees" {
    for who in $(everyone root); do
        project "$who"
        as "$(owner "$who")" sh -c 'printf "#!/bin/sh\n" >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit'
        before=$(git_files)
        # What is done to the git directory in the jail does not keep it from what follows in the same run.
        for attempt in 'echo x >.git/hooks/pre-commit; echo "# x" >>.git/config; chmod 777 .git/config
                touch -d 2000-01-01 .git/config; git config core.fsmonitor x; echo "[a]" >.git/config.worktree' \
            'mv .git/hooks h; mv .git/config c; cp c d; mv d .git/config; echo /tmp >.git/commondir' \
            'echo y >d; mv d .git/config' \
            'rm -rf .git/hooks; ln -s /tmp .git/hooks' 'rm -rf .git/hooks' 'rm -rf .git/objects .git/info'; do
            run jail "$who" -- sh -c "$attempt"
            [ "$status" -ne 125 ]
            [ "$(git_files)" = "$before" ] || {
                echo "changed by $attempt: $output" >&2
                return 1
            }
            rm -rf h c
        done
        # It cannot be moved away, removed or replaced.
        all_fail "$who" -- 'mv .git g' 'rmdir .git' 'mkdir x; mv -T x .git' 'ln -sfnT /tmp .git' 'rm -rf .git'
        [ -e .git/HEAD ]
        rm -rf x
        must jail "$who" --no-protect -- sh -c 'echo "# x" >>.git/config; mv .git g; mv g .git'
        run cat .git/config
        output_has "# x"
        rm -rf "$SCRATCH"
    done
}

@test "where nobody can look what there is to protect, the run does not start or has no access" {
    project user
    as user sh -c 'mkdir ../closed; echo x >../closed/.envrc'
    chmod 000 ../closed
    run jail user -d ../closed -- sh -c 'chmod 700 ../closed; echo planted >../closed/.envrc'
    chmod 700 ../closed
    [ "$(cat ../closed/.envrc)" = x ]
    must jail user -d ../closed true
}

@test "what --unprotect is given must mean something" {
    project user
    must_exit 125 jail user --unprotect .git/hooks -- true
    output_has "--unprotect .git"
    must_exit 125 jail user --unprotect .vscode/tasks.json -- true
    output_has "is protected as a whole"
    must_exit 125 jail user --unprotect .gti -- true
    output_has "not a protected path"
    must jail user --unprotect "$PWD/.git" -- sh -c 'echo x >.git/hooks/a'
    [ -e .git/hooks/a ]
    must jail user --unprotect ./.git/ -- sh -c 'echo x >.git/hooks/b'
    [ -e .git/hooks/b ]
    as user mkdir .vscode .claude
    must jail user --unprotect .vscode -- touch .vscode/tasks.json
    as user touch .claude/settings.json
    must jail user --unprotect .claude -- sh -c 'echo x >.claude/settings.json'
    must_fail jail user --unprotect .vscode -- sh -c 'echo x >.claude/settings.json'
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
        output_has "git does not work"
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
    run_as_user sh -c 'mv .git store; ln -s store .git; touch store/mine'
    before=$(find store .git -printf '%p %i %y %s %l\n' | sort)
    for attempt in 'rm .git' 'mv .git x' 'ln -sfn /tmp .git' 'echo x >.git/hooks/a' \
        'echo x >>store/config' 'mv store y'; do
        run jail user -- sh -c "$attempt"
        [ "$(find store .git -printf '%p %i %y %s %l\n' | sort)" = "$before" ] || {
            echo "changed by $attempt: $output" >&2
            return 1
        }
    done
    must jail user --no-protect -- sh -c 'echo x >.git/hooks/a'
    # One that leads out has nothing granted.
    run_as_user sh -c "mv store ../store; ln -sfn ../store .git"
    must_fail jail user -- cat ../store/config
    run jail user -- rm .git
    [ "$(readlink .git)" = ../store ]
}

@test "a symbolic link in a protected path stays, and what it leads to is read-only" {
    project user
    run_as_user sh -c 'mkdir real; echo mine >real/tasks.json; ln -s real .vscode; ln -s ../nowhere .idea; mkdir .claude; echo {} >s; ln -s ../s .claude/settings.json'
    before=$(find . -path ./.git -prune -o -printf '%p %i %y %s %l\n' | sort)
    for attempt in 'rm .vscode' 'ln -sfn /tmp .vscode' 'echo x >real/tasks.json' 'mv real r' \
        'rm .idea' 'echo xxx >s' 'rm .claude/settings.json' 'mv .claude c'; do
        run jail user -- sh -c "$attempt"
        [ "$status" -ne 125 ]
        run diff <(echo "$before") <(find . -path ./.git -prune -o -printf '%p %i %y %s %l\n' | sort)
        [ "$status" -eq 0 ] || {
            echo "changed by $attempt: $output" >&2
            return 1
        }
    done
    must jail user -- sh -c 'echo x >.claude/CLAUDE.md'
}

@test "the same directory granted by another path is protected there too" {
    project user
    as user sh -c 'mkdir .vscode; echo mine >.vscode/tasks.json; printf "#!/bin/sh\n" >.git/hooks/a'
    # What jails commit is kept below refs/brig.
    listing() { find . -path ./.git/refs/brig -prune -o ! -path ./.git/refs -printf '%p %i %y %s\n' | sort; }
    before=$(listing)
    attempts='echo x >$at/.git/hooks/a; echo x >>$at/.git/config; echo x >$at/.vscode/tasks.json
        mv $at/.git $at/x; mv $at/.vscode $at/y; exit 7'
    for grant in "$SCRATCH:/up" "$PWD:/again" "$PWD"; do
        at=${grant#*:}
        [ "$at" != /up ] || at=/up/p
        for option in '' -D; do
            must_exit 7 jail user ${option:+"$option"} -d "$grant" -- sh -c "at=$at; $attempts"
            [ "$(listing)" = "$before" ] || {
                echo "changed with $option -d $grant: $output" >&2
                return 1
            }
        done
    done
    must jail user -d "$PWD:/again" --no-protect -- sh -c 'echo x >/again/.git/hooks/a'
    [ "$(cat .git/hooks/a)" = x ]
}

@test "a commit in a directory that is granted twice, or by another path, arrives" {
    project user
    for grant in "$PWD" "$PWD:/again"; do
        must jail user "${GIT[@]}" -d "$grant" -- sh -ec 'cd "$1"; git commit -q --allow-empty -m "by $1"' - "${grant#*:}"
        [ "$(as user git log -1 --format=%s)" = "by ${grant#*:}" ]
    done
}

@test "in a directory that is no project nothing is made" {
    project user
    run_as_user mkdir ../cache
    must jail user -d ../cache -- ls -A "$SCRATCH/cache"
    [ -z "$output" ]
    [ -z "$(ls -A ../cache)" ]
    run_as_user sh -c 'git init -q ../cache; mkdir ../cache/.vscode'
    run jail user -d ../cache -- sh -c "echo x >$SCRATCH/cache/.git/hooks/a"
    [ ! -e ../cache/.git/hooks/a ]
    must_fail jail user -d ../cache -- mkdir "$SCRATCH/cache/.vscode/x"
    # Nor is one that cannot be written anyway.
    must jail user -r . -- ls -A
    output_lacks ".vscode"
}

@test "a repository without a working tree that is granted itself is protected" {
    project user
    run_as_user git clone -q --bare . ../bare.git
    before=$(cat ../bare.git/config)
    run jail user -d ../bare.git -- sh -c "echo x >$SCRATCH/bare.git/hooks/post-receive"
    [ ! -e ../bare.git/hooks/post-receive ]
    run jail user -d ../bare.git -- sh -c "echo x >>$SCRATCH/bare.git/config"
    [ "$(cat ../bare.git/config)" = "$before" ]
    must jail user "${GIT[@]}" -d ../bare.git -- git push -q ../bare.git HEAD:refs/heads/new
    run_as_user git -C ../bare.git rev-parse --verify new
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
    before=$(find .git/modules -type f -printf '%p %i %s\n' | sort)
    for tree in libs/outer libs/outer/libs/inner; do
        must jail user "${GIT[@]}" -- sh -ec "cd $tree; git config core.fsmonitor x; echo x >\$(git rev-parse --git-dir)/hooks/pre-commit"
        all_fail user -- "rm $tree/.git" "mv $tree/.git x" "echo 'gitdir: /tmp' >$tree/.git" "mv $tree moved"
        [ "$(find .git/modules -type f -printf '%p %i %s\n' | sort)" = "$before" ]
    done
    must jail user "${GIT[@]}" -- git -C libs/outer commit -q --allow-empty -m x
    [ "$(run_as_user git -C libs/outer log -1 --format=%s)" = x ]
    must jail user "${GIT[@]}" -- git -C libs/outer/libs/inner commit -q --allow-empty -m y
    [ "$(run_as_user git -C libs/outer/libs/inner log -1 --format=%s)" = y ]
}

@test "what brig goes by is protected: configuration elsewhere, scripts and programs" {
    local who
    for who in $(everyone root); do
        project "$who"
        # A link in the configuration's directory, which this run does not read; and what a file of
        # the directory, and the command line, name.
        as "$(owner "$who")" sh -c '
            mkdir ../config ../config/brig dots && echo "# mine" | tee dots/other.conf dots/part.conf here.conf >/dev/null &&
            ln -s ../../p/dots/other.conf ../config/brig/other.conf &&
            echo "conf $PWD/dots/part.conf" >../config/brig/default.conf &&
            echo : >script && printf "#!/bin/sh\n" >program && chmod +x program'
        export XDG_CONFIG_HOME=$SCRATCH/config
        all_fail "$who" -- 'echo x >>dots/other.conf' 'echo x >>dots/part.conf' 'mv dots gone'
        as "$(owner "$who")" sh -c 'mkdir ../config/brig/sub && ln -s "$PWD/dots/other.conf" ../config/brig/sub/deep.conf && rm ../config/brig/other.conf && echo "conf sub/deep.conf" >../config/brig/deep.conf'
        all_fail "$who" -C deep -- 'echo x >>dots/other.conf'
        as "$(owner "$who")" ln -s ../../p/dots/other.conf ../config/brig/other.conf
        all_fail "$who" -C ./here.conf --script ./script --initjail ./program -- \
            'echo x >>here.conf' 'echo x >>script' 'echo x >>program'
        all_fail "$who" -C ./dots/../here.conf -d "$SCRATCH/p:/data" -- 'echo x >>here.conf' 'echo x >>/data/dots/other.conf'
        [ "$(cat dots/*.conf here.conf)" = "$(printf '# mine\n# mine\n# mine')" ]
        # What was not named is a file as any other; and who insists may.
        must jail "$who" -- sh -c 'echo "# x" >>here.conf; echo : >>script'
        must jail "$who" --unprotect "$SCRATCH/p/dots/part.conf" -- sh -c 'echo "# x" >>dots/part.conf'
        must jail "$who" --no-protect -- sh -c 'echo "# x" >>dots/other.conf'
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "what brig goes by is protected over several links, and where nothing is yet the run is refused" {
    local who
    for who in $(everyone root); do
        project "$who"
        as "$(owner "$who")" sh -c '
            mkdir ../config ../config/brig dots && echo "# mine" >dots/last.conf && ln -s last.conf dots/next.conf &&
            ln -s ../../p/dots/next.conf ../config/brig/other.conf'
        export XDG_CONFIG_HOME=$SCRATCH/config
        all_fail "$who" -- 'rm dots/next.conf' 'mv dots/next.conf dots/gone' 'ln -sfn /etc/passwd dots/next.conf' \
            'echo x >>dots/next.conf' 'mv dots d'
        [ "$(readlink dots/next.conf)" = last.conf ]
        [ "$(cat dots/last.conf)" = "# mine" ]
        must jail "$who" -- sh -c 'echo x >>dots/any.conf' # the twin
        # A file that a link of brig's names and that is missing: the jail could make it.
        as "$(owner "$who")" ln -s "$PWD/dots/missing.conf" ../config/brig/missing.conf
        run jail "$who" -- sh -c 'echo "initjail /bin/evil" >dots/missing.conf'
        [ ! -s dots/missing.conf ] || {
            echo "made: $output" >&2
            return 1
        }
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "what brig goes by is protected in a directory that is granted by a link's name" {
    local who
    for who in $(everyone root); do
        project "$who"
        as "$(owner "$who")" sh -c '
            mkdir ../config ../config/brig dots && echo "# mine" >dots/other.conf && ln -s p ../alias &&
            ln -s ../../p/dots/other.conf ../config/brig/other.conf'
        export XDG_CONFIG_HOME=$SCRATCH/config
        for grant in "$SCRATCH/alias" "$SCRATCH/alias:/data"; do
            at=${grant#*:}
            all_fail "$who" -D -d "$grant" -- "! cd $at" "echo x >>$at/dots/other.conf" "rm $at/dots/other.conf" "mv $at/dots $at/gone"
        done
        [ "$(cat dots/other.conf)" = "# mine" ]
        must jail "$who" -D -d "$SCRATCH/alias" -- sh -c "echo x >$SCRATCH/alias/dots/any.conf" # the twin
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "links on the way to brig's directories stay, and where such a directory is missing the jail makes none" {
    local who
    for who in $(everyone root); do
        project "$who"
        as "$(owner "$who")" sh -c 'mkdir -p real/brig && ln -s real cfg && ln -s p/cfg ../config'
        export XDG_CONFIG_HOME=$SCRATCH/config
        all_fail "$who" -- 'rm cfg' 'mv cfg gone' 'ln -sfn /tmp cfg' 'mv real gone'
        [ "$(readlink cfg)" = real ]
        as "$(owner "$who")" rmdir real/brig
        run jail "$who" -- sh -c 'mkdir -p n/brig; echo "initjail /bin/evil" >n/brig/default.conf; mv n/brig real/; mv -T n/brig real/brig'
        [ ! -e real/brig/default.conf ]
        # A jail's file that a link in the storage leads to, by another link.
        as "$(owner "$who")" sh -c 'mkdir dots && echo "mode strict" >dots/x.jail && ln -s dots more && ln -s "$PWD/more/x.jail" ../data/brig/x.jail'
        all_fail "$who" -- 'rm more' 'ln -sfn /tmp more' 'rm dots/x.jail' 'mv dots gone' 'echo x >>dots/x.jail'
        [ "$(cat more/x.jail)" = "mode strict" ]
        unset XDG_CONFIG_HOME
        cd / && scratch_remove
    done
}

@test "when the host replaces a protected file, its protection is put back" {
    for who in $(everyone root); do
        project "$who"
        as "$(owner "$who")" sh -c 'echo before >.envrc; mkdir .vscode; echo before >.vscode/t'
        start "$who" 'await grep -q outside .envrc; is_protected() { [ ! -w .envrc ]; }; await is_protected
            echo x >>.envrc && echo LOST; mv .envrc c && echo LOST; cat .envrc'
        as "$(owner "$who")" sh -c 'echo outside >new; mv new .envrc'
        wait "$JOB" || true
        JOB=
        run cat "$SCRATCH/out"
        output_has outside
        output_lacks LOST
        [ "$(cat .envrc)" = outside ]
        rm -rf "$SCRATCH"
    done
}

@test "when the host removes or replaces .git, the run ends, and the new one is not touched" {
    for who in $(everyone root); do
        project "$who"
        start "$who" 'replaced() { [ -e .git/mark ]; }; await replaced; echo x >>.git/config; echo x >.git/hooks/planted; sleep 60; echo SURVIVED'
        as "$(owner "$who")" sh -c 'cp -a .git new; touch new/mark; mv .git old; mv new .git'
        wait "$JOB" || true
        JOB=
        run cat "$SCRATCH/out"
        output_lacks SURVIVED
        output_has "replaced outside"
        rm -rf "$SCRATCH"
    done
}

@test "a run without a place for storage has a read-only .git" {
    project user
    before=$(listing)
    run_as_user mkdir -m 0555 "$SCRATCH/locked"
    must_fail as user env XDG_DATA_HOME="$SCRATCH/locked" "$BRIG" -m sealed -- sh -c 'echo x >>.git/config'
    must_fail as user env XDG_DATA_HOME="$SCRATCH/locked" "$BRIG" -m sealed -- mv .git g
    must as user env XDG_DATA_HOME="$SCRATCH/locked" "$BRIG" -m sealed "${GIT[@]}" -- git log --oneline
    [ "$(listing)" = "$before" ]
}

@test "names with blanks and odd characters" {
    project user
    odd="$SCRATCH/a b \\ ü"
    run_as_user mv "$SCRATCH/p" "$odd"
    cd "$odd"
    as user sh -c 'echo mine >.envrc'
    must_fail jail user -- sh -c 'echo x >.envrc'
    must jail user "${GIT[@]}" -- sh -c 'echo x >.git/hooks/a; echo c >"c d"; git add "c d"; git commit -q -m odd'
    [ ! -e .git/hooks/a ]
    [ "$(as user git log -1 --format=%s)" = odd ]
    must jail user -- sh -c 'mkdir .vscode'
    [ ! -e .vscode ]
}

@test "--dry-run shows what is protected and makes nothing" {
    project user
    as user mkdir .vscode
    before=$(listing)
    must jail user --dry-run
    output_has "$PWD/.git  [private git directory]"
    output_has "protect     $PWD/.vscode"
    must jail user --no-protect --dry-run
    output_lacks "protect     $PWD"
    [ "$(listing)" = "$before" ]
    [ -z "$(find ../data -mindepth 1)" ]
}

@test "what root's jail has mounted is not mounted on the host" {
    lib_is_root || skip "needs root"
    project root
    mkdir .vscode
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
        sh "$SCRATCH/twice" "$BRIG" -m sealed -- sh -c '! mkdir .vscode/x 2>/dev/null && echo x >.git/hooks/a'
    [ ! -e .git/hooks/a ]
}

@test "it holds in every mode" {
    local pair who mode attempts=('mv .git g' 'mkdir .vscode/x' 'echo "# x" >.brig.conf' 'mv .vscode v')
    for pair in $(pairs_of "$(everyone root)" casual bare strict); do
        who=${pair%:*} mode=${pair#*:}
        project "$who"
        as "$(owner "$who")" sh -c 'mkdir .vscode; echo mine >.brig.conf; echo "#" >.brig.conf'
        all_fail "$who" -m "$mode" -d . -- "${attempts[@]}"
        must jail "$who" -m "$mode" -d . -- sh -c 'touch written && rm written; echo x >.git/hooks/a'
        [ ! -e .git/hooks/a ]
        for attempt in "${attempts[@]}"; do
            must jail "$who" -m "$mode" -d . --no-protect -- sh -c "$attempt"
            rm -rf x v .vscode/x
            [ ! -e g ] || mv g .git
            [ -e .vscode ] || as "$(owner "$who")" mkdir .vscode
        done
    done
}

@test "root in another user's directory is refused without --foreign" {
    lib_is_root || skip "needs root"
    project user
    must_exit 125 jail root -- true
    output_has "--foreign"
    must jail root --foreign -- sh -c 'echo x >file'
    must_fail jail root --foreign -- sh -c 'echo x >>.git/config'
    as user git status >/dev/null
}

@test "where nothing can be mounted, it is said that nothing is protected" {
    project user
    must jail user --disable namespaces -v -- true
    output_has "protected paths can be written to"
}
