#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Git works in a jail, and the result arrives: commits, branches, tags, HEAD and the staged state are in the
# user's repository when the run has ended, and nothing of the user's is overwritten.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2153 # BRIG is lib's
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

setup() {
    repos_setup
}

teardown() {
    repos_teardown
}

# ---- Every mode ----------------------------------------------------------------------------------

@test "a commit made in a jail arrives, in every mode" {
    # The other tests take user:casual, user:sealed, sudo:sealed and root:sealed by turns.
    local pairs='user:bare user:strict'
    ! lib_is_root || pairs='user:strict sudo:casual sudo:bare root:sealed'
    [ -z "${BRIG_THOROUGH:-}" ] || pairs=$(pairs_of "$(everyone)" casual strict bare sealed)
    [ -z "${BRIG_THOROUGH:-}" ] || ! lib_is_root || pairs+=' root:bare root:sealed'
    for pair in $pairs; do
        project "${pair%:*}"
        must inside "$pair" 'echo c >c; git add c; git commit -q -m second; state'
        output_has "git: 1 commit on main"
        [ "$(out log --format=%s)" = $'second\nfirst' ]
        [ -z "$(out status --porcelain -uno)" ]
        arrived
        nothing_left
        # Files belong to the owner of the project, not to root.
        [ -z "$(find .git ! -user "$(stat -c %U .)")" ]
    done
}

@test "a caller that ignores SIGCHLD, as some daemons do, changes nothing" {
    project user
    printf '#!/bin/sh\nexec env --ignore-signal=CHLD "%s" "$@"\n' "$BRIG" >"$SCRATCH/ignoring"
    chmod 755 "$SCRATCH/ignoring"
    BRIG=$SCRATCH/ignoring must inside user:strict 'echo c >c; git add c; git commit -q -m second'
    output_has "git: 1 commit on main"
    [ "$(out log --format=%s)" = $'second\nfirst' ]
}

@test "a run that changes nothing in git says nothing, and starts no git" {
    local wrapper
    for pair in $(pairs); do
        project "${pair%:*}"
        wrapper=$SCRATCH/bin/git
        as "$OWNER" mkdir "$SCRATCH/bin"
        printf '#!/bin/sh\necho "$*" >>"%s/calls"\nexec /usr/bin/git "$@"\n' "$SCRATCH" >"$wrapper"
        chmod 755 "$wrapper"
        export PATH=$SCRATCH/bin:$PATH
        must inside "$pair" 'echo x >file' # the first run looks at the index and the config
        rm -f "$SCRATCH/calls"
        must inside "$pair" 'echo y >file'
        [ -z "$output" ]
        [ ! -e "$SCRATCH/calls" ]
        # The twin: git is started when there is something to do.
        must inside "$pair" 'git add file'
        output_has "1 file staged"
        [ -s "$SCRATCH/calls" ]
        PATH=${PATH#"$SCRATCH/bin:"}
    done
}

# ---- Everyday work -------------------------------------------------------------------------------

@test "add, commit, amend, branch, switch, tag, reset and rm" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" '
            echo c >c; git add c; git commit -q -m wrong; git commit -q --amend -m right
            git switch -q -c feature/x; echo d >d; git add d; git commit -q -m d
            git rm -q a; git mv b e; git commit -q -m moved
            git tag light; git tag -a -m text heavy
            git branch other main; git reset -q --soft HEAD^; state'
        arrived
        [ "$(out symbolic-ref HEAD)" = refs/heads/feature/x ]
        [ "$(out log --format=%s main)" = $'right\nfirst' ]
        [ "$(out cat-file -t heavy)" = tag ]
        [ "$(out diff --cached --name-status)" = $'D\ta\nR100\tb\te' ]
        nothing_left
    done
}

@test "merge, rebase, cherry-pick and revert" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" '
            for branch in one two three; do
                git switch -q -c $branch main; echo $branch >$branch; git add $branch; git commit -q -m $branch
            done
            git switch -q main; git merge -q --no-ff -m merged one
            git switch -q two; git rebase -q main
            git switch -q -c picked main; git cherry-pick three >/dev/null; git revert --no-edit HEAD >/dev/null
            GIT_SEQUENCE_EDITOR="sed -i 2d" git rebase -q -i HEAD~2
            state'
        arrived
        [ "$(out log --first-parent --format=%s two)" = $'two\nmerged\nfirst' ]
        nothing_left
    done
}

@test "stash and pop, bisect run, clean, gc and fsck" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" '
            echo changed >a; git stash -q; [ "$(cat a)" = a ]; git stash pop -q; [ "$(cat a)" = changed ]
            git checkout -q a
            for i in 1 2 3 4 5 6 7 8; do echo $i >n; git add n; git commit -q -m $i; git tag v$i; done
            git bisect start v8 v1 >/dev/null; git bisect run sh -c "[ \$(cat n) -lt 5 ]" >bisected
            git bisect reset >/dev/null 2>&1; grep -q "is the first bad commit" bisected; grep -q "^    5" bisected
            git clean -qfd; git gc -q --prune=now; git fsck --no-dangling; state'
        output_has "8 commits on main"
        output_lacks stash
        arrived
        [ "$(out rev-list --count v8)" = 9 ]
        nothing_left
    done
}

@test "settings and hooks work inside, and stay there" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'printf "#!/bin/sh\necho pre-commit of the user >>hooked\n" >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit'
        before=$(cat .git/config)
        must inside "$pair" '
            git config user.name someone; git config alias.st status; git st >/dev/null
            printf "#!/bin/sh\necho post-commit of the jail >>hooked\n" >.git/hooks/post-commit; chmod +x .git/hooks/post-commit
            echo c >c; git add c; git commit -q -m c'
        [ "$(cat hooked)" = $'pre-commit of the user\npost-commit of the jail' ]
        output_has "changes to git config were not transferred"
        [ "$(cat .git/config)" = "$before" ]
        [ ! -e .git/hooks/post-commit ]
        [ -x .git/hooks/pre-commit ]
        [ "$(out log -1 --format=%s)" = c ]
    done
}

@test "a repository that is made in a jail is one outside, with fresh settings" {
    for pair in $(pairs); do
        enter_project "${pair%:*}"
        must inside "$pair" '
            git init -q -b trunk; git config core.fsmonitor "touch ran"; echo a >a; git add a; git commit -q -m first
            git tag t; echo b >b; git add b; state; rm -f ran'
        arrived
        [ "$(out log --format='%s %d')" = 'first  (HEAD -> trunk, tag: t)' ]
        [ "$(out diff --cached --name-only)" = b ]
        must_fail out config core.fsmonitor
        [ ! -e ran ]
        nothing_left
        # The next run finds it.
        must inside "$pair" 'git commit -q -m second; state'
        output_has "1 commit on trunk"
        arrived
    done
}

