/* SPDX-License-Identifier: MIT */
/* The files of a run that its request wants back. */
#pragma once

struct arena;
struct execution_request;
struct execution_result;

/* Looks below a directory that the run could write to and adds to the result what matches, into the
 * result's arena: regular files alone, no link followed, in the order of their names, up to the limits
 * of execution.h. What is left out for want of room is said in the message. */
void executor_return_files(const struct execution_request *request, int dir_fd,
                           struct execution_result *result);
