/* SPDX-License-Identifier: MIT */
/* What brig knows about an image, and the text in which it is kept: the first line is "brig-image 1",
 * each other line a key, a blank and a value, in which "%XX" stands for a byte. brig-unpack writes the
 * text in its jail; it is read as a stranger's. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/arena.h"
#include "base/sha256.h"
#include "policy/layers.h"

struct str;

#define IMAGE_NAME_MAX 255
#define IMAGE_RECORD_MAX ((size_t)1 << 20) /* bytes */
#define IMAGE_WORDS_MAX 1024               /* variables, or words of a command */

/* Texts in the arena of the record, after them NULL. */
struct image_words {
    char **items;
    size_t count;
};

struct image_record {
    struct arena arena;
    char *name;         /* as image_check_name() accepts it; NULL: none yet */
    char *digest;       /* of the manifest or, in a docker archive, of the configuration */
    char *architecture; /* as OCI writes it, or NULL */
    /* Hexadecimal digits, the lowest layer first: in the store the digest of the file that it came in,
     * in what brig-unpack writes that of the unpacked archive. */
    char *layers[ROOT_LAYERS_MAX];
    size_t layer_count;
    struct image_words env, entrypoint, cmd;
    char *workdir, *user; /* or NULL */
};

#define autorecord __attribute__((cleanup(image_record_done)))
void image_record_done(struct image_record *record);

/* Appends the record as text. */
void image_record_write(const struct image_record *record, struct str *out);
/* Reads it. Fails with BRIG_E_INVALID. */
int image_record_read(const char *text, size_t length, struct image_record *ret_record,
                      struct brig_error *err);

/* Adds a word; the text is copied. */
int image_words_add(struct image_record *record, struct image_words *words, const char *text,
                    struct brig_error *err);

/* Fails if this is not the name of an image: components of lower-case letters, digits, '.', '_' and
 * '-' with slashes between them, a port in the first one, and a tag after a colon. */
int image_check_name(const char *name, struct brig_error *err);
/* The part of a name after docker.io/ or docker.io/library/, which Docker's programs leave out. */
const char *image_short_name(const char *name);
bool image_is_digest(const char *text); /* 64 hexadecimal digits, in lower case */
