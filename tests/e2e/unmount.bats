#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A disk that was mounted when a jail was used can be unmounted, and is free then, while the jail's holder
# lives on.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

FUSE=/usr/bin/fuse-overlayfs

setup() {
    lib_is_root || cannot "it takes root to mount disks"
    needs mkfs.ext4 losetup
    jails_setup
    # A directory whose mounts reach the copies that others have of it, or not, as a test says.
    MEDIA=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
    LIB_SCRATCHES="$LIB_SCRATCHES $MEDIA"
    chmod 0755 "$MEDIA"
    mount --bind "$MEDIA" "$MEDIA"
    mount --make-private "$MEDIA"
    mkdir "$MEDIA/disk"
    truncate -s 16M "$SCRATCH/image"
    mkfs.ext4 -q "$SCRATCH/image"
    DEVICE=$(losetup --find --show "$SCRATCH/image") || cannot "there are no loop devices"
}

teardown() {
    local place
    for place in "$HOME_OF_USER/.disk" "$MEDIA/disk" "$MEDIA" "$FUSE"; do
        ! mountpoint --quiet "$place" || umount "$place"
    done
    [ ! -d "$HOME_OF_USER/.disk" ] || rmdir "$HOME_OF_USER/.disk"
    jails_teardown
    [ -z "${DEVICE:-}" ] || losetup --detach "$DEVICE"
}

insert() { # insert DIRECTORY
    mount "$DEVICE" "$1"
    chmod 0777 "$1"
    echo here >"$1/file"
}

# is_free: nobody has it mounted, in any namespace: the kernel lets one process have it for itself.
is_free() {
    python3 -IS -c 'import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)' "$DEVICE"
}

@test "a disk that is mounted is not free, and neither is one that another namespace has mounted" {
    is_free
    insert "$MEDIA/disk"
    must_fail is_free
    unshare --mount sleep 60 3>&- &
    local other=$!
    await_not test "/proc/self/ns/mnt" -ef "/proc/$other/ns/mnt"
    umount "$MEDIA/disk"
    must_fail is_free
    kill "$other"
    wait "$other" || true
    await is_free
}

# use_disk WHO MODE: a run sees the disk, or not; then it is unmounted, and free; and the next run has the
# same holder.
use_disk() {
    local who=$1 mode=$2 holder
    jail "$who" "disk-$mode"
    insert "$MEDIA/disk"
    must by "$who" -m "$mode" -j "disk-$mode" -D -- sh -c 'echo kept >/tmp/kept; cat "$0" 2>/dev/null || true' "$MEDIA/disk/file"
    [ "$mode" != casual ] || output_has here
    holder=$(holder_of "disk-$mode")
    umount "$MEDIA/disk"
    is_free
    must by "$who" -m "$mode" -j "disk-$mode" -D -- cat /tmp/kept
    output_has kept
    [ "$(holder_of "disk-$mode")" = "$holder" ]
    is_free
}

@test "an unmounted disk is free while the holder lives, of an ordinary user and of root" {
    local pair who mode propagation type
    type=$(findmnt -nT /root -o FSTYPE)
    for propagation in private shared; do
        mount "--make-$propagation" "$MEDIA"
        # A mode that is the user's where mounts are private is root's where they are shared.
        if [ "$propagation" = private ]; then who="user root"; else who="root user"; fi
        for pair in $(pairs_of "$who" casual bare strict); do
            echo "$propagation $pair"
            # In a virtual machine root's home is not on a disk, and cannot be id-mapped.
            [ "$pair $type" != 'root:casual overlay' ] || continue
            use_disk "${pair%:*}" "${pair#*:}"
            by "${pair%:*}" stop "disk-${pair#*:}"
        done
    done
}

@test "a run that lasts keeps a disk busy for as long as it lasts" {
    jail user lasting
    insert "$MEDIA/disk"
    run_as_user "$BRIG" -m casual -j lasting -- sh -c "$AWAIT; : >up; await_file enough" 3>&- &
    local run=$!
    await_file up
    umount "$MEDIA/disk"
    must_fail is_free
    touch enough
    wait "$run"
    await is_free
    [ "$(holder_of lasting)" -gt 1 ]
}

@test "a holder mounts the home again, and in another mode, without the host's mounts" {
    local holder
    jail user again
    insert "$MEDIA/disk"
    must run_as_user "$BRIG" -m bare -j again -D -- sh -c 'echo kept >/tmp/kept'
    holder=$(holder_of again)
    must run_as_user "$BRIG" -m casual -j again -D -- sh -c 'cat /tmp/kept; echo changed >~/.changed'
    must run_as_user "$BRIG" -m casual -j again -D --mask '~/.other' -- cat "$HOME_OF_USER/.changed"
    output_has changed
    must run_as_user "$BRIG" -m strict -j again -D -- cat /tmp/kept
    [ "$(holder_of again)" = "$holder" ]
    umount "$MEDIA/disk"
    is_free
}

