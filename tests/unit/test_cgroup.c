/* SPDX-License-Identifier: MIT */
/* Groups as this system has them: that limits hold, that nothing escapes being killed, and that
 * nothing is left behind. Run as root, everything is run again as a user to whom a group was given. */
#include "jail/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "tap.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ull
#endif

#define MIB ((size_t)1 << 20)

static const char *who = "";
static uid_t user_id; /* of this program alone */

/* ---- starting something in a group ---- */

struct cgroup_clone_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
};

/* fork(), into a group if it is one to be cloned into. */
static pid_t fork_into(int group_fd)
{
    if (group_fd < 0)
        return fork();
    struct cgroup_clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)group_fd};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

enum { JOIN_FAILED = 100, WORK_FAILED = 101 };

static void join(const struct cgroup *group)
{
    int fds[CGROUP_JOIN_MAX];
    size_t count = cgroup_join_fds(group, fds);
    for (size_t i = 0; i < count; i++)
        if (write(fds[i], "0", 1) != 1)
            _exit(JOIN_FAILED);
    /* As an exec would: who has the directory open keeps the group locked. */
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (group->dirs[tree] >= 0)
            (void)close(group->dirs[tree]);
}

/* Runs work in the group, as another user if `uid` says so: joining is the last thing that happens
 * before, as it is in a jail, and has happened when this returns. */
