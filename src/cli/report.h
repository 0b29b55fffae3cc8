/* SPDX-License-Identifier: MIT */
/* Messages to the user: lines "brig: …" on stderr, including how a run ended, and texts on
 * stdout. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct str;

/* The exit status of all failures of brig itself, as opposed to the command's. */
#define APP_FAILED 125

/* Each message is one write(2), so that lines of several processes do not mix. Control characters
 * are shown as '?', because names in messages are untrusted. */
enum message_kind { MESSAGE_ERROR, MESSAGE_WARNING, MESSAGE_NOTE };
void message_line(enum message_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define message_error(...) message_line(MESSAGE_ERROR, __VA_ARGS__)
#define message_warning(...) message_line(MESSAGE_WARNING, __VA_ARGS__)
#define message_note(...) message_line(MESSAGE_NOTE, __VA_ARGS__)

/* A note for each line of a text that is not empty. Changes the text. */
void message_lines(struct str *text);

/* Prints a text on stdout. */
int message_print(const struct str *text, struct brig_error *err);
/* The exit status of a verb: `status` or, after an error, which is printed, APP_FAILED. */
int message_status(int status, const struct brig_error *err);

/* Prints nothing about an ordinary end, unless verbose. Failures, notices and ends by a limit are
 * always reported; a denied or cancelled run only if stderr is a terminal. */
void report_result(const struct brig_result *result, const struct brig_policy *policy,
                   bool verbose);

/* If the command failed: says what would allow a nested sandbox, if one was refused, and what a
 * client of a service manager or container daemon lacks. `program` is the command's. */
void report_nested(const struct brig_result *result, const char *program);
