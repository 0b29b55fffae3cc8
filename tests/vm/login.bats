#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Limits where systemd runs the machine: a session is not its user's to divide, so brig asks the
# user's manager for a group. Run by root in a virtual machine with systemd; see tests/suites.py.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; lines are single-quoted

load ../e2e/lib

setup_file() {
    [ -d /run/systemd/system ] || return 0
    # What `ninja install` would put there.
    install -D -m 0644 "$LIB_ROOT/systemd/user-limits.conf" /etc/systemd/system/user@.service.d/50-brig.conf
    systemctl daemon-reload
}

setup() {
    [ -d /run/systemd/system ] || cannot "systemd does not run this machine"
    user=$LIB_USER
}

# log_in LINE: the user's shell runs it in a session.
log_in() {
    runuser -l "$user" -c "$1"
}

eats() { # eats MIB: a command for a shell
    printf "python3 -c 'bytearray(%d << 20)'" "$1"
}

@test "a login is in a session of its own, with a manager and a bus" {
    must log_in 'grep "/session-[^/]*\.scope$" /proc/self/cgroup'
    must log_in 'test -S "$XDG_RUNTIME_DIR/bus" && systemctl --user show -p Version'
}

@test "a limit holds in a session" {
    must_exit 137 log_in "'$BRIG' -m sealed -D --memory 64M -- $(eats 128)"
    must log_in "'$BRIG' -m sealed -D --memory 64M -- $(eats 32)"
}

@test "a limit on CPU time counts children that nobody waits for, in a session" {
    must_exit 124 log_in "'$BRIG' -m sealed -D --cpu-time 1s --timeout 60s --grace 0 -- python3 -c '
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        for i in range(100000): pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass'"
    must log_in "'$BRIG' -m sealed -D -v --cpu-time 60s -- true"
    output_lacks 'limit cpu-time'
}

@test "brig is in a scope of the user's manager, which ends with the run" {
    must log_in "$AWAIT
        in_scope() { grep -s '/user@.*/brig-.*\.scope' /proc/\$!/cgroup; }
        none_is_left() { ! systemctl --user list-units --no-legend 'brig-*.scope' | grep .; }
        '$BRIG' -m sealed -D --memory 64M -- sleep 100 &
        await in_scope
        kill \$!
        wait \$!
        await none_is_left"
    output_has '/brig-'
}

@test "a limit holds in a service of the user's" {
    must_exit 137 log_in "systemd-run --user --wait --pipe -q '$BRIG' -m sealed -D --memory 64M -- $(eats 128)"
    must log_in "systemd-run --user --wait --pipe -q '$BRIG' -m sealed -D --memory 64M -- $(eats 32)"
}

@test "a limit holds in a session of root's" {
    must_exit 137 runuser -l root -c "'$BRIG' -m sealed -D --memory 64M -- $(eats 128)"
    must runuser -l root -c "'$BRIG' -m sealed -D --memory 64M -- $(eats 32)"
}

@test "the doctor names what the user's systemd can limit" {
    must log_in "'$BRIG' doctor | grep ' cgroups '"
    output_has "from the user's systemd"
    output_has 'memory cpu pids io'
}

# As cron starts it: by the system, in a service of root's, without a session.
from_cron() { # from_cron COMMAND…
    systemd-run --collect --wait --pipe -q --uid="$user" "$@"
}

@test "from cron a limit needs a manager that runs without a login, and the message says so" {
    local manager
    manager=/run/user/$(id -u "$user")/systemd/private
    await_not test -e "$manager"
    must_exit 125 from_cron "$BRIG" -m sealed -D --memory 64M -- true
    output_has "sudo loginctl enable-linger $(id -u "$user")"
    must from_cron "$BRIG" doctor
    output_has "sudo loginctl enable-linger $(id -u "$user")"
    must loginctl enable-linger "$user"
    await_file "$manager"
    must_exit 137 from_cron "$BRIG" -m sealed -D --memory 64M -- python3 -c 'bytearray(128 << 20)'
    must from_cron "$BRIG" -m sealed -D --memory 64M -- python3 -c 'bytearray(32 << 20)'
    must loginctl disable-linger "$user"
}

@test "the system goes on" {
    must systemctl list-units --failed --no-legend
    [ -z "$output" ]
}
