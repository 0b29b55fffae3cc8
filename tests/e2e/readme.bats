#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The README does what it says. A block after a line `<!-- run -->` is run: shell blocks line by
# line in one shell and one directory, where `#> TEXT` lines are what the command above prints (an
# ellipsis at the end stands for any rest) and `#? N` is its exit status, 0 if not given; each C
# block is compiled as a user of the library would, and run.

load lib

setup() {
    README=$LIB_ROOT/README.md
}

teardown() {
    scratch_remove
}

# blocks LANGUAGE [N]: the text of the blocks to be run, or of the Nth of them.
blocks() {
    awk -v opening="\`\`\`$1" -v only="${2:-0}" '
        /^<!-- run -->$/ { marked = 1; next }
        inside && /^```$/ { inside = 0; next }
        inside { if (!only || only == number) print; next }
        marked && $0 == opening { inside = 1; number++ }
        { marked = 0 }' "$README"
}

# Run as the user under test in a directory of its own: walk.bash FILE says what differs, and fails.
write_walker() {
    cat >"$1" <<'WALKER'
mapfile -t walk_lines <"$1"
walk_out=$PWD/.walk-out
walk_failed=0

# Whether line by line what was printed is what was promised.
walk_same() { # walk_same PROMISED-LINES...
    local got i
    mapfile -t got <"$walk_out"
    [ ${#got[@]} -eq $# ] || return 1
    for ((i = 0; i < ${#got[@]}; i++)); do
        case $1 in
        *…) [ "${got[i]:0:$((${#1} - 1))}" = "${1%…}" ] || return 1 ;;
        *) [ "${got[i]}" = "$1" ] || return 1 ;;
        esac
        shift
    done
}

walk_n=0
while [ "$walk_n" -lt ${#walk_lines[@]} ]; do
    walk_command=${walk_lines[walk_n]}
    walk_n=$((walk_n + 1))
    walk_wanted=0 walk_promised=()
    while :; do
        case ${walk_lines[walk_n]:-} in
        '#> '*) walk_promised+=("${walk_lines[walk_n]#'#> '}") ;;
        '#? '*) walk_wanted=${walk_lines[walk_n]#'#? '} ;;
        *) break ;;
        esac
        walk_n=$((walk_n + 1))
    done
    [ -n "$walk_command" ] || continue
    # In this very shell, as `cd` is to last.
    eval "$walk_command" >"$walk_out" 2>&1 </dev/null
    walk_status=$?
    if [ "$walk_status" -ne "$walk_wanted" ] || ! walk_same "${walk_promised[@]}"; then
        printf '%s\n  exited with %s (the README says %s) and printed:\n' "$walk_command" \
            "$walk_status" "$walk_wanted"
        sed 's/^/    /' "$walk_out"
        walk_failed=1
    fi
done
exit "$walk_failed"
WALKER
}

@test "the commands of the README print what it says" {
    needs python3
    [ "$(blocks sh | grep -c '^brig ')" -ge 10 ]
    for who in $(each_user); do
        scratch_make "$who"
        # Jails of its own, and not those of whoever runs the tests.
        as "$who" mkdir -m 0700 "$SCRATCH/jails"
        mkdir "$SCRATCH/bin"
        ln -s "$BRIG" "$SCRATCH/bin/brig"
        blocks sh >"$SCRATCH/commands"
        write_walker "$SCRATCH/walk.bash"
        chmod -R a+rX "$SCRATCH/bin" "$SCRATCH/commands" "$SCRATCH/walk.bash"
        must as "$who" env PATH="$SCRATCH/bin:$PATH" BRIG_CONFIG_DIR="$SCRATCH/jails" bash -c 'umask 022; cd "$1" && exec bash \
            walk.bash commands' - "$SCRATCH"
    done
}

@test "the C programs of the README compile and print what it says" {
    needs gcc pkg-config python3
    local flags library number
    flags=$(PKG_CONFIG_PATH=$BUILD_DIR/meson-uninstalled pkg-config --cflags --libs libbrig)
    library=$(dirname "$(find "$BUILD_DIR" -name libbrig.so -print -quit)")
    for who in $(each_user); do
        for number in 1 2; do
            scratch_make "$who"
            blocks c $number >"$SCRATCH/run.c"
            # Several words on purpose.
            # shellcheck disable=SC2086
            gcc -std=gnu11 -Wall -Wextra -Werror -o "$SCRATCH/run" "$SCRATCH/run.c" \
                $flags -Wl,-rpath,"$library"
            must as "$who" "$SCRATCH/run"
            grep -qF "It prints \`$output\`" "$README"
            scratch_remove
        done
    done
}

@test "every file the README points to is there" {
    local path
    for path in $(grep -oE '\]\([^)#:]+\)' "$README" | sed 's/^](//; s/)$//'); do
        [ -e "$LIB_ROOT/$path" ] || {
            echo "no $path" >&2
            return 1
        }
    done
}
