#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The archive of `make dist`, its install.sh, the npm packages and the wheel, made of the programs that were built for the tests.
# Those are not static: tests/fresh/run dist-build dist-install makes and tries the real ones.

load lib

# The source tree and its build folder: tests/run runs us from a copy without one.
CLONE=${BRIG_CLONE:-$LIB_ROOT}
MESON_BUILD=${BRIG_CLONE:+$BRIG_CLONE/build}
MESON_BUILD=${MESON_BUILD:-$BUILD_DIR}

setup() {
    lib_is_root || cannot "the build folder may belong to root"
    needs meson python3
    [ -x "$BUILD_DIR/src/server/brigd" ] || cannot "brigd was not built"
    [ -e "$MESON_BUILD/build.ninja" ] || cannot "there is no build folder in the source tree"
    TREE=$BATS_FILE_TMPDIR/brig
    # Once: the tests change copies.
    [ -d "$TREE" ] || must "$CLONE/tools/dist-tree" "$MESON_BUILD" "$TREE"
    export SOURCE_DATE_EPOCH=1700000000
}

teardown() {
    scratch_remove
}

# unpacked: a copy of the tree, which is the user's, in $SCRATCH/brig.
unpacked() {
    scratch_make user
    cp -r "$TREE" "$SCRATCH/brig"
    as user mkdir "$SCRATCH/home"
    PREFIX=$SCRATCH/home/.local
}

# installing ARGS…: install.sh as the user.
installing() {
    as user env HOME="$SCRATCH/home" sh "$SCRATCH/brig/install.sh" "$@"
}

@test "the archive has every program, page and completion, licences, and nothing for root" {
    local name
    for name in bin/{brig,brigd,brigctl} libexec/brig/brig-{broker,review,mcp,token,unpack,callback,zygote.so} install.sh; do
        [ -x "$TREE/$name" ] || { echo "no $name"; false; }
    done
    for name in man/man1/brig.1 man/man5/brig.conf.5 man/man8/brigd.8 bash-completion/completions/{brig,brigctl} zsh/site-functions/_{brig,brigctl} \
        fish/vendor_completions.d/{brig,brigctl}.fish systemd/user/brigd.service doc/brig/{brigd.example.yaml,CHANGES,LICENSE} \
        doc/brig/profiles/claude.conf doc/brig/licences/README; do
        [ -s "$TREE/share/$name" ] || { echo "no $name"; false; }
    done
    [ -s "$TREE/lib/brig/libmicrohttpd.so.12" ]
    [ ! -e "$TREE/lib/brig/libc.so.6" ]
    [ -z "$(find "$TREE" -perm /6000)" ]
    must_exit 1 grep '=@[a-z]*@' "$TREE/install.sh" "$TREE/README"
}

@test "the same files give the same archive" {
    scratch_make root
    # Its small files: compressing takes long.
    cp -r "$TREE/share" "$SCRATCH/brig"
    must "$CLONE/tools/dist-tar" "$SCRATCH" brig "$SCRATCH/one.tar.gz"
    rm -rf "$SCRATCH/brig"
    cp -r "$TREE/share" "$SCRATCH/brig"
    must env TZ=Pacific/Kiritimati "$CLONE/tools/dist-tar" "$SCRATCH" brig "$SCRATCH/two.tar.gz"
    cmp "$SCRATCH/one.tar.gz" "$SCRATCH/two.tar.gz"
    # A changed file does not.
    echo >>"$SCRATCH/brig/doc/brig/CHANGES"
    must "$CLONE/tools/dist-tar" "$SCRATCH" brig "$SCRATCH/three.tar.gz"
    must_exit 1 cmp "$SCRATCH/one.tar.gz" "$SCRATCH/three.tar.gz"
}

