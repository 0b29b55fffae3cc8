/* SPDX-License-Identifier: MIT */
/* Groups: choosing a place, naming, creating and removing them. */
#include "jail/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "jail/cgroup/cgroup_driver.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
/* How many names are tried; they contain nanoseconds, so collisions are rare. */
#define NAME_TRIES 64
#define NAME_NUMBERS 1000000000u
/* The last process may be about to leave: waits of 100 µs, doubled this many times, 0.4 s in
 * all. */
#define LEAVE_FIRST_NS 100000
#define LEAVE_ROUNDS 12

void cgroup_init(struct cgroup *group, enum cgroup_kind kind, const unsigned char *same_as)
{
    *group = (struct cgroup){.kind = kind, .main_fd = -1, .leaf_most = CGROUP_LEAF_MAX};
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        group->dirs[tree] = -1;
        group->same_as[tree] = same_as[tree];
    }
}

void cgroup_close_fds(struct cgroup *group)
{
    cgroup_joined(group);
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        close_fd(&group->dirs[tree]);
}

struct cgroup cgroup_opened(const struct cgroup *group)
{
    struct cgroup opened = *group;
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (group->trees & 1u << tree)
            opened.dirs[tree] =
                openat(group->parent->dirs[tree], group->name, OPEN_DIR | O_CLOEXEC);
    return opened;
}

void cgroup_opened_done(struct cgroup *opened)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (opened->trees & 1u << tree && opened->dirs[tree] >= 0)
            close_fd(&opened->dirs[tree]);
}

static struct cgroup *allocate(enum cgroup_kind kind, const unsigned char *same_as)
{
    struct cgroup *group = malloc(sizeof *group);
    if (group)
        cgroup_init(group, kind, same_as);
    return group;
}

/* ---- directories ---- */

/* The lock shows that the group has an owner; see cgroup_sweep(). */
static int open_dir(int base_fd, const char *name)
{
    int fd = openat(base_fd, name, OPEN_DIR | O_CLOEXEC);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd < 0 ? -errno : fd;
}

/* If the system does not allow to create groups, limits are missing, but it is not an error. */
static bool is_refusal(int result)
{
    return result == -EACCES || result == -EPERM || result == -EROFS;
}

/* Creates the group below `bases` in those hierarchies of `trees` in which it has no directory
 * yet. */
static int make_dirs(struct cgroup *group, const int bases[CGROUP_TREES], unsigned trees)
{
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++) {
        unsigned place = group->same_as[tree];
        if (!(trees & 1u << tree) || bases[place] < 0 || group->dirs[place] >= 0)
            continue;
        /* Others must not open it: a process that can open it can lock it, and appear to be its
         * owner. */
        int result = mkdirat(bases[place], group->name, 0700) < 0 ? -errno : 0;
        if (is_refusal(result))
            continue;
        if (result == 0 && (result = open_dir(bases[place], group->name)) < 0)
            (void)unlinkat(bases[place], group->name, AT_REMOVEDIR);
        if (result < 0)
            return result;
        group->dirs[place] = result;
    }
    return 0;
}

bool cgroup_open_dirs(struct cgroup *group, const struct cgroup_bases *bases)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        if (bases->dirs[tree] < 0)
            continue;
        int fd = openat(bases->dirs[tree], group->name, OPEN_DIR | O_CLOEXEC);
        group->dirs[tree] = fd;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
            return false;
    }
    return true;
}

/* Removes the directory through "..", because only its fd is kept. If the name is gone, another
 * process has swept the group; or, on v1, the owning user has renamed it, and then it still has its
 * files. */
