/* SPDX-License-Identifier: MIT */
/* The kernel's table of mounts (Documentation/filesystems/proc.rst, 3.5). */
#include "base/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fds.h"
#include "base/parse.h"
#include "base/path.h"

#define TABLE_MAX (16 << 20) /* bytes */

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Undoes escapes: blanks and backslashes in names are written as three octal digits. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        bool escape =
            from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) && is_octal(from[3]);
        *to =
            escape ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += escape ? 4 : 1;
    }
    *to = 0;
}

/* Takes a word off a line. */
static char *next_word(char **line)
{
    char *word = *line;
    while (*word == ' ')
        word++;
    char *end = word;
    while (*end && *end != ' ')
        end++;
    *line = *end ? end + 1 : end;
    *end = 0;
    return word;
}

static int read_id(const char *text)
{
    uint64_t id;
    return parse_uint(text, INT32_MAX, PARSE_ZERO_OK, &id, NULL) < 0 ? -1 : (int)id;
}

static bool read_device(char *text, struct mountinfo *ret_mount)
{
    uint64_t device_major, device_minor;
    char *colon = strchr(text, ':');
    if (!colon)
        return false;
    *colon = 0;
    if (parse_uint(text, UINT32_MAX, PARSE_ZERO_OK, &device_major, NULL) < 0 ||
        parse_uint(colon + 1, UINT32_MAX, PARSE_ZERO_OK, &device_minor, NULL) < 0)
        return false;
    ret_mount->device_major = (unsigned)device_major;
    ret_mount->device_minor = (unsigned)device_minor;
    return true;
}

/* Any number of optional fields precede the separator "-"; the filesystem type follows it. */
static void read_fields(char **line, struct mountinfo *ret_mount)
{
    ret_mount->follows = false;
    ret_mount->options = next_word(line);
    ret_mount->type = ret_mount->super = "";
    while (**line) {
        const char *word = next_word(line);
        if (strcmp(word, "-") == 0) {
            ret_mount->type = next_word(line);
            (void)next_word(line); /* the source */
            ret_mount->super = next_word(line);
            return;
        }
        if (strncmp(word, "master:", strlen("master:")) == 0)
            ret_mount->follows = true;
    }
}

bool mountinfo_next(char **table, struct mountinfo *ret_mount)
{
    while (**table) {
        char *line = *table;
        char *end = strchrnul(line, '\n');
        *table = *end ? end + 1 : end;
        *end = 0;
        const char *id = next_word(&line), *parent = next_word(&line);
        char *device = next_word(&line), *root = next_word(&line), *point = next_word(&line);
        if (*root != '/' || *point != '/' || !read_device(device, ret_mount))
            continue;
        ret_mount->id = read_id(id);
        ret_mount->parent = read_id(parent);
        read_fields(&line, ret_mount);
        unescape(root);
        unescape(point);
        ret_mount->root = root;
        ret_mount->point = point;
        return true;
    }
    return false;
}

int mountinfo_read(pid_t pid, struct mountinfo_table *ret_table)
{
    char path[64] = "/proc/self/mountinfo";
    bool whole;
    if (pid != 0)
        (void)snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
    struct mountinfo_table table = {.text = proc_read(path, TABLE_MAX, &whole)};
    if (!table.text)
        return -1;
    size_t lines = 1;
    for (const char *at = table.text; (at = strchr(at, '\n')); at++)
        lines++;
    table.mounts = calloc(lines, sizeof *table.mounts);
    if (!table.mounts || !whole) {
        mountinfo_done(&table);
        errno = whole ? ENOMEM : EFBIG;
        return -1;
    }
    char *rest = table.text;
    while (table.count < lines && mountinfo_next(&rest, &table.mounts[table.count]))
        table.count++;
    *ret_table = table;
    return 0;
}

void mountinfo_done(struct mountinfo_table *table)
{
    free(table->text);
    free(table->mounts);
    *table = (struct mountinfo_table){0};
}

/* The root mount: its parent is not in the table. */
static const struct mountinfo *find_root(const struct mountinfo_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct mountinfo *mount = &table->mounts[i];
        bool on_other = false;
        for (size_t j = 0; j < table->count && !on_other; j++)
            on_other = j != i && table->mounts[j].id == mount->parent;
        if (strcmp(mount->point, "/") == 0 && !on_other)
            return mount;
    }
    return NULL;
}

/* The first mount on `on` that a lookup of the path meets. */
static const struct mountinfo *find_next(const struct mountinfo_table *table,
                                         const struct mountinfo *on, const char *path)
{
    const struct mountinfo *first = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct mountinfo *mount = &table->mounts[i];
        if (mount != on && mount->parent == on->id && path_is_beneath(mount->point, path) &&
            (!first || strlen(mount->point) < strlen(first->point)))
            first = mount;
    }
    return first;
}

const struct mountinfo *mountinfo_at(const struct mountinfo_table *table, const char *path)
{
    const struct mountinfo *found = find_root(table), *next;
    /* Bounded by the number of mounts, because a malformed table could contain a cycle. */
    for (size_t i = 0; found && i < table->count && (next = find_next(table, found, path)); i++)
        found = next;
    return found;
}