static pid_t start_as(const struct cgroup *group, uid_t uid, int (*work)(void *), void *data)
{
    int joined[2];
    char byte;
    if (pipe2(joined, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    (void)fflush(stdout);
    pid_t pid = fork_into(cgroup_clone_fd(group));
    if (pid < 0)
        tap_bail("cannot clone into the group: %s", strerror(errno));
    if (pid == 0) {
        if (uid != geteuid() && setresuid(uid, uid, uid) < 0)
            _exit(JOIN_FAILED);
        join(group);
        (void)close(joined[0]);
        (void)close(joined[1]);
        _exit(work(data));
    }
    (void)close(joined[1]);
    (void)!read(joined[0], &byte, 1); /* the end */
    (void)close(joined[0]);
    return pid;
}

static pid_t start_in(const struct cgroup *group, int (*work)(void *), void *data)
{
    return start_as(group, geteuid(), work, data);
}

/* The exit status, or the signal negated. */
static int end_of(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static struct cgroup *new_group(const struct cgroup_limits *limits)
{
    struct brig_error err = {0};
    struct cgroup *group = NULL;
    unsigned missing = 0;
    struct cgroup_limits all = *limits;
    all.kill = all.cpu_time = true;
    if (cgroup_new(&all, &group, &missing, &err) < 0)
        tap_bail("cgroup_new: %s", err.message);
    if (missing & ~(unsigned)CGROUP_IO)
        tap_bail("cgroup_new: %u are missing", missing);
    return group;
}

/* Until it is empty: the memory of what was killed must be given back first. */
static void empty(struct cgroup *group)
{
    (void)await(cgroup_kill(group) <= 0);
}

/* ---- what is left ---- */

static size_t count_ours(pid_t pid)
{
    static struct cgroup_part parts[1024];
    autobases struct cgroup_bases bases;
    size_t ours = 0;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        size_t count =
            bases.dirs[tree] < 0 ? 0 : cgroup_list(bases.dirs[tree], "brig-", parts, 1024);
        for (size_t i = 0; i < count; i++) {
            pid_t owner;
            uint64_t start;
            ours += cgroup_text_name(parts[i].name, &owner, &start) && owner == pid;
        }
    }
    return ours;
}

static size_t count_fds(void)
{
    struct dirent *entry;
    autodir DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;
    while (dir && (entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    return count;
}

static size_t count_named(const char *name)
{
    autobases struct cgroup_bases bases;
    size_t count = 0;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        count += bases.dirs[tree] >= 0 && faccessat(bases.dirs[tree], name, F_OK, 0) == 0;
    return count;
}

/* ---- memory ---- */

static int touch_memory(void *data)
{
    size_t size = *(size_t *)data;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return WORK_FAILED;
    for (size_t i = 0; i < size; i += 4096)
        *(volatile char *)(memory + i) = 1;
    return 0;
}

static void test_memory(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.memory_bytes = 64 * MIB});
    struct cgroup_usage usage;
    size_t size = 24 * MIB;
    tap_is_int(end_of(start_in(group, touch_memory, &size)), 0, "%sless memory is given", who);
    cgroup_usage(group, &usage);
    tap_ok(usage.has & CGROUP_MEMORY, "%smemory is counted", who);
    tap_is_int(usage.oom_kills, 0, "%snobody was killed for it", who);
    tap_ok(usage.peak_memory_bytes == 0 || usage.peak_memory_bytes >= size,
           "%sthe peak is as high as that", who);
    size = 128 * MIB;
    tap_is_int(end_of(start_in(group, touch_memory, &size)), -SIGKILL, "%smore memory kills", who);
    cgroup_usage(group, &usage);
    tap_ok(usage.oom_kills > 0, "%swhich is counted", who);
    tap_ok(usage.peak_memory_bytes <= 64 * MIB, "%sthe peak is no higher than the limit", who);
    empty(group);
    cgroup_free(group);
}

/* ---- pids ---- */

/* Forks as often as it is told, and says how often it was let. */
static int fork_often(void *data)
{
    int wanted = *(int *)data, made = 0;
    pid_t pids[64];
    for (int i = 0; i < wanted && i < 64; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
        if (pid > 0)
            pids[made++] = pid;
        else if (errno != EAGAIN)
            return WORK_FAILED;
    }
    for (int i = 0; i < made; i++)
        (void)kill(pids[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    return made;
}

static void test_pids(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 8});
    struct cgroup_usage usage;
    int wanted = 5;
    tap_is_int(end_of(start_in(group, fork_often, &wanted)), 5, "%sfewer forks are let", who);
    cgroup_usage(group, &usage);
    tap_ok(usage.has & CGROUP_PIDS && usage.pids_refused == 0, "%sand none was refused", who);
    wanted = 12;
    tap_is_int(end_of(start_in(group, fork_often, &wanted)), 7, "%smore are not", who);
    cgroup_usage(group, &usage);
    tap_is_int(usage.pids_refused, 5, "%swhich is counted", who);
    tap_ok(usage.peak_pids == 0 || usage.peak_pids == 8, "%sthe peak is the limit", who);
    empty(group);
    cgroup_free(group);
}

/* ---- cpu ---- */

/* Computes until it has used so much CPU time. */
static int burn(void *data)
{
    int64_t wanted_ms = *(int *)data;
    struct timespec used;
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while ((int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000 < wanted_ms);
    return 0;
}

static void test_cpu(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.cpu_percent = 20});
    struct cgroup *one = new_group(&(struct cgroup_limits){.cpu_percent = 1});
    struct cgroup_usage usage;
    uint64_t used_us = 0;
    int wanted_ms = 70;
    tap_ok(cgroup_cpu_us(group, &used_us), "%sCPU time is counted", who);
    tap_is_int(end_of(start_in(group, burn, &wanted_ms)), 0, "%sa slow program ends", who);
    cgroup_usage(group, &usage);
    uint64_t again_us = 0;
    tap_ok(cgroup_cpu_us(group, &again_us) && again_us > used_us, "%sthe time it used is counted",
           who);
    tap_ok(usage.cpu_user_us + usage.cpu_sys_us > 0, "%sin both places", who);
    /* 1 ms in each 100, which is less than a time slice. */
    wanted_ms = 5;
    tap_is_int(end_of(start_in(one, burn, &wanted_ms)), 0, "%s1 %% is a limit", who);
    cgroup_usage(one, &usage);
    tap_ok(usage.throttled_us > 0, "%sfor which a program has to wait", who);
    cgroup_free(group);
    cgroup_free(one);
}

/* ---- killing ---- */

/* Two children in sessions of their own, each with a child whose parent ends; all hold the pipe. */
static int scatter(void *data)
{
    int ready = *(int *)data;
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)setsid();
            pid_t orphan = fork();
            if (orphan != 0 && i == 1)
                _exit(0);
            (void)signal(SIGTERM, SIG_IGN);
            (void)!write(ready, "r", 1);
            for (;;)
                (void)pause();
        }
    }
    (void)!write(ready, "r", 1);
    for (;;)
        (void)pause();
}