@test "an unborn repository, and one without a commit but with staged files" {
    local pair=user:sealed
    enter_project "${pair%:*}"
    must inside "$pair" 'git init -q -b trunk; echo a >a; git add a'
    [ "$(out symbolic-ref HEAD)" = refs/heads/trunk ]
    [ "$(out ls-files)" = a ]
    must inside "$pair" 'git commit -q -m first; state'
    arrived
    # One of the user's own.
    enter_project "${pair%:*}"
    out init -q -b main
    must inside "$pair" 'echo a >a; git add a; git commit -q -m first; state'
    output_has "1 commit on main"
    arrived
}

@test "where no repository is made, no .git is left" {
    for pair in $(pairs); do
        enter_project "${pair%:*}"
        must inside "$pair" 'test -d .git; ! git status 2>/dev/null; echo x >file'
        [ "$(ls -A)" = file ]
    done
}

@test "a clone of a local repository below the project is a repository outside" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" git clone -q . ../source
        as "$OWNER" git -C ../source commit -q --allow-empty -m theirs
        must inside "$pair" "git clone -q '$SCRATCH/source' sub; git -C sub log --oneline; git -C sub switch -q -c mine
            echo x >sub/x; git -C sub add x; git -C sub commit -q -m mine" -r "$SCRATCH/source"
        [ "$(out -C sub log --format=%s mine)" = $'mine\ntheirs\nfirst' ]
        [ "$(out -C sub symbolic-ref HEAD)" = refs/heads/mine ]
        [ -z "$(out -C sub status --porcelain)" ]
        must out fsck
        [ "$(out log --format=%s)" = first ]
    done
}

# ---- Kinds of repositories -----------------------------------------------------------------------

@test "in a linked worktree" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out worktree add -q -b side ../side
        cd ../side
        must inside "$pair" 'echo c >c; git add c; git commit -q -m side; git branch more; echo d >d; git add d; state'
        output_has "1 commit on side"
        arrived
        [ "$(out -C "$PROJECT" log --format=%s side)" = $'side\nfirst' ]
        [ "$(out -C "$PROJECT" symbolic-ref HEAD)" = refs/heads/main ]
        [ -z "$(out -C "$PROJECT" status --porcelain)" ]
        [ "$(cat .git)" = "gitdir: $PROJECT/.git/worktrees/side" ]
        # And in the main one, which has a linked one.
        cd "$PROJECT"
        must inside "$pair" 'echo e >e; git add e; git commit -q -m e; state'
        arrived
        [ "$(out -C ../side symbolic-ref HEAD)" = refs/heads/side ]
        nothing_left
    done
}

# with_submodule: the project has a submodule in libs/sub, whose repository is in .git/modules.
with_submodule() {
    project "$1"
    as "$OWNER" sh -ec 'git clone -q . ../inner
        git -c protocol.file.allow=always submodule --quiet add "$PWD/../inner" libs/sub; git commit -q -m sub'
}

@test "in a submodule, and in a project that has one" {
    for pair in $(pairs); do
        with_submodule "${pair%:*}"
        must inside "$pair" '
            cd libs/sub; git switch -q -c work; echo c >c; git add c; git commit -q -m in-sub
            cd ../..; git add libs/sub; git commit -q -m bumped; state'
        output_has "git: $PROJECT/libs/sub: 1 commit on work"
        output_has "git: $PROJECT: 1 commit on main"
        arrived
        must by "${pair%:*}" log -j "$JAIL"
        output_has "made work in libs/sub"
        [ "$(out -C libs/sub log --format=%s work)" = $'in-sub\nfirst' ]
        [ "$(out rev-parse HEAD:libs/sub)" = "$(out -C libs/sub rev-parse work)" ]
        [ -z "$(out status --porcelain)" ]
        nothing_left
        cd libs/sub
        must inside "$pair" 'echo d >d; git add d; git commit -q -m alone; state'
        output_has "1 commit on work"
        arrived
        cd ../..
        must inside "$pair" 'git -C libs/sub commit -q --allow-empty -m r; git commit -q --allow-empty -m r' -R
        output_has "git: $PROJECT/libs/sub: 1 commit on work: kept in the jail"
        output_has "git: $PROJECT: 1 commit on main: kept in the jail"
        must by "${pair%:*}" apply -j "$JAIL" --all
        output_has "git: $PROJECT/libs/sub: 1 commit on work"
    done
}

@test "in a submodule that is not checked out, and one that is added in the jail" {
    local pair=user:sealed
    with_submodule "${pair%:*}"
    out submodule --quiet deinit -f libs/sub
    must inside "$pair" 'git status --porcelain; git submodule status; echo c >c; git add c; git commit -q -m c; state'
    arrived
    project "${pair%:*}"
    out clone -q . ../inner
    must inside "$pair" "git -c protocol.file.allow=always submodule --quiet add '$SCRATCH/inner' new; git commit -q -m added" \
        -r "$SCRATCH/inner"
    [ "$(out log -1 --format=%s)" = added ]
    must out status --porcelain
    must out fsck
}

@test "in a shallow clone" {
    for pair in $(pairs); do
        project "${pair%:*}"
        for i in 1 2 3; do out commit -q --allow-empty -m "$i"; done
        out clone -q --depth 2 "file://$PWD" ../shallow
        cd ../shallow
        must inside "$pair" 'echo c >c; git add c; git commit -q -m new; [ "$(git rev-list --count HEAD)" = 3 ]; state'
        output_has "1 commit on main"
        arrived
        [ "$(out rev-list --count HEAD)" = 3 ]
        [ "$(out rev-parse --is-shallow-repository)" = true ]
        nothing_left
    done
}

@test "in a repository with SHA-256" {
    for pair in $(pairs); do
        enter_project "${pair%:*}"
        out init -q -b main --object-format=sha256
        as "$OWNER" sh -ec 'echo a >a; git add a; git commit -q -m first'
        must inside "$pair" 'echo c >c; git add c; git commit -q -m second; git tag t; echo d >d; git add d; state'
        output_has "1 commit on main"
        arrived
        [ "$(out rev-parse HEAD | tr -d '\n' | wc -c)" = 64 ]
        nothing_left
    done
    # One that the jail makes.
    enter_project user
    must inside user:sealed 'git init -q -b main --object-format=sha256; echo a >a; git add a; git commit -q -m first; state'
    arrived
}

