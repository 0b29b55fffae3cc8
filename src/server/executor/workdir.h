/* SPDX-License-Identifier: MIT */
/* The directory of the host that a request wants to work in. */
#pragma once

#include <stdbool.h>

struct brig_error;
struct config_list;

/* Opens it if it lies below one of the roots and is not one that is never given away: -1 in *ret_fd on
 * failure. What was checked is what the fd is of, whatever happens to the names. */
int executor_open_workdir(const char *path, const struct config_list *roots, int *ret_fd,
                          struct brig_error *err);

/* Of a path without links: whether it is never given away, whatever the roots. Pure. */
bool executor_workdir_is_refused(const char *path);
