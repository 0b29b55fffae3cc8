/* SPDX-License-Identifier: MIT */
/* Answers: made here, sent by http.c. */
#pragma once

#include "server/http/errors.h"

struct exchange;
struct MHD_Response;
struct str;

/* The exchange can be answered with this; `text` is moved out of. */
void answer_json(struct exchange *exchange, unsigned status, struct str *text);
void answer_text(struct exchange *exchange, unsigned status, const char *content_type,
                 struct str *text);
void answer_empty(struct exchange *exchange, unsigned status);
/* {"error", "code", "request_id"}; `message` of NULL is the table's. */
void answer_error(struct exchange *exchange, enum http_error error, const char *message);
/* With a "field" too, where it is not "". */
void answer_field_error(struct exchange *exchange, enum http_error error, const char *field,
                        const char *message);
void answer_retry_after(struct exchange *exchange, unsigned long seconds);
/* The same object as text, for a stream. */
void answer_write_error(const struct exchange *exchange, enum http_error error, const char *field,
                        const char *message, struct str *out);

/* Queues what was made with the library: 0, or negative if the connection has to be closed. */
int answer_send(struct exchange *exchange);
/* The headers that every answer has. */
void answer_add_headers(const struct exchange *exchange, struct MHD_Response *response);
