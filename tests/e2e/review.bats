#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --review: the command works on a copy of the directory, in every mode, and nothing in the real one changes: not a
# file, not a time, not a ref outside refs/brig. Each test that something does not arrive has a twin without --review
# where it does.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

setup() {
    repos_setup
}

teardown() {
    [ -z "${MOUNTED:-}" ] || umount "$MOUNTED" || true
    repos_teardown
}

# whole: everything about the project that a program could notice, the directory itself included.
whole() {
    find "$PROJECT" -path "$PROJECT/.git" -prune -o -printf '%p %y %i %s %m %U %l %T@ %C@\n' | sort
}

# refs: what git says outside, but for refs/brig.
refs() {
    [ ! -e .git ] || as "$OWNER" sh -c 'git symbolic-ref HEAD
        git for-each-ref --format="%(objectname) %(refname)" refs/heads refs/tags refs/stash; git ls-files -s'
}

# pairs_all: who runs brig, and in which mode: each who and each mode, by turns from test to test; with BRIG_THOROUGH=1 all.
pairs_all() {
    if ! lib_is_root; then
        echo user:casual user:bare user:strict user:sealed
    elif [ -n "${BRIG_THOROUGH:-}" ]; then
        echo user:casual user:bare user:strict user:sealed sudo:casual sudo:sealed root:bare root:sealed
    elif [ $((BATS_TEST_NUMBER % 2)) -eq 1 ]; then
        echo user:casual user:strict sudo:sealed root:bare
    else
        echo sudo:casual user:bare user:strict root:sealed
    fi
}

# store WHO: where the jail's files are.
store() {
    [ "$1" = root ] && echo "$ROOT_STORE" || echo "$HOME_OF_USER/.local/share/brig"
}

WORK='echo changed >a; rm b; mkdir -p node_modules/x/y/z; for i in 1 2 3 4 5 6 7 8; do echo $i >node_modules/x/y/z/$i; done
    ln -s a link; chmod 700 node_modules/x/y/z/1; mv node_modules/x/y/z/2 moved; mkfifo pipe'

@test "nothing in the project changes, in every mode; the next run continues" {
    for pair in $(pairs_all); do
        project "${pair%:*}"
        before=$(whole) refs=$(refs)
        must inside "$pair" "$WORK"'; cat a moved; test ! -e b' -R
        output_has $'changed\n2'
        [ "$(whole)" = "$before" ]
        [ "$(refs)" = "$refs" ]
        must inside "$pair" 'cat a moved node_modules/x/y/z/8; test ! -e b; test -L link; test -p pipe; echo more >>a' -R
        output_has $'changed\n2\n8'
        must inside "$pair" 'cat a' -R
        output_has $'changed\nmore'
        [ "$(whole)" = "$before" ]
        [ "$(refs)" = "$refs" ]
        # The twin: without --review it is the directory itself,
        must inside "$pair" 'cat a; echo direct >a; test -e b'
        output_has a
        output_lacks changed
        [ "$(cat a)" = direct ]
    done
}

@test "commits, branches and the index stay in the jail and below refs/brig; the next run has them" {
    for pair in $(pairs_all); do
        project "${pair%:*}"
        before=$(whole) refs=$(refs)
        must inside "$pair" 'git checkout -q -b feature; echo x >a; git commit -q -a -m second; echo c >c; git add c; git tag t' -R
        output_has 'brig: git: 1 commit on feature'
        output_has 'brig apply'
        [ "$(whole)" = "$before" ]
        [ "$(refs)" = "$refs" ]
        [ -n "$(kept second)" ]
        must inside "$pair" 'git log --format=%s; git status --short; git symbolic-ref HEAD; git commit -q -m third' -R
        output_has $'second\nfirst\nA  c\nrefs/heads/feature'
        [ -n "$(kept third)" ]
        # A run that changes nothing in git says nothing about it.
        must inside "$pair" 'git status' -R
        output_lacks 'brig: git'
        [ "$(whole)" = "$before" ]
        [ "$(refs)" = "$refs" ]
        must out fsck --no-dangling
        must by "${pair%:*}" sync --show -j "$JAIL"
        output_has "$PROJECT: what was done in git waits for brig apply"
        must by "${pair%:*}" rm -f "$JAIL"
        # The twin: without --review the branch arrives.
        must inside "$pair" 'git checkout -q -b direct; git commit -q --allow-empty -m direct'
        [ "$(out symbolic-ref HEAD)" = refs/heads/direct ]
    done
}