@test "in a repository whose objects are borrowed from another" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out clone -q --shared . ../borrowing
        cd ../borrowing
        must inside "$pair" 'git log --oneline; echo c >c; git add c; git commit -q -m new; git gc -q; state'
        arrived
        nothing_left
    done
}

@test "objects of Git LFS are visible inside, and new ones arrive if their hash is right" {
    local wrong
    needs git-lfs
    wrong=$(printf 'a%.0s' $(seq 64))
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec '
            git lfs install --local; git lfs track "*.bin"; seq 1000 >a.bin; git add .; git commit -q -m large
            git switch -q -c other; seq 2000 >a.bin; git commit -q -a -m other; git switch -q main' >/dev/null
        must inside "$pair" '
            git switch -q other; [ "$(tail -n 1 a.bin)" = 2000 ]; git switch -q main; [ "$(tail -n 1 a.bin)" = 1000 ]
            seq 3000 >b.bin; git add b.bin; git commit -q -m third; git show HEAD:b.bin | grep -q "oid sha256:"
            mkdir -p .git/lfs/objects/aa/aa; echo wrong >.git/lfs/objects/aa/aa/'"$wrong"'
            ln -s /etc/passwd .git/lfs/objects/aa/aa/'"${wrong/a/b}"'
            ! touch "/run/brig/objects$PWD/.git/lfs/objects/x" 2>/dev/null; state'
        arrived
        must out lfs fsck
        as "$OWNER" rm b.bin
        must out checkout b.bin
        [ "$(tail -n 1 b.bin)" = 3000 ]
        [ -z "$(find .git/lfs -type f ! -name '[0-9a-f]*' -o -name 'aaa*' -o -name 'baa*')" ]
        nothing_left
    done
}

@test "in a subdirectory of a repository git reads the history" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'mkdir -p sub/deep; echo x >sub/x; git add sub; git commit -q -m sub'
        cd sub
        must inside "$pair" 'git log --format=%s; git status --porcelain; echo y >>x; git diff --stat; ! echo x 2>/dev/null >../a'
        output_has first
        [ "$(cat ../a)" = a ]
        [ "$(out status --porcelain)" = " M sub/x" ]
    done
}

@test "a split index, a sparse checkout and a threaded index are kept" {
    project user
    as user sh -ec 'mkdir d e; echo x >d/x; echo y >e/y; git add d e; git commit -q -m more; git update-index --split-index'
    must inside user:sealed 'echo c >c; git add c; git commit -q -m c; state'
    arrived
    project user
    as user sh -ec 'mkdir d e; echo x >d/x; echo y >e/y; git add d e; git commit -q -m more; git sparse-checkout set d'
    [ ! -e e ]
    must inside user:sealed 'echo c >d/c; git add d/c; git commit -q -m c; [ ! -e e ]; state'
    arrived
    [ ! -e e ]
    [ -z "$(out status --porcelain)" ]
    [ "$(out ls-files e)" = e/y ]
}

# ---- What arrives --------------------------------------------------------------------------------

@test "the staged state arrives, also of files that were removed or only partly added" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'echo 1 >a; git add a; echo 2 >a; git rm -q --cached b; chmod +x b; git add b; git rm -q --cached b; state'
        output_has staged
        arrived
        [ "$(out show :a)" = 1 ]
        [ "$(cat a)" = 2 ]
    done
}

@test "a detached HEAD and a deleted branch arrive" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'git branch gone; git branch merged; git tag old; git commit -q --allow-empty -m second'
        gone=$(out rev-parse gone)
        must inside "$pair" 'git branch -q -D gone; git tag -d old >/dev/null; git checkout -q --detach HEAD^; state'
        # Its old value is named.
        output_has "gone ($gone)"
        arrived
        must_fail out symbolic-ref -q HEAD
        must_fail out rev-parse -q --verify refs/heads/gone
    done
}

@test "a branch makes room for others below its name, and the other way round" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'git branch -m f; git branch d/x; git branch d/y'
        must inside "$pair" 'git branch -m f/a; echo c >c; git add c; git commit -q -m work; git branch -D -q d/x d/y; git branch d; state'
        output_has "HEAD is now f/a"
        arrived
        nothing_left
        must inside "$pair" 'git branch -m f; git branch -D -q d; git branch d/x; state'
        arrived
        # A name that is taken outside meanwhile is not, and the rest arrives.
        start "$pair" 'await_file go; git branch -D -q d/x; git branch g/x $(git commit-tree -m theirs HEAD^{tree}); git branch h'
        out branch g
        finish
        output=$(cat "$SCRATCH/out")
        output_has "g/x was not moved: a ref outside is in the way of its name"
        [ -n "$(kept theirs)" ]
        out rev-parse -q --verify refs/heads/h
        must_fail out rev-parse -q --verify refs/heads/d/x
    done
}

@test "files that are only to be added stay so, and new ones arrive; marks and symbolic branches stay in the jail" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'mkdir -p d; echo n >n; echo o >d/o; git add -N n d/o; git update-index --assume-unchanged b'
        must inside "$pair" 'echo c >c; git add c; git commit -q -m c; state'
        arrived
        [ "$(out diff --name-only --diff-filter=A)" = $'d/o\nn' ]
        [ "$(out ls-files -v b)" = "h b" ]
        must inside "$pair" 'git add n; git commit -q -m n; echo p >p; git add -N p; state'
        arrived
        [ "$(out diff --name-only --diff-filter=A)" = $'d/o\np' ]
        must inside "$pair" 'git update-index --assume-unchanged a; git symbolic-ref refs/heads/alias refs/heads/main'
        output_has "marked assume-unchanged or skip-worktree in the jail"
        output_has "1 symbolic ref was left in the jail"
        [ "$(out ls-files -v a)" = "H a" ]
        must_fail out rev-parse -q --verify refs/heads/alias
    done
}

@test "a run inside a run's repository is told in one line" {
    project user
    must inside user:sealed 'for i in 1 2 3; do echo $i >f; git add f; git commit -q -m $i; done; git switch -q -c feature/x
        echo y >y; git add y; git commit -q -m y; echo x >x; git add x'
    [ "$(grep -c 'git:' <<<"$output")" = 1 ]
    output_has "3 commits on main"
    output_has "feature/x"
    output_has "1 file staged"
}

