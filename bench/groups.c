/* SPDX-License-Identifier: MIT */
/* What the kernel alone takes for the groups of a jail with limits on memory, CPU and processes: makes
 * them as brig does, with a process in them, and removes them: groups on|off. With `off` it does all
 * but that, so that the difference is what they cost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TREES_MAX 3
#define FILES_MAX 5

struct file {
    const char *name, *text;
    bool may_lack; /* a kernel may be built without */
};

/* A hierarchy, and what is written into a group of it. */
struct tree {
    const char *controller; /* of v1, where it has a hierarchy; NULL: v2 */
    struct file files[FILES_MAX];
    int base; /* where groups can be made */
};

static struct tree v1[TREES_MAX] = {
    {.controller = "memory",
     .files = {{"memory.limit_in_bytes", "268435456", false},
               {"memory.memsw.limit_in_bytes", "268435456", true}}},
    {.controller = "cpu", .files = {{"cpu.cfs_quota_us", "100000", false}}},
    {.controller = "pids", .files = {{"pids.max", "100", false}}},
};
static struct tree v2[] = {
    {.files = {{"memory.max", "268435456", false},
               {"memory.swap.max", "0", true},
               {"memory.oom.group", "1", true},
               {"pids.max", "100", false},
               {"cpu.max", "100000 100000", false}}},
};

static void die(const char *what)
{
    fprintf(stderr, "groups: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- Where groups can be made ---- */

/* Our own group in a hierarchy, as its line in /proc/self/cgroup says. */
static void read_own(const char *controller, char *path, size_t size)
{
    char line[4096], list[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        die("/proc/self/cgroup");
    *path = '\0';
    while (fgets(line, sizeof line, file)) {
        char *begin = strchr(line, ':'), *end = begin ? strchr(begin + 1, ':') : NULL;
        if (!end)
            continue;
        *end++ = '\0';
        end[strcspn(end, "\n")] = '\0';
        snprintf(list, sizeof list, ",%s,", begin + 1);
        char wanted[64];
        snprintf(wanted, sizeof wanted, ",%s,", controller ? controller : "");
        if (strstr(list, wanted))
            snprintf(path, size, "/sys/fs/cgroup%s%s%s", controller ? "/" : "",
                     controller ? controller : "", strcmp(end, "/") == 0 ? "" : end);
    }
    fclose(file);
}

/* Of v2 it must hand the controllers on. */
static bool is_fit(const struct tree *tree, int dir)
{
    char text[256];
    if (faccessat(dir, "cgroup.procs", W_OK, 0) < 0 || faccessat(dir, ".", W_OK, 0) < 0)
        return false;
    if (tree->controller)
        return true;
    int fd = openat(dir, "cgroup.subtree_control", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, "memory") && strstr(text, "cpu") && strstr(text, "pids");
}

static void find_base(struct tree *tree)
{
    char path[4096];
    for (read_own(tree->controller, path, sizeof path); *path; *strrchr(path, '/') = '\0') {
        if (strcmp(path, "/sys/fs") == 0)
            break;
        tree->base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (tree->base >= 0 && is_fit(tree, tree->base))
            return;
        close(tree->base);
    }
    errno = EACCES;
    die(tree->controller ? tree->controller : "cgroup2");
}

/* ---- A group ---- */

static int open_in(const struct tree *tree, const char *group, const char *name, int flags)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", group, name);
    return openat(tree->base, path, flags | O_CLOEXEC);
}

static void make_in(const struct tree *tree, const char *group)
{
    if (mkdirat(tree->base, group, 0700) < 0)
        die(group);
}

static void remove_in(const struct tree *tree, const char *group)
{
    if (unlinkat(tree->base, group, AT_REMOVEDIR) < 0)
        die(group);
}

static void limit(const struct tree *tree, const char *group)
{
    for (const struct file *file = tree->files; file < tree->files + FILES_MAX && file->name;
         file++) {
        int fd = open_in(tree, group, file->name, O_WRONLY);
        if (fd < 0 && errno == ENOENT && file->may_lack)
            continue;
        if (fd < 0 || write(fd, file->text, strlen(file->text)) < 0)
            die(file->name);
        close(fd);
    }
}

/* A process that is cloned into one, if it is given, writes itself into others, and ends. */
static void run_process(int into, const int *joins, size_t count)
{
    struct clone_args args = {.flags = into >= 0 ? CLONE_INTO_CGROUP : 0,
                              .exit_signal = SIGCHLD,
                              .cgroup = (uint64_t)(into >= 0 ? into : 0)};
    int status;
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0)
        die("clone3");
    if (pid == 0) {
        bool joined = true;
        for (size_t i = 0; i < count; i++)
            joined = write(joins[i], "0", 1) == 1 && joined;
        _exit(joined ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("a process in the group");
}

static void run_in_groups(const struct tree *trees, size_t count, const char *group)
{
    bool unified = !trees[0].controller;
    char leaf[128];
    int joins[TREES_MAX] = {-1, -1, -1}, into = -1;
    snprintf(leaf, sizeof leaf, "%s/main", group);
    for (size_t i = 0; i < count; i++)
        make_in(&trees[i], group);
    for (size_t i = 0; i < count; i++)
        limit(&trees[i], group);
    if (unified) {
        make_in(&trees[0], leaf);
        into = open_in(&trees[0], leaf, ".", O_PATH | O_DIRECTORY);
    }
    for (size_t i = 0; i < count && !unified; i++)
        joins[i] = open_in(&trees[i], group, "tasks", O_WRONLY);
    run_process(into, joins, unified ? 0 : count);
    if (unified)
        remove_in(&trees[0], leaf);
    for (size_t i = 0; i < count; i++)
        remove_in(&trees[i], group);
}

int main(int argc, char **argv)
{
    bool unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    struct tree *trees = unified ? v2 : v1;
    size_t count = unified ? 1 : TREES_MAX;
    char group[64];
    if (argc != 2 || (strcmp(argv[1], "on") != 0 && strcmp(argv[1], "off") != 0)) {
        fprintf(stderr, "usage: groups on|off\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        find_base(&trees[i]);
    snprintf(group, sizeof group, "bench-groups-%d", (int)getpid());
    if (strcmp(argv[1], "on") == 0)
        run_in_groups(trees, count, group);
    else
        run_process(-1, NULL, 0);
    return 0;
}
