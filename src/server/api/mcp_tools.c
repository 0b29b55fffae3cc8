/* SPDX-License-Identifier: MIT */
/* The tools of POST /mcp: each call is an execution, or a request about a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rpc/tool.h"
#include "server/api/mcp.h"
#include "server/api/sandboxes.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define READ_BYTES                                                                                 \
    ((uint64_t)1 << 20) /* of a file; more than what is shown of a text, for images */
#define LIST_DEPTH 1

struct mcp_tool {
    const char *name;
    void (*begin)(struct exchange *exchange, struct mcp_call *call);
};

static const char *text_of(const struct mcp_call *call, const char *name)
{
    return json_string_value(json_object_get(call->arguments, name));
}

/* Takes the body over, and stores it as the body of the exchange. */
static bool set_body(struct exchange *exchange, json_t *body)
{
    autofree char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    str_done(&exchange->body);
    str_init(&exchange->body);
    if (text)
        str_append(&exchange->body, text);
    if (text && !exchange->body.failed)
        return true;
    mcp_finish(exchange, NULL);
    return false;
}

/* ---- Requests about sandboxes ---- */

static bool set_sandbox(struct exchange *exchange, const struct mcp_call *call,
                        struct sandbox_request *request)
{
    request->id = text_of(call, "sandbox_id");
    if (execution_id_is_valid(request->id))
        return true;
    mcp_refuse(exchange, "There is no sandbox with this sandbox_id. Create one with "
                         "sandbox_create.");
    return false;
}

/* Reads the fields of the request from the body, as brigd's own API does. */
static bool read_body(struct exchange *exchange, json_t *body, struct sandbox_request *request)
{
    return set_body(exchange, body) && sandboxes_read_body(exchange, request);
}

static void answer_created(struct exchange *exchange, const struct sandbox_answer *answer)
{
    if (answer->sandbox_count != 1) {
        mcp_finish(exchange, NULL);
        return;
    }
    const struct sandbox_info *info = &answer->sandboxes[0];
    uint64_t left_s = info->left_ms / 1000;
    char text[128];
    (void)snprintf(text, sizeof text, "Created the sandbox %s. It ends in %llu seconds.", info->id,
                   (unsigned long long)left_s);
    mcp_finish(exchange, tool_result(text,
                                     json_pack("{s:s, s:I}", "sandbox_id", info->id, "seconds_left",
                                               (json_int_t)left_s),
                                     false));
}

static void begin_create(struct exchange *exchange, struct mcp_call *call)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CREATE};
    if (read_body(exchange, mcp_sandbox_body(call->arguments), &request))
        sandbox_ask(exchange, &request, answer_created);
}

static void answer_closed(struct exchange *exchange, const struct sandbox_answer *answer)
{
    (void)answer;
    mcp_finish(exchange,
               tool_result("The sandbox is closed.", json_pack("{s:b}", "closed", 1), false));
}

static void begin_close(struct exchange *exchange, struct mcp_call *call)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_END};
    if (set_sandbox(exchange, call, &request))
        sandbox_ask(exchange, &request, answer_closed);
}

/* ---- Runs ---- */

