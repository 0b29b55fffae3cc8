#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The disk limit of jails with a home: what is private in memory is held to it, what is on disk is
# where the filesystem can, and where it cannot, that is said.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

setup() {
    scratch_make user
    cd "$SCRATCH" || return
    export BRIG_CONFIG_DIR=$SCRATCH/store # and where jails are kept
}

teardown() {
    [ -z "${first:-}" ] || kill "$first" 2>/dev/null || true
    for who in $(each_user); do
        as "$who" "$BRIG" -u >/dev/null 2>&1 || true
    done
    cd /
    scratch_remove
}

# Jails as each user in each mode: check MODE, with `who` set, and $jail the words that begin a run.
in_each_mode() {
    local pair mode who type
    type=$(findmnt -nT /root -o FSTYPE)
    for pair in $(pairs_of "$(each_user)" casual bare strict); do
        who=${pair%:*} mode=${pair#*:}
        # In a virtual machine root's home is not on a disk, and cannot be id-mapped.
        [ "$who $mode $type" != 'root casual overlay' ] || continue
        echo "$who, $mode" >&2
        jail=(as "$who" "$BRIG" -m "$mode" -j "disk-$mode" -D --on-unsupported ignore)
        "$1"
        as "$who" "$BRIG" stop "disk-$mode"
        rm -rf store
    done
}

fill='dd if=/dev/zero of=$0 bs=1M count=$1 status=none'

# Whether 8 MiB fit into each of them, while nothing is in the others.
each_place='for place in /tmp/f /var/tmp/f /dev/shm/f "/run/user/$(id -u)/f"; do
    if dd if=/dev/zero of="$place" bs=1M count=8; then echo "fits: $place"; else echo "full: $place"; fi
    rm "$place"
done'

@test "private directories are full by bytes, together" {
    check() {
        must "${jail[@]}" --disk 4M -- sh -c "$each_place"
        [ "$(grep -c '^full: ' <<<"$output")" = 4 ]
        [ "$(grep -c 'No space left' <<<"$output")" = 4 ]
        output_lacks 'fits: '
        must "${jail[@]}" --disk 16M -- sh -c "$each_place"
        [ "$(grep -c '^fits: ' <<<"$output")" = 4 ]
        output_lacks 'full: '
        must_fail "${jail[@]}" --disk 6M -- sh -c 'head -c 4M /dev/zero >/tmp/a && head -c 4M /dev/zero >/dev/shm/b'
        output_has 'No space left'
    }
    in_each_mode check
}

@test "private directories are full by the number of files" {
    check() {
        must_fail "${jail[@]}" --disk-inodes 100 -- sh -c 'for i in $(seq 200); do : >/tmp/$i || exit 3; done'
        output_has 'No space left'
        must "${jail[@]}" -- sh -c 'rm -f /tmp/[0-9]*; for i in $(seq 200); do : >/tmp/$i || exit 3; done'
    }
    in_each_mode check
}

@test "what runs at the same time has the least that one asks for, and no longer than it runs" {
    check() {
        mkfifo -m 0666 go
        "${jail[@]}" --disk 8M -- sh -c ': >/tmp/here; read line' <>go 3>&- &
        first=$!
        must "${jail[@]}" -- sh -c "$AWAIT; await_file /tmp/here"
        must_fail "${jail[@]}" --disk 64M -- sh -c "$fill" /tmp/f 16
        output_has 'No space left'
        must "${jail[@]}" -- rm /tmp/f
        must_fail "${jail[@]}" --disk 2M -- sh -c "$fill" /tmp/f 4
        must "${jail[@]}" -- sh -c "rm -f /tmp/f; $fill; rm /tmp/f" /tmp/f 6
        echo >go
        wait "$first"
        must "${jail[@]}" --disk 64M -- sh -c "$fill" /tmp/f 16
        rm go
    }
    in_each_mode check
}

@test "a limit below what is there already is refused, or listed" {
    check() {
        must "${jail[@]}" --disk 64M -- sh -c "$fill" /tmp/f 16
        must_exit 125 "${jail[@]}" --on-unsupported fail --disk 4M -- true
        output_has 'disk limit cannot be enforced here'
        must "${jail[@]}" --on-unsupported warn --disk 4M --result result.json -- true
        output_has "not enforced: limit disk: more is in the jail's /tmp already"
        grep -q 'limit disk' result.json
        must "${jail[@]}" -- rm /tmp/f
        must "${jail[@]}" --on-unsupported warn --disk 4M -- true
        output_lacks '/tmp already'
    }
    in_each_mode check
}

@test "a home on a filesystem without quotas is said not to be limited" {
    check() {
        must_exit 125 "${jail[@]}" --on-unsupported fail --disk 4M -- true
        output_has 'disk limit cannot be enforced here'
        output_has "the jail's home is on disk"
        output_has '--on-unsupported warn'
        must "${jail[@]}" --on-unsupported warn --disk-inodes 1000 --result result.json -- true
        output_has "not enforced: limit disk: the jail's home is on disk"
        grep -q 'limit disk' result.json
        must "${jail[@]}" --on-unsupported fail -- true
        must "${jail[@]}" --on-unsupported fail --disk none -- true
    }
    # With quotas, see tests/vm/quota.bats.
    findmnt -nT . -o OPTIONS | grep -q prjquota && skip "this filesystem has them"
    in_each_mode check
}

@test "what fills the private directories does not keep masks from being made" {
    for who in $(each_user); do
        [ "$who $(findmnt -nT /root -o FSTYPE)" != 'root overlay' ] || continue
        jail=(as "$who" "$BRIG" -m casual -j full -D --on-unsupported ignore)
        must "${jail[@]}" --disk 1M --disk-inodes 1000 -- sh -c 'yes >/tmp/f 2>/dev/null
            for i in $(seq 3000); do true 2>/dev/null >/tmp/$i || break; done; [ $i -lt 3000 ]'
        echo secret >"$(as "$who" sh -c 'cd && pwd')/.disk-secret"
        must "${jail[@]}" --mask .disk-secret -- sh -c 'cat ~/.disk-secret 2>/dev/null; true'
        output_lacks secret
        as "$who" "$BRIG" stop full
        rm -rf store "$(as "$who" sh -c 'cd && pwd')/.disk-secret"
    done
}
