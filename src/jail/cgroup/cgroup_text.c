/* SPDX-License-Identifier: MIT */
/* Parses the kernel's files about groups: no system calls here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mountinfo.h"
#include "jail/cgroup/cgroup_driver.h"

#define DELETED " (deleted)"

/* A part of a borrowed text. */
struct slice {
    const char *at;
    size_t length;
};

static const char *const TREE_NAMES[CGROUP_TREES] = {
    [CGROUP_TREE_UNIFIED] = "", /* its line in /proc/self/cgroup names no controller */
    [CGROUP_TREE_MEMORY] = "memory",   [CGROUP_TREE_CPU] = "cpu",
    [CGROUP_TREE_PIDS] = "pids",       [CGROUP_TREE_CPUACCT] = "cpuacct",
    [CGROUP_TREE_FREEZER] = "freezer",
};

static bool slice_is(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

/* Cuts off the text before the separator, or all of it; false when nothing is left. */
static bool take(struct slice *from, char separator, struct slice *ret_part)
{
    if (!from->at)
        return false;
    const char *end = memchr(from->at, separator, from->length);
    size_t length = end ? (size_t)(end - from->at) : from->length;
    *ret_part = (struct slice){from->at, length};
    from->at = end ? end + 1 : NULL;
    from->length -= end ? length + 1 : length;
    return true;
}

static bool list_has(struct slice list, char separator, const char *name)
{
    struct slice item;
    while (take(&list, separator, &item))
        if (slice_is(item, name))
            return true;
    return false;
}

/* ---- /proc/self/cgroup ---- */

/* Lines such as "4:memory,cpu:/path" and "0::/path". */
static void read_own(const char *text, struct slice own[CGROUP_TREES])
{
    struct slice rest = {text, strlen(text)}, line, id, controllers;
    while (take(&rest, '\n', &line)) {
        if (!take(&line, ':', &id) || !take(&line, ':', &controllers) || !line.at)
            continue;
        bool unified = slice_is(id, "0") && controllers.length == 0;
        for (int tree = 0; tree < CGROUP_TREES; tree++)
            if (tree == CGROUP_TREE_UNIFIED ? unified
                                            : list_has(controllers, ',', TREE_NAMES[tree]))
                own[tree] = line;
    }
}

/* Controllers in one line share a hierarchy. */
static unsigned char first_with(const struct slice own[CGROUP_TREES], unsigned tree)
{
    unsigned first = 0;
    while (first < tree && (!own[tree].at || own[first].at != own[tree].at))
        first++;
    return (unsigned char)first;
}

/* A group that was removed while the process was in it, or one outside the cgroup namespace
 * ("/../elsewhere"), has no path that can be looked up. */
static bool is_reachable(struct slice path)
{
    size_t length = sizeof DELETED - 1;
    if (path.length > length && memcmp(path.at + path.length - length, DELETED, length) == 0)
        return false;
    return !list_has(path, '/', "..");
}

/* ---- /proc/self/mountinfo ---- */

/* Returns the part of the group's path below the mounted root; false if the group is not below
 * it. */
static bool below_root(struct slice own, const char *root, struct slice *ret_rest)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (own.length < length || memcmp(own.at, root, length) != 0)
        return false;
    *ret_rest = (struct slice){own.at + length, own.length - length};
    if (slice_is(*ret_rest, "/"))
        ret_rest->length = 0;
    return ret_rest->length == 0 || ret_rest->at[0] == '/';
}

static unsigned count_components(struct slice path)
{
    unsigned count = 0;
    for (size_t i = 0; i < path.length; i++)
        count += path.at[i] == '/';
    return count;
}

static struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static bool read_place(const struct mountinfo *mount, struct slice own,
                       struct cgroup_place *ret_place)
{
    struct cgroup_place place = {.listed = true, .found = true};
    struct slice rest;
    if (!below_root(own, mount->root, &rest))
        return false;
    const char *point = strcmp(mount->point, "/") == 0 ? "" : mount->point;
    int length =
        snprintf(place.path, sizeof place.path, "%s%.*s", point, (int)rest.length, rest.at);
    if ((size_t)length >= sizeof place.path)
        return false;
    place.read_only = list_has(slice_of(mount->options), ',', "ro") ||
                      list_has(slice_of(mount->super), ',', "ro");
    place.depth = count_components(rest);
    *ret_place = place;
    return true;
}

