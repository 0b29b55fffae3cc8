/* SPDX-License-Identifier: MIT */
/* Processes as seen in /proc. */
#include "jail/cgroup/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"

/* More processes than this are not followed; a policy that needs it limits their number. */
#define TREE_MAX 4096
#define STAT_TEXT_MAX 1024

/* Indexes of the numbers after the state in /proc/PID/stat. */
enum { FIELD_PARENT = 0, FIELD_GROUP = 1, FIELD_TIMES = 10, TIMES = 4, FIELD_START = 18, FIELDS };

bool process_stat_parse(const char *text, struct process_stat *ret_stat)
{
    const char *at = strrchr(text, ')'); /* the name before it may contain any character */
    uint64_t fields[FIELDS] = {0};
    if (!at || strlen(at) < sizeof ") S" - 1)
        return false;
    struct process_stat stat = {.state = at[2]};
    at += sizeof ") S" - 1;
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    stat.parent = (pid_t)fields[FIELD_PARENT];
    stat.group = (pid_t)fields[FIELD_GROUP];
    stat.start = fields[FIELD_START];
    for (int i = 0; i < TIMES; i++)
        stat.ticks += fields[FIELD_TIMES + i];
    *ret_stat = stat;
    return true;
}

bool process_stat(pid_t pid, struct process_stat *ret_stat)
{
    char path[32], text[STAT_TEXT_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return cgroup_read(AT_FDCWD, path, text, sizeof text) > 0 && process_stat_parse(text, ret_stat);
}

static uint64_t to_us(uint64_t ticks)
{
    return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Appends the children of all threads of a process. */
static size_t add_children(pid_t pid, pid_t *pids, size_t count)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    autodir DIR *tasks = opendir(path);
    const struct dirent *task;
    while (tasks && (task = readdir(tasks))) {
        char children[320];
        if (task->d_name[0] == '.')
            continue;
        (void)snprintf(children, sizeof children, "/proc/%d/task/%s/children", pid, task->d_name);
        autofile FILE *file = fopen(children, "re");
        char child[16];
        while (file && count < TREE_MAX && fscanf(file, "%15s", child) == 1)
            pids[count++] = (pid_t)strtol(child, NULL, 10);
    }
    return count;
}

/* Visits a process and all its descendants, after their children were listed; stops when a visit
 * returns false. */
static void for_tree(pid_t root, bool (*visit)(pid_t root, pid_t pid, uint64_t *data),
                     uint64_t *data)
{
    autofree pid_t *pids = calloc(TREE_MAX, sizeof *pids);
    size_t count = pids ? 1 : 0;
    if (pids)
        pids[0] = root;
    for (size_t i = 0; i < count; i++) {
        count = add_children(pids[i], pids, count);
        if (!visit(root, pids[i], data))
            return;
    }
}

static bool add_ticks(pid_t root, pid_t pid, uint64_t *ticks)
{
    (void)root;
    struct process_stat stat;
    *ticks += process_stat(pid, &stat) ? stat.ticks : 0;
    return true;
}

uint64_t tree_cpu_us(pid_t root)
{
    uint64_t ticks = 0;
    for_tree(root, add_ticks, &ticks);
    return to_us(ticks);
}

uint64_t group_cpu_us(pid_t group)
{
    autodir DIR *proc = opendir("/proc");
    const struct dirent *entry;
    uint64_t ticks = 0;
    while (proc && (entry = readdir(proc))) {
        struct process_stat stat;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && process_stat(pid, &stat) && stat.group == group)
            ticks += stat.ticks;
    }
    return to_us(ticks);
}

static bool find_stuck(pid_t root, pid_t pid, uint64_t *stuck)
{
    struct process_stat stat;
    if (pid != root && process_stat(pid, &stat) && stat.state == 'D')
        *stuck = (uint64_t)pid;
    return *stuck == 0;
}

pid_t tree_stuck_pid(pid_t root)
{
    uint64_t stuck = 0;
    for_tree(root, find_stuck, &stuck);
    return (pid_t)stuck;
}

static bool kill_below(pid_t root, pid_t pid, uint64_t *data)
{
    (void)data;
    if (pid != root)
        (void)kill(pid, SIGKILL);
    return true;
}

void tree_kill(pid_t root)
{
    for_tree(root, kill_below, NULL);
}
