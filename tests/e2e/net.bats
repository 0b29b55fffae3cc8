#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The network door, end to end: jails of root and of an ordinary user in a world of servers that is a
# network namespace of its own (net_world.py). Each refusal has a twin that shows the same allowed.

load net

# ---- Names ---------------------------------------------------------------------------------------

names() {
    must jail "$1" --allow good.example -- curl -sSf --cacert "$WORLD/cert.pem" https://good.example/
    output_has "seen: GET / HTTP/1.1"
    must jail "$1" --allow good.example -- curl -sSf http://good.example/
    must_exit 6 jail "$1" --allow good.example -- curl -sSf http://other.example/
    output_has "Could not resolve host"
    has_variants "$1" || return 0
    must jail "$1" --allow other.example -- curl -sSf http://other.example/
    must jail "$1" --allow alias.example -- curl -sSf http://alias.example/
    must jail "$1" --allow six.example -- curl -sSf http://six.example/
}

@test "what is allowed by name is reached, and every other name does not exist" {
    for_each_user names
}

wildcards() {
    must jail "$1" --allow '*.good.example' -- curl -sSf http://www.good.example/
    must_exit 6 jail "$1" --allow '*.good.example' -- curl -sSf http://good.example/
    has_variants "$1" || return 0
    must jail "$1" --allow '*.example' --deny other.example -- curl -sSf http://good.example/
    must_exit 6 jail "$1" --allow '*.example' --deny other.example -- curl -sSf http://other.example/
}

@test "names below a name, and what is denied among them" {
    for_each_user wildcards
}

ports() {
    must jail "$1" --allow good.example:5000 -- \
        python3 -c 'import socket; s = socket.create_connection(("good.example", 5000), 9)
s.sendall(b"x"); assert s.recv(1) == b"x"'
    must_fail jail "$1" --allow good.example:5000 -- curl -sSf http://good.example/
    has_variants "$1" || return 0
    must_fail jail "$1" --allow good.example -- \
        python3 -c 'import socket; s = socket.create_connection(("good.example", 5000), 9)
s.sendall(b"x"); assert s.recv(1) == b"x"'
    must jail "$1" --allow good.example:2525 -- \
        python3 -c 'import socket; s = socket.create_connection(("good.example", 2525), 9)
assert s.recv(9) == b"220 hello"'
}

@test "ports, and a server that speaks first" {
    for_each_user ports
}

@test "TLS must name the server that was allowed" {
    must jail user --allow good.example -- curl -sSf --cacert "$WORLD/cert.pem" https://good.example/
    must_fail jail user --allow good.example -- curl -sSf --cacert "$WORLD/cert.pem" \
        --connect-to other.example:443:good.example:443 https://other.example/
    must_fail jail user --allow good.example -- curl -sSf -H 'Host: other.example' http://good.example/ -f
    must jail user --allow good.example -- curl -sSf -H 'Host: good.example' http://good.example/ -f
}

# ---- Addresses -----------------------------------------------------------------------------------

addresses() {
    must jail "$1" --net open -- sh -c "curl -sSf http://93.184.216.34/ && curl -sSf -g 'http://[2606:2800:220:1::34]/'"
    must_fail jail "$1" --allow good.example -- curl -sSf -m 9 http://93.184.216.34/
    output_has "Couldn't connect"
    must jail "$1" --allow 93.184.216.34:80 -- curl -sSf http://93.184.216.34/
    must_fail jail "$1" --net open -- curl -sSf -m 9 http://10.1.2.3/
    must jail "$1" --net open --allow 10.1.2.3:80 -- curl -sSf http://10.1.2.3/
    has_variants "$1" || return 0
    must jail "$1" --allow 10.0.0.0/8:80 -- curl -sSf http://10.1.2.3/
    must_fail jail "$1" --allow 10.0.0.0/8:80 -- curl -sSf -m 9 http://10.1.2.3:5000/
}

@test "addresses: public with open, private ones only if they are allowed as such" {
    for_each_user addresses
}

rebinding() {
    must_fail jail "$1" --allow inner.example -- curl -sSf -m 9 http://inner.example/
    must jail "$1" --allow inner.example --allow 10.1.2.3:80 -- curl -sSf http://inner.example/
    # Each is refused, and the jail has a network.
    must jail "$1" --net open -- sh -c 'curl -sSf http://good.example/ || exit
        for url in http://inner.example/ http://meta.example/ http://169.254.169.254/; do
            ! curl -sSf -m 9 $url || exit
        done'
}

