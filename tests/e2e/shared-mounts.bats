#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where mounts are shared, as systemd has them, nothing that is mounted in a jail comes out of it.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

setup() {
    lib_is_root || cannot "it takes root to share mounts"
    scratch_make root
    cd "$SCRATCH" || return
}

teardown() {
    cd /
    scratch_remove
}

# compare LINE: runs it where all mounts are shared, though not with this machine, and prints the
# mounts it leaves behind.
compare() {
    unshare --mount --propagation private bash -c '
        mount --make-rshared /
        list() { cut -d" " -f4- /proc/self/mountinfo | sort; }
        list > before
        eval "$1" >out 2>&1 || { cat out; exit 9; }
        diff before <(list) | grep "^>"
        exit 0' - "$1"
}
export -f run_as_user lib_is_root
export LIB_USER

@test "what is mounted where mounts are shared is seen by those who share them" {
    run compare 'mkdir -p point && mount -t tmpfs none point'
    output_has "$SCRATCH/point"
    run compare 'mkdir -p point && unshare --mount --propagation unchanged mount -t tmpfs none point'
    output_has "$SCRATCH/point"
}

@test "no mount of a jail comes out, in any mode, as root and as a user" {
    for mode in sealed strict bare casual; do
        for who in '' run_as_user; do
            # In a virtual machine root's home is not on a disk, and cannot be id-mapped.
            [ "$mode $who $(findmnt -nT /root -o FSTYPE)" != 'casual  overlay' ] || continue
            mkdir -p part
            echo "mode $mode $who"
            export BRIG_CONFIG_DIR=$SCRATCH/store # and where jails are kept
            must compare "$who '$BRIG' -m $mode -j shared-mounts --mask '$SCRATCH/part' -- true"
            [ -z "$output" ] || {
                echo "$output"
                false
            }
            [ "$mode" = sealed ] || must $who "$BRIG" stop shared-mounts
            rm -rf store part
        done
    done
}
