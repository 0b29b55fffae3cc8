/* SPDX-License-Identifier: MIT */
/* Kills all processes of a group, and sweeps stale groups. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/cgroup/process.h"
#include "jail/sys.h"

/* Killing by list: a process forked while the list is read is found in the next round. */
#define KILL_ROUNDS 16
#define LIST_WAIT_ROUNDS 3
/* Dying takes a moment: waits of 100 µs, doubled up to this many times, some 12 ms in all. */
#define WAIT_ROUNDS 7
#define WAIT_FIRST_NS 100000

/* Returns a hierarchy that every process of the group is in. */
static bool any_tree(const struct cgroup *group, enum cgroup_tree *ret_tree)
{
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++)
        if (group->dirs[tree] >= 0 && !(group->widened & 1u << tree)) {
            *ret_tree = tree;
            return true;
        }
    return false;
}

/* ---- by list ---- */

/* Before it kills, it checks that the process with this pid is in the group; the pidfd, opened
 * before, keeps referring to that process. */
static void kill_member(const struct cgroup *group, pid_t pid)
{
    char path[32], text[CGROUP_TEXT_MAX], name[2 * CGROUP_NAME_MAX];
    long pidfd = SYS(pidfd_open, pid, 0);
    if (pidfd < 0)
        return;
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    (void)snprintf(name, sizeof name, "%s%s%s", group->parent ? group->parent->name : "",
                   group->parent ? "/" : "", group->name);
    if (cgroup_read(AT_FDCWD, path, text, sizeof text) > 0 && cgroup_text_is_in(text, name))
        (void)SYS(pidfd_send_signal, pidfd, SIGKILL, 0, 0);
    (void)close((int)pidfd);
}

/* Calls `visit` for each process (or thread) and returns their number. A list that exceeds the
 * buffer is read in part. */
static int for_each(const struct cgroup *group, const char *file,
                    bool (*visit)(const struct cgroup *group, pid_t pid, void *data), void *data)
{
    enum cgroup_tree tree;
    struct cgroup_part parts[CGROUP_PARTS_MAX];
    if (!any_tree(group, &tree))
        return 0;
    size_t parts_count = cgroup_parts(group, tree, parts);
    int count = 0;
    for (size_t i = 0; i < parts_count; i++) {
        char name[2 * CGROUP_NAME_MAX], text[CGROUP_TEXT_MAX];
        (void)snprintf(name, sizeof name, "%s/%s", parts[i].name, file);
        if (cgroup_read(cgroup_dir(group, tree), name, text, sizeof text) <= 0)
            continue;
        const char *at = text;
        pid_t pid;
        for (; cgroup_text_next_pid(&at, &pid); count++)
            if (visit && !visit(group, pid, data))
                return count;
    }
    return count;
}

static bool visit_kill(const struct cgroup *group, pid_t pid, void *data)
{
    (void)data;
    if (pid > 0) /* 0: in a pid namespace that is not visible here */
        kill_member(group, pid);
    return true;
}

static int count_processes(const struct cgroup *group)
{
    return for_each(group, "cgroup.procs", NULL, NULL);
}

/* Frozen processes cannot fork while the list is read. Frozen processes do not die, either. */
static void freeze(const struct cgroup *group, bool on)
{
    int freezer = cgroup_dir(group, CGROUP_TREE_FREEZER);
    if (freezer >= 0)
        (void)cgroup_write(freezer, "freezer.state", on ? "FROZEN" : "THAWED");
}

int cgroup_freeze(const struct cgroup *group, bool on)
{
    autoopened struct cgroup opened = cgroup_opened(group);
    int freezer = cgroup_dir(&opened, CGROUP_TREE_FREEZER);
    int unified = cgroup_dir(&opened, CGROUP_TREE_UNIFIED);
    if (unified >= 0)
        return cgroup_write(unified, "cgroup.freeze", on ? "1" : "0");
    if (freezer >= 0)
        return cgroup_write(freezer, "freezer.state", on ? "FROZEN" : "THAWED");
    return -EOPNOTSUPP;
}

int cgroup_set_cpu(const struct cgroup *group, unsigned percent, struct brig_error *err)
{
    const struct cgroup_limits limits = {.cpu_percent = percent};
    switch (group->kind) {
    case CGROUP_V2:
        return cgroup_v2_write(cgroup_dir(group, CGROUP_TREE_UNIFIED), &limits, CGROUP_CPU, err);
    case CGROUP_V1:
        return cgroup_v1_write_cpu(cgroup_dir(group, CGROUP_TREE_CPU), percent, err);
    case CGROUP_NONE:
        break;
    }
    return 0;
}

void cgroup_unthrottle(const struct cgroup *group)
{
    bool v2 = group->kind == CGROUP_V2;
    enum cgroup_tree tree = v2 ? CGROUP_TREE_UNIFIED : CGROUP_TREE_CPU;
    autoopened struct cgroup opened = cgroup_opened(group);
    int dir = cgroup_dir(&opened, tree);
    struct cgroup_part parts[CGROUP_PARTS_MAX];
    size_t count = dir < 0 ? 0 : cgroup_parts(&opened, tree, parts);
    for (size_t i = 0; i < count; i++) {
        char path[2 * CGROUP_NAME_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", parts[i].name,
                       v2 ? "cpu.max" : "cpu.cfs_quota_us");
        (void)cgroup_write(dir, path, v2 ? "max" : "-1"); /* no file without a limit */
    }
}

