/* SPDX-License-Identifier: MIT */
/* The files of an image: a directory, or a tar archive that is searched without unpacking it. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "unpack/blob.h"

#define SOURCE_FILES_MAX 4096 /* in an archive */

struct source;

/* A directory of an OCI layout; the descriptor is borrowed. */
int source_of_directory(int directory, struct source **ret_source, struct brig_error *err);
/* A tar archive, not compressed, in a regular file; the descriptor is borrowed. */
int source_of_archive(int file, struct source **ret_source, struct brig_error *err);
void source_free(struct source *source);

/* Finds a regular file by its path, such as "blobs/sha256/…". Returns 1, 0 if there is none, or a
 * negative code. The blob is valid until the next call. */
int source_find(struct source *source, const char *path, struct blob *ret_blob,
                struct brig_error *err);
