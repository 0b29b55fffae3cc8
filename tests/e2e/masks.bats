#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is hidden of a home: behind links, at other mounts, in what is granted, and while a jail runs.
# Each secret is also read where nothing hides it: otherwise a test that finds nothing proves nothing.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    JAILS=
    scratch_make user
    run_as_user mkdir "$SCRATCH/project"
    cd "$SCRATCH/project" || return
    if lib_is_root; then
        H=$(lib_user_home)
    else
        H=$HOME
    fi
    MADE=
}

teardown() {
    local name
    for name in $JAILS; do
        run_as_user "$BRIG" stop "$name" >/dev/null 2>&1 || true
        run_as_user "$BRIG" rm "$name" >/dev/null 2>&1 || true
    done
    cd /
    rm -rf -- "$H"/.local/share/brig/*.aside-*
    for name in $MADE; do
        rm -rf -- "${H:?}/$name"
    done
    scratch_remove
}

# jail NAME: to be stopped and removed in the end.
jail() {
    JAILS="$JAILS $1"
}

# made NAME…: of the home, to be removed in the end.
made() {
    MADE="$MADE $*"
}

# wait_for FILE: until somebody has made it.
wait_for() {
    local try
    for ((try = 0; try < 100; try++)); do
        [ ! -e "$1" ] || return 0
        sleep 0.1
    done
    echo "nobody made $1" >&2
    return 1
}

by_sudo() {
    env SUDO_UID="$(id -u "$LIB_USER")" SUDO_GID="$(id -g "$LIB_USER")" SUDO_USER="$LIB_USER" \
        HOME="$H" "$BRIG" "$@"
}

# ---- links -----------------------------------------------------------------------------------------

@test "a mask below a link holds where the link leads, in the home" {
    made .mcfg mdot
    jail links
    run_as_user sh -c "mkdir -p $H/mdot/cfg/gh; echo token >$H/mdot/cfg/gh/hosts; echo open >$H/mdot/cfg/open; ln -s mdot/cfg $H/.mcfg"
    # The twin: without the mask it can be read by both names.
    must run_as_user "$BRIG" -m casual -j links -- cat "$H/.mcfg/gh/hosts" "$H/mdot/cfg/gh/hosts"
    output_has token
    must run_as_user "$BRIG" -m casual -j links --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
    output_lacks token
    output_has open
    # And for root acting for the user, and by an absolute link.
    run_as_user ln -sfn "$H/mdot/cfg" "$H/.mcfg"
    must run_as_user "$BRIG" -u -j links
    must run_as_user "$BRIG" -m casual -j links --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
    output_lacks token
    output_has open
    ! lib_is_root || {
        jail links-sudo
        must by_sudo -m casual -j links-sudo --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
        output_lacks token
        output_has open
    }
}

@test "a mask that is spelt with a tilde, which no shell has replaced, is one of the home" {
    made .mtilde
    jail tilde
    run_as_user sh -c "echo token >$H/.mtilde"
    must run_as_user "$BRIG" -m casual -j tilde -- cat "$H/.mtilde" # the twin
    # shellcheck disable=SC2088 # on purpose
    must_fail run_as_user "$BRIG" -m casual -j tilde --mask '~/.mtilde' -- cat "$H/.mtilde"
}

@test "a masked link is hidden with what it points to" {
    made .mrc mdot
    jail target
    run_as_user sh -c "mkdir -p $H/mdot; echo token >$H/mdot/rc; ln -s mdot/rc $H/.mrc"
    must run_as_user "$BRIG" -m casual -j target -- cat "$H/.mrc" "$H/mdot/rc"
    must_fail run_as_user "$BRIG" -m casual -j target --mask .mrc -- cat "$H/mdot/rc"
    must_fail run_as_user "$BRIG" -m casual -j target --mask .mrc -- cat "$H/.mrc"
}

@test "a mask holds where a link leads out of the home, in every mode where that shows" {
    made .mcfg .mrc
    local outside mode
    outside=$(run_as_user mktemp -d /var/tmp/brigtest.XXXXXXXX)
    lib_is_root || cannot "needs a directory that is neither in the home nor in /tmp"
    mv "$outside" "${BRIG_SCRATCH:-/var/lib}/"
    outside=${BRIG_SCRATCH:-/var/lib}/${outside##*/}
    LIB_SCRATCHES="$LIB_SCRATCHES $outside"
    run_as_user sh -c "mkdir -p $outside/gh; echo token >$outside/gh/hosts; echo open >$outside/open; echo token >$outside/rc; ln -s $outside $H/.mcfg; ln -s $outside/rc $H/.mrc"
    for mode in casual bare; do
        jail "out-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" -- cat "$outside/gh/hosts" "$outside/rc"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" --mask .mcfg/gh --mask .mrc -- sh -c "cat $outside/gh/hosts ~/.mcfg/gh/hosts $outside/rc ~/.mrc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    # Granted, it shows in modes that have nothing else of the host.
    for mode in strict sealed; do
        jail "out-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" -d "$outside" -- cat "$outside/gh/hosts" "$outside/rc"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" --mask .mcfg/gh --mask .mrc -d "$outside" -- sh -c "cat $outside/gh/hosts $outside/rc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    jail out-sudo
    for mode in casual strict; do
        must by_sudo -m "$mode" -j out-sudo --mask .mcfg/gh --mask .mrc -r "$outside" -- sh -c "cat $outside/gh/hosts $outside/rc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    by_sudo -u >/dev/null 2>&1 || true
}

