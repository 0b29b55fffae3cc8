/* SPDX-License-Identifier: MIT */
/* Text of a jail for a terminal: names and contents of files, in which everything a terminal could
 * interpret is escaped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

struct str;

#define SHOWN_MAX 12 /* characters for one character of the text */

/* One character as it is shown. */
struct shown {
    wchar_t text[SHOWN_MAX];
    int count;    /* characters in text */
    int width;    /* columns; 0 for a mark that is combined with the character before */
    bool escaped; /* it is not shown as it is */
};

/* Whether the locale's characters are Unicode. Otherwise only ASCII is shown as it is. Call after
 * setlocale(). */
bool shown_has_unicode(void);

/* Reads one character; `left` is at least 1. Control characters, characters that change the
 * direction of text or are invisible, and bytes that are not UTF-8 are escaped. A tab is escaped
 * too. Returns the number of bytes read. */
size_t shown_next(const char *bytes, size_t left, bool unicode, struct shown *ret_shown);

/* Appends a text in this form, in UTF-8. */
void shown_append(struct str *out, const char *bytes, size_t length, bool unicode);