@test "hundreds of branches arrive, and are there in the next run" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'for i in $(seq 300); do echo "create refs/heads/b/$i HEAD"; done | git update-ref --stdin; state'
        arrived
        [ "$(out for-each-ref refs/heads | wc -l)" = 301 ]
        nothing_left
        must inside "$pair" 'git for-each-ref refs/heads | wc -l; git branch -q -D b/1; state'
        output_has 301
        arrived
    done
}

@test "stashes arrive in the list of stashes, and those that the jail used are dropped" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'echo own >b; git stash push -q -m own; echo precious >a'
        must inside "$pair" 'git stash -q; echo second >a; git stash push -q -m "second one"'
        output_has "git: 2 stashes"
        [ "$(cat a)" = a ]
        run out stash list --format=%gs
        [ "${lines[0]}" = "On main: second one" ]
        [ "${lines[2]}" = "On main: own" ]
        [ "${#lines[@]}" = 3 ]
        nothing_left
        # The next run has them all. What it uses is dropped, and can still be found.
        must inside "$pair" '[ "$(git stash list | wc -l)" = 3 ]; git stash drop -q; git stash pop -q'
        output_has "2 stashes dropped"
        [ "$(cat a)" = precious ]
        [ "$(out stash list --format=%gs)" = "On main: own" ]
        [ "$(out for-each-ref "refs/brig/$JAIL" | wc -l)" = 2 ]
        # One that the user makes meanwhile stays.
        start "$pair" 'await_file go; git stash -q'
        out stash push -q -m meanwhile b || true
        as "$OWNER" sh -ec 'echo x >b; git stash push -q -m meanwhile b'
        finish
        [ "$(out stash list | wc -l)" = 3 ]
    done
}

@test "upstreams arrive if their remote existed, and are announced; new remotes are named" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out remote add origin https://example.com/mine.git
        out branch other
        must inside "$pair" '
            git config branch.main.merge refs/heads/main; git config branch.main.remote origin; git config branch.main.rebase true
            git remote add web "https://example.com/x.git;id"; git remote add scp git@example.com:x/y.git
            git config branch.other.remote web; git config branch.other.merge refs/heads/other'
        output_has "git: main now tracks origin/main, main is rebased by git pull"
        output_has "git: the new remote web stays in the jail. To add it: git -C $PWD remote add web 'https://example.com/x.git;id'"
        output_has "remote add scp git@example.com:x/y.git"
        output_has "git: 2 changes to git config were not transferred"
        [ "$(out config branch.main.remote)" = origin ]
        [ "$(out config branch.main.merge)" = refs/heads/main ]
        [ "$(out config branch.main.rebase)" = true ]
        [ "$(out remote)" = origin ]
        must_fail out config --get-regexp '^branch\.other'
        # In a repository that the jail has made, no remote existed.
        as "$OWNER" rm -rf .git
        must inside "$pair" 'git init -q -b main; git remote add origin https://example.com/x; git config branch.main.remote origin
            git config branch.main.merge refs/heads/main; git -c user.name=x -c user.email=x commit -q --allow-empty -m first'
        output_has "the new remote origin stays in the jail"
        [ "$(out log --format=%s)" = first ]
        must_fail out config --get-regexp '^(remote|branch)\.'
    done
}

@test "remotes that execute or lead elsewhere do not arrive, nor changes of those that exist" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out remote add origin https://example.com/mine.git
        before=$(cat .git/config)
        must inside "$pair" '
            git remote set-url origin https://evil.example/x.git
            git remote set-url --add origin https://evil.example/y.git
            git config remote.origin.pushurl https://evil.example/x.git
            git config remote.origin.proxy http://evil.example
            git config remote.origin.uploadpack "touch ran"
            git config remote.origin.receivepack "touch ran"
            git remote add run "ext::sh -c touch% ran"
            git config remote.dash.url "-oProxyCommand=touch"
            git remote add dashhost "ssh://-oProxyCommand=touch/x"
            git config remote.scpdash.url "-oProxyCommand=touch:x"
            git remote add path /etc
            git remote add file file:///etc
            git remote add password http://a:b@127.0.0.1:631/
            git remote add token https://token@evil.example/
            git config remote.over.url https://example.com/z.git
            git config remote.over.fetch "+refs/heads/*:refs/heads/*"
            git config remote.vcs.vcs ext
            git config url.ext::sh.insteadOf https://
            git config branch.main.pushRemote run
            git config branch.main.remote ../x
            git config include.path ../settings
            git config core.sshCommand "touch ran"'
        output_has "were not transferred"
        [ "$(out config --get-all remote.origin.url)" = https://example.com/mine.git ]
        run diff <(echo "$before") .git/config
        [ "$status" -eq 0 ] || { echo "$output"; false; }
    done
}

