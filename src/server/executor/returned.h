/* SPDX-License-Identifier: MIT */
/* The files of a run that its request wants back. */
#pragma once

#include <stdbool.h>

struct arena;
struct execution_request;
struct execution_result;

/* Looks below a directory that the run could write to and adds to the result what matches, into the
 * result's arena: regular files alone, no link followed, in the order of their names, up to the limits
 * of execution.h. What is left out for want of room is said in the message. */
void executor_return_files(const struct execution_request *request, int dir_fd,
                           struct execution_result *result);

/* ---- glob ---- */

/* Patterns for names of files below a directory. */

/* Whether a relative path matches. In one part `*` stands for any characters, `?` for one and
 * `[a-z]` for one of a set, `[!a-z]` for one of none of it; a part `**` stands for any number of parts. Takes time in proportion to the product of both lengths, whatever
 * they are. */
bool executor_glob_matches(const char *pattern, const char *path);
