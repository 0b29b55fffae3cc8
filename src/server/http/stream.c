/* SPDX-License-Identifier: MIT */
/* Streams of server-sent events. */
#include "server/http/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/http/http.h"

#define BLOCK_BYTES 16384 /* libmicrohttpd's read size */

static const char *const event_names[2] = {"stdout", "stderr"};

/* ---- Events, from arbitrary bytes ---- */

static void begin_event(struct str *out, const char *event)
{
    str_concat(out, "event: ", event, "\ndata: ");
}

/* Appends one character or line end. Returns the bytes used, 0 if the character is incomplete. */
static size_t append_one(struct str *out, struct sse_text *text, const unsigned char *p,
                         size_t left, bool last)
{
    size_t length = utf8_length(p, left);
    bool swallow = text->after_return && *p == '\n';
    text->after_return = *p == '\r';
    if (swallow)
        return 1;
    if (*p == '\r' || *p == '\n') {
        str_append(out, "\ndata: ");
        return 1;
    }
    if (length == 0 && !last && utf8_is_beginning(p, left))
        return 0;
    if (length == 0)
        str_append(out, "\xef\xbf\xbd");
    else
        str_append_bytes(out, p, length);
    return length > 0 ? length : 1;
}

void sse_append_text(struct str *out, const char *event, struct sse_text *text, const void *bytes,
                     size_t length, bool last)
{
    autostr struct str whole = {0}; /* the incomplete character, and the piece */
    size_t before = out->length, at = 0, used = 1;
    str_append_bytes(&whole, text->begun, text->begun_length);
    str_append_bytes(&whole, bytes, length);
    out->failed |= whole.failed;
    begin_event(out, event);
    size_t begun = out->length;
    while (!whole.failed && at < whole.length && used > 0) {
        used =
            append_one(out, text, (const unsigned char *)whole.data + at, whole.length - at, last);
        at += used;
    }
    text->begun_length = 0;
    if (!whole.failed && at < whole.length) { /* an incomplete character */
        text->begun_length = whole.length - at;
        memcpy(text->begun, whole.data + at, text->begun_length);
    }
    if (out->length == begun && !out->failed)
        out->length = before;
    else
        str_append(out, "\n\n");
}

void sse_append_base64(struct str *out, const char *event, const void *bytes, size_t length)
{
    begin_event(out, event);
    base64_append(out, bytes, length);
    str_append(out, "\n\n");
}

void sse_append_json(struct str *out, const char *event, const char *json)
{
    begin_event(out, event);
    str_concat(out, json, "\n\n");
}

void sse_append_comment(struct str *out)
{
    str_append(out, ": keep-alive\n\n");
}

/* ---- Streams ---- */

struct stream {
    struct exchange *exchange;
    const struct stream_form *form; /* NULL: server-sent events */
    bool base64, dropped, ended;
    bool gap;        /* something was dropped since the last event */
    size_t received; /* bytes of output received */
    struct sse_text texts[2];
    struct str out; /* encoded events */
    size_t sent;    /* bytes of `out` that were sent */
    uint64_t comment_ms;
};

static uint64_t next_comment(const struct http *http)
{
    uint64_t pause = http->config->server.idle_timeout_ms / 2;
    return http->now_ms + (pause > 0 && pause < STREAM_COMMENT_MS ? pause : STREAM_COMMENT_MS);
}

bool stream_begin(struct exchange *exchange, const struct stream_form *form, bool base64)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return false;
    }
    stream->exchange = exchange;
    stream->form = form;
    stream->base64 = base64;
    stream->comment_ms = next_comment(exchange->http);
    exchange->stream = stream;
    exchange->state = EXCHANGE_STREAM;
    exchange->socket->busy = true;
    exchange_resume(exchange);
    return true;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    str_done(&stream->out);
    free(stream);
}

bool stream_has_dropped(const struct stream *stream)
{
    return stream->dropped;
}

/* Whether the client may leave `length` more bytes unread; else they are dropped. */
static bool has_room(struct stream *stream, size_t length, size_t most)
{
    if (stream->ended)
        return false;
    if (stream->out.length - stream->sent + length <= most)
        return true;
    stream->dropped = stream->gap = true;
    return false;
}

/* Counts what was appended since `before`, or drops it. */
static void append_counted(struct stream *stream, size_t before)
{
    if (!stream->out.failed && !exchange_charge(stream->exchange, stream->out.length - before)) {
        stream->out.length = before;
        stream->dropped = stream->gap = true;
    }
    exchange_resume(stream->exchange);
}