@test "credentials in git's settings are not visible inside, and not lost outside" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec '
            git remote add origin https://user:sesame@example.com/x.git
            git remote add token https://sesame@example.com/y.git
            git config remote.origin.pushurl https://user:sesame@example.com/push.git
            git config http.https://example.com/.extraHeader "Authorization: Basic sesame"
            git config http.extraHeader "X-Token: sesame"
            git config url.https://user:sesame@example.com/.insteadOf gh:
            git config remote.origin.proxy http://user:sesame@proxy.example:3128
            git config http.proxy http://user:sesame@proxy.example:3128
            git config github.token sesame
            git config sendemail.smtpPass sesame
            git config credential.https://example.com.helper "!echo password=sesame; true"
            git config credential.helper cache
            git config alias.up "!git push https://example.com/a https://sesame@example.com/b"
            echo "# was https://user:sesame@example.com/old" >>.git/config'
        before=$(cat .git/config)
        must inside "$pair" 'cat .git/config; git config --list; grep -r sesame .git /run/brig 2>/dev/null || true; git remote -v'
        output_lacks sesame
        output_has https://example.com/x.git
        output_has "# was https://example.com/old"
        output_has "alias.up=!git push https://example.com/a https://example.com/b"
        output_has credential.helper=cache
        output_has "--inject"
        [ "$(cat .git/config)" = "$before" ]
        # Nor do they come from a linked worktree or a submodule.
        must inside "$pair" 'git config user.name x; git remote add more https://example.com/z; echo c >c; git add c; git commit -q -m c'
        [ "$(out config remote.origin.url)" = https://user:sesame@example.com/x.git ]
        must_fail out config remote.more.url
        [ "$(out config remote.token.url)" = https://sesame@example.com/y.git ]
    done
}

@test "a remote that a jail has added does not become reachable by --inject @git" {
    needs curl
    for pair in $(pairs); do
        project "${pair%:*}"
        out remote add origin https://user:sesame@example.com/x.git
        must inside "$pair" 'git remote add evil https://a:b@evil.example/x; git remote add web https://web.example/x'
        output_has "remote add web https://web.example/x"
        output_lacks evil.example
        must_fail out config remote.web.url
        must_fail out config remote.evil.url
        must by "${pair%:*}" --net allow --inject @git -j "$JAIL" -- env
        output_has GIT_CONFIG_VALUE_0=https://example.com/
        output_has GIT_CONFIG_COUNT=1
        output_lacks evil.example
    done
}

@test "refs whose names could be taken for others are kept, not created; the user's own ones move" {
    for pair in $(pairs); do
        project "${pair%:*}"
        short=$(out rev-parse --short HEAD)
        out branch feed
        must inside "$pair" '
            echo new >a; git commit -qam new
            for name in '"$short"' @ FETCH_HEAD stash heads/main tags/v1 "$(printf "rtl\342\200\256gpj")" good; do
                git update-ref "refs/heads/$name" HEAD
            done
            git update-ref refs/heads/feed HEAD; git symbolic-ref HEAD refs/heads/dead; git symbolic-ref HEAD refs/heads/main'
        output_has "git: $short was not moved: its name could be taken for something else. It is kept as refs/brig/"
        output_has 'rtl\xe2\x80\xaegpj was not moved'
        output_lacks "$(printf '\342\200\256')"
        [ "$(out for-each-ref --format='%(refname:lstrip=2)' refs/heads)" = $'feed\ngood\nmain' ]
        [ "$(out log -1 --format=%s feed)" = new ]
        [ "$(out rev-parse --short HEAD~)" = "$short" ]
        # HEAD does not follow one either, and the commit is kept.
        must inside "$pair" 'git switch -qc c0ffee; echo more >a; git commit -qam more'
        output_has "HEAD and the index stay as they are"
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
        [ -n "$(kept more)" ]
    done
}

@test "a push to a path of which the jail has a copy is named, and a real one and a fetch are not" {
    project user
    remote=$HOME_OF_USER/pushed.git
    as user sh -ec "git init -q -b main --bare '$remote'; git remote add origin '$remote'; git push -q origin main"
    must inside user:casual 'echo c >c; git add c; git commit -q -m c; git push -q origin main; git push -q origin main:x'
    output_has "git: origin is $remote, of which the jail has a copy: what it pushed to main, x stays there. Push outside, or add -d $remote"
    [ "$(as user git --git-dir "$remote" log -1 --format=%s)" = first ]
    must inside user:casual 'echo d >d; git add d; git commit -q -m d; git push -q origin main' -d "$remote"
    output_lacks "origin is"
    [ "$(as user git --git-dir "$remote" log -1 --format=%s)" = d ]
    as user sh -ec "git clone -q '$remote' ../other; cd ../other; git commit -q --allow-empty -m other; git push -q origin main"
    must inside user:casual 'git fetch -q origin main'
    output_lacks "origin is"
    # Also of commits that are there already, and deletions.
    as user sh -ec "git --git-dir '$remote' branch gone main; git fetch -q origin"
    must inside user:casual 'git push -q origin main~:refs/heads/again; git push -q origin :gone'
    output_has "what it pushed to again, gone (deleted) stays there"
    must inside user:casual 'git push -q origin :gone; git push -q origin main~:refs/heads/twice' -d "$remote"
    output_lacks "origin is"
    must_fail as user git --git-dir "$remote" rev-parse -q --verify gone
    must inside user:casual 'git commit -q --allow-empty -m r; git push -q -f origin main' -R
    output_has "origin is $remote, of which the jail has a copy"
    as user rm -rf "$remote"
}

# ---- Conflicts -----------------------------------------------------------------------------------

@test "a branch that moved outside is not overwritten, and the merge command is named" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'await_file go; echo c >c; git add c; git commit -q -m theirs; git branch other'
        as "$OWNER" sh -ec 'echo d >d; git add d; git commit -q -m mine'
        mine=$(out rev-parse main)
        finish
        output_has "git merge $(kept theirs)"
        [ "$(out rev-parse main)" = "$mine" ]
        [ -n "$(kept theirs)" ]
        out rev-parse -q --verify other
        [ "$(out ls-files)" = $'a\nb\nd' ]
        # The command that brig has printed works, although the files are in the working tree already.
        must as "$OWNER" sh -ec "$(sed -n 's/.*To merge it: //p' <<<"$output") -m merged"
        [ "$(cat c)" = c ]
        must out fsck
    done
}

@test "a branch that was deleted, made or renamed outside meanwhile is not overwritten" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out branch gone
        out branch renamed
        start "$pair" 'await_file go; for b in gone renamed made; do git switch -q -C $b; echo $b >$b; git add $b; git commit -q -m $b; done; git switch -q main'
        out branch -q -D gone
        out branch -m renamed renamed-now
        out branch made
        mine=$(out rev-parse main)
        finish
        [ "$(out rev-parse made)" = "$mine" ]
        [ "$(out rev-parse renamed-now)" = "$mine" ]
        must_fail out rev-parse -q --verify refs/heads/gone
        output=$(cat "$SCRATCH/out")
        for branch in gone renamed made; do
            [ -n "$(kept "$branch")" ]
            output_has "$(kept "$branch")"
        done
    done
}

@test "an index that changed outside is not overwritten" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'await_file go; echo c >c; git add c; git commit -q -m theirs; echo d >d; git add d'
        as "$OWNER" sh -ec 'echo mine >staged; git add staged'
        mine=$(out rev-parse main)
        finish
        [ "$(out rev-parse main)" = "$mine" ]
        [ "$(out diff --cached --name-only)" = staged ]
        output_has "git merge $(kept theirs)"
        [ -n "$(kept theirs)" ]
        # The twin: `git status` rewrites the index, but not its entries.
        project "${pair%:*}"
        start "$pair" 'await_file go; echo c >c; git add c; git commit -q -m theirs; state'
        as "$OWNER" sh -ec 'touch a b; git status >/dev/null; git update-index --refresh'
        finish
        arrived
    done
}

