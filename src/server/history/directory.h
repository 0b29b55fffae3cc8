/* SPDX-License-Identifier: MIT */
/* The history process's own directories. */
#pragma once

struct brig_error;

/* Opens it; what is missing of the path is made, for the owner alone. */
int directory_open(const char *path, int *ret_fd, struct brig_error *err);
/* The same of the directory that a file is in. */
int directory_open_of(const char *file, int *ret_fd, struct brig_error *err);