@test "a masked link to a device or to the system takes nothing away" {
    made .mhist .mlib
    jail null
    run_as_user sh -c "ln -s /dev/null $H/.mhist; ln -s /usr $H/.mlib"
    must run_as_user "$BRIG" -m casual -j null --mask .mhist --mask .mlib -- sh -c 'echo x >/dev/null; test -c /dev/null && ls /usr/bin/env'
}

@test "a mask holds inside a grant that a link leads into, or that is spelt otherwise" {
    made .mcfg mdot mlink
    local mode
    run_as_user sh -c "mkdir -p $H/mdot/gh; echo token >$H/mdot/gh/hosts; echo open >$H/mdot/open; ln -s mdot $H/.mcfg; ln -s . $H/mlink"
    for mode in casual strict sealed; do
        jail "into-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mdot" -- cat "$H/mdot/gh/hosts"
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mdot" --mask .mcfg/gh -- sh -c "cat $H/mdot/gh/hosts 2>/dev/null; cat $H/mdot/open"
        output_lacks token
        output_has open
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mlink/mdot" --mask mdot/gh -- sh -c "cat $H/mlink/mdot/gh/hosts 2>/dev/null; cat $H/mlink/mdot/open"
        output_lacks token
        output_has open
    done
}

@test "what is granted by a link is the real thing, and protected as such" {
    made mlink mproj
    jail bylink
    run_as_user sh -c "mkdir -p $H/mproj; cd $H/mproj; git init -q . 2>/dev/null; ln -s mproj $H/mlink"
    [ -d "$H/mproj/.git/hooks" ]
    must run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo real >~/mlink/file; cat ~/mproj/file'
    output_has real
    [ "$(cat "$H/mproj/file")" = real ]
    must_fail run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mlink/.git/hooks/pre-commit'
    must_fail run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mproj/.git/hooks/pre-commit'
    [ ! -e "$H/mproj/.git/hooks/pre-commit" ]
    must run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" --no-protect -- sh -c 'echo x >~/mlink/.git/hooks/pre-commit'
    [ -e "$H/mproj/.git/hooks/pre-commit" ]
}

@test "why knows of links" {
    made .mcfg mdot
    jail why
    run_as_user sh -c "mkdir -p $H/mdot/gh; echo token >$H/mdot/gh/hosts; ln -s mdot $H/.mcfg"
    must_fail run_as_user "$BRIG" why -m casual -j why --mask .mcfg/gh -- "$H/.mcfg/gh/hosts"
    output_has hidden
    must_fail run_as_user "$BRIG" why -m casual -j why --mask .mcfg/gh -- "$H/mdot/gh/hosts"
    output_has hidden
    must run_as_user "$BRIG" why -m casual -j why -- "$H/mdot/gh/hosts"
}

# ---- grants of what the jail has of its own ----------------------------------------------------------

@test "who grants /tmp, /var/tmp or /dev/shm has the host's, and not the jail's" {
    local mode place file
    for mode in casual bare strict; do
        jail "own-$mode"
        for place in /tmp /var/tmp /dev/shm; do
            file=$place/brigtest.$BASHPID.$mode
            run_as_user sh -c "echo host >$file"
            # The twin: otherwise they are the jail's own.
            must_fail run_as_user "$BRIG" -m "$mode" -j "own-$mode" -- cat "$file"
            must run_as_user "$BRIG" -m "$mode" -j "own-$mode" -r "$place" -- cat "$file"
            output_has host
            must_fail run_as_user "$BRIG" -m "$mode" -j "own-$mode" -r "$place" -- touch "$file.made"
            must run_as_user "$BRIG" -m "$mode" -j "own-$mode" -d "$place" -- sh -c "echo jail >$file"
            [ "$(cat "$file")" = jail ]
            rm "$file"
        done
    done
}

@test "who grants /run has the host's, also where the user has no runtime directory" {
    local mode
    jail run-strict
    must_exit 125 run_as_user "$BRIG" -m strict -j run-strict -r /run -- true
    output_has "-m bare"
    for mode in casual bare; do
        jail "run-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "run-$mode" -r /run -- sh -c 'ls -i -d /run'
        [ "${output%% *}" = "$(stat -c %i /run)" ]
        must run_as_user "$BRIG" -m "$mode" -j "run-$mode" -- sh -c 'ls -i -d /run'
        [ "${output%% *}" != "$(stat -c %i /run)" ]
    done
}

@test "the whole home is granted to who insists, with its secrets hidden, and to nobody else" {
    made .mfile .ssh
    local mode
    run_as_user sh -c "echo real >$H/.mfile; mkdir -p $H/.ssh; echo token >$H/.ssh/id_test"
    for mode in casual bare strict; do
        jail "whole-$mode"
        # By identity, whatever it is called.
        run_as_user ln -sfn "$H" "$SCRATCH/link"
        cd "$SCRATCH/link"
        must_exit 125 run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -- true
        output_has "whole home"
        output_has "to insist"
        cd "$SCRATCH/project"
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -r "$H" -- cat "$H/.mfile"
        output_has real
        must_fail run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -D -r "$H" -- sh -c 'echo x >~/.mfile'
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -d "$H" -- sh -c "echo $mode >~/.mfile; cat ~/.ssh/id_test 2>/dev/null; true"
        output_lacks token
        [ "$(cat "$H/.mfile")" = "$mode" ]
        run_as_user sh -c "echo real >$H/.mfile"
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -d "$H" --unmask .ssh -- cat "$H/.ssh/id_test"
        output_has token
    done
    # And a script has a place of its own.
    run_as_user sh -c 'echo "echo from-script" >script'
    must run_as_user "$BRIG" -m casual -j whole-casual -d /tmp --script script -- true
    output_has from-script
}