@test "install.sh installs for a user, twice, and --uninstall leaves nothing" {
    unpacked
    must installing
    output_has "Installed brig"
    output_has "$PREFIX/bin is not in PATH"
    output_has "A full jail works."
    as user mkdir "$SCRATCH/work"
    must as user bash -c 'cd "$1/work" && exec "$2" -m sealed --allow example.com -- echo through' - "$SCRATCH" "$PREFIX/bin/brig"
    output_has through
    must_exit 0 grep -x "ExecStart=$PREFIX/bin/brigd" "$PREFIX/share/systemd/user/brigd.service"
    local before after
    before=$(find "$PREFIX" -type f -exec sha256sum {} + | sort)
    must as user env HOME="$SCRATCH/home" PATH="$PREFIX/bin:$PATH" sh "$SCRATCH/brig/install.sh"
    output_lacks "is not in PATH"
    after=$(find "$PREFIX" -type f -exec sha256sum {} + | sort)
    [ "$before" = "$after" ]
    # The archive may be gone by then.
    must as user "$PREFIX/libexec/brig/install.sh" --uninstall
    [ ! -e "$PREFIX" ]
    must_exit 1 installing --uninstall
    output_has "nothing is installed in '$PREFIX'"
}

@test "directories and files of others stay when it is removed" {
    unpacked
    as user mkdir -p "$PREFIX/bin" "$PREFIX/share/man"
    as user touch "$PREFIX/bin/other"
    must installing
    as user touch "$PREFIX/libexec/brig/of-a-user"
    must installing --uninstall
    [ "$(cd "$PREFIX" && find . | sort | tr '\n' ' ')" = ". ./bin ./bin/other ./libexec ./libexec/brig ./libexec/brig/of-a-user ./share ./share/man " ]
}

@test "a file of another origin is not replaced, unless that is wanted" {
    unpacked
    as user mkdir -p "$PREFIX/bin"
    as user sh -c 'echo mine >"$1/bin/brig"' - "$PREFIX"
    must_exit 1 installing
    output_has "$PREFIX/bin/brig"
    output_has "nothing was changed"
    [ "$(cd "$PREFIX" && find . -type f)" = ./bin/brig ]
    must installing --force
    output_has "Replaced, although they were not from an earlier installation:"
    must as user "$PREFIX/bin/brig" --version
    must installing --uninstall
    # That of make install neither.
    as user mkdir -p "$PREFIX/libexec/brig"
    as user touch "$PREFIX/libexec/brig/installed"
    must_exit 1 installing
    output_has "make uninstall PREFIX="
}

@test "a newer version removes the files that it does not have" {
    unpacked
    mkdir -p "$SCRATCH/brig/share/older"
    echo old >"$SCRATCH/brig/share/older/file"
    must installing
    [ -e "$PREFIX/share/older/file" ]
    rm -r "$SCRATCH/brig/share/older"
    must installing
    [ ! -e "$PREFIX/share/older" ]
    must installing --uninstall
    [ ! -e "$PREFIX" ]
}

@test "another place can have spaces and signs" {
    unpacked
    local place="$SCRATCH/home/a |& %h place"
    must installing --prefix "$place"
    must as user "$place/bin/brig" --version
    # As systemd reads it.
    must_exit 0 grep -xF "ExecStart=$SCRATCH/home/a\\x20|&\\x20%%h\\x20place/bin/brigd" "$place/share/systemd/user/brigd.service"
    must installing --prefix "$place" --uninstall
    [ ! -e "$place" ]
    must_exit 1 installing --prefix some/where
    output_has "absolute path, not 'some/where'"
    must_exit 1 installing --prefix /proc/none
    output_has "cannot be written"
    must_exit 2 installing --prefx /tmp
    output_has "unknown argument '--prefx'"
}

@test "what is installed can be read by everybody, whatever the umask" {
    unpacked
    must as user bash -c 'umask 077 && HOME="$1/home" exec sh "$1/brig/install.sh"' - "$SCRATCH"
    [ -z "$(find "$PREFIX" ! -perm -o=r)" ]
}

