/* SPDX-License-Identifier: MIT */
/* Credentials, in memory that is locked, left out of core dumps, and wiped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct brig_error;

#define SECRETS_MAX 256

/* Zero-initialised there are none. */
struct secrets {
    char *memory; /* a mapping */
    size_t size;
    const char *texts[SECRETS_MAX]; /* each ends with a NUL */
    size_t count;
};

/* Reads them from a memfd: texts that each end with a NUL. Refuses what could not be the value of a
 * header; messages name no secret, only its number. */
int secrets_read(struct secrets *secrets, int fd, struct brig_error *err);
void secrets_done(struct secrets *secrets);

/* "Name: secret" as they are sent, in memory of their own of the same kind. */
struct secrets_line {
    const char *name;
    unsigned secret; /* which */
};
int secrets_make_lines(struct secrets *lines, const struct secrets *secrets,
                       const struct secrets_line *rows, size_t count, struct brig_error *err);
