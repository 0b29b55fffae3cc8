/* SPDX-License-Identifier: MIT */
/* Filling in a struct brig_error: fail and return in one line; the first error wins. */
#pragma once

#include <brig/brig.h>

/* Fills *err (may be NULL) with code, errno and the formatted message, and returns code. If
 * sys_errno is not 0, ": <its text>" is appended. */
int brig_fail(struct brig_error *err, int code, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5), nonnull(4)));

/* Puts "<text>: " before the message of *err and returns code. */
int brig_wrap(struct brig_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4), nonnull(3)));

/* Appends ". <text>" to the message: the remedy. Returns code. */
int brig_advise(struct brig_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4), nonnull(3)));

static inline int brig_fail_nomem(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_NOMEM, 0, "out of memory");
}
