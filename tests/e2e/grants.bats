#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Grants in a casual jail: what can be written and what cannot, twice, many of them, and in a chroot.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

setup() {
    jails_setup
    H=$LIB_USER_HOME
    run_as_user mkdir -p "$H/ot-here/sub" "$H/ot-other"
    cd "$H/ot-here" || return
}

teardown() {
    run_as_user rm -rf "$H/ot-here" "$H/ot-other" "$H/ot-link"
    jails_teardown
}

casual() {
    run_as_user "$BRIG" -m casual -j ot "$@"
}

@test "what is granted can be written and nothing beside it" {
    jail user ot
    must casual -r "$H/ot-here/sub" -d "$H/ot-other" -- \
        sh -c 'touch made "$1/made" && ! touch sub/made 2>/dev/null && ! touch /usr/made 2>/dev/null' - "$H/ot-other"
    [ -e made ]
    [ -e "$H/ot-other/made" ]
    [ ! -e sub/made ]
}

@test "what is granted at two places is at both, with what is hidden and protected there" {
    jail user ot
    run_as_user sh -c 'echo hidden >secret; mkdir -p .vscode'
    must casual -d "$H/ot-here" -d "$H/ot-here:/mnt" --mask "$H/ot-here/secret" -- \
        sh -c 'cat secret /mnt/secret && touch made /mnt/made-too && ! mkdir .vscode/x 2>/dev/null && ! mkdir /mnt/.vscode/x 2>/dev/null'
    [ -z "$output" ]
    [ -e made ]
    [ -e made-too ]
}

@test "900 directories can be granted" {
    jail user ot
    local grants=() i
    run_as_user sh -c 'for i in $(seq 900); do mkdir "sub/$i"; done'
    for i in $(seq 900); do grants+=(-r "$H/ot-here/sub/$i"); done
    must casual "${grants[@]}" -- sh -c 'grep -c /ot-here/sub/ /proc/self/mountinfo'
    [ "$output" -ge 900 ]
}

@test "what lies below or above what a jail has of its own is granted all the same" {
    jail user ot
    local place
    place=$(run_as_user mktemp -d /tmp/ot-tmp.XXXXXXXX)
    LIB_SCRATCHES="$LIB_SCRATCHES $place"
    run_as_user ln -sfn "$place" "$H/ot-link"
    must casual -d "$place" -- sh -c 'touch "$1/made" && ! ls /tmp/brig-* 2>/dev/null' - "$place"
    [ -e "$place/made" ]
    rm -f "$place/made"
    must casual -d "$H/ot-link" -- sh -c 'touch "$1/made" || touch "$2/made"' - "$place" "$H/ot-link"
    [ -e "$place/made" ]
    must casual -r /etc -- sh -c '[ -s /etc/passwd ]'
    must casual '--dir!' "$H/ot-other/new" -d "$H/ot-other" -- touch "$H/ot-other/made"
    [ -e "$H/ot-other/made" ]
    [ -d "$H/ot-other/new" ]
    rm -f "$H/ot-other/made"
}

# in_chroot COMMAND…: as the user, in a part of the tree that is a root to it, in which /mnt is another one.
in_chroot() {
    unshare -m --propagation private sh -ec '
        mkdir -p "$1" && mount --rbind / "$1" && mount -t tmpfs none "$1/mnt" && mkdir "$1/mnt/ot-inside"
        shift 2
        exec "$@"' - "$SCRATCH/root" -- chroot --userspec="$(id -u "$LIB_USER"):$(id -g "$LIB_USER")" \
        "$SCRATCH/root" env -C "$H/ot-here" HOME="$H" "$@"
}

@test "in a chroot nobody is let out of it" {
    lib_is_root || cannot "chroot takes root"
    scratch_make user
    jail user ot
    must casual -- true # its holder is outside
    must in_chroot ls /mnt
    [ "$output" = ot-inside ]
    # The kernel makes no user namespaces in a chroot: this is refused, or done with less. In no case is
    # another /mnt seen.
    run in_chroot "$BRIG" -m casual -j ot -- ls /mnt
    [ "$status" -ne 0 ] || [ "$output" = ot-inside ]
    scratch_remove
}
