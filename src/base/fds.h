/* SPDX-License-Identifier: MIT */
/* Where in the table of fds what is kept for long has its place. */
#pragma once

#include <sys/resource.h>

/* What a job keeps lies above this, what a start needs below: so a child can do without the first by
 * one number. */
#define FDS_HIGH 256

/* Moves an fd above FDS_HIGH, if so many are open that it matters, and gives its new number; what
 * cannot be moved stays where it is. A negative one is given back. */
int fds_keep_high(int fd);

/* Raises the soft limit of open files to as many, as far as the hard one lets it, and never lowers it.
 * Gives what it is then; *ret_before, which may be NULL, has rlim_max 0 if it was not raised. */
rlim_t fds_raise_limit(rlim_t wanted, struct rlimit *ret_before);
