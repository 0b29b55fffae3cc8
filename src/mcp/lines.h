/* SPDX-License-Identifier: MIT */
/* Divides what a client sends into lines. Pure; a line that is too long is reported and skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define LINES_LENGTH_MAX ((size_t)8 << 20)

/* Zero-initialise; release with lines_done(). */
struct lines {
    struct str buffer;
    size_t taken;    /* bytes of the buffer that were returned */
    size_t searched; /* bytes in which there is no further end of a line */
    bool skipping;   /* the rest of a line that was too long */
};

enum lines_result {
    LINES_NONE, /* more bytes are needed */
    LINES_LINE,
    LINES_LONG, /* a line of more than LINES_LENGTH_MAX bytes; reported once */
};

void lines_done(struct lines *lines);
/* Appends bytes. Call lines_next() until it returns LINES_NONE before the next lines_add(). A lack
 * of memory sets the failure flag of the buffer. */
void lines_add(struct lines *lines, const void *bytes, size_t length);
/* The next line without its end ("\n" or "\r\n"), valid until the next lines_add(). */
enum lines_result lines_next(struct lines *lines, const char **ret_line, size_t *ret_length);
