#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig enter: one more command in a jail in which something runs, under the same restrictions; as an ordinary
# user, as root for that user, and as root. What is denied is denied as in the run, and has a twin.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

bats_require_minimum_version 1.5.0
load lib

setup() {
    RUNS=
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
    jails_setup
}

teardown() {
    local pid
    for pid in $RUNS; do
        kill "$pid" 2>/dev/null || true
    done
    jails_teardown
}

# start WHO NAME OPTIONS… -- CMD…: a run in the background that says when it is there; RUN is its brig.
# What it prints is in $SCRATCH/out-NAME.
start() {
    local who=$1 name=$2 own=()
    shift 2
    [ "$who" != root ] || own=(-d .) # the directory is the user's
    : >"$SCRATCH/out-$name"
    JAILS="$JAILS $who:$name"
    by "$who" -j "$name" "${own[@]}" "$@" </dev/null >"$SCRATCH/out-$name" 2>&1 3>&- &
    is_ready "$name" $!
}

# is_ready NAME PID: waits for it; the process becomes brig, or is above it.
is_ready() {
    await grep -qs ^ready "$SCRATCH/out-$1" || {
        echo "the run says:" >&2
        cat "$SCRATCH/out-$1" >&2
        ps -ww -o pid,ppid,stat,wchan:20,args --forest -p "$2" --ppid "$2" >&2
        return 1
    }
    RUN=$(find_brig "$2")
    RUNS="$RUNS $RUN"
    # The command may say so before brig has published the run.
    await is_published "$RUN"
}

is_published() {
    [ -n "$(find "/proc/$1/fd" -lname '/memfd:brig-run*' 2>/dev/null)" ]
}

WAIT='echo ready; while :; do sleep 1; done'

