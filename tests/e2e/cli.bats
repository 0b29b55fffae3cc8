#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command line of brig: its syntax, its verbs, its exit statuses, and what it refuses.

load lib

# Everything here is about the mode sealed, unless it says otherwise.
setup() {
    scratch_make user
    mkdir "$SCRATCH/config"
    echo 'mode sealed' >"$SCRATCH/config/default.conf"
    export BRIG_CONFIG_DIR=$SCRATCH/config
    cd "$SCRATCH" || return
}

teardown() {
    cd /
    scratch_remove
}

brig() {
    run_as_user "$BRIG" "$@"
}

# in_directory FOLDER COMMAND...: run there.
in_directory() {
    (cd "$1" && "${@:2}")
}

# brig_in FOLDER ARGS...: started there.
brig_in() {
    local folder=$1
    shift
    (cd "$folder" && run_as_user "$BRIG" "$@")
}

@test "help fits 80 columns, is on stdout, and names every option once" {
    must brig --help
    [ -z "$(printf '%s\n' "$output" | awk 'length > 80')" ]
    [ -z "$(printf '%s\n' "$output" | grep -oE ' --[a-z-]+[!?]? ' | sort | uniq -d | grep -v -- '--dry-run')" ]
    local text=$output
    must brig help
    [ "$output" = "$text" ]
    run bash -c '"$1" --help 2>&1 >/dev/null' - "$BRIG"
    [ -z "$output" ]
}

@test "version is printed by verb and by option" {
    must brig version
    [[ $output == "brig "[0-9]* ]]
    local text=$output
    must brig --version
    [ "$output" = "$text" ]
}

@test "an unknown option is refused on one line, with status 125, and nothing runs" {
    must_exit 125 brig --frobnicate touch made
    [ "${#lines[@]}" -eq 1 ]
    output_has "'--frobnicate'"
    output_has "brig --help"
    [ ! -e made ]
    must brig touch made
    [ -e made ]
}

@test "a wrong value is refused by name, with what is allowed" {
    must_exit 125 brig --net bogus true
    output_has "'bogus'"
    output_has "none, loopback, allow, ask, open, host or learn"
    must_exit 125 brig --timeout fast true
    output_has "'fast'"
    must_exit 125 brig --timeout
    output_has "needs a value"
}

@test "options in all their forms reach the policy" {
    for form in "--timeout 7s" "--timeout=7s"; do
        # shellcheck disable=SC2086 # two words are meant
        must brig $form --dry-run
        output_has 7000
    done
    must brig -r/usr --dry-run
    output_has "/usr"
    must brig -Dr /usr --dry-run
    output_has "/usr"
    output_lacks "read-write  $SCRATCH" # it is only hidden
    must brig --dry-run --json
    must python3 -c 'import json, sys; json.loads(sys.argv[1])' "$output"
}

@test "a verb with words it does not know does nothing and says how to run the program" {
    must_exit 125 brig doctor foo
    output_has "brig run doctor foo"
    must_exit 125 brig version foo
    output_has "brig run version foo"
    must_exit 125 brig help no-such-verb
    output_has "there is no topic 'no-such-verb'. See brig help"
    output_has "brig run help no-such-verb"
}

@test "an option in the wrong place, or without its value, is named as that" {
    must_exit 125 brig apply src --dry-run
    output_has "options come before other words: write brig apply --dry-run"
    must_exit 125 brig undo 3 --force
    output_has "write brig undo --force"
    must_exit 125 brig diff --patch
    output_has "--patch needs a value. See brig diff --help"
    must_exit 125 brig status -j
    output_has "-j needs a value"
    must_exit 125 brig apply --nonsense
    output_has "brig apply does not take '--nonsense'"
}

