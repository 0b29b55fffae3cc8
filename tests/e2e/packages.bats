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
