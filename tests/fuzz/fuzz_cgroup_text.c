/* SPDX-License-Identifier: MIT */
/* What the kernel writes about groups, from any bytes: "own NUL mounts", and each part of the input
 * as every other text that is read. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/cgroup/process.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* A copy whose end the sanitizer sees. */
static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        abort();
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static void check_places(const struct cgroup_place places[CGROUP_TREES])
{
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++) {
        const struct cgroup_place *place = &places[tree];
        expect(place->same_as <= tree && places[place->same_as].same_as == place->same_as);
        expect(place->listed || !place->found);
        expect(place->listed == places[place->same_as].listed);
        if (!place->found)
            continue;
        const char *end = memchr(place->path, '\0', sizeof place->path);
        expect(end);
        /* What lies below the mount point leads down, by as many steps as it says. */
        unsigned depth = 0;
        for (const char *at = place->path; *at; at++)
            depth += *at == '/';
        expect(depth >= place->depth);
    }
}

static void read_places(const char *own, const char *mounts)
{
    struct cgroup_place places[CGROUP_TREES];
    char *copy = strdup(mounts);
    if (copy)
        cgroup_text_places(own, copy, places);
    if (copy)
        check_places(places);
    free(copy);
}

static void read_files(const char *text)
{
    static const char *const keys[] = {"oom_kill", "max", "usage_usec", "", " "};
    const unsigned all = CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS | CGROUP_IO;
    expect((cgroup_text_controllers(text) & ~all) == 0);
    uint64_t value;
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (cgroup_text_number(text, keys[i], &value))
            expect(strstr(text, keys[i]) != NULL);
    (void)cgroup_text_number(text, text, &value);

    const char *at = text, *end = text + strlen(text);
    pid_t pid;
    while (cgroup_text_next_pid(&at, &pid))
        expect(at > text && at <= end && at[-1] == '\n');

    struct process_stat process;
    if (process_stat_parse(text, &process))
        expect(process.state != '\0' && strchr(text, ')'));
}

static void read_name(const char *name)
{
    pid_t pid = -1;
    uint64_t start;
    if (!cgroup_text_name(name, &pid, &start))
        return;
    /* It is nobody's but a brig's, and names one thing below the directory it was found in. */
    expect(pid >= 0 && strncmp(name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) == 0);
    expect(strspn(name + strlen(CGROUP_PREFIX), "0123456789-") ==
           strlen(name) - strlen(CGROUP_PREFIX));
    expect(strlen(name) < CGROUP_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = copy_text(size > 0 ? (const char *)data : "", size);
    size_t length = strlen(text), rest = length < size ? size - length - 1 : 0;
    autofree char *own = copy_text(text, length);
    autofree char *mounts = copy_text(text + size - rest, rest);
    read_places(own, mounts);
    read_files(own);
    read_files(mounts);
    read_name(own);
    read_name(mounts);
    return 0;
}
