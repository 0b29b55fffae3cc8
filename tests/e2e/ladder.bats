#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The ladder: what brig does where the kernel lacks something, forced by a filter that makes the
# calls fail. A lower rung is never taken unasked, and the result lists what was not enforced.

load lib

setup() {
    [ -x "$WITHOUT" ] || cannot "no $WITHOUT: build the test tools"
}

teardown() {
    scratch_remove
}

prepare() { # prepare WHO
    WHO=$1
    scratch_make "$WHO"
    WS=$SCRATCH/ws OUT=$SCRATCH/out RESULT=$SCRATCH/result.json
    mkdir -m 0777 "$WS" "$OUT"
    echo secret > "$OUT/file"
    chmod 0666 "$OUT/file"
}

# jail FEATURES ON-UNSUPPORTED CMD...
jail() {
    local features=$1 what=$2
    shift 2
    as "$WHO" "$WITHOUT" "$features" -- "$BRIG" run --mode sealed --seccomp dev --nocwd \
        --on-unsupported "$what" --result "$RESULT" --dir "$WS" --workdir "$WS" -- "$@"
}

listed() {
    grep -q "\"unenforced\": *\[ *\"" "$RESULT" || {
        echo "nothing is listed as not enforced:" >&2
        cat "$RESULT" >&2
        return 1
    }
    [ -z "${1:-}" ] || grep -qi -- "$1" "$RESULT" || {
        echo "not listed: $1" >&2
        cat "$RESULT" >&2
        return 1
    }
}

# The jail is a full one: its own processes, its own files, nothing of the host's.
is_full() { # is_full FEATURES ON-UNSUPPORTED
    must jail "$1" "$2" sh -c "test ! -e '$OUT' && test \"\$(ls /proc | grep -c '^[0-9]')\" -lt 8 &&
        echo x > '$WS/made' && echo x > /tmp/made.$BASHPID && ! echo x > /usr/made" || return
    [ -f "$WS/made" ] && [ ! -e "/tmp/made.$BASHPID" ]
}

# What can be written is what was granted; the rest is as it was.
holds_files() { # holds_files FEATURES ON-UNSUPPORTED
    must jail "$1" "$2" sh -c "echo x > '$WS/made'" || return
    [ -f "$WS/made" ] || return
    must_fail jail "$1" "$2" sh -c "echo x > '$OUT/file'" || return
    must_fail jail "$1" "$2" sh -c "echo x > '$OUT/new'" || return
    must_fail jail "$1" "$2" cat "$OUT/file" || return
    [ "$(cat "$OUT/file")" = secret ] && [ ! -e "$OUT/new" ]
}

refuses() { # refuses FEATURES
    must_exit 125 jail "$1" fail true || return
    output_has 'brig doctor'
}

# ---- What has a full replacement ----

@test "with everything there the jail is full and the list is empty" {
    for who in $(each_user); do
        prepare "$who"
        is_full uselib fail
    done
}

@test "without clone3 the jail is full" {
    for pair in $(pairs_of "$(each_user)" fail warn ignore); do
        prepare "${pair%:*}"
        is_full clone3 "${pair#*:}"
    done
}

@test "with clone3 forbidden as in old containers (EPERM) the jail is full" {
    for who in $(each_user); do
        prepare "$who"
        is_full clone3=EPERM fail
    done
}

@test "without close_range no file descriptor leaks" {
    for who in $(each_user); do
        prepare "$who"
        is_full close_range fail
        run jail close_range fail sh -c 'ls /proc/self/fd' 9< /dev/null
        [ "$status" -eq 0 ]
        output_lacks 9
    done
}

@test "without robust futexes the jail is full" {
    for who in $(each_user); do
        prepare "$who"
        is_full set_robust_list fail
    done
}