@test "a near miss is told what may have been meant, another one where to look" {
    touch "$SCRATCH/config/idle.jail"
    must_exit 125 brig --memroy 1G true
    output_has "unknown option '--memroy'. Did you mean '--memory'?"
    must_exit 125 brig --nonsense true
    output_has "unknown option '--nonsense'. See brig --help"
    must_exit 125 brig --mode casul true
    output_has "Did you mean 'casual'?"
    must_exit 125 brig --net opne true
    output_has "Did you mean 'open'?"
    must_exit 125 brig --seccomp dve true
    output_has "Did you mean 'dev'?"
    must_exit 125 brig --allow @npmm true
    output_has "unknown preset '@npmm'"
    output_has "Did you mean '@npm'?"
    must_exit 125 brig --inject '@gihub env:X' true
    output_has "Did you mean '@github'?"
    for verb in stop rm; do
        must_exit 125 brig "$verb" idel
        output_has "there is no jail 'idel'. Did you mean 'idle'?"
        must_exit 125 brig "$verb" other
        output_has "there is no jail 'other'. See brig list"
        must_exit 125 brig "$verb" -rf idle
        output_has "brig $verb has no option '-rf'"
    done
    must_exit 125 brig cp idel:x .
    output_has "Did you mean 'idle'?"
    must_exit 125 brig mask -j idel .x
    output_has "Did you mean 'idle'?"
    [ -e "$SCRATCH/config/idle.jail" ]
    # A verb, unless there is such a program.
    must_exit 127 brig lsit
    output_has "Did you mean 'brig list'?"
    printf '#!/bin/sh\necho "I am lsit"\n' >lsit
    chmod 755 lsit
    PATH=$SCRATCH:$PATH must brig lsit
    [ "$output" = "I am lsit" ]
    must_exit 127 brig no-such-program-anywhere
    output_lacks "Did you mean"
    must_exit 125 brig help lsit
    output_has "Did you mean 'list'?"
}

@test "what would have no effect is refused or warned of" {
    # A restriction that cannot hold.
    must_exit 125 brig --net host --deny x.example true
    output_has "'deny x.example' cannot hold with the network 'host'"
    for limit in --net-connections=5 --net-bytes=5M --net-idle=5s; do
        must_exit 125 brig --net host "$limit" true
        output_has "cannot hold with the network 'host'"
    done
    must brig --net host true
    must brig --net none --deny x.example true
    # What is mistyped, or goes nowhere.
    must brig --setenv NO_SUCH_VARIABLE true
    output_has "warning: --setenv NO_SUCH_VARIABLE: the variable is not set"
    must run_as_user env SOME_VARIABLE=x "$BRIG" --setenv SOME_VARIABLE sh -c 'echo "$SOME_VARIABLE"'
    [ "$output" = x ]
    must brig --net none --net-log log true
    output_has "warning: --net-log: nothing is logged with the network 'none'"
}

@test "every verb tells its usage with --help, and does nothing" {
    local verb
    for verb in explain why list enter stop rm cp mask unmask init doctor help version; do
        must brig "$verb" --help
        output_has "Usage: brig $verb"
        local text=$output
        must brig "$verb" -h
        [ "$output" = "$text" ]
    done
    must brig apply --help
    [ -z "$(printf '%s\n' "$output" | awk 'length > 80')" ]
    output_has "[--conflict mine|theirs|skip|merge]"
    output_has "[PATH|GLOB...]"
    printf '#!/bin/sh\necho "I am doctor $*"\n' >doctor
    chmod 755 doctor
    PATH=$SCRATCH:$PATH must brig run doctor --help
    [ "$output" = "I am doctor --help" ]
}

@test "a program named like a verb runs by run and by --" {
    printf '#!/bin/sh\necho "I am doctor $*"\n' >doctor
    chmod 755 doctor
    for form in run --; do
        PATH=$SCRATCH:$PATH must brig "$form" doctor foo
        [ "$output" = "I am doctor foo" ]
    done
}

@test "what follows the command is the command's, options too" {
    must brig echo --timeout -D -- x
    [ "$output" = "--timeout -D -- x" ]
    must brig -- echo -n -- x
    [ "$output" = "-- x" ]
}

@test "exit statuses are the command's, 128+n, 124, 125, 126 and 127" {
    must_exit 7 brig sh -c 'exit 7'
    must_exit 137 brig sh -c 'kill -KILL $$'
    must_exit 124 brig --timeout 200ms --grace 0 sleep 60
    output_has "brig: ended after 200ms (--timeout)"
    must_exit 125 brig --mode nonsense true
    echo text >plain
    must_exit 126 brig ./plain
    must_exit 127 brig no-such-program-anywhere
}