neighbours() {
    must jail "$1" --net open -- sh -c 'curl -sSf http://good.example/ || exit
        for url in http://own.example/ http://93.184.217.7/ http://near.example/; do
            ! curl -sSf -m 9 $url || exit
        done'
    must jail "$1" --net open --allow 93.184.217.7:80 --allow 93.184.218.1:80 -- \
        sh -c 'curl -sSf http://own.example/ && curl -sSf http://near.example/'
    has_variants "$1" || return 0
    # Each of the two alone.
    must_fail jail "$1" --net open --allow 93.184.217.7:80 -- curl -sSf -m 9 http://near.example/
    must_fail jail "$1" --net open --allow 93.184.218.1:80 -- curl -sSf -m 9 http://own.example/
}

@test "a public address that is this machine's own, or a neighbour's, is refused" {
    for_each_user neighbours
}

@test "a name that leads to a private address or to a cloud's metadata is refused" {
    for_each_user rebinding
}

own_host() {
    must jail "$1" --net open -- sh -c 'curl -sSf http://good.example/ || exit
        ! curl -sSf -m 9 http://127.0.0.1/ && ! curl -sSf -m 9 http://host/'
    must jail "$1" --net host -- curl -sSf http://127.0.0.1/
    local try='import socket; s = socket.create_connection(("host", 5432), 9)
s.sendall(b"x"); assert s.recv(1) == b"x"'
    must jail "$1" --allow host:5432 -- python3 -c "$try"
    must_fail jail "$1" --allow host:80 -- python3 -c "$try"
}

@test "the host's loopback is out of reach but for what is allowed of it" {
    for_each_user own_host
}

@test "UDP and raw sockets go nowhere" {
    must jail user --net open --seccomp dev -- python3 -c '
import errno, socket
def refused(make):
    try:
        make()
    except OSError as error:
        return error.errno
    raise SystemExit("it was not refused")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert refused(lambda: udp.sendto(b"x", ("93.184.216.34", 53))) == errno.ENETUNREACH
udp6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
assert refused(lambda: udp6.sendto(b"x", ("2606:2800:220:1::34", 53))) == errno.ENETUNREACH
assert refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)) == errno.EPERM
'
}

@test "the jail cannot change its network" {
    must jail user --net open --seccomp dev -- sh -c '! ip route add 1.0.0.0/8 dev lo && ! ip link set lo down &&
        ! ip rule del pref 100 && ip rule list'
    output_has "ipproto"
    needs nft
    must_fail jail user --net open --seccomp dev -- nft flush ruleset
}

@test "the jail's own servers may use loopback, on any port" {
    must jail user --net open -- python3 -c '
import socket
for port in (1, 443, 3128, 8001):
    try:
        s = socket.create_server(("127.0.0.1", port))
    except PermissionError:
        continue
    c = socket.create_connection(("127.0.0.1", port), 5)
    s.accept()[0].sendall(b"x")
    assert c.recv(1) == b"x"
s = socket.create_server(("127.0.0.1", 3000))
c = socket.create_connection(("127.0.0.1", 3000), 5)
s.accept()[0].sendall(b"x")
assert c.recv(1) == b"x"
'
}

defaults() { # defaults WHO MODE
    local run=(world "$1" timeout 60 "$BRIG" --mode "$2" --nocwd --storage "$SCRATCH/$1")
    must "${run[@]}" -- sh -c 'curl -sSf http://good.example/ && ! curl -sSf -m 9 http://127.0.0.1/ &&
        ! curl -sSf -m 9 http://10.1.2.3/'
    # What open never has is added to it; what it has means that there is to be no other.
    must "${run[@]}" --allow host:80 -- sh -c 'curl -sSf http://host/ && curl -sSf http://good.example/'
    must "${run[@]}" --allow 10.1.2.3:80 -- sh -c 'curl -sSf http://10.1.2.3/ && curl -sSf http://good.example/'
    must_exit 6 "${run[@]}" --allow other.example -- curl -sSf -m 9 http://good.example/
    must "${run[@]}" --net host -- curl -sSf http://127.0.0.1/
}

