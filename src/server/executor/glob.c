/* SPDX-License-Identifier: MIT */
/* Patterns for names of files. Both levels, characters in a part and parts in a path, are matched the
 * same way: after a star only the last one needs to be tried again, so nothing is exponential. */
#include "server/executor/glob.h"

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

/* How long the set is that begins here, "[…]"; 0 if it is none: then '[' is a character. */
static size_t set_length(struct part pattern, size_t at)
{
    size_t end = at + 1;
    if (pattern.text[at] != '[')
        return 0;
    if (end < pattern.length && pattern.text[end] == '!')
        end++;
    end++; /* a ']' that comes first is one of the set */
    while (end < pattern.length && pattern.text[end] != ']')
        end++;
    return end < pattern.length ? end + 1 - at : 0;
}

static bool set_has(const char *set, size_t length, char c)
{
    bool negated = set[1] == '!', found = false;
    const char *at = set + 1 + negated, *end = set + length - 1;
    for (; at < end; at++) {
        bool range = at + 2 < end && at[1] == '-';
        found = found || (range ? at[0] <= c && c <= at[2] : *at == c);
        at += range ? 2 : 0;
    }
    return found != negated;
}

/* How much of the pattern one character of the name takes, or 0 if they do not match. */
static size_t match_one(struct part pattern, size_t at, char c)
{
    if (at >= pattern.length)
        return 0;
    size_t set = set_length(pattern, at);
    if (set > 0)
        return set_has(pattern.text + at, set, c) ? set : 0;
    return pattern.text[at] == '?' || pattern.text[at] == c;
}

static bool part_matches(struct part pattern, struct part name)
{
    size_t p = 0, n = 0, star = 0, retry = 0;
    bool starred = false;
    while (n < name.length) {
        size_t taken = match_one(pattern, p, name.text[n]);
        if (p < pattern.length && pattern.text[p] == '*') {
            starred = true;
            star = ++p;
            retry = n;
        } else if (taken > 0) {
            p += taken;
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
