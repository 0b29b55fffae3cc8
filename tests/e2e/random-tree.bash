#!/bin/bash
# SPDX-License-Identifier: MIT
# Changes a directory at random, for tests of what a jail has changed: random-tree.bash DIRECTORY SEED COUNT. The same seed makes the
# same changes. Also prints the state of a directory: random-tree.bash --list DIRECTORY.
set -u

# A line for each file: path, type, mode, size and time of files, target, contents, names that are the same file.
list() {
    local all
    cd "$1" || exit
    all=$(find . -mindepth 1 \( -type d -printf '%P d %m\n' -o -type f -printf '%P f %m %s %T@\n' \
        \( -links 1 -o -printf '= %P %i\n' \) -exec sha256sum {} + -o \
        -type l -printf '%P l %l\n' -o -printf '%P %y %m\n' \) | LC_ALL=C sort)
    case $'\n'$all in
    # Inodes have other numbers in a jail.
    *$'\n= '*) awk '!/^= / { print; next } { inode = $NF; sub(/^= /, ""); sub(/ [0-9]*$/, "")
        if (!(inode in names)) names[inode] = $0; print $0, "is", names[inode] }' <<<"$all" ;;
    *) echo "$all" ;;
    esac
}

pick() {
    local names=(a b c "d e" f) depth=$((RANDOM % 3)) i
    path=${names[RANDOM % 5]}
    for ((i = 0; i < depth; i++)); do
        path+=/${names[RANDOM % 5]}
    done
}

step() {
    local other
    pick
    other=$path
    pick
    case $((RANDOM % 13)) in
    0 | 1 | 2)
        case $path in */*) mkdir -p "${path%/*}" ;; esac && echo "$RANDOM" >"$path" ;;
    3) [ -d "$path" ] || echo more >>"$path" ;;
    4) mkdir -p "$path" ;;
    5) rm -rf "$path" ;;
    6) rm -f "$path" ;;
    7) mv "$path" "$other" ;;
    8) ln -sfn "$other" "$path" ;;
    9) [ -d "$path" ] || ln -f "$path" "$other" ;;
    10) [ -L "$path" ] || chmod "$((RANDOM % 8 | 4))$((RANDOM % 8))$((RANDOM % 8))" "$path" ;;
    11) rm -rf "$path" && mkdir -p "$path" && echo "$RANDOM" >"$path/new" ;;
    12) cp -a "$path" "$other" ;;
    esac
}

if [ "$1" = --list ]; then
    list "$2"
    exit
fi
cd "$1" || exit
RANDOM=$2
for ((n = 0; n < $3; n++)); do
    step
done 2>/dev/null
# Every directory can be searched, so that the result can be listed.
find . -type d ! -perm -500 -exec chmod u+rx {} + 2>/dev/null
find . -type d ! -perm -500 -exec chmod u+rx {} + 2>/dev/null
exit 0