@test "without an option the network is open, and sealed has none" {
    local pair who
    for pair in $(pairs_of "$(each_user)" casual bare strict); do
        echo "# $pair" >&2
        defaults "${pair%:*}" "${pair#*:}"
    done
    for who in $(each_user); do
        must_fail jail "$who" -- curl -sSf -m 9 http://good.example/
    done
}

# ---- Views ---------------------------------------------------------------------------------------

# Names are found with each view, also where the host's resolv.conf leads nowhere.
@test "every view and mode finds names" {
    local pair who view
    for pair in $(pairs_of "$(each_user)" system host strict bare casual); do
        echo "# $pair" >&2
        who=${pair%:*} view=${pair#*:}
        case $view in
        system | host)
            must world "$who" timeout 60 "$BRIG" run --mode sealed --view "$view" --nocwd --seccomp dev \
                --allow good.example -- curl -sSf http://good.example/
            ;;
        *)
            must world "$who" timeout 60 "$BRIG" run --mode "$view" --nocwd --storage "$SCRATCH/$who" \
                --allow good.example -- curl -sSf http://good.example/
            ;;
        esac
    done
}

@test "a root whose resolv.conf leads nowhere, or is missing" {
    local root=$SCRATCH/root
    mkdir -p "$root"/{proc,dev,tmp,run,var/tmp,etc,usr,home}
    local link
    for link in bin sbin lib lib64; do
        ln -s "usr/$link" "$root/$link"
    done
    printf 'hosts: nis\n' > "$root/etc/nsswitch.conf"
    ln -s /run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
    chmod -R go+rX "$root"
    must world user timeout 60 "$BRIG" run --mode sealed --nocwd --root "$root" --rdir /usr \
        --allow good.example -- curl -sSf http://good.example/
    rm "$root/etc/resolv.conf"
    must world user timeout 60 "$BRIG" run --mode sealed --nocwd --root "$root" --rdir /usr \
        --allow good.example -- curl -sSf http://good.example/
    must_exit 6 world user timeout 60 "$BRIG" run --mode sealed --nocwd --root "$root" --rdir /usr \
        --allow good.example -- curl -sSf http://other.example/
}

@test "why knows the files that say how names are found" {
    local mode file
    for mode in casual bare strict sealed; do
        for file in /etc/resolv.conf /etc/hosts; do
            must world user "$BRIG" why -D -m "$mode" --net open --storage "$SCRATCH/why" "$file"
            output_has "read-only     made for the "
        done
        must world user timeout 60 "$BRIG" -m "$mode" --nocwd --net open --storage "$SCRATCH/why" -- sh -c '
            for file in /etc/resolv.conf /etc/hosts; do
                ! (: > $file) 2>/dev/null && cat $file || exit
            done'
        output_has "nameserver 198.18.0.2"
        output_has "localhost brig"
    done
}

@test "addresses that mean another are seen through" {
    local try='
import socket, sys
for address in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.settimeout(9)
    try:
        s.connect((address, 80))
        s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        assert not s.recv(1), address
    except OSError:
        continue
    raise SystemExit(address)
'
    must jail user --net open -- python3 -c "$try" 0.0.0.0 127.0.0.2 ::1 ::ffff:127.0.0.1 \
        ::ffff:10.1.2.3 198.18.0.1 198.18.0.2 198.18.0.77 fd62:7269:6700::1 fd62:7269:6700::77 \
        10.1.2.3 169.254.169.254 2002:0a01:0203::1 64:ff9b::a01:203 255.255.255.255 224.0.0.1
    must_fail jail user --net open -- python3 -c "$try" 93.184.216.34
    must_fail jail user --net open -- python3 -c "$try" ::ffff:93.184.216.34
    must_fail jail user --net open --allow 10.1.2.3:80 -- python3 -c "$try" ::ffff:10.1.2.3
}

# ---- Much ----------------------------------------------------------------------------------------

@test "many connections at a time, and no more than are allowed" {
    local many='
import socket, sys
held = [socket.create_connection(("good.example", 5000), 30) for _ in range(int(sys.argv[1]))]
for s in held:
    s.sendall(b"x")
print(sum(s.recv(1) == b"x" for s in held))
'
    must jail user --allow good.example:5000 --net-connections 50 -- python3 -c "$many" 50
    output_has 50
    must_fail jail user --allow good.example:5000 --net-connections 3 -- python3 -c "$many" 10
    must jail user --allow good.example:5000 --net-connections 3 -- python3 -c "$many" 3
}

