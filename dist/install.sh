#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs brig from the unpacked archive that this script is in; install.sh --help explains.
#
# PREFIX/libexec/brig/archive-files lists the files that were installed and the directories that were made for them, each a line
# `file PATH` or `directory PATH`, relative to PREFIX; `prefix` is PREFIX itself. Only what is in that list is replaced or removed. tools/dist-tree puts in
# the words between @.
set -eu
LC_ALL=C
export LC_ALL
# What root installs is for everybody.
umask 022
version=@version@
machine=@machine@
glibc=@glibc@

usage() {
    cat << 'END'
usage: ./install.sh [--prefix DIR] [--force]
       ./install.sh [--prefix DIR] --uninstall

Installs brig into DIR; by default into $PREFIX, or ~/.local. It needs no root.

  --prefix DIR  where bin, libexec, lib and share are
  --force       replace files that this script has not installed; it names them
  --uninstall   remove what was installed; jails, configuration and history stay
END
}
say() { printf '%s\n' "$*"; }
fail() {
    say "install.sh: $*" >&2
    exit 1
}

here=$(cd "$(dirname "$0")" && pwd -P)
prefix=${PREFIX:-${HOME:+$HOME/.local}}
# The copy that was installed is about the installation that it is in.
case $here in */libexec/brig) prefix=${here%/libexec/brig} ;; esac
action=install
force=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -gt 1 ] || fail "--prefix needs a directory"
        prefix=$2
        shift
        ;;
    --prefix=*) prefix=${1#*=} ;;
    --uninstall) action=uninstall ;;
    --force) force=yes ;;
    -h | --help)
        usage
        exit
        ;;
    *)
        say "install.sh: unknown argument '$1'; see install.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done
