#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where root is not the machine's: uid 0 of a user namespace, and brig inside a jail of brig.

load lib

setup() {
    needs unshare
    scratch_make root
    cd "$SCRATCH" || return
}

teardown() {
    cd /
    scratch_remove
}

# As uid 0 in a user namespace of the ordinary user's, the only id there is.
as_namespace_root() {
    run_as_user unshare -Ur "$@"
}

@test "root of a user namespace gets a full jail" {
    must as_namespace_root "$BRIG" -m sealed --result result.json -- sh -c 'id -u; cat /proc/self/uid_map'
    [ "${lines[0]}" != "" ]
    must grep -q '"outcome":"exited"' result.json
    must as_namespace_root "$BRIG" -m sealed --nocwd -- sh -c \
        'grep -q "^CapEff:.0*$" /proc/self/status && grep -q "^NoNewPrivs:.1$" /proc/self/status &&
         test "$(ls /proc | grep -c "^[0-9]")" -lt 8'
    must_fail as_namespace_root "$BRIG" -m sealed -- cat /etc/shadow
}

@test "root of a user namespace can be granted what its user owns, and no more" {
    run_as_user mkdir ours
    run_as_user sh -c 'echo mine >ours/file; chmod 0600 ours/file'
    must as_namespace_root "$BRIG" -m sealed --nocwd --dir "$SCRATCH/ours" -- \
        sh -c "cat '$SCRATCH/ours/file'; echo new >'$SCRATCH/ours/new'"
    output_has mine
    [ "$(cat ours/new)" = new ]
    [ "$(stat -c %u ours/new)" = "$(stat -c %u ours/file)" ]
}

@test "root of a user namespace is told by the doctor what works" {
    must as_namespace_root "$BRIG" doctor
    output_has "A full jail works."
}

@test "a jail in a jail is refused in words, and works where it is allowed" {
    local tools
    tools=$(dirname "$BRIG")
    must_exit 125 run_as_user "$BRIG" -m sealed --rdir "$tools" --seccomp dev -- "$BRIG" -m sealed -- touch made
    output_has "cannot make the jail's namespaces"
    [ ! -e made ]
    must_exit 1 run_as_user "$BRIG" -m sealed --rdir "$tools" --seccomp dev -- "$BRIG" doctor
    output_has "No full jail works."
    must run_as_user "$BRIG" -m sealed --allow-nested --rdir "$tools" --seccomp dev -- \
        "$BRIG" -m sealed -- sh -c 'touch made; test ! -e /etc/shadow; grep NoNewPrivs.*1 /proc/self/status'
    [ -e made ]
}

# bwrap has a word for all namespaces, and cgroup namespaces are among them: those are refused.
@test "bubblewrap works in a jail where it is allowed, with namespaces called by their names" {
    needs bwrap
    local inner=(bwrap --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-net)
    for who in $(each_user); do
        must as "$who" "$BRIG" -m sealed --allow-nested --seccomp dev -- "${inner[@]}" \
            sh -c 'touch /tmp/x && readlink /proc/self/ns/user && echo "inner $(id -u)"'
        output_has inner
        must_fail as "$who" "$BRIG" -m sealed --allow-nested --seccomp dev -- bwrap --ro-bind / / --unshare-all true
        must_fail as "$who" "$BRIG" -m sealed --seccomp dev -- "${inner[@]}" true
    done
}
