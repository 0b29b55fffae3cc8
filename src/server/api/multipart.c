/* SPDX-License-Identifier: MIT */
/* Parses multipart/form-data. */
#include "server/api/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#define TYPE "multipart/form-data"
#define PARTS_FIRST 16

/* ---- parameters of a header: ; name=value; name="value" ---- */

/* The length of the value at `value`, with its quotes. */
static size_t value_length(const char *value, size_t length)
{
    size_t at = 1;
    if (length == 0 || value[0] != '"') {
        for (at = 0; at < length && !strchr("; \t", value[at]);)
            at++;
        return at;
    }
    while (at < length && value[at] != '"')
        at += value[at] == '\\' && at + 1 < length ? 2 : 1;
    return at < length ? at + 1 : length;
}

/* Finds a parameter; NULL if there is none. */
static const char *find_parameter(const char *text, size_t length, const char *name,
                                  size_t *ret_length)
{
    size_t at = 0;
    while (at < length) {
        at += strspn(text + at, "; \t");
        size_t begin = at;
        while (at < length && text[at] != '=' && text[at] != ';')
            at++;
        size_t name_length = at - begin;
        if (at >= length || text[at] == ';')
            continue;
        const char *value = text + ++at;
        size_t size = value_length(value, length - at);
        if (name_length == strlen(name) && strncasecmp(text + begin, name, name_length) == 0) {
            *ret_length = size;
            return value;
        }
        at += size;
    }
    return NULL;
}

/* Undoes quoting: \" and \\, and of the WHATWG's form %22, %0A and %0D. */
static char *unquote(struct arena *arena, const char *value, size_t length)
{
    bool quoted = length >= 2 && value[0] == '"' && value[length - 1] == '"';
    char *text = arena_alloc(arena, length + 1);
    if (!text)
        return NULL;
    if (quoted) {
        value++;
        length -= 2;
    }
    char *to = text;
    for (size_t i = 0; i < length; i++) {
        size_t left = length - i;
        if (quoted && left > 1 && value[i] == '\\' && (value[i + 1] == '"' || value[i + 1] == '\\'))
            i++;
        if (left > 2 && strncmp(value + i, "%22", 3) == 0) {
            *to++ = '"';
            i += 2;
        } else if (left > 2 && strncasecmp(value + i, "%0a", 3) == 0) {
            *to++ = '\n';
            i += 2;
        } else if (left > 2 && strncasecmp(value + i, "%0d", 3) == 0) {
            *to++ = '\r';
            i += 2;
        } else {
            *to++ = value[i];
        }
    }
    *to = '\0';
    return text;
}

bool multipart_boundary(const char *content_type, char ret_boundary[MULTIPART_BOUNDARY_MAX + 1])
{
    size_t length = strlen(content_type), type = strlen(TYPE), size = 0;
    if (strncasecmp(content_type, TYPE, type) != 0 || !strchr("; \t", content_type[type]))
        return false;
    const char *value = find_parameter(content_type + type, length - type, "boundary", &size);
    if (value && size >= 2 && value[0] == '"' && value[size - 1] == '"') {
        value++;
        size -= 2;
    }
    if (!value || size == 0 || size > MULTIPART_BOUNDARY_MAX || memchr(value, '"', size))
        return false;
    (void)snprintf(ret_boundary, MULTIPART_BOUNDARY_MAX + 1, "%.*s", (int)size, value);
    return true;
}

/* ---- parts ---- */

/* Reads the headers of a part, which end with an empty line. Returns their length, or 0. */
static size_t read_head(const char *head, size_t length, struct arena *arena,
                        struct multipart *part)
{
    static const char disposition[] = "Content-Disposition:";
    size_t at = 0, most = length < MULTIPART_HEAD_MAX ? length : MULTIPART_HEAD_MAX;
    part->name = part->file_name = "";
    for (;;) {
        const char *end = memmem(head + at, most - at, "\r\n", 2);
        if (!end || memchr(head + at, '\0', (size_t)(end - head) - at))
            return 0;
        size_t size = (size_t)(end - head) - at, skip = strlen(disposition), value = 0;
        if (size == 0)
            return at + 2;
        if (size > skip && strncasecmp(head + at, disposition, skip) == 0) {
            char *line = arena_strndup(arena, head + at + skip, size - skip);
            const char *name = line ? find_parameter(line, size - skip, "name", &value) : NULL;
            if (name)
                part->name = unquote(arena, name, value);
            name = line ? find_parameter(line, size - skip, "filename", &value) : NULL;
            if (name)
                part->file_name = unquote(arena, name, value);
        }
        at += size + 2;
    }
}

static struct multipart *next_part(struct arena *arena, struct multipart **parts, size_t count)
{
    bool full = count == 0 || (count >= PARTS_FIRST && (count & (count - 1)) == 0);
    if (count == MULTIPART_PARTS_MAX)
        return NULL;
    if (full) {
        size_t room = count == 0 ? PARTS_FIRST : 2 * count;
        struct multipart *more = arena_alloc(arena, room * sizeof *more);
        if (!more)
            return NULL;
        if (count > 0)
            memcpy(more, *parts, count * sizeof *more);
        *parts = more;
    }
    return &(*parts)[count];
}

/* Finds the delimiter after `from`. *ret_at is where it begins. */
static bool find_delimiter(const char *body, size_t length, size_t from, const char *delimiter,
                           size_t *ret_at)
{
    const char *found = memmem(body + from, length - from, delimiter, strlen(delimiter));
    if (found)
        *ret_at = (size_t)(found - body);
    return found;
}

/* `at` is after a delimiter's boundary. Reads one part; sets *at to the next one. */
static bool read_part(const char *body, size_t length, const char *delimiter, size_t *at,
                      struct arena *arena, struct multipart *part)
{
    size_t end = 0;
    if (length - *at < 2 || memcmp(body + *at, "\r\n", 2) != 0)
        return false;
    size_t head = read_head(body + *at + 2, length - *at - 2, arena, part);
    size_t begin = *at + 2 + head;
    /* The line end before the delimiter of an empty part may be the one that ends its head. */
    if (head == 0 || arena->failed || !find_delimiter(body, length, begin - 2, delimiter, &end))
        return false;
    part->bytes = body + begin;
    part->length = end < begin ? 0 : end - begin;
    *at = end + strlen(delimiter);
    return true;
}

bool multipart_read(const char *body, size_t length, const char *boundary, struct arena *arena,
                    struct multipart **ret_parts, size_t *ret_count)
{
    char delimiter[MULTIPART_BOUNDARY_MAX + 5];
    size_t size = (size_t)snprintf(delimiter, sizeof delimiter, "\r\n--%s", boundary), at = 0;
    struct multipart *parts = NULL;
    size_t count = 0;
    /* The first delimiter needs no line end before it. */
    if (length >= size - 2 && memcmp(body, delimiter + 2, size - 2) == 0)
        at = size - 2;
    else if (find_delimiter(body, length, 0, delimiter, &at))
        at += size;
    else
        return false;
    while (length - at < 2 || memcmp(body + at, "--", 2) != 0) {
        struct multipart *part = next_part(arena, &parts, count);
        if (!part || !read_part(body, length, delimiter, &at, arena, part))
            return false;
        count++;
    }
    *ret_parts = parts;
    *ret_count = count;
    return !arena->failed;
}
