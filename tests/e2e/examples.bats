#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The examples of the documentation compile as a user of the library would compile them, and do
# what their comments say, as root and as an ordinary user.

load lib

setup_file() {
    needs gcc pkg-config
    EXAMPLES=$(mktemp -d /tmp/brig-examples.XXXXXXXX)
    export EXAMPLES
    chmod 0755 "$EXAMPLES"
}

teardown_file() {
    rm -rf -- "$EXAMPLES"
}

setup() {
    SOURCES=$LIB_ROOT/docs/examples
}

teardown() {
    scratch_remove
}

build() { # build NAME
    [ -x "$EXAMPLES/$1" ] || build_program "$SOURCES/$1.c" "$EXAMPLES/$1" -pthread
}

@test "there is a test here for every example" {
    for source in "$SOURCES"/*.c; do
        name=$(basename "$source" .c)
        grep -q "build $name\$" "$BATS_TEST_FILENAME" || {
            echo "no test builds $name" >&2
            return 1
        }
    done
}

@test "run-a-command says what became of the command and exits as it did" {
    build run-a-command
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/run-a-command" /bin/echo hello
        output_has hello
        output_has "exited, status 0"
        must_exit 7 as "$who" "$EXAMPLES/run-a-command" /bin/sh -c 'exit 7'
        output_has "exited, status 7"
        must_exit 137 as "$who" "$EXAMPLES/run-a-command" /bin/sh -c 'kill -9 $$'
        output_has "signalled, status 137"
        must_exit 127 as "$who" "$EXAMPLES/run-a-command" /no/such/command
        output_has /no/such/command
    done
}

@test "capture-output passes bytes in, keeps what fits and marks what does not" {
    build capture-output
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/capture-output"
        output_has "heard: one two three"
        output_has "stdout: kept 21 of 21 bytes"
        output_has "stderr: kept 1000 of 3000 bytes (truncated)"
        output_lacks "21 bytes (truncated)"
    done
}

@test "grants gives a project with its history protected and its secrets hidden" {
    build grants
    for who in $(each_user); do
        scratch_make "$who"
        as "$who" mkdir -m 0777 "$SCRATCH/project" "$SCRATCH/project/.git"
        printf 'SECRET=1\n' | as "$who" tee "$SCRATCH/project/.env" >/dev/null
        as "$who" chmod 0777 "$SCRATCH/project" "$SCRATCH/project/.git"
        must as "$who" "$EXAMPLES/grants" "$SCRATCH/project"
        output_has "made-inside: written"
        output_has ".env: hidden"
        output_has ".git: read-only"
        output_has "hello from $SCRATCH/project"
        [ "$(cat "$SCRATCH/project/made-inside")" = written ]
        [ "$(cat "$SCRATCH/project/.env")" = SECRET=1 ]
        [ ! -e "$SCRATCH/project/.git/inside" ]
    done
}

@test "grants works for a project that has nothing to protect" {
    build grants
    for who in $(each_user); do
        scratch_make "$who"
        must as "$who" "$EXAMPLES/grants" "$SCRATCH"
        output_has "made-inside: written"
    done
}

@test "limits ends a command that ignores TERM and says it was the clock" {
    build limits
    for who in $(each_user); do
        must_exit 124 as "$who" "$EXAMPLES/limits"
        # On a busy machine TERM may come before the shell ignores it: then once more.
        for _ in 1 2 3; do
            [[ $output == *"timeout, ended by signal 15 after"* ]] || break
            must_exit 124 as "$who" "$EXAMPLES/limits"
        done
        output_has "timeout, ended by signal 9 after"
    done
}

@test "event-loop sees the quick job end before the slow one" {
    build event-loop
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/event-loop"
        [ "${lines[0]}" = "quick: exited, status 0, output: early" ]
        [ "${lines[1]}" = "slow: exited, status 0, output: late" ]
    done
}

@test "template starts jails that share nothing" {
    build template
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/template"
        [ "${#lines[@]}" -eq 5 ]
        for i in 1 2 3 4 5; do
            [ "${lines[i - 1]}" = "run $i: fresh" ]
        done
    done
}

@test "stream talks to a command while it runs, and cancels it" {
    build stream
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/stream"
        [ "${lines[0]}" = "heard: one" ]
        [ "${lines[1]}" = "heard: two" ]
        [ "${lines[2]}" = end ]
        [ "${lines[3]}" = "exited, status 0" ]
        must_exit 137 as "$who" "$EXAMPLES/stream" --cancel
        output_has "heard: one"
        output_has "cancelled, status 137"
        output_lacks end
    done
}

@test "pty gives a command a terminal of another size" {
    build pty
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/pty"
        output_has "at first 24 80"
        output_has "then 40 132"
        output_has "heard: hello"
    done
}

@test "threads start jails from one template" {
    build threads
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/threads"
        [ "$output" = "20 of 20 runs are well" ]
    done
}

@test "the example in Rust says what became of a command" {
    needs rustc
    local library
    library=$(dirname "$(find "$BUILD_DIR" -name libbrig.so -print -quit)")
    must rustc -D warnings -o "$EXAMPLES/run-rust" "$SOURCES/rust/run.rs" -L "$library" -l brig -C "link-arg=-Wl,-rpath,$library"
    for who in $(each_user); do
        must as "$who" "$EXAMPLES/run-rust" echo hello
        [ "$output" = $'hello\nexited, status 0' ]
        must_exit 7 as "$who" "$EXAMPLES/run-rust" sh -c 'exit 7'
        output_has "exited, status 7"
        must_exit 125 as "$who" "$EXAMPLES/run-rust" nonesuch
        output_has "run: 'nonesuch' was not found"
        must_exit 125 as "$who" "$EXAMPLES/run-rust"
    done
}

@test "call-a-function says what became of a function" {
    build call-a-function
    for who in $(each_user); do
        for kind in "" --namespaces; do
            # No argument at all, if there is none.
            # shellcheck disable=SC2086
            must as "$who" "$EXAMPLES/call-a-function" $kind square 12
            output_has "value: 144"
            # shellcheck disable=SC2086
            must_exit 1 as "$who" "$EXAMPLES/call-a-function" $kind loop
            output_has "cpu-timeout: "
            # shellcheck disable=SC2086
            must_exit 1 as "$who" "$EXAMPLES/call-a-function" $kind dance
            output_has "failed: Usage: square, read or loop"
        done
        must_exit 1 as "$who" "$EXAMPLES/call-a-function" read /etc/passwd
        output_has "filesystem: "
        output_has "read '/etc/passwd'"
        must as "$who" "$EXAMPLES/call-a-function" read /etc/hosts
    done
}

@test "call-a-function says what a lesser system cannot do, and does without where it may" {
    build call-a-function
    without=$BUILD_DIR/tests/probe/without
    for who in $(each_user); do
        must_exit 1 as "$who" "$without" landlock -- "$EXAMPLES/call-a-function" square 12
        output_has "unsupported: "
        must as "$who" "$without" landlock -- "$EXAMPLES/call-a-function" --warn square 12
        output_has "value: 144"
        output_has "no Landlock"
        must_exit 1 as "$who" "$without" userns -- "$EXAMPLES/call-a-function" --namespaces square 12
        output_has "unsupported: "
        must as "$who" "$without" userns -- "$EXAMPLES/call-a-function" --namespaces --warn square 12
        output_has "value: 144"
        output_has "no namespaces"
        must as "$who" "$without" close_range,pidfd_getfd -- "$EXAMPLES/call-a-function" square 12
        output_has "value: 144"
    done
}