@test "default masks hold in every mode where the path would show" {
    made .ssh .mopen
    local mode
    run_as_user sh -c "mkdir -p $H/.ssh; echo token >$H/.ssh/id_test; echo open >$H/.mopen"
    for mode in casual bare strict sealed; do
        jail "every-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" -- sh -c "cat $H/.ssh/id_test 2>/dev/null; cat $H/.mopen"
        [ "$output" = open ]
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" --unmask .ssh -- cat "$H/.ssh/id_test"
        output_has token
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" --no-defaults -- cat "$H/.ssh/id_test"
        output_has token
    done
    # Where the host is shown to a jail without a home of its own.
    must run_as_user "$BRIG" -m sealed -D --view host -- sh -c "cat $H/.ssh/id_test 2>/dev/null; cat $H/.mopen"
    [ "$output" = open ]
    must run_as_user "$BRIG" -m sealed -D --view host --unmask .ssh -- cat "$H/.ssh/id_test"
    output_has token
}

# ---- while a jail runs -------------------------------------------------------------------------------

# watcher JAIL OPTIONS… -- SCRIPT: a run in the background that tells it has begun, waits for `go` and
# runs the script; its pid is in WATCHER. It is casual, unless MODE says otherwise.
watcher() {
    local name=$1
    shift
    rm -f begun go
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    run_as_user "$BRIG" -m "${MODE:-casual}" -j "$name" "${options[@]}" -- sh -c "
        ls -laR ~/mlive* >/dev/null 2>&1; cat ~/mlive*/* ~/mlive* >/dev/null 2>&1
        echo >begun; for i in \$(seq 100); do [ -e go ] && break; sleep 0.1; done; $2" 3>&- &
    WATCHER=$!
    wait_for begun
}

# The holder hears of what was done a moment later.
settle() {
    sleep 0.3
}

@test "what comes to match a mask while a jail runs is hidden in it, and its own files are not" {
    made mlive-1 mlive-2 mliveopen
    jail glob
    # The twin: without the mask the jail sees what the host makes.
    watcher glob -- 'cat ~/mlive-1 >seen 2>/dev/null; true'
    run_as_user sh -c "echo token >$H/mlive-1"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = token ]
    rm "$H/mlive-1"
    watcher glob --mask 'mlive-*' -- 'echo own >~/mlive-own; for i in 1 2; do cat ~/mlive-$i; done >seen 2>/dev/null; cat ~/mlive-own ~/mliveopen >open'
    run_as_user sh -c "echo token >$H/mlive-1; echo open >$H/mliveopen; echo token >$H/.tmp-mlive; mv $H/.tmp-mlive $H/mlive-2"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = "own
open" ]
    # What hides it is no change of the jail's.
    [ ! -e "$H/.local/share/brig/glob.changes/mlive-1" ]
}

@test "a mask whose directory is missing holds as soon as that is made, also where it was seen before" {
    made mlive mlive2
    jail parent
    watcher parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- 'cat ~/mlive/deep/secret ~/mlive2/x/secret >seen 2>/dev/null; cat ~/mlive/deep/open >open'
    run_as_user sh -c "mkdir $H/mlive"
    settle
    run_as_user sh -c "mkdir -p $H/mlive/deep $H/mlive2/x; echo token >$H/mlive/deep/secret; echo token >$H/mlive2/x/secret; echo open >$H/mlive/deep/open"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
    # Replaced as a whole, it holds as well; what else is in it who runs may see late, and the next run sees.
    watcher parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- 'cat ~/mlive/deep/secret ~/mlive2/x/secret >seen 2>/dev/null; true'
    run_as_user sh -c "cp -a $H/mlive $H/mlive.new; mv $H/mlive $H/mlive.old; mv $H/mlive.new $H/mlive; rm -r $H/mlive.old; echo token >$H/mlive/deep/secret"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    run run_as_user "$BRIG" -m casual -j parent --mask mlive/deep/secret --mask 'mlive2/*/secret' -- sh -c 'cat ~/mlive/deep/open ~/mlive/deep/secret ~/mlive2/x/secret 2>/dev/null'
    [ "$output" = open ]
}

# begun_watching: what a run does some time after its start is done.
begun_watching() {
    sleep 0.6
}

@test "what comes to match a mask in a granted directory is hidden while the run goes on, in every mode" {
    made mlivedir
    local MODE
    for MODE in casual bare strict sealed; do
        run_as_user sh -c "rm -rf $H/mlivedir; mkdir -p $H/mlivedir/sub; echo open >$H/mlivedir/open"
        jail "grant-$MODE"
        # The twin: without the mask the run sees it.
        watcher "grant-$MODE" -d "$H/mlivedir" -- "cat $H/mlivedir/b.secret >seen 2>/dev/null; true"
        begun_watching
        run_as_user sh -c "echo token >$H/mlivedir/b.secret"
        settle
        run_as_user touch go
        wait "$WATCHER"
        [ "$(cat seen)" = token ]
        rm "$H/mlivedir/b.secret"
        watcher "grant-$MODE" -d "$H/mlivedir" --mask 'mlivedir/*.secret' --mask 'mlivedir/*/key' -- "cat $H/mlivedir/b.secret $H/mlivedir/c.secret $H/mlivedir/sub/key $H/mlivedir/new/key >seen 2>/dev/null; cat $H/mlivedir/open $H/mlivedir/sub/open >open; mv $H/mlivedir/b.secret $H/mlivedir/moved 2>/dev/null; cat $H/mlivedir/moved >>seen 2>/dev/null; true"
        begun_watching
        run_as_user sh -c "cd $H/mlivedir; echo token >b.secret; echo token >x; mv x c.secret; echo token >sub/key; mkdir new; echo token >new/key; echo open >sub/open"
        settle
        run_as_user touch go
        wait "$WATCHER"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = "open
open" ]
        [ "$(cat "$H/mlivedir/b.secret")" = token ]
    done
}

