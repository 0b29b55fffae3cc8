#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tools/build: when a build folder is configured again, when it is made anew, and when it is left alone. With the real
# meson, and a project of one C file that has a second program where a library is found.

load lib

setup() {
    needs meson ninja pkg-config cc
    scratch_make user
    tree=$SCRATCH/tree
    mkdir -p "$tree/tools" "$tree/src/x" "$SCRATCH/pc"
    cp "${BRIG_CLONE:-$LIB_ROOT}"/tools/{build,list-sources} "$tree/tools/"
    echo 'int main(void) { return 0; }' >"$tree/src/x/main.c"
    cat >"$tree/meson.build" <<'END'
project('x', 'c')
lister = find_program('tools/list-sources')
foreach path : run_command(lister, 'src/x/*.c', check: true).stdout().split()
  executable(path.underscorify(), path)
endforeach
if dependency('yaml-0.1', required: false).found()
  executable('with-library', 'src/x/main.c')
endif
END
    # The only libraries there are.
    export PKG_CONFIG_LIBDIR=$SCRATCH/pc
}

teardown() {
    scratch_remove
}

library_appears() {
    printf '%s\n' 'Name: yaml' 'Description: for a test' 'Version: 0.2.5' >"$SCRATCH/pc/yaml-0.1.pc"
}

@test "a library that appears after the first configuration brings its targets" {
    must "$tree/tools/build" build
    [ -x "$tree/build/src_x_main_c" ]
    must_exit 1 "$tree/tools/build" build -- with-library
    output_has "unknown target 'with-library'"
    library_appears
    must "$tree/tools/build" build -- with-library
    [ -x "$tree/build/with-library" ]
    # And one that goes away is not asked for any more.
    rm "$SCRATCH/pc/yaml-0.1.pc"
    must "$tree/tools/build" build
    must_exit 1 "$tree/tools/build" build -- with-library
}

@test "a source file that appears or goes away is noticed" {
    must "$tree/tools/build" build
    cp "$tree/src/x/main.c" "$tree/src/x/other.c"
    must "$tree/tools/build" build
    [ -x "$tree/build/src_x_other_c" ]
    rm "$tree/src/x/other.c"
    must "$tree/tools/build" build
}

@test "where nothing has changed nothing is configured or built" {
    must "$tree/tools/build" build -Dbuildtype=debug
    local before
    before=$(stat -c %y "$tree/build/build.ninja" "$tree/build/src_x_main_c")
    must "$tree/tools/build" build
    [ -z "$output" ]
    # Options that it has already, and none, are no change.
    must "$tree/tools/build" build -Dbuildtype=debug
    [ "$before" = "$(stat -c %y "$tree/build/build.ninja" "$tree/build/src_x_main_c")" ]
    must "$tree/tools/build" build -Dbuildtype=release
    must grep -c -e -O3 "$tree/build/build.ninja"
}

@test "a tree that was copied or moved has its build folder made anew, with its options" {
    must "$tree/tools/build" build -Dbuildtype=release
    cp -a "$tree" "$SCRATCH/copy of it"
    must "$SCRATCH/copy of it/tools/build" build
    output_has "Building in $SCRATCH/copy of it/build anew"
    must_exit 1 grep -F "$tree/" "$SCRATCH/copy of it/build/build.ninja"
    must grep -c -e -O3 "$SCRATCH/copy of it/build/build.ninja"
    [ -x "$SCRATCH/copy of it/build/src_x_main_c" ]
    # The folder alone, elsewhere.
    mv "$tree/build" "$SCRATCH/folder"
    must "$tree/tools/build" "$SCRATCH/folder"
    must_exit 1 grep -F "$tree/build" "$SCRATCH/folder/build.ninja"
}

@test "a folder that meson alone has configured keeps its options" {
    must meson setup -Dbuildtype=release "$tree/build" "$tree"
    must "$tree/tools/build" build
    output_lacks "anew"
    must grep -c -e -O3 "$tree/build/build.ninja"
}

@test "a configuration that was interrupted is begun again" {
    must "$tree/tools/build" build
    rm "$tree/build/build.ninja"
    must "$tree/tools/build" build
    [ -x "$tree/build/src_x_main_c" ]
}

@test "a build that did not end well goes on the next time, and says so" {
    must "$tree/tools/build" build
    echo '#error wrong' >>"$tree/src/x/main.c"
    must_exit 1 "$tree/tools/build" build
    sed -i '/^#error/d' "$tree/src/x/main.c"
    must "$tree/tools/build" build
    output_has "Going on with the build in $tree/build"
    must "$tree/tools/build" build
    [ -z "$output" ]
}

@test "a folder with files of another builder is not emptied" {
    mkdir "$tree/build"
    touch "$tree/build/build.ninja" "$tree/build/kept"
    must_exit 1 "$tree/tools/build" build
    output_has "'$tree/build' was not made by meson"
    [ -e "$tree/build/kept" ]
}

@test "a user who finds root's build folder is told how to take it over, and root leaves none in a user's tree" {
    lib_is_root || cannot "only root can make a folder of root's"
    chown -R "$LIB_USER:" "$tree"
    must "$tree/tools/build" build
    [ "$(stat -c %U "$tree/build" "$tree/build/.ninja_log" | sort -u)" = "$LIB_USER" ]
    must as user env PKG_CONFIG_LIBDIR="$SCRATCH/pc" "$tree/tools/build" build
    chown root: "$tree/build/.ninja_log"
    must_exit 1 as user env PKG_CONFIG_LIBDIR="$SCRATCH/pc" "$tree/tools/build" build
    output_has "'$tree/build/.ninja_log' belongs to root and you cannot write to it."
    output_has "sudo chown -R $LIB_USER '$tree/build'"
}
