/* SPDX-License-Identifier: MIT */
/* The files of a run that its request asked for. The tree was written by hostile code and may
 * contain links, pipes, a million names, and names that are not text. No process can change it any
 * more. */
#include "server/executor/returned.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "server/execution.h"

#define DEPTH_MAX 8
#define ENTRIES_MAX 20000 /* number of entries examined in total */
/* The loop is blocked meanwhile, and hostile names and patterns could match slowly for minutes. */
#define WORK_MS_MAX 50

struct level {
    DIR *dir;
    size_t name_length; /* length of the path up to here */
};

struct walk {
    const struct execution_request *request;
    struct execution_result *result;
    struct level levels[DEPTH_MAX];
    size_t depth;
    char path[EXECUTION_NAME_MAX + 1];
    size_t entries;
    size_t bytes;
    uint64_t until_ms;
    bool more; /* a matching file was left out */
};

/* CPU time of this thread: a busy machine does not reduce the number of files. */
static uint64_t worked_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool is_wanted(const struct walk *walk)
{
    if (!execution_file_name_is_valid(walk->path))
        return false;
    for (size_t i = 0; i < walk->request->return_count; i++)
        if (executor_glob_matches(walk->request->returns[i], walk->path))
            return true;
    return false;
}

static void add_file(struct walk *walk, int fd, size_t size)
{
    struct execution_result *result = walk->result;
    size_t room = EXECUTION_RETURNED_BYTES_MAX - walk->bytes;
    if (result->file_count >= EXECUTION_RETURNED_FILES_MAX) {
        walk->more = true;
        return;
    }
    size_t length = size < room ? size : room;
    char *data = arena_alloc(&result->arena, length + 1);
    ssize_t got = data ? pread(fd, data, length, 0) : -1;
    const char *name = arena_strdup(&result->arena, walk->path);
    if (got < 0 || !name)
        return;
    data[got] = '\0';
    walk->bytes += (size_t)got;
    result->files[result->file_count++] =
        (struct execution_file){.name = name,
                                .content = {.data = data, .length = (size_t)got},
                                .truncated = (size_t)got < size};
}

/* Only regular files are opened: a pipe would block, a device could do anything. */
static void look_at_file(struct walk *walk, int dir_fd, const char *name)
{
    if (!is_wanted(walk))
        return;
    autoclose int found = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (found < 0 || fstat(found, &info) < 0 || !S_ISREG(info.st_mode))
        return;
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat again;
    if (fd < 0 || fstat(fd, &again) < 0 || again.st_ino != info.st_ino)
        walk->more = true; /* the program made it unreadable */
    else
        add_file(walk, fd, (size_t)again.st_size);
}

static void enter(struct walk *walk, int dir_fd, const char *name)
{
    if (walk->depth >= DEPTH_MAX)
        return;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    walk->levels[walk->depth++] = (struct level){.dir = dir, .name_length = strlen(walk->path)};
}

/* Returns false if the name does not fit. */
static bool append_name(struct walk *walk, size_t at, const char *name)
{
    size_t length = strlen(name);
    if (at + 1 + length > EXECUTION_NAME_MAX)
        return false;
    if (at > 0)
        walk->path[at++] = '/';
    memcpy(walk->path + at, name, length + 1);
    return true;
}

static void look_at(struct walk *walk, const struct level *level, const struct dirent *entry)
{
    int fd = dirfd(level->dir);
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        !append_name(walk, level->name_length, entry->d_name) ||
        fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(info.st_mode))
        enter(walk, fd, entry->d_name);
    else
        look_at_file(walk, fd, entry->d_name);
}

static int compare_files(const void *left, const void *right)
{
    const struct execution_file *a = left, *b = right;
    return strcmp(a->name, b->name);
}

void executor_return_files(const struct execution_request *request, int dir_fd,
                           struct execution_result *result)
{
    struct walk walk = {
        .request = request, .result = result, .until_ms = worked_ms() + WORK_MS_MAX};
    if (dir_fd < 0)
        return;
    result->files =
        arena_alloc(&result->arena, EXECUTION_RETURNED_FILES_MAX * sizeof *result->files);
    if (!result->files)
        return;
    enter(&walk, dir_fd, ".");
    while (walk.depth > 0) {
        const struct level level = walk.levels[walk.depth - 1];
        const struct dirent *entry = readdir(level.dir);
        if (entry && walk.entries++ < ENTRIES_MAX && worked_ms() < walk.until_ms) {
            look_at(&walk, &level, entry);
            continue;
        }
        walk.more = walk.more || entry;
        (void)closedir(level.dir);
        walk.depth--;
    }
    qsort(result->files, result->file_count, sizeof *result->files, compare_files);
    if (walk.more && !result->message[0])
        result->message = "Not all files that were asked for fit, or could be read";
}

/* ---- glob patterns ---- */

/* After a mismatch only the last `**` component is tried again, so the time is not exponential.
 * fnmatch() handles wildcards within a component. */

struct part {
    const char *text;
    size_t length;
};

static bool take_part(const char **path, struct part *ret_part)
{
    if (!*path)
        return false;
    const char *end = strchrnul(*path, '/');
    *ret_part = (struct part){.text = *path, .length = (size_t)(end - *path)};
    *path = *end ? end + 1 : NULL;
    return true;
}

static bool part_matches(struct part pattern, struct part name)
{
    char texts[2][EXECUTION_NAME_MAX + 1];
    if (pattern.length > EXECUTION_NAME_MAX || name.length > EXECUTION_NAME_MAX)
        return false;
    (void)snprintf(texts[0], sizeof texts[0], "%.*s", (int)pattern.length, pattern.text);
    (void)snprintf(texts[1], sizeof texts[1], "%.*s", (int)name.length, name.text);
    return fnmatch(texts[0], texts[1], FNM_NOESCAPE) == 0;
}

static bool is_any_parts(struct part part)
{
    return part.length == 2 && memcmp(part.text, "**", 2) == 0;
}

/* Skips leading "**" components of the pattern; NULL if nothing else follows. */
static const char *skip_any_parts(const char *pattern)
{
    struct part part;
    for (const char *rest = pattern; take_part(&rest, &part); pattern = rest)
        if (!is_any_parts(part))
            return pattern;
    return NULL;
}

bool executor_glob_matches(const char *pattern, const char *path)
{
    const char *p = pattern, *n = path, *star = NULL, *retry = NULL;
    bool starred = false;
    struct part want, have;
    while (n) {
        const char *next_p = p, *next_n = n;
        bool wanted = take_part(&next_p, &want);
        (void)take_part(&next_n, &have);
        if (wanted && is_any_parts(want)) {
            starred = true;
            star = p = next_p;
            retry = n;
        } else if (wanted && part_matches(want, have)) {
            p = next_p;
            n = next_n;
        } else if (starred && retry) {
            (void)take_part(&retry, &have);
            p = star;
            n = retry;
        } else {
            return false;
        }
    }
    return !p || !skip_any_parts(p);
}
