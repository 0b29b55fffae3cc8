/* SPDX-License-Identifier: MIT */
/* The index of a git repository, as bytes: the submodules in it. Pure: no allocation, nothing of the
 * system is asked. Versions 2 to 4, not split. */
#pragma once

#include <stddef.h>

#define GITINDEX_MAX (64 * 1024 * 1024) /* bytes of one */
#define GITINDEX_NAME_MAX 4095

/* The length of a hash: the index does not tell, and is malformed if it is read with the other. */
enum { GITINDEX_SHA1 = 20, GITINDEX_SHA256 = 32 };

struct gitindex {
    const unsigned char *at, *end; /* borrowed */
    unsigned left;                 /* entries */
    unsigned version;
    size_t hash_size;
    size_t name_length; /* of the last entry */
    char name[GITINDEX_NAME_MAX + 1];
};

/* 1, or 0 if it is no index that is understood. */
int gitindex_begin(struct gitindex *index, const void *bytes, size_t length, size_t hash_size);

/* 1 and the name of the next submodule, which stays until the next call; 0 at the end; -1 if the index
 * is malformed or goes on in another file. */
int gitindex_next(struct gitindex *index, const char **ret_name);
