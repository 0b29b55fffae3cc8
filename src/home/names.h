/* SPDX-License-Identifier: MIT */
/* The names in a directory, to tell quickly what is not there: most masks are for what most people do
 * not have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NAMES_WORDS 64

struct names {
    bool known; /* if not, anything may be there */
    bool empty; /* nothing is */
    uint64_t bits[NAMES_WORDS];
};

/* Reads those of the directory itself. What is made there later is not in it. */
void names_read(struct names *ret_names, int dir_fd);

/* Whether the first name of a relative path may be there: false is certain. */
bool names_may_have(const struct names *names, const char *path);

/* The same name with its first letter in the other case (of NAME_MAX + 1 bytes); false if it has no
 * letter. Pure. */
bool names_flip_case(const char *name, char *ret_name);
/* Whether `other`, made by names_flip_case() from a name that was read, exists although it was not
 * read: the filesystem ignores case, so the list does not tell what is there. */
bool names_fold(const struct names *names, int dir_fd, const char *other);
