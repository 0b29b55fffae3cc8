/* SPDX-License-Identifier: MIT */
/* The interface of E2B (e2b.dev), for its unchanged client libraries. They are told two addresses:
 *
 *     E2B_API_URL=http://HOST:PORT/e2b
 *     E2B_SANDBOX_URL=http://HOST:PORT/e2b/sbx
 *
 * How a request is routed. The table of http/route.c has one row for all paths below each of the
 * two, and e2b_handle() looks them up in e2b_routes[], where each has a `port`:
 *
 * - E2B_API: the control interface (e2b_control.c). The client sends its API key.
 * - Else the path is one in a sandbox. The client sends the sandbox's id in `E2b-Sandbox-Id`, the
 *   port in `E2b-Sandbox-Port`, and no API key but the sandbox's token, which the answer to its
 *   creation has, in `X-Access-Token` or `E2B-Traffic-Access-Token`. E2B_ENVD (49983) is its daemon
 *   for commands (e2b_process.c) and files (e2b_files.c), E2B_INTERPRETER (49999) the server of
 *   `@e2b/code-interpreter`: its rows have `.port = E2B_INTERPRETER` and paths such as "/execute",
 *   "/contexts" and "/contexts/{id}". Another port is a program of the client (ports.h).
 *
 * Before a handler is called, exchange->path_id is the id, of the path or the header, and
 * exchange->sandbox_token the token, which the executor checks with each question that
 * sandbox_ask() sends; `{id}` of other things is found with e2b_path_id(). Handlers use
 * sandbox_ask() and http/stream.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "server/http/route.h"
#include "server/sandbox.h"

struct exchange;
struct json;
struct multipart;

#define E2B_PATH "/e2b"
#define E2B_SANDBOX_PATH E2B_PATH "/sbx"
/* A sandbox can also be told by the name in `Host`, with any domain; the path is then one in it. */
#define E2B_HOST "PORT-ID.DOMAIN"
#define E2B_HOME "/home/user" /* of every sandbox that a client of E2B creates */
#define E2B_USER "user"
#define E2B_API 0
#define E2B_ENVD 49983
#define E2B_INTERPRETER 49999

/* The form of errors. */
enum e2b_form {
    E2B_REST,   /* {"code": 404, "message"} */
    E2B_UNARY,  /* Connect: {"code": "not_found", "message"} */
    E2B_STREAM, /* Connect: the same in the last frame of a stream, with status 200 */
    E2B_TEXT,   /* the message alone */
};

struct e2b_route {
    unsigned port;
    enum e2b_form form;
    const char *method;
    const char *path; /* "{id}" stands for one component; for E2B_API it is the sandbox's id */
    void (*handle)(struct exchange *exchange);
};
extern const struct e2b_route e2b_routes[];
extern const size_t e2b_route_count;

/* Finds a row by the part of the path after the prefix. *ret_id is the component at {id}, or "". */
const struct e2b_route *e2b_find(unsigned port, const char *method, const char *path,
                                 char ret_id[EXECUTION_ID_LENGTH + 1]);

/* Reads "PORT-ID.…"; false if it is another name. */
bool e2b_read_host(const char *host, unsigned *ret_port, char ret_id[EXECUTION_ID_LENGTH + 1]);
/* The same, and finds the row of http/route.c; `host` may be NULL. */
bool e2b_find_host(const char *host, const struct route **ret_route);

/* Answers a request for an unknown path that is one of E2B's without E2B_PATH before it: clients show
 * the hint. False if it is another path. */
bool e2b_answer_stray(struct exchange *exchange);

/* For the table of routes. */
void e2b_admit(struct exchange *exchange);
void e2b_handle(struct exchange *exchange);
extern const struct dialect e2b_dialect;

/* ---- for handlers ---- */

/* What is kept of an exchange between its questions; freed with it. */
struct e2b_kept {
    const struct e2b_route *route;
    struct arena arena;
    struct str body;
    char path_id[EXECUTION_ID_LENGTH + 1];
    const char *path;               /* to be looked at next */
    uint64_t timeout_ms, limit;     /* of a connection; of a list */
    uint64_t offset;                /* in a file that is read in pieces */
    const char *next, *template_id; /* of a list */
    int64_t started_after_ns;       /* of a list */
    bool resumed, ascending, dropped;
    bool failed;               /* a run: an error was told */
    unsigned char begun[2][4]; /* a run: the beginning of a character, of each stream */
    size_t begun_length[2];
    struct multipart *parts; /* files that are written one after the other */
    size_t part_count, part_at;
};
struct e2b_kept *e2b_kept(struct exchange *exchange);
const char *e2b_path_id(const struct exchange *exchange);

/* Answers with a fault of a sandbox. */
void e2b_failed(struct exchange *exchange, const struct sandbox_answer *answer);
/* Answers {}. */
void e2b_answer_empty(struct exchange *exchange, const struct sandbox_answer *answer);
/* Answers with a status and a message, in the form of the route; for Connect the status gives the code. */
void e2b_refuse(struct exchange *exchange, unsigned status, const char *message);

/* Reads the body, of a stream the frame in it, as a JSON object; "" is an empty one. False: answered. */
bool e2b_body(struct exchange *exchange, json_t **ret_object);
/* Copies a path to the request's arena; "" and "~" are the home. NULL: answered. */
const char *e2b_file_path(struct exchange *exchange, struct arena *arena, const char *path);
/* Refuses another user than those that all mean the sandbox's only one. False: answered. */
bool e2b_check_user(struct exchange *exchange);
/* A time that is not known is the beginning of 1970: the clients need one. */
void e2b_write_time(struct json *j, const char *key, int64_t ns);

/* ---- handlers ---- */

void e2b_create(struct exchange *exchange);
void e2b_connect(struct exchange *exchange);
void e2b_list(struct exchange *exchange);
void e2b_get(struct exchange *exchange);
void e2b_end(struct exchange *exchange);
void e2b_timeout(struct exchange *exchange);
void e2b_pause(struct exchange *exchange);
void e2b_resume(struct exchange *exchange);
void e2b_metrics(struct exchange *exchange);
void e2b_unsupported(struct exchange *exchange);

void e2b_health(struct exchange *exchange);
void e2b_process_start(struct exchange *exchange);
void e2b_process_connect(struct exchange *exchange);
void e2b_process_list(struct exchange *exchange);
void e2b_process_input(struct exchange *exchange);
void e2b_process_close(struct exchange *exchange);
void e2b_process_signal(struct exchange *exchange);
void e2b_process_update(struct exchange *exchange);

void e2b_code_execute(struct exchange *exchange);
void e2b_code_create(struct exchange *exchange);
void e2b_code_list(struct exchange *exchange);
void e2b_code_remove(struct exchange *exchange);
void e2b_code_restart(struct exchange *exchange);
/* Ends a run that has begun with an error of the server. */
void e2b_code_break(struct exchange *exchange, const char *message);

void e2b_file_read(struct exchange *exchange);
void e2b_file_write(struct exchange *exchange);
void e2b_file_stat(struct exchange *exchange);
void e2b_file_make(struct exchange *exchange);
void e2b_file_move(struct exchange *exchange);
void e2b_file_list(struct exchange *exchange);
void e2b_file_remove(struct exchange *exchange);
void e2b_file_watch(struct exchange *exchange);
