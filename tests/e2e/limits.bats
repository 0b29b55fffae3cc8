#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Limits that hold for the whole jail: reached and not reached, as root and as a user who was given a
# part of the cgroups, and what is done where there are none. Tests with the tag `quick` are run in a
# virtual machine each time (tests/suites.py), those with the tag `root` by root only.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load lib
load limited

setup() {
    needs python3
    scratch_make root
    cd "$SCRATCH" || return
}

teardown() {
    started_kill
    cd /
    take_back
    scratch_remove
}

# Whether we may make groups without asking systemd.
may_divide() {
    [ "$who" != self ] || [ ! -f /sys/fs/cgroup/cgroup.controllers ] ||
        [ -w "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)" ]
}

eat='import sys; block = bytearray(int(sys.argv[1]) << 20); print("ate", len(block) >> 20)'

# ---- Memory ----

# bats test_tags=quick
@test "memory: a program that takes more is killed, one that takes less is not" {
    check() {
        must_exit 137 limited "$who" "$BRIG" -m sealed --memory 64M --result result.json -- python3 -c "$eat" 128
        # Also where stderr is a pipe, as here.
        output_has 'brig: killed: out of memory (limit 64 MiB); raise it with --memory'
        [ "$(value outcome)" = oom ]
        [ "$(value oom_kills)" -ge 1 ]
        [ "$(value peak_memory_bytes)" -le $((64 << 20)) ]
        must limited "$who" "$BRIG" -m sealed --memory 64M --result result.json -- python3 -c "$eat" 32
        output_has 'ate 32'
        output_lacks 'out of memory'
        [ "$(value oom_kills)" -eq 0 ]
        [ "$(value peak_memory_bytes)" -ge $((32 << 20)) ]
    }
    for_each_limited check
}

# bats test_tags=quick
@test "memory: an agent goes on when one of its tools is killed, and a sealed jail ends" {
    agent='python3 -c "$0" 128; echo "tool ended with $?"; echo "the agent goes on"'
    check() {
        must limited "$who" "$BRIG" -m strict -j "limits-$who" --net none --nocwd --memory 64M \
            --result result.json -- sh -c "$agent" "$eat"
        output_has 'tool ended with 137'
        output_has 'the agent goes on'
        output_has 'brig: 1 process was killed: out of memory (limit 64 MiB for all of them); raise it with --memory'
        [ "$(value outcome)" = exited ]
        [ "$(value oom_kills)" -eq 1 ]
        # If the command itself is killed, that is the outcome.
        must_exit 137 limited "$who" "$BRIG" -m strict -j "limits-$who" --net none --nocwd --memory 64M \
            --result result.json -- python3 -c "$eat" 128
        [ "$(value outcome)" = oom ]
        run limited "$who" "$BRIG" rm -f "limits-$who"
        [ -f /sys/fs/cgroup/cgroup.controllers ] || return 0 # v1 has no way to end them all
        must_exit 137 limited "$who" "$BRIG" -m sealed --nocwd --memory 64M --result result.json -- \
            sh -c "$agent" "$eat"
        output_lacks 'the agent goes on'
        [ "$(value outcome)" = oom ]
    }
    for_each_limited check
}

@test "memory: the default holds without being asked for" {
    check() {
        must_fail limited "$who" "$BRIG" -m sealed --result result.json -- python3 -c "$eat" 530
        if may_divide; then
            [ "$(value outcome)" = oom ]
        else # a default is not worth asking systemd for, and holds for each process
            grep -q 'limit memory' result.json
        fi
        must limited "$who" "$BRIG" -m sealed --memory none -- python3 -c "$eat" 530
    }
    for_each_limited check
}

@test "memory: a private directory and a memory file count" {
    check() {
        must_exit 137 limited "$who" "$BRIG" -m sealed --memory 64M --disk 1G --result result.json -- \
            python3 -c 'f = open("/tmp/f", "wb"); [f.write(bytes(1 << 20)) for i in range(128)]'
        [ "$(value outcome)" = oom ]
        must limited "$who" "$BRIG" -m sealed --memory 64M --disk 1G -- \
            python3 -c 'f = open("/tmp/f", "wb"); [f.write(bytes(1 << 20)) for i in range(32)]'
        must_exit 137 limited "$who" "$BRIG" -m sealed --memory 64M --seccomp dev -- \
            python3 -c 'import os; f = os.memfd_create("f"); [os.write(f, bytes(1 << 20)) for i in range(128)]'
        must limited "$who" "$BRIG" -m sealed --memory 64M --seccomp dev -- \
            python3 -c 'import os; f = os.memfd_create("f"); [os.write(f, bytes(1 << 20)) for i in range(32)]'
    }
    for_each_limited check
}

