/* SPDX-License-Identifier: MIT */
/* What brig says to people: one line on stderr, "brig: …", how a run ended among it; and texts on
 * stdout. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct str;

/* The status of everything that is brig's own failure, not the command's. */
#define APP_FAILED 125

/* One write(2) each, so that lines of several processes do not mix. Control characters in what is
 * printed are shown as '?': names come from others. */
void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a text on stdout. */
int message_print(const struct str *text, struct brig_error *err);
/* The exit status of a verb: that, or after an error, which is said, APP_FAILED. */
int message_status(int status, const struct brig_error *err);

/* Says nothing about an ordinary end, unless verbose. What brig or a limit ended is said to people
 * only (stderr is a terminal); what failed or was not enforced is said to everybody. */
void report_result(const struct brig_result *result, const struct brig_policy *policy,
                   bool verbose);
