#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What wrong Landlock masks break, each allowed where granted and denied where not: under Landlock
# alone (no namespaces) and in the full jail, as root and as an ordinary user.

load lib

# Sets the world of one round: $WS granted read-write, $RO read-only, $OUT not at all.
prepare() { # prepare WHO
    WHO=$1
    scratch_make "$WHO"
    WS=$SCRATCH/ws RO=$SCRATCH/ro OUT=$SCRATCH/out
    mkdir -m 0777 "$WS" "$WS/a" "$WS/b" "$RO" "$OUT"
    install -m 0755 "$BRIG_PROBES/fsop" "$WS/fsop"
    install -m 0755 "$BRIG_PROBES/fsop" "$RO/fsop"
    install -m 0755 "$BRIG_PROBES/fsop" "$OUT/fsop"
    printf '#!/bin/sh\nexit 0\n' > "$WS/script"
    chmod 0755 "$WS/script"
    local directory
    for directory in "$WS" "$RO" "$OUT"; do
        printf 'some text\n' > "$directory/file"
        chmod 0666 "$directory/file"
    done
}

# jail LAYERS CMD...: LAYERS is `full` or `alone`.
jail() {
    local layers=()
    [ "$1" = full ] || layers=(--disable namespaces)
    shift
    as "$WHO" "$BRIG" run --mode sealed --seccomp dev --nocwd "${layers[@]}" \
        --dir "$WS" --rdir "$RO" --workdir "$WS" -- "$@"
}

# each CALLBACK: as every user, under every set of layers, each time in a fresh world.
each() {
    local who layers
    [ -x "$BRIG_PROBES/fsop" ] || cannot "no fsop in $BRIG_PROBES: build the test tools"
    for who in $(each_user); do
        for layers in full alone; do
            prepare "$who"
            "$1" "$layers" || {
                echo "as $who, layers: $layers" >&2
                return 1
            }
        done
    done
}

# denied LAYERS OPERATION PATH...: and for the reason wanted: not there, not allowed, or not movable.
denied() {
    local layers=$1
    shift
    must_exit 1 jail "$layers" "$WS/fsop" "$@"
    case $output in
    EACCES | EPERM | EROFS | ENOENT | EXDEV) ;;
    *)
        echo "$* was answered by $output" >&2
        return 1
        ;;
    esac
}

allowed() {
    local layers=$1
    shift
    must jail "$layers" "$WS/fsop" "$@"
}

teardown() {
    scratch_remove
}

devices() {
    allowed "$1" write /dev/null || return
    allowed "$1" open-truncate /dev/null || return
    must jail "$1" sh -c 'echo hello > /dev/null && head -c 4 /dev/zero > /dev/null' || return
    allowed "$1" read /dev/urandom
}
@test "/dev/null is writable, also by >" {
    each devices
}

other_devices() {
    denied "$1" read /dev/kmsg || return
    denied "$1" create /dev/brig-test
}
@test "other devices are not readable and no file is made in /dev" {
    each other_devices
}

