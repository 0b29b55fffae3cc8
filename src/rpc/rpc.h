/* SPDX-License-Identifier: MIT */
/* JSON-RPC and the Model Context Protocol, in its two forms, for brig-mcp and brigd. Legacy
 * (2024-11-05 to 2025-11-25): the client introduces itself by `initialize`. Modern (2026-07-28): each
 * request has the version and the client's capabilities in its _meta, and each result a type. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define RPC_MODERN "2026-07-28"
#define RPC_LEGACY_NEWEST "2025-11-25"
#define RPC_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define RPC_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

#define RPC_DEPTH_MAX 64       /* of arrays and objects */
#define RPC_VALUES_MAX 100000  /* in one message */
#define RPC_ID_LENGTH_MAX 1024 /* of an id or a token that is a text */

enum rpc_code {
    RPC_OK = 0,
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_HEADERS = -32020, /* of HTTP: they do not match the message */
    RPC_VERSION = -32022,
};

/* Why a message is refused. `data` is owned, or NULL. */
struct rpc_fault {
    enum rpc_code code;
    const char *message;
    json_t *data;
};
/* Fills in the fault, and returns false. */
bool rpc_refuse(struct rpc_fault *fault, enum rpc_code code, const char *message);

/* A message of a client. All but `message` point into it. */
struct rpc_request {
    json_t *message;    /* owned */
    json_t *id;         /* NULL: a notification, or the message has no id that can be used */
    const char *method; /* NULL: an answer of the client */
    json_t *params;     /* an object */
    bool modern;
    const json_t *capabilities; /* of a modern client */
};

/* Reads a message. Also after a failure the request has to be released, and has the id for the
 * answer if there is one. A notification with params of another type than an object is a failure
 * with RPC_OK: it is ignored. */
bool rpc_read(const char *text, size_t length, struct rpc_request *ret, struct rpc_fault *fault);
void rpc_request_done(struct rpc_request *request);
#define autorpc __attribute__((cleanup(rpc_request_done)))

/* Finds the form that the _meta of a request stands for, and checks it. */
bool rpc_read_meta(struct rpc_request *request, struct rpc_fault *fault);
/* Whether this is a legacy version. */
bool rpc_is_legacy(const char *version);
/* The token for reports of progress, or NULL. */
json_t *rpc_progress_token(const struct rpc_request *request);

/* Messages to the client. They return NULL if memory is lacking. `id` is borrowed, and may be NULL in
 * an error; `result` and the fault's data are taken over. */
json_t *rpc_error(json_t *id, struct rpc_fault *fault);
json_t *rpc_result(json_t *id, json_t *result, bool modern);
json_t *rpc_progress(json_t *token, double progress, const char *message);

/* Results. `tools` is borrowed. rpc_initialize() fails with NULL and the fault. */
json_t *rpc_initialize(const struct rpc_request *request, const char *instructions,
                       struct rpc_fault *fault);
json_t *rpc_discover(const char *instructions);
json_t *rpc_tools(json_t *tools, bool modern);
