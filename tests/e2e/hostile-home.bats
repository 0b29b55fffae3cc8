#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a hostile program in a jail tries against the jail's home, its masks and the runs that come after
# it. Each thing that is denied has a twin in which it can be done.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
    H=$HOME_OF_USER
    MADE=
}

teardown() {
    local name
    jails_teardown
    for name in $MADE; do
        rm -rf -- "${H:?}/$name"
    done
}

# made NAME…: of the home, to be removed in the end.
made() {
    MADE="$MADE $*"
}

# attack NAME OPTIONS… -- BEFORE AFTER: a run that does BEFORE, tells so, waits for `go` and does AFTER;
# its pid is in ATTACKER. It is casual, unless MODE says otherwise.
attack() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    rm -f begun go
    jail user "$name"
    by user -m "${MODE:-casual}" -j "$name" "${options[@]}" -- sh -c "
        $AWAIT
        ($2)
        echo >begun; await_file go
        $3" 3>&- &
    ATTACKER=$!
    await_file begun
}

go() {
    run_as_user touch go
    wait "$ATTACKER"
}

@test "marks of another kind of overlay do not keep a mask from taking effect" {
    made hlive hdir
    run_as_user sh -c "echo token >$H/hlive; mkdir $H/hdir; echo token >$H/hdir/file"
    # The twin: without a mask both are there.
    attack marks -- ': >~/.wh..wh..opq; : >~/hdir/.wh..wh..opq' 'cat ~/hlive ~/hdir/file >seen 2>/dev/null; true'
    go
    [ "$(cat seen)" = "token
token" ]
    attack marks -- ': >~/.wh..wh..opq; : >~/hdir/.wh..wh..opq; setfattr -n user.overlay.opaque -v y ~/hdir 2>/dev/null; python3 -c "import os; os.setxattr(os.path.expanduser(\"~/hdir\"), \"user.overlay.opaque\", b\"y\")" 2>/dev/null' 'cat ~/hlive ~/hdir/file >seen 2>/dev/null; true'
    must by user mask -j marks hlive hdir/file
    go
    [ "$(cat seen)" = "" ]
}

@test "a run cannot have the jail's changes set aside" {
    attack aside -- 'echo kept >~/hkept; python3 -c "import os; os.setxattr(os.path.expanduser(\"~\"), \"user.brig.layers\", b\"fuse\"); os.setxattr(os.path.expanduser(\"~\"), \"user.overlay.brig\", b\"x\")"' true
    go
    must by user -u -j aside
    must by user -m casual -j aside -- cat "$H/hkept"
    output_has kept
    output_lacks "set aside"
}

@test "a home that a run has shut, or opened to all, can be used, looked at and removed" {
    local pair MODE mode
    for pair in $(pairs_of "000 777" casual bare strict); do
        mode=${pair%:*} MODE=${pair#*:}
        attack "shut-$MODE" -- "mkdir -p ~/d/e; : >~/d/e/f; echo kept >~/kept; chmod $mode ~/d/e ~/d ~" true
        go
        must by user list
        output_has "shut-$MODE"
        must by user -u -j "shut-$MODE"
        must by user -m "$MODE" -j "shut-$MODE" -- sh -c 'cat ~/kept'
        output_has kept
        must by user rm "shut-$MODE"
        must_fail test -e "$H/.local/share/brig/shut-$MODE.home" -o -e "$H/.local/share/brig/shut-$MODE.changes"
    done
}

@test "a tree deeper than any path is listed and removed" {
    local MODE depth=1000
    [ -z "${BRIG_THOROUGH:-}" ] || depth=6000
    for MODE in casual bare; do
        attack "deep-$MODE" --setenv "DEPTH=$depth" -- 'cd ~; python3 -c "
import os
for i in range(int(os.environ[\"DEPTH\"])):
    os.mkdir(\"d\" * 50); os.chdir(\"d\" * 50)
"' true
        go
        must by user list
        must by user -m "$MODE" -j "deep-$MODE" -- true
        must by user rm "deep-$MODE"
        must_fail test -e "$H/.local/share/brig/deep-$MODE.changes" -o -e "$H/.local/share/brig/deep-$MODE.home"
    done
}

@test "a masked directory that is replaced again and again does not use up watches, and is hidden" {
    needs python3
    made hdir
    run_as_user mkdir "$H/hdir"
    attack busy -d "$H/hdir" --mask hdir/a/secret -- 'cd ~/hdir; python3 -c "
import os
for i in range(3000):
    try:
        os.mkdir(\"a\"); open(\"a/secret\", \"w\").close(); os.rename(\"a\", \"b%d\" % i)
    except OSError: pass
"' 'await_seen ~/hdir/a/open; await_hidden ~/hdir/a/secret; cat ~/hdir/a/secret >seen 2>/dev/null; cat ~/hdir/a/open >open'
    local pid
    pid=$(find_brig "$ATTACKER")
    # Directories that are no more are not watched any longer.
    [ "$(cat /proc/"$pid"/fdinfo/* | grep -c '^inotify wd')" -lt 600 ]
    # It is hidden all the same.
    run_as_user sh -c "rm -rf $H/hdir/a; mkdir $H/hdir/a; echo token >$H/hdir/a/secret; echo open >$H/hdir/a/open"
    go
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
}

@test "a mask in a grant is laid again though the home has one at the same place below it" {
    made hdir
    run_as_user mkdir "$H/hdir"
    attack twice -d "$H/hdir" --mask hdir/a/secret -- true 'await_seen ~/hdir/a/open; await_hidden ~/hdir/a/secret; cat ~/hdir/a/secret >seen 2>/dev/null; cat ~/hdir/a/open >open'
    run_as_user sh -c "rm -rf $H/hdir/a; mkdir $H/hdir/a; echo token >$H/hdir/a/secret; echo open >$H/hdir/a/open"
    go
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
}

@test "who uses up what there is of inotify keeps neither masks nor other runs from working" {
    needs python3
    made hdir hlive
    run_as_user sh -c "mkdir $H/hdir; echo token >$H/hlive"
    attack watches -d "$H/hdir" --mask 'hdir/*.secret' -- 'python3 -c "
import ctypes, os, time
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0: pass
open(\"full\", \"w\").close()
time.sleep(600)
" & await_file full' 'await_hidden ~/hdir/a.secret ~/hlive; cat ~/hdir/a.secret ~/hlive >seen 2>/dev/null; kill $! 2>/dev/null; true'
    must by user mask -j watches hlive
    run_as_user sh -c "echo token >$H/hdir/a.secret"
    # Where names cannot be watched they are looked for every two seconds.
    jail user other
    if [ "$(findmnt -nT /tmp -o FSROOT)" = / ]; then
        must by user -m casual -j other -- echo works
        output_has works
    else
        # /tmp is another directory (BRIG_THOROUGH=1), and brig's own in it has a second path, which has to be watched.
        must_exit 125 by user -m casual -j other -- echo works
        output_has "Raise fs.inotify.max_user_instances"
    fi
    go
    [ "$(cat seen)" = "" ]
}

@test "a link that a run has planted has nothing granted that is masked, nor the home" {
    made .ssh hproj
    local mode
    run_as_user sh -c "mkdir -p $H/.ssh $H/hproj/sub; echo token >$H/.ssh/id; echo open >$H/hproj/file; ln -s sub $H/hproj/link; echo open >$H/hproj/sub/id"
    for mode in casual bare strict sealed; do
        jail user planted
        # The twin: a link to something else is followed, and what is masked is granted by its own name.
        must by user -m "$mode" -j planted -d "$H/hproj/link" -- cat "$H/hproj/link/id"
        output_has open
        must by user -m "$mode" -j planted -d "$H/.ssh" -- cat "$H/.ssh/id"
        output_has token
        must by user -m "$mode" -j planted -D -d "$H/hproj" -- sh -c "ln -s ~/.ssh $H/hproj/keys; ln -s ~ $H/hproj/home; ln -s ~/.ssh/id $H/hproj/id"
        [ -L "$H/hproj/keys" ]
        [ -L "$H/hproj/home" ]
        must_exit 125 by user -m "$mode" -j planted -d "$H/hproj/keys" -- cat "$H/hproj/keys/id"
        output_has "is a symbolic link to"
        must_exit 125 by user -m "$mode" -j planted -r "$H/hproj/keys/id" -- cat "$H/hproj/keys/id"
        must_exit 125 by user -m "$mode" -j planted -r "$H/hproj/id" -- cat "$H/hproj/id"
        must_exit 125 by user -m "$mode" -j planted -d "$H/hproj/home" -- cat "$H/hproj/home/.ssh/id"
        output_has "holds the home"
        # Who goes there finds out, and may insist.
        cd "$H/hproj/keys"
        must_exit 125 by user -m "$mode" -j planted -- cat id
        output_has "-d '$H/.ssh' to grant it anyway"
        must by user -m "$mode" -j planted -D -- true
        must by user -m "$mode" -j planted -d . -- cat id
        output_has token
        must by user -m "$mode" -j planted --unmask .ssh -- cat id
        cd "$SCRATCH/project"
        rm "$H/hproj/keys" "$H/hproj/home" "$H/hproj/id"
        by user rm planted >/dev/null 2>&1 || true
    done
}

@test "who swaps directories for links while other runs start leads none of them out of the project" {
    needs python3
    made hout
    local i
    run_as_user sh -c "mkdir -p $H/hout sub other; echo open >$H/hout/open; echo token >$H/hout/secret; ln -s $H/hout link; git init -q . 2>/dev/null"
    attack swap -- 'python3 -c "
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
end = time.time() + 60
while time.time() < end and not os.path.exists(\"over\"):
    libc.renameat2(-100, b\"sub\", -100, b\"link\", 2)
    for old, new in ((\".git\", \"g\"), (\".git/hooks\", \"h\"), (\".vscode\", \"v\")):
        try: os.rename(old, new)
        except OSError: pass
" & :' true
    jail user starts
    # A run that starts meanwhile may fail, but does not write there, nor lose what protects.
    for _ in $(seq "${BRIG_THOROUGH:+1}6"); do
        run by user -m casual -j starts -d sub -r "$H/hout:/srv/hout" --mask "hout/secret" -- sh -c 'echo planted >sub/planted; echo x >.git/hooks/pre-commit; mkdir -p .vscode/x; cat /srv/hout/secret; echo done'
        output_lacks token
        [ ! -e "$H/hout/planted" ]
        [ ! -e .git/hooks/pre-commit ]
        [ ! -e .vscode/x ]
    done
    run_as_user touch over
    go
    # The twin: with nobody there it starts, and writes where it may.
    [ -d .git/hooks ]
    run_as_user sh -c 'rm -rf sub link; mkdir sub'
    must by user -m casual -j starts -d sub -- sh -c 'echo planted >sub/planted; echo done'
    output_has done
    [ -e sub/planted ]
}

@test "who makes more names than can be hidden keeps the next run from starting, and it says why" {
    made hdir
    run_as_user mkdir "$H/hdir"
    jail user names
    must by user -m casual -j names -d "$H/hdir" -- sh -c 'i=0; while [ $i -lt 1100 ]; do i=$((i + 1)); : >~/hdir/$i.secret; done'
    must_exit 125 by user -m casual -j names -d "$H/hdir" --mask 'hdir/*.secret' -- true
    output_has "Mask the directory that holds"
    must by user -m casual -j names -d "$H/hdir" -- ls "$H/hdir/7.secret"
    must_fail by user -m casual -j names -d "$H/hdir" --mask hdir/7.secret -- grep -q . "$H/hdir/7.secret"
}

@test "a run that is granted /tmp cannot pose as the holder of another jail" {
    needs python3
    lib_is_root || skip "needs a /tmp of its own"
    local id place storage=$H/.local/share/brig
    id=$(id -u "$LIB_USER")
    place=/tmp/brig-$id
    run_as_user mkdir -p "$storage"
    cat >fake.py <<END
import os, socket
os.mkdir("/tmp/fake", 0o700)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("/tmp/fake/$(printf '%x-%x' "$(stat -c %d "$storage")" "$(stat -c %i "$storage")")-posed.sock")
listener.listen()
os.rename("/tmp/fake", "$place")
open("listening", "w").close()
print("asked" if listener.accept()[0].recv(1) else "not asked", file=open("asked", "w"))
END
    # The twin: what listens there outside of a jail is asked. As it does not answer, a holder is started.
    local way
    for way in outside inside; do
        run_as_user "$BRIG" -u
        rm -rf listening asked "$place"
        if [ "$way" = outside ]; then
            run_as_user python3 fake.py 3>&- &
        else
            by user -m sealed -d /tmp -d . --no-protect -- python3 fake.py 3>&- &
        fi
        local job=$!
        await_file listening
        jail user posed
        run by user -m casual -j posed -- true
        wait "$job"
        [ "$(cat asked)" = "$([ "$way" = outside ] && echo asked || echo not asked)" ]
    done
    [ "$status" = 125 ]
    output_has "is not yours"
    rm -rf "$place"
    must by user -m casual -j posed -- true
}
