/* SPDX-License-Identifier: MIT */
/* Which runs go on in a jail. */
#include "cli/runs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "home/home.h"

void runs_done(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        attach_done(&runs->items[i]);
    runs->count = 0;
}

/* What is not to be entered is passed over: it may have ended, or be somebody else's. */
static void add(struct runs *runs, pid_t pid, const char *jail, uid_t owner)
{
    struct attach entry;
    if (runs->count == RUNS_FOUND_MAX || attach_find(pid, &entry, NULL) < 0)
        return;
    if (strcmp(entry.record.jail, jail) == 0 && entry.record.facts.owner == owner)
        runs->items[runs->count++] = entry;
    else
        attach_done(&entry);
}

static int compare(const void *left, const void *right)
{
    const struct attach *a = left, *b = right;
    if (a->start_time != b->start_time)
        return a->start_time > b->start_time ? -1 : 1;
    return a->supervisor > b->supervisor ? -1 : a->supervisor < b->supervisor;
}

static int add_held(const struct jails_place *place, uid_t uid, const char *jail, struct runs *runs,
                    struct brig_error *err)
{
    struct home_state state;
    int status = home_ask(place->storage, jail, uid, &state, err);
    for (size_t i = 0; i < state.pid_count && status == 0; i++)
        add(runs, state.pids[i], jail, place->uid);
    return status;
}

static void add_named(const struct jails_place *place, const char *jail, struct runs *runs)
{
    autodir DIR *dir = opendir("/proc");
    const struct dirent *item;
    uint64_t pid;
    while (dir && (item = readdir(dir)))
        if (parse_uint(item->d_name, INT32_MAX, 0, &pid, NULL) == 0 && (pid_t)pid != getpid())
            add(runs, (pid_t)pid, jail, place->uid);
}

int runs_find(const struct jails_place *place, const char *jail, struct runs *ret_runs,
              struct brig_error *err)
{
    ret_runs->count = 0;
    int status = add_held(place, place->uid, jail, ret_runs, err);
    if (status == 0 && place->stranger != (uid_t)-1)
        status = add_held(place, place->stranger, jail, ret_runs, err);
    if (status == 0 && ret_runs->count == 0)
        add_named(place, jail, ret_runs);
    if (status < 0)
        runs_done(ret_runs);
    else
        qsort(ret_runs->items, ret_runs->count, sizeof *ret_runs->items, compare);
    return status;
}
