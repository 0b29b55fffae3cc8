/* SPDX-License-Identifier: MIT */
/* What the kernel says about a process of brigd. */
#include "server/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "server/journal.h"

#define STAT_MAX 4096

/* When the machine was started, in seconds since 1970. */
static uint64_t boot_s(void)
{
    struct timespec wall, boot;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    return (uint64_t)(wall.tv_sec - boot.tv_sec);
}

/* Other users see the descriptors of a process only if it is dumpable. */
static uint64_t count_files(pid_t pid)
{
    char path[64];
    uint64_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    autodir DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    return count;
}

void process_measure(pid_t pid, struct journal_process *process)
{
    char path[64];
    bool whole;
    uint64_t user, system, start, size;
    int64_t pages;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    autofree char *text = proc_read(path, STAT_MAX, &whole);
    const char *rest = text ? strrchr(text, ')') : NULL; /* the name may have anything in it */
    /* proc_pid_stat(5): utime, stime, starttime, vsize and rss are fields 14, 15 and 22 to 24. */
    if (!rest || sscanf(rest,
                        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                        " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNd64,
                        &user, &system, &start, &size, &pages) != 5)
        return;
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    process->cpu_us = (user + system) * (1000000 / ticks);
    process->started_s = boot_s() + start / ticks;
    process->virtual_bytes = size;
    process->memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    process->open_files = count_files(pid);
}
