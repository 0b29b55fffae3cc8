#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library's messages name members of its API, and brig's name options.

load lib

LIBRARY=${BRIG_LIBRARY:-$BUILD_DIR/src/libbrig.so.0}

setup() {
    scratch_make user
    cd "$SCRATCH" || return
}

teardown() {
    cd /
    scratch_remove
}

brig() {
    run_as_user "$BRIG" "$@"
}

# The long options of brig that a message could name.
options() {
    "$BRIG" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u
}

@test "the library's texts name no option of brig" {
    options >"$SCRATCH/options"
    [ "$(wc -l <"$SCRATCH/options")" -gt 20 ]
    strings -n 4 "$LIBRARY" | grep -E -- '(^|[ (])--[a-z]' >"$SCRATCH/texts" || true
    # Of other programs: systemd-run, usermod, docker.
    run grep -wF -f "$SCRATCH/options" "$SCRATCH/texts"
    printf '%s\n' "$output"
    [ "$(printf '%s\n' "$output" | grep -vcE 'systemd-run|usermod|docker|^$')" -eq 0 ]
}

@test "each text that brig translates is one of the library's" {
    strings -n 4 "$LIBRARY" >"$SCRATCH/texts"
    sed -n 's/^    {"\(.*\)", *$/\1/p; s/^    {"\([^"]*\)", "[^"]*"},$/\1/p' "$LIB_ROOT/src/cli/remedy.c" >"$SCRATCH/remedies"
    [ "$(wc -l <"$SCRATCH/remedies")" -ge 10 ]
    while read -r text; do
        grep -qF -- "$text" "$SCRATCH/texts" || { echo "not in the library: $text"; false; }
    done <"$SCRATCH/remedies"
}

@test "a missing grant: brig names options, the library its flags" {
    must_exit 125 brig -m sealed -D --dir /no/such/place true
    echo "$output"
    [[ $output == *"--dir! to create a directory, or --dir? to skip it"* ]]
    [[ $output != *BRIG_* ]]
}
