/* SPDX-License-Identifier: MIT */
/* Questions of a syscall filter that has a listener (seccomp user notification). */
#pragma once

#include <stdbool.h>

#include <linux/filter.h>

/* Whether the kernel has such questions, in a size that we can take. */
bool notice_fits(void);

/* Takes one question and answers it as `filter` would. The errno that was answered, with the number of
 * the call; or 0 where there was none any more. To be called when the listener is readable: the
 * kernel would wait for one. */
int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number);