@test "a directory without a repository: no .git appears, and a new one stays in the jail" {
    for pair in $(pairs_all); do
        enter_project "${pair%:*}"
        as "$OWNER" sh -c 'echo a >a'
        before=$(whole)
        must inside "$pair" 'git init -q; git add a; git commit -q -m made; echo b >b' -R
        output_has 'git: the new repository is kept in the jail'
        [ "$(whole)" = "$before" ]
        [ ! -e .git ]
        must inside "$pair" 'git log --format=%s; git status --short' -R
        output_has $'made\n?? b'
        [ "$(whole)" = "$before" ]
        [ ! -e .git ]
    done
}

@test "in a subdirectory of a repository, and with a submodule" {
    pair=user:casual
    project user
    as user sh -ec 'git init -q -b main ../s; cd ../s; echo s >s; git add s; git commit -q -m sub'
    as user sh -ec 'mkdir sub; echo in >sub/in; git add sub; git -c protocol.file.allow=always submodule --quiet add ../s mod; git commit -q -m both'
    before=$(whole) refs=$(refs)
    must inside "$pair" 'cd mod; echo t >s; git commit -q -a -m inner; cd ..; git add mod; git commit -q -m outer' -R
    [ "$(whole)" = "$before" ]
    [ "$(refs)" = "$refs" ]
    [ "$(out -C mod log -1 --format=%s)" = sub ]
    must inside "$pair" 'git -C mod log -1 --format=%s; git log -1 --format=%s' -R
    output_has $'inner\nouter'
    cd sub
    must inside "$pair" 'echo out >in; git commit -q -a -m below; git log -1 --format=%s; ! echo x >../a' -R
    output_has below
    cd "$PROJECT"
    [ "$(whole)" = "$before" ] && [ "$(refs)" = "$refs" ]
}

@test "runs at the same time share the copy and its git directory" {
    for pair in user:casual user:sealed; do
        project user
        before=$(whole)
        inside "$pair" 'echo one >one; git checkout -q -b shared; await_file two; cat two' -R >"$SCRATCH/out" 2>&1 3>&- &
        JOB=$!
        must inside "$pair" 'on() { [ "$(git symbolic-ref HEAD)" = refs/heads/shared ]; }; await_file one; await on; echo two >two' -R
        wait "$JOB"
        JOB=
        [ "$(head -n1 "$SCRATCH/out")" = two ]
        [ "$(whole)" = "$before" ]
        by user rm -f "$JAIL"
    done
}

@test "a directory that was replaced at its path: the run sees the new one, and no change of the old one is applied" {
    for pair in $(pairs); do
        enter_project "${pair%:*}" 'echo old >a'
        must inside "$pair" 'cat a' -R
        must as "$OWNER" sh -c 'cd ..; mv p before; cp -a before p; echo newer >p/a'
        cd "$PROJECT"
        must inside "$pair" 'cat a; echo jail >>a' --review=auto
        output_has newer
        [ "$(cat a)" = $'newer\njail' ]

        # With changes to the old one.
        must inside "$pair" 'echo old >b; echo old >>a' -R
        must as "$OWNER" sh -c 'cd ..; rm -rf p; mkdir p; echo newest >p/a'
        cd "$PROJECT"
        must inside "$pair" 'cat b; echo c >c' --review=auto
        output_has 'another directory than the jail'
        output_has '3 changes were not applied'
        [ "$(ls)" = a ]
        must verb "${pair%:*}" status
        output_has 'not the directory that these changes were made for'
        output_has '  A  c  file, 2 bytes  conflict: it was made for another directory at this path'
        must_fail verb "${pair%:*}" apply --all
        [ "$(cat a)" = newest ]
        must verb "${pair%:*}" discard --all
        must inside "$pair" 'cat a; echo d >d' -R
        output_has newest
        output_lacks conflict
        must verb "${pair%:*}" apply --all
        [ "$(cat d)" = d ]

        # While a run has the old one.
        as "$OWNER" mkdir ../signal
        inside "$pair" ': >../signal/up; await_file ../signal/go' -R -d ../signal >"$SCRATCH/out" 2>&1 3>&- &
        JOB=$!
        await_file ../signal/up
        must as "$OWNER" sh -c 'cd ..; mv p before-2; mkdir p'
        cd "$PROJECT"
        must_exit 125 inside "$pair" true -R
        output_has 'was replaced by another directory, and a run of the jail'
        as "$OWNER" touch ../signal/go
        wait "$JOB"
        JOB=
    done
}

