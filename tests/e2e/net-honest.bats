#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a jail is told about the network is true: names that do not exist, ports that are closed, the
# remedies that brig prints, and the rules that it learns.

load net

CONNECT='
import errno, socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
    s.sendall(b"GET / HTTP/1.0\r\nHost: " + sys.argv[1].encode() + b"\r\n\r\n")
    print("answer", len(s.recv(1)))
except OSError as error:
    print("connect:", error if isinstance(error, socket.gaierror) else errno.errorcode.get(error.errno, error))
'

# to WHO OPTIONS... -- HOST PORT: how a connection from the jail ends.
to() {
    local who=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    must jail "$who" "${options[@]}" -- python3 -c "$CONNECT" "$@"
}

# Whether a connection can be refused in connect() itself.
holds() {
    must jail user --allow host:1 -- python3 -c "$CONNECT" host 1
    [[ $output == *ECONNREFUSED* ]]
}

# ---- Names and ports -----------------------------------------------------------------------------

missing() {
    to "$1" --net open -- missing.example 80
    output_has "connect: [Errno -2] Name or service not known"
    to "$1" --net open -- good.example 80
    output_has "answer 1"
    has_variants "$1" || return 0
    to "$1" --net learn -- missing.example 80
    output_has "connect: [Errno -2]"
    must_exit 6 jail "$1" --net open -- curl -sS http://missing.example/
}

@test "with an open network, a name that does not exist is not found" {
    for_each_user missing
}

closed() {
    local options
    for options in "--net open" "--allow good.example:5999" "--allow *:5999"; do
        # shellcheck disable=SC2086
        to "$1" --verbose $options -- good.example 5999
        [[ $output == *ECONNREFUSED* ]] || [[ $output == *ECONNRESET* ]]
        output_has "brig: failed: good.example:5999 (cannot connect: Connection refused)"
        has_variants "$1" || break
    done
    to "$1" --verbose --allow host:5999 -- host 5999
    [[ $output == *ECONNREFUSED* ]] || [[ $output == *ECONNRESET* ]]
    output_has "brig: failed: host:5999 (cannot connect: Connection refused)"
    to "$1" --allow host:80 -- host 80
    output_has "answer 1"
    has_variants "$1" || return 0
    to "$1" --net open --verbose -- 93.184.216.34 5999
    output_has "brig: failed: 93.184.216.34:5999"
}

@test "a closed port is an error at once, and it is said" {
    for_each_user closed
}

refused() {
    to "$1" --net open -- good.example 5999
    output_has ECONNREFUSED
    to "$1" --net open -- 2606:2800:220:1::34 5999
    output_has ECONNREFUSED
    to "$1" --net open -- 10.1.2.3 80
    output_has ECONNREFUSED
    to "$1" --allow good.example:443 -- good.example 5000
    output_has ECONNREFUSED
    # A server of the jail on all addresses is not taken for the one that was meant.
    must jail "$1" --net open -- python3 -c '
import socket
own = socket.create_server(("", 5999))
try:
    socket.create_connection(("good.example", 5999), 30)
except ConnectionRefusedError:
    print("refused")
socket.create_connection(("127.0.0.1", 5999), 30)
'
    output_has refused
}

@test "connect() itself fails where the kernel can hold connections" {
    holds || cannot "this kernel has no queue for held connections"
    for_each_user refused
}

@test "where the kernel cannot hold connections, they are accepted and then reset" {
    must world user timeout 60 "$WITHOUT" netfilter -- "$BRIG" run --mode sealed --nocwd --verbose \
        --allow host:80,5432,5999 -- sh -c "python3 -c '$CONNECT' host 5999; python3 -c '$CONNECT' host 80"
    output_has ECONNRESET
    output_has "answer 1"
    output_has "brig: failed: host:5999 (cannot connect: Connection refused)"
}

# A SYN with data, whose message the kernel does not pad, after one whose data looks like a message.
FAST_OPEN='
import socket, struct, sys
FAST_OPEN_NO_COOKIE = 34
fake = struct.pack("=IHHII", 0x7ffffff0, 0x300, 0, 0, 0) + bytes(4) + struct.pack("=HH", 0x8000, 99)
for data in (b"aaaa" + fake, b"b", b"cc", b"ddd", b"eeee"):
    s = socket.socket()
    s.settimeout(30)
    s.setsockopt(socket.IPPROTO_TCP, FAST_OPEN_NO_COOKIE, 1)
    s.sendto(data, socket.MSG_FASTOPEN, (sys.argv[1], 5000))
    print("echo", s.recv(len(data), socket.MSG_WAITALL)[:4].decode())
'

fast_open() {
    must jail "$1" --allow 93.184.216.34:5000 -- python3 -c "$FAST_OPEN" 93.184.216.34
    [ "$output" = "$(printf 'echo %s\n' aaaa b cc ddd eeee)" ]
}

@test "a SYN with data of any length is read, and nothing behind it" {
    for_each_user fast_open
}

