/* SPDX-License-Identifier: MIT */
/* The interface of Piston, version 2, for its clients: /api/v2 and /api/v2/piston. Each request is an
 * execution. piston_request.h translates; piston_connect.c has its WebSocket. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct dialect;
struct exchange;
struct execution_result;
struct message_stage;
struct piston_call;

#define PISTON_PATH "/api/v2"

struct piston_route {
    const char *method;
    const char *path; /* below PISTON_PATH */
    void (*handle)(struct exchange *exchange);
    const char *operation; /* operationId in openapi.json */
    const char *request;   /* schema of the body (schemas.json), or NULL */
    const char *schema;    /* of the answer, or NULL: it is a WebSocket */
    const char *summary;
};
extern const struct piston_route piston_routes[];
extern const size_t piston_route_count;

/* The handler of all paths below PISTON_PATH, and the form of errors: {"message": …}. */
void piston_handle(struct exchange *exchange);
extern const struct dialect piston_dialect;

/* ---- Between piston.c and piston_connect.c ---- */

/* The array of GET /runtimes, owned by the caller; NULL if it is not known yet. */
json_t *piston_runtimes(const struct exchange *exchange);
/* Parses a text that came from the client; NULL, with a sentence, if it is not JSON. */
#define PISTON_PROBLEM_MAX 256
json_t *piston_parse(const char *text, size_t length, char ret_problem[PISTON_PROBLEM_MAX]);
/* Starts the execution of a call. */
void piston_start(struct exchange *exchange, struct piston_call *call);
/* GET /connect, and what the dialect does with its execution. */
void piston_connect(struct exchange *exchange);
void piston_connect_begun(struct exchange *exchange);
void piston_connect_output(struct exchange *exchange, bool is_stderr, const char *bytes,
                           size_t length);
void piston_connect_stage(struct exchange *exchange, const struct message_stage *stage);
void piston_connect_done(struct exchange *exchange, const struct execution_result *result);
/* Sends {"type": "error", "message"} and closes with 4002. */
void piston_connect_fail(struct exchange *exchange, const char *message);
