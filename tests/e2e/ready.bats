#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Namespaces that a jail's holder has ready for the next run: that they are used, once, by who wants
# exactly these, and are what a run would have made itself.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

# What a jail can see of its namespaces but their numbers.
LOOK='cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; id; hostname
cat /proc/sys/user/max_user_namespaces /proc/sys/user/max_inotify_watches /proc/sys/kernel/domainname
awk "NR > 1 { print \$2, \$4, \$8 }" /proc/net/tcp /proc/net/tcp6 /proc/net/udp | sort
cat /proc/net/dev | cut -d: -f1; cut -d" " -f1,4- /proc/net/if_inet6 | sort; ipcs 2>/dev/null | wc -l
ls /proc/self/fd /proc/1/task; grep Cap /proc/1/status /proc/self/status'
NUMBERS='readlink /proc/self/ns/user /proc/self/ns/ipc /proc/self/ns/uts /proc/self/ns/net | sort'

setup() {
    lib_is_root || cannot "only root can look into a holder"
    [ "$(nproc)" -gt 1 ] || cannot "with one CPU nothing is made ahead"
    jails_setup
}

teardown() {
    jails_teardown
}

casual() {
    local name=$1
    shift
    run_as_user "$BRIG" -m casual -j "$name" "$@"
}

# preparers_of USER: all that are alive; a zombie is as gone as can be.
preparers_of() {
    pgrep -u "$1" -x -r S,R,D,T brig-preparer | sort
}

# get_ready NAME OPTIONS...: two runs, of which the first starts the holder and the second the preparer.
get_ready() {
    local name=$1
    shift
    must casual "$name" "$@" -- true
    must casual "$name" "$@" -- true
    await_set "$name" 4
}

@test "a run joins what its holder has ready, and sees what one without sees" {
    jail user ready
    must casual ready -- sh -c "$LOOK"
    local without=$output
    must casual ready -- true
    await_set ready 4
    local set
    set=$(set_of ready)
    must casual ready -- sh -c "$NUMBERS; $LOOK"
    [ "$(echo "$output" | head -n 4)" = "$set" ]
    diff <(echo "$without") <(echo "$output" | tail -n +5)
    # With another set, and the same again in another mode, for which the maps are the same.
    await_set ready 4
    set=$(set_of ready)
    must run_as_user "$BRIG" -m bare -j ready -- sh -c "$NUMBERS"
    [ "$output" = "$set" ]
}

@test "nobody is in a set, its parent is the user's own namespace, and its owner the user" {
    jail user owned
    get_ready owned
    local holder links
    holder=$(holder_of owned)
    run sh -c "readlink /proc/[0-9]*/ns/user /proc/[0-9]*/ns/net /proc/[0-9]*/task/*/ns/net 2>/dev/null"
    for links in $(set_of owned | grep -E '^(user|net):'); do
        output_lacks "$links"
    done
    output_has "$(readlink /proc/self/ns/net)" # as which it would be seen
    must python3 - "$holder" "$(id -u "$LIB_USER")" <<'PYTHON'
import array, fcntl, os, sys
NS_GET_USERNS, NS_GET_PARENT, NS_GET_OWNER_UID = 0xb701, 0xb702, 0xb704
holder, uid = sys.argv[1], int(sys.argv[2])
found = {}
for fd in os.listdir(f"/proc/{holder}/fd"):
    kind = os.readlink(f"/proc/{holder}/fd/{fd}").split(":")[0]
    if kind in ("user", "ipc", "uts", "net"):
        found[kind] = os.open(f"/proc/{holder}/fd/{fd}", os.O_RDONLY)
assert len(found) == 4, found
own = os.stat("/proc/self/ns/user").st_ino
assert os.fstat(fcntl.ioctl(found["user"], NS_GET_PARENT)).st_ino == own
assert os.stat(f"/proc/{holder}/ns/user").st_ino != own
owner = array.array("I", [0])
fcntl.ioctl(found["user"], NS_GET_OWNER_UID, owner)
assert owner[0] == uid, owner
for kind in ("ipc", "uts", "net"):
    assert os.fstat(fcntl.ioctl(found[kind], NS_GET_USERNS)).st_ino == os.fstat(found["user"]).st_ino
PYTHON
}