@test "an archive for another machine is refused, and without glibc brigd is left out" {
    unpacked
    sed -i 's/^machine=.*/machine=vax/' "$SCRATCH/brig/install.sh"
    must_exit 1 installing
    output_has "this archive is for vax"
    cp "$TREE/install.sh" "$SCRATCH/brig/install.sh"
    printf '#!/bin/sh\necho no such version >&2\nexit 1\n' >"$SCRATCH/brig/bin/brigd"
    must installing
    output_has "brigd, the server, is left out: it needs glibc 2."
    output_has "no such version"
    [ -x "$PREFIX/bin/brig" ]
    [ ! -e "$PREFIX/bin/brigd" ]
    [ ! -e "$PREFIX/lib" ]
    [ ! -e "$PREFIX/share/systemd" ]
    must installing --uninstall
    [ ! -e "$PREFIX" ]
}

@test "checksums are signed with a key, and a changed file is found" {
    needs ssh-keygen
    scratch_make root
    mkdir "$SCRATCH/files"
    cd "$SCRATCH/files"
    echo one >brig.tar.gz
    must "$CLONE/tools/dist-sums" .
    output_has "Not signed"
    [ ! -e SHA256SUMS.sig ]
    ssh-keygen -q -t ed25519 -N '' -f "$SCRATCH/key"
    must env DIST_KEY=../key "$CLONE/tools/dist-sums" .
    # As the guide says.
    echo "brig $(cut -d' ' -f1,2 "$SCRATCH/key.pub")" >"$SCRATCH/brig.pub"
    verify() { ssh-keygen -Y verify -f ../brig.pub -I brig -n brig -s SHA256SUMS.sig <SHA256SUMS && sha256sum -c --ignore-missing SHA256SUMS; }
    must verify
    echo two >brig.tar.gz
    must_exit 1 verify
    sha256sum brig.tar.gz >SHA256SUMS
    must_exit 255 verify
    must_exit 1 env DIST_KEY=/none "$CLONE/tools/dist-sums" .
    output_has "the key '/none' (DIST_KEY) cannot be used"
}

@test "npm installs the packages without network, and npx brig runs a jail" {
    needs npm node
    scratch_make root
    must "$CLONE/tools/dist-npm" "$TREE" "$SCRATCH/packages"
    mkdir "$SCRATCH/app" && cd "$SCRATCH/app"
    echo '{"private": true}' >package.json
    export HOME=$SCRATCH npm_config_update_notifier=false
    must npm install --offline --no-audit --no-fund --loglevel=error "$SCRATCH"/packages/*.tgz
    must npx --offline brig -m sealed --allow example.com -- echo through
    output_has through
    [ -x "$(echo node_modules/brig-cli-linux-*/libexec/brig/brig-unpack)" ]
    must_exit 7 node_modules/.bin/brig -m sealed -- sh -c 'exit 7'
    must node_modules/.bin/brigctl --version
    # Without the package for this processor.
    rm -r node_modules/brig-cli-linux-*
    must_exit 125 node_modules/.bin/brig true
    output_has "is not installed"
}

@test "pip installs the wheel without network: the module, the command and the broker" {
    [ -e /usr/lib/python3/dist-packages/pip ] || cannot "pip is not installed"
    scratch_make root
    must "$CLONE/tools/wheel" "$MESON_BUILD" "$SCRATCH/wheels" "$TREE"
    export HOME=$SCRATCH PIP_DISABLE_PIP_VERSION_CHECK=1
    must /usr/bin/python3 -m pip install --quiet --no-index --target "$SCRATCH/python" "$SCRATCH"/wheels/*.whl
    mkdir "$SCRATCH/work" && cd "$SCRATCH/work"
    must "$SCRATCH/python/bin/brig" -m sealed --allow example.com -- echo through
    output_has through
    must env -u BRIG_LIBRARY PYTHONPATH="$SCRATCH/python" /usr/bin/python3 -c '
import brig
policy = brig.Policy("sealed").network("allow").allow("example.com")
print(brig.run(["echo", "carried"], policy=policy, text=True).stdout)'
    output_has carried
}
