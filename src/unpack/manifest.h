/* SPDX-License-Identifier: MIT */
/* The descriptions in an image: which layers it has, and its configuration. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include <brig/brig.h>

#include "image/record.h"
#include "unpack/source.h"

enum manifest_format {
    MANIFEST_ANY, /* OCI, else docker */
    MANIFEST_OCI,
    MANIFEST_DOCKER, /* what docker save writes */
};

/* A layer of the image: where it is, and what is known about it. */
struct manifest_layer {
    char path[PATH_MAX];                 /* in the source */
    char digest[SHA256_HEX_LENGTH + 1];  /* of the file; "": not known */
    uint64_t size;                       /* of the file, with a digest */
    char content[SHA256_HEX_LENGTH + 1]; /* of the archive in it, unpacked */
};

struct manifest {
    struct image_record record;                    /* its layers are the contents */
    char description[PATH_MAX];                    /* in the source: what has the image's digest */
    struct manifest_layer layers[ROOT_LAYERS_MAX]; /* as many */
};

/* Finds the image in a source; `wanted` is a tag or a name, or NULL for the only one. Among several
 * architectures it takes this one (as OCI writes it). Release with image_record_done(). */
int manifest_read(struct source *source, enum manifest_format format, const char *wanted,
                  const char *architecture, struct manifest *ret_manifest, struct brig_error *err);
