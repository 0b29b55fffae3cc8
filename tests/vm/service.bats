#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brigd as a service of systemd, with the units that are installed: it starts, runs code within limits, reloads,
# loses a process, hangs, stops, and starts with a connection; for the system and for a user. Run by root in a virtual machine with systemd; see tests/suites.py.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; lines are single-quoted

load ../e2e/lib

address=127.0.0.1:8099
url=http://$address
log=/var/log/brigd/access

setup_file() {
    [ -d /run/systemd/system ] || return 0
    useradd --system --shell /usr/sbin/nologin --home-dir /nonexistent brigd
    # What `ninja install` would put there.
    install -D "$BUILD_DIR/src/server/brigd" /usr/local/bin/brigd
    install -D "$BUILD_DIR/src/net/brig-broker" /usr/local/libexec/brig/brig-broker
    install -D -m 0644 "$BUILD_DIR/systemd/brigd.service" /etc/systemd/system/brigd.service
    install -D -m 0644 "$LIB_ROOT/systemd/brigd.socket" /etc/systemd/system/brigd.socket
    sed -i "s/^ListenStream=.*/ListenStream=$address/" /etc/systemd/system/brigd.socket
    install -D -m 0644 "$BUILD_DIR/systemd/user/brigd.service" /etc/systemd/user/brigd.service
    install -D -m 0644 "$LIB_ROOT/systemd/user/brigd.socket" /etc/systemd/user/brigd.socket
    mkdir -p /etc/brig
    printf '%s\n' "server: {listen: '$address', access_log: $log, drain_timeout: 20s}" \
        > /etc/brig/brigd.yaml
    chmod 0644 /etc/brig/brigd.yaml
    systemctl daemon-reload
}

setup() {
    [ -d /run/systemd/system ] || cannot "systemd does not run this machine"
    needs curl
}

show() { # show PROPERTY: of the service
    systemctl show brigd.service -p "$1" --value
}

# execute CODE [FIELDS]: a shell's
execute() {
    execute_in bash "$@"
}

execute_in() { # execute_in LANGUAGE CODE [FIELDS]
    curl -sS --max-time 100 -H 'Content-Type: application/json' \
        -d "{\"language\": \"$1\", \"code\": \"$2\"${3:+, $3}}" "$url/execute"
}

# entries FIELD=VALUE…: of the service's journal
entries() {
    journalctl --sync
    journalctl -o json _SYSTEMD_UNIT=brigd.service "$@"
}

is_busy() {
    curl -sS --max-time 60 "$url/health" | grep -q '"active":1'
}

@test "the unit is one that systemd understands whole" {
    must systemd-analyze verify --man=no /etc/systemd/system/brigd.{service,socket}
    output_lacks brigd
}

@test "the service starts, and is up when systemctl says so" {
    must systemctl start brigd.service
    must curl -sS --max-time 60 "$url/health"
    output_has '"status":"ok"'
    must systemctl is-active brigd.service
}

@test "it is a user of its own without capabilities" {
    run cat "/proc/$(show MainPID)/status"
    [[ $output =~ Uid:[[:space:]]+$(id -u brigd)[[:space:]] ]]
    [[ $output =~ CapBnd:[[:space:]]+0000000000000000 ]]
    [[ $output =~ NoNewPrivs:[[:space:]]+1 ]]
}

@test "code is run, and every limit holds" {
    must execute 'echo from a jail; id -u'
    output_has '"output":"from a jail\n65534\n"'
    output_has '"status":"ok"'
    # What is not enforced would be listed.
    output_lacks unenforced
}

@test "every language works below the restrictions of the unit, cold and from a pool" {
    local language
    for language in python node; do
        command -v "${language/python/python3}" > /dev/null || continue
        for _ in 1 2 3; do
            must execute_in "$language" "$([ "$language" = python ] && echo 'print(6*7)' || echo 'console.log(6*7)')"
            output_has '"output":"42\n"'
            output_lacks unenforced
        done
    done
}

@test "calls that a jail refuses are reported, as without the unit" {
    must execute 'unshare -U true; echo $?'
    output_has syscall_denied
    output_has 'unshare: EPERM'
    must execute 'true; echo $?'
    output_has '"security_events":[]'
}

@test "a limit on memory is one of the whole jail" {
    must execute 'head -c 100000000 /dev/zero | tail' '"limits": {"memory_mb": 32}'
    output_has '"status":"oom"'
    must execute 'head -c 1000000 /dev/zero | tail | wc -c' '"limits": {"memory_mb": 32}'
    output_has '"status":"ok"'
}

@test "the history is where the unit keeps its state" {
    must curl -sS --max-time 60 "$url/executions?status=ok"
    output_has '"language":"bash"'
    must test -f /var/lib/brigd/history.sqlite
    [ "$(stat -c %U:%a /var/lib/brigd)" = brigd:700 ]
}

