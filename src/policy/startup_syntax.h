/* SPDX-License-Identifier: MIT */
/* The lines of a start-up file, and how the syntaxes of such files hide some of them. A syntax is a function that
 * chooses the lines to hide and writes their markers; startup.c does the rest, which is the same for all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "policy/startup.h"

struct startup_filters {
    const struct startup_filter *items;
    size_t count;
};

/* Whether one of the filters removes a variable with this value; without a name, whether the value contains an
 * address that is removed. */
bool startup_is_filtered(const struct startup_filters *filters, const char *name, size_t length,
                         const char *value);

struct startup_hit {
    size_t at;        /* in the line */
    const char *name; /* of the variable that is set; NULL: a URL with a password */
    size_t length;
};

struct startup_line {
    const char *text; /* ended by a NUL */
    size_t length;
    bool joined; /* with the line before: one statement */
    bool hidden;
    bool ended; /* by a newline */
    struct startup_hit hit;
    bool has_hit;
    struct str marker; /* in place of a hidden line */
};

struct startup_lines {
    char *bytes;
    struct startup_line *items;
    size_t count;
};

/* Hides all lines of each statement, which is a line with those that are joined to it, if one of them has a hit. */
void startup_hide_statements(struct startup_lines *lines);

/* Appends "# brig: hidden line NUMBER" and why. */
void startup_append_reason(struct startup_line *line, size_t number);

/* Commands of a shell, and lines NAME=VALUE. */
void startup_mark_shell(struct startup_lines *lines, const struct startup_filters *filters);

/* git's configuration. */
bool startup_is_git(const struct startup_lines *lines);
void startup_mark_git(struct startup_lines *lines, const struct startup_filters *filters);
