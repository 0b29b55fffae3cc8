#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `make install` puts where, and that it works from there, without anything of the source tree.

load lib

teardown() {
    scratch_remove
}

# The source tree and its build folder: tests/run runs us from a copy without one.
CLONE=${BRIG_CLONE:-$LIB_ROOT}
MESON_BUILD=${BRIG_CLONE:+$BRIG_CLONE/build}
MESON_BUILD=${MESON_BUILD:-$BUILD_DIR}

# prefix_of FOLDER: the prefix that a build folder was configured for.
prefix_of() {
    meson introspect --buildoptions "$1" |
        python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))'
}

# Installs what was built, once for all tests. What is missing for it, each test says.
setup_file() {
    lib_is_root && command -v meson && command -v python3 && [ -x "$BUILD_DIR/src/server/brigd" ] || return 0
    scratch_make root
    export INSTALLED=$SCRATCH INSTALLED_PREFIX
    DESTDIR=$SCRATCH/root meson install -C "$MESON_BUILD" --no-rebuild --quiet
    INSTALLED_PREFIX=$(prefix_of "$MESON_BUILD")
    chmod -R a+rX "$SCRATCH/root"
}

teardown_file() {
    scratch_remove
}

# installed: puts what was installed into $SCRATCH/root; sets PREFIX.
installed() {
    needs meson python3
    [ -x "$BUILD_DIR/src/server/brigd" ] || cannot "brigd was not built"
    cp -a "$INSTALLED/root" "$SCRATCH/root"
    PREFIX=$SCRATCH/root$INSTALLED_PREFIX
}

@test "every program is installed with its page, and nothing is setuid" {
    lib_is_root || cannot "the build folder may belong to root"
    scratch_make root
    installed
    local name
    for name in bin/brig bin/brigd bin/brigctl libexec/brig/brig-broker libexec/brig/brig-review \
        libexec/brig/brig-mcp libexec/brig/brig-callback libexec/brig/brig-unpack \
        libexec/brig/brig-zygote.so; do
        [ -x "$PREFIX/$name" ]
    done
    for name in man1/brig.1 man1/brigctl.1 man3/libbrig.3 man5/brig.conf.5 man5/brigd.yaml.5 man8/brigd.8; do
        [ -s "$PREFIX/share/man/$name" ]
    done
    [ -z "$(find "$SCRATCH/root" -perm /6000)" ]
    must_exit 0 "$PREFIX/bin/brigd" --check-config -c "$PREFIX/share/doc/brig/brigd.example.yaml"
}

@test "the units of brigd start the program that was installed, and systemd understands them" {
    lib_is_root || cannot "the build folder may belong to root"
    scratch_make root
    installed
    local folder program
    for folder in lib/systemd/system share/systemd/user; do
        program=$(sed -n 's/^ExecStart=//p' "$PREFIX/$folder/brigd.service")
        [ -x "$SCRATCH/root$program" ]
        must_exit 1 grep '@[a-z]*@' "$PREFIX/$folder/brigd.service"
    done
    must_exit 0 grep -x 'Delegate=cpu io memory pids' "$PREFIX/lib/systemd/system/user@.service.d/50-brig.conf"
    needs systemd-analyze
    # Where the program is now; pages are not looked for, as they are not in the system's place.
    sed -i "s,^ExecStart=.*,ExecStart=$SCRATCH/root$program,; /^Documentation=/d" \
        "$PREFIX"/lib/systemd/system/brigd.* "$PREFIX"/share/systemd/user/brigd.*
    must systemd-analyze verify "$PREFIX"/lib/systemd/system/brigd.{service,socket}
    [ -z "$output" ]
    export XDG_RUNTIME_DIR=$SCRATCH
    must systemd-analyze --user verify "$PREFIX"/share/systemd/user/brigd.{service,socket}
    [ -z "$output" ]
}

@test "systemd-analyze rates the exposure of the system's unit as docs/server.md says" {
    lib_is_root || cannot "the build folder may belong to root"
    needs systemd-analyze
    scratch_make root
    installed
    must systemd-analyze security --offline=yes --no-pager "$PREFIX/lib/systemd/system/brigd.service"
    local score
    score=$(sed -n 's/.*exposure level for brigd.service: \([0-9.]*\).*/\1/p' <<<"$output")
    [ -n "$score" ]
    # Each release of systemd has its own rules; the document names the one of Debian 12.
    [ "$(systemctl --version | sed -n 's/^systemd \([0-9]*\).*/\1/p')" = 252 ] || cannot "this is not systemd 252"
    must_exit 0 grep -F "exposure of $score" "$LIB_ROOT/docs/server.md"
}

