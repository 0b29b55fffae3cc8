# SPDX-License-Identifier: MIT
# What the end-to-end suites share: the binaries under test, the ordinary user, scratch directories.
# shellcheck disable=SC2154 # status and output are set by `run`
#
# A suite loads it with `load lib` (or `load ../e2e/lib`). For root, tests/run makes the ordinary user;
# without root it is the caller.

LIB_DIR=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
LIB_ROOT=$(cd "$LIB_DIR/../.." && pwd)
LIB_USER=${BRIG_TEST_USER:-}
[ "$EUID" -eq 0 ] || LIB_USER=$(id -un)

: "${BUILD_DIR:=$LIB_ROOT/build}"
: "${BRIG:=$BUILD_DIR/src/cli/brig}"
# Where the test tools of tests/probe are built.
: "${BRIG_PROBES:=$BUILD_DIR/tests/probe}"
# `as WHO "$WITHOUT" FEATURES -- CMD...`: with system calls forced to fail, see tests/probe/without.c.
WITHOUT=$BRIG_PROBES/without
export BUILD_DIR BRIG BRIG_PROBES WITHOUT

lib_is_root() {
    [ "$EUID" -eq 0 ]
}

# cannot REASON: skips the test with a reason, or fails it where everything must work.
cannot() {
    if [ "${BRIG_MUST_WORK:-0}" = 1 ]; then
        echo "must work here, but: $*" >&2
        return 1
    fi
    skip "$*"
}

# needs PROGRAM...: each must be on the PATH.
needs() {
    local program
    for program; do
        command -v "$program" >/dev/null 2>&1 || cannot "$program is not installed"
    done
}

# ---- The ordinary user ---------------------------------------------------------------------------

# The user's ids and home, looked up once and exported to all commands.
if [ -z "${LIB_USER_HOME:-}" ]; then
    IFS=: read -r _ _ LIB_USER_ID LIB_USER_GROUP _ LIB_USER_HOME _ < <(getent passwd "$LIB_USER") || true
    export LIB_USER_ID LIB_USER_GROUP LIB_USER_HOME
fi

# run_as_user CMD...: as the ordinary user, with that user's groups and home. PATH and the variables
# named BRIG* stay. A caller may have a command run before that, as root, in BEFORE_USER.
run_as_user() {
    if lib_is_root; then
        "${BEFORE_USER[@]}" setpriv --reuid="$LIB_USER" --regid="$LIB_USER" --init-groups --inh-caps=-all \
            env -u SUDO_USER -u SUDO_UID -u SUDO_GID -u XDG_RUNTIME_DIR \
            HOME="$LIB_USER_HOME" USER="$LIB_USER" LOGNAME="$LIB_USER" SHELL=/bin/bash "$@"
    else
        "$@"
    fi
}

# as root|user CMD...
as() {
    local who=$1
    shift
    case $who in
    root) env -u SUDO_USER -u SUDO_UID -u SUDO_GID "$@" ;;
    user) run_as_user "$@" ;;
    *)
        echo "as: $who is neither root nor user" >&2
        return 2
        ;;
    esac
}

# each_user: the users a test can be run as, for `for who in $(each_user)`.
each_user() {
    if lib_is_root; then
        echo root user
    else
        echo user
    fi
}

# ---- Scratch -------------------------------------------------------------------------------------

# scratch_make WHO [SCRIPT]: sets SCRATCH to a fresh directory that WHO owns and every uid can use, also the
# unprivileged one a jail of root runs as. The script, which prints nothing, is run in it by WHO. It is not below
# /tmp, which is private in a jail; for root BRIG_SCRATCH says where else.
scratch_make() {
    local base
    if [ "$1" = user ] && lib_is_root; then
        base=$LIB_USER_HOME
    elif lib_is_root; then
        base=${BRIG_SCRATCH:-/var/lib}
    else
        base=$HOME
    fi
    # shellcheck disable=SC2016 # for that shell
    SCRATCH=$(as "$1" sh -ec 'scratch=$(mktemp -d "$1/brigtest.XXXXXXXX"); chmod 0777 "$scratch"
        echo "$scratch"; cd "$scratch"; eval "$2"' - "$base" "${2:-}") || return
    LIB_SCRATCHES="${LIB_SCRATCHES:-}${LIB_SCRATCHES:+ }$SCRATCH"
}

# remove_jails NAME… -- COMMAND…: COMMAND is brig, as somebody. All of them at once, which fails if something runs in one
# of them; then one after the other.
remove_jails() {
    local names=() name
    while [ "$1" != -- ]; do
        case " ${names[*]} " in
        *" $1 "*) ;;
        *) names+=("$1") ;;
        esac
        shift
    done
    shift
    [ ${#names[@]} -gt 0 ] || return 0
    ! "$@" rm -f "${names[@]}" >/dev/null 2>&1 || return 0
    for name in "${names[@]}"; do
        "$@" stop "$name" >/dev/null 2>&1 || true
        "$@" rm -f "$name" >/dev/null 2>&1 || true
    done
}

# Ends and removes the jails of the projects below a scratch directory.
scratch_remove_jails() {
    local who home file project jails
    for who in $(each_user); do
        home=$HOME
        [ "$who" = root ] || home=$LIB_USER_HOME
        jails=()
        for file in "${BRIG_CONFIG_DIR:-$home/.local/share/brig}"/*.project; do
            [ -e "$file" ] || continue
            read -r project <"$file" || true
            case $project in
            "$1"/*)
                file=${file##*/}
                jails+=("${file%.project}")
                ;;
            esac
        done
        remove_jails "${jails[@]}" -- as "$who" "$BRIG"
    done
}

