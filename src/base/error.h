/* SPDX-License-Identifier: MIT */
/* Filling in a struct brig_error: fail and return in one line; the first error wins. */
#pragma once

#include <brig/brig.h>

#define ERROR_TEXT_MAX 128
/* The text for an errno; safe to use from threads. */
const char *error_text(int sys_errno, char buffer[ERROR_TEXT_MAX]);

void error_fill(struct brig_error *err, int code, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5), nonnull(4)));
void error_prefix(struct brig_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));
void error_append(struct brig_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));

/* The three functions below are macros so that compilers and analyzers see that the return value is
 * `code`. The argument is evaluated once. */

/* Fills *err (may be NULL) with code, errno and the formatted message, and returns code. If
 * sys_errno is not 0, ": <text of the errno>" is appended. */
#define brig_fail(err, code, sys_errno, ...)                                                       \
    __extension__({                                                                                \
        const int code_ = (code);                                                                  \
        error_fill(err, code_, sys_errno, __VA_ARGS__);                                            \
        code_;                                                                                     \
    })

/* Puts "<text>: " before the message of *err and returns code. */
#define brig_wrap(err, code, ...)                                                                  \
    __extension__({                                                                                \
        const int code_ = (code);                                                                  \
        (void)code_;                                                                               \
        error_prefix(err, __VA_ARGS__);                                                            \
        code_;                                                                                     \
    })

/* Appends ". <text>", the remedy, to the message. Returns code. */
#define brig_advise(err, code, ...)                                                                \
    __extension__({                                                                                \
        const int code_ = (code);                                                                  \
        (void)code_;                                                                               \
        error_append(err, __VA_ARGS__);                                                            \
        code_;                                                                                     \
    })

static inline int brig_fail_nomem(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_NOMEM, 0, "out of memory");
}