@test "memory: page cache counts, and is given back" {
    check() {
        # In parts that fit: Linux 6.12.95 kills a group of v2 that has nothing but what is yet to
        # be written, and 6.12.107 waits for the disk.
        must limited "$who" "$BRIG" -m sealed --memory 48M --result result.json -- \
            sh -c 'for part in 0 1 2 3 4; do
                dd if=/dev/zero of=big bs=1M count=30 seek=$((30 * part)) conv=notrunc,fsync 2>/dev/null || exit
            done
            cat big >/dev/null && rm big'
        [ "$(value outcome)" = exited ]
        [ "$(value peak_memory_bytes)" -le $((48 << 20)) ]
    }
    for_each_limited check
}

@test "memory: one jail under pressure does not disturb another" {
    check() {
        rm -f stop pressed
        limited "$who" "$BRIG" -m sealed --memory 32M --timeout 60s -- sh -c \
            'while [ ! -e stop ]; do python3 -c "bytearray(64 << 20)"; : >pressed; done' 3>&- >/dev/null 2>&1 &
        local greedy=$!
        await_file pressed
        must limited "$who" "$BRIG" -m sealed --memory 64M --result result.json -- python3 -c "$eat" 32
        [ "$(value oom_kills)" -eq 0 ]
        touch stop
        wait "$greedy" || true
    }
    for_each_limited check
}

# ---- Processes ----

# bats test_tags=quick
@test "pids: a fork bomb is stopped, counted and reported" {
    check() {
        must limited "$who" "$BRIG" -m sealed --pids 20 --result result.json -- python3 -c '
import os, time
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    print("refused after", made)'
        output_has 'refused after 19'
        output_has 'brig: a new process or thread was refused'
        output_has '(limit 20); raise it with --pids'
        [ "$(value pids_refused)" -ge 1 ]
        [ "$(value outcome)" = exited ]
        must limited "$who" "$BRIG" -m sealed --pids 20 --result result.json -- \
            sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; exit 0'
        output_lacks 'was refused'
        [ "$(value pids_refused)" -eq 0 ]
        case $(value peak_pids) in None | 10) ;; *) false ;; esac
    }
    for_each_limited check
}

# ---- CPU ----

# is_limited PERCENT: the kernel has the limit of a jail that runs, and stops the jail when it is used up.
is_limited() {
    rm -f ready stop data
    start "$who" "$BRIG" -m sealed --cpu "$1%" --timeout 60s --grace 0 --result result.json -- \
        sh -c ': >ready; until [ -e stop ]; do :; done'
    await_file ready
    await has_quota "$STARTED" $(($1 * 1000)) # it is set once the command runs
    await was_throttled "$STARTED"
    touch stop
    started_ends
    [ "$status" -eq 0 ]
    [ "$(value cpu_throttled_us)" -gt 0 ]
}

# A jail is built with more than one percent, so that its start does not take half a second.
# bats test_tags=quick
@test "cpu: a limit holds once the jail is built, and without one there is none" {
    check() {
        is_limited 1
        is_limited 2 # of a CPU: with 5 a very busy machine gives the jail less than its limit
        must limited "$who" "$BRIG" -m sealed --cpu none --memory 64M --result result.json -- \
            sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
        case $(value cpu_throttled_us) in None | 0) ;; *) false ;; esac
    }
    for_each_limited check
}

@test "cpu time: children that nobody waits for count" {
    check() {
        must_exit 124 limited "$who" "$BRIG" -m sealed --cpu none --cpu-time 300ms --timeout 30s --grace 0 \
            --result result.json -- python3 -c '
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        for i in range(300000): pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass'
        [ "$(value outcome)" = cpu-timeout ]
    }
    for_each_limited check
}