@test "in every mode, by everyone, it is in the namespaces of the run and has its status" {
    local pair who mode name
    for pair in $(pairs_of "$(everyone root)" casual bare strict sealed); do
        who=${pair%:*} mode=${pair#*:} name=in-${pair/:/-}
        start "$who" "$name" -m "$mode" -- sh -c 'for n in user mnt pid ipc uts net cgroup; do readlink /proc/self/ns/$n; done; echo ready; while :; do sleep 1; done'
        must by "$who" enter "$name" sh -c 'for n in user mnt pid ipc uts net cgroup; do readlink /proc/self/ns/$n; done; echo ready'
        [ "$output" = "$(cat "$SCRATCH/out-$name")" ]
        must by "$who" enter "$name" -- sh -c 'pwd; tr "\0" " " </proc/1/cmdline'
        output_has "brig-init 2 n"
        output_has "$SCRATCH/project"
        must_exit 7 by "$who" enter "$name" sh -c 'exit 7'
        must_exit 143 by "$who" enter "$name" sh -c 'kill -TERM $$'
        run -127 by "$who" enter "$name" no-such-program
        must_exit 126 by "$who" enter "$name" /etc
        kill "$RUN"
    done
}

@test "it starts the user's shell, with what is typed into it" {
    start user shell -m casual -- sh -c "$WAIT"
    run by user enter shell <<<'echo "$0 is $SHELL in $BRIG_JAIL"; exit 9'
    [ "$status" -eq 9 ]
    local shell
    shell=$(getent passwd "$LIB_USER" | cut -d: -f7)
    output_has "$shell is $shell in shell"
}

@test "it has no capability, no_new_privs and the filter, exactly as the run" {
    local pair who profile
    for pair in $(pairs_of "$(everyone root)" code dev); do
        who=${pair%:*} profile=${pair#*:}
        start "$who" "restrictions-$who-$profile" -m sealed --seccomp "$profile" -- sh -c "grep -E '^(Cap|NoNew|Seccomp|Uid|Gid|Groups)' /proc/self/status; $WAIT"
        must by "$who" enter "restrictions-$who-$profile" grep -E '^(Cap|NoNew|Seccomp|Uid|Gid|Groups)' /proc/self/status
        [ "$output"$'\nready' = "$(cat "$SCRATCH/out-restrictions-$who-$profile")" ]
        output_has 'CapBnd:	0000000000000000'
        output_has 'NoNewPrivs:	1'
        kill "$RUN"
    done
    # The filter is that of the profile: dev lets a network socket be made, code does not.
    start user filter-code -m sealed --seccomp code -- sh -c "$WAIT"
    must_fail by user enter filter-code python3 -c 'import socket; socket.socket()'
    start user filter-dev -m sealed --seccomp dev -- sh -c "$WAIT"
    must by user enter filter-dev python3 -c 'import socket; socket.socket()'
    # And mounting is for nobody.
    must_fail by user enter filter-dev unshare -Ur true
    must run_as_user unshare -Ur true
}

@test "Landlock stands: without any other wall in the way it is Landlock that refuses" {
    [ "$(landlock_abi)" -ge 1 ] || cannot "this kernel has no Landlock"
    start user locked -m bare -- sh -c "$WAIT"
    start user unlocked -m bare --disable landlock -- sh -c "$WAIT"
    # A file that may be written to by its owner, and that nothing else protects.
    must_fail by user enter locked sh -c 'echo x >/proc/self/comm'
    must by user enter unlocked sh -c 'echo x >/proc/self/comm'
}

# landlock_abi: 0 where there is none.
landlock_abi() {
    run_as_user "$BRIG" doctor --json | sed -n 's/.*"id":"landlock"[^}]*"detail":"ABI \([0-9]*\)".*/\1/p' | grep . || echo 0
}

@test "Landlock keeps signals apart" {
    [ "$(landlock_abi)" -ge 6 ] || skip "Landlock below ABI 6 does not know of signals"
    start user apart-on -m bare -- sh -c "$WAIT"
    start user apart-off -m bare --disable landlock -- sh -c "$WAIT"
    must_fail by user enter apart-on sh -c 'kill -0 2'
    must by user enter apart-off sh -c 'kill -0 2'
}

@test "a jail cannot plant a symlink where its grant is, nor above it, for who enters to follow" {
    [ "$(landlock_abi)" -ge 1 ] || cannot "this kernel has no Landlock"
    run_as_user mkdir -p "$SCRATCH/granted"
    start user planted -m casual -d "$SCRATCH/granted:$HOME_OF_USER/deep/er/granted" -- sh -c "
        mv ~/deep ~/moved; mv ~/deep/er ~/deep/moved; rmdir ~/deep/er/granted
        ln -sT / ~/deep; ln -sT / ~/deep/er; ln -sT / ~/deep/er/granted; mkdir ~/free && mv ~/free ~/moved && $WAIT"
    must by user enter planted sh -c 'test -d ~/moved && test ! -L ~/deep && test ! -L ~/deep/er && test ! -L ~/deep/er/granted'
    must_fail by user enter planted sh -c 'echo x >/proc/self/comm'
    must by user enter planted sh -c 'echo x >~/file && echo y >~/deep/er/granted/file'
    [ "$(cat "$SCRATCH/granted/file")" = y ]
}

@test "what is masked and protected in the run is so in what is entered" {
    local who
    run_as_user sh -c 'git init -q . && echo secret >.env && echo plain >file && mkdir .vscode'
    for who in $(everyone root); do
        [ "$who" != root ] || continue # the project is not root's
        start "$who" "mask-$who" -m casual --mask ./.env -- sh -c "$WAIT"
        must by "$who" enter "mask-$who" cat .env file
        [ "$output" = plain ]
        must_fail by "$who" enter "mask-$who" sh -c 'echo x >.vscode/tasks.json'
        # The git directory is the run's private one.
        must by "$who" enter "mask-$who" sh -c 'echo x >.git/hooks/planted'
        [ ! -e .git/hooks/planted ]
        must by "$who" enter "mask-$who" sh -c "echo x >made-$who"
        [ -e "made-$who" ]
        kill "$RUN"
    done
    # Also what the host replaces while it runs.
    start user mask-later -m casual --mask ./.env -- sh -c "$WAIT"
    run_as_user sh -c 'echo secret2 >new && mv new .env'
    await_not eval 'by user enter mask-later cat .env | grep -q .'
}

@test "nothing of the host's descriptors comes along, but the streams" {
    start user fds -m casual -- sh -c "$WAIT"
    echo host-file >"$SCRATCH/host-file"
    must run_as_user bash -c "exec 7<$SCRATCH/host-file 9</etc/hostname; '$BRIG' enter fds sh -c 'ls /proc/self/fd'"
    [ "$output" = $'0\n1\n2\n3' ] # 3 is the directory that is being listed
    # What is given as standard input is given.
    run by user enter fds cat <"$SCRATCH/host-file"
    [ "$output" = host-file ]
}

@test "variables pass by the run's rules, not by those of today" {
    start user env -m casual --unsetenv 'HIDDEN*' --setenv SET=here -- sh -c "$WAIT"
    must run_as_user env HIDDEN_ONE=secret-1 MY_TOKEN=secret-2 PLAIN=seen "$BRIG" enter env env
    output_has PLAIN=seen
    output_has SET=here
    output_has BRIG_JAIL=env
    output_lacks secret-
}

@test "limits: the memory of the run is all there is, for what is entered too" {
    lib_is_root || cannot "only root has groups everywhere"
    local eat='import sys; b = bytearray(200 << 20); print(len(b))'
    start root small -m sealed --memory 100M -- sh -c "$WAIT"
    must_exit 137 by root enter small python3 -c "$eat"
    start root large -m sealed --memory 500M -- sh -c "$WAIT"
    must by root enter large python3 -c "$eat"
    start root files -m sealed --open-files 50 -- sh -c "$WAIT"
    must by root enter files sh -c 'ulimit -n'
    [ "$output" = 50 ]
}

@test "when the run ends, so does what was entered, also while its brig is stopped" {
    start user ends -m casual -- sh -c "$WAIT"
    by user enter ends sh -c 'echo inside; sleep 1000' </dev/null >"$SCRATCH/inside" 2>"$SCRATCH/said" 3>&- &
    local entering=$! brig init
    init=$(pgrep -P "$RUN" -x brig-init)
    await grep -qs inside "$SCRATCH/inside"
    brig=$(find_brig "$entering")
    kill -STOP "$brig"
    kill "$RUN"
    await has_ended "$RUN"
    await has_ended "$init"
    kill -CONT "$brig"
    local status=0
    wait "$entering" || status=$?
    [ "$status" -eq 137 ]
    grep "run of process $RUN has ended" "$SCRATCH/said"
}

@test "what is entered ends with its brig, and the run goes on" {
    start user goes-on -m casual -- sh -c "$WAIT"
    local mark=1000.$BASHPID$RANDOM # of this process and no other
    by user enter goes-on sh -c "echo inside; exec sleep $mark" </dev/null >"$SCRATCH/inside" 3>&- &
    local entering=$!
    await grep -qs inside "$SCRATCH/inside"
    await pgrep -f "^sleep $mark"
    kill -KILL "$(find_brig "$entering")"
    await_not pgrep -f "^sleep $mark"
    must by user enter goes-on true
}

@test "of several runs the newest is taken, and --pid takes any" {
    local first second
    start user both -m casual --setenv WHICH=first -- sh -c "$WAIT"
    first=$RUN
    start user both -m casual --setenv WHICH=second -- sh -c "$WAIT"
    second=$RUN
    [ "$first" != "$second" ]
    must by user enter both sh -c 'echo $WHICH'
    output_has "entering the newest, $second. For others use --pid: $first"
    output_has second
    must by user enter --pid "$first" sh -c 'echo $WHICH'
    [ "$output" = first ]
    must by user enter --pid="$second" -- sh -c 'echo $WHICH'
    [ "$output" = second ]
    # A number that is no jail's name is a pid.
    must by user enter "$first" sh -c 'echo $WHICH'
    [ "$output" = first ]
}

@test "a sealed run, which no holder knows, is found by its name and by its pid" {
    start user unheld -m sealed -- sh -c "$WAIT"
    must by user enter unheld echo by-name
    output_has by-name
    must by user enter --pid "$RUN" echo by-pid
    output_has by-pid
}

@test "root for a user enters what the user started, and the user not what root did" {
    lib_is_root || cannot "it takes root"
    start user own -m casual -- sh -c "$WAIT"
    must by sudo enter own id -u
    [ "$output" = "$(id -u "$LIB_USER")" ]
    start sudo roots -m casual -- sh -c "$WAIT"
    must_exit 125 by user enter roots true
    output_has "sudo brig enter roots"
    must_exit 125 by user enter --pid "$RUN" true
    output_has "is not yours"
    must by sudo enter roots true
}

@test "a group that the run has not, and that cannot be dropped, keeps out" {
    lib_is_root || cannot "it takes root to have any group"
    local ids
    ids="--reuid $(id -u "$LIB_USER") --regid $(id -g "$LIB_USER") --inh-caps=-all"
    JAILS="$JAILS user:groups"
    # shellcheck disable=SC2086
    HOME=$HOME_OF_USER setpriv $ids --clear-groups "$BRIG" -j groups -m casual -- sh -c "$WAIT" \
        </dev/null >"$SCRATCH/out-groups" 2>&1 3>&- &
    is_ready groups $!
    # shellcheck disable=SC2086
    must_exit 125 env HOME="$HOME_OF_USER" setpriv $ids --groups 54321 "$BRIG" enter groups true
    output_has "has not the group 54321"
    # shellcheck disable=SC2086
    must env HOME="$HOME_OF_USER" setpriv $ids --clear-groups "$BRIG" enter groups true
}

lesser() { # lesser WHO CMD…
    if [ "$1" = root ]; then
        BRIG_CONFIG_DIR=$ROOT_STORE as "$@"
    else
        as "$@"
    fi
}

@test "on a lesser kernel it enters all the same, or not at all" {
    [ -x "$WITHOUT" ] || cannot "no without in $BRIG_PROBES: build the test tools"
    local who call pairs calls=(clone3 close_range clone3,close_range pidfd_open)
    local walls=(setns=EPERM landlock seccomp capset=EPERM)
    pairs=" $(pairs_of "$(each_user)" "${calls[@]}") $(pairs_of "$(each_user)" "${walls[@]}") "
    for who in $(each_user); do
        start "$who" "lesser-$who" -m sealed -- sh -c "grep -E '^(Cap|NoNew|Seccomp:|Uid)' /proc/self/status; $WAIT"
        for call in "${calls[@]}"; do
            [[ $pairs == *" $who:$call "* ]] || continue
            must lesser "$who" "$WITHOUT" "$call" -- \
                "$BRIG" enter --pid "$RUN" sh -c "grep -E '^(Cap|NoNew|Seccomp:|Uid)' /proc/self/status; ls /proc/self/fd >&2; echo ready"
            [ "$(grep -v '^[0-9]' <<<"$output")" = "$(cat "$SCRATCH/out-lesser-$who")" ]
            [ "$(grep '^[0-9]' <<<"$output" | tr '\n' ' ')" = "0 1 2 3 " ]
        done
        # A wall that the run has and that cannot be raised: nothing is started.
        for call in "${walls[@]}"; do
            [[ $pairs == *" $who:$call "* ]] || continue
            must_exit 125 lesser "$who" "$WITHOUT" "$call" -- \
                "$BRIG" enter --pid "$RUN" touch "$SCRATCH/project/made"
            [ ! -e "$SCRATCH/project/made" ]
        done
        kill "$RUN"
    done
}

@test "errors say what to do" {
    must_exit 125 by user enter
    output_has "brig enter JAIL"
    must_exit 125 by user enter no-such-jail
    output_has "there is no jail 'no-such-jail'"
    must by user -j idle -m casual true
    JAILS="$JAILS user:idle"
    must_exit 125 by user enter idel
    output_has "there is no jail 'idel'. Did you mean 'idle'?"
    must_exit 125 by user enter idle
    output_has "nothing runs in the jail 'idle'"
    output_has "brig -j idle"
    must_exit 125 by user enter --pid $$
    must_exit 125 by user enter --pid nonsense
    output_has nonsense
    must_exit 125 by user enter --pid
    must_exit 125 by user enter --frobnicate idle
    output_has "brig run enter"
    start user restrictions-off -m sealed --disable namespaces -- sh -c "$WAIT"
    must_exit 125 by user enter restrictions-off true
    output_has "no namespaces"
}

@test "a process in a jail that claims to supervise a run is not believed" {
    start user claims -m casual -- python3 -c '
import fcntl, os, time
fd = os.memfd_create("brig-run", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
os.write(fd, b"brig-run")
fcntl.fcntl(fd, 1033, 15)
print("ready", flush=True)
time.sleep(1000)'
    local inside
    inside=$(pgrep -u "$LIB_USER" -f '^python3 -c .*memfd_create')
    must_exit 125 by user enter --pid "$inside" true
    output_has "is not a brig whose run"
    must by user enter claims true
}

# Looks, as fast as it can, into every process that appears in the jail, and tells whom it met, and what
# it got to see of whom: by the name it has afterwards, as a brig that became the command was one before.
PEEK='
import ctypes, os, sys
libc = ctypes.CDLL(None)
own, seen = os.getpid(), set()
def name(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except OSError:
        return "gone"
def tell(what, pid):
    line = f"{name(pid)} {what}"
    if line not in seen:
        seen.add(line)
        print(line, flush=True)
def links(pid):
    try:
        paths = [f"fd/{n}" for n in os.listdir(f"/proc/{pid}/fd")]
        tell("list of fds", pid)
    except OSError:
        paths = []
    for path in ["exe", "cwd", "root"] + paths:
        try:
            tell(path + ":" + os.readlink(f"/proc/{pid}/{path}"), pid)
        except OSError:
            pass
def read(path, at=0):  # of who is dying these can be opened, and are empty
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.pread(fd, 16, at)
        finally:
            os.close(fd)
    except OSError:
        return b""
def files(pid):
    if read(f"/proc/{pid}/environ"):
        tell("environ", pid)
    maps = read(f"/proc/{pid}/maps")
    if maps:
        tell("maps", pid)
        if read(f"/proc/{pid}/mem", int(maps.split(b"-")[0], 16)):
            tell("mem", pid)
def trace(pid):
    if libc.ptrace(0x4206, int(pid), 0, 0) == 0:  # SEIZE, INTERRUPT, DETACH
        libc.ptrace(0x4207, int(pid), 0, 0)
        os.waitpid(int(pid), 0x40000000)
        tell("trace", pid)
        libc.ptrace(17, int(pid), 0, 0)
print("ready", flush=True)
while not os.path.exists("stop"):
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) not in (1, own):
            tell("met", pid)
            links(pid), files(pid), trace(pid)
'

# met NAME: enters once more; whether brig and the command have both been met by now, and what TWIN lists is told.
met() {
    local line
    by user enter "$1" sleep 0.05 </dev/null >/dev/null
    for line in 'brig met' 'sleep met' "${TWIN[@]}"; do
        grep -q "^$line\$" "$SCRATCH/out-$1" || return 1
    done
}

# peek NAME OPTIONS…: lets it look at many entries; what it told is in $SCRATCH/told.
peek() {
    local name=$1
    shift
    start user "$name" -m casual --seccomp dev "$@" -- python3 -c "$PEEK"
    # What it must have met before its silence about anything else proves something.
    await met "$name"
    for _ in 1 2 3 4 5; do
        by user enter "$name" sleep 0.05 </dev/null >/dev/null
    done
    run_as_user touch stop
    await has_ended "$RUN"
    run_as_user rm stop
    grep -v '^ready$\|^gone ' "$SCRATCH/out-$name" >"$SCRATCH/told" || true
    cat "$SCRATCH/told"
}

@test "from inside nobody can look into what enters, or trace it" {
    local TWIN=('sleep trace' 'sleep exe:.*/sleep' 'sleep mem')
    # Without Landlock, and with the loosest filter, nothing else is in the way.
    peek peek --disable landlock
    # The twin: what was entered, once it is itself, is a process of the jail like any other.
    grep -q '^sleep trace$' "$SCRATCH/told"
    grep -q '^sleep exe:.*/sleep$' "$SCRATCH/told"
    grep -q '^sleep mem$' "$SCRATCH/told"
    # Before that it was met, and that is all.
    grep -q '^brig met$' "$SCRATCH/told"
    [ -z "$(grep '^brig' "$SCRATCH/told" | grep -v ' met$')" ]
    [ -z "$(grep -F "$BRIG" "$SCRATCH/told")" ]
}

@test "with Landlock nobody inside can look into what was entered either" {
    [ "$(landlock_abi)" -ge 1 ] || cannot "this kernel has no Landlock"
    peek apart
    grep -q '^sleep met$' "$SCRATCH/told"
    # The numbers of open files are for whoever has the uid; what is behind them is not.
    [ -z "$(grep -v ' met$\| list of fds$' "$SCRATCH/told")" ]
}