static int remove_self(int dir_fd, const char *name)
{
    char up[NAME_MAX + sizeof "../"], path[PATH_LENGTH_MAX + 1];
    (void)snprintf(up, sizeof up, "../%s", name);
    if (unlinkat(dir_fd, up, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    if (faccessat(dir_fd, "cgroup.procs", F_OK, 0) < 0)
        return 0;
    const char *slash = path_of_fd(dir_fd, path) ? strrchr(path, '/') : NULL;
    if (!slash || strlen(slash + 1) > NAME_MAX)
        return -ENOENT;
    (void)snprintf(up, sizeof up, "../%s", slash + 1);
    return unlinkat(dir_fd, up, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

static int remove_dir(int dir_fd, const char *name, bool has_main)
{
    if (has_main) /* usually the only leaf */
        (void)unlinkat(dir_fd, CGROUP_MAIN, AT_REMOVEDIR);
    int result = remove_self(dir_fd, name);
    if (result < 0 && cgroup_remove_below(dir_fd) == 0)
        result = remove_self(dir_fd, name);
    return result;
}

int cgroup_remove_dirs(struct cgroup *group)
{
    int result = 0;
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        if (group->dirs[tree] < 0)
            continue;
        int removed =
            remove_dir(group->dirs[tree], group->name, group->kind == CGROUP_V2 && !group->parent);
        if (removed < 0)
            result = removed;
        else
            close_fd(&group->dirs[tree]);
    }
    return result;
}

/* ---- creating ---- */

/* Threads create groups concurrently and without coordination: the number in the name is a guess,
 * and mkdir shows whether it is free. */
static int make_named_dirs(struct cgroup *group, const struct cgroup_bases *bases, unsigned trees,
                           unsigned number)
{
    pid_t pid = getpid();
    uint64_t start = cgroup_start_time(pid);
    int result = -EEXIST;
    for (unsigned try = 0; try < NAME_TRIES && result == -EEXIST; try++) {
        (void)snprintf(group->name, sizeof group->name, CGROUP_PREFIX "%d-%" PRIu64 "-%u", (int)pid,
                       start, (number + try) % NAME_NUMBERS);
        result = make_dirs(group, bases->dirs, trees);
        if (result == -EEXIST)
            (void)cgroup_remove_dirs(group);
    }
    return result;
}

static int limit_v1(struct cgroup *group, const struct cgroup_limits *limits, unsigned *missing,
                    struct brig_error *err)
{
    int result = cgroup_v1_limit(group, limits, missing, err);
    return result < 0 ? result : cgroup_v1_open_joins(group, err);
}

static int limit_v2(struct cgroup *group, const struct cgroup_bases *bases,
                    const struct cgroup_limits *limits, unsigned *missing, struct brig_error *err)
{
    int dir = cgroup_dir(group, CGROUP_TREE_UNIFIED);
    int result = cgroup_v2_limit(group, bases, limits, missing, err);
    if (result < 0)
        return result;
    if (mkdirat(dir, CGROUP_MAIN, 0700) < 0 ||
        (group->main_fd = openat(dir, CGROUP_MAIN, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make a cgroup in '%s/%s'",
                         bases->support.where, group->name);
    return 0;
}

/* Returns the v1 hierarchies for a group: killing needs the unified hierarchy or the freezer, and
 * CPU time needs the unified hierarchy or cpuacct. */
static unsigned choose_trees(const struct cgroup_limits *limits)
{
    unsigned trees = cgroup_v1_trees(limits);
    if (limits->kill)
        trees |= 1u << CGROUP_TREE_UNIFIED | 1u << CGROUP_TREE_FREEZER;
    if (limits->cpu_time)
        trees |= 1u << CGROUP_TREE_UNIFIED | 1u << CGROUP_TREE_CPUACCT;
    if (limits->freeze)
        trees |= 1u << CGROUP_TREE_UNIFIED | 1u << CGROUP_TREE_FREEZER;
    return trees;
}

static bool has_dir(const struct cgroup *group)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (group->dirs[tree] >= 0)
            return true;
    return false;
}

static bool has_time(const struct cgroup *group)
{
    return cgroup_dir(group, CGROUP_TREE_UNIFIED) >= 0 ||
           cgroup_dir(group, CGROUP_TREE_CPUACCT) >= 0;
}

static int make(struct cgroup *group, const struct cgroup_bases *bases,
                const struct cgroup_limits *limits, unsigned number, unsigned *missing,
                struct brig_error *err)
{
    unsigned trees =
        bases->support.kind == CGROUP_V2 ? 1u << CGROUP_TREE_UNIFIED : choose_trees(limits);
    int result = make_named_dirs(group, bases, trees, number);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot make a cgroup in '%s'",
                         bases->support.where);
    if (!has_dir(group)) { /* every mkdir was refused */
        group->kind = CGROUP_NONE;
        *missing = cgroup_wanted(limits);
        return 0;
    }
    return group->kind == CGROUP_V2 ? limit_v2(group, bases, limits, missing, err)
                                    : limit_v1(group, limits, missing, err);
}

/* Creates the group in the found directories. */
static int make_in(struct cgroup *group, const struct cgroup_bases *bases,
                   const struct cgroup_limits *limits, unsigned *missing, struct brig_error *err)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int result = make(group, bases, limits, (unsigned)now.tv_nsec, missing, err);
    if (result < 0)
        return result;
    cgroup_sweep_rarely(bases, (unsigned)now.tv_nsec);
    if (limits->cpu_time && !has_time(group))
        *missing |= CGROUP_TIME;
    return 0;
}

int cgroup_new(const struct cgroup_limits *limits, struct cgroup **ret_group, unsigned *ret_missing,
               struct brig_error *err)
{
    autobases struct cgroup_bases bases;
    cgroup_find(choose_trees(limits), &bases);
    struct cgroup *group = allocate(bases.support.kind, bases.same_as);
    if (!group)
        return brig_fail_nomem(err);
    if (limits->freeze)
        group->leaf_most = CGROUP_COMMANDS_MAX;
    unsigned missing = cgroup_wanted(limits) | (limits->cpu_time ? CGROUP_TIME : 0);
    if (group->kind != CGROUP_NONE) {
        missing = 0;
        int result = make_in(group, &bases, limits, &missing, err);
        if (result < 0) {
            cgroup_free(group);
            return result;
        }
    }
    *ret_missing = missing;
    *ret_group = group;
    return 0;
}

/* ---- leaves ---- */

/* v1: if a leaf has a limit that its group does not have, the group is added to that hierarchy. */
static int widen(struct cgroup *group, unsigned trees)
{
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++) {
        if (cgroup_dir(group, tree) >= 0)
            trees &= ~(1u << tree);
        if (trees & 1u << tree)
            group->widened |= 1u << group->same_as[tree];
    }
    if (trees == 0)
        return 0;
    autobases struct cgroup_bases bases;
    cgroup_find(trees, &bases);
    return make_dirs(group, bases.dirs, trees);
}

static int make_leaf(struct cgroup *leaf, const struct cgroup_limits *limits, unsigned *missing,
                     struct brig_error *err)
{
    struct cgroup *group = leaf->parent;
    unsigned trees = 1u << CGROUP_TREE_UNIFIED;
    int result = 0;
    if (group->kind == CGROUP_V1) {
        trees = ~0u; /* all hierarchies of its group */
        result = widen(group, cgroup_v1_trees(limits));
    }
    if (result == 0)
        result = make_dirs(leaf, group->dirs, trees);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot make a cgroup below '%s'",
                         group->name);
    return group->kind == CGROUP_V2 ? cgroup_v2_limit_leaf(leaf, limits, missing, err)
                                    : cgroup_v1_limit(leaf, limits, missing, err);
}

