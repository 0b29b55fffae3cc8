/* SPDX-License-Identifier: MIT */
/* Texts as Judge0 reads and writes them: Ruby's base64, words of a shell, forms, and when two outputs
 * are the same. Pure; the texts are untrusted. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct str;

/* Appends base64 with a newline after every 60 characters and at the end; nothing for no bytes. */
void judge0_base64_encode(struct str *out, const void *bytes, size_t length);
/* Decodes base64 and skips characters that do not belong to it. `bytes` has room for the length of the
 * text, and may be the same memory. Returns the number of bytes. */
size_t judge0_base64_decode(const char *text, size_t length, char *bytes);

/* Splits the text into words as a shell does, after removing $ & ; < > | and `: blanks, both quotes,
 * backslashes, comments. The words are in the arena. Returns false if there are more than `max`, or if
 * memory ran out. */
bool judge0_words(const char *text, size_t length, struct arena *arena, size_t max,
                  const char ***ret_words, size_t *ret_count);

/* Whether two outputs are the same: without blanks at the ends of lines, and lines at the end. */
bool judge0_is_same(const char *one, size_t one_length, const char *two, size_t two_length);

/* Reads application/x-www-form-urlencoded into an object of strings; NULL if it is malformed or has
 * more than `max` fields. A later field replaces an earlier one. */
json_t *judge0_form(const char *text, size_t length, size_t max);
