# SPDX-License-Identifier: MIT
# Runs the lines of a file in the working directory as a reader of README.md would: bash walk.bash FILE
# A line `#> TEXT` is what the command above prints (an ellipsis matches any text), and `#? N` its exit status, 0 if
# not given. Says what differs, and fails then.
# shellcheck shell=bash

mapfile -t walk_lines <"$1"
walk_out=$PWD/.walk-out
walk_failed=0

# Whether line by line what was printed is what was promised.
walk_same() { # walk_same PROMISED-LINES...
    local got i pattern
    mapfile -t got <"$walk_out"
    [ ${#got[@]} -eq $# ] || return 1
    for ((i = 0; i < ${#got[@]}; i++)); do
        if [ "${got[i]}" != "$1" ]; then
            [[ $1 == *…* ]] || return 1
            pattern=$(printf '%s\n' "$1" | sed 's/[][\\*?(|)]/\\&/g; s/…/*/g')
            # A pattern on purpose: what is not an ellipsis is quoted in it.
            # shellcheck disable=SC2053
            [[ ${got[i]} == $pattern ]] || return 1
        fi
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
        printf '%s\n  exited with %s (the page says %s) and printed:\n' "$walk_command" \
            "$walk_status" "$walk_wanted"
        sed 's/^/    /' "$walk_out"
        walk_failed=1
    fi
done
exit "$walk_failed"
