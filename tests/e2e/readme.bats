#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The commands and programs in README.md, docs/guide.md and docs/tutorial-c.md do what these pages say.
# A block after a line `<!-- run -->` is run. The shell blocks of a page are run line by line in one
# shell and one directory: a line `#> TEXT` is output of the command above (an ellipsis matches any
# text), and `#? N` is its exit status, 0 if not given. Each C block is compiled as a user of the
# library compiles it, and run. The blocks after `<!-- run with brigd -->`, in README.md and
# docs/server.md, are run beside a brigd, with its address in place of 127.0.0.1:8080. tools/demo makes the
# demonstration in README.md.

load lib
load pages

setup() {
    README=$LIB_ROOT/README.md
}

teardown() {
    brigd_stop
    scratch_remove
}

# walk WHO PAGE: runs the shell blocks of a page in a new directory, with storage for jails in it.
walk() {
    [ "$(blocks sh 0 run "$2" | grep -c '^brig ')" -ge 8 ]
    scratch_make "$1"
    as "$1" mkdir -m 0700 "$SCRATCH/jails"
    mkdir "$SCRATCH/bin"
    ln -s "$BRIG" "$SCRATCH/bin/brig"
    blocks sh 0 run "$2" >"$SCRATCH/commands"
    cp "$LIB_ROOT/tests/e2e/walk.bash" "$SCRATCH/walk.bash"
    chmod -R a+rX "$SCRATCH/bin" "$SCRATCH/commands" "$SCRATCH/walk.bash"
    must as "$1" env PATH="$SCRATCH/bin:$PATH" BRIG_CONFIG_DIR="$SCRATCH/jails" bash -c 'umask 022; cd "$1" && exec bash \
        walk.bash commands' - "$SCRATCH"
    must as "$1" env BRIG_CONFIG_DIR="$SCRATCH/jails" "$BRIG" -u
    scratch_remove
}

@test "the commands of the README print what it says" {
    needs python3
    for who in $(each_user); do
        walk "$who" "$README"
    done
}

@test "the demonstration of the README is what tools/demo prints" {
    needs git curl unshare
    sed -n '/^<!-- demo/,/^<!-- end of the demo/{/^    /p}' "$README" >"$BATS_TEST_TMPDIR/promised"
    [ -s "$BATS_TEST_TMPDIR/promised" ]
    for who in $(each_user); do
        must as "$who" bash "$LIB_ROOT/tools/demo" "$BRIG"
        diff -u "$BATS_TEST_TMPDIR/promised" - <<<"$output"
    done
}

@test "the commands of the guide print what it says" {
    needs git
    for who in $(each_user); do
        # What root's jails do, the commands of the README show.
        [ "$who" = user ] || [ -n "${BRIG_THOROUGH:-}" ] || continue
        walk "$who" "$LIB_ROOT/docs/guide.md"
    done
}

# brigd_start WHO: on a port of its own; sets WHERE.
brigd_start() {
    # The process that brigd itself is says which it is: $! is one of this shell.
    as "$1" env HOME="$SCRATCH" STATE_DIRECTORY="$SCRATCH/state" RUNTIME_DIRECTORY="$SCRATCH/run" \
        bash -c 'echo $$ >"$1/state/pid"; exec "$2" -l 127.0.0.1:0' - "$SCRATCH" \
        "$BUILD_DIR/src/server/brigd" >"$SCRATCH/log" 2>&1 </dev/null 3>&- &
    BRIGD_JOB=$!
    await grep -q 'listening on' "$SCRATCH/log"
    WHERE=$(sed -n 's,.*listening on http://,,p' "$SCRATCH/log")
}

brigd_stop() {
    local job=${BRIGD_JOB:-}
    [ -n "$job" ] || return 0
    BRIGD_JOB=
    kill "$(cat "$SCRATCH/state/pid")"
    wait "$job"
}

@test "the examples for the server print what is said of them" {
    needs curl python3
    [ -x "$BUILD_DIR/src/server/brigd" ] || cannot "brigd was not built"
    local page
    for who in $(each_user); do
        scratch_make "$who"
        as "$who" mkdir -m 0700 "$SCRATCH/state" "$SCRATCH/run"
        brigd_start "$who"
        for page in "$README" "$LIB_ROOT/docs/server.md"; do
            # A line that ends with a backslash goes on in the next.
            blocks sh 0 'run with brigd' "$page" |
                sed -e ':more' -e '/\\$/{N;s/\\\n *//;b more' -e '}' -e "s,127\.0\.0\.1:8080,$WHERE,g" >"$SCRATCH/commands"
            [ "$(grep -c '^curl \|^brigctl ' "$SCRATCH/commands")" -ge 2 ]
            cp "$LIB_ROOT/tests/e2e/walk.bash" "$SCRATCH/walk.bash"
            chmod a+r "$SCRATCH/commands" "$SCRATCH/walk.bash"
            must as "$who" env PATH="$BUILD_DIR/src/client:$PATH" HOME="$SCRATCH" BRIG_SERVER="http://$WHERE" \
                bash -c 'cd "$1" && exec bash walk.bash commands' - "$SCRATCH"
        done
        brigd_stop
        scratch_remove
    done
}

# compile_and_run PAGE N: the Nth C block of a page, whose output the page has as: It prints `TEXT`.
compile_and_run() {
    local who
    scratch_make user
    blocks c "$2" run "$1" >"$SCRATCH/run.c"
    build_program "$SCRATCH/run.c" "$SCRATCH/run"
    for who in $(each_user); do
        must as "$who" "$SCRATCH/run"
        grep -qF "It prints \`$output\`" "$1"
    done
    scratch_remove
}

@test "the C programs of the README and the tutorial compile and print what is said of them" {
    needs gcc pkg-config python3
    compile_and_run "$README" 1
    compile_and_run "$LIB_ROOT/docs/tutorial-c.md" 1
    compile_and_run "$LIB_ROOT/docs/tutorial-c.md" 2
}

@test "every file and section that the pages point to is there" {
    local page link path section
    local -A sections=()
    for page in "$README" "$LIB_ROOT"/docs/*.md; do
        for link in $(grep -oE '\]\([A-Za-z0-9./#_-]+\)' "$page" | sed 's/^](//; s/)$//'); do
            path=${link%%#*}
            path=${path:+${page%/*}/$path}
            path=${path:-$page}
            [ -e "$path" ] || {
                echo "$page: no file $link" >&2
                return 1
            }
            case $link in *'#'*) section=${link#*#} ;; *) continue ;; esac
            # A heading's anchor, as the usual renderers make it.
            [ -n "${sections[$path]:-}" ] || sections[$path]=$'\n'$(sed -n 's/^##* //p' "$path" |
                tr '[:upper:]' '[:lower:]' | tr ' ' '-' | tr -cd 'a-z0-9_\n-')$'\n'
            [[ ${sections[$path]} == *$'\n'"$section"$'\n'* ]] || {
                echo "$page: no section $link" >&2
                return 1
            }
        done
    done
}
