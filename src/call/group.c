/* SPDX-License-Identifier: MIT */
/* The processes of a call without namespaces: one process group, which the filter keeps them in. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "call/call.h"
#include "jail/sys.h"

#define STAT_TEXT_MAX 1024

/* The leader is a child of ours that nobody has reaped, so its number is nobody else's. It may not
 * lead the group yet, so it is told by itself, too. */
void group_kill(const struct brig_call *call, int signal)
{
    if (call->pid <= 0)
        return;
    (void)kill(-call->pid, signal);
    if (call->pidfd >= 0)
        (void)SYS(pidfd_send_signal, call->pidfd, signal, 0, 0);
    if (signal == SIGKILL && call->limits.group)
        (void)cgroup_kill(call->limits.group);
}

/* Of the numbers in /proc/PID/stat behind the state: which are the group and the times. */
enum { FIELD_GROUP = 1, FIELD_TIMES = 10, FIELDS = 14 };

/* The name, which may hold anything, ends with the last parenthesis. */
static bool parse_stat(const char *text, uint64_t fields[FIELDS])
{
    const char *rest = strrchr(text, ')');
    if (!rest || strlen(rest) < 4)
        return false;
    rest += 3; /* ") S" */
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoull(rest, &end, 10); /* what is negative is no group of ours */
        if (end == rest)
            return false;
        rest = end;
    }
    return true;
}

static bool read_stat(int proc, const char *pid, uint64_t *ret_group, uint64_t *ret_ticks)
{
    char path[64], text[STAT_TEXT_MAX];
    uint64_t fields[FIELDS];
    (void)snprintf(path, sizeof path, "%s/stat", pid);
    autoclose int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = 0;
    if (!parse_stat(text, fields))
        return false;
    *ret_group = fields[FIELD_GROUP];
    *ret_ticks = 0;
    for (int i = FIELD_TIMES; i < FIELDS; i++)
        *ret_ticks += fields[i];
    return true;
}

uint64_t group_cpu_us(pid_t group)
{
    autodir DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    uint64_t total = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        uint64_t found = 0, ticks = 0;
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_stat(dirfd(proc), entry->d_name, &found, &ticks) && found == (uint64_t)group)
            total += ticks;
    }
    return total * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}
