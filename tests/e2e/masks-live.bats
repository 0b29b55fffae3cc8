#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is hidden of a home while a jail runs: names that come to match a mask, and masks that are added.
# Each secret is also read where nothing hides it: otherwise a test that finds nothing proves nothing.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load masks

# watcher JAIL OPTIONS… -- SCRIPT: a run in the background that tells it has begun, waits for `go` and
# runs the script; its pid is in WATCHER. It is casual, unless MODE says otherwise.
watcher() {
    local name=$1
    shift
    rm -f begun go armed on
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    run_as_user "$BRIG" -m "${MODE:-casual}" -j "$name" "${options[@]}" -- sh -c "
        $AWAIT
        armed() { await_hidden \"\$@\"; : >armed; await_file on; }
        ls -laR ~/mlive* >/dev/null 2>&1; cat ~/mlive*/* ~/mlive* >/dev/null 2>&1
        echo >begun; await_file go; $2" 3>&- &
    WATCHER=$!
    await_file begun
}

# await_armed: until the script's call of `armed FILE` has seen FILE disappear, which must match a mask:
# from then on the directories of masks are watched.
await_armed() {
    run_as_user touch go
    await_file armed
}

# watch: what the host did is done; the script of the watcher runs, to its end. The holder and the
# supervisor hear of it a moment later, so the scripts wait until it has taken effect.
watch() {
    run_as_user touch go on
    wait "$WATCHER"
}

@test "what comes to match a mask while a jail runs is hidden in it, and its own files are not" {
    made mlive-1 mlive-2 mliveopen
    jail glob
    # The twin: without the mask the jail sees what the host makes.
    watcher glob -- 'await_seen ~/mlive-1; cat ~/mlive-1 >seen 2>/dev/null; true'
    run_as_user sh -c "echo token >$H/mlive-1"
    watch
    [ "$(cat seen)" = token ]
    rm "$H/mlive-1"
    watcher glob --mask 'mlive-*' -- 'echo own >~/mlive-own; await_hidden ~/mlive-1 ~/mlive-2; await_seen ~/mliveopen; for i in 1 2; do cat ~/mlive-$i; done >seen 2>/dev/null; cat ~/mlive-own ~/mliveopen >open'
    run_as_user sh -c "echo token >$H/mlive-1; echo open >$H/mliveopen; echo token >$H/.tmp-mlive; mv $H/.tmp-mlive $H/mlive-2"
    watch
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = "own
open" ]
    # What hides it is no change of the jail's.
    [ ! -e "$H/.local/share/brig/glob.changes/mlive-1" ]
}

@test "a mask whose directory is missing holds as soon as that is made, also where it was seen before" {
    made mlive mlive2
    jail parent
    watcher parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- 'await test -d ~/mlive; : >armed; await_file on; await_seen ~/mlive/deep/open; await_hidden ~/mlive/deep/secret ~/mlive2/x/secret; cat ~/mlive/deep/secret ~/mlive2/x/secret >seen 2>/dev/null; cat ~/mlive/deep/open >open'
    run_as_user sh -c "mkdir $H/mlive"
    await_armed
    run_as_user sh -c "mkdir -p $H/mlive/deep $H/mlive2/x; echo token >$H/mlive/deep/secret; echo token >$H/mlive2/x/secret; echo open >$H/mlive/deep/open"
    watch
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
    # Replaced as a whole, it holds as well; what else is in it who runs may see late, and the next run sees.
    watcher parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- 'await_hidden ~/mlive/deep/secret ~/mlive2/x/secret; cat ~/mlive/deep/secret ~/mlive2/x/secret >seen 2>/dev/null; true'
    run_as_user sh -c "cp -a $H/mlive $H/mlive.new; mv $H/mlive $H/mlive.old; mv $H/mlive.new $H/mlive; rm -r $H/mlive.old; echo token >$H/mlive/deep/secret"
    watch
    [ "$(cat seen)" = "" ]
    # Until the holder has heard that the last run is over, another one still shares its view.
    next_run() {
        run_as_user "$BRIG" -m casual -j parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- sh -c 'cat ~/mlive/deep/open ~/mlive/deep/secret ~/mlive2/x/secret 2>/dev/null' >>next
        grep -qx open next
    }
    await next_run
    [ "$(sort -u next)" = open ]
}

@test "what comes to match a mask in a granted directory is hidden while the run goes on, in every mode" {
    made mlivedir
    local MODE
    for MODE in casual bare strict sealed; do
        run_as_user sh -c "rm -rf $H/mlivedir; mkdir -p $H/mlivedir/sub; echo open >$H/mlivedir/open"
        jail "grant-$MODE"
        # The twin: without the mask the run sees it.
        watcher "grant-$MODE" -d "$H/mlivedir" -- "await_seen $H/mlivedir/b.secret; cat $H/mlivedir/b.secret >seen 2>/dev/null; true"
        run_as_user sh -c "echo token >$H/mlivedir/b.secret"
        watch
        [ "$(cat seen)" = token ]
        rm "$H/mlivedir/b.secret"
        watcher "grant-$MODE" -d "$H/mlivedir" --mask 'mlivedir/*.secret' --mask 'mlivedir/*/key' -- "armed $H/mlivedir/a.secret; await_seen $H/mlivedir/sub/open; set -- $H/mlivedir/b.secret $H/mlivedir/c.secret $H/mlivedir/sub/key $H/mlivedir/new/key; await_hidden \"\$@\"; cat \"\$@\" >seen 2>/dev/null; cat $H/mlivedir/open $H/mlivedir/sub/open >open; mv $H/mlivedir/b.secret $H/mlivedir/moved 2>/dev/null; cat $H/mlivedir/moved >>seen 2>/dev/null; true"
        run_as_user sh -c "echo token >$H/mlivedir/a.secret"
        await_armed
        run_as_user sh -c "cd $H/mlivedir; echo token >b.secret; echo token >x; mv x c.secret; echo token >sub/key; mkdir new; echo token >new/key; echo open >sub/open"
        watch
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = "open
open" ]
        [ "$(cat "$H/mlivedir/b.secret")" = token ]
    done
}

@test "a link that begins to lead out of the home while a jail runs is followed" {
    made mlive mlive-first .mcfg
    local MODE outside
    lib_is_root || cannot "needs a directory that is neither in the home nor in /tmp"
    outside=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}"/brigtest.XXXXXXXX)
    LIB_SCRATCHES="$LIB_SCRATCHES $outside"
    chmod 0755 "$outside"
    mkdir "$outside/gh"
    echo token >"$outside/first"
    echo token >"$outside/rc"
    echo token >"$outside/gh/hosts"
    echo open >"$outside/open"
    chmod -R a+rX "$outside"
    for MODE in casual bare; do
        jail "lead-$MODE"
        watcher "lead-$MODE" -- "cat $outside/rc >seen 2>/dev/null; true"
        run_as_user ln -sfn "$outside/rc" "$H/mlive"
        watch
        [ "$(cat seen)" = token ]
        rm "$H/mlive"
        watcher "lead-$MODE" --mask mlive --mask mlive-first --mask .mcfg/gh -- "armed $outside/first; await_hidden $outside/rc $outside/gh/hosts; cat $outside/rc $outside/gh/hosts >seen 2>/dev/null; cat $outside/open >open"
        run_as_user ln -sfn "$outside/first" "$H/mlive-first"
        await_armed
        run_as_user sh -c "ln -sfn $outside/rc $H/mlive; ln -sfn $outside $H/.mcfg"
        watch
        rm "$H/mlive" "$H/mlive-first" "$H/.mcfg"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
    done
    # And inside of what is granted.
    for MODE in strict sealed; do
        jail "lead-$MODE"
        watcher "lead-$MODE" -r "$outside" --mask mlive --mask mlive-first -- "armed $outside/first; await_hidden $outside/rc; cat $outside/rc >seen 2>/dev/null; cat $outside/open >open"
        run_as_user ln -sfn "$outside/first" "$H/mlive-first"
        await_armed
        run_as_user ln -sfn "$outside/rc" "$H/mlive"
        watch
        rm "$H/mlive" "$H/mlive-first"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
    done
}