/* From now on the leaf's directories are open only while they are used. */
static void close_leaf(struct cgroup *leaf)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (leaf->dirs[tree] >= 0) {
            leaf->trees |= 1u << tree;
            close_fd(&leaf->dirs[tree]);
        }
}

int cgroup_new_leaf(struct cgroup *group, const struct cgroup_limits *limits,
                    struct cgroup **ret_leaf, unsigned *ret_missing, struct brig_error *err)
{
    if (group->leaf_count >= group->leaf_most)
        return brig_fail(err, BRIG_E_STATE, 0, "at most %u tools can have limits of their own",
                         group->leaf_most);
    struct cgroup *leaf = allocate(group->kind, group->same_as);
    if (!leaf)
        return brig_fail_nomem(err);
    unsigned missing = group->kind == CGROUP_NONE ? cgroup_wanted(limits) : 0;
    leaf->parent = group;
    (void)snprintf(leaf->name, sizeof leaf->name, CGROUP_LEAF_PREFIX "%u", group->leaf_next);
    int result = group->kind == CGROUP_NONE ? 0 : make_leaf(leaf, limits, &missing, err);
    close_leaf(leaf);
    group->leaf_count++;
    group->leaf_next++;
    if (result < 0) {
        cgroup_free(leaf);
        return result;
    }
    *ret_leaf = leaf;
    *ret_missing = missing;
    return 0;
}

int cgroup_move(const struct cgroup *leaf, pid_t pid)
{
    autoopened struct cgroup opened = cgroup_opened(leaf);
    int result = 0;
    for (int tree = 0; tree < CGROUP_TREES && result == 0; tree++)
        if (opened.trees & 1u << tree)
            result = cgroup_write_number(opened.dirs[tree], "cgroup.procs", (uint64_t)pid);
    return result;
}

/* ---- joining ---- */

/* A v2 leaf has no `main`: it has no leaves below. On v1 the files are written by the child, see
 * cgroup_v1_open_joins(). */
