/* SPDX-License-Identifier: MIT */
/* Adds an image to a store. It is a stranger's: brig-unpack reads it in sealed jails, one for the
 * descriptions and one for each layer, which can write to a temporary directory of their own and to
 * nothing else. Digests that the image and its layers are stored by are computed here. */
#pragma once

#include <brig/brig.h>

#include "image/record.h"

struct str;

enum load_format {
    LOAD_ANY,
    LOAD_OCI,
    LOAD_DOCKER,
};

struct load {
    const char *store; /* absolute; created if it is missing */
    const char *path;  /* absolute: a directory or an archive */
    enum load_format format;
    const char *wanted; /* the tag or name of the image in it; NULL: the only one */
    const char *name;   /* of the image in the store; NULL: its own */
};

/* Reads "oci:DIR[:TAG]", "oci-archive:FILE[:TAG]", "docker-archive:FILE[:NAME]" or a path, relative to
 * cwd, into the last four members. The texts are the caller's to free. */
int load_parse(const char *source, const char *cwd, struct load *load, char **ret_path,
               char **ret_wanted, struct brig_error *err);

/* Loads an image; *notes gets lines for the user. Release the record with image_record_done(). */
int load_image(const struct load *load, struct image_record *ret_record, struct str *notes,
               struct brig_error *err);