# Before 5.3, 4.18 and 6.9: a function has its whole process, and nothing of it is left.
@test "without clone3, restartable sequences or signals to groups, a function is called as ever" {
    for who in $(each_user); do
        prepare "$who"
        must as "$who" "$WITHOUT" clone3,rseq -- "$BUILD_DIR/tests/unit/test_call_whole"
        # As root this is with BRIG_THOROUGH=1 only: unit/test_call_hostile runs as root, with signals to groups.
        [ "$who" = user ] || [ -n "${BRIG_THOROUGH:-}" ] || continue
        must as "$who" "$WITHOUT" groupsignals -- "$BUILD_DIR/tests/unit/test_call_hostile"
    done
}

# The command's process is there long before init, and waits for it.
@test "where init cannot be executed, or the host's tree stays, the command never runs" {
    for pair in $(pairs_of "$(each_user)" execveat=ENOMEM umount2=EPERM set_robust_list,umount2=EPERM \
        set_robust_list,execveat=ENOMEM); do
        prepare "${pair%:*}"
        must_exit 125 jail "${pair#*:}" fail sh -c "echo x > '$WS/ran'"
        [ ! -e "$WS/ran" ]
    done
}

# ---- Landlock ----

@test "without Landlock the jail is full and says what it lacks" {
    for pair in $(pairs_of "$(each_user)" warn ignore); do
        prepare "${pair%:*}"
        is_full landlock "${pair#*:}"
        listed landlock
    done
}

@test "with Landlock switched off at boot (EOPNOTSUPP) it is the same" {
    for who in $(each_user); do
        prepare "$who"
        is_full landlock=EOPNOTSUPP warn
        listed landlock
    done
}

@test "only warn says it on standard error" {
    prepare user
    must jail landlock warn true
    output_has Landlock
    must jail landlock ignore true
    [ -z "$output" ]
}

# ---- User namespaces ----

@test "without user namespaces a run is refused, and the remedy named" {
    prepare user
    refuses userns
    output_has 'ser namespaces'
}

@test "without user namespaces, when asked for, Landlock holds the files" {
    prepare user
    for what in warn ignore; do
        rm -f "$WS/made"
        holds_files userns "$what"
        listed namespace
    done
}

@test "with user namespaces at their limit (ENOSPC) it is the same" {
    prepare user
    must_exit 125 jail unshare=ENOSPC,clone3,clone=ENOSPC fail true
}

@test "under Landlock alone the command cannot gain privileges" {
    prepare user
    must jail userns warn sh -c 'grep -q "^NoNewPrivs:.1" /proc/self/status &&
        grep -q "^CapEff:.0000000000000000" /proc/self/status && grep -q "^Seccomp:.2" /proc/self/status'
}

@test "as root without user namespaces the command is not root" {
    lib_is_root || cannot "not root"
    prepare root
    refuses userns
    must jail userns warn sh -c 'test "$(id -u)" -ne 0'
    holds_files userns warn
    listed namespace
}

# ---- The mount API ----

@test "without the new mount API a run is refused, and what is missing named" {
    prepare user
    must_exit 125 jail mountapi fail true
    output_has 'brig doctor'
}

@test "without the new mount API, when asked for, Landlock holds the files" {
    prepare user
    holds_files mountapi warn
    listed
}

# ---- The lowest rung ----

@test "without user namespaces and Landlock a run is refused" {
    prepare user
    refuses userns,landlock
}

@test "without user namespaces and Landlock, when asked for, the limits hold" {
    prepare user
    for what in warn ignore; do
        must jail userns,landlock "$what" sh -c 'test "$(ulimit -c)" = 0 && exit 0'
        listed namespace
        listed landlock
    done
    must_exit 124 as user "$WITHOUT" userns,landlock -- "$BRIG" run --mode sealed --nocwd \
        --on-unsupported warn --timeout 200ms --grace 0 --dir "$WS" -- sleep 30
}

@test "without seccomp a run is refused, and not when asked for" {
    prepare user
    must_exit 125 jail seccomp fail true
    must jail seccomp warn true
    listed seccomp
}
