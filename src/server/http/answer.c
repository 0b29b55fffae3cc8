/* SPDX-License-Identifier: MIT */
/* Answers. */
#include "server/http/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/config.h"
#include "server/http/cors.h"
#include "server/http/http.h"
#include "server/http/route.h"

#define JSON_TYPE "application/json"

/* What every answer carries: it is data, for the program that asked, and for nothing else. */
static const struct {
    const char *name, *value;
} fixed_headers[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
};

void answer_text(struct exchange *exchange, unsigned status, const char *content_type,
                 struct str *text)
{
    str_done(&exchange->answer);
    exchange->answer = *text;
    str_init(text);
    exchange->status = status;
    exchange->content_type = content_type;
    exchange->state = EXCHANGE_ANSWER;
    if (exchange->answer.failed)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
}

void answer_json(struct exchange *exchange, unsigned status, struct str *text)
{
    str_append_char(text, '\n');
    answer_text(exchange, status, JSON_TYPE, text);
}

void answer_empty(struct exchange *exchange, unsigned status)
{
    autostr struct str nothing = {0};
    answer_text(exchange, status, NULL, &nothing);
}

void answer_write_error(const struct exchange *exchange, enum http_error error, const char *field,
                        const char *message, struct str *out)
{
    const struct error_row *row = error_row(error);
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_text(&j, "error", message ? message : row->text);
    json_text(&j, "code", row->code);
    if (field && *field)
        json_text(&j, "field", field);
    if (*exchange->execution_id)
        json_text(&j, "id", exchange->execution_id);
    json_text(&j, "request_id", exchange->request_id);
    json_close_object(&j);
}

void answer_field_error(struct exchange *exchange, enum http_error error, const char *field,
                        const char *message)
{
    autostr struct str text = {0};
    unsigned status = error_row(error)->status;
    answer_write_error(exchange, error, field, message, &text);
    exchange->error = error;
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE && !exchange->retry_after)
        exchange->retry_after = HTTP_RETRY_SECONDS;
    if (text.failed) { /* without memory there is still the status */
        str_done(&text);
        exchange->state = EXCHANGE_ANSWER;
        exchange->status = status;
        return;
    }
    answer_json(exchange, status, &text);
}

void answer_error(struct exchange *exchange, enum http_error error, const char *message)
{
    answer_field_error(exchange, error, NULL, message);
}

void answer_retry_after(struct exchange *exchange, unsigned long seconds)
{
    (void)snprintf(exchange->retry_text, sizeof exchange->retry_text, "%lu", seconds);
    exchange->retry_after = exchange->retry_text;
}

static void add_allow(const struct exchange *exchange, struct MHD_Response *response)
{
    char methods[ROUTE_METHODS_MAX];
    if (exchange->status != MHD_HTTP_METHOD_NOT_ALLOWED &&
        strcmp(exchange->method, MHD_HTTP_METHOD_OPTIONS) != 0)
        return;
    if (route_methods(exchange->path, methods))
        (void)MHD_add_response_header(response, "Allow", methods);
}

void answer_add_headers(const struct exchange *exchange, struct MHD_Response *response)
{
    for (size_t i = 0; i < ARRAY_LENGTH(fixed_headers); i++)
        (void)MHD_add_response_header(response, fixed_headers[i].name, fixed_headers[i].value);
    (void)MHD_add_response_header(response, "X-Request-ID", exchange->request_id);
    if (exchange->content_type)
        (void)MHD_add_response_header(response, "Content-Type", exchange->content_type);
    if (*exchange->execution_id)
        (void)MHD_add_response_header(response, "X-Execution-ID", exchange->execution_id);
    if (exchange->retry_after)
        (void)MHD_add_response_header(response, "Retry-After", exchange->retry_after);
    if (exchange->status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (exchange->http->tls)
        (void)MHD_add_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (exchange->http->draining || exchange->closes)
        (void)MHD_add_response_header(response, "Connection", "close");
    add_allow(exchange, response);
    cors_add_headers(exchange, response);
}

int answer_send(struct exchange *exchange)
{
    struct str *text = &exchange->answer;
    /* A page that was made before it was known how full memory is; small ones always go. */
    if (text->length > MESSAGE_INLINE_MAX && !exchange_charge(exchange, text->length)) {
        str_done(text);
        answer_error(exchange, ERROR_OVERLOADED,
                     "the answer is too large for now; GET /executions/{id} has it");
    }
    struct MHD_Response *response =
        text->length > 0
            ? MHD_create_response_from_buffer_with_free_callback(text->length, text->data, free)
            : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return -1;
    exchange->sent_bytes = text->length;
    if (text->length > 0)
        str_init(text); /* the library frees it */
    answer_add_headers(exchange, response);
    enum MHD_Result queued = MHD_queue_response(exchange->connection, exchange->status, response);
    MHD_destroy_response(response);
    exchange->state = EXCHANGE_ANSWERED;
    return queued == MHD_YES ? 0 : -1;
}