@test "a run that makes more names than can be hidden while it runs goes on, and it is said" {
    made mlivedir
    jail many
    run_as_user mkdir "$H/mlivedir"
    # 512 are hidden.
    must run_as_user timeout 120 "$BRIG" -m casual -j many -d "$H/mlivedir" --mask 'mlivedir/*.secret' -- sh -c "$AWAIT"'
        for i in $(seq 1000); do echo $i >~/mlivedir/$i.secret; done
        # To look takes long.
        most_are_left() { sleep 0.2; [ "$(cat ~/mlivedir/*.secret 2>/dev/null | wc -l)" -eq 488 ]; }
        await most_are_left; echo alive'
    output_has alive
    output_has "too many new files matched masks"
}

@test "what came while nobody was in the jail is hidden from who joins" {
    made mlive-1 mlivedir
    jail between
    run_as_user mkdir "$H/mlivedir"
    must run_as_user "$BRIG" -m casual -j between --mask 'mlive-*' --mask 'mlivedir/*.secret' -- sh -c 'ls -A ~ ~/mlivedir'
    # More than is read at a time.
    run_as_user sh -c "cd $H/mlivedir; for i in \$(seq 1200); do : >file-with-a-long-name-\$i; done; echo token >a.secret; echo token >$H/mlive-1"
    must run_as_user "$BRIG" -m casual -j between --mask 'mlive-*' --mask 'mlivedir/*.secret' -- sh -c 'cat ~/mlive-1 ~/mlivedir/a.secret 2>/dev/null; ls ~/mlivedir | wc -l'
    output_lacks token
    must run_as_user "$BRIG" -m casual -j between --unmask 'mlive-*' -- cat "$H/mlive-1"
    output_has token
}

