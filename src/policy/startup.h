/* SPDX-License-Identifier: MIT */
/* Start-up files of shells and sessions, without the lines that set variables which the environment filters of a
 * policy remove.
 *
 * A jail with a copy-on-write home sees such a file with a marker in place of each line that sets a filtered variable,
 * or contains a URL with a password. The user's own file is read, line by line; nothing is executed. Where the meaning
 * of a line is in doubt it is hidden. Each marker is a different text, so that the jail's version of a file can be
 * completed with the hidden lines again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"

struct brig_policy;

#define STARTUP_FILE_MAX ((size_t)256 << 10) /* larger files are hidden as a whole */

/* The files, relative to a home directory; '*' is a wildcard. */
extern const char *const startup_names[];
extern const size_t startup_name_count;

/* The environment rules of one policy in order: '-' and a pattern that is removed, or '+' and a name that is passed
 * on. */
struct startup_filter {
    const char *const *rules;
    size_t count;
};

/* The filter of a policy. A variable that the policy sets to a value does not count as passed on: its line outside has
 * another value. Release with startup_rules_done(). */
struct startup_rules {
    struct str list;
    const char **items;
    size_t count;
};
int startup_rules_init(const struct brig_policy *policy, struct startup_rules *ret_rules,
                       struct brig_error *err);
void startup_rules_done(struct startup_rules *rules);

/* Whether a filter removes a variable with this value. */
bool startup_filter_hides(const struct startup_filter *filter, const char *name, size_t name_length,
                          const char *value);

/* A file as the jail sees it. */
struct startup_text {
    struct str text;
    struct str
        names; /* of the variables whose lines are hidden, a list; "" for a URL with a password */
    size_t hidden; /* lines */
};
void startup_text_done(struct startup_text *text);

/* Hides the lines of a file that one of the filters hides. */
int startup_hide(const struct startup_filter *filters, size_t filter_count, const char *text,
                 size_t length, struct startup_text *ret_text, struct brig_error *err);

/* Puts the hidden lines of the user's file back in the place of their markers in the jail's version of it. Returns 1,
 * 0 if a marker is missing, was repeated or moved before another one, or a code. */
int startup_restore(const struct startup_filter *filters, size_t filter_count,
                    const struct str *user, const struct str *jail, struct str *ret_text,
                    struct brig_error *err);
