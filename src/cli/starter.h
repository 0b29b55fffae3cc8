/* SPDX-License-Identifier: MIT */
/* Files to start a configuration from, made of the built-in defaults. */
#pragma once

#include <brig/brig.h>

struct str;

/* Appends what .defaults would be: the built-in masks and filters as directives. */
void starter_append_defaults(struct str *text);

/* Prints that and returns the exit status. */
int starter_print_defaults(void);

/* Writes .defaults, default.conf and .brigrc into one directory and default.jail into another, where
 * they are missing, and says which it made. */
int starter_write(const char *dir, const char *storage, struct brig_error *err);