/* Reads until so many bytes came, or the end, or patience is over. How many came. */
static int read_some(int fd, int wanted)
{
    int count = 0;
    while (count < wanted && await_byte(fd))
        count++;
    return count;
}

#define SCATTERED 4 /* processes that say they are ready */

static pid_t start_scattered(const struct cgroup *group, int *ret_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    pid_t pid = start_in(group, scatter, &ends[1]);
    (void)close(ends[1]);
    if (read_some(ends[0], SCATTERED) != SCATTERED)
        tap_diag("not all came to life");
    *ret_end = ends[0];
    return pid;
}

static void test_kill(const struct cgroup_limits *limits, const char *what)
{
    struct cgroup *group = new_group(limits);
    struct cgroup *other = new_group(limits);
    int end, other_end;
    tap_is_int(cgroup_kill(group), 0, "%skilling nobody does nothing", who);
    pid_t pid = start_scattered(group, &end);
    pid_t other_pid = start_scattered(other, &other_end);
    tap_is_int(cgroup_stuck_pid(group), 0, "%snobody hangs", who);
    empty(group);
    tap_ok(await_end(end), "%sa scattered tree is killed, %s", who, what);
    tap_is_int(end_of(pid), -SIGKILL, "%swith its first process", who);
    tap_is_int(kill(other_pid, 0), 0, "%sand the one beside it is not", who);
    empty(other);
    tap_ok(await_end(other_end), "%suntil it is", who);
    (void)end_of(other_pid);
    cgroup_free(group);
    cgroup_free(other);
    (void)close(end);
    (void)close(other_end);
}

/* As on systems without cgroup.kill: by freezing and listing, or by listing only. */
static void test_kill_by_list(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 100});
    if (cgroup_kind(group) != CGROUP_V1) {
        cgroup_free(group); /* v2 has cgroup.kill, and nothing is lacking */
        return;
    }
    int end;
    pid_t pid = start_scattered(group, &end);
    int unified = take_fd(&group->dirs[CGROUP_TREE_UNIFIED]);
    empty(group);
    tap_ok(await_end(end), "%sa scattered tree is killed by its list", who);
    tap_is_int(end_of(pid), -SIGKILL, "%swith its first process", who);
    group->dirs[CGROUP_TREE_UNIFIED] = unified;
    cgroup_free(group);
    (void)close(end);
}

static void test_freezer(void)
{
    autobases struct cgroup_bases bases;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    if (bases.support.kind == CGROUP_V2)
        return; /* nothing is lacking: there is none */
    if (bases.dirs[bases.same_as[CGROUP_TREE_FREEZER]] < 0) {
        tap_skip("no freezer of v1", "%sa frozen tree is killed", who);
        return;
    }
    /* A system with v1 only has the freezer in place of the unified hierarchy. */
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 100});
    int unified = take_fd(&group->dirs[CGROUP_TREE_UNIFIED]), end;
    if (unified >= 0) {
        int freezer = -1;
        if (mkdirat(bases.dirs[CGROUP_TREE_FREEZER], group->name, 0755) == 0)
            freezer = openat(bases.dirs[CGROUP_TREE_FREEZER], group->name,
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        group->dirs[CGROUP_TREE_FREEZER] = freezer;
        group->joins[group->join_count++] = openat(freezer, "tasks", O_WRONLY | O_CLOEXEC);
    }
    pid_t pid = start_scattered(group, &end);
    empty(group);
    tap_ok(await_end(end), "%sa tree is killed with the freezer", who);
    tap_is_int(end_of(pid), -SIGKILL, "%swith its first process", who);
    group->dirs[CGROUP_TREE_UNIFIED] = unified;
    cgroup_free(group);
    (void)close(end);
}

/* ---- leaves ---- */

static int wait_forever(void *data)
{
    (void)data;
    while (pause() < 0)
        ;
    return 0;
}