@test "a link that begins to lead out of the home while a jail runs is followed" {
    made mlive .mcfg
    local MODE outside
    lib_is_root || cannot "needs a directory that is neither in the home nor in /tmp"
    outside=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}"/brigtest.XXXXXXXX)
    LIB_SCRATCHES="$LIB_SCRATCHES $outside"
    chmod 0755 "$outside"
    mkdir "$outside/gh"
    echo token >"$outside/rc"
    echo token >"$outside/gh/hosts"
    echo open >"$outside/open"
    chmod -R a+rX "$outside"
    for MODE in casual bare; do
        jail "lead-$MODE"
        watcher "lead-$MODE" -- "cat $outside/rc >seen 2>/dev/null; true"
        begun_watching
        run_as_user ln -sfn "$outside/rc" "$H/mlive"
        settle
        run_as_user touch go
        wait "$WATCHER"
        [ "$(cat seen)" = token ]
        rm "$H/mlive"
        watcher "lead-$MODE" --mask mlive --mask .mcfg/gh -- "cat $outside/rc $outside/gh/hosts >seen 2>/dev/null; cat $outside/open >open"
        begun_watching
        run_as_user sh -c "ln -sfn $outside/rc $H/mlive; ln -sfn $outside $H/.mcfg"
        settle
        run_as_user touch go
        wait "$WATCHER"
        rm "$H/mlive" "$H/.mcfg"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
    done
    # And inside of what is granted.
    for MODE in strict sealed; do
        jail "lead-$MODE"
        watcher "lead-$MODE" -r "$outside" --mask mlive -- "cat $outside/rc >seen 2>/dev/null; cat $outside/open >open"
        begun_watching
        run_as_user ln -sfn "$outside/rc" "$H/mlive"
        settle
        run_as_user touch go
        wait "$WATCHER"
        rm "$H/mlive"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
    done
}

@test "who makes many names that match keeps nobody busy, and the run goes on" {
    made mlivedir
    jail many
    run_as_user mkdir "$H/mlivedir"
    must run_as_user timeout 60 "$BRIG" -m casual -j many -d "$H/mlivedir" --mask 'mlivedir/*.secret' -- sh -c 'sleep 0.5; for i in $(seq 3000); do : >~/mlivedir/$i.secret; done; sleep 1; echo alive'
    output_has alive
    output_has "more names came to match masks"
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
    watcher relink --mask mlive -- 'cat ~/mlive ~/mlivedot/rc >seen 2>/dev/null; cat ~/mlivedot/open >open'
    run_as_user ln -s mlivedot/rc "$H/mlive"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = open ]
}

@test "a new mask holds at once in the runs there are, but for open files; taken back at the next mount" {
    made mlive mlivedir
    jail atonce
    run_as_user sh -c "echo token >$H/mlive; mkdir $H/mlivedir; echo token >$H/mlivedir/file; echo open >$H/mlivedir.open"
    made mlivedir.open
    watcher atonce -- 'exec 4<~/mlive; cat ~/mlive >before; touch ready; for i in $(seq 100); do [ -e on ] && break; sleep 0.1; done; cat ~/mlive ~/mlivedir/file >seen 2>/dev/null; cat <&4 >held; cat ~/mlivedir.open >open; mv ~/mlivedir ~/moved 2>/dev/null; rm -rf ~/mlivedir ~/mlive 2>/dev/null; cat ~/mlive ~/mlivedir/file ~/moved/file >again 2>/dev/null; true'
    rm -f on ready
    run_as_user touch go
    wait_for ready
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
        watcher "verb-$MODE" -d "$H/mlivedir" -r "$H/mlive" -- "cat $H/mlivedir/key $H/mlivedir/a.pem >seen 2>/dev/null; cat $H/mlivedir/b.pem >>seen 2>/dev/null; cat $H/mlivedir/open >open; mv $H/mlivedir/key $H/mlivedir/x 2>/dev/null; cat $H/mlivedir/x >>seen 2>/dev/null; true"
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
        settle
        run_as_user touch go
        wait "$WATCHER"
        [ "$(cat seen)" = "" ]
        [ "$(cat open)" = open ]
        run_as_user grep -qx 'mask mlivedir/key' "$H/.local/share/brig/verb-$MODE.jail"
        must_fail run_as_user "$BRIG" -m "$MODE" -j "verb-$MODE" -d "$H/mlivedir" -- grep token "$H/mlivedir/key"
        # Taken back, it shows in the next mount.
        must run_as_user "$BRIG" unmask -j "verb-$MODE" mlivedir/key 'mlivedir/*.pem'
        output_has "next mount"
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
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    must run_as_user "$BRIG" -m casual -j verb-home -- sh -c 'cat ~/mlive-b; cat ~/mlive-a 2>/dev/null; true'
    [ "$output" = token ]
}

