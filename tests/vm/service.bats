#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brigd as a service of systemd, by the unit that is installed: it starts, runs code within limits, reloads,
# loses a part of itself, and stops. Run by root in a virtual machine with systemd; see tests/suites.py.
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
    install -D -m 0644 "$BUILD_DIR/brigd.service" /etc/systemd/system/brigd.service
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
    curl -sS --max-time 100 -H 'Content-Type: application/json' \
        -d "{\"language\": \"bash\", \"code\": \"$1\"${2:+, $2}}" "$url/execute"
}

is_busy() {
    curl -sS --max-time 60 "$url/health" | grep -q '"active":1'
}

# Waits until a command succeeds.
until_done() { # until_done COMMAND…
    local i
    for ((i = 0; i < 20 * BRIG_SLOW; i++)); do
        ! "$@" > /dev/null 2>&1 || return 0
        sleep 0.5
    done
    "$@"
}

@test "the unit is one that systemd understands whole" {
    must systemd-analyze verify --man=no /etc/systemd/system/brigd.service
    output_lacks brigd.service
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
    must until_done grep -q /rotated "$log"
    run grep -c rotated "$log.1"
    [ "$output" = 0 ]
    [ "$(show MainPID)" = "$main" ]
    must systemctl is-active brigd.service
}

@test "a part that dies is started again, and the service stays up" {
    local main front
    main=$(show MainPID)
    front=$(pgrep -P "$main" -x brigd-front)
    kill -KILL "$front"
    must until_done curl -sS --fail --max-time 60 "$url/health"
    must execute 'echo again'
    output_has '"output":"again\n"'
    [ "$(show MainPID)" = "$main" ]
}

@test "a stop waits for what runs, and leaves nothing" {
    execute 'sleep 3; echo to its end' > "$BATS_TEST_TMPDIR/answer" &
    local client=$!
    must until_done is_busy
    must systemctl stop brigd.service
    wait "$client"
    grep -q '"output":"to its end\\n"' "$BATS_TEST_TMPDIR/answer"
    [ "$(show Result):$(show ActiveState)" = success:inactive ]
    must_exit 1 pgrep -u brigd
    [ ! -e /sys/fs/cgroup/system.slice/brigd.service ]
    [ ! -e /run/brigd ]
}

@test "the system goes on" {
    must systemctl list-units --failed --no-legend
    [ -z "$output" ]
}