@test "a switch outside meanwhile stays, and other branches arrive" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'await_file go; git switch -q -c feature; echo c >c; git add c; git commit -q -m theirs; echo d >d; git add d'
        out switch -q -c mine
        finish
        [ "$(out symbolic-ref HEAD)" = refs/heads/mine ]
        [ "$(out log -1 --format=%s feature)" = theirs ]
        [ "$(out ls-files)" = $'a\nb' ]
    done
}

@test "a branch that is checked out in another worktree is not moved" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out worktree add -q -b side ../side
        side=$(out rev-parse side)
        must inside "$pair" 'git update-ref refs/heads/side $(git commit-tree -m theirs -p side main^{tree})'
        output_has "git merge $(kept theirs)"
        [ "$(out rev-parse side)" = "$side" ]
        [ -n "$(kept theirs)" ]
        [ -z "$(out -C ../side status --porcelain)" ]
        # Nor deleted.
        must inside "$pair" 'git update-ref -d refs/heads/side'
        [ "$(out rev-parse side)" = "$side" ]
    done
}

@test "while a merge or a rebase goes on outside nothing is moved" {
    for pair in $(pairs); do
        for work in merge rebase; do
            project "${pair%:*}"
            as "$OWNER" sh -ec 'git switch -q -c side; echo side >a; git commit -q -am side; git switch -q main; echo main >a; git commit -q -am main'
            start "$pair" 'await_file go; git switch -q -c feature; echo c >c; git add c; git commit -q -m theirs'
            must_fail out $work side
            before="$(out ls-files -s; out rev-parse HEAD; ls .git)"
            finish
            run diff <(echo "$before") <(out ls-files -s; out rev-parse HEAD; ls .git)
            [ "$status" -eq 0 ] || { echo "$output"; false; }
            output=$(cat "$SCRATCH/out")
            output_has "refs/brig/$JAIL"
            [ -n "$(kept theirs)" ]
            out $work --abort
        done
    done
}

@test "tags that exist are not changed" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out tag t
        tag=$(out rev-parse t)
        must inside "$pair" 'echo c >c; git add c; git commit -q -m c; git tag -f t >/dev/null; git tag new'
        [ "$(out rev-parse t)" = "$tag" ]
        [ -n "$(kept c)" ]
        output_has "$(kept c)"
        [ "$(out rev-parse new)" = "$(out rev-parse main)" ]
    done
}

@test "what could not be moved is never overwritten by a later run" {
    for pair in $(pairs); do
        project "${pair%:*}"
        for i in 1 2; do
            start "$pair" "await_file go; echo $i >c; git add c; git commit -q -m theirs-$i"
            out commit -q --allow-empty -m "mine-$i"
            finish
            output_has "main was not moved"
            rm -f c
        done
        [ -n "$(kept theirs-1)" ]
        [ -n "$(kept theirs-2)" ]
        # A branch that is deleted, made and deleted again: both are kept.
        out branch work
        must inside "$pair" 'git branch -D work'
        output_has "deleted: work"
        must inside "$pair" 'git branch work $(git commit-tree -m other HEAD^{tree})'
        must inside "$pair" 'git branch -D work'
        [ -n "$(kept mine-2)" ]
        [ -n "$(kept other)" ]
    done
}

@test "HEAD does not move to a branch of another worktree, nor to one that was not moved" {
    for pair in $(pairs); do
        project "${pair%:*}"
        out branch side
        out worktree add -q ../side side
        must inside "$pair" 'git symbolic-ref HEAD refs/heads/side'
        output_has "another worktree"
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
        # In both worktrees on the same branch, as with git checkout --ignore-other-worktrees: it is not moved.
        out checkout -q --ignore-other-worktrees side
        side=$(out rev-parse side)
        must inside "$pair" 'echo c >c; git add c; git commit -q -m c'
        output_has "checked out in another worktree"
        [ "$(out rev-parse side)" = "$side" ]
        # A branch that was deleted outside meanwhile.
        project "${pair%:*}"
        out branch f
        start "$pair" 'await_file go; git switch -q f; echo c >c; git add c; git commit -q -m theirs'
        out branch -q -D f
        finish
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
        [ "$(out ls-files)" = $'a\nb' ]
        # The twin.
        must inside "$pair" 'git switch -q -c g; state'
        arrived
    done
}

@test "commits of a detached HEAD that does not arrive are kept" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'await_file go; git checkout -q --detach; git commit -q --allow-empty -m lonely'
        out switch -q -c mine
        finish
        [ "$(out symbolic-ref HEAD)" = refs/heads/mine ]
        [ -n "$(kept lonely)" ]
        output_has "detached HEAD is kept as $(kept lonely)"
        # The twin.
        must inside "$pair" 'git checkout -q --detach; git commit -q --allow-empty -m moved'
        [ "$(out log -1 --format=%s HEAD)" = moved ]
        [ -n "$(kept lonely)" ]
        [ -z "$(kept moved)" ]
    done
}

@test "settings with commands and paths do not keep a command from running" {
    project user
    as user sh -ec 'git config core.sshCommand "ssh -i ~/.ssh/key -o X=y/z"; git config credential.helper "store --file ~/.creds"
        git config core.editor "vim -u /dev/null"; git config alias.x "!sh -c \"ls a/b\""; git config filter.x.clean "sed s/a/b/"; git config diff.external /no/such/program'
    must inside user:sealed 'git log -1 --format=%s'
    output_has first
}

@test "a branch that is being rebased in another worktree is not moved" {
    project user
    as user sh -ec 'git worktree add -q -b side ../side; cd ../side; echo side >a; git commit -q -am side; git -C "$OLDPWD" commit -q --allow-empty -m x
        echo main >"$OLDPWD/a"; git -C "$OLDPWD" commit -q -am main'
    must_fail out -C ../side rebase main
    side=$(out rev-parse side)
    must inside user:sealed 'git update-ref refs/heads/side main'
    output_has "another worktree"
    [ "$(out rev-parse side)" = "$side" ]
}

@test "notes and a renamed branch arrive" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'git notes add -m text; git branch -m main renamed; state'
        arrived
        [ "$(out notes show)" = text ]
        [ "$(out for-each-ref --format='%(refname)' refs/heads)" = refs/heads/renamed ]
    done
}

@test "a tag or branch does not hide another ref of the same name" {
    project user
    as user sh -ec 'git update-ref refs/remotes/origin/main HEAD; git branch other'
    must inside user:sealed 'echo c >c; git add c; git commit -q -m c; git tag origin/main; git branch origin/main; git tag other; git tag fine'
    [ "$(out tag)" = fine ]
    [ "$(out rev-parse origin/main)" = "$(out rev-parse main^)" ]
    output_has "another ref has this name"
}

