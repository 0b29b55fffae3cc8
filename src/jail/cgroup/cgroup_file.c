/* SPDX-License-Identifier: MIT */
/* Reads and writes the files of groups. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/cgroup/process.h"

/* Enough for /proc/self/mountinfo on a machine with thousands of containers. */
#define PROC_FILE_MAX ((size_t)8 << 20)

int cgroup_write(int dir_fd, const char *name, const char *text)
{
    autoclose int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t length = strlen(text);
    ssize_t written;
    do
        written = write(fd, text, length);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return -errno;
    return (size_t)written == length ? 0 : -EIO;
}

int cgroup_write_number(int dir_fd, const char *name, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return cgroup_write(dir_fd, name, text);
}

int cgroup_read(int dir_fd, const char *name, char *buffer, size_t size)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length;
    do
        length = read(fd, buffer, size - 1);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    buffer[length] = '\0';
    return (int)length;
}

bool cgroup_read_number(int dir_fd, const char *name, uint64_t *ret_value)
{
    char text[64], *end;
    if (cgroup_read(dir_fd, name, text, sizeof text) <= 0)
        return false;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text)
        return false;
    *ret_value = value;
    return true;
}

/* Returns the number after `key` in a file of "key number" lines; 0 if missing. */
static uint64_t cgroup_read_key(int dir_fd, const char *name, const char *key)
{
    char text[CGROUP_TEXT_MAX];
    uint64_t value = 0;
    if (cgroup_read(dir_fd, name, text, sizeof text) > 0)
        (void)cgroup_text_number(text, key, &value);
    return value;
}

char *cgroup_read_proc(const char *path)
{
    bool whole;
    autofree char *text = proc_read(path, PROC_FILE_MAX, &whole);
    return whole ? take_ptr(&text) : NULL;
}

uint64_t cgroup_start_time(pid_t pid)
{
    struct process_stat stat;
    return process_stat(pid, &stat) ? stat.start : 0;
}

size_t cgroup_list(int dir_fd, const char *prefix, struct cgroup_part *parts, size_t max)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        (void)close(fd);
    size_t count = 0;
    const struct dirent *entry;
    while (dir && count < max && (entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            strlen(entry->d_name) >= CGROUP_NAME_MAX || !str_starts_with(entry->d_name, prefix))
            continue;
        (void)snprintf(parts[count++].name, CGROUP_NAME_MAX, "%s", entry->d_name);
    }
    return count;
}

/* Returns the first subdirectory of an open directory; false if there is none. */
static bool first_below(int dir_fd, char name[NAME_MAX + 1])
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        (void)close(fd);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            (void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
            return true;
        }
    return false;
}

/* Descends to a directory without subdirectories, removes it, and goes up again. The tree may be
 * deep and wide: after this many steps the remainder is left. */
#define REMOVE_STEPS_MAX 100000

int cgroup_remove_below(int dir_fd)
{
    char name[NAME_MAX + 1];
    unsigned depth = 0;
    bool down = false; /* came here because the directory could not be removed */
    autoclose int at = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int step = 0; at >= 0 && step < REMOVE_STEPS_MAX; step++) {
        bool more = first_below(at, name);
        if (!more && depth == 0)
            return 0;
        if (!more && down) /* no subdirectories, so there are processes in it */
            return -EBUSY;
        down = false;
        if (more && unlinkat(at, name, AT_REMOVEDIR) == 0)
            continue;
        autoclose int from = take_fd(&at);
        at = openat(from, more ? name : "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        depth += more ? 1 : -1u;
        down = more;
    }
    return at < 0 ? -errno : -EBUSY;
}

size_t cgroup_parts(const struct cgroup *group, enum cgroup_tree tree,
                    struct cgroup_part parts[CGROUP_PARTS_MAX])
{
    (void)snprintf(parts[0].name, CGROUP_NAME_MAX, ".");
    if (group->leaf_count > 0)
        return 1 + cgroup_list(cgroup_dir(group, tree), "", parts + 1, CGROUP_PARTS_MAX - 1);
    if (group->kind != CGROUP_V2 || group->parent)
        return 1;
    (void)snprintf(parts[1].name, CGROUP_NAME_MAX, CGROUP_MAIN);
    return 2;
}

uint64_t cgroup_sum_key(const struct cgroup *group, enum cgroup_tree tree, const char *name,
                        const char *key)
{
    struct cgroup_part parts[CGROUP_PARTS_MAX];
    size_t count = cgroup_parts(group, tree, parts);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        char path[2 * CGROUP_NAME_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", parts[i].name, name);
        sum += cgroup_read_key(cgroup_dir(group, tree), path, key);
    }
    return sum;
}