@test "a masked name that becomes a link hides what it leads to" {
    made mlive mlivedot
    jail relink
    run_as_user sh -c "mkdir $H/mlivedot; echo token >$H/mlivedot/rc; echo open >$H/mlivedot/open"
    watcher relink --mask mlive -- 'await_hidden ~/mlive ~/mlivedot/rc; cat ~/mlive ~/mlivedot/rc >seen 2>/dev/null; cat ~/mlivedot/open >open'
    run_as_user ln -s mlivedot/rc "$H/mlive"
    watch
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
}

@test "a new mask holds at once in the runs there are, but for open files; taken back at the next mount" {
    made mlive mlivedir
    jail atonce
    run_as_user sh -c "echo token >$H/mlive; mkdir $H/mlivedir; echo token >$H/mlivedir/file; echo open >$H/mlivedir.open"
    made mlivedir.open
    watcher atonce -- 'exec 4<~/mlive; cat ~/mlive >before; touch ready; await_file on; cat ~/mlive ~/mlivedir/file >seen 2>/dev/null; cat <&4 >held; cat ~/mlivedir.open >open; mv ~/mlivedir ~/moved 2>/dev/null; rm -rf ~/mlivedir ~/mlive 2>/dev/null; cat ~/mlive ~/mlivedir/file ~/moved/file >again 2>/dev/null; true'
    rm -f on ready
    run_as_user touch go
    await_file ready
    # By a line in the jail's own file, as by an option.
    run_as_user sh -c "echo 'mask mlivedir' >>$H/.local/share/brig/atonce.jail"
    must_fail run_as_user "$BRIG" -m casual -j atonce --mask mlive -- grep token "$H/mlive" "$H/mlivedir/file"
    run_as_user touch on
    wait "$WATCHER"
    [ "$(cat before)" = token ]
    [ "$(cat seen)" = "" ]
    [ "$(cat held)" = token ]
    [ "$(cat open)" = open ]
    [ "$(cat again)" = "" ]
    [ "$(cat "$H/mlive" "$H/mlivedir/file")" = "token
token" ]
    must run_as_user "$BRIG" -m casual -j atonce --unmask mlivedir -- cat "$H/mlive" "$H/mlivedir/file"
    output_has token
}

@test "brig mask hides at once in what runs, in its home and in what it was granted, and is remembered" {
    made mlive mlivedir mliveopen
    local MODE
    for MODE in casual bare strict; do
        run_as_user sh -c "mkdir -p $H/mlivedir; echo token >$H/mlive; echo token >$H/mlivedir/key; echo token >$H/mlivedir/a.pem; echo open >$H/mlivedir/open"
        jail "verb-$MODE"
        watcher "verb-$MODE" -d "$H/mlivedir" -r "$H/mlive" -- "cat $H/mlivedir/key $H/mlivedir/a.pem >seen 2>/dev/null; await_hidden $H/mlivedir/b.pem; cat $H/mlivedir/b.pem >>seen 2>/dev/null; cat $H/mlivedir/open >open; mv $H/mlivedir/key $H/mlivedir/x 2>/dev/null; cat $H/mlivedir/x >>seen 2>/dev/null; true"
        must run_as_user "$BRIG" mask -j "verb-$MODE" mlivedir/key "$H/mlivedir/*.pem"
        output_has "from now on"
        output_has "(1)"
        # It does not say that more is hidden than is.
        case $MODE in
        casual) output_lacks "own home" ;;
        *) output_has "own home stays" ;;
        esac
        # Nothing is waited for: it holds when the command is back. What comes later is hidden soon.
        run_as_user sh -c "echo token >$H/mlivedir/b.pem"
        watch
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
        run_as_user grep -qx 'mask mlivedir/key' "$H/.local/share/brig/verb-$MODE.jail"
        must_fail run_as_user "$BRIG" -m "$MODE" -j "verb-$MODE" -d "$H/mlivedir" -- grep token "$H/mlivedir/key"
        # Taken back, it shows in the next mount.
        must run_as_user "$BRIG" unmask -j "verb-$MODE" mlivedir/key 'mlivedir/*.pem'
        output_has "when no command runs in it"
        run_as_user grep -qx 'unmask mlivedir/key' "$H/.local/share/brig/verb-$MODE.jail"
        must_fail run_as_user grep -x 'mask mlivedir/key' "$H/.local/share/brig/verb-$MODE.jail"
        must run_as_user "$BRIG" -m "$MODE" -j "verb-$MODE" -d "$H/mlivedir" -- cat "$H/mlivedir/key" "$H/mlivedir/a.pem"
        output_has token
    done
}

