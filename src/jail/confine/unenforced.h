/* SPDX-License-Identifier: MIT */
/* The list of what was not enforced in a run. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

#include <brig/brig.h>

/* Adds a line unless it is there already; when the list is full the last line says so. */
void unenforced_add(struct brig_unenforced *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- notice ---- */

/* Questions of a syscall filter that has a listener (seccomp user notification). */

/* Takes one question and answers it as `filter` would. The errno that was answered, with the number of
 * the call; or 0 where there was none any more. To be called when the listener is readable: the
 * kernel would wait for one. */
int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number);