@test "a flood of refusals keeps nobody from their limits" {
    must_exit 124 jail user --timeout 10s --net open --net-log "$SCRATCH/log" -- python3 -c '
import socket, time
end_of_pauses = time.monotonic() + 7
while True:
    for _ in range(3000):
        s = socket.socket()
        s.setblocking(False)
        try:
            s.connect(("10.1.2.3", 80))
        except OSError:
            pass
        s.close()
    if time.monotonic() < end_of_pauses:
        time.sleep(0.1)
'
    [ "$(stat -c %s "$SCRATCH/log")" -gt 0 ]
}

# ---- What is said of it --------------------------------------------------------------------------

@test "the result and the log have every decision" {
    must jail user --allow good.example --net-log "$SCRATCH/log" --result "$SCRATCH/result" -- \
        sh -c 'curl -sSf http://good.example/; curl -sSf http://evil.example/; true'
    must python3 - "$SCRATCH/log" "$SCRATCH/result" <<'PYTHON'
import json, sys
log = [json.loads(line) for line in open(sys.argv[1])]
net = json.load(open(sys.argv[2]))["network"]
assert net["events"] == log, net
assert sorted(e["verdict"] for e in log) == ["allowed", "denied", "ended"], log  # the server may close late
allowed, denied, ended = sorted(log, key=lambda e: e["verdict"])
assert log[0] == allowed, log
assert allowed["name"] == "good.example" and allowed["port"] == 80 and allowed["rule"] == "good.example:443,80"
assert allowed["address"] == "93.184.216.34" and ended["bytes_in"] > 0 and ended["bytes_out"] > 0
assert denied["name"] == "evil.example" and denied["because"] == "no-rule" and denied["port"] is None
assert net["allowed"] == 1 and net["denied"] == 1 and net["bytes_in"] == ended["bytes_in"]
PYTHON
    must jail user --allow good.example --net-log "$SCRATCH/log" -- true
    [ "$(wc -l < "$SCRATCH/log")" -eq 3 ]
    must jail user --allow good.example --net-log fd:2 -- curl -sSf http://good.example/
    output_has '"verdict":"allowed"'
    must_exit 125 jail user --allow good.example --net-log /no/such/file -- true
    output_has "--net-log: cannot write '/no/such/file'"
    ln -s "$SCRATCH/elsewhere" "$SCRATCH/link"
    must_exit 125 jail user --allow good.example --net-log "$SCRATCH/link" -- true
}

@test "a connection that is open when the jail ends is accounted for" {
    must jail user --allow good.example:5000 --result "$SCRATCH/result" -- \
        python3 -c 'import os, socket; s = socket.create_connection(("good.example", 5000), 9)
s.sendall(b"x"); s.recv(1); os._exit(0)'
    must python3 - "$SCRATCH/result" <<'PYTHON'
import json, sys
net = json.load(open(sys.argv[1]))["network"]
assert net["bytes_in"] == 1 and net["bytes_out"] == 1, net
PYTHON
}

@test "what is blocked is said, with what would allow it" {
    run jail user --verbose --allow good.example -- \
        sh -c 'curl -sSf http://evil.example/; curl -sSf http://evil.example/; curl -sSf -m 9 http://good.example:8080/'
    output_has "brig: blocked: evil.example; allow it with --allow evil.example"
    output_has "brig: blocked: good.example:8080; allow it with --allow good.example:8080"
    [ "$(grep -c 'blocked: evil' <<< "$output")" -eq 1 ]
    run jail user --allow good.example -- curl -sSf http://evil.example/
    output_lacks "brig: blocked"
    run jail user --verbose --net open -- curl -sSf -m 9 http://inner.example/
    output_has "allow it with --allow 10.1.2.3:80"
    run jail user --verbose --net open --deny evil.example -- curl -sSf http://evil.example/
    output_has "blocked: evil.example (deny evil.example"
}

@test "learn prints the rules that suffice" {
    local try='curl -sSf http://good.example/ >/dev/null && curl -sSf http://93.184.216.35/ >/dev/null'
    run jail user --net learn -- sh -c "$try"
    [ "$status" -eq 0 ]
    output_has $'net allow\nallow 93.184.216.35:80\nallow good.example:80'
    grep -A9 '^net allow' <<< "$output" > "$SCRATCH/learnt.conf"
    chmod 0644 "$SCRATCH/learnt.conf"
    must jail user --conf "$SCRATCH/learnt.conf" -- sh -c "$try"
    must_fail jail user --conf "$SCRATCH/learnt.conf" -- curl -sSf -m 9 http://other.example/
}

