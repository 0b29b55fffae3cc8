#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The reference made of the public headers: what is declared is in it, and what it cannot tell is an error.
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

setup() {
    scratch_make user
    mkdir -p "$SCRATCH/include/brig"
    header=$SCRATCH/include/brig/x.h
    generator=$BATS_TEST_DIRNAME/../../tools/gen-api-docs
}

teardown() {
    scratch_remove
}

# write_header DECLARATION
write_header() {
    # shellcheck disable=SC2016 # nothing is to be expanded
    printf '%s\n' '/* SPDX-License-Identifier: MIT */' '/* What x is. */' '#ifdef __cplusplus' \
        'extern "C" {' '#endif' '' "$1" '' '#ifdef __cplusplus' '}' '#endif' > "$header"
}

@test "a function, its comment and the members of a struct are told" {
    write_header '/* ---- Things ---- */

/* A thing. */
struct brig_thing {
    int size; /* in bytes,
               * at least 1 */
    /* Since later: */
    char name[8];
};

/* Makes one. */
int brig_thing_new(struct brig_thing *thing,
                   int size);
void brig_thing_free(void); /* and ends it */'
    run "$generator" "$header"
    [ "$status" -eq 0 ]
    [[ $output == *"# <brig/x.h>"*"What x is."*"## Things"* ]]
    [[ $output == *'| `int size` | in bytes, at least 1 |'* ]]
    [[ $output == *'|  | *Since later:* |'*'| `char name[8]` |  |'* ]]
    [[ $output == *'### `brig_thing_new()`, `brig_thing_free()`'*"Makes one."*"and ends it"* ]]
}

@test "a function without a comment is an error" {
    write_header 'int brig_thing_new(int size);'
    run "$generator" "$header"
    [ "$status" -ne 0 ]
    [[ $output == *"brig_thing_new() has no comment"* ]]
}

@test "what has no known form is an error, as is what does not end" {
    write_header '/* A number. */
extern int brig_number;'
    run "$generator" "$header"
    [ "$status" -ne 0 ]
    [[ $output == *"what is this: extern int brig_number;"* ]]
    write_header '/* Never ends. */
int brig_thing_new(int size'
    run "$generator" "$header"
    [ "$status" -ne 0 ]
    [[ $output == *"ends within a declaration"* ]]
}
