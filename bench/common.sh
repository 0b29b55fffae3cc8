# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What the benchmark scripts share: where the build is, a scratch directory, the machine in words.
# Sourced by them; sets root, builddir, scratch.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
builddir=${BRIG_BUILD:-$root/build}
PATH=$PATH:/usr/sbin:/sbin
export PATH

say() {
    printf '%s\n' "$*"
}

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# A directory every user may enter: a jail started by root runs as another user.
make_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/brig-bench.XXXXXX") || fail "cannot make a directory"
    chmod 755 "$scratch"
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# compile OUTPUT SOURCE [FLAGS...]: with the compiler of the build.
compile() {
    output=$1
    source_file=$2
    shift 2
    # shellcheck disable=SC2086 # CC may be "ccache gcc"
    ${CC:-cc} -std=gnu17 -O2 -Wall -Wextra -D_GNU_SOURCE -I"$root/include" -o "$output" "$source_file" "$@" ||
        fail "cannot compile ${source_file##*/}"
}

# The brig to measure: what BRIG names, else the build, else what is installed.
find_brig() {
    if [ -n "${BRIG:-}" ]; then
        command -v "$BRIG"
        return
    fi
    for candidate in "$builddir/src/cli/brig" "$builddir/src/brig" "$builddir/brig"; do
        [ -x "$candidate" ] && [ -f "$candidate" ] && printf '%s\n' "$candidate" && return
    done
    command -v brig
}

# library_flags [NAME]: a static library of the build, by default the one that is installed, and what it needs.
library_flags() {
    archive=$(find "$builddir" -name "${1:-libbrig.a}" -type f -print 2>/dev/null | head -n 1)
    [ -n "$archive" ] || fail "no ${1:-libbrig.a} below $builddir: run make, or set BRIG_BUILD"
    needs=$(PKG_CONFIG_PATH="$builddir/meson-uninstalled:$builddir/meson-private" \
        pkg-config --static --libs-only-l libbrig 2>/dev/null |
        tr ' ' '\n' | grep -v '^-lbrig$' | tr '\n' ' ')
    printf '%s %s -pthread\n' "$archive" "$needs"
}

describe_machine() {
    model=$(sed -n 's/^model name[^:]*: //p; s/^CPU part[^:]*: /CPU part /p' /proc/cpuinfo |
        head -n 1)
    say "machine: $(uname -m), $(nproc) x ${model:-unknown}, $(sed -n \
        's/^MemTotal: *\([0-9]*\) kB/\1 kB/p' /proc/meminfo), load $(cut -d ' ' -f 1 /proc/loadavg)"
    say "kernel:  $(uname -sr)"
    say "user:    uid $(id -u)"
}