private_tmp() {
    [ "$1" = full ] || return 0
    local file=/tmp/${SCRATCH##*/}
    must jail full sh -c 'echo x > "$1" && mv "$1" "$1.b" && rm "$1.b" && echo y > "$1"' - "$file" || return
    [ ! -e "$file" ]
}
@test "files are made, moved and removed in /tmp, which is the jail's own" {
    each private_tmp
}

execute() {
    must jail "$1" "$WS/fsop" list "$WS" || return
    must jail "$1" "$WS/script" || return
    must jail "$1" sh -c "cp '$WS/fsop' '$WS/copy' && '$WS/copy' list '$WS'" || return
    must jail "$1" "$RO/fsop" list "$RO" || return
    must jail "$1" /usr/bin/env true
}
@test "programs and scripts in the workspace are executed" {
    each execute
}

execute_outside() {
    run jail "$1" "$OUT/fsop" list /
    [ "$status" -eq 126 ] || [ "$status" -eq 127 ]
}
@test "programs outside the grants are not executed" {
    each execute_outside
}

across() {
    allowed "$1" create "$WS/a/f" || return
    allowed "$1" rename "$WS/a/f" "$WS/b/f" || return
    allowed "$1" link "$WS/b/f" "$WS/a/g" || return
    allowed "$1" mkdir "$WS/a/d" || return
    allowed "$1" rename "$WS/a/d" "$WS/b/d" || return
    [ -f "$WS/b/f" ] && [ "$WS/a/g" -ef "$WS/b/f" ] && [ -d "$WS/b/d" ]
}
@test "files and directories are moved and linked across directories" {
    each across
}

across_grants() {
    denied "$1" rename "$WS/file" "$OUT/stolen" || return
    denied "$1" rename "$OUT/file" "$WS/stolen" || return
    denied "$1" link "$OUT/file" "$WS/stolen" || return
    denied "$1" rename "$RO/file" "$WS/stolen" || return
    denied "$1" link "$RO/file" "$WS/stolen" || return
    [ -f "$OUT/file" ] && [ -f "$RO/file" ] && [ ! -e "$WS/stolen" ]
}
@test "nothing is moved or linked out of or into the grants" {
    each across_grants
}

nodes() {
    allowed "$1" mkfifo "$WS/fifo" || return
    allowed "$1" bind "$WS/socket" || return
    allowed "$1" serve "$WS/server" || return
    allowed "$1" symlink "$WS/symlink" file || return
    [ -p "$WS/fifo" ] && [ -S "$WS/socket" ] && [ -L "$WS/symlink" ]
}
@test "fifos, sockets and symlinks are made in the workspace" {
    each nodes
}

nodes_outside() {
    local directory
    for directory in "$OUT" "$RO" /usr /etc; do
        denied "$1" mkfifo "$directory/brig-test" || return
        denied "$1" bind "$directory/brig-test" || return
        denied "$1" symlink "$directory/brig-test" file || return
        denied "$1" mkdir "$directory/brig-test" || return
        denied "$1" create "$directory/brig-test" || return
    done
    denied "$1" mknod "$WS/device"
}
@test "none is made elsewhere, and no device anywhere" {
    each nodes_outside
}

shorten() {
    allowed "$1" truncate "$WS/file" || return
    [ "$(stat -c %s "$WS/file")" -eq 1 ] || return
    allowed "$1" open-truncate "$WS/file" || return
    [ ! -s "$WS/file" ]
}
@test "files in the workspace are truncated" {
    each shorten
}

shorten_outside() {
    local directory
    for directory in "$OUT" "$RO"; do
        denied "$1" truncate "$directory/file" || return
        denied "$1" open-truncate "$directory/file" || return
        denied "$1" write "$directory/file" || return
        denied "$1" unlink "$directory/file" || return
        [ "$(cat "$directory/file")" = "some text" ] || return
    done
}
@test "files outside and read-only ones are not truncated, written or removed" {
    each shorten_outside
}

reading() {
    allowed "$1" read "$RO/file" || return
    allowed "$1" list "$RO" || return
    # Not /etc/passwd: another suite may replace it, and Landlock knows only the file that was there.
    allowed "$1" read /etc/nsswitch.conf || return
    denied "$1" read "$OUT/file" || return
    denied "$1" list "$OUT" || return
    denied "$1" read /etc/shadow
}
@test "read-only grants are read, and nothing that is not granted" {
    each reading
}

removing() {
    allowed "$1" unlink "$WS/file" || return
    allowed "$1" rmdir "$WS/a" || return
    must jail "$1" sh -c "mkdir -p '$WS/x/y/z' && touch '$WS/x/y/z/f' && rm -r '$WS/x'"
}
@test "files and directories of the workspace are removed" {
    each removing
}
