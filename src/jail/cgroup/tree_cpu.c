/* SPDX-License-Identifier: MIT */
/* A process tree as /proc shows it: what it used, and its end, where no cgroup or namespace does it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/job/job.h"

/* More processes than this are not followed; a policy that cares limits them. */
#define TREE_MAX 4096

/* Of the numbers in /proc/PID/stat behind the state: which are times, and how many. */
#define STAT_FIRST_TIME 10
#define STAT_TIMES 4

#define STAT_TEXT_MAX 1024

/* Reads /proc/PID/stat and returns it from the state on: "PID (NAME) STATE", then numbers; the name
 * may hold anything. NULL if there is no such process. */
static char *read_state(pid_t pid, char text[static STAT_TEXT_MAX])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    autofile FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t length = fread(text, 1, STAT_TEXT_MAX - 1, file);
    text[length] = 0;
    char *at = strrchr(text, ')');
    return at && strlen(at) >= sizeof ") S" - 1 ? at + 2 : NULL;
}

/* utime, stime and those of waited-for children, in clock ticks. */
static uint64_t process_ticks(pid_t pid)
{
    char text[STAT_TEXT_MAX];
    char *at = read_state(pid, text);
    if (!at)
        return 0;
    at++;
    uint64_t ticks = 0;
    for (int i = 0; i < STAT_FIRST_TIME + STAT_TIMES; i++) {
        uint64_t value = strtoull(at, &at, 10);
        if (i >= STAT_FIRST_TIME)
            ticks += value;
    }
    return ticks;
}

/* Appends the children of pid. Only the main thread of init and most programs forks; children of
 * other threads are found through their own task directories. */
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

uint64_t tree_cpu_us(pid_t root)
{
    autofree pid_t *pids = calloc(TREE_MAX, sizeof *pids);
    if (!pids)
        return 0;
    uint64_t ticks = 0;
    size_t count = 1;
    pids[0] = root;
    for (size_t i = 0; i < count; i++) {
        ticks += process_ticks(pids[i]);
        count = add_children(pids[i], pids, count);
    }
    return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

pid_t tree_stuck_pid(pid_t root)
{
    autofree pid_t *pids = calloc(TREE_MAX, sizeof *pids);
    if (!pids)
        return 0;
    size_t count = 1;
    pids[0] = root;
    for (size_t i = 0; i < count; i++) {
        char text[STAT_TEXT_MAX];
        const char *state = read_state(pids[i], text);
        if (i > 0 && state && *state == 'D')
            return pids[i];
        count = add_children(pids[i], pids, count);
    }
    return 0;
}

void tree_kill(pid_t root)
{
    autofree pid_t *pids = calloc(TREE_MAX, sizeof *pids);
    if (!pids)
        return;
    size_t count = 1;
    pids[0] = root;
    for (size_t i = 0; i < count; i++) {
        count = add_children(pids[i], pids, count);
        if (i > 0)
            (void)kill(pids[i], SIGKILL);
    }
}