@test "masks lead by links to a disk that was mounted later" {
    jail user links
    must run_as_user "$BRIG" -m casual -j links -D -- true
    local holder
    holder=$(holder_of links)
    insert "$MEDIA/disk"
    run_as_user ln -s "$MEDIA/disk/file" "$HOME_OF_USER/.disk-link"
    must run_as_user "$BRIG" -m casual -j links -D -- cat "$MEDIA/disk/file"
    must run_as_user "$BRIG" -m casual -j links -D --mask .disk-link -- sh -c 'wc -c <"$0"' "$MEDIA/disk/file"
    [ "$output" = 0 ]
    rm "$HOME_OF_USER/.disk-link"
    [ "$(holder_of links)" = "$holder" ]
    umount "$MEDIA/disk"
    is_free
}

@test "a jail is used on after the mount namespace that its holder was started in is gone" {
    local holder
    jail user gone
    run_as_user mkdir "$HOME_OF_USER/.hidden"
    must unshare --mount --propagation private setpriv --reuid="$LIB_USER" --regid="$LIB_USER" --clear-groups \
        env HOME="$HOME_OF_USER" "$BRIG" -m casual -j gone -D -- sh -c 'echo kept >/tmp/kept; echo changed >~/.changed'
    holder=$(holder_of gone)
    [ "$holder" -gt 1 ]
    must run_as_user "$BRIG" -m casual -j gone -D -- cat /tmp/kept "$HOME_OF_USER/.changed"
    [ "$(holder_of gone)" = "$holder" ]
    # Other masks take another overlay: another holder has to mount it.
    must run_as_user "$BRIG" -m casual -j gone -D --mask .hidden -- sh -c 'cat ~/.changed; test ! -e ~/.hidden'
    output_has changed
    rmdir "$HOME_OF_USER/.hidden"
}

@test "a disk below the home can be unmounted, as brig says, and its jail used then" {
    jail user below
    run_as_user mkdir "$HOME_OF_USER/.disk"
    must run_as_user "$BRIG" -m bare -j below -D -- sh -c 'echo kept >/tmp/kept'
    local holder
    holder=$(holder_of below)
    insert "$HOME_OF_USER/.disk"
    [ ! -e "$FUSE" ] || mount --bind /dev/null "$FUSE"
    must_exit 125 run_as_user "$BRIG" -m casual -j below -D -- true
    output_has "Unmount it"
    umount "$HOME_OF_USER/.disk"
    is_free
    must run_as_user "$BRIG" -m casual -j below -D -- cat /tmp/kept
    [ "$(holder_of below)" = "$holder" ]
}

export DEVICE HOME_OF_USER
needs_fuse() {
    [ -e "$FUSE" ] || cannot "fuse-overlayfs is not installed"
    run_as_user test -w /dev/fuse || cannot "the user may not open /dev/fuse"
    run_as_user mkdir "$HOME_OF_USER/.disk"
}

@test "a disk below a home that fuse-overlayfs lays over is free after the last run" {
    needs_fuse
    jail user fused
    insert "$HOME_OF_USER/.disk"
    must run_as_user "$BRIG" -m casual -j fused -D -- sh -c 'cat ~/.disk/file; echo changed >~/.changed'
    output_has here
    await umount "$HOME_OF_USER/.disk" # until fuse-overlayfs has ended
    await is_free
    insert "$HOME_OF_USER/.disk"
    must run_as_user "$BRIG" -m casual -j fused -D -- sh -c 'cat ~/.disk/file ~/.changed'
    output_has changed
}

shared_fuse() {
    local holder
    mount --make-rshared /
    insert "$HOME_OF_USER/.disk"
    must run_as_user "$BRIG" -m casual -j fused -D -- sh -c 'echo kept >/tmp/kept; cat ~/.disk/file'
    output_has here
    holder=$(holder_of fused)
    [ "$holder" -gt 1 ]
    umount "$HOME_OF_USER/.disk"
    is_free
    must run_as_user "$BRIG" -m casual -j fused -D -- cat /tmp/kept
    [ "$(holder_of fused)" = "$holder" ]
}

@test "where mounts are shared the holder lives on with fuse-overlayfs, and a disk is free" {
    needs_fuse
    jail user fused
    must unshare --mount --propagation private bash -ec '. "$0/lib.bash"; run() { status=0; output=$("$@" 2>&1) || status=$?; }
        eval "$1"; shared_fuse' "$LIB_DIR" "$(declare -f shared_fuse insert is_free)"
}
