/* SPDX-License-Identifier: MIT */
/* Patterns for names of files below a directory. */
#pragma once

#include <stdbool.h>

/* Whether a relative path matches. In one part `*` stands for any characters and `?` for one; a part
 * `**` stands for any number of parts. Takes time in proportion to the product of both lengths, whatever
 * they are. */
bool warden_glob_matches(const char *pattern, const char *path);