@test "brig mask holds in the home of a casual jail, again and again, and unmask only at the next mount" {
    made mlive-a mlive-b
    local i
    jail verb-home
    run_as_user sh -c "echo token >$H/mlive-a; echo token >$H/mlive-b"
    watcher verb-home -- 'cat ~/mlive-a ~/mlive-b >seen 2>/dev/null; true'
    # More often than there can be sets of masks.
    for i in $(seq 20); do
        must run_as_user "$BRIG" mask -j verb-home "mlive-none-$i"
    done
    must run_as_user "$BRIG" mask -j verb-home mlive-a mlive-b
    must run_as_user "$BRIG" unmask -j verb-home mlive-b
    watch
    [ "$(cat seen)" = "" ]
    must run_as_user "$BRIG" -m casual -j verb-home -- sh -c 'cat ~/mlive-b; cat ~/mlive-a 2>/dev/null; true'
    [ "$output" = token ]
}

@test "brig mask says if a run is stopped, which hides it when it goes on" {
    made mlivedir
    local pid
    jail verb-stopped
    run_as_user sh -c "mkdir $H/mlivedir; echo token >$H/mlivedir/key"
    watcher verb-stopped -d "$H/mlivedir" -- 'await_hidden ~/mlivedir/key; cat ~/mlivedir/key >seen 2>/dev/null; true'
    pid=$(run_as_user "$BRIG" list --json | grep -o '"name":"verb-stopped"[^]]*' | sed 's/.*"pids":\[\([0-9]*\).*/\1/')
    [ "$pid" -gt 1 ]
    kill -STOP "$pid"
    run run_as_user "$BRIG" mask -j verb-stopped mlivedir/key
    kill -CONT "$pid"
    [ "$status" -eq 0 ]
    output_has "not confirmed by all"
    watch
    [ "$(cat seen)" = "" ]
}