@test "a broker that is gone leaves no connection waiting" {
    jail user --allow good.example:5000 --allow 93.184.216.34:5000 --dir "$SCRATCH" -- sh -c "$AWAIT
        python3 -c '$CONNECT' 93.184.216.34 5000
        echo > $SCRATCH/reached
        await_file $SCRATCH/killed
        python3 -c '$CONNECT' 93.184.216.34 5000" > "$SCRATCH/out" 2>&1 3>&- &
    local jail_pid=$!
    await_file "$SCRATCH/reached"
    kill -KILL "$(pgrep -u "$LIB_USER" -f '^brig-broker serve')"
    touch "$SCRATCH/killed"
    wait "$jail_pid" || true
    run cat "$SCRATCH/out"
    output_has "connect: ECONNREFUSED"
}

# ---- Remedies ------------------------------------------------------------------------------------

# remedied WHO TEXT OPTIONS... -- CMD...: the command is refused, brig says TEXT, and the command works
# when the options that follow TEXT's last "with" are typed.
remedied() {
    local who=$1 text=$2 line options=()
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    must_fail world "$who" timeout 60 "$BRIG" run --verbose --nocwd --storage "$SCRATCH/$who" "${options[@]}" -- "$@"
    line=$(grep -F "$text" <<< "$output")
    [ -n "$line" ]
    line=${line##*with }
    echo "# typed: $line"
    # shellcheck disable=SC2294
    eval "must world $who timeout 60 $BRIG run --verbose --nocwd --storage $SCRATCH/$who" \
        '"${options[@]}"' "$line" '-- "$@"'
}

blocked() {
    local get=(curl -sSf -m 20)
    remedied "$1" "blocked: other.example;" --mode sealed --allow good.example -- "${get[@]}" http://other.example/
    remedied "$1" "blocked: host:80;" --mode sealed --net open -- "${get[@]}" http://host/
    remedied "$1" "blocked: inner.example:80 " --mode bare -- "${get[@]}" http://inner.example/
    has_variants "$1" || return 0
    remedied "$1" "blocked: good.example:5000;" --mode sealed --allow good.example -- \
        python3 -c "$CONNECT
print('done') if s.recv(1) else exit(1)" good.example 5000
    remedied "$1" "blocked: host:80;" --mode sealed --allow good.example -- "${get[@]}" http://host/
    remedied "$1" "blocked: host:80;" --mode bare -- "${get[@]}" http://host/
    remedied "$1" "blocked: inner.example:80 " --mode sealed --allow inner.example -- "${get[@]}" http://inner.example/
    remedied "$1" "blocked: near.example:80 " --mode bare -- "${get[@]}" http://near.example/
    remedied "$1" "blocked: near.example:80 " --mode sealed --net open -- "${get[@]}" http://near.example/
    remedied "$1" "blocked: 10.1.2.3:80 " --mode bare -- "${get[@]}" http://10.1.2.3/
    remedied "$1" "blocked: 93.184.216.35:5000 " --mode sealed --net open --deny evil.example -- \
        python3 -c 'import socket
s = socket.create_connection(("93.184.216.35", 5000), 20); s.sendall(b"x")
exit(s.recv(1) != b"x")'
}

@test "every remedy for a blocked destination works when it is typed" {
    for_each_user blocked
}

starts() {
    local brig=(world "$1" timeout 60 "$BRIG" run --nocwd --mode sealed)
    # A network that has no door, and what needs one.
    must_exit 125 "${brig[@]}" --net none --allow good.example -- true
    output_has "Use --net allow, or --net open"
    must "${brig[@]}" --net allow --allow good.example -- curl -sSf http://good.example/
    must "${brig[@]}" --net open --allow good.example -- curl -sSf http://good.example/
    has_variants "$1" || return 0
    must_exit 125 "${brig[@]}" --net none --publish 18099:3000 -- true
    output_has "use --net allow or open"
    must "${brig[@]}" --net open --publish 18099:3000 -- true
    must_exit 125 "${brig[@]}" --net none --proxy-env -- true
    output_has "has no proxy: use --net allow or open"
    must "${brig[@]}" --net allow --proxy-env --allow good.example -- curl -sSf http://good.example/
    must_exit 125 "${brig[@]}" --allow host -- true
    output_has "Write it as host:5432"
    must "${brig[@]}" --allow host:5432 -- true
    must_exit 125 "${brig[@]}" --allow localhost:80 -- true
    output_has "for a service on the host write host:PORT"
    must "${brig[@]}" --allow host:80 -- curl -sSf http://host/
    must_exit 125 "${brig[@]}" --allow 127.0.0.1:80 -- true
    output_has "for a service on the host write host:PORT"
}

@test "every remedy for a network that cannot be started works when it is typed" {
    for_each_user starts
}

@test "this suite knows every remedy in the sources" {
    # One that is added to the sources must be typed by a test above, and then be listed here.
    local known='"%s is waiting; in another terminal: brig allow %s"
"--allow %s does nothing with the network '"'%s'"'. Use --net allow, or --net "
"--net open "
"allow it with %s--allow %s"
"it has loopback in it; for a service on the host write host:PORT"
"or run with --net none (no network) or --net host (no door)"
"that is the jail itself; for a service on the host write host:PORT"
"use --net allow or open"
"which port of the host? Write it as host:5432"'
    local src=$LIB_DIR/../../src
    run bash -c "LC_ALL=C; export LC_ALL; cd '$src' && grep -rhoE '\"[^\"]*(--allow |--net |--publish |host:PORT|host:5432|brig allow )[^\"]*\"' \
        cli/network/net*.c cli/remedy.c policy/*.c jail/net/*.c net/*.c | sort -u"
    diff <(LC_ALL=C sort <<< "$known") <(printf '%s\n' "$output")
}

@test "the remedy for a program that is a link grants what the link leads to" {
    local bin=$SCRATCH/links/bin real=$SCRATCH/links/share/tool/1.0 line
    mkdir -p "$bin" "$real"
    printf '#!/bin/sh\necho tool ran\n' > "$real/tool"
    chmod 0755 "$real/tool"
    ln -s ../share/tool/1.0/tool "$bin/tool"
    chmod -R go+rX "$SCRATCH"
    must_exit 127 world user env PATH="$bin:$PATH" timeout 60 "$BRIG" run --nocwd --mode sealed -- tool
    line=$(grep -o -- "-r '.*" <<< "$output")
    eval "must world user env PATH='$bin:$PATH' timeout 60 '$BRIG' run --nocwd --mode sealed $line -- tool"
    output_has "tool ran"
}

# ---- Mirrors and credentials ---------------------------------------------------------------------

mirrors() {
    local home
    home=$LIB_USER_HOME
    mkdir -p "$home/.config/pip"
    printf 'registry=http://joe:secret@other.example/npm/\n@corp:registry=http://good.example/\n' > "$home/.npmrc"
    printf '[global]\nindex-url = http://other.example/simple\nextra-index-url =\n  http://good.example/a\n' \
        > "$home/.config/pip/pip.conf"
    chown -R "$LIB_USER" "$home/.npmrc" "$home/.config"
    local mode brig
    for mode in sealed casual; do
        brig=(world user timeout 60 "$BRIG" run --mode "$mode" --nocwd --storage "$SCRATCH/user")
        must "${brig[@]}" --allow @npm+mirrors --allow @pypi+mirrors -- sh -c '
            cat ~/.npmrc 2>/dev/null
            env; curl -sSf "$npm_config_registry"; curl -sSf "$PIP_INDEX_URL"; curl -sSf $PIP_EXTRA_INDEX_URL'
        output_has "npm_config_registry=http://other.example/npm/"
        output_has "PIP_INDEX_URL=http://other.example/simple"
        output_has "PIP_EXTRA_INDEX_URL=http://good.example/a"
        output_has "seen: GET /npm/"
        output_has "seen: GET /a"
        output_lacks secret
        must "${brig[@]}" --allow @npm+mirrors --setenv npm_config_registry=mine -- \
            sh -c 'echo "$npm_config_registry"'
        output_has mine
        must_fail "${brig[@]}" --allow @npm -- curl -sSf http://other.example/npm/
    done
}

@test "mirrors of files that the jail does not see keep working, without their passwords" {
    mirrors
}

@test "the upstream of a credential may be a service of the host" {
    API_KEY=k must jail user --net allow \
        --inject "api.example x-api-key=env:API_KEY url=API_URL upstream=http://host:80" -- \
        sh -c 'curl -sSf "$API_URL/"'
    output_has "x-api-key: k"
}

# ---- Learning ------------------------------------------------------------------------------------

WORK='set -e
curl -sSf --cacert "$1/cert.pem" https://good.example/ > /dev/null
curl -sSf http://other.example/ http://93.184.216.35/ > /dev/null
curl -sSf -g "http://[2606:2800:220:1::34]/" > /dev/null
curl -sSf http://inner.example/ http://near.example/ http://host/ http://10.1.2.3/ > /dev/null
python3 -c "import socket
for port in 5000, 2525:
    socket.create_connection((\"both.example\", port), 20).sendall(b\"x\")"
echo worked'

learning() {
    local rules=$SCRATCH/learnt-$1.conf local_rules=(--allow 10.1.2.3:80 --allow 93.184.218.1:80 --allow host:80)
    must jail "$1" --net learn "${local_rules[@]}" -- sh -c "$WORK" - "$WORLD"
    output_has worked
    sed -n '/^net allow$/,$p' <<< "$output" | grep -E '^(net|allow) ' > "$rules"
    chmod 0644 "$rules"
    must jail "$1" --conf "$rules" -- sh -c "$WORK" - "$WORLD"
    output_has worked
    must_fail jail "$1" --conf "$rules" -- curl -sSf http://www.good.example/
    # Without the local destinations it is said what was refused.
    must_fail jail "$1" --net learn -- sh -c "$WORK" - "$WORLD"
    output_has "blocked: inner.example:80 (its address 10.1.2.3 is not public (private)"
    output_has "allow it with --allow 10.1.2.3:80"
}

@test "the rules that learn prints are enough for the same work" {
    for_each_user learning
}
