#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What real programs need of a jail: files of /etc and /sys, loopback, message queues, a name for commits,
# and words about what a nested sandbox lacks. docs/programs.md has the programs.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

setup() {
    needs python3 git
    jails_setup
}

teardown() {
    jails_teardown
}

# in_each CHECK: calls it with who and mode set, for modes with a view of the system.
in_each() {
    for pair in $(pairs_of "$(everyone root)" strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        echo "# as $who, $mode" >&2
        "$1"
    done
}

jailed() { # jailed ARGS…
    by "$who" -m "$mode" -j "soft-$who" -d "$SCRATCH/project" "$@"
}

# ---- /etc and /sys ----

@test "programs find their configuration in /etc, and nothing that may hold a secret" {
    shown=$(ls -d /etc/{ImageMagick-*,chromium.d,emacs,fonts,java-*-openjdk,manpath.config,mime.types,os-release} \
        /etc/{protocols,services,debian_version,maven/m2.conf,R/Renviron,texmf} 2>/dev/null || true)
    hidden=$(ls -d /etc/{shadow,gshadow,machine-id,ssh,sudoers,npmrc,pip.conf,environment,profile,maven/settings.xml} \
        /etc/{hostname,fstab,ssl/private,R/Renviron.site,postgresql} 2>/dev/null || true)
    [ -n "$shown" ]
    [ -n "$hidden" ]
    check() {
        # shellcheck disable=SC2086 # several paths
        must jailed -- ls -d $shown
        # shellcheck disable=SC2086
        must jailed -- sh -c 'for path; do [ ! -e "$path" ] || echo "found $path"; done' sh $hidden
        output_lacks found
        must jailed -- sh -c 'cat /etc/os-release && getent services https/tcp && getent protocols udp'
        must_fail jailed -- sh -c 'echo x >>/etc/services'
    }
    in_each check
}

# with_etc CMD...: with keys and tokens in directories of /etc, some of which are shown.
with_etc() {
    ROOT_STORE=$ROOT_STORE unshare --mount "$BASH" -c '
        set -e
        . "$1/lib.bash"
        HOME_OF_USER=$LIB_USER_HOME
        mount -t tmpfs none "$2"
        mkdir "$2/upper" "$2/work"
        mount -t overlay none -o "lowerdir=/etc,upperdir=$2/upper,workdir=$2/work" /etc
        mkdir -p /etc/pki/tls/{private,certs} /etc/chromium/policies/{enrollment,managed} /etc/ssl/private
        for file in pki/tls/private/key ssl/private/key chromium/policies/enrollment/token; do
            echo of-the-host >"/etc/$file"
        done
        chmod 0755 /etc/ssl/private
        # What only root can read, by itself and by its directory.
        mkdir -p /etc/R /etc/maven
        echo of-root >/etc/timezone
        echo of-root >/etc/R/Renviron
        echo of-root >/etc/maven/m2.conf
        chmod 0600 /etc/timezone /etc/R/Renviron
        chmod 0700 /etc/maven
        for file in pki/tls/certs/one chromium/policies/managed/one; do
            echo shown >"/etc/$file"
        done
        shift 2
        "$@"' - "$LIB_DIR" "$SCRATCH/over" "$@"
}

@test "keys and tokens in directories of /etc that are shown are hidden" {
    lib_is_root || cannot "only root can change /etc"
    mkdir "$SCRATCH/over"
    look='cat /etc/pki/tls/certs/one /etc/chromium/policies/managed/one && grep -rs of-the-host /etc || true'
    for mode in strict sealed; do
        must with_etc by user -m "$mode" -D -j "soft-user" -- sh -c "$look"
        [ "$(grep -c shown <<<"$output")" -eq 2 ]
        output_lacks of-the-host
    done
    # The twin: bare shows the host's files.
    must with_etc by user -m bare -D -j "soft-bare" -- sh -c "$look"
    [ "$(grep -c "^/etc.*of-the-host" <<<"$output")" -eq 3 ]
    jail user soft-user
    jail user soft-bare
}

@test "files of /etc that only root can read are hidden in root's jails, too" {
    lib_is_root || cannot "only root can change /etc"
    mkdir "$SCRATCH/over"
    jail root soft-root
    for pair in $(pairs_of "root sudo" strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        must with_etc by "$who" -m "$mode" -D -j "soft-$who" -- sh -c 'cat /etc/services && grep -rs of-root /etc || true'
        output_has https
        output_lacks of-root
    done
    # The twin: what everyone can read.
    must with_etc "$BASH" -c 'chmod 0644 /etc/timezone; . "$1/lib.bash"; ROOT_STORE=$2; by root -m strict -D -j soft-root -- cat /etc/timezone' \
        - "$LIB_DIR" "$ROOT_STORE"
    output_has of-root
}

@test "of /sys there are the processors, and they cannot be switched off" {
    [ -d /sys/devices/system/cpu ] || cannot "this system shows no processors in /sys"
    check() {
        must jailed -- sh -c 'ls /sys /sys/devices /sys/devices/system; cat /sys/devices/system/cpu/online'
        drop_told
        [ "$output" = "/sys:
devices

/sys/devices:
system

/sys/devices/system:
cpu
$(cat /sys/devices/system/cpu/online)" ]
        must_fail jailed -- sh -c 'echo 1 >/sys/devices/system/cpu/cpu0/uevent'
    }
    in_each check
}

# ---- loopback ----

serve='import http.server, socket, threading, urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("served", urllib.request.urlopen("http://localhost:%d/" % server.server_port).status)
print("interfaces", socket.if_nameindex())'

reach='import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
    print("reached")
except OSError as error:
    print("not reached", error)'

@test "loopback: servers and clients work, and nothing outside is reached" {
    # A server of the host, on all its addresses.
    python3 -c 'import socket
s = socket.create_server(("0.0.0.0", 0)); print(s.getsockname()[1], flush=True); s.accept()[0].recv(1)' >"$SCRATCH/port" &
    server=$!
    await test -s "$SCRATCH/port"
    port=$(cat "$SCRATCH/port")
    check() {
        must jailed --net loopback -- python3 -c "$serve"
        output_has 'served 200'
        output_has "interfaces [(1, 'lo')]"
        must jailed --net loopback -- python3 -c "$reach" 127.0.0.1 "$port"
        output_has 'not reached'
        must jailed --net loopback -- python3 -c "$reach" 192.0.2.1 80
        output_has 'Network is unreachable'
    }
    in_each check
    must python3 -c "$reach" 127.0.0.1 "$port"
    output_has reached
    wait "$server"
}

@test "loopback: sealed has sockets and shared memory with it, and not without" {
    shared='import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
made = libc.shmget(0, 4096, 0o600)
print("shared memory", "works" if made >= 0 else os.strerror(ctypes.get_errno()))'
    mode=sealed
    for who in $(everyone root); do
        must jailed --net loopback -- python3 -c "$shared"
        output_has 'shared memory works'
        must jailed -- python3 -c "$shared"
        output_has 'shared memory Function not implemented'
        must_fail jailed -- python3 -c "$serve"
        output_has 'Permission denied'
    done
}

@test "loopback: a typo is corrected, and a port cannot be published from it" {
    must_exit 125 by user -m sealed --net loopbak -- true
    output_has "loopback"
    must_exit 125 by user -m sealed --net loopback --publish 18080:80 -- true
    output_has "cannot publish a port with the network 'loopback'"
    must_exit 125 by user -m sealed --net loopback --allow example.org -- true
    output_has "does nothing with the network 'loopback'"
}

# ---- message queues ----

queue='import ctypes, os, sys
rt = ctypes.CDLL("librt.so.1", use_errno=True)
queue = rt.mq_open(sys.argv[1].encode(), int(sys.argv[2], 8), 0o600, None)
print("queue", "works" if queue >= 0 else os.strerror(ctypes.get_errno()))'
CREATE=102 # O_CREAT | O_RDWR
OPEN=2

@test "message queues: a jail has its own, and does not see those of the host" {
    name=/brigtest-$$
    must python3 -c "$queue" "$name" "$CREATE"
    [ "$output" = 'queue works' ] || cannot "this kernel has no message queues"
    for pair in $(pairs_of "$(everyone root)" strict casual); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        must jailed -- python3 -c "$queue" "$name" "$OPEN"
        output_has 'queue No such file'
        must jailed -- sh -c 'python3 -c "$0" "$1-own" "$2" && ls /dev/mqueue' "$queue" "$name" "$CREATE"
        output_has 'queue works'
        output_has "brigtest-$$-own"
        mode=sealed
        must jailed -- python3 -c "$queue" "$name" "$CREATE"
        output_has 'queue Function not implemented'
    done
    must python3 -c "$queue" "$name" "$OPEN"
    output_has 'queue works'
    must python3 -c 'import ctypes, sys; ctypes.CDLL("librt.so.1").mq_unlink(sys.argv[1].encode())' "$name"
}

# ---- who commits ----

@test "commits have the user's name and address, and nothing else of the configuration" {
    as_me() { run_as_user git config --global "$@"; }
    as_me user.name 'Ann "A" Örn \o/'
    as_me user.email ann@example.org
    as_me alias.secret 'log --format=secret'
    as_me http.extraHeader 'Authorization: secret'
    run_as_user git init -q .
    for pair in $(pairs_of "$(everyone)" strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        must jailed -- sh -c 'git commit -q --allow-empty -m x && git log -1 --format="%an <%ae>"'
        output_has 'Ann "A" Örn \o/ <ann@example.org>'
        [ "$(run_as_user git log -1 --format=%ae)" = ann@example.org ]
        must jailed -- sh -c 'git config --list; cat /etc/gitconfig'
        output_lacks secret
        # Any other configuration is stronger.
        must jailed -- sh -c 'git config --global user.email inside@example.org; git config user.email'
        output_has inside@example.org
        must jailed -- sh -c 'rm -f ~/.gitconfig'
    done
    run_as_user git config user.email repository@example.org
    for mode in strict sealed; do
        who=user
        must jailed -- git config user.email
        output_has repository@example.org
    done
    run_as_user git config --unset user.email
    # A changed configuration is read again; without a name nothing is passed.
    as_me user.email new@example.org
    must jailed -- git config user.email
    output_has new@example.org
    as_me --remove-section user
    must jailed -- sh -c '[ ! -e /etc/gitconfig ]'
    must_fail jailed -- git config user.email
    as_me --remove-section alias
    as_me --remove-section http
}

@test "in mode bare, too, whose home is empty" {
    run_as_user git config --global user.name Ann
    run_as_user git config --global user.email ann@example.org
    run_as_user git config --global alias.secret 'log --format=secret'
    run_as_user git init -q .
    who=user mode=bare
    jail user soft-bare
    must jailed -- sh -c 'git commit -q --allow-empty -m x && git log -1 --format="%an <%ae>"; git config --list'
    output_has 'Ann <ann@example.org>'
    output_lacks secret
    must jailed -- sh -c 'git config --global user.name Own; git config user.name; rm ~/.gitconfig'
    output_has Own
    # A file that the user has chosen stays chosen.
    GIT_CONFIG_SYSTEM=/dev/null must_fail jailed -- git config user.name
    run_as_user git config --global --remove-section alias
}

@test "a repository that is made inside has the user's name, too" {
    run_as_user git config --global user.name Ann
    run_as_user git config --global user.email ann@example.org
    for pair in $(pairs_of "$(everyone)" strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        must jailed -- sh -c 'git init -q /tmp/new && cd /tmp/new && git commit -q --allow-empty -m x &&
            git log -1 --format="%an <%ae>"'
        output_has 'Ann <ann@example.org>'
    done
    run_as_user git config --global --remove-section user
}

# ---- nested sandboxes ----

@test "a nested sandbox that was refused is explained, and nothing else is" {
    said='brig: the jail refused namespaces'
    needs unshare
    for pair in $(pairs_of "$(everyone root)" strict sealed casual); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "soft-$who"
        must_fail jailed -- unshare -U true
        output_has "$said"
        output_has --allow-nested
        must_fail jailed -- sh -c 'unshare -U true 2>/dev/null; exit 3'
        output_has "$said"
        # The program went on without.
        must jailed -- sh -c 'unshare -U true 2>/dev/null; exit 0'
        output_lacks "$said"
        # It failed for another reason.
        must_fail jailed -- sh -c 'true; exit 3'
        output_lacks "$said"
        must jailed --seccomp dev --allow-nested -- unshare -U true
        output_lacks "$said"
    done
}

@test "a client of a service outside is told that it is outside" {
    run_as_user sh -c 'mkdir bin; printf "#!/bin/sh\nexit \$1\n" >bin/docker; chmod +x bin/docker'
    who=user mode=strict
    jail user soft-user
    must_fail jailed -- ./bin/docker 1
    output_has 'brig: the Docker daemon is outside the jail and cannot be reached'
    must jailed -- ./bin/docker 0
    output_lacks 'the Docker daemon'
}