prefix=${prefix%/}
case $prefix in
/*) ;;
*) fail "the prefix must be an absolute path, not '$prefix': give one with --prefix" ;;
esac
list=$prefix/libexec/brig/archive-files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# ---- What was installed before ----------------------------------------------------------------

names() { # names file|directory LIST
    sed -n "s/^$1 //p" "$2" | sort -u
}
only_in() { # only_in FILE OTHER: the lines of a file that the other one does not have; some systems have no comm
    awk -v other="$2" 'BEGIN { while ((getline line < other) > 0) has[line] } !($0 in has)' "$1"
}
remove_directories() { # remove_directories: those on standard input, if they are empty
    sort -r | while IFS= read -r path; do
        rmdir "$prefix/$path" 2> /dev/null || true
    done
}
: > "$work/old"
[ ! -f "$list" ] || cp "$list" "$work/old"
names 'file' "$work/old" > "$work/ours"

uninstall() {
    [ -f "$list" ] || fail "nothing is installed in '$prefix': there is no '$list'; give the right place with --prefix"
    [ -w "${list%/*}" ] || fail "'${list%/*}' cannot be written"
    # The list goes last, so that this can be repeated if it is interrupted.
    while IFS= read -r path; do
        rm -f "$prefix/$path"
    done < "$work/ours"
    rm -f "$list"
    names directory "$work/old" | remove_directories
    ! grep -qx prefix "$work/old" || rmdir "$prefix" 2> /dev/null || true
    say "Removed brig from $prefix. What stays: jails, configuration and the history of brigd"
    say "(~/.local/share/brig, ~/.config/brig and ~/.local/state/brig)."
}

# ---- Installing -------------------------------------------------------------------------------

check_machine() {
    [ -x "$here/bin/brig" ] || fail "there is nothing to install in '$here'; run the install.sh of an unpacked archive"
    [ ! -e "$prefix/libexec/brig/installed" ] ||
        fail "'$prefix' has a brig of make install: remove it first with make uninstall PREFIX='$prefix'"
    [ "$(uname -s)" = Linux ] || fail "brig needs Linux, and this is $(uname -s)"
    [ "$(uname -m)" = "$machine" ] || fail "this archive is for $machine, and this machine is $(uname -m)"
    "$here/bin/brig" --version > /dev/null || fail "'$here/bin/brig' does not run; is '$here' mounted with noexec?"
    place=$prefix
    until [ -e "$place" ]; do
        place=$(dirname "$place")
    done
    if [ ! -d "$place" ] || [ ! -w "$place" ]; then
        fail "'$place' cannot be written: choose another directory with --prefix"
    fi
}
# All programs but brigd are static. It is tried out, as there are many ways not to have a glibc.
check_libc() {
    without=
    [ -e "$here/bin/brigd" ] || return 0
    if ! "$here/bin/brigd" --version > "$work/output" 2>&1; then
        without='^(bin/brigd|lib/brig/.*|libexec/brig/brig-zygote\.so|share/systemd/.*)$'
        say "brigd, the server, is left out: it needs glibc $glibc or later. Everything else needs no library."
        sed 's/^/  /' "$work/output"
    fi
}
# The files of the archive, each a line without the prefix.
list_files() {
    (cd "$here" && find bin lib libexec share ! -type d 2> /dev/null) | grep -Ev "${without:-^$}" | sort > "$work/files"
    awk -F/ '{ path = $1; for (i = 2; i <= NF; i++) { print path; path = path "/" $i } }' "$work/files" | sort -u > "$work/directories"
}
# Files that are there and not ours. The same contents do no harm.
check_foreign() {
    only_in "$work/files" "$work/ours" | while IFS= read -r path; do
        { [ ! -e "$prefix/$path" ] && [ ! -L "$prefix/$path" ]; } || cmp -s "$here/$path" "$prefix/$path" || say "$prefix/$path"
    done > "$work/foreign"
    [ -s "$work/foreign" ] || return 0
    if [ -z "$force" ]; then
        say "install.sh: these files are not from an earlier installation:" >&2
        sed 's/^/  /' "$work/foreign" >&2
        fail "nothing was changed; move them away, choose another --prefix, or replace them with --force"
    fi
    say "Replaced, although they were not from an earlier installation:"
    sed 's/^/  /' "$work/foreign"
}
# Written before anything is copied, so that an interrupted installation can be removed. A directory that exists belongs to
# somebody else, unless the old list has it.
write_list() {
    {
        sed 's/^/file /' "$work/files" "$work/ours"
        while IFS= read -r path; do
            [ -d "$prefix/$path" ] || say "directory $path"
        done < "$work/directories"
        [ -d "$prefix" ] || say prefix
        grep -E '^(directory |prefix$)' "$work/old" || true
    } | sort -u > "$work/new"
    mkdir -p "$prefix/libexec/brig"
    cp "$work/new" "$list"
}
copy_files() {
    while IFS= read -r path; do
        mkdir -p "$prefix/$path"
    done < "$work/directories"
    # By rename: a program may be running.
    while IFS= read -r path; do
        cp "$here/$path" "$prefix/$path.brig-new"
        mv -f "$prefix/$path.brig-new" "$prefix/$path"
    done < "$work/files"
    unit=$prefix/share/systemd/user/brigd.service
    if [ -z "$without" ] && [ -f "$unit" ]; then
        # systemd expands % and splits words.
        bin=$(printf '%s' "$prefix/bin" | sed -e 's/%/%%/g' -e 's/ /\\x20/g' -e 's/[\\&|]/\\&/g')
        sed "s|@bindir@|$bin|" "$unit" > "$work/unit"
        cat "$work/unit" > "$unit"
    fi
}
# What an earlier version had and this one has not.
remove_old() {
    only_in "$work/ours" "$work/files" | while IFS= read -r path; do
        rm -f "$prefix/$path"
    done
    names directory "$work/old" | only_in - "$work/directories" | remove_directories
    {
        sed 's/^/file /' "$work/files"
        names directory "$work/new" | while IFS= read -r path; do
            [ ! -d "$prefix/$path" ] || say "directory $path"
        done
        grep -x prefix "$work/new" || true
    } > "$list"
}
say_what_lacks() {
    case ":$PATH:" in
    *":$prefix/bin:"*)
        found=$(command -v brig || true)
        [ "$found" = "$prefix/bin/brig" ] || say "'brig' in your shell is $found, which comes first in PATH."
        ;;
    *)
        say "$prefix/bin is not in PATH. Add this line to ~/.profile, and log in again:"
        say "  PATH=\"$prefix/bin:\$PATH\""
        ;;
    esac
}

install_files() {
    check_machine
    check_libc
    list_files
    check_foreign
    write_list
    copy_files
    remove_old
    say "Installed brig $version into $prefix. Remove it with: $prefix/libexec/brig/install.sh --uninstall"
    say_what_lacks
    say "brig doctor says (without the lines that are ok):"
    "$prefix/bin/brig" doctor | sed -e '/^ok /d' -e '/^$/d' -e 's/^/  /'
}

case $action in
install) install_files ;;
uninstall) uninstall ;;
esac