/* As a supervisor does it: it moves a process that waits for that. */
static pid_t start_in_leaf(const struct cgroup *leaf, int (*work)(void *), void *data)
{
    int gate[2];
    char byte;
    if (pipe2(gate, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(read(gate[0], &byte, 1) == 1 ? work(data) : JOIN_FAILED);
    int result = cgroup_move(leaf, pid);
    if (result == 0)
        (void)!write(gate[1], "", 1);
    else
        tap_diag("cannot move a process: %s", strerror(-result));
    (void)close(gate[0]);
    (void)close(gate[1]);
    return pid;
}

static void test_leaves(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 100});
    struct cgroup *small = NULL, *plain = NULL;
    struct cgroup_usage usage;
    struct brig_error err = {0};
    unsigned missing = 1;
    size_t size = 96 * MIB;
    pid_t main_pid = start_in(group, wait_forever, NULL);
    int result =
        cgroup_new_leaf(group, &(struct cgroup_limits){.memory_bytes = 32 * MIB, .pids = 9}, &small,
                        &missing, &err);
    if (result < 0)
        tap_bail("cgroup_new_leaf: %s", err.message);
    tap_is_int(missing, 0, "%sa leaf has limits its group has not", who);
    result = cgroup_new_leaf(group, &(struct cgroup_limits){0}, &plain, &missing, &err);
    tap_is_int(result, 0, "%sanother has none", who);
    tap_is_int(end_of(start_in_leaf(small, touch_memory, &size)), -SIGKILL, "%sa tool is killed",
               who);
    tap_is_int(kill(main_pid, 0), 0, "%sthe jail lives on", who);
    tap_is_int(end_of(start_in_leaf(plain, touch_memory, &size)), 0, "%sand so does another tool",
               who);
    cgroup_usage(small, &usage);
    tap_ok(usage.oom_kills > 0, "%sthe leaf knows", who);
    cgroup_usage(group, &usage);
    tap_ok(usage.oom_kills > 0, "%sand so does the group", who);
    /* On v2 it may have been counted from the start, and then is the jail's with all tools. */
    tap_ok(usage.has & CGROUP_MEMORY
               ? usage.peak_memory_bytes == 0 || usage.peak_memory_bytes >= size
               : usage.peak_memory_bytes == 0,
           "%swhich does not take one tool's memory for its own", who);
    pid_t tool_pid = start_in_leaf(plain, wait_forever, NULL);
    pid_t small_pid = start_in_leaf(small, wait_forever, NULL);
    empty(small);
    tap_is_int(end_of(small_pid), -SIGKILL, "%sa tool can be killed", who);
    tap_ok(kill(tool_pid, 0) == 0 && kill(main_pid, 0) == 0, "%sand nobody else", who);
    empty(group);
    tap_is_int(end_of(tool_pid), -SIGKILL, "%sa tool dies with the jail", who);
    tap_is_int(end_of(main_pid), -SIGKILL, "%sand the jail", who);
    cgroup_free(small);
    cgroup_free(plain);
    cgroup_usage(group, &usage);
    tap_ok(usage.oom_kills > 0, "%sthe group still knows when the leaf is gone", who);
    cgroup_free(group);
}

/* Many tools must not use up the descriptors of who watches them. */
static void test_leaf_fds(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.memory_bytes = 64 * MIB});
    struct cgroup *leaf = NULL;
    unsigned missing;
    struct cgroup_usage usage;
    const struct cgroup_limits limits = {.memory_bytes = 32 * MIB};
    size_t fds = count_fds();
    tap_is_int(cgroup_new_leaf(group, &limits, &leaf, &missing, NULL), 0, "%sa leaf", who);
    cgroup_usage(leaf, &usage);
    tap_is_int(count_fds(), fds, "%sis open only while it is used", who);
    tap_is_int(usage.has & CGROUP_MEMORY, CGROUP_MEMORY, "%sand counts all the same", who);
    cgroup_free(leaf);
    cgroup_free(group);
}

/* Somebody may have made groups below it, with any name. */
static void test_deep(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 10});
    char name[NAME_MAX + 1];
    memset(name, 'x', 200);
    name[200] = '\0';
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        int dir = group->dirs[tree];
        if (dir < 0)
            continue;
        autoclose int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int depth = 0; depth < 4; depth++) {
            if (mkdirat(at, name, 0755) < 0 || mkdirat(at, ".hidden", 0755) < 0)
                tap_bail("mkdir: %s", strerror(errno));
            autoclose int above = take_fd(&at);
            at = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    cgroup_free(group);
    tap_is_int(count_ours(getpid()), 0, "%sa group is removed with all below it", who);
}

