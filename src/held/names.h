/* SPDX-License-Identifier: MIT */
/* The files of a project that programs outside execute or obey: settings of editors and agents,
 * files that a shell sources on entering a directory. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct names_row {
    const char *path; /* relative to the top of a granted directory */
    const char *why;  /* what executes it: "which WHY would obey" */
    const char *risk; /* the same as a clause: "obeyed by WHY" */
};
#define NAMES_ROW(path, why)                                                                       \
    {                                                                                              \
        path, why, "obeyed by " why                                                                \
    }
extern const struct names_row names_rows[];
extern const size_t names_count;

/* Fails if --unprotect was given a name that is not protected: because of a typing error, a file
 * would stay read-only that the user believes to be writable. */
int names_check(const char *name, struct brig_error *err);

/* Whether `path`, relative to the directory with the absolute path `top`, is excepted by one of
 * these names, which are relative to the top or absolute. */
bool names_is_excepted(const char *const *excepted, size_t count, const char *top,
                       const char *path);
