#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Filesystems whose files can share blocks (btrfs, xfs): a checkpoint contains everything there, and neither it nor an apply
# nor an undo takes the space twice. Each test makes the filesystems in files.

# shellcheck disable=SC2016 # scripts for a shell of the user
# shellcheck disable=SC2030,SC2031 # each test has its own MOUNTS
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

LARGE=25165824 # more than --checkpoint-size
SLACK_KIB=8192 # what a filesystem may need for itself

setup() {
    lib_is_root || cannot "it takes mounts"
    needs mkfs.btrfs mkfs.xfs filefrag
    repos_setup
    MOUNTS=
    scratch_make root
    IMAGES=$SCRATCH
}

teardown() {
    local place
    cd /
    for place in $MOUNTS; do
        for who in root user; do
            BRIG_CONFIG_DIR=$place/$who/store as "$who" "$BRIG" -u -j "$JAIL" >/dev/null 2>&1 || true
        done
        await umount --quiet "$place"
    done
    repos_teardown
}

# filesystem TYPE: an empty one at $IMAGES/TYPE, with a directory for root and one for the user.
filesystem() {
    local place=$IMAGES/$1
    truncate -s 512M "$place.image"
    case $1 in
    btrfs) mkfs.btrfs -q "$place.image" >/dev/null ;;
    xfs) mkfs.xfs -q -m reflink=1 "$place.image" ;;
    ext4) mkfs.ext4 -q "$place.image" ;;
    esac
    mkdir "$place"
    mount -o loop "$place.image" "$place" || cannot "there are no loop devices, or no $1"
    MOUNTS="$place $MOUNTS"
    mkdir "$place/root" "$place/user"
    chown "$LIB_USER:" "$place/user"
}

# home TYPE WHO: a storage and a project on a filesystem; the project becomes the working directory.
home() {
    HOME_HERE=$IMAGES/$1/$2
    OWNER=$2
    export BRIG_CONFIG_DIR=$HOME_HERE/store
    as "$2" mkdir -p "$HOME_HERE/store" "$HOME_HERE/p"
    cd "$HOME_HERE/p" || return
    as "$2" sh -ec 'git init -q -b main; echo a >a; printf "big/\n*.bin\n" >.gitignore; git add a; git commit -q -m first
        mkdir -p big/sub; head -c "$1" /dev/urandom >big/b; head -c "$1" /dev/urandom >one.bin; echo s >big/sub/s
        truncate -s 10G big/sparse; echo end >>big/sparse; echo untracked >u; ln -s a l' - "$LARGE"
    sync -f .
}

brig() {
    as "$OWNER" "$BRIG" "$@"
}

in_jail() {
    local script=$1
    shift
    brig -m sealed -j "$JAIL" "${GIT[@]}" "$@" -- sh -ec "$script"
}

sums() {
    find . -path ./.git -prune -o -type f -size -1000M -print0 | sort -z | xargs -0 sha256sum
    stat -c '%n %s' big/sparse
    tail -c 4 big/sparse
}

used_kib() {
    sync -f .
    df -k --output=used . | tail -n 1
}

# is_used KIB: no more than that is used, but for the filesystem's own needs.
is_used() {
    local now
    now=$(used_kib)
    [ "$now" -le $(($1 + SLACK_KIB)) ] || {
        echo "$now KiB are used, not $1 KiB" >&2
        return 1
    }
}

# is_shared FILE: it has extents, and each is shared.
is_shared() {
    filefrag -v "$1" | grep -E '^ +[0-9]+:' >"$IMAGES/extents" || return
    ! grep -v shared "$IMAGES/extents"
}

is_sparse() {
    [ "$(stat -c %b "$1")" -le 128 ]
}

clones() {
    find "$BRIG_CONFIG_DIR/$JAIL.record/checkpoints/clones" -type f | wc -l
}