/* ---- waiting ---- */

static int wait_until_empty(const struct cgroup *group, int rounds)
{
    struct timespec wait = {.tv_nsec = WAIT_FIRST_NS};
    int count = count_processes(group);
    for (int round = 0; round < rounds && count > 0; round++) {
        (void)nanosleep(&wait, NULL);
        wait.tv_nsec *= 2;
        count = count_processes(group);
    }
    return count;
}

int cgroup_kill(const struct cgroup *group)
{
    autoopened struct cgroup opened = cgroup_opened(group);
    int unified = cgroup_dir(&opened, CGROUP_TREE_UNIFIED);
    if (opened.kind == CGROUP_NONE || count_processes(&opened) == 0)
        return 0;
    cgroup_unthrottle(group);
    if (unified >= 0 && cgroup_write(unified, "cgroup.kill", "1") == 0)
        return wait_until_empty(&opened, WAIT_ROUNDS);
    int count = 1;
    for (int round = 0; round < KILL_ROUNDS && count > 0; round++) {
        freeze(&opened, true);
        (void)for_each(&opened, "cgroup.procs", visit_kill, NULL);
        freeze(&opened, false);
        count = wait_until_empty(&opened, LIST_WAIT_ROUNDS);
    }
    return count;
}

/* ---- stuck processes ---- */

static bool visit_stuck(const struct cgroup *group, pid_t pid, void *data)
{
    (void)group;
    struct process_stat stat;
    if (!process_stat(pid, &stat) || stat.state != 'D')
        return true;
    *(pid_t *)data = pid;
    return false;
}

/* Looks at threads: a thread group leader may be dead while one of its threads hangs. */
pid_t cgroup_stuck_pid(const struct cgroup *group)
{
    pid_t stuck = 0;
    enum cgroup_tree tree;
    if (any_tree(group, &tree))
        (void)for_each(group, tree == CGROUP_TREE_UNIFIED ? "cgroup.threads" : "tasks", visit_stuck,
                       &stuck);
    return stuck;
}

/* ---- sweeping ---- */

/* Maximum number of groups examined per directory; others are found the next time. */
#define SWEEP_MAX 512
/* One launch in 16 looks for stale groups, if other groups exist at all. */
#define SWEEP_BITS 4
#define SCATTER 2654435761u /* odd, for clocks that tick in round numbers */
/* Link count of a directory with one subdirectory. */
#define LINKS_WITH_ONE 3

/* A group is stale if its process has exited (its pid may have been reused) or has given it up.
 * /proc may be wrong about this if the process is in another pid namespace; the lock that
 * cgroup_open_dirs() takes is reliable. */
static bool is_stale(int dir_fd, const char *name)
{
    char left[CGROUP_NAME_MAX + sizeof "/" CGROUP_LEFT];
    pid_t pid;
    uint64_t start;
    if (!cgroup_text_name(name, &pid, &start))
        return false;
    (void)snprintf(left, sizeof left, "%s/" CGROUP_LEFT, name);
    return cgroup_start_time(pid) != start || faccessat(dir_fd, left, F_OK, 0) == 0;
}

static bool remove_stale(const struct cgroup_bases *bases, const char *name)
{
    struct cgroup group;
    cgroup_init(&group, bases->support.kind, bases->same_as);
    (void)snprintf(group.name, sizeof group.name, "%s", name);
    group.leaf_count = 1; /* so that all leaves are listed */
    bool removed = false;
    if (cgroup_open_dirs(&group, bases)) {
        (void)cgroup_kill(&group);
        removed = cgroup_remove_dirs(&group) == 0;
        if (!removed)
            cgroup_give_up(&group); /* the mark may have been removed while the group was busy */
    }
    cgroup_close_fds(&group);
    return removed;
}

int cgroup_sweep(void)
{
    autobases struct cgroup_bases bases;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    autofree struct cgroup_part *parts = calloc(SWEEP_MAX, sizeof *parts);
    int removed = 0;
    for (int tree = 0; tree < CGROUP_TREES && parts; tree++) {
        int dir = bases.dirs[tree];
        size_t count = dir >= 0 ? cgroup_list(dir, CGROUP_PREFIX, parts, SWEEP_MAX) : 0;
        for (size_t i = 0; i < count; i++)
            if (is_stale(dir, parts[i].name) && remove_stale(&bases, parts[i].name))
                removed++;
    }
    return removed;
}

void cgroup_sweep_rarely(const struct cgroup_bases *bases, unsigned luck)
{
    if (luck * SCATTER >> (32 - SWEEP_BITS) != 0)
        return;
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        struct stat status;
        if (bases->dirs[tree] < 0 || fstat(bases->dirs[tree], &status) < 0 ||
            status.st_nlink <= LINKS_WITH_ONE)
            continue;
        (void)cgroup_sweep();
        return;
    }
}
