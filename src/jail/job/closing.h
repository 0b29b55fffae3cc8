/* SPDX-License-Identifier: MIT */
/* Closing many fds at once, also where the kernel has no call for it. */
#pragma once

#include "jail/sys.h"

#define CLOSING_LAST_GUESS 65536 /* where close_range() is missing */

/* From first to last, both included; nothing if the first is above the last. */
static inline void sys_close_between(unsigned first, unsigned last)
{
    if (first > last || SYS(close_range, first, last, 0) >= 0)
        return;
    for (unsigned fd = first; fd <= last && fd < CLOSING_LAST_GUESS; fd++)
        (void)SYS(close, fd);
}