/* v1 lets the owner do it. */
static void test_renamed(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 10});
    bool renamed = false;
    char other[CGROUP_NAME_MAX + 3];
    (void)snprintf(other, sizeof other, "../brig-test-renamed-%d", (int)getpid());
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        char from[CGROUP_NAME_MAX + 3];
        (void)snprintf(from, sizeof from, "../%s", group->name);
        renamed = renamed || (group->dirs[tree] >= 0 &&
                              renameat(group->dirs[tree], from, group->dirs[tree], other) == 0);
    }
    if (cgroup_kind(group) == CGROUP_V2)
        tap_ok(!renamed, "%sa group cannot be renamed", who);
    else
        tap_ok(renamed, "%sa group can be renamed", who);
    size_t before = count_named(other + strlen("../"));
    cgroup_free(group);
    if (renamed)
        tap_ok(before > 0 && count_named(other + strlen("../")) == 0,
               "%sa renamed group is removed", who);
}

/* Who used up its share waits before it looks at signals, since 6.18. */
static void test_unthrottle(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.cpu_percent = 1});
    struct cgroup *leaf = NULL;
    unsigned missing;
    int wanted_ms = 50;
    if (cgroup_new_leaf(group, &(struct cgroup_limits){.cpu_percent = 1}, &leaf, &missing, NULL) <
        0)
        tap_bail("cgroup_new_leaf");
    cgroup_unthrottle(group);
    struct cgroup_usage before, after;
    cgroup_usage(leaf, &before);
    tap_is_int(end_of(start_in_leaf(leaf, burn, &wanted_ms)), 0, "%sa program in a leaf", who);
    cgroup_usage(leaf, &after);
    tap_is_int((long)(after.throttled_us - before.throttled_us), 0,
               "%sis not held back once the limits are off", who);
    cgroup_free(leaf);
    cgroup_free(group);
}

static void test_leaf_limit(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 100});
    struct cgroup *leaves[CGROUP_LEAF_MAX + 1];
    unsigned missing;
    int made = 0;
    while (made <= CGROUP_LEAF_MAX && cgroup_new_leaf(group, &(struct cgroup_limits){.pids = 5},
                                                      &leaves[made], &missing, NULL) == 0)
        made++;
    tap_is_int(made, CGROUP_LEAF_MAX, "%sa group has so many leaves and no more", who);
    cgroup_free(leaves[--made]);
    tap_is_int(cgroup_new_leaf(group, &(struct cgroup_limits){0}, &leaves[made], &missing, NULL), 0,
               "%swhere one was, another can be", who);
    for (made++; made > 0;)
        cgroup_free(leaves[--made]);
    cgroup_free(group);
}

/* ---- the last to leave ---- */

static int leave_soon(void *data)
{
    (void)!write(*(int *)data, "", 1);
    return 0;
}

