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
enum message_kind { MESSAGE_ERROR, MESSAGE_WARNING, MESSAGE_NOTE };
void message_line(enum message_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define message_error(...) message_line(MESSAGE_ERROR, __VA_ARGS__)
#define message_warning(...) message_line(MESSAGE_WARNING, __VA_ARGS__)
#define message_note(...) message_line(MESSAGE_NOTE, __VA_ARGS__)

/* Prints a text on stdout. */
int message_print(const struct str *text, struct brig_error *err);
/* The exit status of a verb: that, or after an error, which is said, APP_FAILED. */
int message_status(int status, const struct brig_error *err);

/* Says nothing about an ordinary end, unless verbose. What brig or a limit ended is said to people
 * only (stderr is a terminal); what failed or was not enforced is said to everybody. */
void report_result(const struct brig_result *result, const struct brig_policy *policy,
                   bool verbose);
