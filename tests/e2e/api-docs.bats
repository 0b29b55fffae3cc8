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
    [[ $output == *'### `brig_thing_new()`'*"Makes one."*'### `brig_thing_free()`'*"and ends it"* ]]
}

@test "neighbours are not merged, and macros may share a comment" {
    write_header '/* Makes one. */
int brig_thing_new(int size);
/* Ends one. */
void brig_thing_free(void);
/* Two numbers. */
#define BRIG_ONE 1
#define BRIG_TWO 2'
    run "$generator" "$header"
    [ "$status" -eq 0 ]
    [[ $output == *'### `brig_thing_new()`'*"Makes one."*'### `brig_thing_free()`'*"Ends one."* ]]
    [[ $output == *'### `BRIG_ONE`, `BRIG_TWO`'*"Two numbers."* ]]
    write_header '/* Makes one. */
int brig_thing_new(int size);
int brig_thing_size(int size);'
    run "$generator" "$header"
    [ "$status" -ne 0 ]
    [[ $output == *"brig_thing_size() has no comment"* ]]
}

@test "the manual page has each function, and nothing in it is wrong" {
    needs mandoc
    must mandoc -T lint -W warning "$LIB_ROOT/man/libbrig.3"
    must mandoc -T utf8 "$LIB_ROOT/man/libbrig.3"
    page=$(printf '%s\n' "$output" | sed 's/.\x08//g')
    for name in $(sed -n 's/^ *\(brig_[a-z0-9_]*\);$/\1/p' "$LIB_ROOT/src/libbrig.map"); do
        [[ $page == *"$name()"*"$name("* ]] || { echo "no $name" >&2; return 1; }
    done
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
