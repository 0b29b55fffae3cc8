/* SPDX-License-Identifier: MIT */
/* Lists of refs, as git prints them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "git/side.h"

#define ID_SHORTEST 4    /* digits that git accepts as the beginning of an object's name */
#define REF_DEPTH_MAX 32 /* slashes in a name: refs are files, which are copied for each run */

bool refs_is_id(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return text[length] == '\0' && (length == 40 || length == REFS_ID_MAX);
}

static bool is_safe_character(unsigned char c)
{
    return isalnum(c) || c >= 0x80 || (c && strchr("._-/+@#=,%", c));
}

static bool is_safe_part(const char *part, size_t length)
{
    return length > 0 && part[0] != '-' && part[0] != '.' && part[length - 1] != '.' &&
           !(length == 4 && strncmp(part, "HEAD", 4) == 0) &&
           !(length > 5 && strncmp(part + length - 5, ".lock", 5) == 0);
}

bool refs_is_safe(const char *name)
{
    size_t length = strlen(name);
    const char *part = str_starts_with(name, "refs/heads/")   ? name + 11
                       : str_starts_with(name, "refs/notes/") ? name + 11
                       : str_starts_with(name, "refs/tags/")  ? name + 10
                                                              : NULL;
    if (!part || length > 1000 || strstr(name, "..") || strstr(name, "@{") ||
        !utf8_is_valid(name, length))
        return false;
    for (const char *c = part; *c; c++) /* 0xc2 0x80 to 0x9f are control characters */
        if (!is_safe_character((unsigned char)*c) ||
            ((unsigned char)c[0] == 0xc2 && (unsigned char)c[1] < 0xa0))
            return false;
    for (int depth = 0;; depth++) {
        size_t used = strcspn(part, "/");
        if (!is_safe_part(part, used) || depth == REF_DEPTH_MAX)
            return false;
        if (!part[used])
            return true;
        part += used + 1;
    }
}

static bool has_unseen(const char *name)
{
    const unsigned char *p = (const unsigned char *)name;
    for (size_t left = strlen(name), size; left > 0; p += size, left -= size) {
        size = utf8_length(p, left);
        if (size == 0 || utf8_is_unseen(p, size))
            return true;
    }
    return false;
}

bool refs_is_misleading(const char *name)
{
    static const char *const firsts[] = {"refs/", "heads/", "tags/", "remotes/"};
    const char *kind = str_starts_with(name, "refs/") ? name + strlen("refs/") : name;
    const char *rest = strchr(kind, '/') ? strchr(kind, '/') + 1 : kind;
    size_t length = strlen(rest);
    for (size_t i = 0; i < ARRAY_LENGTH(firsts); i++)
        if (str_starts_with(rest, firsts[i]))
            return true;
    bool id = length >= ID_SHORTEST && length <= REFS_ID_MAX &&
              strspn(rest, "0123456789abcdefABCDEF") == length;
    return id || strcmp(rest, "@") == 0 || strcmp(rest, "stash") == 0 ||
           str_ends_with(rest, "_HEAD") || has_unseen(name);
}

const char *refs_short_name(const char *name)
{
    return str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/")
               ? strchr(name + strlen("refs/"), '/') + 1
               : name;
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct ref *)left)->name, ((const struct ref *)right)->name);
}

int refs_read(char *text, struct refs *ret_refs, struct brig_error *err)
{
    struct refs refs = {0};
    size_t lines = 0;
    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    if (lines > REFS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "there are more than %d refs", REFS_MAX);
    refs.items = calloc(lines + 1, sizeof *refs.items);
    if (!refs.items)
        return brig_fail_nomem(err);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *name = strchr(line, ' ');
        if (!*line)
            continue;
        if (name)
            *name++ = '\0';
        char *word = name ? strchr(name, ' ') : NULL;
        bool symbolic = word && strcmp(word, " symbolic") == 0;
        if (symbolic)
            *word = '\0';
        if (!name || !refs_is_id(line) || refs.count == lines || !refs_is_safe(name)) {
            refs.skipped++;
            continue;
        }
        refs.items[refs.count++] = (struct ref){.id = line, .name = name, .symbolic = symbolic};
    }
    qsort(refs.items, refs.count, sizeof *refs.items, compare);
    *ret_refs = refs;
    return 0;
}

void refs_done(struct refs *refs)
{
    free(refs->items);
    *refs = (struct refs){0};
}

const struct ref *refs_get(const struct refs *refs, const char *name)
{
    struct ref key = {.name = name};
    return refs->count ? bsearch(&key, refs->items, refs->count, sizeof *refs->items, compare)
                       : NULL;
}

const char *refs_find(const struct refs *refs, const char *name)
{
    const struct ref *found = refs_get(refs, name);
    return found ? found->id : NULL;
}
