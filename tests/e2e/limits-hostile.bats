#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Limits under attack: a command that wants to outlive its time, leave its bounds, keep its supervisor
# busy or make its result lie. As root and as a user who was given a part of the cgroups.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib
load limited
load screen

setup() {
    needs python3
    scratch_make root
    cd "$SCRATCH" || return
    write_tools
}

teardown() {
    started_kill
    stop_screen
    cd /
    take_back
    scratch_remove
}

# ---- Tools for the attack ----

# What the programs inside have in common: the protocol of tools_wire.h, spoken by hand.
write_tools() {
    cp "$BRIG" brig
    chmod 0755 brig
    cat >tools.py <<'PROGRAM'
import os, socket, struct, sys, time
MAKE, USAGE, JOIN = 1, 2, 3
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    s.connect("/run/brig-tools")
    return s
def request(type, memory=0, pids=0, cpu=0, token=0):
    return struct.pack("IIQQQQIIQ", 0x32545242, type, memory, pids, 0, 0, cpu, 0, token)
def ask(s, *args, **kwargs):
    s.send(request(*args, **kwargs))
    reply = s.recv(4096)
    return struct.unpack_from("iIQ", reply) if reply else (None, None, None)
def await_file(path):
    end = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < end, "waited in vain for " + path
        time.sleep(0.02)
def touch(path):
    open(path, "w").close()
def eat(mib):
    return bytearray(mib << 20)
PROGRAM
    chmod 0644 tools.py
}

# ---- Its time is over ----

