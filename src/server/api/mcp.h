/* SPDX-License-Identifier: MIT */
/* The Model Context Protocol at POST /mcp: tools for models that run code in executions and
 * sandboxes.
 *
 * There are no sessions to keep: a legacy client gets an id with the answer to `initialize`, which it
 * sends with each request, and which only tells its requests from those of others when it cancels
 * one. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "rpc/rpc.h"
#include "server/execution.h"

struct dialect;
struct exchange;
struct sandbox_answer;
struct server_config;
struct mcp_tool;

void mcp_handle(struct exchange *exchange); /* a handler of the route table */
extern const struct dialect mcp_dialect;

/* ---- mcp_request.c: pure ---- */

/* Headers of a request; NULL where there is none. */
struct mcp_headers {
    const char *version, *method, *name, *session;
};

/* Finds the form of the request, and checks that its headers belong to it. On failure sets the fault
 * and the HTTP status. */
bool mcp_check(struct rpc_request *request, const struct mcp_headers *headers,
               struct rpc_fault *fault, unsigned *ret_status);
/* The table of tools for a client: the languages of this server are filled in, without those that the
 * answer of GET /runtimes (NULL for none) calls unavailable. NULL if memory is lacking. */
json_t *mcp_tool_list(const struct server_config *config, const struct str *runtimes);
/* The bodies that POST /execute, POST /sandboxes and POST …/commands have for the arguments of a
 * tool; NULL if memory is lacking, and for a command also if there is none, with a message for the
 * model. */
json_t *mcp_execution_body(const json_t *arguments);
json_t *mcp_sandbox_body(const json_t *arguments);
json_t *mcp_command_body(const struct server_config *config, const json_t *arguments,
                         const char **ret_message);
/* Whether run_code in a sandbox can use the default context of its language, which keeps variables
 * between calls; else it is a command. */
bool mcp_is_for_context(const struct server_config *config, const json_t *arguments);
json_t *mcp_context_body(const json_t *arguments); /* of POST /sandboxes/{id}/run */
/* The results of a run, of one in a context, with what its interpreter said, and of other tools. */
json_t *mcp_run_result(const struct execution_result *result);
json_t *mcp_context_result(const struct execution_result *result,
                           const struct execution_bytes *lines);
json_t *mcp_read_result(const json_t *arguments, const struct sandbox_answer *answer);
json_t *mcp_list_result(const struct sandbox_answer *answer);

/* ---- mcp_tools.c: tools, as requests to the executor ---- */

/* A call of a tool; the context of an exchange. */
struct mcp_call {
    struct rpc_request request;
    const struct mcp_tool *tool;
    json_t *arguments; /* in the request; never NULL */
    bool open;         /* it is not answered yet */
    bool streams;      /* it is answered by events */
    json_t *token;     /* for reports of progress, in the request; or NULL */
    char session[EXECUTION_ID_LENGTH + 1];
    uint64_t began_ms, reported_ms;
    struct str lines;   /* output that was not reported yet */
    struct str results; /* what the interpreter of a context said */
    bool results_cut;   /* there was no memory for some of it */
};

const struct mcp_tool *mcp_tool_find(const char *name);
/* Begins the call of the exchange, whose arguments match the schema: answers, or leaves it waiting. */
void mcp_tool_begin(struct exchange *exchange);

/* ---- mcp.c ---- */

/* Answers a call; takes the result over, and NULL for a lack of memory. */
void mcp_finish(struct exchange *exchange, json_t *result);
/* Answers it with a result that is an error. */
void mcp_refuse(struct exchange *exchange, const char *text);
/* Reports output. */
void mcp_output(struct exchange *exchange, const char *bytes, size_t length);