@test "brig mask says if a run is stopped, which hides it when it goes on" {
    made mlivedir
    local pid
    jail verb-stopped
    run_as_user sh -c "mkdir $H/mlivedir; echo token >$H/mlivedir/key"
    watcher verb-stopped -d "$H/mlivedir" -- 'cat ~/mlivedir/key >seen 2>/dev/null; true'
    pid=$(run_as_user "$BRIG" list --json | grep -o '"name":"verb-stopped"[^]]*' | sed 's/.*"pids":\[\([0-9]*\).*/\1/')
    [ "$pid" -gt 1 ]
    kill -STOP "$pid"
    run run_as_user "$BRIG" mask -j verb-stopped mlivedir/key
    kill -CONT "$pid"
    [ "$status" -eq 0 ]
    output_has "not all that runs"
    settle
    run_as_user touch go
    wait "$WATCHER"
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
    run_as_user touch go
    wait "$WATCHER"
    must run_as_user "$BRIG" -m casual -j ended -- cat "$H/mlive"
    output_has token
    # What was covered stays so for who is left.
    watcher ended -- 'cat ~/mlive >seen 2>/dev/null; true'
    must run_as_user "$BRIG" -m casual -j ended --mask mlive -- true
    local holder
    holder=$(run_as_user "$BRIG" list --json | grep -o '"name":"ended"[^]]*' | sed 's/.*"holder":\([0-9]*\).*/\1/')
    [ "$holder" -gt 1 ]
    kill -KILL "$holder"
    settle
    run_as_user touch go
    wait "$WATCHER"
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
    run_as_user touch go
    wait "$WATCHER"
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
    watcher beside --mask mlive --unmask mlive/open -- 'cat ~/mlive/shut/x ~/mlive/new >seen 2>/dev/null; cat ~/mlive/open/* >open'
    run_as_user sh -c "echo token >$H/mlive/new; echo later >$H/mlive/open/y"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    [ "$(cat open)" = "open
later" ]
}

@test "more directories than are watched are looked at now and then" {
    made mlive
    jail many
    run_as_user sh -c "mkdir $H/mlive; cd $H/mlive; mkdir \$(seq 600)"
    watcher many --mask 'mlive/*/secret' -- 'cat ~/mlive/*/secret >seen 2>/dev/null; cat ~/mlive/*/open >open'
    run_as_user sh -c "cd $H/mlive; for i in \$(seq 600); do echo open >\$i/open; echo token >\$i/secret; done"
    sleep 5
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "" ]
    [ "$(wc -l <open)" = 600 ]
}

# ---- other mounts ------------------------------------------------------------------------------------

# elsewhere COMMAND…: as the user, where /mnt/twin shows what the home is on, and /mnt/part a part of it.
elsewhere() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs none /mnt && mkdir /mnt/twin /mnt/part &&
        mount --bind "${1%/*}" /mnt/twin && mount --bind "$1/mpart" /mnt/part && user=$2 && home=$1 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" "$@"' - "$H" "$LIB_USER" "$@"
}