@test "the working directory is granted, and is where the command starts" {
    must brig sh -c 'pwd; echo new >file'
    [ "$output" = "$SCRATCH" ]
    [ "$(cat file)" = new ]
}

@test "a working directory of somebody else's is granted with a word" {
    lib_is_root || cannot "only root can give a directory away"
    mkdir theirs
    chown nobody theirs
    must brig_in theirs -v true
    output_has "the working directory '$SCRATCH/theirs' belongs to another user"
    must brig_in theirs -v -D true
    output_lacks "belongs to"
    must brig -v true
    output_lacks "belongs to"
}

@test "what is missing, or cannot be, is said with the remedy" {
    must_exit 125 brig -d nothing true
    output_has "use --dir! to create a directory, or --dir? to skip it"
    must_exit 125 brig -r nothing true
    output_has "use --rdir? to skip it"
    must_exit 125 brig --storage /etc -j any -m strict true
    output_has "Choose a directory of yours with --storage"
    as user mkdir gone
    must_exit 125 run_as_user sh -c "cd gone && rmdir ../gone && exec '$BRIG' true"
    [ "$output" = "brig: cannot find out the working directory: No such file or directory. Go into one that exists, or use -D to run without it" ]
    must_exit 125 brig mask "$(if lib_is_root; then echo "$LIB_USER_HOME"; else echo "$HOME"; fi)"
    output_has "is the whole home directory; choose the mode bare or strict"
    # The jail is known by its first process, which has its name a moment after the command has started.
    must_exit 125 brig --seccomp dev -r "$BRIG" sh -c "$AWAIT"'; await grep -q brig-init /proc/1/comm; exec "$@"' - \
        "$BRIG" -m sealed -D true
    output_has "unless it was started with --allow-nested"
    if lib_is_root; then
        # A directory of the user's that the user cannot write to.
        as user mkdir full
        chmod 0500 full
        must_exit 125 brig --storage "$SCRATCH/full" -j any -m strict true
        output_has "Keep them where you can write, by --storage DIR"
    fi
}

@test "with -D the working directory is not there, and the home is a private one" {
    echo secret >file
    must_fail brig -D cat "$SCRATCH/file"
    must brig cat "$SCRATCH/file"
    must brig -D sh -c 'pwd; echo x >"$HOME/new" && ls -A "$HOME"'
    [ "${lines[1]}" = new ]
    [ "${#lines[@]}" -eq 2 ]
}

@test "with -D and a grant that holds the working directory the command starts there" {
    mkdir -p deep/er
    chmod -R 0777 deep
    must brig_in deep/er -D -d "$SCRATCH" pwd
    [ "$output" = "$SCRATCH/deep/er" ]
}

@test "a whole home is granted only when asked for, however it is spelled" {
    local home
    if lib_is_root; then home=$LIB_USER_HOME; else home=$HOME; fi
    ln -s "$home" link
    for folder in "$home" "$SCRATCH/link" "$(dirname "$home")"; do
        must_exit 125 brig_in "$folder" true
        output_has "-D"
        output_has "-d"
    done
    must_exit 125 brig_in / true
    output_has "-D"
    must brig_in "$home" -D true
    must brig_in "$home" -d . true
    must brig_in "$home" -r . true
}

@test "the whole home of another user is granted only when asked for" {
    lib_is_root || cannot "only root can make a user"
    local home=$SCRATCH/other
    # Of somebody in the file of users, whom brig need not know otherwise.
    mkdir -m 0777 "$home" "$home/project"
    ln -s "$home" "$SCRATCH/alias"
    sed "\$ a brigother:x:1234567:1234567::$SCRATCH/alias:/bin/sh" /etc/passwd >passwd
    chown 1234567 "$home" "$home/project"
    with_passwd() {
        unshare --mount bash -c 'mount --bind "$1/passwd" /etc/passwd && cd "$2" && shift 2 && . "$1" && shift && "$@"' \
            - "$SCRATCH" "$1" "$LIB_DIR/lib.bash" "${@:2}"
    }
    must_exit 125 with_passwd "$home" as user "$BRIG" -m sealed true
    output_has "home directory"
    output_has "-d '$home'"
    must_exit 125 with_passwd "$home" as root "$BRIG" -m sealed true
    output_has "home directory"
    # What is in it is not it, and asking helps.
    must with_passwd "$home/project" as user "$BRIG" -m sealed true
    must with_passwd "$home" as user "$BRIG" -m sealed -D true
    must with_passwd "$home" as user "$BRIG" -m sealed -d . touch asked
    must with_passwd "$home" as root "$BRIG" -m sealed -d . rm asked
}

