/* SPDX-License-Identifier: MIT */
/* "Did you mean …?": of some names, the one that a mistyped word is nearest to. */
#pragma once

#include <stddef.h>

struct brig_error;

#define NEAREST_LENGTH_MAX 64 /* longer words and names are not compared */

/* Begin, offer every name that could have been meant, then look at best: "" if none is near. */
struct nearest {
    const char *word; /* borrowed */
    size_t length;
    size_t distance;
    char best[NEAREST_LENGTH_MAX + 1];
};

void nearest_begin(struct nearest *nearest, const char *word);
/* The first `length` bytes of a name. Near is a name with one letter wrong, missing, too many or
 * exchanged with the next one, from five letters on two of these; or one that begins with the word, if
 * that has at least three letters. Of several the nearest counts, of equals the first. */
void nearest_offer(struct nearest *nearest, const char *name, size_t length);
/* Every word of a text such as "casual, bare or sealed". */
void nearest_offer_words(struct nearest *nearest, const char *text);

/* Appends ". Did you mean '<prefix><best>'?" to the message of *err if there is a best. Returns code. */
int nearest_advise(const struct nearest *nearest, const char *prefix, int code,
                   struct brig_error *err);
/* Fails with "'<value>' is not one of <choices>", and the nearest of them. Returns BRIG_E_INVALID. */
int nearest_fail(const char *value, const char *choices, struct brig_error *err);
