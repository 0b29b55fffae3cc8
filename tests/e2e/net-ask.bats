#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --net ask and `brig allow`: a connection to a name that no rule mentions waits until the user decides
# about it outside the jail, and only there.

load net

GET='
import socket, sys
for name in sys.argv[2:]:
    try:
        s = socket.create_connection((name, int(sys.argv[1])), 250)
        s.sendall(b"GET / HTTP/1.0\r\nHost: " + name.encode() + b"\r\n\r\n")
        print(name, "answer", len(s.recv(1)), flush=True)
    except OSError as error:
        print(name, "error", error.__class__.__name__, flush=True)
'

# asking WHO OPTIONS... -- CMD...: in the background, with its output in $SCRATCH/out; ASKING is its pid.
asking() {
    local who=$1
    shift
    world "$who" timeout $((300 * ${BRIG_SLOW:-1})) "$BRIG" run --mode bare --nocwd --storage "$SCRATCH/$who" \
        -j asks --net ask "$@" > "$SCRATCH/out" 2>&1 3>&- &
    ASKING=$!
    SERVER=$ASKING # ended by teardown() if the test fails
}

sockets() {
    find /run/user/*/brig /run/brig-* /tmp/brig-* "$SCRATCH" -name 'ask-*.sock' 2>/dev/null || true
}

# waits WHO DESTINATION
waits() {
    world "$1" "$BRIG" allow 2>/dev/null | grep -q "^waiting  *$2 "
}

ended() {
    local status=0
    wait "$ASKING" || status=$?
    SERVER=
    output=$(cat "$SCRATCH/out")
    echo "$output"
    [ "$status" -eq 0 ]
}

once() {
    asking "$1" -- python3 -c "$GET" 80 good.example good.example
    await waits "$1" good.example:80
    grep -q "brig: good.example:80 is waiting; in another terminal: brig allow good.example:80" "$SCRATCH/out"
    must world "$1" "$BRIG" allow good.example
    output_has "allowed good.example:80 in the jail 'asks' until the run ends"
    ended
    [ "$(grep -c 'good.example answer 1' <<< "$output")" -eq 2 ]
    # It holds for that run alone.
    asking "$1" -- python3 -c "$GET" 80 good.example
    await waits "$1" good.example:80
    must world "$1" "$BRIG" allow --never good.example
    ended
    output_has "good.example error"
}

@test "an unknown destination waits, and is allowed once or never" {
    for_each_user once
}

always() {
    local file=$SCRATCH/$1/asks.jail
    asking "$1" -- python3 -c "$GET" 80 good.example other.example
    await waits "$1" good.example:80
    must world "$1" "$BRIG" allow -j asks --always good.example:80
    await waits "$1" other.example:80
    must_exit 125 world "$1" "$BRIG" allow nothing.example
    output_has "nothing waits for 'nothing.example'"
    must_exit 125 world "$1" "$BRIG" allow -j default other.example
    must world "$1" "$BRIG" allow --never other.example
    ended
    output_has "good.example answer 1"
    output_has "other.example error"
    grep -qx "allow good.example:80" "$file"
    grep -qx "deny other.example" "$file"
    [ "$(grep -cx "net ask" "$file")" -eq 1 ]
    must world "$1" "$BRIG" explain -D -m bare -j asks --storage "$SCRATCH/$1"
    output_has "ask"
    output_has "good.example:80"
    output_has "other.example"
    # Both hold in the next run, without a question, and without the option.
    must world "$1" timeout 60 "$BRIG" run --mode bare --nocwd --storage "$SCRATCH/$1" -j asks -- \
        python3 -c "$GET" 80 good.example other.example
    output_has "good.example answer 1"
    output_has "other.example error gaierror"
    output_lacks "is waiting"
}

@test "always and never are kept in the jail's file, and explain shows them" {
    for_each_user always
}

@test "a run of the same network without ask refuses at once" {
    must_exit 6 jail user --net allow -- curl -sS http://good.example/
    must jail user --net allow --allow good.example -- curl -sSf http://good.example/
}

@test "a private address is not asked about, and what a rule decides is not either" {
    asking user --allow inner.example --deny other.example -v -- sh -c "
        python3 -c '$GET' 80 inner.example other.example; python3 -c '$GET' 5432 host"
    await waits user host:5432
    must world user "$BRIG" allow host:5432
    ended
    output_has "blocked: inner.example:80 (its address 10.1.2.3 is not public"
    output_has "other.example error gaierror"
    output_has "host answer 1"
    [ "$(grep -c "is waiting" <<< "$output")" -eq 1 ]
}

inside() {
    asking "$1" --dir "$SCRATCH" --rdir "$BUILD_DIR/src" -- sh -c "$AWAIT
        python3 -c '$GET' 80 good.example &
        await_file $SCRATCH/waits
        ls -a /run /run/user/* /tmp /run/brig-* /tmp/brig-* 2>/dev/null | grep ask- && echo seen
        find / -xdev -path /usr -prune -o -name 'ask-*.sock' -print 2>/dev/null | grep . && echo found
        $BRIG allow good.example && echo answered
        for pid in /proc/[0-9]*; do ls -l \$pid/fd 2>/dev/null; done | grep ask- && echo held
        touch $SCRATCH/tried
        wait"
    await waits "$1" good.example:80
    # The socket is there, and works outside.
    [ -n "$(sockets)" ]
    touch "$SCRATCH/waits"
    await_file "$SCRATCH/tried"
    waits "$1" good.example:80
    must world "$1" "$BRIG" allow good.example
    ended
    output_lacks seen
    output_lacks found
    output_lacks answered
    output_lacks held
    output_has "good.example answer 1"
    rm "$SCRATCH/waits" "$SCRATCH/tried"
    [ -z "$(sockets)" ]
}

@test "a jail neither sees the socket nor can answer, and outside it works" {
    for_each_user inside
}

@test "a process in a jail that gets at the socket is refused" {
    local place socket
    asking user -- python3 -c "$GET" 80 good.example
    await waits user good.example:80
    socket=$(sockets)
    place=$(dirname "$socket")
    local try='
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(b"list")
print("reply", len(s.recv(9999)))'
    # Granted by mistake: the socket can be connected to, but its process does not answer.
    run world user timeout 60 "$BRIG" run --mode sealed --nocwd --seccomp dev --dir "$place:/sockets" -- \
        python3 -c "$try" "/sockets/$(basename "$socket")"
    [[ $output != *"reply "[1-9]* ]]
    must world user python3 -c "$try" "$socket"
    [[ $output == *"reply "[1-9]* ]]
    must world user "$BRIG" allow --never good.example
    ended
}

ports() {
    asking "$1" -- sh -c "python3 -c '$GET' 80 good.example & python3 -c '$GET' 5432 good.example; wait"
    await waits "$1" good.example:80
    await waits "$1" good.example:5432
    # Only one of them may have been on the screen.
    must_exit 125 world "$1" "$BRIG" allow good.example
    output_has "choose one of them"
    waits "$1" good.example:80
    waits "$1" good.example:5432
    must world "$1" "$BRIG" allow good.example:80
    output_has "allowed good.example:80"
    # The twin: with one left, its name is enough; and never means all ports.
    must world "$1" "$BRIG" allow --never good.example
    ended
    output_has "good.example answer 1"
    output_has "good.example error"
}

@test "a name without a port allows nothing that was not shown" {
    for_each_user ports
}

@test "an answer that does not come is a refusal, and the broker's limits hold" {
    # Two minutes are too long for a test: the run ends first, and nothing is left.
    asking user -- python3 -c "$GET" 80 good.example
    await waits user good.example:80
    kill "$(find_brig "$ASKING")"
    wait "$ASKING" || true
    SERVER=
    must world user "$BRIG" allow
    output_has "nothing waits"
    asking user -- python3 -c '
import socket
held = []
for number in range(80):
    s = socket.socket()
    s.setblocking(False)
    held.append(s)
    s.connect_ex((socket.gethostbyname(f"n{number}.example"), 80))
held[79].setblocking(True)
held[79].settimeout(100)
import select
poller = select.poll()
for s in held:
    poller.register(s, select.POLLERR | select.POLLHUP)
refused = {fd for fd, _ in poller.poll(100000)}
while len(refused) < 16:
    refused |= {fd for fd, _ in poller.poll(100000)}
print("refused", len(refused), flush=True)
'
    ended
    output_has "refused 16"
}

@test "the name of a network that is not known is suggested" {
    must_exit 125 jail user --net asks -- true
    output_has "ask"
}
