#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Refused system calls, listed by name where that is asked for.

load lib

teardown() {
    scratch_remove
}

prepare() { # prepare WHO
    WHO=$1
    scratch_make "$WHO"
    RESULT=$SCRATCH/result.json
}

jail() { # jail OPTION... -- CMD...
    as "$WHO" "$BRIG" run -m sealed --nocwd --result "$RESULT" "$@"
}

# told EXPRESSION: about d, the denials of the last result, and r, all of it
told() {
    python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
d = r["denials"] and {x["name"]: (x["errno"], x["count"]) for x in r["denials"]["syscalls"]}
assert eval(sys.argv[2]), r' "$RESULT" "$1"
}

@test "refused system calls are listed with --trace-denials, and only then" {
    for who in $(each_user); do
        prepare "$who"
        must_fail jail -- unshare -U true
        told 'd is None'
        must_fail jail --trace-denials -- unshare -U true
        output_has "refused: unshare (Operation not permitted), 1 time"
        told 'd == {"unshare": (1, 1)}'
        must jail --trace-denials --seccomp dev --allow-nested -- unshare -U true
        told 'd == {}'
        scratch_remove
    done
}

@test "interpreters start without being refused anything" {
    for who in $(each_user); do
        prepare "$who"
        for profile in code dev; do
            for program in python3 node bash perl; do
                [ -x "/usr/bin/$program" ] || continue
                must jail --trace-denials --seccomp "$profile" -- "/usr/bin/$program" --version
                told 'd == {}'
            done
            must jail --trace-denials --seccomp "$profile" -- /usr/bin/python3 -c \
                'import json, socket, subprocess, threading; subprocess.run(["true"], check=True)'
            told 'd == {}'
        done
        scratch_remove
    done
}

@test "a jail in a jail cannot list, says so, and refuses all the same" {
    for who in $(each_user); do
        prepare "$who"
        must_fail jail --trace-denials --seccomp dev --allow-nested --rdir "$(dirname "$BRIG")" -- \
            "$BRIG" run -m sealed --nocwd --on-unsupported warn --trace-denials -- unshare -U true
        output_has "refused system calls are not listed"
        output_has "unshare failed: Operation not permitted"
        must jail --trace-denials --seccomp dev --allow-nested --rdir "$(dirname "$BRIG")" -- \
            "$BRIG" run -m sealed --nocwd --on-unsupported warn -- echo nested
        output_has nested
        scratch_remove
    done
}

@test "without namespaces they are listed as well" {
    for who in $(each_user); do
        prepare "$who"
        must_fail jail --trace-denials --disable namespaces --workdir / -- unshare -U true
        told 'd == {"unshare": (1, 1)}'
        scratch_remove
    done
}

@test "calls that seem to be missing, and families of sockets, are listed too" {
    tried='import ctypes, socket, sys
for family in (socket.AF_NETLINK, socket.AF_PACKET):
    try: socket.socket(family, socket.SOCK_RAW, 3)
    except OSError as error: print(error)
for call in sys.argv[1:]:
    ctypes.CDLL(None).syscall(int(call), 0, 0, 0, 0)'
    for who in $(each_user); do
        prepare "$who"
        # io_uring_setup has the number 425 everywhere.
        must jail --trace-denials -- /usr/bin/python3 -c "$tried" 425
        told 'd == {"socket": (97, 2), "io_uring_setup": (38, 1)}'
        output_has 'refused: socket (Address family not supported by protocol), 2 times'
        must jail --trace-denials --seccomp dev -- /usr/bin/python3 -c "$tried" 425
        output_has 'refused: socket (Protocol not supported), 1 time'
        output_has 'refused: socket (Operation not permitted), 1 time'
        output_has 'refused: io_uring_setup (Function not implemented), 1 time'
        # clone3 has a fallback in every libc.
        must jail --trace-denials -- /usr/bin/python3 -c 'import subprocess; subprocess.run(["true"], check=True)'
        told 'd == {}'
        scratch_remove
    done
}
