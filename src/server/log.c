/* SPDX-License-Identifier: MIT */
/* Lines of brigd's own log. */
#include "server/log.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "server/notify.h"

#define WRITE_PATIENCE_MS 100

static const char *const level_names[] = {
    [LEVEL_INFO] = "info",
    [LEVEL_WARNING] = "warning",
    [LEVEL_ERROR] = "error",
};

static const int priorities[] = {
    [LEVEL_INFO] = LOG_INFO,
    [LEVEL_WARNING] = LOG_WARNING,
    [LEVEL_ERROR] = LOG_ERR,
};

void log_time(char ret_text[LOG_TIME_MAX])
{
    struct timespec now;
    struct tm parts;
    char seconds[32];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret_text, LOG_TIME_MAX, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

static void write_json(const char *time, enum log_level level, const char *process,
                       const char *message, struct str *out)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_text(&j, "time", time);
    json_text(&j, "level", level_names[level]);
    json_text(&j, "process", process);
    json_text(&j, "message", message);
    json_close_object(&j);
}

/* Writes to standard error, unless its reader has stopped reading: a log must not stop brigd. A pipe
 * for which poll() reports POLLOUT accepts PIPE_BUF bytes. */
static void write_line(const struct str *line)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    for (size_t done = 0, length; done < line->length; done += length) {
        length = line->length - done < PIPE_BUF ? line->length - done : PIPE_BUF;
        if (poll(&ready, 1, WRITE_PATIENCE_MS) <= 0 || !(ready.revents & POLLOUT) ||
            write(STDERR_FILENO, line->data + done, length) != (ssize_t)length)
            return;
    }
}

void log_line(enum log_format format, enum log_level level, const char *process,
              const char *message)
{
    autostr struct str line = {0};
    char time[LOG_TIME_MAX];
    const char *name = process ? process : "supervisor";
    /* The journal has its own time and level, so the message is enough. */
    if (format == LOG_FORMAT_TEXT && notify_has_journal() &&
        notify_journal(priorities[level], name, message))
        return;
    log_time(time);
    if (format == LOG_FORMAT_JSON)
        write_json(time, level, name, message, &line);
    else
        str_appendf(&line, "%s %s brigd: %s%s%s", time, level_names[level], process ? process : "",
                    process ? ": " : "", message);
    str_append_char(&line, '\n');
    if (!line.failed)
        write_line(&line);
}
