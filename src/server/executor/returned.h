/* SPDX-License-Identifier: MIT */
/* The files of a run that its request asked for. */
#pragma once

#include <stdbool.h>

struct arena;
struct execution_request;
struct execution_result;

/* Searches a directory that the run could write to, and adds matching files to the result, in its
 * arena: regular files only, without following symlinks, sorted by name, up to the limits of
 * execution.h. If files are left out, the message says so. */
void executor_return_files(const struct execution_request *request, int dir_fd,
                           struct execution_result *result);

/* ---- glob patterns for file names ---- */

/* Returns whether a relative path matches. Within a component `*` matches any characters, `?` one,
 * `[a-z]` one of a set and `[!a-z]` one outside of it; a component `**` matches any number of
 * components. Takes time proportional to the product of both lengths at most. */
bool executor_glob_matches(const char *pattern, const char *path);