@test "what is blocked is said at once at a terminal in line mode, and else at the end" {
    cat > "$SCRATCH/terminal.py" <<'PYTHON'
import os, pty, sys
# terminal.py TEXT COMMAND…: types Enter when TEXT has been said, and prints all that was.
text, answered = sys.argv[1].encode(), False
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said = b""
while True:
    try:
        more = os.read(fd, 4096)
    except OSError:
        break
    if not more:
        break
    said += more
    if text in said and not answered:
        answered = os.write(fd, b"\n") == 1
os.waitpid(pid, 0)
print(said.decode().replace("\r", ""))
PYTHON
    local line="blocked: evil.example; allow it with --allow evil.example" script
    script='curl -sSf http://evil.example/; echo curl has ended; read line; echo after'
    must world user timeout 60 python3 "$SCRATCH/terminal.py" "$line" "$BRIG" --mode sealed --nocwd \
        --allow good.example -- sh -c "$script"
    [[ $output == *"$line"*after* ]]
    must world user timeout 60 python3 "$SCRATCH/terminal.py" 'curl has ended' "$BRIG" --mode sealed --nocwd \
        --allow good.example -- sh -c "stty raw; $script"
    [[ $output == *after*"$line"* ]]
}

# ---- Publishing ----------------------------------------------------------------------------------

# The server answers twice and ends: nothing has to be killed.
publish() {
    local jail_pid
    jail "$1" --net allow --publish 18080:3000 -- python3 -c "
import http.server
server = http.server.HTTPServer(('127.0.0.1', 3000), http.server.SimpleHTTPRequestHandler)
server.handle_request()
server.handle_request()" > "$SCRATCH/publish" 2>&1 3>&- &
    jail_pid=$!
    await world root curl -sf -m 30 -o "$SCRATCH/answer" http://127.0.0.1:18080/
    grep -q "Directory listing" "$SCRATCH/answer"
    run ! world root curl -sSf -m 5 -f http://93.184.216.34:18080/
    must world root curl -sf -m 30 http://127.0.0.1:18080/
    wait "$jail_pid"
}

@test "a server in the jail is reached from the host's loopback, and from there alone" {
    for_each_user publish
}

@test "a port that is in use is an error of the start" {
    must_exit 125 jail user --net allow --publish 5432:3000 -- true
    output_has "cannot publish on port 5432 of 127.0.0.1: Address"
    must_exit 125 jail user --net none --publish 18081:3000 -- true
    output_has "use --net allow or open"
    must jail user --net allow --publish 18081:3000 -- true
}

# ---- Failing well --------------------------------------------------------------------------------

@test "without a broker a jail with a door does not start, and says why" {
    mkdir "$SCRATCH/alone"
    cp "$BRIG" "$SCRATCH/alone/brig"
    if [ -e /usr/local/libexec/brig/brig-broker ]; then skip "a broker is installed"; fi
    must_exit 125 world user timeout 60 "$SCRATCH/alone/brig" run --mode sealed --nocwd --net open -- true
    output_has "cannot open the network broker"
    must world user timeout 60 "$SCRATCH/alone/brig" run --mode sealed --nocwd --net none -- true
    must world user timeout 60 "$SCRATCH/alone/brig" run --mode sealed --nocwd --net host -- curl -sSf http://good.example/
}

@test "without namespaces the door is shut, and it is said" {
    must world user timeout 60 "$BRIG" run --mode sealed --nocwd --seccomp dev --disable namespaces --view host \
        --verbose --net open -- true
    output_has "not enforced: network open: without a network namespace"
    must_fail world user timeout 60 "$BRIG" run --mode sealed --nocwd --seccomp dev \
        --disable namespaces --view host --net open -- curl -sSf -m 9 http://93.184.216.34/
    must_fail world user timeout 60 "$BRIG" run --mode sealed --nocwd --seccomp code \
        --disable namespaces --view host --allow good.example -- curl -sSf -m 9 http://good.example/
    must world user timeout 60 "$BRIG" run --mode sealed --nocwd --seccomp dev --disable namespaces --view host \
        --net host -- curl -sSf -m 9 http://93.184.216.34/
}

