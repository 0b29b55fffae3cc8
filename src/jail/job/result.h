/* SPDX-License-Identifier: MIT */
/* The list of restrictions that were not enforced in a run. */
#pragma once

#include <brig/brig.h>

/* Adds a line unless it is in the list already; when the list is full, its last line says so. */
void unenforced_add(struct brig_unenforced *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
