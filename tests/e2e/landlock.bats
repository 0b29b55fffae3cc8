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
    printf '#!/bin/sh\nexit 0\n' > "$WS/script"
    local directory
    for directory in "$WS" "$RO" "$OUT"; do
        cp "$BRIG_PROBES/fsop" "$directory/fsop"
        printf 'some text\n' > "$directory/file"
    done
    chmod 0755 "$WS/script" "$WS/fsop" "$RO/fsop" "$OUT/fsop"
    chmod 0666 "$WS/file" "$RO/file" "$OUT/file"
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

# try LAYERS WORD...: in one jail, operations of fsop one after the other: `allowed OPERATION PATH…` or `denied OPERATION
# PATH…`, each one word. What is denied is so for the reason wanted: not there, not allowed, or not movable.
try() {
    local layers=$1 expected status said words count=0
    shift
    must jail "$layers" sh -c 'for try; do
            set -- $try
            expected=$1
            shift
            said=$('"'$WS/fsop'"' "$@")
            echo "$expected $? ${said:--} $*"
        done' - "$@" || return
    while read -r expected status said words; do
        count=$((count + 1))
        case $expected:$status:$said in
        allowed:0:* | denied:1:EACCES | denied:1:EPERM | denied:1:EROFS | denied:1:ENOENT | denied:1:EXDEV) ;;
        *)
            echo "$words is to be $expected, and was answered by $said, status $status" >&2
            return 1
            ;;
        esac
    done <<<"$output"
    [ "$count" -eq $# ]
}

teardown() {
    scratch_remove
}

devices() {
    try "$1" "allowed write /dev/null" "allowed open-truncate /dev/null" "allowed read /dev/urandom" || return
    must jail "$1" sh -c 'echo hello > /dev/null && head -c 4 /dev/zero > /dev/null'
}
@test "/dev/null is writable, also by >" {
    each devices
}

other_devices() {
    try "$1" "denied read /dev/kmsg" "denied create /dev/brig-test" "allowed read /dev/null"
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
    must jail "$1" "$WS/script" || return
    must jail "$1" sh -c "'$WS/fsop' list '$WS' && cp '$WS/fsop' '$WS/copy' && '$WS/copy' list '$WS' &&
        '$RO/fsop' list '$RO' && /usr/bin/env true"
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
    try "$1" "allowed create $WS/a/f" "allowed rename $WS/a/f $WS/b/f" "allowed link $WS/b/f $WS/a/g" \
        "allowed mkdir $WS/a/d" "allowed rename $WS/a/d $WS/b/d" || return
    [ -f "$WS/b/f" ] && [ "$WS/a/g" -ef "$WS/b/f" ] && [ -d "$WS/b/d" ]
}
@test "files and directories are moved and linked across directories" {
    each across
}

across_grants() {
    try "$1" "denied rename $WS/file $OUT/stolen" "denied rename $OUT/file $WS/stolen" \
        "denied link $OUT/file $WS/stolen" "denied rename $RO/file $WS/stolen" "denied link $RO/file $WS/stolen" || return
    [ -f "$OUT/file" ] && [ -f "$RO/file" ] && [ ! -e "$WS/stolen" ]
}
@test "nothing is moved or linked out of or into the grants" {
    each across_grants
}

nodes() {
    try "$1" "allowed mkfifo $WS/fifo" "allowed bind $WS/socket" "allowed serve $WS/server" \
        "allowed symlink $WS/symlink file" || return
    [ -p "$WS/fifo" ] && [ -S "$WS/socket" ] && [ -L "$WS/symlink" ]
}
@test "fifos, sockets and symlinks are made in the workspace" {
    each nodes
}

nodes_outside() {
    local directory tries=("denied mknod $WS/device")
    for directory in "$OUT" "$RO" /usr /etc; do
        tries+=("denied mkfifo $directory/brig-test" "denied bind $directory/brig-test"
            "denied symlink $directory/brig-test file" "denied mkdir $directory/brig-test"
            "denied create $directory/brig-test")
    done
    try "$1" "${tries[@]}"
}
@test "none is made elsewhere, and no device anywhere" {
    each nodes_outside
}

shorten() {
    try "$1" "allowed truncate $WS/file" || return
    [ "$(stat -c %s "$WS/file")" -eq 1 ] || return
    try "$1" "allowed open-truncate $WS/file" || return
    [ ! -s "$WS/file" ]
}
@test "files in the workspace are truncated" {
    each shorten
}

shorten_outside() {
    local directory tries=()
    for directory in "$OUT" "$RO"; do
        tries+=("denied truncate $directory/file" "denied open-truncate $directory/file" "denied write $directory/file"
            "denied unlink $directory/file")
    done
    try "$1" "${tries[@]}" || return
    for directory in "$OUT" "$RO"; do
        [ "$(<"$directory/file")" = "some text" ] || return
    done
}
@test "files outside and read-only ones are not truncated, written or removed" {
    each shorten_outside
}

reading() {
    # Not /etc/passwd: another suite may replace it, and Landlock knows only the file that was there.
    try "$1" "allowed read $RO/file" "allowed list $RO" "allowed read /etc/nsswitch.conf" "denied read $OUT/file" \
        "denied list $OUT" "denied read /etc/shadow"
}
@test "read-only grants are read, and nothing that is not granted" {
    each reading
}

removing() {
    try "$1" "allowed unlink $WS/file" "allowed rmdir $WS/a" || return
    must jail "$1" sh -c "mkdir -p '$WS/x/y/z' && touch '$WS/x/y/z/f' && rm -r '$WS/x'"
}
@test "files and directories of the workspace are removed" {
    each removing
}
