/* SPDX-License-Identifier: MIT */
/* Patterns for names of files below a directory. */
#pragma once

#include <stdbool.h>

/* Whether a relative path matches. In one part `*` stands for any characters, `?` for one and
 * `[a-z]` for one of a set, `[!a-z]` for one of none of it; a part `**` stands for any number of parts. Takes time in proportion to the product of both lengths, whatever
 * they are. */
bool executor_glob_matches(const char *pattern, const char *path);