@test "brig inside a jail goes through the doors of both" {
    local inner=(--mode sealed --memory none --cpu none --nocwd)
    local outer=(--seccomp dev --allow-nested --memory none --cpu none --rdir "$BUILD_DIR/src")
    must jail user "${outer[@]}" --net open -- "$BRIG" "${inner[@]}" --net open -- curl -sSf http://good.example/
    must_exit 6 jail user "${outer[@]}" --allow other.example -- \
        "$BRIG" "${inner[@]}" --net allow --allow other.example -- curl -sSf http://good.example/
    must_fail jail user "${outer[@]}" --allow other.example -- \
        "$BRIG" "${inner[@]}" --net open -- curl -sSf -m 9 http://good.example/
    must_fail jail user "${outer[@]}" --net open -- \
        "$BRIG" "${inner[@]}" --allow other.example -- curl -sSf -m 9 http://good.example/
}

@test "a broker that dies takes the network with it and nothing else" {
    jail user --verbose --allow good.example --dir "$SCRATCH" -- sh -c "$AWAIT
        curl -sSf http://good.example/ > /dev/null || exit 1
        echo > $SCRATCH/reached
        await_file $SCRATCH/killed
        ! curl -sSf -m 9 http://good.example/ || exit 2
        echo still here" > "$SCRATCH/out" 2>&1 3>&- &
    local jail_pid=$! broker
    await_file "$SCRATCH/reached"
    broker=$(pgrep -u "$LIB_USER" -f '^brig-broker serve')
    kill -KILL "$broker"
    touch "$SCRATCH/killed"
    local ended=0
    wait "$jail_pid" || ended=$?
    run cat "$SCRATCH/out"
    output_has "still here"
    output_has "the jail has no network: the broker has ended"
    [ "$ended" -eq 0 ]
}

@test "nothing of a door is left behind" {
    must jail user --allow good.example -- curl -sSf http://good.example/
    must_exit 124 jail user --timeout 1s --allow good.example:5000 -- \
        python3 -c 'import socket, time; s = socket.create_connection(("good.example", 5000)); time.sleep(60)'
    await_not pgrep -u "$LIB_USER" -f '^brig-broker'
}

@test "where the kernel does not redirect, the usual ports do, and it is said" {
    must world user timeout 60 "$WITHOUT" netfilter -- "$BRIG" run --mode sealed --nocwd --verbose \
        --allow good.example -- curl -sSf http://good.example/
    output_has "not enforced: nf_tables cannot be used"
    must_fail world user timeout 60 "$WITHOUT" netfilter -- "$BRIG" run --mode sealed --nocwd \
        --allow good.example -- curl -sSf http://other.example/
}

# ---- Credentials ---------------------------------------------------------------------------------

inject() {
    local spec="api.example authorization=bearer:env:API_KEY url=API_URL ca=$WORLD/cert.pem"
    API_KEY=hush-hush must jail "$1" --net allow --inject "$spec" -- \
        sh -c 'curl -sSf -H "Authorization: mine" "$API_URL/v1/x"; env'
    output_has "authorization: Bearer hush-hush"
    output_lacks "mine"
    output_lacks "API_KEY="
    output_has "API_URL=http://127.18.0.1:8001"
    # The name itself is closed then, however it is asked for.
    API_KEY=hush-hush must_exit 6 jail "$1" --net open --inject "$spec" -- \
        curl -sSf --cacert "$WORLD/cert.pem" https://api.example/
    must jail "$1" --net open -- curl -sSf --cacert "$WORLD/cert.pem" https://api.example/
}

@test "a credential is added outside, and is nowhere inside" {
    for_each_user inject
}

@test "an upstream that cannot show who it is gets no credential" {
    API_KEY=hush-hush must_exit 22 jail user --net allow \
        --inject "api.example authorization=env:API_KEY url=API_URL" -- sh -c 'curl -sSf "$API_URL/"'
    API_KEY=hush-hush must jail user --net allow \
        --inject "api.example authorization=env:API_KEY url=API_URL ca=$WORLD/cert.pem" -- \
        sh -c 'curl -sSf "$API_URL/"'
}