@test "brig mask says that a path does not exist, and hides it once it does" {
    made mlive-later
    jail verb-later
    must run_as_user "$BRIG" -m casual -j verb-later -- true
    must run_as_user "$BRIG" mask -j verb-later mlive-later
    output_has "warning: '$H/mlive-later' does not exist"
    run_as_user sh -c "echo token >$H/mlive-later"
    must_fail run_as_user "$BRIG" -m casual -j verb-later -- grep token "$H/mlive-later"
    # The twin: nothing is said about what is there, nor about a pattern.
    must run_as_user "$BRIG" mask -j verb-later mlive-later 'mlive-none-*'
    output_lacks "does not exist"
    must run_as_user "$BRIG" unmask -j verb-later mlive-latre
    output_has "'$H/mlive-latre' does not exist"
    must run_as_user "$BRIG" unmask -j verb-later mlive-later
    output_lacks "does not exist"
    must run_as_user "$BRIG" -m casual -j verb-later -- grep token "$H/mlive-later"
    ! lib_is_root || {
        must by_sudo mask -j verb-later mlive-nowhere
        output_has "'$H/mlive-nowhere' does not exist"
    }
}

@test "brig mask refuses what it cannot hide, in one line with the remedy" {
    made mlivedir
    jail verb-no
    must run_as_user "$BRIG" -m casual -j verb-no -- true
    run_as_user sh -c "echo x >here; mkdir $H/mlivedir"
    must_exit 125 run_as_user "$BRIG" mask
    output_has PATH
    must_exit 125 run_as_user "$BRIG" mask -j verb-no here
    output_has "./here"
    must_exit 125 run_as_user "$BRIG" mask -j verb-no /etc/passwd
    output_has "not in the home"
    must_exit 125 run_as_user "$BRIG" mask -j verb-no ..
    must_exit 125 run_as_user "$BRIG" mask -j verb-no .
    must_exit 125 run_as_user "$BRIG" mask -j verb-none mlivedir
    output_has "Did you mean 'verb-no'?"
    must_exit 125 run_as_user "$BRIG" mask -j unlike mlivedir
    output_has "brig list"
    must_exit 125 run_as_user "$BRIG" mask -j ../x mlivedir
    must_exit 125 run_as_user "$BRIG" mask --what mlivedir
    output_has "brig run mask"
    must run_as_user "$BRIG" mask -j verb-no -- ./here "$H/mlivedir"
    ! lib_is_root || {
        must by_sudo mask -j verb-no mlivedir/root
        run_as_user grep -qx 'mask mlivedir/root' "$H/.local/share/brig/verb-no.jail"
        [ "$(stat -c %U "$H/.local/share/brig/verb-no.jail")" = "$LIB_USER" ]
    }
}

@test "masks of runs that have ended hold no more, and those of a holder that died do" {
    made mlive
    jail ended
    run_as_user sh -c "echo token >$H/mlive"
    watcher ended -- true
    must run_as_user "$BRIG" -m casual -j ended --mask mlive -- sh -c 'cat ~/mlive 2>/dev/null; true'
    output_lacks token
    watch
    must run_as_user "$BRIG" -m casual -j ended -- cat "$H/mlive"
    output_has token
    # What was covered stays so for who is left.
    watcher ended -- 'cat ~/mlive >seen 2>/dev/null; true'
    must run_as_user "$BRIG" -m casual -j ended --mask mlive -- true
    local holder
    holder=$(holder_of ended)
    [ "$holder" -gt 1 ]
    kill -KILL "$holder"
    await has_ended "$holder"
    watch
    [ "$(cat seen)" = "" ]
}

