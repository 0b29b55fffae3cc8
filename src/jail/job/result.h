/* SPDX-License-Identifier: MIT */
/* What a result says of what was not enforced in a run. */
#pragma once

#include <brig/brig.h>

/* Adds a line unless it is there already; when the list is full the last line says so. */
void unenforced_add(struct brig_unenforced *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