# ---- Interrupted work ----------------------------------------------------------------------------

@test "a rebase that stopped is continued by the next run" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'git switch -q -c side; echo side >a; git commit -q -am side; git switch -q main; echo main >a; git commit -q -am main'
        main=$(out rev-parse main)
        must inside "$pair" 'git switch -q side; ! git rebase main >/dev/null 2>&1; [ -d .git/rebase-merge ]'
        [ "$(out rev-parse main)" = "$main" ]
        must inside "$pair" '[ -d .git/rebase-merge ]; git status | grep -q "rebase in progress"; true' # one that only looks
        must inside "$pair" 'echo both >a; git add a; GIT_EDITOR=true git rebase --continue >/dev/null; state'
        arrived
        [ "$(out log --format=%s side)" = $'side\nmain\nfirst' ]
        [ "$(out symbolic-ref HEAD)" = refs/heads/side ]
        [ "$(cat a)" = both ]
        # It is over.
        must inside "$pair" '[ ! -d .git/rebase-merge ]; git status'
        output_lacks rebase
    done
}

@test "a merge with conflicts is continued by the next run" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec 'git switch -q -c side; echo side >a; git commit -q -am side; git switch -q main; echo main >a; git commit -q -am main'
        main=$(out rev-parse main)
        must inside "$pair" '! git merge side >/dev/null 2>&1; git branch also; [ -e .git/MERGE_HEAD ]'
        [ "$(out rev-parse main)" = "$main" ]
        [ ! -e .git/MERGE_HEAD ]
        out rev-parse -q --verify also
        must inside "$pair" '[ -e .git/MERGE_HEAD ]; echo both >a; git add a; git commit -q -m merged; state'
        arrived
        [ "$(out rev-list --count --merges main)" = 1 ]
    done
}

@test "work that goes on in the jail is announced, and the index outside stays right" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" '
            git switch -q -c side; echo side >a; git commit -q -am side
            git switch -q main; echo main >a; git commit -q -am main; git switch -q side
            ! git rebase main >/dev/null 2>&1'
        output_has "a rebase goes on in the jail"
        output_has "brig git rebase --continue"
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
        [ "$(out log -1 --format=%s)" = main ]
        [ -z "$(out diff --cached --name-only)" ]
        # What the user has staged stays, or keeps the branch from moving.
        project "${pair%:*}"
        as "$OWNER" sh -ec 'echo mine >b; git add b'
        must inside "$pair" '
            git reset -q --hard; git switch -q -c side; echo side >a; git commit -q -am side
            git switch -q main; echo main >a; echo other >b; git commit -q -am main; ! git merge side >/dev/null 2>&1'
        output_has "main was not moved: files are staged that it changes"
        [ "$(out log -1 --format=%s)" = first ]
        [ "$(out show :b)" = mine ]
    done
}

# kill_brig: of the run in the background.
kill_brig() {
    kill -9 "$(find_brig "$JOB")"
    wait "$JOB" || true
    JOB=
}

@test "after SIGKILL the next run completes the transfer" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'echo c >c; git add c; git commit -q -m killed; git switch -q -c later; echo d >d; git add d; state; echo >ready; await_file go' 
        await_file ready
        kill_brig
        rm -f up ready
        [ "$(out rev-parse --abbrev-ref HEAD)" = main ] # nothing has moved yet
        must inside "$pair" 'git log --format=%s; git status --porcelain -uno'
        output_has killed
        output_has "A  d"
        arrived
        nothing_left
        # The entry of the killed run says what was moved for it.
        must by "${pair%:*}" log -j "$JAIL"
        output_has '(git: made later, moved main from '
    done
}

@test "after SIGKILL a run of another jail in the directory completes the transfer and takes what was planted" {
    local other=$JAIL-b
    project user
    jail user "$other"
    start user:sealed 'mkdir sub; echo c >c; git add c; git commit -q -m killed; echo evil >.envrc; echo >ready; await_file go'
    await_file ready
    kill_brig
    first=$PROJECT
    # A run elsewhere is none of its business.
    enter_project user
    must by user -m sealed -j "$other" -- true
    [ -e "$first/.envrc" ]
    [ "$(out -C "$first" log -1 --format=%s)" = first ]
    cd "$first/sub"
    must by user -m sealed -j "$other" -- sh -c '[ ! -e ../.envrc ]'
    output_has "$JAIL: held back: "
    output_has "$JAIL: git: "
    [ ! -e "$first/.envrc" ]
    [ "$(out -C "$first" log -1 --format=%s)" = killed ]
    must by user held -j "$JAIL"
    output_has .envrc
    must by user log -j "$JAIL"
    output_has '(git: moved main from '
    # So does a verb there.
    cd "$first"
    start user:sealed 'echo evil >.mcp.json; echo >ready; await_file go'
    await_file ready
    kill_brig
    run by user undo -j "$other"
    [ ! -e .mcp.json ]
}

@test "after SIGKILL a run in another project of the same jail completes the transfer" {
    project user
    start user:sealed 'echo c >c; git add c; git commit -q -m killed; echo >ready; await_file go'
    await_file ready
    kill_brig
    first=$PROJECT
    enter_project user
    must inside user:sealed true
    [ "$(out -C "$first" log -1 --format=%s)" = killed ]
}

@test "after SIGKILL of a run that made a repository, it is there after the next" {
    for pair in user:casual user:sealed; do
        enter_project user
        start "$pair" 'git init -q -b main; echo a >a; git add a; git commit -q -m killed; echo >ready; await_file go'
        await_file ready
        kill_brig
        must inside "$pair" 'git log --format=%s'
        output_has killed
        [ "$(out log --format=%s)" = killed ]
        # One that made none leaves no .git.
        enter_project user
        start "$pair" 'await_file go'
        kill_brig
        must inside "$pair" true
        [ ! -e .git ]
    done
}

@test "killed at any point of the transfer, the next run completes it" {
    local steps=5
    [ -z "${BRIG_THOROUGH:-}" ] || steps=12
    project user
    for step in $(seq "$steps"); do
        inside user:sealed "echo $step >c; git add c; git commit -q -m 'step $step'; git switch -q -C at$step; echo $step >d; git add d; state; echo >ready" \
            >"$SCRATCH/out" 2>&1 3>&- &
        JOB=$!
        await_file ready
        # So many hundredths of a second later than that it is somewhere in the transfer, or has ended.
        timeout "0.$(printf %02d $((step * 36 / steps)))" tail -f --pid="$JOB" /dev/null || true
        brig=$(find_brig "$JOB") && kill -9 "$brig" || true
        wait "$JOB" || true
        JOB=
        rm -f ready
        mv state expected
        must inside user:sealed true
        mv expected state
        arrived
        [ "$(out log -1 --format=%s "at$step")" = "step $step" ]
    done
    nothing_left
}

