/* SPDX-License-Identifier: MIT */
/* Patterns for names of files. Both levels, characters in a part and parts in a path, are matched the
 * same way: after a star only the last one needs to be tried again, so nothing is exponential. */
#include "server/warden/glob.h"

#include <stddef.h>
#include <string.h>

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
    size_t p = 0, n = 0, star = 0, retry = 0;
    bool starred = false;
    while (n < name.length) {
        if (p < pattern.length && pattern.text[p] == '*') {
            starred = true;
            star = ++p;
            retry = n;
        } else if (p < pattern.length &&
                   (pattern.text[p] == '?' || pattern.text[p] == name.text[n])) {
            p++;
            n++;
        } else if (starred) {
            p = star;
            n = ++retry;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.text[p] == '*')
        p++;
    return p == pattern.length;
}

static bool is_any_parts(struct part part)
{
    return part.length == 2 && memcmp(part.text, "**", 2) == 0;
}

/* The pattern from its next part that is none of "**"; NULL if there is none. */
static const char *skip_any_parts(const char *pattern)
{
    struct part part;
    for (const char *rest = pattern; take_part(&rest, &part); pattern = rest)
        if (!is_any_parts(part))
            return pattern;
    return NULL;
}

bool warden_glob_matches(const char *pattern, const char *path)
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