static void append_text(struct stream *stream, const char *event, bool is_stderr, const void *bytes,
                        size_t length)
{
    size_t before = stream->out.length;
    if (stream->base64)
        sse_append_base64(&stream->out, event, bytes, length);
    else
        sse_append_text(&stream->out, event, &stream->texts[is_stderr], bytes, length, false);
    append_counted(stream, before);
}

void stream_output(struct stream *stream, bool is_stderr, const void *bytes, size_t length)
{
    if (length == 0 || stream->ended)
        return;
    stream->dropped |= length > STREAM_BYTES_MAX - stream->received;
    if (stream->dropped)
        return;
    stream->received += length;
    append_text(stream, event_names[is_stderr], is_stderr, bytes, length);
}

void stream_event(struct stream *stream, const char *event, const char *json)
{
    size_t before = stream->out.length;
    if (!json || !has_room(stream, 0, STREAM_BYTES_MAX))
        return;
    sse_append_json(&stream->out, event, json);
    append_counted(stream, before);
}

void stream_live(struct stream *stream, const char *event, bool is_stderr, const void *bytes,
                 size_t length)
{
    if (length == 0 || !has_room(stream, length, STREAM_BYTES_MAX))
        return;
    bool gap = stream->gap;
    stream->gap = false;
    if (gap)
        stream_event(stream, "gap", "{}");
    append_text(stream, event, is_stderr, bytes, length);
}

bool stream_append(struct stream *stream, const void *bytes, size_t length)
{
    size_t before = stream->out.length;
    if (!has_room(stream, length, STREAM_FORM_BYTES_MAX))
        return false;
    str_append_bytes(&stream->out, bytes, length);
    append_counted(stream, before);
    return !stream->out.failed && stream->out.length > before;
}

void stream_abort(struct stream *stream)
{
    stream->out.failed = true;
    exchange_resume(stream->exchange);
}

void stream_finish(struct stream *stream, const void *bytes, size_t length)
{
    if (!stream->ended)
        str_append_bytes(&stream->out, bytes, length);
    stream->ended = true;
    exchange_resume(stream->exchange);
}

void stream_end(struct stream *stream, const char *event, const char *json)
{
    if (stream->ended)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(event_names) && !stream->base64; i++)
        sse_append_text(&stream->out, event_names[i], &stream->texts[i], "", 0, true);
    if (json)
        sse_append_json(&stream->out, event, json);
    stream_finish(stream, "", 0);
}

static void append_idle(struct stream *stream)
{
    if (!stream->form)
        sse_append_comment(&stream->out);
    else if (stream->form->idle)
        stream->form->idle(&stream->out);
    stream->comment_ms = next_comment(stream->exchange->http);
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t room)
{
    struct exchange *exchange = context;
    struct stream *stream = exchange->stream;
    struct str *out = &stream->out;
    (void)position;
    if (exchange->gone || out->failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (stream->sent == out->length) {
        str_done(out); /* what is not counted is not kept: the run may go on for long */
        stream->sent = 0;
        exchange_release(exchange);
        if (stream->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (exchange->http->now_ms >= stream->comment_ms)
            append_idle(stream);
        if (stream->form && stream->form->drained && !exchange->ticket)
            stream->form->drained(exchange);
    }
    size_t length = out->length - stream->sent;
    if (length == 0) {
        exchange_suspend(exchange);
        return 0;
    }
    if (length > room)
        length = room;
    memcpy(buffer, out->data + stream->sent, length);
    stream->sent += length;
    stream->comment_ms = next_comment(exchange->http);
    exchange->sent_bytes += length;
    return (ssize_t)length;
}

int stream_send(struct exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      read_stream, exchange, NULL);
    if (!exchange->stream->form || !exchange->status)
        exchange->status = MHD_HTTP_OK;
    exchange->content_type =
        exchange->stream->form ? exchange->stream->form->content_type : "text/event-stream";
    exchange->socket->deadline_ms = 0;
    /* Tells nginx not to buffer the stream. */
    if (response)
        (void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
    return answer_queue(exchange, response);
}

void stream_comment(struct stream *stream)
{
    stream->comment_ms = 0;
}

void stream_tick(struct exchange *exchange)
{
    if (exchange->http->now_ms >= exchange->stream->comment_ms)
        exchange_resume(exchange);
}
