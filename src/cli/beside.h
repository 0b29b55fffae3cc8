/* SPDX-License-Identifier: MIT */
/* Programs of this project that a verb of brig becomes: brig-review, brig-mcp. They are programs of
 * their own, because brig is static and small. */
#pragma once

#include <brig/brig.h>

struct beside_program {
    const char *name;
    const char *const *places; /* relative to the directory of brig; ends with NULL */
    const char *installed;     /* where it is installed */
    const char *advice;        /* what to do without it; NULL: nothing */
};

/* Executes `PROGRAM [ROLE] BRIG WORDS…` with the ids of the user; `role` may be NULL, `words` ends
 * with NULL. The program deals with what a jail has written, so it has the ids that the verbs have.
 * Returns only on failure. */
int beside_execute(const struct beside_program *program, const char *role, const char *const *words,
                   struct brig_error *err);
