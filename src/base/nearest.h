/* SPDX-License-Identifier: MIT */
/* "Did you mean …?": finds the name that a mistyped word is nearest to. */
#pragma once

#include <stddef.h>

struct brig_error;
struct str;

#define NEAREST_LENGTH_MAX 64 /* longer words and names are not compared */

/* Initialise, offer every possible name, then read `best`: "" if no name is near. */
struct nearest {
    const char *word; /* borrowed */
    size_t length;
    size_t distance;
    char best[NEAREST_LENGTH_MAX + 1];
};

void nearest_begin(struct nearest *nearest, const char *word);
/* Offers the first `length` bytes of a name. A name is near if one letter is wrong, missing,
 * superfluous or swapped with the next one (two such errors from five letters on), or if it begins
 * with the word and the word has at least three letters. The nearest name wins, and the first among
 * equals. */
void nearest_offer(struct nearest *nearest, const char *name, size_t length);
/* Offers every word of a text such as "casual, bare or sealed". */
void nearest_offer_words(struct nearest *nearest, const char *text);

/* Offers a name up to its first dot, and appends that to a list, unless *before, the name before it,
 * begins with the same. */
void nearest_offer_section(struct nearest *nearest, const char *name, const char **before,
                           struct str *list);

/* Appends ". Did you mean '<prefix><best>'?" to the message of *err unless best is "". Returns
 * code. */
int nearest_advise(const struct nearest *nearest, const char *prefix, int code,
                   struct brig_error *err);
/* Fails with "'<value>' is not one of <choices>" and the nearest choice. Returns BRIG_E_INVALID. */
int nearest_fail(const char *value, const char *choices, struct brig_error *err);
