/* SPDX-License-Identifier: MIT */
/* Lines of brigd's own log, on standard error: with time and level, as text or as JSON. Text goes
 * to the journal as an entry with fields if standard error is the journal. */
#pragma once

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum log_level { LEVEL_INFO, LEVEL_WARNING, LEVEL_ERROR };

#define LOG_TIME_MAX 48

/* "2026-11-15T13:54:43.123Z" */
void log_time(char ret_text[LOG_TIME_MAX]);
/* Writes one line. `process` is the name of the process that says it; NULL: the supervisor. */
void log_line(enum log_format format, enum log_level level, const char *process,
              const char *message);