/* Prefers a writable mount, then one that shows more; among equals the first. */
static bool is_better(const struct cgroup_place *a, const struct cgroup_place *b)
{
    if (!b->found || a->read_only != b->read_only)
        return !b->found || !a->read_only;
    return a->depth > b->depth;
}

static bool is_mount_of(const struct mountinfo *mount, enum cgroup_tree tree)
{
    if (tree == CGROUP_TREE_UNIFIED)
        return strcmp(mount->type, "cgroup2") == 0;
    return strcmp(mount->type, "cgroup") == 0 &&
           list_has(slice_of(mount->super), ',', TREE_NAMES[tree]);
}

void cgroup_text_places(const char *own_text, char *mounts,
                        struct cgroup_place ret_places[CGROUP_TREES])
{
    struct slice own[CGROUP_TREES] = {{0}};
    read_own(own_text, own);
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++)
        ret_places[tree] =
            (struct cgroup_place){.listed = own[tree].at != NULL, .same_as = first_with(own, tree)};
    struct mountinfo mount;
    while (mountinfo_next(&mounts, &mount))
        for (int tree = 0; tree < CGROUP_TREES; tree++) {
            struct cgroup_place place;
            if (own[tree].at && is_reachable(own[tree]) && is_mount_of(&mount, tree) &&
                read_place(&mount, own[tree], &place) && is_better(&place, &ret_places[tree])) {
                place.same_as = ret_places[tree].same_as;
                ret_places[tree] = place;
            }
        }
}

/* ---- control files ---- */

unsigned cgroup_text_controllers(const char *text)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {
        {"memory", CGROUP_MEMORY}, {"cpu", CGROUP_CPU}, {"pids", CGROUP_PIDS}, {"io", CGROUP_IO}};
    unsigned bits = 0;
    struct slice list = {text, strcspn(text, "\n")};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (list_has(list, ' ', names[i].name))
            bits |= names[i].bit;
    return bits;
}

bool cgroup_text_number(const char *text, const char *key, uint64_t *ret_value)
{
    struct slice rest = {text, strlen(text)}, line, word;
    while (take(&rest, '\n', &line)) {
        if (!take(&line, ' ', &word) || !slice_is(word, key) || !line.at || line.length == 0)
            continue;
        *ret_value = strtoull(line.at, NULL, 10);
        return true;
    }
    return false;
}

bool cgroup_text_next_pid(const char **text, pid_t *ret_pid)
{
    char *end;
    long pid = strtol(*text, &end, 10);
    if (end == *text || *end != '\n')
        return false;
    *text = end + 1;
    *ret_pid = (pid_t)pid;
    return true;
}

bool cgroup_text_is_in(const char *text, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = strstr(text, path); at; at = strstr(at + 1, path))
        if (at > text && at[-1] == '/' &&
            (at[length] == '\n' || at[length] == '/' || at[length] == '\0'))
            return true;
    return false;
}

/* Reads digits up to the dash. */
static bool take_number(struct slice *from, uint64_t *ret_value)
{
    struct slice part;
    if (!take(from, '-', &part) || part.length == 0 || part.length > 19)
        return false;
    for (size_t i = 0; i < part.length; i++)
        if (part.at[i] < '0' || part.at[i] > '9')
            return false;
    *ret_value = strtoull(part.at, NULL, 10);
    return true;
}

bool cgroup_text_name(const char *name, pid_t *ret_pid, uint64_t *ret_start)
{
    struct slice rest = {name, strlen(name)}, brig;
    uint64_t pid, start, number;
    if (!take(&rest, '-', &brig) || !slice_is(brig, "brig") || !take_number(&rest, &pid) ||
        !take_number(&rest, &start) || !take_number(&rest, &number) || rest.at || pid > INT32_MAX)
        return false;
    *ret_pid = (pid_t)pid;
    *ret_start = start;
    return true;
}