# ---- Disks ----

# Whether files here are on a disk, which can be limited, and not on a file system above others.
is_on_disk() {
    [ -b "$(df --output=source . | tail -n 1)" ]
}

# io_limits PID: what the kernel has been told to hold the jail of this brig to.
io_limits() {
    local group
    for group in $(groups_of "$1"); do
        [ ! -f "$group/io.max" ] || cat "$group/io.max"
    done
}

# is_bounded OPTION KEY: the kernel has the limit, of 2 MiB a second, and the jail reads and writes.
is_bounded() {
    rm -f ready stop data
    start "$who" "$BRIG" -m sealed "$1" 2M -- sh -c "$AWAIT"'
        dd if=/dev/zero of=data bs=256k count=2 oflag=direct && dd if=data of=/dev/null bs=256k iflag=direct || exit
        : >ready; await_file stop'
    await_file ready
    io_limits "$STARTED"
    io_limits "$STARTED" | grep -qw "$2=2097152"
    touch stop
    started_ends
    [ "$status" -eq 0 ]
}

# bats test_tags=quick
@test "io: the kernel limits reading and writing, or it is refused" {
    check() {
        run limited "$who" "$BRIG" -m sealed --io-write 2M -- true
        if [ "$status" -ne 125 ]; then
            if is_on_disk; then
                is_bounded --io-write wbps
                is_bounded --io-read rbps
            fi
            return
        fi
        output_has 'io limit cannot be enforced'
        # As v1 has nothing for it, and not everybody is given what v2 has.
        [ "$who" = self ] || [ -z "$(grep -sw io /sys/fs/cgroup/cgroup.controllers)" ]
        must limited "$who" "$BRIG" -m sealed --io-read 2M --on-unsupported warn --result result.json -- true
        output_has 'limit io'
        grep -q 'limit io' result.json
    }
    for_each_limited check
}

# ---- Disk space, files, watches ----

@test "disk: private directories are full by bytes and by files" {
    check() {
        must_fail limited "$who" "$BRIG" -m sealed --disk 4M -- dd if=/dev/zero of=/tmp/f bs=1M count=8
        output_has 'No space left'
        must limited "$who" "$BRIG" -m sealed --disk 16M -- dd if=/dev/zero of=/tmp/f bs=1M count=8
        must_fail limited "$who" "$BRIG" -m sealed --disk-inodes 100 -- \
            python3 -c '[open(f"/tmp/{i}", "w") for i in range(200)]'
        output_has 'No space left'
        must limited "$who" "$BRIG" -m sealed --disk-inodes 300 --open-files 400 -- \
            python3 -c '[open(f"/tmp/{i}", "w") for i in range(200)]'
    }
    for_each_limited check
}

@test "inotify watches are limited for the jail" {
    watch='
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init()
for i in range(20):
    os.mkdir(f"/tmp/{i}")
    if libc.inotify_add_watch(fd, f"/tmp/{i}".encode(), 0x100) < 0:
        raise SystemExit(os.strerror(ctypes.get_errno()))
print("all watched")'
    for who in $(each_user); do
        must_fail as "$who" "$BRIG" -m sealed --seccomp dev --inotify-watches 10 -- python3 -c "$watch"
        output_has 'No space left'
        must as "$who" "$BRIG" -m sealed --seccomp dev --inotify-watches 30 -- python3 -c "$watch"
        output_has 'all watched'
    done
}

