/* SPDX-License-Identifier: MIT */
/* The names in a directory, sorted by their bytes. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

struct names_list {
    char *text; /* the names, each ended by a NUL */
    char **items;
    size_t count;
};

/* Reads the names in a directory, without "." and "..". The fd is not closed, and its position does
 * not matter. Release with names_list_done(). */
int names_list_read(int directory, struct names_list *ret_list, struct brig_error *err);
void names_list_done(struct names_list *list);
/* Removes a prefix from the names that have it, and sorts again. A name may then occur twice. */
void names_list_strip(struct names_list *list, const char *prefix);
