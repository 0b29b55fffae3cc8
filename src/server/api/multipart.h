/* SPDX-License-Identifier: MIT */
/* Bodies of multipart/form-data (RFC 7578), as HTML forms and fetch() send them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 */
#define MULTIPART_HEAD_MAX 16384  /* bytes of the headers of one part */
#define MULTIPART_PARTS_MAX 1024

/* The texts are in the arena, the bytes in the body. */
struct multipart {
    const char *name, *file_name; /* "" if it has none */
    const char *bytes;
    size_t length;
};

/* The boundary in a Content-Type; false if there is none, or it is another type. */
bool multipart_boundary(const char *content_type, char ret_boundary[MULTIPART_BOUNDARY_MAX + 1]);

/* Finds the parts of a whole body. False if it is malformed or memory ran out. */
bool multipart_read(const char *body, size_t length, const char *boundary, struct arena *arena,
                    struct multipart **ret_parts, size_t *ret_count);
