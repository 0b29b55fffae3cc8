# SPDX-License-Identifier: MIT
# For suites about limits: running as root, and as a user who was given a part of the cgroups. A suite
# calls take_back in its teardown.

# The name of the cgroup that the user is given: other suites may run at the same time.
export GIVEN=$LIB_USER-given-$$

# Where groups are made: in v2 the group that tests/run gives a suite, or the root; in v1 our own group
# in each hierarchy that counts.
trees() {
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        echo "${BRIG_TEST_CGROUP:-/sys/fs/cgroup}"
        return
    fi
    # Our own group in a hierarchy of v1: nobody says that it is the root.
    local controllers path tree
    while IFS=: read -r _ controllers path; do
        for tree in ${controllers//,/ }; do
            case $tree in memory | cpu | cpuacct | pids | freezer) tree_of "$tree" "$path" ;; esac
        done
        [ -n "$controllers" ] || tree_of unified "$path"
    done </proc/self/cgroup
}

tree_of() { # tree_of HIERARCHY PATH
    [ ! -d "/sys/fs/cgroup/$1" ] || printf '/sys/fs/cgroup/%s%s\n' "$1" "${2%/}"
}

# Gives the user a group in each hierarchy, and one below it to start in, as a system's administrator
# would.
give() {
    local tree group
    for tree in $(trees); do
        [ ! -s "$tree/cgroup.controllers" ] || echo '+memory +cpu +pids' >"$tree/cgroup.subtree_control"
        for group in "$tree/$GIVEN" "$tree/$GIVEN/in"; do
            mkdir -p "$group"
            chown "$LIB_USER" "$group" "$group/cgroup.procs"
            [ ! -f "$group/tasks" ] || chown "$LIB_USER" "$group/tasks"
            [ ! -f "$group/cgroup.subtree_control" ] ||
                chown "$LIB_USER" "$group/cgroup.subtree_control" "$group/cgroup.threads"
        done
    done
}

take_back() {
    local tree group
    lib_is_root || return 0
    for tree in $(trees); do
        [ -d "$tree/$GIVEN" ] || continue
        for group in $(find "$tree/$GIVEN" -mindepth 1 -depth -type d) "$tree/$GIVEN"; do
            rmdir "$group" 2>/dev/null || true
        done
    done
}

# As the user, inside the given groups.
as_given() {
    (
        for tree in $(trees); do
            echo 0 >"$tree/$GIVEN/in/cgroup.procs" || exit
        done
        run_as_user "$@"
    )
}

# limited WHO CMD...: as root, as the user with a part of the cgroups, or as who we are, with whatever
# part somebody else gave us.
limited() {
    local who=$1
    shift
    case $who in
    root) as root "$@" ;;
    given) as_given "$@" ;;
    self) "$@" ;;
    esac
}

# for_each_limited FUNCTION: with `who` set to each of those there are.
for_each_limited() {
    local who
    if lib_is_root; then
        give
        for who in root given; do
            "$1" # not in a condition, where the shell would not stop at what fails
        done
        return
    fi
    if ! "$BRIG" -m sealed -D --memory 64M -- true 2>/dev/null; then
        cannot "this user has no part of the cgroups"
    fi
    who=self
    "$1"
}

# groups: the cgroups of all jails, also of those that other tests have started.
groups() {
    # Several words on purpose.
    # shellcheck disable=SC2046
    find $(trees) -name 'brig-[0-9]*' -type d 2>/dev/null
}

# value KEY: of the result, or of what it says was used. A text has no quotes, and what is not known is None.
value() {
    local result
    result=$(<result.json)
    [[ $result =~ \"$1\":(\"([^\"]*)\"|\[[^]]*\]|[^][{},\"]+) ]] || {
        echo "the result has no $1: $result" >&2
        return 1
    }
    result=${BASH_REMATCH[1]}
    case $result in
    null) result=None ;;
    \"*) result=${BASH_REMATCH[2]} ;;
    esac
    printf '%s\n' "$result"
}

# ---- Jails in the background -----------------------------------------------------------------------

# start WHO CMD...: in the background, with its output in `out`; STARTED is brig's pid.
start() {
    rm -f out
    limited "$@" </dev/null >out 2>&1 3>&- &
    SHELL_PID=$!
    STARTED=
    if ! await lib_started || [ -z "$STARTED" ]; then
        echo "brig did not start" >&2
        cat out >&2
        return 1
    fi
}

# Whether brig runs below SHELL_PID, or that has ended without.
lib_started() {
    STARTED=$(find_brig "$SHELL_PID") || has_ended "$SHELL_PID"
}

# started_ends: waits for the end of what `start` started; its status is in `status`.
started_ends() {
    await has_ended "$STARTED" || {
        echo "still there: $(cat "/proc/$STARTED/wchan")" >&2
        cat out >&2
        return 1
    }
    status=0
    # shellcheck disable=SC2034 # for the test
    wait "$SHELL_PID" || status=$?
    STARTED=
}

# For teardown. If STARTED is still set, the test has failed: shows what brig said and what it waits for.
started_kill() {
    [ -n "${STARTED:-}" ] || return 0
    {
        echo "brig $STARTED: $(cat "/proc/$STARTED/stat" "/proc/$STARTED/wchan" 2>&1)"
        cat out
    } >&2 || true
    kill -KILL "$STARTED" 2>/dev/null || true
    STARTED=
}

# groups_of PID: the cgroups of this brig's jail, and not the scope that systemd may have made for them.
groups_of() {
    # shellcheck disable=SC2046
    find $(trees) -path "*/brig-$1-*" -name 'brig-[0-9]*' ! -name '*.scope' -type d 2>/dev/null || true
}

has_group() {
    [ -n "$(groups_of "$1")" ]
}

# cpu_file PID NAME-IN-V1 NAME-IN-V2: of the group that limits the CPU time of this brig's jail.
cpu_file() {
    local group
    for group in $(groups_of "$1"); do
        if [ -f "$group/$2" ]; then
            cat "$group/$2"
            return
        elif [ -f "$group/$3" ]; then
            cat "$group/$3"
            return
        fi
    done
    return 1
}

# has_quota PID MICROSECONDS: that much CPU time in each period of 100 ms.
has_quota() {
    case $(cpu_file "$1" cpu.cfs_quota_us cpu.max) in
    "$2" | "$2 100000") ;;
    *) return 1 ;;
    esac
}

# was_throttled PID: the kernel has made the jail wait for the next period.
was_throttled() {
    cpu_file "$1" cpu.stat cpu.stat | grep -q '^nr_throttled [1-9]'
}
