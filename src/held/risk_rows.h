/* SPDX-License-Identifier: MIT */
/* The names of files that something outside the jail executes, obeys or loads. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum risk_where {
    RISK_ANYWHERE, /* at any depth below any directory */
    RISK_HOME,     /* relative to the home directory of the user */
};

/* A pattern is one or more components, in which `*` stands for any characters. It matches a path and
 * everything below it. */
struct risk_row {
    const char *reason; /* a clause: "PATH: REASON" */
    enum risk_where where;
    bool gone;                   /* deleting it is a risk as well */
    const char *const *patterns; /* terminated by NULL */
};
extern const struct risk_row risk_rows[];
extern const size_t risk_row_count;

/* The reason of the first row that matches, or NULL. `path` is relative to any directory; `home` is
 * the same relative to the home directory, or NULL if it is not there. With `gone` only rows for
 * deleted files count. */
const char *risk_row_find(const char *path, const char *home, bool gone);

/* The same for a symbolic link. It may also take the place of a directory that a pattern names: what it leads to then
 * has the name of the pattern. */
const char *risk_row_find_link(const char *path, const char *home);

/* Whether `pattern` matches at the beginning of a path. */
bool risk_pattern_matches(const char *pattern, const char *path);