@test "a reload opens a rotated log anew, and is over when systemctl says so" {
    local main
    main=$(show MainPID)
    must grep -q '"path":"/execute"' "$log"
    mv "$log" "$log.1"
    must systemctl reload brigd.service
    must curl -sS --max-time 60 "$url/rotated"
    await grep -q /rotated "$log"
    run grep -c rotated "$log.1"
    [ "$output" = 0 ]
    [ "$(show MainPID)" = "$main" ]
    must systemctl is-active brigd.service
}

@test "a part that dies is started again, and the service stays up" {
    local main front
    main=$(show MainPID)
    front=$(pgrep -P "$main" -x brigd-http)
    kill -KILL "$front"
    await curl -sS --fail --max-time 60 "$url/health"
    must execute 'echo again'
    output_has '"output":"again\n"'
    [ "$(show MainPID)" = "$main" ]
}

@test "a stop waits for what runs, and leaves nothing" {
    execute 'sleep 3; echo to its end' > "$BATS_TEST_TMPDIR/answer" &
    local client=$!
    await is_busy
    must systemctl stop brigd.service
    wait "$client"
    grep -q '"output":"to its end\\n"' "$BATS_TEST_TMPDIR/answer"
    [ "$(show Result):$(show ActiveState)" = success:inactive ]
    must_exit 1 pgrep -u brigd
    [ ! -e /sys/fs/cgroup/system.slice/brigd.service ]
    [ ! -e /run/brigd ]
}

@test "lines of the log are entries of the journal, with priority and process" {
    # Three of the tests above have caused these.
    must entries PRIORITY=6 BRIGD_PROCESS=supervisor
    output_has '"MESSAGE":"reloaded: '
    output_has '"SYSLOG_IDENTIFIER":"brigd"'
    must entries PRIORITY=3 BRIGD_PROCESS=supervisor
    output_has 'the http died by signal 9'
    must entries PRIORITY=4
    output_has 'no API key is asked for'
}

@test "a brigd that hangs is killed and started again by the watchdog" {
    mkdir -p /run/systemd/system/brigd.service.d
    printf '%s\n' '[Service]' 'WatchdogSec=10' > /run/systemd/system/brigd.service.d/watchdog.conf
    systemctl daemon-reload
    must systemctl start brigd.service
    local main told
    main=$(show MainPID)
    told=$(show WatchdogTimestampMonotonic)
    is_told() { [ "$(show WatchdogTimestampMonotonic)" != "$told" ]; }
    await is_told
    [ "$(show MainPID):$(show NRestarts)" = "$main:0" ]
    kill -STOP "$main"
    is_restarted() { [ "$(show NRestarts):$(show ActiveState)" = 1:active ]; }
    await is_restarted
    must execute 'echo after'
    output_has '"output":"after\n"'
    must systemctl stop brigd.service
    rm /run/systemd/system/brigd.service.d/watchdog.conf
    systemctl daemon-reload
}

@test "with the socket brigd starts with the first connection, and a restart refuses none" {
    must systemctl start brigd.socket
    must_exit 3 systemctl is-active brigd.service
    must curl -sS --fail --max-time 60 "$url/health"
    must systemctl is-active brigd.service
    systemctl restart brigd.service &
    local restart=$! i
    for ((i = 0; i < 20; i++)); do
        must curl -sS --max-time 60 -o /dev/null -w '%{http_code}' "$url/health"
    done
    wait "$restart"
    must curl -sS --fail --max-time 60 "$url/health"
    must systemctl stop brigd.socket brigd.service
    must_exit 7 curl -sS --max-time 60 "$url/health"
}

@test "a user's own brigd starts with a connection to the user's socket, with limits" {
    # Without it the file in /etc would be used, which names a log that is not the user's.
    must runuser -l "$LIB_USER" -c '
        mkdir -p ~/.config/brig && touch ~/.config/brig/brigd.yaml &&
        systemctl --user start brigd.socket &&
        curl -sS --fail --max-time 60 --unix-socket "$XDG_RUNTIME_DIR/brigd.sock" http://localhost/execute \
            -H "Content-Type: application/json" -d "{\"language\": \"bash\", \"code\": \"echo mine\"}" &&
        systemctl --user is-active brigd.service &&
        systemctl --user stop brigd.service &&
        ls "$XDG_RUNTIME_DIR/brigd.sock" && systemctl --user stop brigd.socket'
    output_has '"output":"mine\n"'
    output_lacks unenforced
    output_has /brigd.sock
}

@test "the system goes on" {
    must systemctl list-units --failed --no-legend
    [ -z "$output" ]
}
