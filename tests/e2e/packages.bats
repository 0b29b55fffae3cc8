#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The files in debian/ agree with the project. tests/fresh/run builds and installs the packages, which takes long.

load lib

setup() {
    cd "$LIB_ROOT" || return
}

@test "the packages have the version of the project" {
    local version
    version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
    [ -n "$version" ]
    [ "$(sed -n '1s/^brig (\(.*\)) .*/\1/p' debian/changelog)" = "$version" ]
}

# An installed file that no package has, or a line of debian/*.install without a file, would stop the build.
@test "each installed file is in one package" {
    needs python3
    [ -e "${BRIG_CLONE:-$LIB_ROOT}/build/meson-info/intro-installed.json" ] || cannot "the build folder is not here"
    must python3 - "${BRIG_CLONE:-$LIB_ROOT}/build/meson-info" <<'CHECK'
import fnmatch, glob, json, pathlib, sys

info = pathlib.Path(sys.argv[1])
options = json.loads((info / "intro-buildoptions.json").read_text())
prefix = next(option["value"] for option in options if option["name"] == "prefix")
files = {path.replace(prefix, "usr", 1) for path in json.loads((info / "intro-installed.json").read_text()).values()}
files.add("usr/lib/x/libbrig.so.0")  # links are not in meson's list
files.add("usr/lib/x/libbrig.so")
bad = []
for path in ["debian/not-installed", *glob.glob("debian/*.install")]:
    for line in pathlib.Path(path).read_text().splitlines():
        pattern = line.split()[0]
        if not pattern.startswith("usr/"):
            if not glob.glob(pattern):
                bad.append(f"{path}: no file {pattern}")
            continue
        found = {name for name in files if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")}
        if not found:
            bad.append(f"{path}: nothing is installed as {pattern}")
        files -= found
bad += [f"in no package: {name}" for name in sorted(files)]
print("\n".join(bad))
sys.exit(bool(bad))
CHECK
}

@test "the packages need for their build what tools/setup installs" {
    local package
    # Parts of build-essential, and what meson and pkgconf bring.
    for package in $(tools/setup --list build server | grep -vxE 'gcc|libc6-dev|ninja-build|pkg-config'); do
        grep -qE "^ $package(:native)?,$" debian/control || {
            echo "not in debian/control: $package" >&2
            return 1
        }
    done
}

@test "each version of the library's symbols is known to its package" {
    local node
    for node in $(sed -n 's/^\(BRIG_[0-9.]*\) {.*/\1/p' src/libbrig.map); do
        grep -q "^ (symver)$node " debian/libbrig0.symbols
    done
}

@test "the configuration that the package brings is valid, and only for this machine" {
    [ -x "$BUILD_DIR/src/server/brigd" ] || cannot "brigd was not built"
    must "$BUILD_DIR/src/server/brigd" --check-config -c debian/brigd.yaml
    grep -q '^  listen: "127\.0\.0\.1:' debian/brigd.yaml
}

# reserve_in FILE: with the function of the package, and the one of make install.
reserve_in() {
    local script
    for script in debian/brig.postinst tools/install; do
        cp "$1" "$1.new"
        sed -n '/^reserve() {$/,/^}$/p' "$script" >"$BATS_TEST_TMPDIR/reserve"
        sh -eu -c '. "$1"; reserve "$2"' - "$BATS_TEST_TMPDIR/reserve" "$1.new" >/dev/null || return
        cat "$1.new"
    done
}

@test "the ids that are reserved for brig are nobody else's, and change no other line" {
    local line=brig:1900000000:10000000
    local ranges=$BATS_TEST_TMPDIR/subuid
    printf 'ann:100000:65536\n' >"$ranges"
    must reserve_in "$ranges"
    [ "$output" = "$(printf '%s\n' ann:100000:65536 $line ann:100000:65536 $line)" ]
    # Without a newline at its end.
    printf 'ann:100000:65536' >"$ranges"
    must reserve_in "$ranges"
    [ "$output" = "$(printf '%s\n' ann:100000:65536 $line ann:100000:65536 $line)" ]
    : >"$ranges"
    must reserve_in "$ranges"
    [ "$output" = "$(printf '%s\n' $line $line)" ]
    # The neighbours are free.
    printf 'ann:1899999999:1\nbob:1910000000:9\n' >"$ranges"
    must reserve_in "$ranges"
    [ "${#lines[@]}" -eq 6 ]
    for other in ann:1899999999:2 ann:1909999999:1 ann:1:4000000000 brig:5:6; do
        printf '%s\n' "$other" >"$ranges"
        must reserve_in "$ranges"
        output_lacks $line
    done
}

@test "purging the package removes what brig setup wrote, and nothing that was changed" {
    local name record=$BATS_TEST_TMPDIR/setup
    cd "$BATS_TEST_TMPDIR"
    for name in own changed other; do
        echo "$name" >"$name"
    done
    {
        echo "sysctl kernel.unprivileged_userns_clone 0 1"
        echo "file $(sha256sum <own | cut -d ' ' -f 1) $PWD/own"
        echo "profile $(sha256sum <own | cut -d ' ' -f 1) $PWD/changed"
        echo "file $(sha256sum <own | cut -d ' ' -f 1) $PWD/missing"
    } >"$record"
    sed -n '/^remove_settings() {$/,/^}$/p' "$LIB_ROOT/debian/brig.postrm" >function
    must sh -eu -c '. ./function; remove_settings "$1"; remove_settings "$1"' - "$record"
    [ ! -e own ]
    [ ! -e "$record" ]
    [ -e changed ]
    [ -e other ]
}