@test "what cannot be stored outside is kept, and arrives with the next run" {
    project user
    chmod 0555 .git/objects .git/objects/pack
    must inside user:sealed 'echo c >c; git add c; git commit -q -m later'
    output_has "'refs/heads/main' could not be fetched"
    output_has "tried again by the next run"
    [ "$(out log -1 --format=%s)" = first ]
    chmod 0755 .git/objects .git/objects/pack
    must inside user:sealed true
    output_has "1 commit on main"
    [ "$(out log -1 --format=%s)" = later ]
    nothing_left
}

@test "two runs at once in one project: both results arrive" {
    project user
    start user:sealed 'await_file go; git switch -q -c one; echo one >one; git add one; git commit -q -m one; git switch -q main; rm -f one'
    must inside user:sealed 'git branch two; git update-ref refs/heads/two $(git commit-tree -m two -p main main^{tree})'
    output_has two
    finish
    [ "$(out log -1 --format=%s one)" = one ]
    [ "$(out log -1 --format=%s two)" = two ]
    must out fsck
}

@test "commits of a run that goes on are fetched within seconds" {
    project user
    start user:casual 'echo c >c; git add c; git commit -q -m early; await_file go'
    fetched() {
        [ -n "$(kept early)" ] ||
            [ "$(out log -1 --format=%s main)" = early ]
    }
    await fetched
    finish
    [ "$(out log -1 --format=%s main)" = early ]
    nothing_left
}

@test "while it is fetched, the index is not locked for programs in the jail, and their lock is no obstacle" {
    for pair in $(pairs); do
        project "${pair%:*}"
        start "$pair" 'echo c >c; git add c; git commit -q -m early; echo d >d; git add d; : >.git/index.lock; : >ready; await_file go
            rm .git/index.lock
            n=0; while left=$(ls .git | grep brig) && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done; echo "left: $left"'
        await_file ready
        must by "${pair%:*}" sync -j "$JAIL"
        [ "$(out log -1 --format=%s main)" = early ]
        [ "$(out diff --cached --name-only)" = d ]
        finish
        output_lacks index.brig
        nothing_left
    done
}

@test "brig sync completes the transfer of a killed run" {
    project user
    start user:casual 'echo c >c; git add c; git commit -q -m killed; echo >ready; await_file go'
    await_file ready
    kill_brig
    must by user sync
    [ "$(out log -1 --format=%s main)" = killed ]
}

@test "brig sync tries again what has failed twice" {
    project user
    as user touch .git/index.lock
    must inside user:sealed 'echo c >c; git add c; git commit -q -m later'
    output_has "index.lock"
    must by user sync
    output_has "remove the cause and use brig sync"
    [ "$(out log -1 --format=%s)" = first ]
    rm .git/index.lock
    must by user sync
    output_has "1 commit on main"
    [ "$(out log -1 --format=%s)" = later ]
    nothing_left
}

@test "brig sync transfers what a run has done so far, and the end of the run the rest" {
    project user
    start user:casual 'echo c >c; git add c; git commit -q -m early; git tag t; echo d >d; git add d; echo >ready
        await_file go; git commit -q -m late; git switch -q -c topic; echo e >e; git add e'
    await_file ready
    rm ready
    must by user sync --show
    output_has "its git directory has changes"
    [ "$(out log -1 --format=%s)" = first ]
    must by user sync
    output_has "1 commit on main"
    output_has "1 file staged"
    [ "$(out log -1 --format=%s)" = early ]
    [ "$(out tag)" = t ]
    [ "$(out diff --cached --name-only)" = d ]
    must by user sync # a second time there is nothing to do
    output_lacks commit
    finish
    [ "$(out log -1 --format=%s main)" = late ]
    [ "$(out symbolic-ref HEAD)" = refs/heads/topic ]
    [ "$(out diff --cached --name-only)" = e ]
    nothing_left
    # What was transferred during the run is an entry of its own, and each brings back its part.
    must by user undo -j "$JAIL" --git 2
    [ "$(out log -1 --format=%s main)" = early ]
    [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
    must by user undo -j "$JAIL" 1
    [ "$(out log -1 --format=%s main)" = first ]
    [ -z "$(out tag)" ]
}

# ---- Options -------------------------------------------------------------------------------------

@test "--unprotect .git and --no-protect give the real git directory" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'git config a.b c' --unprotect .git
        [ "$(out config a.b)" = c ]
        must inside "$pair" 'git config a.b d; echo c >c; git add c; git commit -q -m c' --no-protect
        [ "$(out config a.b)" = d ]
        [ "$(out log -1 --format=%s)" = c ]
        must inside "$pair" 'git config a.b e'
        [ "$(out config a.b)" = d ]
    done
}

@test "without git outside, .git is read-only inside, and that is said" {
    project user
    as user mkdir "$SCRATCH/bin"
    must_fail run_as_user env PATH="$SCRATCH/bin" "$BRIG" -m sealed -d . --setenv PATH=/usr/bin:/bin -- \
        /bin/sh -c 'test -e .git/HEAD && echo x >>.git/config'
    output_has "git is not installed"
    must_fail out config x.y
    must run_as_user env "$BRIG" -m sealed -d . --setenv PATH=/usr/bin:/bin -- /bin/sh -c 'echo "[x]" >>.git/config' # the twin
}

@test "a file that was changed in the second of the last commit is shown as changed after a run" {
    project user
    # The index is as old as the file, and another version has the same size and second.
    as user sh -ec 'touch -d "2020-01-01 00:00:00.2" a; git update-index --refresh -q; touch -d "2020-01-01 00:00:00.2" .git/index'
    must inside user:casual 'echo Z >a; touch -d "2020-01-01 00:00:00.8" a; echo c >c; git add c; git commit -q -m second'
    [ "$(out log -1 --format=%s)" = second ]
    [ "$(stat -c %Y .git/index)" = "$(date -d '2020-01-01 00:00:00' +%s)" ]
    [ "$(out status --porcelain)" = ' M a' ]
    by user rm -f "$JAIL"
}
