/* SPDX-License-Identifier: MIT */
/* Places: which directory of the user a record is about. A path alone does not tell: the directory may have been replaced
 * by another one, or by a link, since the record was written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct place {
    uint64_t inode; /* 0: unknown, as in a record of an earlier version */
    uint64_t device;
    int64_t birth_ns; /* 0: the filesystem does not know it */
};

/* The place of an open directory. */
int place_of(int fd, struct place *ret_place, struct brig_error *err);

/* Whether two places are the same directory. The number of a device may change with a reboot, so that it counts only where
 * there is no birth time. An unknown place equals every other. */
bool place_equal(const struct place *a, const struct place *b);

/* In a record: one line; in a manifest a header. "" if it is unknown. */
#define PLACE_KEY "place"
struct place_text {
    char text[64];
};
struct place_text place_text(const struct place *place);
void place_add(struct str *record, const struct place *place);
bool place_read(const char *value, struct place *ret_place);

/* Opens a directory that a record names: absolute, resolved when it was recorded. No link is followed now, and a directory
 * that is not the recorded one is refused with BRIG_E_STATE. Returns an fd. */
int place_open(const char *path, const struct place *place, struct brig_error *err);
