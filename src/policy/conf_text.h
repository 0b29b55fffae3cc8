/* SPDX-License-Identifier: MIT */
/* The text of .conf files, a directive at a time: where it begins, its escapes and its variables.
 * The language is described in conf.h. Failures to append are those of the string, checked by the
 * caller. */
#pragma once

#include <stdbool.h>

struct brig_error;
struct conf_hooks;
struct str;

/* Where reading stands. The text has no NUL. */
struct conf_cursor {
    const char *at;
    const char *end;
    unsigned line; /* of `at` */
};

/* Goes past blank lines and comments to where the next directive begins; false at the end. */
bool conf_find_directive(struct conf_cursor *cursor);

/* Reads the name that begins here; it is empty where a line begins with '='. */
void conf_read_name(struct conf_cursor *cursor, struct str *name);

/* Goes from behind the name to the value; false if there is none. */
bool conf_find_value(struct conf_cursor *cursor);

/* Reads the value that begins here, without its escapes but, if it is to be expanded, for those
 * that conf_expand() reads. Ends at the end of a line. */
void conf_read_value(struct conf_cursor *cursor, bool expands, struct str *value);

/* Makes *value of what conf_read_value() gave, which is written to. */
int conf_expand(const struct conf_hooks *hooks, struct str *written, struct str *value,
                struct brig_error *err);