static void test_last_leaves(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 8});
    char name[CGROUP_NAME_MAX], byte;
    int ready[2];
    (void)snprintf(name, sizeof name, "%s", group->name);
    if (pipe2(ready, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    pid_t pid = start_in(group, leave_soon, &ready[1]);
    tap_is_int(read(ready[0], &byte, 1), 1, "%sone is in the group", who);
    tap_ok(count_named(name) > 0, "%swhich is there", who);
    cgroup_free(group);
    /* On a busy machine it may take longer to leave than cgroup_free() waits. */
    tap_ok(await((cgroup_sweep(), count_named(name) == 0)), "%sand goes when that one has left",
           who);
    (void)end_of(pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* ---- what is left behind ---- */

static void test_many(void)
{
    const struct cgroup_limits limits = {.memory_bytes = 64 * MIB, .cpu_percent = 50, .pids = 10};
    size_t fds = count_fds();
    struct cgroup *held[8] = {NULL};
    int failed = 0;
    const int rounds = tap_rounds(50, 200);
    for (int i = 0; i < rounds; i++) {
        struct cgroup **place = &held[i % 8];
        cgroup_free(*place);
        *place = new_group(&limits);
        failed += end_of(start_in(*place, touch_memory, &(size_t){4096})) != 0;
    }
    tap_is_int(failed, 0, "%sprograms run in %d groups", who, rounds);
    tap_ok(count_ours(getpid()) >= 8, "%seight of which are there", who);
    for (int i = 0; i < 8; i++)
        cgroup_free(held[i]);
    tap_is_int(count_ours(getpid()), 0, "%sno group is left of them", who);
    tap_is_int(count_fds(), fds, "%snor a descriptor", who);
    cgroup_free(NULL);
}

static void test_joined(void)
{
    const struct cgroup_limits limits = {.memory_bytes = 64 * MIB, .cpu_percent = 50, .pids = 10};
    struct cgroup *group = new_group(&limits);
    size_t fds = count_fds();
    pid_t pid = start_in(group, wait_forever, NULL);
    cgroup_joined(group);
    struct cgroup_usage usage;
    int left[CGROUP_JOIN_MAX];
    tap_ok(count_fds() < fds, "%sdescriptors for joining can be closed", who);
    tap_is_int(cgroup_join_fds(group, left), 0, "%sand are gone", who);
    cgroup_usage(group, &usage);
    tap_is_int(usage.has, CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS, "%sthe rest goes on", who);
    empty(group);
    tap_is_int(end_of(pid), -SIGKILL, "%sup to the end", who);
    cgroup_free(group);
}

/* Without clone3: the child joins by writing. */
static void test_procs(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 10});
    autoclose int procs = cgroup_open_procs(group);
    if (procs < 0) {
        tap_skip("no v2 hierarchy", "%sa child joins by writing", who);
        cgroup_free(group);
        return;
    }
    int ends[2], status = 0;
    (void)!pipe2(ends, O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        if (write(procs, "0", 1) == 1)
            (void)!write(ends[1], "r", 1);
        (void)pause();
        _exit(0);
    }
    (void)close(ends[1]);
    tap_is_int(read_some(ends[0], 1), 1, "%sa child joins by writing", who);
    empty(group);
    tap_ok(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "%sand is killed there", who);
    (void)close(ends[0]);
    cgroup_free(group);
}

/* A brig that dies with its jail alive. Its pid. */
static pid_t die_with_a_group(int *ret_end)
{
    int ends[2], status;
    (void)!pipe2(ends, O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 10});
        (void)start_in(group, scatter, &ends[1]);
        (void)read_some(ends[0], SCATTERED);
        _exit(0);
    }
    (void)close(ends[1]);
    (void)waitpid(pid, &status, 0);
    *ret_end = ends[0];
    return pid;
}

static void test_sweep(void)
{
    struct cgroup *alive = new_group(&(struct cgroup_limits){.pids = 10});
    struct cgroup_usage usage;
    int end;
    pid_t dead = die_with_a_group(&end);
    tap_ok(count_ours(dead) > 0, "%sa dead brig's group is left", who);
    tap_ok(await((cgroup_sweep(), count_ours(dead) == 0)), "%suntil it is swept", who);
    tap_ok(await_end(end), "%swith all that was in it", who);
    cgroup_usage(alive, &usage);
    tap_ok(usage.has & CGROUP_PIDS && count_ours(getpid()) > 0, "%sa living brig's is not", who);
    (void)close(end);
    cgroup_free(alive);
}

/* Whoever cannot see the owner's pid sees its lock. */
static void test_sweep_lock(void)
{
    char name[64]; /* of nobody's, but also no other test's */
    autobases struct cgroup_bases bases;
    (void)snprintf(name, sizeof name, "brig-2147483647-%d-1", (int)getpid());
    cgroup_find(CGROUP_ALL_TREES, &bases);
    int tree = bases.dirs[CGROUP_TREE_UNIFIED] >= 0 ? CGROUP_TREE_UNIFIED : CGROUP_TREE_MEMORY;
    if (mkdirat(bases.dirs[tree], name, 0755) < 0)
        tap_bail("mkdir: %s", strerror(errno));
    int lock = openat(bases.dirs[tree], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)flock(lock, LOCK_EX);
    (void)cgroup_sweep();
    tap_is_int(faccessat(bases.dirs[tree], name, F_OK, 0), 0, "%sa locked group is not swept", who);
    (void)close(lock);
    (void)cgroup_sweep();
    tap_ok(faccessat(bases.dirs[tree], name, F_OK, 0) < 0, "%sone that is not locked is", who);
}

