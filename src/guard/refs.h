/* SPDX-License-Identifier: MIT */
/* Lists of refs as git prints them, one "OBJECT NAME" a line. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define REFS_ID_MAX 64 /* hexadecimal digits of SHA-256 */
#define REFS_MAX 1000000
#define REFS_STASHES "refs/stashes/" /* with the id of a stash: only below refs/brig */

struct ref {
    const char *id; /* both point into the text they were read from */
    const char *name;
};

struct refs {
    struct ref *items; /* owned; sorted by name */
    size_t count;
    size_t skipped; /* lines that are not as expected, or whose names are not safe */
};

/* Whether this is the hexadecimal name of an object. */
bool refs_is_id(const char *text);
/* Whether a full name is safe to create outside: below refs/heads/, refs/tags/ or refs/notes/, with characters
 * that mean nothing to a shell, a terminal or git itself. */
bool refs_is_safe(const char *name);

/* Reads a text, which is changed and must outlive the list. Release with refs_done(). */
int refs_read(char *text, struct refs *ret_refs, struct brig_error *err);
void refs_done(struct refs *refs);
/* The ref of a name, and its object; NULL if there is none. */
const struct ref *refs_get(const struct refs *refs, const char *name);
const char *refs_find(const struct refs *refs, const char *name);