@test "root does not grant another user's directory unless asked" {
    lib_is_root || cannot "only root is root"
    local uid below
    uid=$(id -u "$LIB_USER")
    chmod 0755 "$SCRATCH"
    run_as_user mkdir of-user
    mkdir of-user/of-root
    for below in of-user of-user/of-root; do
        must_exit 125 in_directory "$below" as root "$BRIG" -m sealed true
        output_has "you are root"
        output_has "another user, $LIB_USER"
        output_has "--foreign"
        must in_directory "$below" as root "$BRIG" -m sealed -D true
        must in_directory "$below" as root "$BRIG" -m sealed --foreign touch asked
        rm "$below/asked"
        must in_directory "$below" as root "$BRIG" -m sealed -d . touch asked
        rm "$below/asked"
        run in_directory "$below" as root "$BRIG" why -m sealed .
        output_has "what holds with -D"
    done
    # With the files of the host, the jail cannot pass a directory that is closed to other users.
    chmod 0700 of-user
    must_exit 125 in_directory of-user/of-root as root "$BRIG" -m sealed --view host --foreign true
    output_has "use -m strict or sealed"
    must in_directory of-user/of-root as root "$BRIG" -m sealed --foreign true
    chmod 0755 of-user
    must in_directory of-user/of-root as root "$BRIG" -m sealed --view host --foreign true
    # Root for that user, the user, and root in a directory of its own.
    must in_directory of-user env SUDO_UID="$uid" SUDO_GID="$(id -g "$LIB_USER")" "$BRIG" -m sealed touch for-user
    must in_directory of-user as user "$BRIG" -m sealed rm for-user
    scratch_make root
    must in_directory "$SCRATCH" as root "$BRIG" -m sealed touch made
}

@test "a home is recognised by identity when HOME says so through a link" {
    mkdir fake
    chmod 0777 fake
    ln -s fake alias
    run bash -c 'cd "$2/fake" && . "$1" && run_as_user env HOME="$2/alias" "$BRIG" true' \
        - "$LIB_DIR/lib.bash" "$SCRATCH"
    [ "$status" -eq 125 ]
    output_has "home directory"
}

@test "grants with source and destination, colons in names, and taking back" {
    mkdir 'with:colon'
    echo inside >'with:colon/f'
    chmod 0666 'with:colon/f'
    must brig -D -r 'with\:colon:/data' cat /data/f
    [ "$output" = inside ]
    must_fail brig -D -r 'with\:colon:/data' sh -c 'echo x >/data/f'
    must brig -D -d 'with\:colon:/data' sh -c 'echo new >/data/f'
    must_fail brig -D -d 'with\:colon:/data' -x /data cat /data/f
    must_exit 125 brig -d a:b:c true
    output_has '\:'
}

@test "without a command the user's shell runs" {
    run bash -c '. "$1"; echo "echo shell \$0" | run_as_user "$BRIG"' - "$LIB_DIR/lib.bash"
    [ "$status" -eq 0 ]
    output_has "shell /bin/"
}

@test "the result is written as JSON to a file, replacing it in one step" {
    echo old >result.json
    ln result.json hard
    chmod 0666 result.json
    must_exit 3 brig --result result.json sh -c 'exit 3'
    must python3 -c 'import json; r = json.load(open("result.json"))
assert r["outcome"] == "exited" and r["exit_code"] == 3, r'
    [ "$(cat hard)" = old ]
    [ -z "$(find . -name '.brig-new*')" ]
}

