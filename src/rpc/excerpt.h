/* SPDX-License-Identifier: MIT */
/* Keeps the beginning and the end of an output whose length the jail decides. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Zero-initialise but for `max`; release with excerpt_done(). */
struct excerpt {
    size_t max;      /* bytes that are kept at most: half of them of the beginning */
    struct str head; /* the first max / 2 bytes */
    struct str tail; /* the bytes after these: the last max / 2, or up to max */
    uint64_t seen;   /* bytes in all */
};

void excerpt_done(struct excerpt *excerpt);
void excerpt_add(struct excerpt *excerpt, const void *bytes, size_t length);
/* Whether bytes in the middle were dropped. */
bool excerpt_was_cut(const struct excerpt *excerpt);
/* Appends the text as UTF-8: NUL and other bytes become U+FFFD, and a line tells how much was dropped. */
void excerpt_print(const struct excerpt *excerpt, struct str *out);
/* Appends bytes as UTF-8, with U+FFFD for NUL and others. */
void excerpt_append_clean(struct str *out, const char *bytes, size_t length);