@test "a copy that changes nothing hides no later change; sockets are listed; closed directories are applied and undone" {
    for pair in $(pairs); do
        enter_project "${pair%:*}" 'echo one >a; echo one >b; mkdir d; echo old >d/f'
        must inside "$pair" 'touch a; cp b c; mv c b; echo new >d/f; chmod 0 d
            python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"s\")"' -R
        must as "$OWNER" sh -c 'echo mine >a; echo mine >b'
        must verb "${pair%:*}" status
        output_has '  A  s  socket  ! a socket'
        output_lacks conflict
        must inside "$pair" 'cat a b' -R
        output_has $'mine\nmine'
        must_exit 1 verb "${pair%:*}" apply --all --risky
        output_has 'p/s: a socket is not applied'
        [ "$(stat -c %a d)" = 0 ]
        must verb "${pair%:*}" discard --all
        must inside "$pair" 'ls' -R
        output_lacks s$'\n'
        must verb "${pair%:*}" undo 2
        [ "$(cat d/f)" = old ]
        [ "$(cat a)" = mine ]
    done
}

@test "masks hold in the copy, also for files that do not exist yet" {
    for pair in user:casual user:sealed; do
        project user
        run_as_user sh -c 'mkdir -p keys; echo secret >keys/id; echo secret >.env'
        below=${PROJECT#"$HOME_OF_USER"/}
        masks=(--mask "$below/keys" --mask "$below/.env" --mask? "$below/later" --mask ./b)
        must inside "$pair" 'ls keys 2>/dev/null || true; cat .env b 2>/dev/null || true; echo own >.env; echo done' -R "${masks[@]}"
        output_has done
        output_lacks secret
        [ "${lines[0]}" != b ]
        # What the host creates during the run is not visible in the copy: the signal is in a directory beside it.
        run_as_user mkdir -p ../signal
        inside "$pair" ': >../signal/up; await_file ../signal/go; cat later && echo seen; true' -R "${masks[@]}" -d ../signal \
            >"$SCRATCH/out" 2>&1 3>&- &
        JOB=$!
        await_file ../signal/up
        run_as_user sh -c 'echo secret >later; : >../signal/go'
        wait "$JOB"
        JOB=
        run cat "$SCRATCH/out"
        output_lacks secret
        output_lacks seen
        must inside "$pair" 'cat later && echo seen; true' -R "${masks[@]}"
        output_lacks secret
        run_as_user rm -r ../signal
        [ "$(cat .env keys/id)" = $'secret\nsecret' ]
        # The twin: without masks the files are in the copy.
        by user rm -f "$JAIL"
        must inside "$pair" 'cat keys/id' -R
        output_has secret
    done
}

@test "brig's own directories are hidden in a reviewed directory that contains them" {
    enter_project user
    run_as_user mkdir -p "$PROJECT/conf" "$PROJECT/store"
    for pair in user:casual user:sealed; do
        must inside "$pair" 'ls -A store conf 2>&1 || true; echo x >store/y || true; echo z >z; cat z' -R --storage "$PROJECT/store"
        output_has z
        [[ ${output%%brig: *} != *"$JAIL"* ]] # the line after the run names it
    done
    run_as_user "$BRIG" stop "$JAIL" || true
    for name in "$PROJECT"/store/*.lock; do [ -e "$name" ]; done
    must inside user:casual 'true' -R --storage "$PROJECT/store"
    run_as_user "$BRIG" --storage "$PROJECT/store" -u
}

@test "a project outside the home, with odd characters in its path" {
    lib_is_root || skip "needs a directory outside the home"
    scratch_make root
    chown "$LIB_USER" "$SCRATCH"
    OWNER=user PROJECT="$SCRATCH/a b:c,d\\e*[x]'\"ä"$'\t'"%s"
    run_as_user mkdir "$PROJECT"
    cd "$PROJECT"
    run_as_user sh -c 'echo a >a'
    for pair in user:casual user:sealed user:strict; do
        before=$(whole)
        must inside "$pair" 'cat a; echo b >>a; echo n >new; git init -q' -R
        must inside "$pair" 'cat a new' -R
        output_has $'a\nb\nn'
        [ "$(whole)" = "$before" ]
        must by user rm -f "$JAIL"
    done
}

@test "a project with a mount below it is copied by fuse-overlayfs" {
    lib_is_root || skip "needs root to mount"
    [ -e /usr/bin/fuse-overlayfs ] || cannot "fuse-overlayfs is not installed"
    run_as_user test -w /dev/fuse || cannot "the user may not open /dev/fuse"
    project user
    run_as_user mkdir below
    MOUNTED=$PROJECT/below
    mount -t tmpfs -o "uid=$(id -u "$LIB_USER"),gid=$(id -g "$LIB_USER")" none "$MOUNTED"
    run_as_user sh -c 'echo m >below/m'
    before=$(whole)
    must inside user:casual 'cat below/m; echo x >>below/m; echo y >a; git commit -q -a -m fuse' -R
    must inside user:casual 'cat below/m a; git log -1 --format=%s' -R
    output_has $'m\nx\ny\nfuse'
    [ "$(whole)" = "$before" ]
    by user stop "$JAIL"
}

@test "a directory named with --review-dir, beside a working directory that is granted directly" {
    for pair in user:casual user:sealed; do
        project user
        run_as_user sh -c 'mkdir ../other; echo o >../other/o'
        must inside "$pair" 'echo direct >a; echo aside >../other/o; cat ../other/o' --review-dir ../other
        output_has aside
        [ "$(cat a ../other/o)" = $'direct\no' ]
        must inside "$pair" 'cat /var/tmp/o; echo two >>/var/tmp/o; cat /var/tmp/o' --review-dir ../other:/var/tmp
        output_has $'aside\naside\ntwo'
        [ "$(cat ../other/o)" = o ]
        by user rm -f "$JAIL"
    done
}

@test "the project cannot be reached by another grant of the same directory" {
    project user
    for pair in user:casual user:sealed; do
        # A second rule for the working directory shows the same copy,
        must inside "$pair" 'echo x >/var/tmp/a; cat a' -R -d "$PROJECT:/var/tmp"
        output_has x
        must inside "$pair" 'cat a' -R -d .
        output_has x
        [ "$(cat a)" = a ]
        # but a directory above it would show the real one.
        run inside "$pair" 'echo x >/var/tmp/p/a' -R -d "$SCRATCH:/var/tmp"
        [ "$status" -eq 125 ]
        output_has "is reviewed, but the command could write to it as '/var/tmp/p'"
        # A parent that is granted at its own path is covered by the copy.
        must inside "$pair" 'echo x >a; echo y >../beside; cat a' -R -d "$SCRATCH"
        [ "$(cat a ../beside)" = $'a\ny' ]
        rm -f ../beside
        # A directory in it that is granted by itself is the real one: that was asked for.
        run_as_user mkdir -p direct
        must inside "$pair" 'echo x >direct/x; echo z >a' -R -d direct
        output_has "is granted by itself"
        [ "$(cat a direct/x)" = $'a\nx' ]
        run_as_user rm -r direct
    done
    if lib_is_root; then
        run_as_user mkdir "$SCRATCH/mnt" "$SCRATCH/mnt/m"
        MOUNTED=$SCRATCH/mnt/m
        mount --bind "$PROJECT" "$MOUNTED"
        run inside user:sealed 'echo x >m/a' -R -d "$SCRATCH/mnt"
        [ "$status" -eq 125 ]
        output_has "is reviewed, but the command could write to it as '$SCRATCH/mnt/m'"
    fi
}

@test "hostile: /proc, hard links, renames and the private directory lead nowhere" {
    for pair in $(pairs_all); do
        project "${pair%:*}"
        before=$(whole) refs=$(refs)
        must inside "$pair" '
            for p in /proc/1/root /proc/self/root /proc/1/cwd /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd/*; do
                echo evil 2>/dev/null >"$p/'"$PROJECT"'/a" || true
                echo evil 2>/dev/null >"$p/a" || true
            done
            ln a hard && echo evil >hard || true
            ln a /tmp/hard 2>/dev/null && echo evil >/tmp/hard || true
            git config core.fsmonitor evil; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit
            if mv .git gone || rmdir .git || rm -rf .git; then exit 9; fi
            cd ..; ! mv p q; cd p; rm -rf ./* 2>/dev/null; echo evil >a' -R
        [ "$(whole)" = "$before" ]
        [ "$(refs)" = "$refs" ]
        [ ! -e .git/hooks/pre-commit ]
        run out config core.fsmonitor
        [ "$status" -ne 0 ]
    done
}

@test "nothing is protected or held back in a reviewed directory" {
    for pair in user:casual user:sealed; do
        project user
        run_as_user sh -c 'mkdir .vscode; echo old >.vscode/tasks.json; git init -q nested'
        before=$(whole)
        must inside "$pair" 'echo new >.vscode/tasks.json; echo x >.envrc; git -C nested config core.fsmonitor x; git init -q fresh' -R
        output_lacks 'held back'
        [ "$(whole)" = "$before" ]
        must inside "$pair" 'cat .vscode/tasks.json .envrc; git -C nested config core.fsmonitor' -R
        output_has $'new\nx\nx'
        by user rm -f "$JAIL"
        # The twin: without --review they are read-only and held back.
        must inside "$pair" '! echo new >.vscode/tasks.json; echo x >.envrc'
        output_has 'held back: .envrc'
        by user discard .envrc
    done
}

@test "a line at the end says what was written aside, also in a home, and nothing if there is nothing" {
    project user
    must inside user:casual 'echo x >a; echo n >new' -R
    output_has 'see brig status'
    must inside user:casual 'cat a' -R
    output_lacks 'see brig status'
    must inside user:casual 'echo x >~/.brigtest-line'
    output_has 'see brig status'
    must inside user:casual 'cat ~/.brigtest-line'
    output_lacks 'see brig status'
    must inside user:sealed 'echo x >~/.brigtest-line'
    output_lacks 'see brig status'
}

@test "list, stop, -u and rm know reviewed directories" {
    project user
    inside user:sealed ': >started; await_file never' -R >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await test -e "$(store user)/$JAIL.review/1.changes/started"
    must by user list
    output_has "$JAIL"
    run by user rm "$JAIL"
    [ "$status" -ne 0 ]
    output_has "the jail '$JAIL' is in use by process"
    run by user -u -j "$JAIL"
    [ "$status" -ne 0 ]
    must by user stop "$JAIL"
    wait "$JOB" || true
    JOB=
    run by user rm "$JAIL"
    [ "$status" -ne 0 ]
    output_has 'changes that were not applied (1 directory'
    must by user rm -f "$JAIL"
    run ls "$(store user)"
    output_lacks "$JAIL."
}

@test "what makes no sense is refused, and files can ask for a review" {
    project user
    run by user -R -D -m sealed true
    [ "$status" -eq 125 ]
    output_has 'not granted for writing'
    run by user --review=maybe -m sealed true
    [ "$status" -eq 125 ]
    output_has "is not one of on, auto and off"
    run by user --review-dir a -m sealed true
    [ "$status" -eq 125 ]
    output_has 'not a directory'
    before=$(whole)
    run_as_user sh -c 'echo review >.brig.conf; git add .brig.conf'
    before=$(whole)
    must inside user:sealed 'echo x >a'
    [ "$(whole)" = "$before" ]
    must by user explain -m sealed --json
    output_has '"review":true'
    must inside user:sealed 'echo x >a' --review=off
    [ "$(cat a)" = x ]
}

# verb WHO VERB ARGS…: a verb for the jail of this test.
verb() {
    local who=$1 name=$2
    shift 2
    by "$who" "$name" -j "$JAIL" "$@"
}

@test "brig apply --all writes the files, then moves branches, HEAD and index" {
    for pair in $(pairs_all); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'git checkout -q -b feature; echo x >a; rm b; git commit -q -a -m second; echo c >c; git add c; state' -R
        must verb "$who" apply --all
        output_has 'git: 1 commit on feature, HEAD is now feature, 1 file staged'
        [ "$(cat a c)" = $'x\nc' ]
        [ ! -e b ]
        arrived
        nothing_left
        # An undo restores the files, branches, HEAD and the index; and the jail has the changes again.
        must verb "$who" undo --force # the file `state` is gone
        output_has 'git: deleted feature, switched to main, changed the index'
        [ "$(cat a b)" = $'a\nb' ]
        [ "$(out symbolic-ref HEAD; out for-each-ref --format='%(refname)' refs/heads; out status --porcelain -uno)" = \
            $'refs/heads/main\nrefs/heads/main' ]
        must verb "$who" apply --all
        output_has 'git: 1 commit on feature, HEAD is now feature, 1 file staged'
        [ "$(out log -1 --format=%s)" = second ]
        # The next run begins with what is outside now.
        must inside "$pair" 'git status --short; git log -1 --format=%s; cat a' -R
        output_has $'A  c\nsecond\nx'
        output_lacks 'brig: git'
        must by "$who" rm -f "$JAIL"
    done
}

@test "a branch that moved outside meanwhile is not moved by apply, and nothing is lost" {
    project user
    must inside user:sealed 'echo x >c; git add c; git commit -q -m inside' -R
    out commit -q --allow-empty -m outside
    must verb user apply --all
    output_has 'main was not moved: it changed outside meanwhile'
    [ "$(out log -1 --format=%s)" = outside ]
    [ -n "$(kept inside)" ]
    [ "$(cat c)" = x ]
    # The next run says so, and what it says works.
    must inside user:sealed 'git log -1 --format=%s' -R
    output_has "git: main has other commits outside than in the jail"
    output_has $'\ninside'
    as user rm c
    must as user sh -ec "$(sed -n 's/.*To merge them outside: \([^;]*\);.*/\1/p' <<<"$output") -q -m merged"
    must inside user:sealed 'git log -1 --format=%s' -R
    output_has merged
    output_lacks "brig: git"
    must verb user status
    output_has "no changes"
}

@test "HEAD and its branch wait for the files that they change, others do not; discard --all drops them" {
    project user
    # A file that no commit has is in no branch's way.
    must inside user:sealed 'echo x >a; mkdir .vscode; echo t >.vscode/tasks.json; git commit -q -a -m second' -R
    must_exit 1 verb user apply --all
    output_has 'git: 1 commit on main'
    [ "$(cat a)" = x ]
    [ ! -e .vscode/tasks.json ]
    [ "$(out log -1 --format=%s)" = second ]
    [ -z "$(out status --porcelain)" ]
    # One that is committed is.
    must inside user:sealed 'git switch -q -c other; git commit -q --allow-empty -m plain; git switch -q main; echo y >a; git branch topic
        printf "#!/bin/sh\n" >run; chmod +x run; git add run; git commit -q -a -m third' -R
    must_exit 1 verb user apply "$PROJECT"
    output_has "git: main was not moved: $PROJECT/run is left in the jail: apply or discard it"
    [ "$(out log -1 --format=%s)" = second ]
    [ "$(out log -1 --format=%s other)" = plain ]
    [ "$(out status --porcelain -uno)" = ' M a' ]
    must verb user apply --all --risky
    output_has 'git: 1 commit on main'
    [ "$(out log -1 --format=%s)" = third ]
    [ -z "$(out status --porcelain -uno)" ]
    must inside user:sealed 'echo z >a; git commit -q -a -m fourth' -R
    must verb user discard --all
    output_has "git: the jail's branches are dropped"
    must verb user undo
    output_has "git: the jail's branches are back"
    must verb user status
    output_has "fourth"
    must inside user:sealed 'git log -1 --format=%s; [ -z "$(git status --porcelain -uno)" ]' -R
    output_has fourth
    must verb user discard --all
    # What the jail has done since is not replaced.
    must inside user:sealed 'echo z >c; git add c; git commit -q -m fifth' -R
    must verb user undo
    output_has "because the jail has new work"
    must verb user discard --all
    must inside user:sealed 'cat a; git log -1 --format=%s' -R
    output_has $'y\nthird'
    [ "$(out log -1 --format=%s)" = third ]
}

@test "where a file cannot be written, nothing of git moves, and it is not lost" {
    lib_is_root || cannot "only root can give a directory away"
    project user
    must inside user:sealed 'mkdir d; echo x >d/f; git add d; git commit -q -m second' -R
    must verb user apply --all
    must inside user:sealed 'echo y >d/f; git commit -q -a -m third; git branch topic' -R
    chown 0:0 d
    run verb user apply --all
    chown "$LIB_USER:" d
    [ "$status" -eq 1 ]
    output_has 'git: nothing was moved, because not all files could be written'
    [ "$(cat d/f)" = x ]
    [ "$(out log -1 --format=%s)" = second ]
    [ -z "$(out branch --list topic)" ]
    # A run in between keeps it.
    must inside user:sealed 'git log -1 --format=%s' -R
    output_has third
    must verb user apply --all --conflict theirs
    [ "$(out log -1 --format=%s)" = third ]
    [ -n "$(out branch --list topic)" ]
    [ "$(cat d/f)" = y ]
    [ -z "$(out status --porcelain)" ]
}

@test "after the last change was applied by its name, the commits that wait are named" {
    project user
    must inside user:sealed 'echo x >a; echo x >b; git commit -q -a -m second' -R
    must verb user apply a
    output_lacks 'commits wait'
    must verb user apply b
    output_has "git: the jail's commits wait: brig apply"
    [ "$(out log -1 --format=%s)" = first ]
    must verb user apply --all
    [ "$(out log -1 --format=%s)" = second ]
}

@test "a repository that was made in the copy is created by apply, without its config and hooks" {
    enter_project user
    must inside user:sealed 'echo a >a; git init -q -b trunk; git add a; git commit -q -m made; git config core.fsmonitor evil' -R
    [ ! -e .git ]
    must verb user apply --all
    [ "$(out log --format=%s)" = made ]
    [ "$(out symbolic-ref HEAD)" = refs/heads/trunk ]
    [ "$(cat a)" = a ]
    run out config core.fsmonitor
    [ "$status" -ne 0 ]
    [ -z "$(out status --porcelain)" ]
}

@test "apply waits for no run: it refuses while one is active, and --live leaves the copy alone" {
    project user
    run_as_user mkdir ../signal
    inside user:sealed 'echo x >a; : >../signal/up; await_file ../signal/go; cat a' -R -d ../signal >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await_file ../signal/up
    run verb user apply --all
    [ "$status" -eq 125 ]
    output_has 'in use by process'
    [ "$(cat a)" = a ]
    must verb user apply --all --live
    [ "$(cat a)" = x ]
    run_as_user touch ../signal/go
    wait "$JOB"
    JOB=
    [ "$(head -n1 "$SCRATCH/out")" = x ]
    must verb user status
    output_lacks '  M  a'
}

@test "--review=auto applies what has no risk when the tree is quiet, and at the end" {
    for pair in user:casual user:sealed; do
        project user
        run_as_user mkdir ../signal
        inside "$pair" 'echo x >a; await_file ../signal/go; echo y >b; mkdir .vscode; echo t >.vscode/tasks.json' \
            --review=auto -d ../signal >"$SCRATCH/out" 2>&1 3>&- &
        JOB=$!
        await grep -q x a
        run_as_user touch ../signal/go
        wait "$JOB"
        JOB=
        [ "$(cat b)" = y ]
        [ ! -e .vscode/tasks.json ]
        run cat "$SCRATCH/out"
        output_has '1 change was not applied, because of a risk or a conflict; see brig status -j'
        must verb user discard --all
        # With nothing held back, branches move too.
        must inside "$pair" 'echo z >a; git commit -q -a -m auto' --review=auto
        output_has 'git: 1 commit on main'
        [ "$(cat a)" = z ]
        [ "$(out log -1 --format=%s)" = auto ]
        [ -z "$(out status --porcelain -uno)" ]
        by user rm -f "$JAIL"
    done
}

@test "brig review is not offered without a terminal" {
    project user
    must inside user:sealed 'echo x >a' -R </dev/null
    output_lacks 'look at the changes now'
}

@test "the changes of a directory that has become read-only can be discarded, not applied" {
    lib_is_root || cannot "only root can mount"
    project user
    MOUNTED=$SCRATCH/mnt
    mkdir "$MOUNTED"
    mount -t tmpfs -o "uid=$(id -u "$LIB_USER"),gid=$(id -g "$LIB_USER")" none "$MOUNTED"
    (cd "$MOUNTED" && by user -R -m sealed -j "$JAIL" -- sh -c 'echo new >new')
    mount -o remount,ro "$MOUNTED"
    must_exit 125 by user apply -j "$JAIL" --all
    output_has "Read-only file system"
    must by user discard -j "$JAIL" --all
    must by user status -j "$JAIL"
    output_has "no changes"
    # The twin: writable again.
    mount -o remount,rw "$MOUNTED"
    must by user undo -j "$JAIL"
    must by user apply -j "$JAIL" --all
    [ "$(cat "$MOUNTED/new")" = new ]
}