@test "a set is used once: runs at the same time have namespaces of their own" {
    jail user once
    get_ready once
    local set second i runs=()
    set=$(set_of once)
    casual once -- sh -c "($NUMBERS) >first; : >up; $AWAIT; await_file enough" 3>&- &
    runs+=($!)
    await_file up
    # At once, when there may be another set or none, and once there is one.
    must casual once -- sh -c "$NUMBERS"
    second=$output
    [ "$(cat first)" = "$set" ]
    [ -z "$(comm -12 first <(echo "$second"))" ]
    await_set once 4 "$set"
    set=$(set_of once)
    [ -z "$(comm -12 first <(echo "$set"))" ]
    must casual once -- sh -c "$NUMBERS"
    [ "$output" = "$set" ]
    # Many at a time get one set between them, and all others make their own.
    await_set once 4
    for i in 1 2 3 4 5; do
        casual once -- sh -c "($NUMBERS) >of$i; : >up$i; $AWAIT; await_file enough" 3>&- &
        runs+=($!)
    done
    for i in 1 2 3 4 5; do
        await_file "up$i"
    done
    [ -z "$(cat first of? | sort | uniq -d)" ]
    touch enough
    for i in "${runs[@]}"; do
        wait "$i"
    done
}

@test "who wants something else makes it, and the next one gets it" {
    jail user shape
    get_ready shape
    local set
    must casual shape --net none -- sh -c "$NUMBERS; cat /proc/net/tcp | wc -l; hostname"
    [ "$(echo "$output" | tail -n 2)" = "1
brig" ]
    await_set shape 4
    set=$(set_of shape)
    must casual shape --net none -- sh -c "$NUMBERS; cat /proc/net/tcp | wc -l"
    [ "$output" = "$set
1" ]
    must casual shape --hostname other --net none -- sh -c "hostname; cat /proc/net/tcp | wc -l"
    [ "$output" = "other
1" ]
    # With the host's network there is none to be made.
    must casual shape --net host -- true
    await_set shape 3
    must casual shape --net host -- sh -c "readlink /proc/self/ns/net; hostname"
    [ "$output" = "$(readlink /proc/self/ns/net)
brig" ]
    # The door is there again for who wants it.
    must casual shape -- bash -c ': >/dev/tcp/198.18.0.2/53 && echo open'
    [ "$output" = open ]
}

@test "the door of a set is served, and leads no further than any" {
    jail user door
    get_ready door
    local set
    set=$(set_of door)
    must casual door -- bash -c "$NUMBERS"' ; : >/dev/tcp/198.18.0.2/53 && echo open
        (echo x >/dev/udp/192.0.2.1/53) 2>/dev/null || echo unreachable'
    [ "$output" = "$set
open
unreachable" ]
}

@test "without a preparer runs go on, and get a new one" {
    jail user killed
    get_ready killed
    local pid try
    for pid in $(pgrep -u "$LIB_USER" -x brig-preparer); do
        kill -KILL "$pid"
    done
    must casual killed -- sh -c "$NUMBERS"
    must casual killed -- true
    must casual killed -- true
    await_set killed 4
    # One that is stopped holds up nobody.
    for pid in $(pgrep -u "$LIB_USER" -x brig-preparer); do
        kill -STOP "$pid"
    done
    for try in 1 2 3; do
        must timeout 60 setpriv --reuid="$LIB_USER" --regid="$LIB_USER" --init-groups env HOME="$HOME_OF_USER" \
            "$BRIG" -m casual -j killed -- true
    done
    for pid in $(pgrep -u "$LIB_USER" -x brig-preparer); do
        kill -CONT "$pid"
    done
    await_set killed 4
}

@test "brig -u leaves nobody behind" {
    jail user gone
    local before preparer
    before=$(preparers_of "$LIB_USER")
    get_ready gone
    preparer=$(comm -13 <(echo "$before") <(preparers_of "$LIB_USER"))
    [ -d "/proc/$preparer" ]
    must run_as_user "$BRIG" -u -j gone
    await has_ended "$preparer"
    must holder_of gone
    [ "$output" = 0 ]
}

@test "another user gets no set, nor does who is in a jail, and nonsense harms nobody" {
    jail user mine
    get_ready mine
    local set place socket
    set=$(set_of mine)
    for place in "/run/user/$(id -u "$LIB_USER")/brig" "/tmp/brig-$(id -u "$LIB_USER")"; do
        socket=$(find "$place" -name '*-mine.sock' 2>/dev/null | head -n 1)
        [ -z "$socket" ] || break
    done
    cat >ask.py <<'PYTHON'
import os, random, socket, struct, sys
def ask(message, patience=60):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    s.send(message)
    s.settimeout(patience)
    try:
        return socket.recv_fds(s, 4096, 32)[:2]
    except OSError:
        return b"", []
def request(version, op, text):
    return struct.pack("<8IQQ", version, op, 0, 0, 0, 0, len(text), 0, 0, 0) + text
READY, PREPARER, VERSION = 4, 5, 6
if sys.argv[2] == "reach":
    print(len(ask(request(VERSION, READY, b"no shape at all"))[0]))
else:
    random.seed(7)
    for i in range(200):
        text = random.randbytes(random.choice([0, 1, 47, 48, 64, 200, 2000, 16384, 16385, 40000]))
        op = random.choice([READY, READY, READY, PREPARER, 99])
        answer, fds = ask(request(random.choice([VERSION, VERSION, 5]), op, text), 0.01 if op == PREPARER else 60)
        assert not fds, fds
    print("asked")
PYTHON
    chmod 755 . ask.py
    run setpriv --reuid=65534 --regid=65534 --clear-groups python3 ask.py "$socket" reach
    [ "$status" -ne 0 ]
    output_has "Permission denied"
    run casual mine -d / -- python3 ask.py "$socket" reach
    [ "$status" -ne 0 ]
    # The user alone is answered, and what makes no sense gets nothing.
    must run_as_user python3 ask.py "$socket" reach
    [ "$output" -gt 0 ]
    must run_as_user python3 ask.py "$socket" nonsense
    [ "$output" = asked ]
    get_ready mine
    set=$(set_of mine)
    must casual mine -- sh -c "$NUMBERS"
    [ "$output" = "$set" ]
}

@test "in a user namespace of the user's own another set is made" {
    jail user inner
    get_ready inner
    run run_as_user unshare -r true
    [ "$status" -eq 0 ] || cannot "this system has no user namespaces within others"
    local set
    set=$(set_of inner)
    # That run has other ids inside; whatever becomes of it, it must not be in a child of the host's.
    run run_as_user unshare -Ur "$BRIG" -m casual -j inner -- sh -c "$NUMBERS"
    [ -z "$(comm -12 <(echo "$set") <(echo "$output" | sort))" ]
}

@test "root makes namespaces for its own jails itself" {
    jail root rooted
    local before
    before=$(preparers_of 0,1900000000)
    must by root -m casual -j rooted -d . -- true
    must by root -m casual -j rooted -d . -- sh -c "$LOOK"
    must by root -m casual -j rooted -d . -- true
    [ "$(preparers_of 0,1900000000)" = "$before" ]
}

# As one that jailed code without namespaces of its own would have started.
@test "who cannot gain privileges gets none, and has one of its own" {
    jail user confined
    get_ready confined -D
    await_set confined 4
    before=$(set_of confined)
    must run_as_user setpriv --no-new-privs "$BRIG" -m casual -j confined -D -- sh -c "$NUMBERS"
    for namespace in $before; do output_lacks "$namespace"; done
    [ "$(set_of confined)" = "$before" ]
    must casual confined -D -- sh -c "$NUMBERS"
    for namespace in $before; do output_has "$namespace"; done
}