static void test_given_up(void)
{
    struct cgroup *group = new_group(&(struct cgroup_limits){.pids = 10});
    int end;
    pid_t pid = start_scattered(group, &end);
    cgroup_free(group);
    tap_ok(count_ours(getpid()) > 0, "%sa group with somebody in it is not removed", who);
    tap_ok(await((cgroup_sweep(), count_ours(getpid()) == 0)), "%sbut swept, though its brig lives",
           who);
    tap_is_int(end_of(pid), -SIGKILL, "%sand so is who was in it", who);
    (void)close(end);
}

/* A group for one limit and nothing else. */
static void test_one_limit(void)
{
    struct brig_error err = {0};
    struct cgroup *group = NULL;
    unsigned missing = 1;
    int wanted = 12;
    if (cgroup_new(&(struct cgroup_limits){.pids = 8}, &group, &missing, &err) < 0)
        tap_bail("cgroup_new: %s", err.message);
    tap_is_int(missing, 0, "%sa group can be for one limit alone", who);
    tap_is_int(end_of(start_in(group, fork_often, &wanted)), 7, "%swhich holds", who);
    empty(group);
    cgroup_free(group);
}

/* ---- all of it, as one user ---- */

static void test_probe(void)
{
    struct cgroup_support look, tried;
    cgroup_probe(false, &look);
    cgroup_probe(true, &tried);
    tap_diag("%s%s, resources %x, in %s", who, tried.kind == CGROUP_V2 ? "v2" : "v1",
             tried.resources, tried.where);
    tap_is_int(tried.kind, look.kind, "%slooking and trying come to the same kind", who);
    tap_is_int(tried.resources & 7, look.resources & 7, "%sand the same resources", who);
    tap_ok(look.where[0] == '/', "%sin a directory", who);
    tap_is_str(look.reason, "", "%swith nothing to complain of", who);
    tap_is_int(count_ours(getpid()), 0, "%sand leave nothing", who);
}

static void test_all(void)
{
    test_probe();
    test_memory();
    test_pids();
    test_one_limit();
    test_cpu();
    test_kill(&(struct cgroup_limits){0}, "without limits");
    test_kill(&(struct cgroup_limits){.memory_bytes = 64 * MIB, .cpu_percent = 50, .pids = 32},
              "with limits");
    test_kill_by_list();
    test_freezer();
    test_leaves();
    test_last_leaves();
    test_leaf_limit();
    test_leaf_fds();
    test_deep();
    test_renamed();
    test_unthrottle();
    test_joined();
    test_procs();
    test_sweep();
    test_sweep_lock();
    test_given_up();
    test_many();
}

/* ---- as somebody else ---- */

/* As root, a jail's processes are another user by the time they join. */
static void test_other_user(void)
{
    struct cgroup *group =
        new_group(&(struct cgroup_limits){.memory_bytes = 64 * MIB, .cpu_percent = 50, .pids = 10});
    size_t size = 4096;
    tap_is_int(end_of(start_as(group, user_id, touch_memory, &size)), 0,
               "a child that is another user by then joins");
    empty(group);
    cgroup_free(group);
}

