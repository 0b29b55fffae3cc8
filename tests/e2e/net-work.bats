#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Everyday work through the network door of a whole jail: websockets, ssh, git, much data, many
# connections; and what a hostile program in the jail can do to the door. net.bats has the rules.

load net
load limited

# ---- Long-lived connections ----------------------------------------------------------------------

# Speaks and is spoken to at the same time, and says nothing for a while.
websocket_client() {
    cat > "$SCRATCH/websocket.py" <<'PYTHON'
import base64, hashlib, os, socket, ssl, struct, sys
name, port, certificate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection((name, port), 20)
if port == 443:
    s = ssl.create_default_context(cafile=certificate).wrap_socket(s, server_hostname=name)
key = base64.b64encode(os.urandom(16))
s.sendall(b"GET /chat HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (name.encode(), key))
stream = s.makefile("rb")
assert b" 101 " in stream.readline(), "not switched"
heads = {}
while line := stream.readline().strip():
    field, value = line.split(b": ", 1)
    heads[field.lower()] = value
expected = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
assert base64.b64decode(heads[b"sec-websocket-accept"]) == expected
def say(text):
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
    length = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
    s.sendall(b"\x81" + length + mask + masked)
def hear():
    first, length = stream.read(2)
    assert first == 0x81
    return stream.read(struct.unpack(">H", stream.read(2))[0] if length == 126 else length)
ticks = 0
for number in range(10):
    said = b"message %d " % number + b"x" * (number * 100)
    say(said)
    while (text := hear()).startswith(b"tick"):
        ticks += 1
    assert text == said[::-1], text
    for _ in range(3):  # the server says things without being asked
        assert hear() == b"tick %d" % ticks
        ticks += 1
until = ticks + 30
while ticks < until:  # and now only the server speaks
    assert hear() == b"tick %d" % ticks
    ticks += 1
say(b"the end")
while (text := hear()).startswith(b"tick"):
    pass
assert text == b"dne eht"
print("10 said, all heard")
PYTHON
}

@test "websockets, for as long as both sides like, plain and with TLS" {
    websocket_client
    local run=(python3 "$SCRATCH/websocket.py") port
    for port in 80 443; do
        must jail user --rdir "$SCRATCH" --allow good.example -- "${run[@]}" good.example "$port" "$WORLD/cert.pem"
        output_has "10 said, all heard"
        must_fail jail user --rdir "$SCRATCH" --allow other.example -- \
            "${run[@]}" good.example "$port" "$WORLD/cert.pem"
        output_has "gaierror"
    done
    must_fail jail user --rdir "$SCRATCH" --allow good.example:443 -- \
        "${run[@]}" good.example 80 "$WORLD/cert.pem"
}

# ---- ssh -----------------------------------------------------------------------------------------

# A real server of ssh on the internet, and a repository on it.
ssh_server() {
    local dir=$SCRATCH/ssh
    mkdir -p "$dir" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
    ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
    cat > "$dir/config" <<CONFIG
Port 2222
ListenAddress 93.184.216.34
HostKey $dir/host
PidFile none
AuthorizedKeysFile $dir/key.pub
StrictModes no
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
CONFIG
    printf '[good.example]:2222 %s\n' "$(cut -d' ' -f1,2 "$dir/host.pub")" > "$dir/known"
    git init -q --bare -b main "$dir/repository.git"
    chown -R "$LIB_USER" "$dir/key" "$dir/repository.git"
    chmod 0755 "$dir"
    chmod 0644 "$dir"/{key.pub,known}
    nsenter --net="$(cat "$WORLD/internet")" -- /usr/sbin/sshd -D -e -f "$dir/config" \
        > "$SCRATCH/sshd.log" 2>&1 < /dev/null 3>&- &
    SERVER=$!
    await grep -q "Server listening" "$SCRATCH/sshd.log" || {
        cat "$SCRATCH/sshd.log" >&2
        return 1
    }
}

ssh_work() {
    local ssh="ssh -F none -p 2222 -i $SCRATCH/ssh/key -o UserKnownHostsFile=$SCRATCH/ssh/known -o BatchMode=yes"
    local at="$LIB_USER@good.example" options=(--seccomp dev --rdir "$SCRATCH/ssh")
    must jail user "${options[@]}" --allow good.example:2222 -- $ssh "$at" 'echo from outside; cat' < /etc/passwd
    output_has "from outside"
    output_has "root:x:0:0"
    must_fail jail user "${options[@]}" --allow good.example:22 -- $ssh "$at" 'echo from outside'
    output_lacks "from outside"
    must_fail jail user "${options[@]}" --allow other.example:2222 -- $ssh "$at" 'echo from outside'
    output_has "Could not resolve"
    local script='export GIT_SSH_COMMAND="'$ssh'" GIT_CONFIG_GLOBAL=/tmp/config; set -e
        git config --global user.email a@b.example; git config --global user.name A
        git clone -q "ssh://'$at$SCRATCH'/ssh/repository.git" /tmp/work 2>/dev/null; cd /tmp/work
        head -c 5000000 /dev/urandom > large; git checkout -q -B main; git add .; git commit -qm "$1"
        git push -q origin main; git clone -q "ssh://'$at$SCRATCH'/ssh/repository.git" /tmp/again
        cmp large /tmp/again/large; git -C /tmp/again log --format=%s'
    must jail user "${options[@]}" --allow good.example:2222 -- sh -c "$script" - "over ssh"
    output_has "over ssh"
    must_fail jail user "${options[@]}" --allow other.example:2222 -- sh -c "$script" - "denied"
    must git -c safe.directory='*' -C "$SCRATCH/ssh/repository.git" log --format=%s main
    output_has "over ssh"
    output_lacks "denied"
}

@test "a real ssh, and git over it" {
    needs ssh git ssh-keygen
    [ -x /usr/sbin/sshd ] || cannot "sshd is not installed"
    ssh_server
    ssh_work
}

# ---- Much and many -------------------------------------------------------------------------------

@test "much data each way, with checksums" {
    local mebibytes=16
    [ -z "${BRIG_THOROUGH:-}" ] || mebibytes=1024
    local much='
import hashlib, os, socket, struct, sys
size = int(sys.argv[1]) << 20
s = socket.create_connection(("good.example", 5002), 60)
s.sendall(struct.pack(">Q", size))
digest, block = hashlib.sha256(), bytearray(os.urandom(1 << 20))
for number in range(size >> 20):
    block[:8] = struct.pack(">Q", number)
    s.sendall(block)
    digest.update(block)
assert s.recv(32, socket.MSG_WAITALL) == digest.digest(), "up"
digest, left = hashlib.sha256(), size
while left > 0:
    got = s.recv_into(block, min(left, len(block)))
    assert got, "cut off"
    digest.update(memoryview(block)[:got])
    left -= got
assert s.recv(32, socket.MSG_WAITALL) == digest.digest(), "down"
print("the same")
'
    must jail user --memory none --cpu none --allow good.example:5002 --result "$SCRATCH/result" -- \
        python3 -c "$much" "$mebibytes"
    output_has "the same"
    must python3 -c 'import json, sys; net = json.load(open(sys.argv[1]))["network"]; size = int(sys.argv[2]) << 20
assert net["bytes_out"] == size + 8 and net["bytes_in"] == size + 64, net' "$SCRATCH/result" "$mebibytes"
    must_fail jail user --memory none --cpu none --allow good.example:5002 --net-bytes $((mebibytes / 2))M -- \
        python3 -c "$much" "$mebibytes"
    must_fail jail user --allow other.example:5002 -- python3 -c "$much" 1
}

@test "1,000 connections at one time" {
    local many='
import contextlib, socket, sys
count, beyond = int(sys.argv[1]), int(sys.argv[2])
address = socket.getaddrinfo("good.example", 5000, socket.AF_INET, socket.SOCK_STREAM)[0][4]
held = [socket.create_connection(address, 30) for _ in range(count)]
for number, s in enumerate(held):
    s.sendall(b"%06d" % number)
assert all(s.recv(6, socket.MSG_WAITALL) == b"%06d" % number for number, s in enumerate(held))
for s in reversed(held):
    s.sendall(b"again")
assert all(s.recv(5, socket.MSG_WAITALL) == b"again" for s in held)
print("all", count)
with contextlib.suppress(OSError):
    while len(held) < beyond:
        s = socket.create_connection(address, 30)
        held.append(s)
        s.sendall(b"x")
        if s.recv(1) != b"x":
            break
        count += 1
print("no more than", count)
'
    local options=(--open-files 1200 --memory none --cpu none)
    must jail user "${options[@]}" --allow good.example:5000 --result "$SCRATCH/result" -- python3 -c "$many" 1000 1100
    output_has "all 1000"
    output_has "no more than 1024"
    must python3 -c 'import json, sys; net = json.load(open(sys.argv[1]))["network"]
assert net["allowed"] == 1024 and net["denied"] == 0 and net["bytes_in"] == 11024, net' "$SCRATCH/result"
    must_fail jail user "${options[@]}" --allow good.example:80 -- python3 -c "$many" 1 1
}

# ---- A hostile program in the jail ---------------------------------------------------------------

@test "a hostile program cannot take its network apart, nor get another" {
    local options=(--net open --seccomp dev)
    must jail user "${options[@]}" -- sh -c 'for change; do
            ! ip $change || exit
        done
        ip addr show dev lo' - "addr del 198.18.0.1/32 dev lo" "addr add 10.1.2.3/32 dev lo" "addr flush dev lo" \
        "route flush table all" "route add 0.0.0.0/1 dev lo" "link add dummy0 type dummy" "netns add other"
    output_has 198.18.0.1
    # With a user namespace of its own it has every capability, but not over the network it is in.
    local nested=("${options[@]}" --allow-nested)
    needs nft
    must_fail jail user "${nested[@]}" -- unshare -Ur nft flush ruleset
    must_fail jail user "${nested[@]}" -- unshare -Ur ip addr flush dev lo
    must jail user "${nested[@]}" -- unshare -Ur curl -sSf http://good.example/
    # And in a new one there is nothing.
    must_fail jail user "${nested[@]}" -- unshare -Urn sh -c 'ip link set lo up; curl -sSf -m 5 http://93.184.216.34/'
    must jail user "${nested[@]}" -- unshare -Ur sh -c 'curl -sSf -m 5 http://93.184.216.34/'
}

@test "sockets without a file are the jail's own" {
    # It ends when its file is removed.
    local listen='import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("\0brig-door-test")
s.listen()
open(sys.argv[1], "w").close()
while os.path.exists(sys.argv[1]):
    time.sleep(0.05)'
    local reach='import socket; s = socket.socket(socket.AF_UNIX); s.connect("\0brig-door-test")'
    world user timeout 60 python3 -c "$listen" "$SCRATCH/listens" > /dev/null 2>&1 3>&- &
    local listener=$!
    await_file "$SCRATCH/listens"
    must world user python3 -c "$reach"
    must_fail jail user --net open -- python3 -c "$reach"
    output_has "Connection refused"
    must jail user --net open -- python3 -c 'import socket
s = socket.socket(socket.AF_UNIX); s.bind("\0brig-door-test"); s.listen()
socket.socket(socket.AF_UNIX).connect("\0brig-door-test")'
    rm "$SCRATCH/listens"
    wait "$listener"
}

@test "the broker is neither seen from inside nor hit" {
    must jail user --net open --seccomp dev -- sh -c '
        curl -sSf http://good.example/ > /dev/null || exit 1
        ! grep -l brig-broker /proc/[0-9]*/comm'
    must jail user --net open --seccomp dev -- python3 -c '
import os, signal, urllib.request
urllib.request.urlopen("http://good.example/").read()
for pid in range(1, 70000):
    try:
        if pid not in (1, os.getpid()):
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
urllib.request.urlopen("http://good.example/").read()'
}

@test "a flood of questions keeps nobody from an answer" {
    must jail user --verbose --allow good.example --allow '*.many.example' --result "$SCRATCH/result" -- python3 -c '
import os, select, socket, struct, time
def query(name):
    labels = b"".join(bytes([len(part)]) + part for part in name.split(b"."))
    return struct.pack(">6H", 1, 256, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
socket.getaddrinfo("good.example", 80)  # who has an address keeps it; there are 4,096
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.setblocking(False)
end, asked, answered = time.monotonic() + 60, 0, 0
while answered < 2000:  # of many more, as most are lost
    assert time.monotonic() < end, answered
    try:
        for _ in range(20):
            flood.sendto(query(b"n%d.%s" % (asked, b"many.example" if asked % 2 else b"evil.example")), ("198.18.0.2", 53))
            asked += 1
    except BlockingIOError:
        select.select([flood], [flood], [], 1)
    try:
        while flood.recv(4096): answered += 1
    except BlockingIOError:
        pass
streams = [socket.create_connection(("198.18.0.2", 53)) for _ in range(100)]
s = socket.create_connection(("good.example", 80), 60)
s.sendall(b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n")
assert s.recv(4096).startswith(b"HTTP/1.1 200")
print("asked", asked, "answered", answered)'
    must python3 -c 'import json, sys; net = json.load(open(sys.argv[1]))["network"]
assert net["allowed"] == 1 and net["denied"] > 500, net["denied"]' "$SCRATCH/result"
}

# world_broker: the pid of the only one in the world.
world_broker() {
    local pid world found=
    world=$(readlink "/proc/$(cat "$WORLD/ready")/ns/net")
    for pid in $(pgrep -f '^brig-broker serve'); do
        [ "$(readlink "/proc/$pid/ns/net")" != "$world" ] || found="$found$pid"
    done
    printf '%s\n' "$found"
}

# ---- A door with limits --------------------------------------------------------------------------

# group_of PID CONTROLLER: the directory of the group with its limits. Of v2 a process is in a leaf of it.
group_of() {
    local line
    line=$(grep -E "^[0-9]+:([^:]*,)?$2(,[^:]*)?:" "/proc/$1/cgroup") || line=
    if [ -n "$line" ] && [ -d "/sys/fs/cgroup/$2" ]; then
        printf '/sys/fs/cgroup/%s%s\n' "$2" "${line##*:}"
    else
        line=$(grep '^0::' "/proc/$1/cgroup")
        dirname "/sys/fs/cgroup${line#0::}"
    fi
}

# first_of FILE...: what the first that is there says.
first_of() {
    local file
    for file; do
        [ ! -e "$file" ] || { cat "$file" && return; }
    done
    return 1
}

# limited_jail WHO OPTIONS... -- COMMAND...: in the background, its pid in `jail_pid`, and once something is
# connected that of the broker in `pid`. By root, or by a user with a part of the cgroups; `through` is
# what brig is started by.
limited_jail() {
    local who=$1
    shift
    (
        for tree in $([ "$who" = root ] || trees); do
            echo 0 > "$tree/$GIVEN/in/cgroup.procs"
        done
        world "${who/given/user}" timeout $((120 * ${BRIG_SLOW:-1})) "${through[@]}" "$BRIG" run --mode sealed --nocwd \
            --rdir "$WORLD" --verbose --allow good.example:5000 --dir "$SCRATCH" "$@"
    ) > "$SCRATCH/out" 2>&1 3>&- &
    jail_pid=$! ENDS=$!
    await_connected
    pid=$(world_broker)
    run cat "$SCRATCH/out"
    [[ $output != *"no cgroup"* ]] || cannot "there are no groups to be made here: $output"
}

# await_connected: unless the jail ends before it is, and says why.
await_connected() {
    await is_connected_or_over && [ -e "$SCRATCH/connected" ] || {
        cat "$SCRATCH/out" >&2
        return 1
    }
}
is_connected_or_over() {
    [ -e "$SCRATCH/connected" ] || has_ended "$jail_pid"
}

# limited_jail_ends: as it should, and the broker and its groups with it.
limited_jail_ends() {
    touch "$SCRATCH/enough"
    ENDS=
    wait "$jail_pid"
    await has_ended "$pid"
    await_not test -e "$memory_group"
    await_not test -e "$cpu_group"
    rm "$SCRATCH/connected" "$SCRATCH/enough"
}

find_groups() {
    memory_group=$(group_of "$pid" memory)
    cpu_group=$(group_of "$pid" cpu)
    [[ ${memory_group##*/} == brig-* ]]
    [[ ${cpu_group##*/} == brig-* ]]
}

holds_a_connection() {
    printf "
import os, socket, time
s = socket.create_connection(('good.example', 5000), 30)
s.sendall(b'x')
s.recv(1)
open('%s/connected', 'w').close()
while not os.path.exists('%s/enough'):
    time.sleep(0.05)" "$SCRATCH" "$SCRATCH"
}

# Who can be cloned into a group is; where the kernel or a filter around us lacks that, it moves itself.
limited_door() { # limited_door WHO COMMAND-BEFORE-BRIG…
    local jail_pid pid memory_group cpu_group who=$1 through=("${@:2}")
    limited_jail "$who" --memory 200M --cpu 50 -- python3 -c "$(holds_a_connection)"
    find_groups
    # Not the jail's own, which has what was asked for.
    [ "$(first_of "$memory_group"/memory.{max,limit_in_bytes})" -eq $((64 * 1024 * 1024 + 1024 * 320 * 1024)) ]
    run first_of "$cpu_group"/cpu.{max,cfs_quota_us}
    [ "${output%% *}" -eq 50000 ]
    limited_jail_ends
}

@test "a jail with limits has a door with limits" {
    give
    for who in root given; do
        limited_door "$who"
        limited_door "$who" "$WITHOUT" clone3=ENOSYS --
    done
}

# Sends as much as it can, and looks at nothing of what comes back.
keeps_the_broker_busy() {
    printf "
import os, socket, threading
def send():
    while True:
        s.sendall(block)
s = socket.create_connection(('good.example', 5000), 30)
s.settimeout(None)
block = bytes(1 << 20)
threading.Thread(target=send, daemon=True).start()
open('%s/connected', 'w').close()
while not os.path.exists('%s/enough'):
    s.recv(1 << 24, socket.MSG_TRUNC)
os._exit(0)" "$SCRATCH" "$SCRATCH"
}

was_throttled() {
    grep -q '^nr_throttled [1-9]' "$cpu_group/cpu.stat"
}

throttled_door() { # throttled_door WHO
    local jail_pid pid memory_group cpu_group through=()
    limited_jail "$1" --cpu 2 -- python3 -c "$(keeps_the_broker_busy)"
    find_groups
    run first_of "$cpu_group"/cpu.{max,cfs_quota_us}
    [ "${output%% *}" -eq 2000 ]
    await was_throttled
    limited_jail_ends
}

@test "what a jail has its broker do is done in the jail's share of the processors" {
    give
    for who in root given; do
        throttled_door "$who"
    done
}