static void answer_command(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autoresult struct execution_result result = {0};
    const struct sandbox_command *command = answer->command_count == 1 ? answer->commands : NULL;
    if (command)
        (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", command->id);
    if (answer->more) {
        (void)stream_begin(exchange, NULL, false);
        return;
    }
    if (!command ||
        execution_result_decode(command->result.data, command->result.length, &result, NULL) < 0) {
        mcp_finish(exchange, NULL);
        return;
    }
    exchange->outcome = execution_status_name(result.status);
    const struct mcp_call *call = exchange->kept;
    const struct execution_bytes followed = {call->results.data, call->results.length};
    result.output_truncated = result.output_truncated || call->results_cut;
    mcp_finish(exchange,
               answer->context_count == 1
                   ? mcp_context_result(&result, followed.data ? &followed : &answer->bytes)
                   : mcp_run_result(&result));
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    struct mcp_call *call = exchange->kept;
    if (kind == SANDBOX_STDOUT || kind == SANDBOX_STDERR)
        mcp_output(exchange, bytes, length);
    if (kind != SANDBOX_RESULT && kind != SANDBOX_FAILURE)
        return;
    if (!exchange_hold(exchange, length + 1)) {
        call->results_cut = true;
        return;
    }
    str_append_bytes(&call->results, bytes, length);
    str_append_char(&call->results, '\n');
}

static void begin_command(struct exchange *exchange, struct mcp_call *call)
{
    const struct server_config *config = exchange->http->config;
    bool context = mcp_is_for_context(config, call->arguments);
    autosandbox struct sandbox_request request = {
        .operation = context ? SANDBOX_CONTEXT_RUN : SANDBOX_START,
        .wait = call->streams ? SANDBOX_FOLLOW : SANDBOX_UNTIL_END,
        .tied = !context}; /* a run in a context always is */
    const char *message = NULL;
    exchange->piece = add_piece;
    json_t *body = context ? mcp_context_body(call->arguments)
                           : mcp_command_body(config, call->arguments, &message);
    if (message)
        mcp_refuse(exchange, message);
    else if (set_sandbox(exchange, call, &request) &&
             read_body(exchange, json_incref(body), &request))
        sandbox_ask(exchange, &request, answer_command);
    json_decref(body);
}

static void begin_execution(struct exchange *exchange, const struct mcp_call *call)
{
    autorequest struct execution_request request = {0};
    if (!execute_read(exchange, &request))
        return;
    request.stream = call->streams;
    execute_start(exchange, &request, false);
}

static void begin_run(struct exchange *exchange, struct mcp_call *call)
{
    if (json_object_get(call->arguments, "sandbox_id"))
        begin_command(exchange, call);
    else if (set_body(exchange, mcp_execution_body(call->arguments)))
        begin_execution(exchange, call);
}

/* ---- Files ---- */

static void set_path(const struct mcp_call *call, struct sandbox_request *request)
{
    const char *path = text_of(call, "path");
    request->path = path ? path : ".";
}

static void ask_files(struct exchange *exchange, const struct mcp_call *call,
                      struct sandbox_request *request, sandbox_taker *answered)
{
    set_path(call, request);
    if (!*request->path || strlen(request->path) > SANDBOX_PATH_MAX)
        mcp_refuse(exchange, "The path is empty, or longer than 4095 bytes.");
    else if (set_sandbox(exchange, call, request))
        sandbox_ask(exchange, request, answered);
}

static void answer_read(struct exchange *exchange, const struct sandbox_answer *answer)
{
    const struct mcp_call *call = exchange->kept;
    mcp_finish(exchange, mcp_read_result(call->arguments, answer));
}

static void begin_read(struct exchange *exchange, struct mcp_call *call)
{
    autosandbox struct sandbox_request request = {
        .operation = SANDBOX_READ,
        .offset = (uint64_t)json_integer_value(json_object_get(call->arguments, "offset")),
        .length = READ_BYTES};
    ask_files(exchange, call, &request, answer_read);
}

static void answer_written(struct exchange *exchange, const struct sandbox_answer *answer)
{
    const struct mcp_call *call = exchange->kept;
    autostr struct str bytes = {0};
    char text[64];
    (void)answer;
    (void)tool_content(call->arguments, &bytes); /* worked before */
    (void)snprintf(text, sizeof text, "%zu bytes were written", bytes.length);
    mcp_finish(exchange,
               tool_result(text, json_pack("{s:I}", "bytes", (json_int_t)bytes.length), false));
}

static void begin_write(struct exchange *exchange, struct mcp_call *call)
{
    autostr struct str bytes = {0};
    autosandbox struct sandbox_request request = {
        .operation = SANDBOX_WRITE,
        .append = json_is_true(json_object_get(call->arguments, "append"))};
    if (!tool_content(call->arguments, &bytes)) {
        mcp_refuse(exchange, "The content is not base64.");
        return;
    }
    request.bytes = (struct execution_bytes){bytes.data ? bytes.data : "", bytes.length};
    if (bytes.length > SANDBOX_FILE_MAX)
        mcp_refuse(exchange, "The content is longer than 24 MiB: write it in parts, with append.");
    else
        ask_files(exchange, call, &request, answer_written);
}

static void answer_list(struct exchange *exchange, const struct sandbox_answer *answer)
{
    mcp_finish(exchange, mcp_list_result(answer));
}

static void begin_list(struct exchange *exchange, struct mcp_call *call)
{
    const json_t *depth = json_object_get(call->arguments, "depth");
    autosandbox struct sandbox_request request = {
        .operation = SANDBOX_ENTRIES,
        .depth = depth ? (uint64_t)json_integer_value(depth) : LIST_DEPTH};
    ask_files(exchange, call, &request, answer_list);
}

/* ---- The table ---- */

static const struct mcp_tool tools[] = {
    {"run_code", begin_run},        {"run_command", begin_run}, {"sandbox_create", begin_create},
    {"sandbox_close", begin_close}, {"file_read", begin_read},  {"file_write", begin_write},
    {"file_list", begin_list},
};

const struct mcp_tool *mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

void mcp_tool_begin(struct exchange *exchange)
{
    struct mcp_call *call = exchange->kept;
    call->tool->begin(exchange, call);
}
