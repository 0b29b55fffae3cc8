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

/* Changes permanently to the ids of the user, if root acts for one. The programs deal with what a
 * jail has written, so they have the ids that the verbs have. */
int beside_become_user(struct brig_error *err);

/* Executes `PROGRAM [ROLE] BRIG WORDS…`; `role` may be NULL, `words` ends with NULL. Returns only on
 * failure. */
int beside_execute(const struct beside_program *program, const char *role, const char *const *words,
                   struct brig_error *err);