# For teardown: removes what scratch_make made in this test.
scratch_remove() {
    local directory
    for directory in ${LIB_SCRATCHES:-}; do
        scratch_remove_jails "$directory"
        rm -rf -- "$directory"
    done
    LIB_SCRATCHES=
}

# ---- Running -------------------------------------------------------------------------------------

# must CMD...: the command succeeds; what it printed is shown otherwise.
must() {
    run "$@"
    [ "$status" -eq 0 ] || {
        echo "exit $status from: $*" >&2
        echo "$output" >&2
        return 1
    }
}

# must_fail CMD...: the command does not succeed, and it was not brig that failed.
must_fail() {
    run "$@"
    [ "$status" -ne 0 ] && [ "$status" -ne 125 ] || {
        echo "exit $status from: $*" >&2
        echo "$output" >&2
        return 1
    }
}

# must_exit STATUS CMD...
must_exit() {
    local wanted=$1
    shift
    run "$@"
    [ "$status" -eq "$wanted" ] || {
        echo "exit $status instead of $wanted from: $*" >&2
        echo "$output" >&2
        return 1
    }
}

# output_has TEXT: of the last command run.
output_has() {
    case $output in
    *"$1"*) ;;
    *)
        echo "not in the output: $1" >&2
        echo "$output" >&2
        return 1
        ;;
    esac
}

# drop_told: removes the line about changes at the end of a run from output.
drop_told() {
    output=$(grep -v '^brig: .* changed in .*; see brig status' <<<"$output" || true)
}

output_lacks() {
    case $output in
    *"$1"*)
        echo "in the output: $1" >&2
        echo "$output" >&2
        return 1
        ;;
    esac
}

# ---- Waiting -------------------------------------------------------------------------------------

# await CMD...: runs the command until it succeeds. After a minute the test fails. Tests never sleep and
# hope: they wait with this for the event, or with AWAIT in a jail.
await() {
    local end=$((SECONDS + 60 * ${BRIG_SLOW:-1})) tries=0
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "waited in vain for: $*" >&2
            return 1
        }
        # Often at first: most events are near. Each look at a screen, and each sleep, starts processes.
        if [ $((tries += 1)) -le 10 ]; then sleep 0.02; else sleep 0.1; fi
    done
}

# await_file FILE...: until all of them exist.
await_file() {
    local file
    for file; do
        await test -e "$file" || return
    done
}

# await_not CMD...: until the command fails.
await_not() {
    await lib_not "$@"
}
lib_not() {
    ! "$@"
}

# has_ended PID: the process is gone, or a zombie that its parent has not waited for.
has_ended() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    case ${stat##*) } in
    Z* | X*) ;;
    *) return 1 ;;
    esac
}

