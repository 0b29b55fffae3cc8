/* SPDX-License-Identifier: MIT */
/* How many executions this machine has room for. */
#include "server/executor/capacity.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"

#define OTHER_FILES 64 /* channels, frames, zygotes, and while a jail is made */
#define JAILS_MIN 2
#define TEXT_MAX 8192
#define CGROUP_ROOT "/sys/fs/cgroup"

size_t capacity_jails(uint64_t open_files)
{
    uint64_t jails =
        open_files > OTHER_FILES ? (open_files - OTHER_FILES) / CAPACITY_FILES_PER_JAIL : 0;
    return jails < JAILS_MIN ? JAILS_MIN : jails > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)jails;
}

size_t capacity_places(size_t running, size_t most, uint64_t free_bytes, uint64_t reserve)
{
    uint64_t more = free_bytes > reserve ? (free_bytes - reserve) / CAPACITY_BYTES_PER_JAIL : 0;
    size_t places = more > most || running + more > most ? most : running + (size_t)more;
    return places > 0 ? places : 1;
}

/* Returns the number after a word at the beginning of a line of a file, or UINT64_MAX. */
static uint64_t read_number(const char *directory, const char *name, const char *word)
{
    char path[PATH_MAX];
    bool whole;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    autofree char *text = proc_read(path, TEXT_MAX, &whole);
    const char *at = text;
    while (at && !str_starts_with(at, word))
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    if (!at)
        return UINT64_MAX;
    char *end;
    unsigned long long number = strtoull(at + strlen(word), &end, 10);
    return end == at + strlen(word) ? UINT64_MAX : number;
}

/* Page cache that was not used of late can be given back. */
static uint64_t free_in_cgroup(const char *directory)
{
    uint64_t most = read_number(directory, "memory.max", "");
    uint64_t used = read_number(directory, "memory.current", "");
    uint64_t cache = read_number(directory, "memory.stat", "inactive_file ");
    if (most == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    used -= cache < used ? cache : 0;
    return used < most ? most - used : 0;
}

static unsigned percent_used(uint64_t free_bytes, uint64_t all)
{
    if (free_bytes == UINT64_MAX || all == UINT64_MAX || all < 100)
        return 0;
    return free_bytes >= all ? 0 : (unsigned)((all - free_bytes) / (all / 100));
}

/* The limits of all cgroups above apply, too. Also gives the largest share that is in use. */
static uint64_t free_in_cgroups(unsigned *ret_percent)
{
    char directory[PATH_MAX];
    bool whole;
    autofree char *text = proc_read("/proc/self/cgroup", TEXT_MAX, &whole);
    const char *own = text ? strstr(text, "0::/") : NULL;
    uint64_t least = UINT64_MAX;
    *ret_percent = 0;
    if (!own)
        return least;
    own += strlen("0::");
    (void)snprintf(directory, sizeof directory, CGROUP_ROOT "%.*s", (int)strcspn(own, "\n"), own);
    while (strlen(directory) > strlen(CGROUP_ROOT)) {
        uint64_t here = free_in_cgroup(directory);
        unsigned percent = percent_used(here, read_number(directory, "memory.max", ""));
        least = here < least ? here : least;
        *ret_percent = percent > *ret_percent ? percent : *ret_percent;
        *strrchr(directory, '/') = '\0';
    }
    return least;
}

unsigned capacity_memory_percent(void)
{
    unsigned group = 0;
    unsigned machine = percent_used(read_number("/proc", "meminfo", "MemAvailable:"),
                                    read_number("/proc", "meminfo", "MemTotal:"));
    (void)free_in_cgroups(&group);
    return group > machine ? group : machine;
}

uint64_t capacity_free_memory(void)
{
    uint64_t kib = read_number("/proc", "meminfo", "MemAvailable:");
    uint64_t machine = kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
    unsigned percent;
    uint64_t group = free_in_cgroups(&percent);
    return group < machine ? group : machine;
}