static void become(uid_t uid)
{
    if (uid != geteuid() &&
        (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
        tap_bail("cannot become another user: %s", strerror(errno));
}

static void test_nothing_given(void)
{
    struct cgroup *group = NULL, *leaf = NULL;
    struct cgroup_support support;
    struct cgroup_usage usage;
    unsigned missing = 0;
    int fds[CGROUP_JOIN_MAX];
    uint64_t used;
    cgroup_probe(true, &support);
    tap_is_int(support.kind, CGROUP_NONE, "a user without a group has no support");
    tap_ok(support.reason[0] != '\0', "and is told why: %s", support.reason);
    const struct cgroup_limits limits = {.memory_bytes = 1, .pids = 1, .io_read_bytes = 1};
    const unsigned all = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO;
    tap_is_int(cgroup_new(&limits, &group, &missing, NULL), 0, "it is no failure");
    tap_is_int(missing, all, "but everything is missing");
    tap_is_int(cgroup_kind(group), CGROUP_NONE, "from a group that is none");
    tap_is_int(cgroup_new_leaf(group, &limits, &leaf, &missing, NULL), 0, "it has leaves");
    tap_is_int(missing, all, "of the same kind");
    tap_is_int(cgroup_clone_fd(group), -1, "it is not to be cloned into");
    tap_is_int(cgroup_join_fds(group, fds), 0, "nor to be joined");
    tap_is_int(cgroup_open_procs(group), -1, "in any way");
    cgroup_joined(group);
    cgroup_usage(group, &usage);
    tap_is_int(usage.has, 0, "counts nothing");
    tap_ok(!cgroup_cpu_us(group, &used), "not even CPU time");
    tap_is_int(cgroup_kill(group), 0, "kills nobody");
    tap_is_int(cgroup_stuck_pid(group), 0, "knows nobody");
    cgroup_free(leaf);
    cgroup_free(group);
    tap_is_int(cgroup_sweep(), 0, "and is not swept");
}

/* Groups for the tests alone, one in each hierarchy: what they do there is nobody else's business,
 * and the other way round. Given to a user as systemd and administrators do it: the directory and
 * what one needs to divide it. */
struct given {
    char name[64];
    struct cgroup_bases bases;
};

static void given_init(struct given *given, uid_t uid)
{
    static const char *const files[] = {"", "cgroup.procs", "cgroup.threads",
                                        "cgroup.subtree_control", "tasks"};
    (void)snprintf(given->name, sizeof given->name, "brig-test-%d", (int)getpid());
    cgroup_find(CGROUP_ALL_TREES, &given->bases);
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        int base = given->bases.dirs[tree];
        if (base < 0)
            continue;
        if (mkdirat(base, given->name, 0755) < 0)
            tap_bail("mkdir %s: %s", given->name, strerror(errno));
        for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
            char path[128];
            (void)snprintf(path, sizeof path, "%s/%s", given->name, files[i]);
            (void)!fchownat(base, path, uid, uid, 0);
        }
    }
}

static void given_enter(const struct given *given)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", given->name);
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (given->bases.dirs[tree] >= 0 && cgroup_write(given->bases.dirs[tree], path, "0") < 0)
            tap_bail("cannot enter %s", given->name);
}

static void given_done(struct given *given)
{
    char own[128];
    int left = 0;
    (void)snprintf(own, sizeof own, "%s/" CGROUP_OWN, given->name);
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        int base = given->bases.dirs[tree];
        if (base < 0)
            continue;
        (void)unlinkat(base, own, AT_REMOVEDIR);
        left += unlinkat(base, given->name, AT_REMOVEDIR) < 0;
    }
    tap_is_int(left, 0, "%snothing is left where the tests were", who);
    cgroup_bases_done(&given->bases);
}

/* Runs tests in a child, in a group if one is given. It goes on counting where we are, and we where
 * it ended. */
static void in_child(const struct given *given, uid_t uid, void (*tests)(void))
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (given)
            given_enter(given);
        become(uid);
        tests();
        (void)!write(ends[1], &tap_state, sizeof tap_state);
        exit(0); /* with a look at leaks */
    }
    (void)close(ends[1]);
    if (read(ends[0], &tap_state, sizeof tap_state) != (ssize_t)sizeof tap_state)
        tap_fail("%sthe tests come to an end", who);
    (void)close(ends[0]);
    tap_is_int(end_of(pid), 0, "%snothing leaks", who);
}

static void test_as(uid_t uid)
{
    struct given given;
    given_init(&given, uid);
    in_child(&given, uid, test_all);
    given_done(&given);
}

int main(void)
{
    struct cgroup_support support;
    user_id = 1500000000 + (uid_t)getpid();
    cgroup_probe(true, &support);
    if (support.kind == CGROUP_NONE) {
        if (geteuid() != 0)
            test_nothing_given();
        tap_skip(support.reason, "groups have limits");
        return tap_done();
    }
    if (geteuid() != 0) {
        test_all();
        return tap_done();
    }
    test_as(0);
    test_other_user();
    in_child(NULL, user_id, test_nothing_given);
    who = "user: ";
    test_as(user_id);
    return tap_done();
}
