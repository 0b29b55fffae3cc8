/* SPDX-License-Identifier: MIT */
/* The index of a git repository, as bytes: the submodules in it. Pure: no allocation, nothing of the
 * system is asked. Versions 2 and 3 with SHA-1, not split: what git writes if it is not told otherwise. */
#pragma once

#include <stddef.h>

#define GITINDEX_MAX (16 * 1024 * 1024) /* bytes of one */

struct gitindex {
    const unsigned char *at, *end; /* borrowed */
    unsigned left;                 /* entries */
};

/* 1, or 0 if it is no index that is understood. */
int gitindex_begin(struct gitindex *index, const void *bytes, size_t length);

/* 1 and the name of the next submodule, which lies in the bytes; 0 at the end; -1 if the index is
 * malformed or goes on in another file. */
int gitindex_next(struct gitindex *index, const char **ret_name);