@test "methods and paths of a credential" {
    local spec="api.example x-api-key=env:API_KEY url=API_URL ca=$WORLD/cert.pem methods=GET path=/v1/"
    API_KEY=k must jail user --net allow --inject "$spec" -- sh -c 'curl -sSf "$API_URL/v1/x"'
    output_has "x-api-key: k"
    API_KEY=k must_exit 22 jail user --net allow --inject "$spec" -- sh -c 'curl -sSf "$API_URL/v2/x"'
    API_KEY=k must_exit 22 jail user --net allow --inject "$spec" -- sh -c 'curl -sSf -d x "$API_URL/v1/x"'
    API_KEY=k must_exit 22 jail user --net allow --inject "$spec" -- \
        sh -c 'curl -sSf --path-as-is "$API_URL/v1/../v2/x"'
}

@test "server-sent events come through a credential as they are sent" {
    API_KEY=k must jail user --net allow \
        --inject "api.example x-api-key=env:API_KEY url=API_URL upstream=http://api.example:8090" -- \
        sh -c 'curl -sSf -N "$API_URL/stream"'
    output_has $'data: one\n\ndata: two'
}

@test "the secret is in no place that can be looked at" {
    printf 'from-a-file\n' > "$SCRATCH/key"
    chown "$LIB_USER" "$SCRATCH/key"
    chmod 0600 "$SCRATCH/key"
    must jail user --net allow --verbose --dir "$SCRATCH" --net-log "$SCRATCH/log" \
        --result "$SCRATCH/result" \
        --inject "api.example x-api-key=file:$SCRATCH/key url=API_URL ca=$WORLD/cert.pem" -- sh -c '
            curl -sSf "$API_URL/" > /dev/null || exit 1
            grep -rl from-a-fil[e] /proc/[0-9]*/environ /proc/[0-9]*/cmdline /tmp /run /etc '"$SCRATCH"' && exit 2
            exit 0'
    output_lacks from-a-file
    rm "$SCRATCH/key"
    run grep -r from-a-file "$SCRATCH"
    [ "$status" -eq 1 ]
    must_exit 125 jail user --net allow --inject "api.example x-api-key=env:NOT_SET" -- true
    output_has "'NOT_SET' is not set"
    must jail user --dry-run --net allow --inject "api.example x-api-key=env:NOT_SET url=API_URL" -- true
    output_has "inject      x-api-key into api.example, inside at http://127.18.0.1:8001 (\$API_URL)"
}

@test "git goes through a credential by itself" {
    needs git
    GITHUB_TOKEN=t0ken must jail user --seccomp dev --net allow --net-log fd:2 \
        --inject "@github env:GITHUB_TOKEN upstream=http://api.example" -- \
        sh -c 'git ls-remote https://github.com/x/y.git 2>/dev/null; git config --get-regexp url'
    output_has '"detail":"GET /x/y.git/info/refs -> 200"'
    output_has "url.http://github.localhost/.insteadof https://github.com/"
    output_lacks t0ken
}

@test "those who want a proxy find one" {
    must jail user --allow good.example --proxy-env -- sh -c 'curl -sSf http://good.example/ && curl -sSf -x "$ALL_PROXY" http://good.example/'
    must_fail jail user --allow good.example --proxy-env -- curl -sSf http://other.example/
    must_fail jail user --allow good.example --proxy-env -- \
        sh -c 'curl -sSf -x "$ALL_PROXY" http://other.example/'
    must jail user --allow good.example -- sh -c 'test -z "$HTTP_PROXY$http_proxy"'
}

@test "the host's own proxy is used, and is not the jail's" {
    local get='test -z "$https_proxy$HTTPS_PROXY" && curl -sSf http://only-proxy.example/'
    https_proxy=http://joe:pass@127.0.0.1:3128 must jail user --view host --seccomp dev \
        --allow only-proxy.example -- sh -c "$get"
    grep -q "proxy only-proxy.example:80" "$WORLD/log"
    must_fail jail user --allow only-proxy.example -- sh -c "$get"
    https_proxy=http://joe:wrong@127.0.0.1:3128 must_fail jail user --allow only-proxy.example -- sh -c "$get"
    https_proxy=http://joe:pass@127.0.0.1:3128 must_fail jail user --allow good.example -- sh -c "$get"
    https_proxy=http://joe:pass@127.0.0.1:3128 no_proxy=.example must_fail jail user \
        --allow only-proxy.example -- sh -c "$get"
}