int cgroup_join_leaf(const struct cgroup *leaf, struct cgroup_joining *ret_joining,
                     struct brig_error *err)
{
    *ret_joining = (struct cgroup_joining){.clone_fd = -1};
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        char path[CGROUP_NAME_MAX + sizeof "/tasks"];
        bool unified = tree == CGROUP_TREE_UNIFIED;
        if (!(leaf->trees & 1u << tree))
            continue;
        (void)snprintf(path, sizeof path, "%s%s", leaf->name, unified ? "" : "/tasks");
        int fd = openat(leaf->parent->dirs[tree], path,
                        unified ? OPEN_DIR | O_CLOEXEC : O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the command's cgroup");
        if (unified)
            ret_joining->clone_fd = fd;
        else
            ret_joining->join_fds[ret_joining->join_count++] = fd;
    }
    return 0;
}

enum cgroup_kind cgroup_kind(const struct cgroup *group)
{
    return group->kind;
}

int cgroup_clone_fd(const struct cgroup *group)
{
    bool has_main = group->kind == CGROUP_V2 && !group->parent;
    return has_main ? group->main_fd : cgroup_dir(group, CGROUP_TREE_UNIFIED);
}

size_t cgroup_join_fds(const struct cgroup *group, int fds[CGROUP_JOIN_MAX])
{
    _Static_assert(CGROUP_TREES <= CGROUP_JOIN_MAX, "each hierarchy has one at most");
    for (size_t i = 0; i < group->join_count; i++)
        fds[i] = group->joins[i];
    return group->join_count;
}

int cgroup_open_procs(const struct cgroup *group)
{
    int dir = cgroup_clone_fd(group);
    return dir < 0 ? -1 : openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

void cgroup_joined(struct cgroup *group)
{
    for (int tree = 0; tree < (int)ARRAY_LENGTH(group->dirs); tree++)
        group->dirs[tree] = fds_keep_high(group->dirs[tree]);
    close_fd(&group->main_fd);
    while (group->join_count > 0)
        (void)close(group->joins[--group->join_count]);
}

/* ---- counters ---- */

void cgroup_usage(const struct cgroup *group, struct cgroup_usage *ret_usage)
{
    autoopened struct cgroup opened = cgroup_opened(group);
    switch (group->kind) {
    case CGROUP_NONE:
        *ret_usage = (struct cgroup_usage){0};
        break;
    case CGROUP_V1:
        cgroup_v1_usage(&opened, ret_usage);
        break;
    case CGROUP_V2:
        cgroup_v2_usage(&opened, ret_usage);
        break;
    }
}

bool cgroup_cpu_us(const struct cgroup *group, uint64_t *ret_us)
{
    autoopened struct cgroup opened = cgroup_opened(group);
    int unified = cgroup_dir(&opened, CGROUP_TREE_UNIFIED);
    int cpuacct = cgroup_dir(&opened, CGROUP_TREE_CPUACCT);
    uint64_t used_ns;
    if (unified >= 0) {
        char text[CGROUP_TEXT_MAX];
        return cgroup_read(unified, "cpu.stat", text, sizeof text) > 0 &&
               cgroup_text_number(text, "usage_usec", ret_us);
    }
    if (cpuacct < 0 || !cgroup_read_number(cpuacct, "cpuacct.usage", &used_ns))
        return false;
    *ret_us = used_ns / 1000;
    return true;
}

void cgroup_current(const struct cgroup *group, uint64_t *ret_memory_bytes, uint64_t *ret_pids)
{
    autoopened struct cgroup opened = cgroup_opened(group);
    bool v2 = group->kind == CGROUP_V2;
    int memory = cgroup_dir(&opened, v2 ? CGROUP_TREE_UNIFIED : CGROUP_TREE_MEMORY);
    int pids = cgroup_dir(&opened, v2 ? CGROUP_TREE_UNIFIED : CGROUP_TREE_PIDS);
    *ret_memory_bytes = *ret_pids = 0;
    if (memory >= 0)
        (void)cgroup_read_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes",
                                 ret_memory_bytes);
    if (pids >= 0)
        (void)cgroup_read_number(pids, "pids.current", ret_pids);
}

/* ---- removing ---- */

void cgroup_give_up(const struct cgroup *group)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (group->dirs[tree] >= 0)
            (void)mkdirat(group->dirs[tree], CGROUP_LEFT, 0700);
}

/* Adds the leaf's events to the group, because they happened to the jail. */
static void free_leaf(struct cgroup *leaf)
{
    struct cgroup *group = leaf->parent;
    struct cgroup_usage usage;
    cgroup_usage(leaf, &usage);
    struct cgroup opened = cgroup_opened(leaf);
    int result = cgroup_remove_dirs(&opened);
    cgroup_opened_done(&opened);
    if (result == 0) { /* otherwise it still exists and is counted with the group */
        group->leaf_count--;
        group->past.oom_kills += usage.oom_kills;
        group->past.pids_refused += usage.pids_refused;
        group->past.throttled_us += usage.throttled_us;
    }
    free(leaf);
}

