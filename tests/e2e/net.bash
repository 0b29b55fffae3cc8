# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the suites of the network door share: a world of servers that is a network namespace of its own
# (net_world.py), and jails in it. A suite loads it with `load net`.

load lib

setup_file() {
    lib_is_root || return 0
    WORLD=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brig-net-world.XXXXXXXX")
    export WORLD
    chmod 0755 "$WORLD"
    mkfifo "$WORLD/hold"
    # It ends with the pipe, which this shell and nobody else holds open.
    unshare --net --mount python3 "$BATS_TEST_DIRNAME/net_world.py" "$WORLD" \
        < "$WORLD/hold" > "$WORLD/log" 2>&1 3>&- &
    exec {WORLD_HOLD}> "$WORLD/hold"
    export WORLD_HOLD
    await test -s "$WORLD/ready" || {
        cat "$WORLD/log" >&2
        return 1
    }
}

teardown_file() {
    lib_is_root || return 0
    exec {WORLD_HOLD}>&-
    rm -rf "$WORLD"
}

setup() {
    lib_is_root || cannot "only root can make the world around these jails"
    [ -x "$BUILD_DIR/src/net/brig-broker" ] || cannot "brig-broker was not built"
    scratch_make user
}

teardown() {
    local storage
    # A test that starts a server leaves its pid in SERVER.
    if [ -n "${SERVER:-}" ]; then
        kill "$SERVER" || true
        wait "$SERVER" || true
    fi
    # And one whose jail ends with a file leaves its pid in ENDS.
    if [ -n "${ENDS:-}" ]; then
        touch "$SCRATCH/enough"
        wait "$ENDS" || true
    fi
    # The jails that have a home have a holder as well, which would stay.
    for storage in root user why; do
        [ ! -d "$SCRATCH/$storage" ] ||
            world "${storage/why/user}" "$BRIG" -u --storage "$SCRATCH/$storage" > /dev/null 2>&1 || true
    done
    scratch_remove
    [ -z "${GIVEN:-}" ] || take_back
}

# world WHO CMD...: in the world. The working directory is /, to which entering a mount namespace sets it.
world() {
    local who=$1 BEFORE_USER
    shift
    BEFORE_USER=(nsenter --target "$(<"$WORLD/ready")" --net --mount --)
    case $who in
    root) as root "${BEFORE_USER[@]}" "$@" 3>&- ;;
    user) run_as_user "$@" 3>&- ;;
    *) return 2 ;;
    esac
}

# jail WHO OPTIONS... -- CMD...: what the jail needs of the world is granted.
jail() {
    local who=$1
    shift
    world "$who" timeout $((300 * ${BRIG_SLOW:-1})) "$BRIG" run --mode sealed --nocwd --rdir "$WORLD" "$@"
}

# for_each_user FUNCTION: with root and the user.
for_each_user() {
    local user
    for user in $(each_user); do
        echo "# as $user" >&2
        "$1" "$user"
    done
}

# has_variants WHO: whether a test also does the mere variants of what it has done, all of which are decided by the same
# broker: as the user, and with BRIG_THOROUGH=1 as root.
has_variants() {
    [ "$1" != root ] || [ -n "${BRIG_THOROUGH:-}" ]
}
