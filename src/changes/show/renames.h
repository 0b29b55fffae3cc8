/* SPDX-License-Identifier: MIT */
/* Renamed files: an added file with the same contents as a deleted one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

struct change;
struct layer;
struct inventory_item;

/* Only so many deleted files are candidates, and only so many bytes are compared: the others are shown as
 * deleted and added. */
#define RENAMES_MAX 4096
#define RENAMES_DIRECTORIES_MAX 256
#define RENAMES_PATH_BYTES_MAX ((size_t)4 << 20)
#define RENAMES_BYTES_MAX ((uint64_t)256 << 20)
#define RENAMES_HEAD_BYTES 32 /* of a deleted file: most files of the same size differ in them */

struct renames {
    struct rename {
        char *path;
        uint64_t size;
        int64_t mtime_ns;
        bool used;
        bool known; /* `head` was read */
        char head[RENAMES_HEAD_BYTES];
    } * files; /* deleted, sorted by size after renames_prepare() */
    size_t count;
    char **directories; /* deleted, in order */
    size_t directory_count;
    size_t path_bytes;
    uint64_t compared; /* bytes */
    bool added;        /* there are added files */
};

void renames_done(struct renames *renames);

/* Adds a deleted file or directory; remembers if there are added files. */
int renames_add(struct renames *renames, const struct change *change, struct brig_error *err);
/* Adds the files in the deleted directories. Call it once, after the last renames_add(). */
int renames_prepare(struct renames *renames, const struct layer *layer, struct brig_error *err);
/* The path of a deleted file that has the contents of an added one, or NULL. Each is found once. */
const char *renames_find(struct renames *renames, const struct layer *layer,
                         const struct inventory_item *item);