/* A process is still in its group for a moment after its parent was notified of its exit. */
static int remove_patiently(struct cgroup *group)
{
    struct timespec wait = {.tv_nsec = LEAVE_FIRST_NS};
    int result = cgroup_remove_dirs(group);
    for (int round = 0; round < LEAVE_ROUNDS && result == -EBUSY; round++) {
        (void)nanosleep(&wait, NULL);
        wait.tv_nsec *= 2;
        result = cgroup_remove_dirs(group);
    }
    return result;
}

void cgroup_free(struct cgroup *group)
{
    if (!group)
        return;
    if (group->parent) {
        free_leaf(group);
        return;
    }
    cgroup_joined(group);
    if (remove_patiently(group) < 0)
        cgroup_give_up(group);
    cgroup_close_fds(group);
    free(group);
}

/* ---- probing ---- */

static void try_out(struct cgroup_support *support)
{
    static const struct cgroup_limits limits = {
        .memory_bytes = 1 << 30,
        .cpu_percent = 100,
        .pids = 1000,
        .io_read_bytes = 1 << 30,
        .io_write_bytes = 1 << 30,
        .kill = true,
        .cpu_time = true,
    };
    struct brig_error err = {0};
    struct cgroup *group = NULL;
    unsigned missing = 0;
    if (cgroup_new(&limits, &group, &missing, &err) < 0) {
        support->kind = CGROUP_NONE;
        support->resources = 0;
        (void)snprintf(support->reason, sizeof support->reason, "%s", err.message);
        return;
    }
    support->kind = group->kind;
    support->resources = cgroup_wanted(&limits) & ~missing;
    if (group->kind == CGROUP_NONE && support->reason[0] == '\0')
        (void)snprintf(support->reason, sizeof support->reason,
                       "making a group in '%.160s' is not allowed", support->where);
    support->kill = cgroup_dir(group, CGROUP_TREE_UNIFIED) >= 0;
    cgroup_free(group);
}

void cgroup_probe(bool try, struct cgroup_support *ret_support)
{
    autobases struct cgroup_bases bases;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    *ret_support = bases.support;
    ret_support->kill = bases.dirs[CGROUP_TREE_UNIFIED] >= 0;
    if (try && ret_support->kind != CGROUP_NONE)
        try_out(ret_support);
}

/* ---- joining another process's group ---- */

/* For a jail that another brig process supervises. That process has the group's directories open,
 * and they are reopened through its /proc/PID/fd: looking up paths would depend on the mounts here.
 * Joining works as in a run: the entering process is cloned into the group, or writes itself into
 * `tasks`. */

void cgroup_publish(const struct cgroup *group, struct cgroup_numbers *ret_numbers)
{
    _Static_assert(CGROUP_TREES <= CGROUP_JOIN_MAX, "each hierarchy has one at most");
    *ret_numbers = (struct cgroup_numbers){0};
    for (int tree = 0; tree < CGROUP_JOIN_MAX; tree++)
        ret_numbers->dirs[tree] = tree < CGROUP_TREES ? group->dirs[tree] : -1;
    ret_numbers->has_main = group->kind == CGROUP_V2;
}

/* Opens a file, or with "." the directory itself, in a directory that the process has open. */
static int open_there(int process, int number, const char *name, int flags, struct brig_error *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "fd/%d", number);
    autoclose int dir = openat(process, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir < 0 ? -1 : openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno,
                         "cannot open the group that has the run's limits");
    return fd;
}

int cgroup_open_published(int process, const struct cgroup_numbers *numbers,
                          struct cgroup_joining *ret_joining, struct brig_error *err)
{
    *ret_joining = (struct cgroup_joining){.clone_fd = -1};
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        if (numbers->dirs[tree] < 0)
            continue;
        bool unified = tree == CGROUP_TREE_UNIFIED;
        const char *name = !unified ? "tasks" : numbers->has_main ? CGROUP_MAIN : ".";
        int fd = open_there(process, numbers->dirs[tree], name,
                            unified ? O_RDONLY | O_DIRECTORY : O_WRONLY, err);
        if (fd < 0)
            return fd;
        if (unified)
            ret_joining->clone_fd = fd;
        else
            ret_joining->join_fds[ret_joining->join_count++] = fd;
    }
    return 0;
}