# The supervisor is stopped while a descriptor is sent whose close would wait for days, so that it is
# the last to have it. `$@` runs brig.
send_a_trap() {
    rm -f ready go sent
    start "$who" "$@" "$BRIG" -m sealed --seccomp dev --timeout 10s --grace 0 -- python3 -c '
import array
from tools import *
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen(1)
b = socket.socket(); b.connect(a.getsockname()); c, _ = a.accept()
b.setblocking(False)
try:
    while True: b.send(bytes(1 << 16))
except BlockingIOError: pass
b.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1 << 20))
s = connect()
touch("ready"); await_file("go")
try:
    s.sendmsg([request(MAKE)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
    os.dup2(os.open("/dev/null", 0), b.fileno()) # it is in the message now, and nowhere else
    print("sent", flush=True)
except PermissionError:
    print("the kernel refused", flush=True)
touch("sent")
time.sleep(600)'
    await_file ready
    kill -STOP "$STARTED"
    touch go
    await_file sent
    kill -CONT "$STARTED"
    started_ends
    [ "$status" -eq 124 ]
}

@test "a descriptor nobody asked for does not hang the supervisor" {
    check() {
        send_a_trap
        grep -E 'sent|refused' out
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 200M -- \
            ./brig -m sealed --memory 90M -- echo 'a tool runs'
        output_has 'a tool runs'
    }
    for_each_limited check
}

@test "nor where the kernel cannot refuse it" {
    [ -x "$WITHOUT" ] || cannot "no $WITHOUT: build the test tools"
    check() {
        send_a_trap "$WITHOUT" passrights --
        grep sent out
        must limited "$who" "$WITHOUT" passrights -- "$BRIG" -m sealed --seccomp dev --memory 200M -- \
            ./brig -m sealed --memory 90M -- echo 'a tool runs'
        output_has 'a tool runs'
    }
    for_each_limited check
}

@test "a command that has used up its share of the CPU ends in time" {
    check() {
        start "$who" "$BRIG" -m sealed --cpu 10% --timeout 2s --grace 0 --result result.json -- python3 -c '
import os
block, random = bytearray(1 << 20), os.open("/dev/urandom", 0)
while True:
    os.readv(random, [block] * 1000)'
        started_ends
        [ "$status" -eq 124 ]
    }
    for_each_limited check
}

@test "a reader of the output that does not read does not delay the end, and a late one gets everything" {
    mkfifo pipe
    exec 8<>pipe
    local ended=0
    # With 137 it would have been killed for not ending.
    timeout --signal=KILL 60 "$BRIG" -m sealed -D --output 1M --timeout 1s --grace 0 -- sh -c 'yes | head -c 300000' \
        >pipe 2>/dev/null </dev/null 3>&- 8>&- || ended=$?
    exec 8>&-
    [ "$ended" -ne 137 ]
    must bash -c '"$1" -m sealed --output 1M --timeout 60s -- python3 -c "
import os
os.set_blocking(1, False)
left = 200000
while left > 0:
    try: left -= os.write(1, bytes(min(left, 4096)))
    except BlockingIOError:
        open(\"full\", \"w\").close()
        os.set_blocking(1, True)" | { . "$2/lib.bash"; await_file full; wc -c; }' - "$BRIG" "$LIB_DIR"
    output_has 200000
}

# ---- Its bounds ----

@test "nested namespaces do not reach the group, and leave nothing in it" {
    check() {
        must_fail limited "$who" "$BRIG" -m sealed --seccomp dev --allow-nested --memory 64M -- \
            unshare --user --map-root-user --cgroup true
        output_has 'No space left'
        must limited "$who" "$BRIG" -m sealed --seccomp dev --allow-nested --memory 64M -- \
            unshare --user --map-root-user --mount true
        run limited "$who" "$BRIG" -m sealed --seccomp dev --allow-nested --memory 64M -- sh -c '
            unshare --user --map-root-user --mount sh -c "
                for c in memory cpu pids; do mkdir /tmp/\$c; mount -t cgroup -o \$c c /tmp/\$c && echo mounted; done
                mkdir /tmp/two; mount -t cgroup2 c /tmp/two && echo mounted
                find /tmp/memory /tmp/two -name \"memory.*limit*\" -o -name memory.max"; true'
        output_lacks mounted
        # A full jail inside goes without one.
        must limited "$who" "$BRIG" -m sealed --seccomp dev --allow-nested -- ./brig -m sealed -- echo nested
        output_has nested
        must limited "$who" "$BRIG" -m sealed --seccomp dev --allow-nested --memory none --cpu none -- \
            ./brig -m sealed --memory none --cpu none -- echo nested
        output_has nested
    }
    for_each_limited check
}

@test "a tool joins its own leaf, once, and never leaves it" {
    check() {
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 300M --result result.json -- python3 -c '
from tools import *
lease, other = connect(), connect()
_, _, token = ask(lease, MAKE, memory=32 << 20)
_, _, wide = ask(other, MAKE, memory=200 << 20)
def child(function):
    pid = os.fork()
    if pid == 0:
        try: os._exit(function() or 0)
        except MemoryError: os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def tool():
    assert ask(connect(), JOIN, token=token)[0] == 0, "joins"
    again = ask(connect(), JOIN, token=wide)[0]
    print("leaving:", again, flush=True)
    again = ask(connect(), JOIN, token=token)[0]
    print("twice:", again, flush=True)
    eat(100)
print("tool:", child(tool), flush=True)
def untold():
    print("used:", ask(connect(), JOIN, token=token)[0], flush=True)
    print("guess:", ask(connect(), JOIN, token=1)[0], flush=True)
    eat(100)
print("beside:", child(untold), flush=True)
# Another process that connected: it is that which is moved, whoever asks.
theirs = connect()
def borrowed():
    print("borrowed:", ask(theirs, JOIN, token=wide)[0], flush=True)
    eat(250)
print("borrower:", child(borrowed), flush=True)
eat(150)
print("the agent fits", flush=True)
os._exit(0) # or it closes, before its end, the connection of the leaf it is in now'
        output_has 'leaving: 1'
        output_has 'twice: 2'
        output_has 'tool: -9'
        output_has 'used: 2'
        output_has 'guess: 2'
        output_has 'beside: 0'
        output_has 'borrowed: 0'
        output_has 'borrower: 0'
        output_has 'the agent fits'
        [ "$(value outcome)" = exited ]
    }
    for_each_limited check
}

@test "no descriptor of a group comes out of the supervisor" {
    check() {
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 100M -- python3 -c '
from tools import *
s = connect()
s.send(request(MAKE, memory=32 << 20))
text, extra, flags, _ = s.recvmsg(4096, 4096)
print("extra:", extra, "flags:", flags & socket.MSG_CTRUNC, len(text) > 0)'
        output_has 'extra: [] flags: 0 True'
    }
    for_each_limited check
}

@test "less memory than a jail can start with is refused by name" {
    for size in 1 200k 8191k; do
        must_exit 125 "$BRIG" -m sealed -D --memory "$size" -- true
        output_has --memory
        output_has 'at least 8388608'
    done
    must_exit 125 env EXECUTOR_MEMORY_LIMIT_MB=4 "$BRIG" -m sealed -D -- true
    output_has EXECUTOR_MEMORY_LIMIT_MB
    check() {
        must limited "$who" "$BRIG" -m sealed -D --memory 8M -- true
    }
    for_each_limited check
}

@test "a start that fails half-way leaves no process and no group" {
    [ -x "$WITHOUT" ] || cannot "no $WITHOUT: build the test tools"
    lib_is_root || cannot "only root's jails have an intermediate process"
    local mark=600.$BASHPID$RANDOM # in the command line of this jail's process and no other
    # Its word about the first process does not get through.
    must_exit 125 timeout 20 sh -c 'echo "pid $$"; exec "$@"' - \
        "$WITHOUT" sendmsg=EPERM -- "$BRIG" -m sealed -D --memory 64M -- sleep "$mark"
    local brig=${lines[0]#pid }
    run pgrep -f "sleep $mark"
    [ -z "$output" ]
    run groups_of "$brig"
    [ -z "$output" ]
    must "$BRIG" -m sealed -D --memory 64M -- true
}

@test "sealed has a limit on processes by default, which a caller can lift" {
    must "$BRIG" -m sealed --dry-run --json true
    output_has '"processes":1024'
    # Processes that share their memory, as after vfork(), and wait.
    local forks='
import ctypes, errno, mmap, sys
libc = ctypes.CDLL(None, use_errno=True)
CLONE_VM, SIGCHLD, STACK = 0x100, 17, 1 << 14
stacks = mmap.mmap(-1, 1200 * STACK)
base = ctypes.addressof(ctypes.c_char.from_buffer(stacks))
made, wanted = 0, int(sys.argv[1])
while made < wanted:
    if libc.clone(libc.pause, ctypes.c_void_p(base + (made + 1) * STACK), CLONE_VM | SIGCHLD, None) < 0:
        assert ctypes.get_errno() == errno.EAGAIN
        break
    made += 1
print("made", made, flush=True)'
    check() {
        must limited "$who" "$BRIG" -m sealed --result result.json -- python3 -c "$forks" 1200
        output_has 'made 1023'
        [ "$(value unenforced)" = "[]" ]
        must limited "$who" "$BRIG" -m sealed --pids none -- python3 -c "$forks" 1200
        output_has 'made 1200'
    }
    for_each_limited check
    # The user without a part of the cgroups.
    must as user "$BRIG" -m sealed -- python3 -c "$forks" 1200
    output_has 'made 1023'
    # Jails at the same time do not count together.
    "$BRIG" -m sealed -- python3 -c "$forks"'
import os, time
assert made == wanted
open("all", "w").close()
while not os.path.exists("enough"):
    time.sleep(0.02)' 600 >/dev/null 3>&- &
    local beside=$!
    await_file all
    must "$BRIG" -m sealed -D -- python3 -c "$forks" 600
    output_has 'made 600'
    touch enough
    wait "$beside"
}

@test "the largest number of processes is a number" {
    check() {
        must limited "$who" "$BRIG" -m sealed -D --pids 4194304 -- true
        must_exit 125 limited "$who" "$BRIG" -m sealed -D --pids 4194305 -- true
    }
    for_each_limited check
}

@test "what TCP keeps in its buffers is bounded" {
    [ -f /sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes ] || cannot "on v2 it counts as memory"
    fill='
import socket
total = 0
kept = []
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen(100)
for i in range(120):
    b = socket.socket()
    b.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    b.setblocking(False)
    b.connect_ex(a.getsockname())
    try: c, _ = a.accept()
    except OSError: break
    kept += [b, c]
    try:
        while True: total += b.send(bytes(1 << 16))
    except OSError: pass
print("filled", total >> 20)
raise SystemExit(total >> 20 < 100)'
    check() {
        must_fail limited "$who" "$BRIG" -m sealed --seccomp dev --memory 32M --open-files 1000 -- python3 -c "$fill"
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 1G --open-files 1000 -- python3 -c "$fill"
    }
    for_each_limited check
}

@test "nobody else can lock a group" {
    lib_is_root || cannot "it takes two users"
    start root "$BRIG" -m sealed -D --memory 64M -- sleep 600
    local group
    await has_group "$STARTED"
    group=$(groups_of "$STARTED" | head -n 1)
    must_fail run_as_user flock --nonblock "$group" true
    output_has 'Permission denied'
    must ls "$group"
    kill -TERM "$STARTED"
    started_ends
}

# ---- Its supervisor's work ----

# An answer costs 2 ms and up to 2 s of them can be saved up, so the jail's own clock bounds how many it
# can have had. A slow machine has fewer.
@test "a flood of requests is answered slowly, and keeps no tool from being made" {
    check() {
        must limited "$who" "$BRIG" -m sealed --seccomp dev --cpu 200% --timeout 60s -- python3 -c '
from tools import *
begun = time.monotonic()
lease = connect()
assert ask(lease, MAKE, memory=64 << 20)[0] == 0
answered = 0
while answered < 1500 and time.monotonic() < begun + 30:
    assert ask(lease, USAGE)[0] == 0
    answered += 1
    if answered % 100: continue
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.setblocking(False)
        s.connect("/run/brig-tools"); s.send(request(MAKE))
    except OSError: pass
took = time.monotonic() - begun
print("answered", answered, "in %.1f s" % took, flush=True)
assert answered <= (took + 2.5) / 0.002
lease.close()
print("then:", ask(connect(), MAKE, memory=64 << 20)[0])'
        output_has 'then: 0'
    }
    for_each_limited check
}

@test "many tools do not use up the supervisor's descriptors" {
    check() {
        rm -f ready stop
        start "$who" "$BRIG" -m sealed --seccomp dev --memory 100M --timeout 60s -- python3 -c '
from tools import *
peers = [connect() for i in range(16)]
errors = [ask(s, MAKE, memory=32 << 20, pids=10, cpu=50)[0] for s in peers]
more = connect()
print("made", errors.count(0), "more", ask(more, MAKE, memory=32 << 20)[0], flush=True)
peers[0].close()
end = time.monotonic() + 60
while (again := ask(more, MAKE, memory=32 << 20)[0]) != 0 and time.monotonic() < end:
    time.sleep(0.05)
print("again", again, flush=True)
touch("ready"); await_file("stop")'
        await_file ready
        grep 'made 16 more 28' out
        grep 'again 0' out
        ls -l "/proc/$STARTED/fd" # with what it inherited
        [ "$(find "/proc/$STARTED/fd" -mindepth 1 | wc -l)" -lt 64 ]
        touch stop
        started_ends
        [ "$status" -eq 0 ]
    }
    for_each_limited check
}

# ---- Its result ----

@test "a command that moves itself into a leaf is still seen to die for memory" {
    check() {
        must_exit 137 limited "$who" "$BRIG" -m sealed --seccomp dev --memory 200M --result result.json -- python3 -c '
from tools import *
lease = connect()
token = ask(lease, MAKE, memory=32 << 20)[2]
assert ask(connect(), JOIN, token=token)[0] == 0
eat(100)'
        [ "$(value outcome)" = oom ]
        [ "$(value oom_kills)" -ge 1 ]
        # Also where the jail itself has no limit on memory.
        must_exit 137 limited "$who" "$BRIG" -m sealed --seccomp dev --memory none --pids 50 --result result.json -- python3 -c '
from tools import *
lease = connect()
token = ask(lease, MAKE, memory=32 << 20)[2]
assert ask(connect(), JOIN, token=token)[0] == 0
eat(100)'
        [ "$(value outcome)" = oom ]
        # And a tool that is long gone.
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 200M --result result.json -- sh -c '
            ./brig -m sealed --memory 32M -- python3 -c "bytearray(100 << 20)"; echo "tool $?"'
        [ "$(value oom_kills)" -ge 1 ]
        [ "$(value outcome)" = exited ]
    }
    for_each_limited check
}

@test "what a tool uses is not taken for what the jail uses" {
    check() {
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory none --pids 50 --result result.json -- sh -c '
            python3 -c "bytearray(60 << 20)"
            ./brig -m sealed --memory 32M -- true'
        # Not known, or right.
        local peak
        peak=$(value peak_memory_bytes)
        [ "$peak" = None ] || [ "$peak" -ge $((50 << 20)) ]
    }
    for_each_limited check
}

@test "CPU time is counted by a group, also where nothing else needs one" {
    forks='
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        for i in range(300000): pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass'
    check() {
        must_exit 124 limited "$who" "$BRIG" -m sealed --memory none --cpu none --cpu-time 500ms --timeout 20s \
            --grace 0 --result result.json -- python3 -c "$forks"
        [ "$(value outcome)" = cpu-timeout ]
        [ "$(value unenforced)" = "[]" ]
        must limited "$who" "$BRIG" -m sealed --memory none --cpu none --cpu-time 20s -- true
    }
    for_each_limited check
    lib_is_root || return 0
    must run_as_user "$BRIG" -m sealed --memory none --cpu none --cpu-time 20s --result result.json -- true
    must grep -q 'limit cpu-time' result.json
}

@test "variables are defaults: without cgroups they do not keep a run from starting" {
    lib_is_root || cannot "it takes a user without a part of the cgroups"
    must run_as_user env EXECUTOR_MEMORY_LIMIT_MB=300 EXECUTOR_CPU_LIMIT_PERCENT=50 \
        "$BRIG" -m sealed --result result.json -- true
    must grep -q 'limit memory' result.json
    must run_as_user env EXECUTOR_MEMORY_LIMIT_MB=300 "$BRIG" -m bare -j defaults -- true
    run_as_user "$BRIG" stop defaults && run_as_user "$BRIG" rm defaults
    must_exit 125 run_as_user "$BRIG" -m sealed --memory 300M -- true
}

# ---- At a terminal ----

@test "a command that stops itself does not stop its time" {
    start_screen 90 30 BRIG="$BRIG" NO_COLOR=1 bash --norc --noprofile -i
    type_line 'for s in STOP TSTP; do $BRIG -m sealed -D --timeout 2s --grace 0 -- sh -c "kill -$s \$\$; sleep 600"; echo "status $s $?"; done'
    shows 'status STOP 124'
    shows 'status TSTP 124'
    type_line 'clear; $BRIG -m sealed -D --timeout 60s -- sh -c "echo be""gun; sleep 600"; echo "status $?"'
    shows begun
    keys C-z
    shows 'status 14[68]'
    type_line 'kill %1; wait; clear; $BRIG -m sealed -D -- sh -c "kill -STOP \$\$"; echo "then $?"'
    shows 'then 14[68]'
    type_line 'kill -KILL %1; exit'
}
