# SPDX-License-Identifier: MIT
# For suites about limits: running as root, and as a user who was given a part of the cgroups. A suite
# sets GIVEN, the name of that part, to one of its own, and calls take_back in its teardown.
# shellcheck disable=SC2154 # GIVEN is the suite's

# The hierarchies: one of v2, or those of v1 that count.
trees() {
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        echo /sys/fs/cgroup
    else
        local tree
        for tree in memory cpu cpuacct pids freezer unified; do
            [ ! -d "/sys/fs/cgroup/$tree" ] || own_group "$tree"
        done
    fi
}

# Our own group in a hierarchy of v1: nobody says that it is the root.
own_group() {
    local path
    path=$(sed -n "s/^[0-9]*:\(.*,\)\?$1\(,.*\)\?:\(.*\)$/\3/p" /proc/self/cgroup)
    [ "$1" != unified ] || path=$(sed -n 's/^0:://p' /proc/self/cgroup)
    printf '/sys/fs/cgroup/%s%s\n' "$1" "${path%/}"
}

# Gives the user a group in each hierarchy, and one below it to start in, as a system's administrator
# would.
give() {
    local tree group
    for tree in $(trees); do
        [ ! -s "$tree/cgroup.controllers" ] || echo '+memory +cpu +pids +io' >"$tree/cgroup.subtree_control"
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

groups() {
    local tree
    for tree in $(trees); do
        find "$tree" -name 'brig-[0-9]*' -type d 2>/dev/null
    done
}

value() { # value KEY: of the result
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print({**d["usage"], **d}[sys.argv[2]])' result.json "$1"
}
