/* SPDX-License-Identifier: MIT */
/* The access log. */
#include "server/http/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/log.h"

/* Bytes of a text that the client chose. Six bytes may be needed for one, so a line fits into PIPE_BUF
 * and is written as a whole. Loggers begin a new entry within a longer line (journald after 48 KiB,
 * containers after 16 KiB), and a client could choose how that begins. */
#define TEXT_MAX 512
#define METHOD_MAX 32

static void take_file(struct access_log *log)
{
    struct stat info;
    log->may_block = fstat(log->fd, &info) < 0 || !S_ISREG(info.st_mode);
}

int access_log_init(struct access_log *log, const char *where, struct brig_error *err)
{
    *log = (struct access_log){.fd = -1};
    if (!str_equal(where, "-"))
        return 0;
    /* Use a copy of the fd, and do not make it non-blocking: the open file of standard error is
     * shared with other processes. */
    log->fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
    if (log->fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot log to standard error");
    take_file(log);
    return 0;
}

/* Lines logged before go to the old file. */
void access_log_replace(struct access_log *log, int *fd)
{
    access_log_flush(log);
    if (log->fd >= 0)
        (void)close(log->fd);
    log->fd = take_fd(fd);
    take_file(log);
}

void access_log_close(struct access_log *log)
{
    if (log->fd >= 0)
        (void)close(take_fd(&log->fd));
    str_done(&log->lines);
}

/* The time of each step in microseconds since the request began. */
static void append_trace(struct json *j, const struct exchange *exchange)
{
    const struct execution_trace *trace = &exchange->trace;
    json_open_object(j, "trace_us");
    for (int i = 0; i < STEPS_; i++)
        if (trace->at_us[i] >= exchange->began_us)
            json_uint(j, execution_step_name((enum execution_step)i),
                      trace->at_us[i] - exchange->began_us);
    json_close_object(j);
    json_bool(j, "warm", trace->warm);
}

/* Writes a text of the client, cut at `most` bytes, which are at most TEXT_MAX. */
static void append_text(struct json *j, const char *key, const char *text, size_t most)
{
    static const char ellipsis[] = "…";
    char cut[TEXT_MAX + sizeof ellipsis];
    size_t length = strnlen(text, most + 1);
    if (length > most) {
        length = utf8_cut(text, most);
        memcpy(cut, text, length);
        memcpy(cut + length, ellipsis, sizeof ellipsis);
        text = cut;
    }
    json_text(j, key, text);
}

static bool is_full(const struct access_log *log)
{
    return log->lines.length > ACCESS_LOG_BYTES_MAX || log->lines.failed;
}

static void begin_line(struct access_log *log, struct json *j)
{
    char time[LOG_TIME_MAX];
    json_init(j, &log->lines);
    json_open_object(j, NULL);
    log_time(time);
    json_text(j, "time", time);
}

static void end_line(struct access_log *log, struct json *j)
{
    json_close_object(j);
    str_append_char(&log->lines, '\n');
}

void access_log_tick(struct access_log *log, uint64_t now_ms)
{
    struct json j;
    if (log->second == now_ms / 1000)
        return;
    log->second = now_ms / 1000;
    log->unproven_bytes = 0;
    if (log->skipped == 0 || log->fd < 0 || is_full(log))
        return;
    begin_line(log, &j);
    json_uint(&j, "skipped", log->skipped);
    end_line(log, &j);
    log->skipped = 0;
}

/* A request with an API key or a sandbox's token that was not refused, or, on a server without keys,
 * one that was answered. */
static bool is_proven(const struct exchange *exchange, unsigned status)
{
    const struct route *route = exchange->route;
    bool open = !route || route->flags & ROUTE_OPEN;
    return *exchange->domain || (status < 400 && (!open || *exchange->sandbox_token));
}

static void add_line(struct access_log *log, const struct exchange *exchange, unsigned status)
{
    const struct server_config *config = exchange->http->config;
    struct json j;
    begin_line(log, &j);
    json_text(&j, "request_id", exchange->request_id);
    json_text(&j, "client", exchange->client.text);
    append_text(&j, "method", exchange->method, METHOD_MAX);
    append_text(&j, "path", exchange->path, TEXT_MAX);
    json_uint(&j, "status", status);
    if (exchange->error || exchange->outcome)
        json_text(&j, "outcome",
                  exchange->error ? error_row(exchange->error)->code : exchange->outcome);
    if (exchange->language)
        json_text(&j, "language", exchange->language);
    json_uint(&j, "bytes_in", exchange->body_bytes);
    json_uint(&j, "bytes_out", exchange->sent_bytes);
    json_uint(&j, "duration_us", clock_now_us() - exchange->began_us);
    if (*exchange->execution_id)
        json_text(&j, "execution_id", exchange->execution_id);
    if (*exchange->traceparent)
        json_text(&j, "traceparent", exchange->traceparent);
    if (*exchange->domain)
        json_text(&j, "key", exchange->domain);
    size_t key = config_find_key(config, exchange->domain);
    if (key < CONFIG_LIST_MAX && config->security.keys[key].name)
        json_text(&j, "key_name", config->security.keys[key].name);
    if (config->server.trace && *exchange->execution_id)
        append_trace(&j, exchange);
    end_line(log, &j);
}

void access_log_add(struct access_log *log, const struct exchange *exchange, unsigned status)
{
    bool proven = is_proven(exchange, status);
    if (log->fd < 0)
        return;
    access_log_tick(log, exchange->http->now_ms);
    if (!proven && log->unproven_bytes > ACCESS_LOG_UNPROVEN_BYTES) {
        log->skipped++;
        return;
    }
    if (is_full(log)) {
        log->dropped++;
        return;
    }
    size_t before = log->lines.length;
    add_line(log, exchange, status);
    if (!proven)
        log->unproven_bytes += log->lines.length - before;
}

/* The bytes that can be written without blocking: a pipe for which poll() reports POLLOUT accepts
 * PIPE_BUF. Whole lines if possible, as other processes write to the same pipe. */
static size_t writable(const struct access_log *log, const char *bytes, size_t wanted)
{
    struct pollfd ready = {.fd = log->fd, .events = POLLOUT};
    if (!log->may_block)
        return wanted;
    if (poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLOUT))
        return 0;
    if (wanted <= PIPE_BUF)
        return wanted;
    const char *end = memrchr(bytes, '\n', PIPE_BUF);
    return end ? (size_t)(end + 1 - bytes) : PIPE_BUF;
}

void access_log_flush(struct access_log *log)
{
    size_t written = 0;
    if (log->fd < 0 || log->lines.failed)
        str_done(&log->lines);
    while (written < log->lines.length) {
        const char *rest = log->lines.data + written;
        size_t length = writable(log, rest, log->lines.length - written);
        ssize_t now = length > 0 ? write(log->fd, rest, length) : 0;
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            break;
        written += (size_t)now;
    }
    if (written == 0)
        return;
    log->lines.length -= written;
    memmove(log->lines.data, log->lines.data + written, log->lines.length);
}
