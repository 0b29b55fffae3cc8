/* SPDX-License-Identifier: MIT */
/* What brig says to people: one line on stderr, "brig: …". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One write(2) each, so that lines of several processes do not mix. Control characters in what is
 * printed are shown as '?': names come from others. */
void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True if lines on stderr may be coloured: it is a terminal, and NO_COLOR is unset or empty. */
bool message_coloured(void);
