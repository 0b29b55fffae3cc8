# SPDX-License-Identifier: MIT
# What the end-to-end suites share: the binaries under test, the ordinary user, scratch directories.
# shellcheck disable=SC2154 # status and output are set by `run`
#
# A suite loads it with `load lib` (or `load ../e2e/lib`). In tests/e2e the user is made and removed
# by setup_suite.bash; a suite in another folder calls lib_user_create in its setup_file and
# lib_user_remove in its teardown_file. Several suites may run at once: the user goes with the last.

LIB_DIR=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
LIB_ROOT=$(cd "$LIB_DIR/../.." && pwd)
# Suites that run at once from several checkouts each name a user of their own.
# Without root it is who we are.
LIB_USER=${BRIG_TEST_USER:-brigtest}
[ "$EUID" -eq 0 ] || LIB_USER=$(id -un)
LIB_USER_COMMENT='brig test user'
LIB_LOCK=/tmp/.$LIB_USER.lock

# lib_first_executable PATH...: the first that is there, else the first.
lib_first_executable() {
    local path
    for path; do
        if [ -x "$path" ]; then
            printf '%s\n' "$path"
            return
        fi
    done
    printf '%s\n' "$1"
}

: "${BUILD_DIR:=$LIB_ROOT/build}"
: "${BRIG:=$(lib_first_executable "$BUILD_DIR/src/cli/brig" "$BUILD_DIR/brig")}"
# Where the test tools of tests/probe are built.
: "${BRIG_PROBES:=$(dirname "$(lib_first_executable "$BUILD_DIR/tests/probe/without" \
    "$BUILD_DIR/tests/without" "$BUILD_DIR/without")")}"
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

# The user exists only where the tests run as root; otherwise the caller is the ordinary user. The
# shared lock is held by a process of its own for as long as the shell that calls this lives, so a
# suite that ends earlier leaves the user to the others. In the shell itself everything the suite
# starts would inherit it, and whatever is left running would block the next suite.
lib_user_create() {
    lib_is_root || return 0
    local holder shell=$BASHPID try
    exec {holder}>>"$LIB_LOCK"
    # Who comes first makes the user, alone; who comes while others run finds it made.
    for ((try = 0; ; try++)); do
        if flock -n -x "$holder"; then
            if ! id "$LIB_USER" >/dev/null 2>&1; then
                useradd --create-home --shell /bin/bash --comment "$LIB_USER_COMMENT" "$LIB_USER" || return
            fi
            lib_find_user
            chmod 0755 "$(lib_user_home)"
            flock -s "$holder"
            break
        fi
        ! flock -n -s "$holder" || ! lib_find_user || break
        flock -u "$holder"
        [ "$try" -lt 600 ] || {
            echo "another suite has held $LIB_LOCK for a minute" >&2
            return 1
        }
        sleep 0.1
    done
    # Ends with the shell: tail looks every second. Only the lock stays open in it.
    (
        exec <&"$holder" >/dev/null 2>&1 3>&- {holder}>&-
        exec tail -f --pid="$shell" /dev/null
    ) &
    LIB_LOCK_HOLDER=$!
    exec {holder}>&-
}

lib_user_remove() {
    lib_is_root || return 0
    if [ -n "${LIB_LOCK_HOLDER:-}" ]; then
        kill "$LIB_LOCK_HOLDER" 2>/dev/null || true
        wait "$LIB_LOCK_HOLDER" 2>/dev/null || true
        LIB_LOCK_HOLDER=
    fi
    (
        exec 9>>"$LIB_LOCK"
        flock -n -x 9 || exit 0
        # Only a user made here, whatever the name says.
        case $(getent passwd "$LIB_USER" | cut -d: -f5) in
        "$LIB_USER_COMMENT"*) userdel --remove "$LIB_USER" >/dev/null 2>&1 || true ;;
        esac
    )
}

# lib_find_user: sets what is asked of the user again and again, for all that is started from here. Fails
# if there is no such user yet.
lib_find_user() {
    local entry
    entry=$(getent passwd "$LIB_USER") || return
    IFS=: read -r _ _ LIB_USER_ID LIB_USER_GROUP _ LIB_USER_HOME _ <<<"$entry"
    export LIB_USER_ID LIB_USER_GROUP LIB_USER_HOME
}
[ -n "${LIB_USER_HOME:-}" ] || lib_find_user || true

lib_user_home() {
    echo "$LIB_USER_HOME"
}

# run_as_user CMD...: as the ordinary user, with that user's groups and home. PATH and the variables
# named BRIG* stay.
run_as_user() {
    if lib_is_root; then
        setpriv --reuid="$LIB_USER" --regid="$LIB_USER" --init-groups --inh-caps=-all \
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

# scratch_make WHO: sets SCRATCH to a fresh directory that WHO owns and every uid can use, also the
# unprivileged one a jail of root runs as. It is not below /tmp, which is private in a jail; for root
# BRIG_SCRATCH says where else.
scratch_make() {
    local base
    if [ "$1" = user ] && lib_is_root; then
        base=$LIB_USER_HOME
    elif lib_is_root; then
        base=${BRIG_SCRATCH:-/var/lib}
    else
        base=$HOME
    fi
    SCRATCH=$(as "$1" mktemp -d "$base/brigtest.XXXXXXXX") || return
    chmod 0777 "$SCRATCH"
    LIB_SCRATCHES="${LIB_SCRATCHES:-}${LIB_SCRATCHES:+ }$SCRATCH"
}

# Ends and removes the jails of the projects below a scratch directory.
scratch_remove_jails() {
    local who home file jail
    for who in $(each_user); do
        home=$HOME
        [ "$who" = root ] || home=$LIB_USER_HOME
        for file in "${BRIG_CONFIG_DIR:-$home/.local/share/brig}"/*.project; do
            [ -e "$file" ] || continue
            case $(<"$file") in
            "$1"/*)
                jail=${file##*/}
                as "$who" "$BRIG" stop "${jail%.project}" >/dev/null 2>&1 || true
                as "$who" "$BRIG" rm -f "${jail%.project}" >/dev/null 2>&1 || true
                ;;
            esac
        done
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
    local end=$((SECONDS + 60 * ${BRIG_SLOW:-1}))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "waited in vain for: $*" >&2
            return 1
        }
        sleep 0.02
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

# find_brig PID: the process itself, or one below it, that is the brig under test.
find_brig() {
    local child
    if [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$BRIG")" ]; then
        echo "$1"
        return
    fi
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        find_brig "$child" && return
    done
    return 1
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
are_hidden() { ! cat "$@" 2>/dev/null | grep -q .; }
await_hidden() { await are_hidden "$@"; }
are_seen() { cat "$@" >/dev/null 2>&1; }
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
    local pair store
    for pair in $JAILS; do
        store=${BRIG_CONFIG_DIR:-$HOME_OF_USER/.local/share/brig}
        [ "${pair%%:*}" != root ] || store=$ROOT_STORE
        compgen -G "$store/${pair#*:}.*" >/dev/null || continue
        by "${pair%%:*}" stop "${pair#*:}" >/dev/null 2>&1 || true
        by "${pair%%:*}" rm -f "${pair#*:}" >/dev/null 2>&1 || true
    done
    if [ -n "${ROOT_STORE:-}" ]; then
        BRIG_CONFIG_DIR=$ROOT_STORE as root "$BRIG" -u >/dev/null 2>&1 || true
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
