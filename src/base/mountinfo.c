/* SPDX-License-Identifier: MIT */
/* The kernel's table of mounts (Documentation/filesystems/proc.rst, 3.5). */
#include "base/mountinfo.h"

#include <stddef.h>
#include <string.h>

#include "base/parse.h"

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Blanks and backslashes in names are written as three octal digits. */
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
    char *word = *line + strspn(*line, " ");
    char *end = word + strcspn(word, " ");
    *line = *end ? end + 1 : end;
    *end = 0;
    return word;
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

bool mountinfo_next(char **table, struct mountinfo *ret_mount)
{
    while (**table) {
        char *line = *table;
        char *end = line + strcspn(line, "\n");
        *table = *end ? end + 1 : end;
        *end = 0;
        (void)next_word(&line); /* its id and that of the one it is mounted on */
        (void)next_word(&line);
        char *device = next_word(&line), *root = next_word(&line), *point = next_word(&line);
        if (*root != '/' || *point != '/' || !read_device(device, ret_mount))
            continue;
        unescape(root);
        unescape(point);
        ret_mount->root = root;
        ret_mount->point = point;
        return true;
    }
    return false;
}
