#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The root of a casual jail is the tree that its mount namespace began with, where that can be, and a clone
# of it elsewhere. Both are the same to who is inside.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib

setup() {
    [ -x "$WITHOUT" ] || cannot "no $WITHOUT: build the test tools"
    jails_setup
    H=$(lib_user_home)
    run_as_user mkdir -p "$H/ot-here/sub" "$H/ot-other"
    cd "$H/ot-here" || return
}

teardown() {
    run_as_user rm -rf "$H/ot-here" "$H/ot-other" "$H/ot-link"
    jails_teardown
}

# What is seen of the tree, and what can be done to it. Not all of /etc: other suites change it meanwhile.
LOOK='pwd; ls / /dev /etc/passwd; ls -A "$HOME" . | grep -v "^total"
cut -d" " -f4-6 /proc/self/mountinfo | sort
for place in / /etc /usr /dev /home /tmp /run /var/tmp "$HOME" . "$@"; do
    if touch "$place/ot-made" 2>/dev/null; then echo "$place can be written"; rm "$place/ot-made"; fi
done
head -c 3 /dev/urandom | wc -c; : >/dev/null && echo null; ls -d /proc/1/root/.. 2>&1; cd ..; pwd; ls -A | head -3'

# without CALLS ARGUMENTS…: a casual run on a kernel without these calls; without any if there are none.
without() {
    local calls=$1
    shift
    run_as_user "$WITHOUT" "$calls" -- "$BRIG" -m casual -j ot "$@"
}

@test "a casual run needs no other root to change to, and does without where it must have one" {
    jail user ot
    must without pivot_root=EPERM -- true
    must without pidfd_open -- true # pidfd_open is what its own tree takes
    # The twin: with neither of the two there is no jail of this kind.
    must_exit 125 without pidfd_open,pivot_root=EPERM -- true
}

@test "both are the same inside" {
    jail user ot
    must without pivot_root=EPERM -- sh -c "$LOOK" -
    local own=$output
    must without pidfd_open -- sh -c "$LOOK" -
    # The private git directory of each run has a name of its own.
    diff <(sed 's/run-[0-9a-f]*/run/' <<<"$own") <(sed 's/run-[0-9a-f]*/run/' <<<"$output")
    output_has "null"
    output_lacks "/ can be written"
    output_lacks "/etc can be written"
    grep -qx '. can be written' <<<"$output"
}

@test "what is granted can be written and nothing beside it, in both" {
    jail user ot
    local calls
    for calls in pivot_root=EPERM pidfd_open; do
        must without "$calls" -r "$H/ot-here/sub" -d "$H/ot-other" -- \
            sh -c 'touch made "$1/made" && ! touch sub/made 2>/dev/null && ! touch /usr/made 2>/dev/null' - "$H/ot-other"
        [ -e made ]
        [ -e "$H/ot-other/made" ]
        [ ! -e sub/made ]
        rm -f made "$H/ot-other/made"
    done
}

@test "what is granted at two places is at both, with what is hidden and protected there" {
    jail user ot
    local calls
    run_as_user sh -c 'echo hidden >secret; mkdir -p .vscode'
    for calls in pivot_root=EPERM pidfd_open; do
        must without "$calls" -d "$H/ot-here" -d "$H/ot-here:/mnt" --mask "$H/ot-here/secret" -- \
            sh -c 'cat secret /mnt/secret && touch made /mnt/made-too && ! mkdir .vscode/x 2>/dev/null && ! mkdir /mnt/.vscode/x 2>/dev/null'
        [ -z "$output" ]
        [ -e made ]
        [ -e made-too ]
        rm -f made made-too
    done
}

@test "more can be granted than there is room for before it is known how much" {
    jail user ot
    local calls grants=() i
    run_as_user sh -c 'for i in $(seq 900); do mkdir "sub/$i"; done'
    for i in $(seq 900); do grants+=(-r "$H/ot-here/sub/$i"); done
    for calls in pivot_root=EPERM pidfd_open fsync; do
        must without "$calls" "${grants[@]}" -- sh -c 'grep -c /ot-here/sub/ /proc/self/mountinfo'
        [ "$output" -ge 900 ]
    done
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

casual() {
    run_as_user "$BRIG" -m casual -j ot "$@"
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
    must casual -- true # its holder is outside, and prepares namespaces for the next run
    must casual -- true
    [ "$(nproc)" -eq 1 ] || await_set ot 4
    must in_chroot ls /mnt
    [ "$output" = ot-inside ]
    # The kernel makes no user namespaces in a chroot, so mostly there is none, and this is refused or done
    # with less; with those that were made ahead it works. In no case is another /mnt seen.
    run in_chroot "$BRIG" -m casual -j ot -- ls /mnt
    [ "$status" -ne 0 ] || [ "$output" = ot-inside ]
    scratch_remove
}
