/* SPDX-License-Identifier: MIT */
/* The contents of files on a terminal: characters that a terminal interprets, or that change the order of
 * text, are replaced by a visible form. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

/* git takes a file for binary if one of its first bytes is NUL. */
#define PLAIN_BINARY_BYTES 8000
bool plain_is_binary(const void *bytes, size_t length);

/* Appends text with each control character, except tab, newline and a carriage return at the end of a line, and each
 * character that changes the direction of text as <U+001B>. A byte of the range 0x80 to 0x9f that is not part of a character
 * is <U+9B>. "<U+" itself becomes "<<U+", so that different texts stay different. Returns the number of bytes
 * used; unless `last`, a few at the end may be left for the next call. */
size_t plain_append(struct str *out, const char *bytes, size_t length, bool last);

/* Whether plain_append() would change the text. */
bool plain_is_plain(const char *bytes, size_t length);

/* Appends a path as git prints it: in quotes and with escapes if it has unusual bytes. */
void plain_append_name(struct str *out, const char *path);