@test "what brig writes does not go through a link that a jail may have made" {
    local pair who option home own rooted
    as user mkdir -p project/real outside
    cd project
    for pair in $(pairs_of "$(each_user)" --result --net-log); do
        who=${pair%:*} option=${pair#*:}
        # An earlier run leaves it in what it can write to.
        must as "$who" "$BRIG" -d "$PWD" ln -sfn ../outside "$PWD/out"
        must_exit 125 as "$who" "$BRIG" -d "$PWD" "$option" out/file true
        output_has "'out/file' leads through the symbolic link '$PWD/out', which a program in a jail may have made"
        output_has "name the path that it leads to"
        must_exit 125 as "$who" "$BRIG" -d "$PWD" "$option" "$PWD/real/../out/file" true
        # This run may write elsewhere only.
        must_exit 125 as "$who" "$BRIG" -D "$option" out/file true
        (cd ../outside && must_exit 125 as "$who" "$BRIG" -d "$PWD" "$option" ../project/out/file true)
        # By a link of the user's own, too.
        home=$(as "$who" sh -c 'echo ~')
        own=$home/.brig-own-$$
        as "$who" ln -sfn "$PWD/out" "$own"
        must_exit 125 as "$who" "$BRIG" -d "$PWD" "$option" "$own/file" true
        [ -z "$(ls ../outside)" ]
        # The twins: a directory, and a link in the home directory.
        as "$who" ln -sfn "$PWD/real" "$own"
        rm -f real/file
        must as "$who" "$BRIG" -d "$PWD" "$option" real/file true
        [ -e real/file ]
        rm -f real/file
        must as "$who" "$BRIG" -d "$PWD" "$option" "$own/file" true
        rm -f "$own"
        [ -e real/file ]
        rm -f real/file out
    done
    # A link of root's in a directory of root's is followed for a user; root's jails could have made it.
    if lib_is_root; then
        rooted=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
        chmod 0755 "$rooted"
        ln -s "$PWD/real" "$rooted/link"
        LIB_SCRATCHES="$LIB_SCRATCHES $rooted"
        must as user "$BRIG" -D --result "$rooted/link/file" true
        [ -e real/file ]
        must_exit 125 as root "$BRIG" -D --result "$rooted/link/file" true
    fi
    # Round and round.
    home=$(as user sh -c 'echo ~')
    as user ln -s .brig-loop "$home/.brig-loop"
    run brig -D --result "$home/.brig-loop/file" true
    rm "$home/.brig-loop"
    [ "$status" -eq 125 ]
    output_has "cannot write '$home/.brig-loop/file'"
}

@test "the result is written to a descriptor, by number or as fd:N" {
    for where in 7 fd:7; do
        must bash -c '. "$1"; run_as_user "$BRIG" --result "$2" true 7>&1 >/dev/null' \
            - "$LIB_DIR/lib.bash" "$where"
        output_has '"outcome":"exited"'
    done
    must_exit 125 brig --result 77 touch made
    output_has "77 is not open"
    [ ! -e made ]
}

@test "a result that cannot be written is refused before anything runs" {
    must_exit 125 brig --result no/such/dir/r touch made
    [ ! -e made ]
    must brig --result /dev/null true
    [ -c /dev/null ]
}

@test "a result for a pipe nobody reads is refused instead of waited for" {
    mkfifo pipe
    chmod 0666 pipe
    must_exit 125 timeout 20 "$BASH" -c '. "$1"; run_as_user "$BRIG" --result pipe touch made' \
        - "$LIB_DIR/lib.bash"
    output_has "no process reads from the pipe 'pipe'"
    [ ! -e made ]
    [ -p pipe ]
    # With a reader it is written to.
    exec 8<>pipe
    must brig --result pipe true 8>&-
    read -r -t 10 line <&8
    exec 8>&-
    [[ $line == *'"outcome":"exited"'* ]]
}

@test "a run that could not start has a result as well" {
    must_exit 127 brig --result r.json no-such-program-anywhere
    must python3 -c 'import json; r = json.load(open("r.json"))
assert r["outcome"] == "setup_failed" or r["outcome"] == "setup-failed", r
assert r["status"] == 127 and "no-such-program" in str(r["error"]), r'
}

@test "a descriptor is passed only on purpose, and must be open" {
    echo passed >file
    must bash -c '. "$1"; run_as_user "$BRIG" --pass-fd 5 sh -c "cat <&5" 5<file' - "$LIB_DIR/lib.bash"
    [ "$output" = passed ]
    run bash -c '. "$1"; run_as_user "$BRIG" sh -c "cat <&5" 5<file' - "$LIB_DIR/lib.bash"
    [ "$status" -ne 0 ]
    output_lacks passed
    must_exit 125 brig --pass-fd 99 true
    output_has "99 is not open"
    # What brig has open itself was not given to it.
    for fd in 5 6 7 8; do
        must_exit 125 brig --pass-fd "$fd" true
        output_has "file descriptor $fd is not open"
    done
}

# start ARGS...: brig in the background with its own pid in $JOB, once the command has made `ready`.
start() {
    rm -f ready pid
    run_as_user bash -c 'echo $$ >pid; exec "$BRIG" "$@"' - "$@" 3>&- &
    WAITER=$!
    await_file ready
    JOB=$(cat pid)
}

# has_stopped: brig, which start started, has ended; sets STATUS. If it does not end, says what it does.
has_stopped() {
    STATUS=0
    if ! await has_ended "$WAITER"; then
        ps -e -o pid,ppid,pgid,stat,wchan:24,args --forest
        grep -hE '^(Pid|Sig|Shd)' "/proc/$JOB/status"
        kill -KILL "$JOB" # bats would wait for it
        return 1
    fi >&2
    wait "$WAITER" || STATUS=$?
}

# ended STATUS: what start started ends so.
ended() {
    has_stopped || return
    [ "$STATUS" -eq "$1" ] || {
        echo "status $STATUS instead of $1" >&2
        return 1
    }
}

@test "a signal to brig reaches the command" {
    for signal in TERM INT HUP QUIT USR1; do
        start sh -c "trap 'echo $signal >got; exit 9' $signal; >ready; while :; do sleep 0.05; done"
        kill -s "$signal" "$JOB"
        ended 9
        [ "$(cat got)" = "$signal" ]
    done
}

@test "a second signal within the grace ends the jail, whatever the command does" {
    start --grace 30s sh -c \
        "trap '>asked' INT; trap 'exit 5' TERM; >ready; while :; do sleep 0.05; done"
    kill -s INT "$JOB"
    await_file asked
    kill -s INT "$JOB"
    has_stopped
    [ "$STATUS" -ne 0 ]
    [ "$STATUS" -ne 125 ]

    start --grace 200ms sh -c "trap '>again' INT; trap '' TERM; >ready; while :; do sleep 0.05; done"
    kill -s INT "$JOB"
    await_file again
    # Whichever is the first that comes within the grace of the one before.
    interrupted() {
        kill -s INT "$JOB" 2>/dev/null || true
        has_ended "$WAITER"
    }
    await interrupted || true # has_stopped says more
    has_stopped
    [ "$STATUS" -ne 0 ]
    [ "$STATUS" -ne 125 ]
}

@test "a hang-up ignored outside is not passed on, as nohup means it" {
    trap '' HUP
    start sh -c "$AWAIT; >ready; await_file go; exit 4"
    kill -s HUP "$JOB"
    : >go
    ended 4
}

@test "messages are not coloured when stderr is no terminal" {
    must_exit 125 brig --nope
    [[ $output == "brig: "* ]]
}

@test "behind sudo the jail acts for the user who called" {
    lib_is_root || cannot "only root can be behind sudo"
    local uid
    uid=$(id -u "$LIB_USER")
    must env SUDO_UID="$uid" SUDO_GID="$uid" SUDO_USER="$LIB_USER" "$BRIG" sh -c 'id -un; touch mine'
    [ "$output" = "$LIB_USER" ]
    [ "$(stat -c %u mine)" = "$uid" ]
}

@test "for root itself the jail is an unprivileged user named brig" {
    lib_is_root || cannot "not root"
    must as root "$BRIG" -D sh -c 'id -un; echo "$HOME"'
    [ "${lines[0]}" = brig ]
    [ "${lines[1]}" = /home/brig ]
}

@test "the manual and the completions are what the tables say" {
    must "$LIB_ROOT/tools/check-generated" "$BUILD_DIR"
    bash -n "$LIB_ROOT/completions/brig.bash"
    needs mandoc
    must mandoc -T lint -W warning "$LIB_ROOT/man/brig.1"
}
