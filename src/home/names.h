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