@test "another mount of the home shows neither it nor its secrets nor brig's own" {
    lib_is_root || cannot "mounts need root"
    made mpart .ssh
    local mode name=${H##*/}
    run_as_user sh -c "mkdir -p $H/.ssh $H/mpart/gh; echo token >$H/.ssh/id_test; echo token >$H/mpart/gh/hosts; echo open >$H/mpart/open"
    for mode in casual bare; do
        jail "twin-$mode"
        # The twin of the test: they are there, and can be read outside and where nothing hides them.
        must elsewhere cat "/mnt/twin/$name/.ssh/id_test" /mnt/part/gh/hosts
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" --unmask .ssh -- cat /mnt/part/gh/hosts
        output_has token
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" --mask mpart/gh -- sh -c "cat /mnt/twin/$name/.ssh/id_test /mnt/part/gh/hosts 2>/dev/null; ls -A /mnt/twin/$name /mnt/twin/$name/.local/share/brig 2>/dev/null | grep -v :; cat /mnt/part/open"
        [ "$output" = open ]
        must elsewhere "$BRIG" -u -j "twin-$mode"
    done
    # Granted by such a name: who insists has it, without its secrets.
    for mode in casual strict; do
        jail "twin-$mode"
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" -D -d "/mnt/twin/$name" --mask mpart/gh -- sh -c "cat /mnt/twin/$name/.ssh/id_test /mnt/twin/$name/mpart/gh/hosts 2>/dev/null; ls -A /mnt/twin/$name/.local/share/brig 2>/dev/null; cat /mnt/twin/$name/mpart/open"
        [ "$output" = open ]
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" -D -d /mnt/part --mask mpart/gh -- sh -c "cat /mnt/part/gh/hosts 2>/dev/null; cat /mnt/part/open; echo made >/mnt/part/made"
        [ "$output" = open ]
        [ "$(cat "$H/mpart/made")" = made ]
        must elsewhere "$BRIG" -u -j "twin-$mode"
    done
    # And the working directory is refused by identity.
    run elsewhere sh -c "cd /mnt/twin/$name && exec '$BRIG' -m casual -j twin-casual -- true"
    [ "$status" -eq 125 ]
    output_has "whole home"
}

# ---- where holders are found -------------------------------------------------------------------------

@test "somebody else who has taken the place for sockets in /tmp stops nobody" {
    lib_is_root || cannot "needs a second user"
    local place who
    jail squat
    must run_as_user "$BRIG" -u
    for who in "$(id -u "$LIB_USER")" "$((1900000000 + $(id -u "$LIB_USER")))"; do
        place=/tmp/brig-$who
        rm -rf "$place"
        setpriv --reuid=65534 --regid=65534 --clear-groups mkdir "$place"
        LIB_SCRATCHES="$LIB_SCRATCHES $place"
    done
    must run_as_user "$BRIG" -m casual -j squat -- sh -c 'echo kept >/tmp/kept'
    must run_as_user "$BRIG" -m casual -j squat -- cat /tmp/kept
    output_has kept
    must run_as_user "$BRIG" list
    output_has "(kept)"
    # Found as well when the place is free again.
    rmdir "/tmp/brig-$(id -u "$LIB_USER")"
    must run_as_user "$BRIG" -m casual -j squat -- cat /tmp/kept
    must by_sudo -m casual -j squat -- cat /tmp/kept
    output_has kept
    must by_sudo -m strict -j squat -D -- sh -c 'echo strict >/tmp/kept'
    must by_sudo -m strict -j squat -D -- cat /tmp/kept
    output_has strict
    must by_sudo -u
}

# ---- snapshots ---------------------------------------------------------------------------------------

@test "copies of hidden files in a snapshot directory of the home are hidden as well" {
    local name
    jail snapshots
    for name in .zfs .snapshot .snapshots; do
        [ ! -e "$H/$name" ] || cannot "there is a $H/$name"
        made "$name"
        run_as_user sh -c "mkdir -p $H/$name/one/.ssh; echo token >$H/$name/one/.ssh/key"
        must_fail run_as_user "$BRIG" -m casual -j snapshots -- grep token "$H/$name/one/.ssh/key"
        output_lacks token
        must_fail run_as_user "$BRIG" -m sealed -r "$H" -- grep token "$H/$name/one/.ssh/key"
        ! lib_is_root || must_fail by_sudo -m casual -j snapshots -- grep token "$H/$name/one/.ssh/key"
        # The twin.
        must run_as_user "$BRIG" -m casual -j "twin$name" --unmask "$name" -- grep token "$H/$name/one/.ssh/key"
        jail "twin$name"
    done
}

@test "nor are they seen in that of a filesystem that has the home in it" {
    lib_is_root || cannot "it takes a mount"
    # In a mount namespace of its own, what is above the home is another filesystem, with a snapshot.
    cat >"$SCRATCH/above" <<'END'
set -eu
above=${H%/*}
mount --rbind "$above" /mnt
mount -t tmpfs -o mode=755 tmpfs "$above"
mkdir "$H"
mount --rbind "/mnt/${H##*/}" "$H"
umount -l /mnt
copy=$above/.zfs/snapshot/one/${H##*/}
mkdir -p "$copy" && echo token >"$copy/key" && chmod 644 "$copy/key"
cd "$SCRATCH/project"
. "$LIB_DIR/lib.bash"
trap 'run_as_user "$BRIG" -u >/dev/null 2>&1; run_as_user "$BRIG" rm above-twin' EXIT
for mode in casual bare; do
    run_as_user "$BRIG" -m "$mode" -j "above-$mode" -- sh -c "cat $copy/key 2>/dev/null || echo hidden"
    run_as_user "$BRIG" stop "above-$mode" && run_as_user "$BRIG" rm "above-$mode"
done
run_as_user "$BRIG" -m bare -j above-twin --unmask "$above/.zfs" -- cat "$copy/key"
END
    must env H="$H" SCRATCH="$SCRATCH" LIB_DIR="$LIB_DIR" BRIG="$BRIG" unshare -m --propagation private bash "$SCRATCH/above"
    [ "$output" = $'hidden\nhidden\ntoken' ]
}

# ---- the environment ---------------------------------------------------------------------------------

@test "variables with a secret are not passed on, by name in any case or by value, and explain says so" {
    local secrets=(SSHPASS=1-secret BW_SESSION=2-secret npm_config__auth=3-secret my_api_key=4-secret "HTTPS_PROXY=http://me:5-secret@proxy:1"
        "PIP_INDEX_URL=https://me:6-secret@pypi.example/simple" STRIPE_KEY=10-secret)
    local plain=(GIT_AUTHOR_NAME=7-plain MAX_THINKING_TOKENS=8-plain "SERVICE_URL=http://service:1/9-plain")
    jail environment
    must run_as_user env "${secrets[@]}" "${plain[@]}" "$BRIG" -m bare -j environment -- env
    for i in 1-secret 2-secret 3-secret 4-secret 5-secret 6-secret 10-secret; do
        output_lacks "$i"
    done
    for i in 7-plain 8-plain 9-plain; do
        output_has "$i"
    done
    # The twin.
    must run_as_user env "${secrets[@]}" "$BRIG" -m bare -j environment --setenv HTTPS_PROXY --setenv my_api_key \
        --setenv STRIPE_KEY -- env
    output_has 5-secret
    output_has 4-secret
    output_has STRIPE_KEY=10-secret
    output_lacks 6-secret
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment
    output_has "HTTPS_PROXY: its value has an address with a password"
    output_has "PIP_INDEX_URL: its value"
    output_lacks 5-secret
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment --setenv HTTPS_PROXY
    output_lacks "HTTPS_PROXY: its value"
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment --json
    output_has '"withheld_by_value":["HTTPS_PROXY","PIP_INDEX_URL"]'
}

@test "what a run makes in the place of something hidden is its own, whatever happens outside" {
    made mlive mlive-2
    jail instead
    run_as_user sh -c "mkdir $H/mlive; echo token >$H/mlive/file"
    watcher instead --mask mlive --mask 'mlive-*' -- 'cat ~/mlive/file ~/mlive/own >seen 2>/dev/null; cat ~/mlive-own/file >>seen'
    must run_as_user "$BRIG" -m casual -j instead --mask mlive --mask 'mlive-*' -- sh -c 'mkdir ~/mlive ~/mlive-own; echo own | tee ~/mlive/own ~/mlive-own/file'
    run_as_user sh -c "echo token >$H/mlive-2"
    settle
    run_as_user touch go
    wait "$WATCHER"
    [ "$(cat seen)" = "own
own" ]
}

# ---- homes and jails of an odd kind ------------------------------------------------------------------

# linked COMMAND…: as the user, whose home is a link to the real one according to the passwd file.
linked() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs none /mnt && ln -s "$1" /mnt/home && sed "s|^\($2:.*\):$1:|\1:/mnt/home:|" /etc/passwd >/mnt/passwd &&
        mount --bind /mnt/passwd /etc/passwd && user=$2 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME=/mnt/home "$@"' - "$H" "$LIB_USER" "$@"
}

@test "a home that is a link is like any other" {
    lib_is_root || cannot "needs another passwd file"
    made .ssh mproj
    local mode
    run_as_user sh -c "mkdir -p $H/.ssh $H/mproj; echo token >$H/.ssh/id_test; echo token >$H/mproj/secret; echo real >$H/mproj/file"
    must linked sh -c 'cat ~/mproj/file ~/.ssh/id_test; grep :/mnt/home: /etc/passwd'
    output_has token
    cd "$H/mproj"
    for mode in casual bare strict; do
        jail "linked-$mode"
        must linked "$BRIG" -m "$mode" -j "linked-$mode" --mask mproj/secret -- sh -c 'echo $HOME; cat ~/.ssh/id_test secret 2>/dev/null; cat file; echo new >file; echo mine >~/mine; cat ~/mine'
        output_lacks token
        output_has /mnt/home
        output_has real
        output_has mine
        [ "$(cat "$H/mproj/file")" = new ]
        [ ! -e "$H/mine" ]
        run_as_user sh -c 'echo real >file'
        # By the name of the link as by the real one.
        must linked "$BRIG" -m "$mode" -j "linked-$mode" -D -d /mnt/home/mproj --mask mproj/secret -- sh -c 'cat ~/mproj/secret 2>/dev/null; echo new >~/mproj/file'
        output_lacks token
        [ "$(cat "$H/mproj/file")" = new ]
        run_as_user sh -c 'echo real >file'
        must linked "$BRIG" -u -j "linked-$mode"
        linked "$BRIG" rm "linked-$mode" >/dev/null 2>&1 || true
    done
}

@test "root lists jails with the rights of their user" {
    lib_is_root || cannot "this is about root"
    jail listed
    local secret=/var/lib/brigtest.secret.$BASHPID
    mkdir -m 0700 "$secret"
    LIB_SCRATCHES="$LIB_SCRATCHES $secret"
    head -c 300000 /dev/zero >"$secret/large"
    must run_as_user "$BRIG" -m bare -j listed -D -- sh -c 'head -c 200000 /dev/zero >~/file'
    must by_sudo list
    [[ $output =~ listed\ +bare\ +-\ +19[0-9]\.[0-9]K ]] || [[ $output =~ listed\ +bare\ +-\ +20[0-9]\.[0-9]K ]]
    run_as_user ln -s "$secret" "$H/.local/share/brig/listed.changes"
    must by_sudo list
    [[ $output =~ listed\ +bare\ +-\  ]]
    rm "$H/.local/share/brig/listed.changes"
}

@test "as root: what somebody puts in the place of a jail's parts is neither given away nor used" {
    lib_is_root || cannot "only root can give a jail an id of its own"
    local storage=$SCRATCH/store
    run_as_user mkdir -p -m 0700 "$storage"
    # A directory of the user's where the jail's own should be, and a link.
    mkdir -m 0700 "$SCRATCH/victim"
    ln -s "$SCRATCH/victim" "$storage/odd.home"
    must_exit 125 by_sudo -m strict -j odd --storage "$storage" -D -- true
    [ "$(stat -c %U "$SCRATCH/victim")" = root ]
    rm "$storage/odd.home"
    mkdir -m 0700 "$storage/odd.home"
    must_exit 125 by_sudo -m strict -j odd --storage "$storage" -D -- true
    output_has "belongs to uid 0"
    [ "$(stat -c %U "$storage/odd.home")" = root ]
    rmdir "$storage/odd.home"
    must by_sudo -m strict -j odd --storage "$storage" -D -- sh -c 'echo kept >~/kept'
    [ "$(stat -c %U "$storage/odd.home/kept")" = "$LIB_USER" ]
    must by_sudo --storage "$storage" -u
}

@test "removing a jail changes nothing that a link in it points to" {
    jail chmods
    run_as_user mkdir -m 0500 "$SCRATCH/outside"
    must run_as_user "$BRIG" -m bare -j chmods -D -- sh -c "mkdir ~/d; ln -s '$SCRATCH/outside' ~/d/link; mkdir ~/d/none; touch ~/d/none/x; chmod 0 ~/d/none"
    must run_as_user "$BRIG" rm chmods
    [ ! -e "$H/.local/share/brig/chmods.home" ]
    [ "$(stat -c %a "$SCRATCH/outside")" = 500 ]
}

@test "nobody joins a jail from inside another namespace of processes" {
    jail nested
    must run_as_user "$BRIG" -m casual -j nested -- true
    must_exit 125 run_as_user unshare --user --map-current-user --pid --fork --mount-proc "$BRIG" -m casual -j nested -- true
    output_has "cannot be joined from here"
    must run_as_user "$BRIG" -m casual -j nested -- true
}

# ---- what changes are laid over with -----------------------------------------------------------------

# mounted COMMAND…: as the user, with something mounted below the home.
mounted() {
    "$LIB_ROOT/tests/with-fuse" unshare -m --propagation private sh -c '
        mount -t tmpfs -o "mode=0755,uid=$(id -u "$2"),gid=$(id -g "$2")" none "$1/mmounted" && echo below >"$1/mmounted/file" && chown "$2:" "$1/mmounted/file" && user=$2 && home=$1 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" "$@"' - "$H" "$LIB_USER" "$@"
}

@test "a home with a mount below it is laid over by fuse-overlayfs, and its changes are not mixed with others" {
    lib_is_root || cannot "mounts need root"
    needs fuse-overlayfs
    made mmounted mlive mdir .ssh
    jail fuse
    run_as_user sh -c "mkdir -p $H/mmounted $H/mdir $H/.ssh; echo real >$H/mlive; echo old >$H/mdir/old; echo token >$H/.ssh/id_test"
    must mounted "$BRIG" -m casual -j fuse -- sh -c 'cat ~/mmounted/file ~/mlive; cat ~/.ssh/id_test 2>/dev/null; echo changed >~/mlive; echo changed >~/mmounted/file; rm -r ~/mdir; mkdir ~/mdir; ls -A ~/mdir; touch here; cat ~/mlive'
    output_lacks token
    output_lacks old
    [ "$output" = "below
real
changed" ]
    [ "$(cat "$H/mlive" "$H/mdir/old")" = "real
old" ]
    [ -e here ]
    # The same jail, a second run at the same time and a mask that holds at once.
    rm -f begun go
    mounted "$BRIG" -m casual -j fuse -- sh -c 'cat ~/mlive; echo >begun; for i in $(seq 100); do [ -e go ] && break; sleep 0.1; done; cat ~/mlive ~/mmounted/file >seen 2>/dev/null; true' 3>&- &
    local run=$!
    wait_for begun
    must mounted "$BRIG" -m casual -j fuse --mask mmounted -- sh -c 'cat ~/mmounted/file 2>/dev/null; cat ~/mlive'
    [ "$output" = changed ]
    run_as_user touch go
    wait "$run"
    [ "$(cat seen)" = changed ]
    # Alone it is mounted anew, when the old one has ended.
    must mounted "$BRIG" -m casual -j fuse --mask .profile -- sh -c 'cat ~/.profile 2>/dev/null; echo more >~/mmore'
    [ "$output" = "" ]
    must mounted "$BRIG" -m casual -j fuse -- cat "$H/mlive" "$H/mmore"
    [ "$output" = "changed
more" ]
    must mounted "$BRIG" -u -j fuse
    # Without the mount the kernel does it, which does not know the other's marks.
    must run_as_user "$BRIG" -m casual -j fuse -- sh -c 'cat ~/mlive ~/mdir/old'
    output_has real
    output_has old
    output_has "set aside in '$H/.local/share/brig/fuse.changes.aside-1'"
    [ "$(cat "$H/.local/share/brig/fuse.changes.aside-1/mlive")" = changed ]
    must run_as_user "$BRIG" -m casual -j fuse -- true
    output_lacks "set aside"
    must run_as_user "$BRIG" -u -j fuse
}

@test "changes with marks that do not hold are set aside, never deleted" {
    needs python3
    local changes
    jail marks
    changes=$H/.local/share/brig/marks.changes
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'echo first >~/mkept'
    must run_as_user "$BRIG" -u -j marks
    run_as_user python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.opaque", b"y")' "$changes"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'test ! -e ~/mkept; echo second >~/mkept'
    output_has "set aside in '$changes.aside-1'"
    [ "$(cat "$changes.aside-1/mkept")" = first ]
    must run_as_user "$BRIG" -u -j marks
    # The twin: what fits stays.
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'cat ~/mkept; rm ~/.bashrc 2>/dev/null; true'
    [ "$output" = second ]
    must run_as_user "$BRIG" -u -j marks
    ! lib_is_root || { # as an overlay of root's leaves them
        mknod "$changes/.gone" c 0 0
        must run_as_user "$BRIG" -m casual -j marks -- sh -c 'test ! -e ~/mkept'
        output_has "set aside in '$changes.aside-2'"
        [ "$(cat "$changes.aside-2/mkept")" = second ]
        must run_as_user "$BRIG" -u -j marks
    }
    # Where they are elsewhere by a link, they are set aside there.
    run_as_user mkdir "$SCRATCH/disk"
    run_as_user rm -r "$changes"
    run_as_user ln -s "$SCRATCH/disk" "$changes"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'echo third >~/mkept'
    must run_as_user "$BRIG" -u -j marks
    run_as_user python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.redirect", b"x")' "$SCRATCH/disk"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c "test ! -e ~/mkept; ls -A '$SCRATCH/disk.aside-1' '$SCRATCH/disk' 2>/dev/null | grep -v :; true"
    output_has "set aside in '$SCRATCH/disk.aside-1'"
    output_lacks mkept
    [ "$(cat "$SCRATCH/disk.aside-1/mkept")" = third ]
    must run_as_user "$BRIG" -u -j marks
}

@test "a pattern that is spelt as a path hides what it matches in the home, and is refused elsewhere" {
    made mpattern
    jail pattern
    run_as_user sh -c "mkdir -p $H/mpattern; echo token >$H/mpattern/a.key; echo open >$H/mpattern/b"
    must run_as_user "$BRIG" -m casual -j pattern -D -- cat "$H/mpattern/a.key"
    must_fail run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/*.key" -- cat "$H/mpattern/a.key"
    output_lacks token
    must run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/*.key" -- cat "$H/mpattern/b"
    must_exit 125 run_as_user "$BRIG" -m casual -j pattern -D --mask '/usr/*.key' -- true
    output_has "'/usr/*.key' is a pattern, and those are for the home directory alone"
    # What is really called so is no pattern.
    run_as_user sh -c "echo token >$H/mpattern/'[x]'"
    run run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/[x]" -- cat "$H/mpattern/[x]"
    output_lacks token
}