# find_brig PID: the process itself, or one below it, that is the brig under test. The children are read
# first: a process that is not brig yet after that had none of brig's children then.
find_brig() {
    local child children
    children=$(cat /proc/"$1"/task/*/children 2>/dev/null) || true
    if [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$BRIG")" ]; then
        echo "$1"
        return
    fi
    for child in $children; do
        find_brig "$child" && return
    done
    return 1
}

# build_program SOURCE FILE [OPTION…]: with the flags that the library's own pkg-config file gives before it is installed.
build_program() {
    local flags library
    flags=$(PKG_CONFIG_PATH=$BUILD_DIR/meson-uninstalled pkg-config --cflags --libs libbrig)
    library=$(dirname "$(find "$BUILD_DIR" -name libbrig.so -print -quit)")
    # Several words on purpose.
    # shellcheck disable=SC2086
    gcc -std=gnu11 -Wall -Wextra -Werror "${@:3}" -o "$2" "$1" $flags -Wl,-rpath,"$library"
}

# AWAIT defines the same for the shell of a jail, which cannot load this file, and two more: until files
# cannot be read any more, or can be. sh -c "$AWAIT; : >up; await_file go"
export AWAIT='
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { echo "waited in vain for: $*" >&2; exit 98; }
        sleep 0.02
    done
}
await_file() { await test -e "$1"; }
first_line() { { read -r _line || :; } 2>/dev/null <"$1"; }
are_hidden() { for _file; do ! first_line "$_file" || [ -z "$_line" ] || return 1; done; }
await_hidden() { await are_hidden "$@"; }
are_seen() { for _file; do first_line "$_file" || return 1; done; }
await_seen() { await are_seen "$@"; }'

# ---- Jails with a home -----------------------------------------------------------------------------

# jails_setup: a project in a scratch directory of the user's, which becomes the working directory.
# HOME_OF_USER is the user's home; root has a storage of its own, as its home is no test's.
jails_setup() {
    JAILS=
    scratch_make user
    run_as_user mkdir "$SCRATCH/project"
    cd "$SCRATCH/project" || return
    HOME_OF_USER=$HOME
    if lib_is_root; then
        ROOT_STORE=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
        HOME_OF_USER=$LIB_USER_HOME
    fi
}

jails_teardown() {
    local who pair store jails
    for who in user sudo root; do
        store=${BRIG_CONFIG_DIR:-$HOME_OF_USER/.local/share/brig}
        [ "$who" != root ] || store=$ROOT_STORE
        jails=()
        for pair in $JAILS; do
            [ "${pair%%:*}" = "$who" ] && compgen -G "$store/${pair#*:}.*" >/dev/null || continue
            jails+=("${pair#*:}")
        done
        remove_jails "${jails[@]}" -- by "$who"
    done
    if [ -n "${ROOT_STORE:-}" ]; then
        ! compgen -G "$ROOT_STORE/*" >/dev/null || BRIG_CONFIG_DIR=$ROOT_STORE as root "$BRIG" -u >/dev/null 2>&1 || true
        rm -rf "$ROOT_STORE"
    fi
    cd /
    scratch_remove
}

# jail WHO NAME: to be stopped and removed in the end.
jail() {
    JAILS="$JAILS $1:$2"
}

# by WHO ARGS…: brig as an ordinary user (user), as root for that user (sudo), as root (root). Becomes it.
by() {
    local who=$1
    shift
    case $who in
    user) run_as_user "$BRIG" "$@" ;;
    sudo)
        env SUDO_UID="$LIB_USER_ID" SUDO_GID="$LIB_USER_GROUP" SUDO_USER="$LIB_USER" \
            HOME="$HOME_OF_USER" "$BRIG" "$@"
        ;;
    root) BRIG_CONFIG_DIR=$ROOT_STORE as root "$BRIG" "$@" ;;
    esac
}

# everyone: those who can have a jail in the user's home. With `root` also root for itself.
everyone() {
    if lib_is_root; then
        echo user sudo "$@"
    else
        echo user
    fi
}

# pairs_of "WHO…" MODE…: prints pairs, WHO:MODE, in which each who and each mode occurs, for
# `for pair in $(pairs_of "$(everyone)" casual bare)`. Which ones depends on the number of the test; with BRIG_THOROUGH=1
# every pair there is.
pairs_of() {
    local who=() count i
    read -ra who <<<"$1"
    shift
    if [ -n "${BRIG_THOROUGH:-}" ]; then
        for i in "${who[@]}"; do
            printf '%s ' "${@/#/$i:}"
        done
        return
    fi
    count=$((${#who[@]} > $# ? ${#who[@]} : $#))
    for ((i = 0; i < count; i++)); do
        printf '%s:%s ' "${who[(i + ${BATS_TEST_NUMBER:-0}) % ${#who[@]}]}" "${@:i % $# + 1:1}"
    done
}

# holder_of JAIL: the pid of the holder of the user's jail, 0 if there is none.
holder_of() {
    run_as_user "$BRIG" list --json | grep -o "\"name\":\"$1\"[^]]*" |
        sed 's/.*"holder":\([0-9]*\).*/\1/; t; s/.*/0/'
}

# ---- Where a test failed -------------------------------------------------------------------------

# bats calls it before every command, and keeps the whole stack: a quarter of the CPU time of a suite. The line of the
# test is enough, and for a function of the suite the line of its caller.
bats_debug_trap() { # bats_debug_trap FILE
    [ "$1" = "${BATS_TEST_SOURCE-}" ] || return 0
    local trace=("${BASH_LINENO[0]} ${FUNCNAME[1]} $1")
    [ "${FUNCNAME[1]}" = "${BATS_TEST_NAME-}" ] || trace+=("${BASH_LINENO[1]} ${FUNCNAME[2]} ${BASH_SOURCE[2]}")
    BATS_DEBUG_LAST_STACK_TRACE=("${trace[@]}")
    BATS_DEBUG_LASTLAST_STACK_TRACE=("${trace[@]}")
}