@test "a checkpoint contains large ignored files, which share their blocks, and undo restores them so" {
    for type in btrfs xfs; do
        filesystem "$type"
        for who in root user; do
            home "$type" "$who"
            wanted=$(sums)
            before=$(used_kib)
            must in_jail 'rm -rf big *.bin a u l .gitignore' --checkpoint
            output_lacks "left out"
            [ ! -e big ]
            [ ! -e one.bin ]
            [ "$(clones)" -eq 4 ]
            is_used "$before"
            must brig undo -j "$JAIL"
            [ "$(sums)" = "$wanted" ]
            is_used "$before"
            is_shared one.bin
            is_shared big/b
            is_sparse big/sparse
        done
    done
}

@test "gc keeps the clones of runs that can be undone, and removes the others" {
    filesystem btrfs
    home btrfs user
    must in_jail 'echo one >>one.bin' --checkpoint
    must in_jail 'echo two >>one.bin' --checkpoint
    [ "$(clones)" -eq 5 ]
    wanted=$(brig log -j "$JAIL" --json)
    must brig gc -j "$JAIL"
    [ "$(brig log -j "$JAIL" --json)" = "$wanted" ]
    [ "$(clones)" -eq 5 ]
    must brig undo -j "$JAIL"
    must brig undo -j "$JAIL"
    [ "$(stat -c %s one.bin)" -eq "$LARGE" ]
    # What a gc that was killed leaves is no reason to stop.
    as user mkdir "$BRIG_CONFIG_DIR/$JAIL.record/checkpoints/clones.kept"
    must brig gc -j "$JAIL" --older 0
    [ "$(clones)" -eq 4 ] # the newest checkpoint
    [ ! -e "$BRIG_CONFIG_DIR/$JAIL.record/checkpoints/clones.kept" ]
    must in_jail 'rm -rf big' --checkpoint
    must brig undo -j "$JAIL"
    [ -e big/sub/s ]
}

@test "what is on another filesystem than the storage is named when it is left out" {
    filesystem btrfs
    filesystem xfs
    home btrfs user
    export BRIG_CONFIG_DIR=$IMAGES/xfs/user/store
    as user mkdir "$BRIG_CONFIG_DIR"
    must in_jail 'rm -rf a u l' --checkpoint
    output_has "left out: big/ (10.0 GiB), one.bin (24 MiB)"
    must brig undo -j "$JAIL"
    [ "$(cat a u l)" = "$(printf 'a\nuntracked\na')" ]
    [ -e big/b ]
    # A part of an ignored directory: the other part is there.
    export BRIG_CONFIG_DIR=$IMAGES/btrfs/user/store
    as user mkdir big/other "$IMAGES/xfs/user/other"
    as user sh -c 'echo x >"$1/x"' - "$IMAGES/xfs/user/other"
    mount --bind "$IMAGES/xfs/user/other" big/other
    MOUNTS="$PWD/big/other $MOUNTS"
    must in_jail 'rm -rf big/b one.bin' --checkpoint
    output_has "left out: big/other/x"
    output_lacks "changed while"
    must brig undo -j "$JAIL"
    [ "$(stat -c %s big/b one.bin)" = "$(printf '%s\n%s' "$LARGE" "$LARGE")" ]
}

@test "apply and undo share the blocks of large files with what is kept" {
    for type in btrfs xfs; do
        filesystem "$type"
        home "$type" user
        must in_jail 'echo more >>big/b; printf end | dd of=big/sparse bs=1 seek=5G conv=notrunc status=none' --review
        wanted=$(sums)
        before=$(used_kib)
        must brig apply -j "$JAIL" --all
        is_shared big/b
        [ "$(stat -c %s big/b)" -eq $((LARGE + 5)) ]
        is_sparse big/sparse
        is_used "$before"
        must brig undo -j "$JAIL"
        [ "$(sums)" = "$wanted" ]
        is_sparse big/sparse
        is_used "$before"
    done
}