@test "a mask holds for what the jail has changed of the home before it, too" {
    made mlive mlivedir
    jail copies
    run_as_user sh -c "echo token >$H/mlive; mkdir $H/mlivedir; echo token >$H/mlivedir/file"
    must run_as_user "$BRIG" -m casual -j copies -- sh -c 'echo more >>~/mlive; echo more >>~/mlivedir/file; cat ~/mlive'
    output_has token
    # In a fresh mount, and at once in one that is there.
    watcher copies -- 'cat ~/mlive ~/mlivedir/file >seen 2>/dev/null; true'
    must run_as_user "$BRIG" -m casual -j copies --mask mlive --mask mlivedir -- sh -c 'cat ~/mlive ~/mlivedir/file 2>/dev/null; true'
    [ "$output" = "" ]
    watch
    [ "$(cat seen)" = "" ]
    must run_as_user "$BRIG" -m casual -j copies --mask mlive --mask mlivedir -- sh -c 'cat ~/mlive ~/mlivedir/file 2>/dev/null; true'
    [ "$output" = "" ]
    # Also when the home has it no more; and nothing is lost.
    rm "$H/mlive"
    must run_as_user "$BRIG" -m casual -j copies --mask mlive --mask '.none' -- sh -c 'cat ~/mlive 2>/dev/null; true'
    [ "$output" = "" ]
    must run_as_user "$BRIG" -m casual -j copies -- cat "$H/mlive"
    output_has token
    output_has more
}

@test "what was shown below a masked directory stays shown, and what comes beside it is hidden" {
    made mlive
    jail beside
    run_as_user sh -c "mkdir -p $H/mlive/open $H/mlive/shut; echo token >$H/mlive/shut/x; echo open >$H/mlive/open/x"
    watcher beside --mask mlive --unmask mlive/open -- 'await_seen ~/mlive/open/y; await_hidden ~/mlive/new; cat ~/mlive/shut/x ~/mlive/new >seen 2>/dev/null; cat ~/mlive/open/* >open'
    run_as_user sh -c "echo token >$H/mlive/new; echo later >$H/mlive/open/y"
    watch
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = "open
later" ]
}

@test "more directories than are watched are looked at now and then" {
    made mlive
    jail many
    run_as_user sh -c "mkdir $H/mlive; cd $H/mlive; mkdir \$(seq 600)"
    watcher many --mask 'mlive/*/secret' -- 'await_hidden ~/mlive/*/secret; cat ~/mlive/*/secret >seen 2>/dev/null; cat ~/mlive/*/open >open'
    run_as_user sh -c "cd $H/mlive; for i in \$(seq 600); do echo open >\$i/open; echo token >\$i/secret; done"
    watch
    [ "$(cat seen)" = "" ]
    [ "$(wc -l <open)" = 600 ]
}

@test "what a run makes in the place of something hidden is its own, whatever happens outside" {
    made mlive mlive-2
    jail instead
    run_as_user sh -c "mkdir $H/mlive; echo token >$H/mlive/file"
    watcher instead --mask mlive --mask 'mlive-*' -- 'await_hidden ~/mlive-2; cat ~/mlive/file ~/mlive/own >seen 2>/dev/null; cat ~/mlive-own/file >>seen'
    must run_as_user "$BRIG" -m casual -j instead --mask mlive --mask 'mlive-*' -- sh -c 'mkdir ~/mlive ~/mlive-own; echo own | tee ~/mlive/own ~/mlive-own/file'
    run_as_user sh -c "echo token >$H/mlive-2"
    watch
    [ "$(cat seen)" = "own
own" ]
}