@test "output is cut at the limit, and nobody blocks" {
    for who in $(each_user); do
        must as "$who" "$BRIG" -m sealed --output 1000 --result result.json -- sh -c 'yes | head -c 300000; echo end >&2'
        [ "$(grep -cx y <<<"$output")" -eq 500 ]
        output_has 'brig: output was cut at 1000 bytes; raise it with --output'
        output_has end
        grep -q '"stdout_bytes":300000,"stderr_bytes":4' result.json
        grep -q '"truncated":{"stdout":true,"stderr":false}' result.json
        must as "$who" "$BRIG" -m sealed --output 1M --result result.json -- sh -c 'head -c 300000 /dev/zero | tr "\\0" x'
        [ ${#output} -eq 300000 ]
        grep -q '"truncated":{"stdout":false,"stderr":false}' result.json
    done
    must_exit 141 bash -c '"$0" -m sealed --output 100M -- yes | head -n 1; exit "${PIPESTATUS[0]}"' "$BRIG"
}

# ---- Tools ----

# bats test_tags=quick
@test "a tool's limits are its own: it dies and the agent lives" {
    check() {
        cp "$BRIG" "$SCRATCH/brig"
        chmod 0755 "$SCRATCH/brig"
        must limited "$who" "$BRIG" -m sealed --seccomp dev --memory 200M --result result.json -- sh -c '
            ./brig -m sealed --memory 50M --result tool.json -- python3 -c "bytearray(100 << 20)"
            echo "tool $?"
            ./brig -m sealed --memory 90M -- python3 -c "bytearray(50 << 20)" && echo "fits"
            ./brig -m sealed --pids 3 --memory 90M -- sh -c "sleep 60 & sleep 60 & sleep 60 & exit 0" || echo "few"
            ./brig -m sealed --pids 4 --memory 90M -- sh -c "sleep 60 & sleep 60 & sleep 60 & exit 0" && echo "enough"
            echo "agent lives"'
        output_has 'tool 137'
        output_has 'inside a jail'
        output_has fits
        output_has few
        output_has enough
        output_has 'agent lives'
        [ "$(value outcome)" = exited ]
        grep -q '"outcome":"oom"' tool.json
        rm -f tool.json
    }
    for_each_limited check
}

@test "a tool cannot have more than its jail" {
    check() {
        cp "$BRIG" "$SCRATCH/brig"
        chmod 0755 "$SCRATCH/brig"
        must_exit 137 limited "$who" "$BRIG" -m sealed --seccomp dev --memory 64M --result result.json -- \
            ./brig -m sealed --memory 1G -- python3 -c "$eat" 128
    }
    for_each_limited check
}

# bats test_tags=quick
@test "the jail cannot reach the groups it is in" {
    check() {
        must limited "$who" "$BRIG" -m sealed --memory 64M --seccomp dev --view host -- sh -c '
            grep -v ":/$" /proc/self/cgroup | grep -c brig-
            for f in $(find /sys/fs/cgroup -name "memory.limit_in_bytes" -o -name memory.max 2>/dev/null | grep brig-); do
                echo max >"$f" && echo "changed $f"
            done
            for f in $(find /sys/fs/cgroup -name tasks -o -name cgroup.procs 2>/dev/null | head -50); do
                (echo $$ >"$f") 2>/dev/null && echo "left by $f"
            done
            exit 0'
        output_lacks changed
        output_lacks 'left by'
    }
    for_each_limited check
}

# ---- Values ----

@test "values that make no sense are refused by name" {
    for word in 0 -1 x 99999999999999999999 1.5.2 '' 12Q; do
        for option in memory cpu pids disk disk-inodes io-read io-write output inotify-watches timeout; do
            must_exit 125 "$BRIG" -m sealed "--$option=$word" true
            output_has "--$option"
        done
    done
    must "$BRIG" -m sealed --memory none --cpu none --timeout none --dry-run true
}

@test "variables change the defaults in every mode, options win, bad values are named" {
    local mode
    for mode in casual bare strict; do
        must env EXECUTOR_MEMORY_LIMIT_MB=300 EXECUTOR_CPU_LIMIT_PERCENT=50 SANDBOX_KILL_GRACE_MS=70 \
            "$BRIG" -m "$mode" -D --dry-run --json true
        output_has '"memory_bytes":314572800'
        output_has '"cpu_percent":50'
        output_has '"grace_ms":70'
        must "$BRIG" -m "$mode" -D --dry-run --json true
        output_lacks '"memory_bytes":314572800'
        output_lacks '"cpu_percent":50'
        must_exit 125 env EXECUTOR_MEMORY_LIMIT_MB=x "$BRIG" -m "$mode" -D true
        output_has EXECUTOR_MEMORY_LIMIT_MB
    done
    must env EXECUTOR_MEMORY_LIMIT_MB=300 EXECUTOR_CPU_LIMIT_PERCENT=50 SANDBOX_KILL_GRACE_MS=70 \
        "$BRIG" -m sealed --dry-run --json true
    output_has '"memory_bytes":314572800'
    output_has '"cpu_percent":50'
    output_has '"grace_ms":70'
    must env EXECUTOR_MEMORY_LIMIT_MB=300 "$BRIG" -m sealed --memory 64M --dry-run --json true
    output_has '"memory_bytes":67108864'
    must "$BRIG" -m sealed --dry-run --json true
    output_has '"memory_bytes":536870912'
    output_has '"cpu_percent":100'
    output_has '"grace_ms":5000'
    for pair in EXECUTOR_MEMORY_LIMIT_MB=0 EXECUTOR_CPU_LIMIT_PERCENT=x SANDBOX_KILL_GRACE_MS=-1; do
        must_exit 125 env "$pair" "$BRIG" -m sealed true
        output_has "${pair%%=*}"
    done
}

# ---- Without ----

# bats test_tags=quick,root
@test "where there is no cgroup, what was asked for is refused, or listed" {
    lib_is_root || cannot "it takes a user without a part of the cgroups"
    must_exit 125 run_as_user "$BRIG" -m sealed --memory 64M -- true
    output_has 'memory limit cannot be enforced'
    must run_as_user "$BRIG" -m sealed --memory 64M --on-unsupported warn --result result.json -- true
    output_has 'limit memory'
    must_fail run_as_user "$BRIG" -m sealed --memory 64M --on-unsupported ignore -- python3 -c "$eat" 128
    must run_as_user "$BRIG" -m sealed --memory 256M --on-unsupported ignore -- python3 -c "$eat" 128
    must run_as_user "$BRIG" -m sealed --result result.json -- true
    must grep -q 'limit memory' result.json
    must run_as_user "$BRIG" -m sealed --pids 5 -- true
}

# ---- Nothing stays ----

@test "many jails, two at a time, leave no group behind" {
    local count=10
    [ -z "${BRIG_THOROUGH:-}" ] || count=100
    check() {
        local pid pids left
        # Each says its pid: jails of other suites have groups meanwhile.
        must limited "$who" sh -c '
            brig=$0 i=0
            one() { sh -c "echo \$\$; exec \"\$@\"" - "$brig" -m sealed -D --memory 64M "$@" -- true; }
            while [ $i -lt "$1" ]; do
                one --pids 30 & one || exit
                wait
                i=$((i + 1))
            done' "$BRIG" "$count"
        pids=$output
        [ "$(wc -w <<< "$pids")" -eq $((count * 2)) ]
        left=$(groups)
        for pid in $pids; do
            [[ $left != *"/brig-$pid-"* ]] || [ -z "$(groups_of "$pid")" ]
        done
    }
    for_each_limited check
}

@test "the group of a brig that was killed is removed by another" {
    removed_by_next() {
        must limited "$who" "$BRIG" -m sealed -D --memory 64M -- true
        ! has_group "$KILLED"
    }
    check() {
        start "$who" "$BRIG" -m sealed -D --memory 64M -- sleep 600
        await has_group "$STARTED"
        KILLED=$STARTED
        kill -KILL "$KILLED"
        started_ends
        await removed_by_next
    }
    for_each_limited check
}

# bats test_tags=root
@test "what sleeps uninterruptibly is named, and does not hold brig up" {
    lib_is_root || cannot "it takes a filesystem that can be frozen"
    needs mkfs.ext4 fsfreeze
    truncate -s 16M image
    mkfs.ext4 -q image
    mkdir frozen
    mount -o loop image frozen || cannot "there are no loop devices"
    chmod 0777 frozen
    fsfreeze --freeze frozen
    # Not by `run`, which would wait for who holds its pipe.
    local status=0
    timeout --kill-after=5 30 "$BRIG" -m sealed -D --dir "$SCRATCH/frozen" --timeout 4s --grace 0 \
        --result result.json -- sh -c "echo x >'$SCRATCH/frozen/file'" </dev/null >out 2>&1 3>&- || status=$?
    fsfreeze --unfreeze frozen
    await umount --quiet frozen
    cat out
    [ "$status" -eq 124 ]
    [ "$(value stuck_pid)" -gt 0 ]
    [ "$(value outcome)" = timeout ]
    must "$BRIG" -m sealed -D -- true
}
