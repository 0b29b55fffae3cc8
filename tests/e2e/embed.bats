#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs outside the tree are built against the installed library: with pkg-config and with CMake, in C and C++,
# dynamically and statically; and they run jails.

load lib

MESON_BUILD=${BRIG_CLONE:+$BRIG_CLONE/build}
MESON_BUILD=${MESON_BUILD:-$BUILD_DIR}

setup_file() {
    needs meson pkg-config gcc g++
    lib_is_root || cannot "the build folder may belong to root"
    EMBED=$(mktemp -d /tmp/brig-embed.XXXXXXXX)
    chmod 0755 "$EMBED"
    export EMBED
    DESTDIR=$EMBED/root meson install -C "$MESON_BUILD" --no-rebuild --quiet
    LIBRARY=$(dirname "$(find "$EMBED/root" -name libbrig.so)")
    export LIBRARY
    export PKG_CONFIG_PATH=$LIBRARY/pkgconfig PKG_CONFIG_SYSROOT_DIR=$EMBED/root
    # A program of C and C++ alike, with names that the library has inside, too.
    cat >"$EMBED/program.c" <<'END'
#include <brig/brig.h>
#include <stdio.h>

int result_done(void);
int str_append(void);
int job_run(void);
int result_done(void) { return 0; }
int str_append(void) { return 0; }
int job_run(void) { return 0; }

static int work(struct brig_call_child *child, void *argument)
{
    return brig_call_return(child, argument, 4);
}

int main(void)
{
    const char *const argv[] = {"echo", "from a jail", NULL};
    char bytes[] = "call";
    struct brig_error err;
    struct brig_result *result = NULL;
    struct brig_call_result *called = NULL;
    struct brig_command command = BRIG_COMMAND_INIT;
    err.message[0] = 0;
    command.argv = argv;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    if (brig_run(NULL, &command, &result, &err) < 0)
        fprintf(stderr, "%s\n", err.message);
    else
        printf("%s: %s", brig_version(), brig_result_output(result, 1, NULL, NULL));
    if (brig_call_run(NULL, NULL, work, bytes, &called, &err) < 0)
        fprintf(stderr, "%s\n", err.message);
    else
        printf("%.4s\n", (const char *)brig_call_result_value(called, NULL));
    brig_result_free(result);
    brig_call_result_free(called);
    return result_done() + str_append() + job_run();
}
END
    cp "$EMBED/program.c" "$EMBED/program.cc"
}

teardown_file() {
    [ -z "${EMBED:-}" ] || rm -rf -- "$EMBED"
}

# works PROGRAM: for everyone
works() {
    for who in $(each_user); do
        must as "$who" "$@"
        output_has "0.2.0: from a jail"
        output_has "call"
    done
}

# flags WORD…: what pkg-config says
flags() {
    pkg-config "$@" libbrig
}

@test "pkg-config: C and C++ with the shared library" {
    # shellcheck disable=SC2046 # several words on purpose
    must gcc -Wall -Wextra -Werror -o "$EMBED/c" "$EMBED/program.c" $(flags --cflags --libs)
    # shellcheck disable=SC2046
    must g++ -std=c++11 -Wall -Wextra -Werror -o "$EMBED/cc" "$EMBED/program.cc" $(flags --cflags --libs)
    works env LD_LIBRARY_PATH="$LIBRARY" "$EMBED/c"
    works env LD_LIBRARY_PATH="$LIBRARY" "$EMBED/cc"
}

@test "pkg-config --static: C and C++ that need no library at all" {
    # shellcheck disable=SC2046
    must gcc -static -Wall -Wextra -Werror -o "$EMBED/cs" "$EMBED/program.c" $(flags --static --cflags --libs)
    [ -z "$output" ]
    # shellcheck disable=SC2046
    must g++ -static -Wall -Wextra -Werror -o "$EMBED/ccs" "$EMBED/program.cc" $(flags --static --cflags --libs)
    [ -z "$output" ]
    must_fail sh -c 'readelf -d "$1" | grep NEEDED' - "$EMBED/cs"
    works "$EMBED/cs"
    works "$EMBED/ccs"
}

@test "the static library has no global names but its functions" {
    must sh -c "nm -g --defined-only '$LIBRARY/libbrig.a' | awk 'NF == 3 { print \$3 }' | sort"
    [ "$output" = "$(sed -n 's/^ *\(brig_[a-z0-9_]*\);$/\1/p' "$LIB_ROOT/src/libbrig.map" | sort)" ]
}

@test "CMake: find_package(brig) gives brig::brig and brig::static" {
    needs cmake
    mkdir -p "$EMBED/project"
    cp "$EMBED/program.c" "$EMBED/program.cc" "$EMBED/project/"
    cat >"$EMBED/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(embed C CXX)
set(CMAKE_CXX_STANDARD 11)
find_package(brig 0.2 REQUIRED)
add_executable(c program.c)
add_executable(cc program.cc)
add_executable(cs program.c)
add_executable(ccs program.cc)
target_link_libraries(c brig::brig)
target_link_libraries(cc brig::brig)
target_link_libraries(cs brig::static)
target_link_libraries(ccs brig::static)
END
    must cmake -S "$EMBED/project" -B "$EMBED/project/build" -DCMAKE_PREFIX_PATH="$EMBED/root/usr/local"
    must cmake --build "$EMBED/project/build"
    for name in c cc cs ccs; do
        works "$EMBED/project/build/$name"
    done
    must_fail sh -c 'readelf -d "$1" | grep NEEDED.*brig' - "$EMBED/project/build/cs"
    sed -i 's/brig 0.2/brig 1.0/' "$EMBED/project/CMakeLists.txt"
    must_fail cmake -S "$EMBED/project" -B "$EMBED/project/other" -DCMAKE_PREFIX_PATH="$EMBED/root/usr/local"
    output_has "0.2.0"
}