@test "what is installed runs a jail with a door from another place than was planned" {
    lib_is_root || cannot "the build folder may belong to root"
    for who in $(each_user); do
        scratch_make "$who"
        installed
        as "$who" mkdir "$SCRATCH/work"
        must as "$who" bash -c 'cd "$1/work" && exec "$2" -m sealed --allow example.com -- echo through' - \
            "$SCRATCH" "$PREFIX/bin/brig"
        output_has through
        scratch_remove
    done
}

# The prefix that was configured: nothing is to be built for it.
configured_prefix() {
    if [ "$CLONE/build" -ef "$MESON_BUILD" ] && [ -n "${INSTALLED_PREFIX:-}" ]; then
        printf '%s\n' "$INSTALLED_PREFIX"
    else
        prefix_of "$CLONE/build"
    fi
}

@test "who may not write to the prefix is told so; uninstall removes what install has made and nothing else" {
    lib_is_root || cannot "the build folder may belong to root"
    needs meson
    [ -e "$CLONE/build/build.ninja" ] || cannot "there is no build folder in the source tree"
    scratch_make root
    local prefix before
    prefix=$(configured_prefix)
    mkdir -p "$SCRATCH/root$prefix/bin" "$SCRATCH/root$prefix/share/man"
    echo kept >"$SCRATCH/root$prefix/bin/other"
    before=$(find "$SCRATCH/root" | sort)
    export DESTDIR=$SCRATCH/root
    # The user may be unable to enter the source tree.
    mkdir -p "$SCRATCH/tools"
    cp "$CLONE/tools/install" "$SCRATCH/tools/"
    must_exit 1 as user sh "$SCRATCH/tools/install" build "$prefix"
    output_has "install: '$SCRATCH/root$prefix' cannot be written: use sudo"
    # The nearest directory that exists decides.
    must_exit 1 as user env DESTDIR="$SCRATCH/root/none" sh "$SCRATCH/tools/install" build "$prefix"
    output_has "install: '$SCRATCH/root' cannot be written: use sudo"
    [ ! -e "$SCRATCH/build" ]
    [ "$(find "$SCRATCH/root" | sort)" = "$before" ]
    must env DESTDIR="$SCRATCH/none/yet" "$CLONE/tools/install" build "$prefix"
    must test -x "$SCRATCH/none/yet$prefix/bin/brig"
    # Twice: the second time no directory is new.
    must "$CLONE/tools/install" build "$prefix"
    must "$CLONE/tools/install" build "$prefix"
    must test -x "$SCRATCH/root$prefix/bin/brig"
    touch "$SCRATCH/root$prefix/libexec/brig/of-a-user"
    must "$CLONE/tools/uninstall" "$prefix"
    rm "$SCRATCH/root$prefix/libexec/brig/of-a-user"
    rmdir "$SCRATCH/root$prefix/libexec/brig" "$SCRATCH/root$prefix/libexec"
    [ "$(find "$SCRATCH/root" | sort)" = "$before" ]
    must_exit 1 "$CLONE/tools/uninstall" "$prefix"
    output_has "nothing is installed in '$SCRATCH/root$prefix'"
    must_exit 2 "$CLONE/tools/uninstall" some/where
    output_has "absolute paths, not 'some/where'"
}

@test "what ./brig builds at its first use has the broker of the network door and the programs of verbs" {
    needs ninja
    local target
    target=$(sed -n 's/.*tools\/build" .* -- \([^ ]*\) .*/\1/p' "$BATS_TEST_DIRNAME/../../brig")
    must ninja -C "$MESON_BUILD" -t query "$target"
    output_has src/cli/brig
    output_has src/net/brig-broker
    output_has src/review/brig-review
    output_has src/mcp/brig-mcp
    output_has src/unpack/brig-unpack
    must ninja -C "$MESON_BUILD" -t query src/cli/brig
    output_lacks brig-broker
}
