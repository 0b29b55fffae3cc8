#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tools/check-abi notices changes of the public headers that would break programs, and lets others pass.

load lib

setup() {
    needs gcc nm
    scratch_make root
    mkdir -p "$SCRATCH/tools" "$SCRATCH/tests/golden"
    cp "$LIB_ROOT/tools/check-abi" "$SCRATCH/tools/"
    cp "$LIB_ROOT/tests/golden/libbrig.abi" "$SCRATCH/tests/golden/"
    cp -r "$LIB_ROOT/include" "$SCRATCH/"
    header=$SCRATCH/include/brig/brig.h
}

teardown() {
    scratch_remove
}

# change SED: and the header is another
change() {
    sed -i "$1" "$header"
    ! cmp -s "$header" "$LIB_ROOT/include/brig/brig.h"
}

# breaks SED WORDS: the change is found, and told with these words
breaks() {
    change "$1"
    must_fail "$SCRATCH/tools/check-abi" "$BUILD_DIR"
    output_has "$2"
    cp "$LIB_ROOT/include/brig/brig.h" "$header"
}

# passes SED
passes() {
    change "$1"
    must "$SCRATCH/tools/check-abi" "$BUILD_DIR"
    cp "$LIB_ROOT/include/brig/brig.h" "$header"
}

@test "the library is compatible with the last release" {
    must "$SCRATCH/tools/check-abi" "$BUILD_DIR"
}

@test "what programs depend on cannot change" {
    breaks 's/    BRIG_E_STATE = -8/    BRIG_E_STATE = -9/' "BRIG_E_STATE was '-8' and is '-9'"
    breaks 's/    BRIG_STDIO_BYTES,/    BRIG_STDIO_NEW, BRIG_STDIO_BYTES,/' "BRIG_STDIO_BYTES was '4' and is '5'"
    breaks 's/^int brig_job_take_stop(/long brig_job_take_stop(/' "function brig_job_take_stop was"
    breaks 's/    char name\[32\];/    char name[40];/' "member brig_denial sys_errno was"
    breaks 's/^    int number;/    int number;\n    int more;/' "struct brig_pass_fd was '8' and is '12'"
    breaks '/^int brig_job_take_stop(/d' "function brig_job_take_stop is gone"
    breaks 's/^    uint64_t allowed;/    uint64_t more;\n    uint64_t allowed;/' "member brig_net_totals more is new"
}

@test "what is added at the end can be there" {
    passes 's/^    size_t pass_fd_count;/    size_t pass_fd_count;\n    long more;/'
    passes 's/^    BRIG_STDIO_STDOUT /    BRIG_STDIO_STDOUT, BRIG_STDIO_NEW /'
    passes 's/^    uint64_t bytes_out;$/    uint64_t bytes_out;\n    uint64_t more;/'
    passes 's/^int brig_job_take_stop(/int brig_job_more(void);\nint brig_job_take_stop(/'
}

@test "a struct that programs fill has no room at its end in which a member could hide" {
    breaks 's/^    size_t pass_fd_count;/    size_t pass_fd_count;\n    int more;/' "struct brig_command has padding at its end"
}

@test "after a release a new function needs a new node" {
    change 's/^#define BRIG_VERSION "[^"]*"/#define BRIG_VERSION "9.9.9"/'
    must "$SCRATCH/tools/check-abi" "$BUILD_DIR"
    sed -i '/^symbol brig_job_take_stop@/d' "$SCRATCH/tests/golden/libbrig.abi"
    must_fail "$SCRATCH/tools/check-abi" "$BUILD_DIR"
    output_has "symbol brig_job_take_stop@@BRIG_0.2 is new, in a node that was released"
}
