/* SPDX-License-Identifier: MIT */
/* The images of a user: `images/NAME`, a record of each, and `layers/sha256-HEX/`, the unpacked layers
 * that they share.
 *
 * Whoever adds something holds the shared lock of the store, `lock`; whoever removes something holds
 * it alone. A process that uses an image holds shared locks of its layers, which are then not
 * removed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "image/record.h"
#include "policy/layers.h"

#define IMAGES_LAYERS "layers"
#define IMAGES_RECORDS "images"
#define IMAGES_LAYER_PREFIX "sha256-"
#define IMAGES_TEMPORARY "tmp-" /* an image that is being loaded, or was left by a killed process */
#define IMAGES_LAYER_NAME_MAX (sizeof IMAGES_LAYER_PREFIX + SHA256_HEX_LENGTH)

struct images {
    int fd, layers, records; /* directories */
    int lock;
};

#define IMAGES_INIT                                                                                \
    (struct images)                                                                                \
    {                                                                                              \
        -1, -1, -1, -1                                                                             \
    }
#define autoimages __attribute__((cleanup(images_done)))

enum images_use {
    IMAGES_READ,   /* fails with BRIG_E_NOT_FOUND if there is no store */
    IMAGES_ADD,    /* creates it */
    IMAGES_REMOVE, /* alone; fails with BRIG_E_STATE while another process uses it */
};

/* Opens a store and takes its lock. `path` is absolute. */
int images_open(const char *path, enum images_use use, struct images *ret_store,
                struct brig_error *err);
void images_done(struct images *store);

/* The directory of a layer, in `layers`. */
void images_layer_name(const char *digits, char ret_name[IMAGES_LAYER_NAME_MAX]);

/* Reads the record of an image. `name` may lack the tag "latest", begin with docker.io/, and
 * end with @sha256:DIGEST, which must be the image's; or it is sha256: and at least twelve digits. Fails
 * with BRIG_E_NOT_FOUND. */
int images_find(const struct images *store, const char *name, struct image_record *ret_record,
                struct brig_error *err);
/* Writes a record, which has a name, in place of an earlier one. */
int images_put(const struct images *store, const struct image_record *record,
               struct brig_error *err);
int images_remove(const struct images *store, const char *name, struct brig_error *err);

/* Calls `visit` for each image, sorted by name. */
typedef int (*images_visit)(void *context, const struct image_record *record,
                            struct brig_error *err);
int images_each(const struct images *store, images_visit visit, void *context,
                struct brig_error *err);
/* The bytes on disk of an image's layers, of which others may use some, too. */
uint64_t images_size(const struct images *store, const struct image_record *record);

struct images_removed {
    size_t layers;
    uint64_t bytes;
    size_t busy; /* unused layers that a running jail still has */
};
/* Removes layers that no record names, and what killed processes have left. */
int images_collect(const struct images *store, bool dry, struct images_removed *ret_removed,
                   struct brig_error *err);

/* ---- an image in use ---- */

struct image {
    struct image_record record;
    const char
        *paths[ROOT_LAYERS_MAX]; /* of its layers, the top one first; in the record's arena */
    int locks[ROOT_LAYERS_MAX];
    size_t count;
};

/* Opens an image; its layers stay until image_done(). */
int image_open(const char *store_path, const char *name, struct image *ret_image,
               struct brig_error *err);
void image_done(struct image *image);
