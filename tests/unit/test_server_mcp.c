/* SPDX-License-Identifier: MIT */
/* The pure parts of POST /mcp: messages and headers of both eras, arguments as bodies of brigd's own
 * API, and results. */
#include "server/api/mcp.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "rpc/tool.h"
#include "server/config/config.h"
#include "server/sandbox.h"
#include "tap.h"

static struct server_config config;

#define META(version)                                                                              \
    "\"_meta\":{\"" RPC_META_VERSION "\":\"" version "\",\"" RPC_META_CAPABILITIES "\":{}}"
#define MODERN META("2026-07-28")
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\""
#define CALL                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                                            \
    "call\",\"params\":{\"name\":\"run_code\"," MODERN "}}"

/* ---- Messages ---- */

static const struct row {
    const char *text;
    struct mcp_headers headers;
    int code; /* 1: accepted as legacy, 2: as modern */
    unsigned status;
    const char *name;
} rows[] = {
    {"", {0}, RPC_PARSE, 400, "nothing"},
    {"{", {0}, RPC_PARSE, 400, "half of an object"},
    {"\"\xff\"", {0}, RPC_PARSE, 400, "bytes that are not UTF-8"},
    {"[]", {0}, RPC_REQUEST, 400, "an empty batch"},
    {"[" LIST "}]", {0}, RPC_REQUEST, 400, "a batch"},
    {"null", {0}, RPC_REQUEST, 400, "null"},
    {"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}", {0}, RPC_PARSE, 400, "a name twice"},
    {"{\"id\":1,\"method\":\"ping\"}", {0}, RPC_REQUEST, 400, "no jsonrpc"},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}",
     {0},
     RPC_REQUEST,
     400,
     "an id of another type"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":2}",
     {0},
     RPC_REQUEST,
     400,
     "a method that is a number"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", {0}, RPC_REQUEST, 400, "no method"},
    {LIST ",\"params\":1}", {0}, RPC_PARAMS, 400, "params that are a number"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":1}",
     {0},
     RPC_OK,
     400,
     "the same of a notification"},
    {LIST "}", {0}, 1, 0, "a legacy request"},
    {LIST "}", {.version = "2024-11-05"}, 1, 0, "with its version"},
    {LIST "}", {.version = "2024-11-06"}, RPC_REQUEST, 400, "with an unknown version"},
    {LIST "}", {.version = "2026-07-28"}, RPC_PARAMS, 400, "with the modern version, but no _meta"},
    {LIST "}", {.session = "0"}, RPC_REQUEST, 404, "of a session that cannot be"},
    {LIST "}", {.session = "f47ac10b-58cc-4372-a567-0e02b2c3d479"}, 1, 0, "of one that can be"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}",
     {.version = "1", .session = "0"},
     1,
     0,
     "initialize, whatever the headers are"},
    {LIST ",\"params\":{" MODERN "}}",
     {.version = "2026-07-28", .method = "tools/list"},
     2,
     0,
     "a modern request"},
    {LIST ",\"params\":{" META("2027-01-01") "}}",
     {.version = "2027-01-01", .method = "tools/list"},
     RPC_VERSION,
     400,
     "of a later version"},
    {LIST ",\"params\":{\"_meta\":{\"" RPC_META_VERSION "\":1}}}",
     {0},
     RPC_PARAMS,
     400,
     "with a version that is a number"},
    {LIST ",\"params\":{\"_meta\":{\"" RPC_META_VERSION "\":\"2026-07-28\"}}}",
     {0},
     RPC_PARAMS,
     400,
     "without capabilities"},
    {LIST ",\"params\":{" MODERN "}}",
     {.method = "tools/list"},
     RPC_HEADERS,
     400,
     "without the header of the version"},
    {LIST ",\"params\":{" MODERN "}}",
     {.version = "2026-07-28"},
     RPC_HEADERS,
     400,
     "without the header of the method"},
    {LIST ",\"params\":{" MODERN "}}",
     {.version = "2026-07-28", .method = "ping"},
     RPC_HEADERS,
     400,
     "with the header of another method"},
    {CALL, {.version = "2026-07-28", .method = "tools/call", .name = "run_code"}, 2, 0, "a call"},
    {CALL, {.version = "2026-07-28", .method = "tools/call"}, RPC_HEADERS, 400, "without a name"},
    {CALL,
     {.version = "2026-07-28", .method = "tools/call", .name = "run"},
     RPC_HEADERS,
     400,
     "with another name"},
    {CALL,
     {.version = "2026-07-28", .method = "tools/call", .name = "=?base64?cnVuX2NvZGU=?="},
     2,
     0,
     "with the name in base64"},
    {CALL,
     {.version = "2026-07-28", .method = "tools/call", .name = "=?base64?cnVu?="},
     RPC_HEADERS,
     400,
     "with another name in base64"},
    {CALL,
     {.version = "2026-07-28", .method = "tools/call", .name = "=?base64?="},
     RPC_HEADERS,
     400,
     "with half of the marks"},
};

static void test_messages(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autorpc struct rpc_request request = {0};
        struct rpc_fault fault = {0};
        unsigned status = 400;
        int found = rpc_read(rows[i].text, strlen(rows[i].text), &request, &fault) &&
                            mcp_check(&request, &rows[i].headers, &fault, &status)
                        ? 1 + request.modern
                        : (int)fault.code;
        tap_is_int(found, rows[i].code, "message: %s", rows[i].name);
        if (found < 0)
            tap_is_int(status, rows[i].status, "and its status");
        json_decref(rpc_error(request.id, &fault));
    }
}

static void test_long_ids(void)
{
    for (int i = 0; i < 2; i++) {
        autorpc struct rpc_request request = {0};
        autostr struct str text = {0};
        struct rpc_fault fault;
        str_appendf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"%0*d\"}",
                    RPC_ID_LENGTH_MAX + i, 0);
        tap_ok(rpc_read(text.data, text.length, &request, &fault) == (i == 0),
               "an id of %d characters is %s", RPC_ID_LENGTH_MAX + i, i ? "refused" : "taken");
    }
    for (int i = 0; i < 2; i++) {
        autorpc struct rpc_request request = {0};
        autostr struct str text = {0};
        struct rpc_fault fault;
        str_append(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{\"a\":");
        for (int depth = 2; depth < RPC_DEPTH_MAX + i; depth++)
            str_append_char(&text, '[');
        for (int depth = 2; depth < RPC_DEPTH_MAX + i; depth++)
            str_append_char(&text, ']');
        str_append(&text, "}}");
        tap_ok(rpc_read(text.data, text.length, &request, &fault) == (i == 0), "%d levels are %s",
               RPC_DEPTH_MAX + i, i ? "refused" : "taken");
    }
}

/* ---- Bodies ---- */

static void is_json(json_t *got, const char *wanted, const char *name)
{
    autofree char *text = got ? json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    tap_is_str(text ? text : "nothing", wanted, "%s", name);
    json_decref(got);
}

static json_t *read_json(const char *text)
{
    return json_loads(text, JSON_ALLOW_NUL, NULL);
}

static void test_bodies(void)
{
    json_t *code =
        read_json("{\"language\":\"python\",\"code\":\"1\",\"args\":[\"a\"],\"timeout_s\":5,"
                  "\"network_allow\":[\"x.org\"]}");
    const char *message;
    is_json(mcp_execution_body(code),
            "{\"args\":[\"a\"],\"code\":\"1\",\"language\":\"python\",\"permissions\":{\"network\":"
            "{\"allow\":[\"x.org\"],\"enabled\":true}},\"timeout\":5}",
            "the body of an execution");
    is_json(mcp_sandbox_body(code),
            "{\"allow\":[\"x.org\"],\"language\":\"python\",\"network\":true}",
            "the body of a sandbox");
    is_json(mcp_command_body(&config, code, &message), "nothing",
            "a command in a sandbox has no network of its own");
    tap_ok(message && strstr(message, "sandbox_create"), "and the message says where it is set");
    (void)json_object_del(code, "network_allow");
    is_json(mcp_command_body(&config, code, &message),
            "{\"argv\":[\"python3\",\"-c\",\"1\",\"a\"],\"timeout\":5}", "code in a sandbox");
    tap_ok(!mcp_is_for_context(&config, code), "arguments are for a command");
    (void)json_object_set_new(code, "language", json_string("js"));
    is_json(mcp_command_body(&config, code, &message),
            "{\"argv\":[\"node\",\"-e\",\"1\",\"--\",\"a\"],\"timeout\":5}",
            "a language by another of its names");
    (void)json_object_del(code, "args");
    tap_ok(mcp_is_for_context(&config, code), "code without arguments is for a context");
    is_json(mcp_context_body(code), "{\"code\":\"1\",\"language\":\"js\",\"timeout\":5}",
            "the body of a run in it");
    (void)json_object_set_new(code, "language", json_string("ruby"));
    tap_ok(!mcp_is_for_context(&config, code), "Ruby has no contexts");
    json_decref(code);
    json_t *line = read_json("{\"command\":\"id\",\"stdin\":\"a\\u0000b\"}");
    is_json(mcp_execution_body(line),
            "{\"code\":\"id\",\"language\":\"bash\",\"stdin\":\"a\\u0000b\"}", "a command line");
    is_json(mcp_command_body(&config, line, &message),
            "{\"cmd\":\"id\",\"stdin\":\"a\\u0000b\",\"timeout\":60}",
            "the same in a sandbox, with a time limit");
    json_decref(line);
}

/* ---- Results ---- */

static void test_statuses(void)
{
    static const struct {
        enum execution_status status;
        int signal;
        const char *name;
    } ends[] = {
        {EXECUTION_OK, 0, "exited"},
        {EXECUTION_ERROR, 0, "exited"},
        {EXECUTION_ERROR, 11, "signalled"},
        {EXECUTION_TIMEOUT, 9, "timeout"},
        {EXECUTION_CPU_TIMEOUT, 9, "cpu-timeout"},
        {EXECUTION_OOM, 9, "oom"},
        {EXECUTION_KILLED, 9, "cancelled"},
        {EXECUTION_OUTPUT_LIMIT, 9, "output-limit"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        struct execution_result result = {.status = ends[i].status,
                                          .signal = ends[i].signal,
                                          .exit_code = ends[i].signal ? -1 : (int)i,
                                          .output = {"a\xff", 2},
                                          .error_output = {"", 0}};
        json_t *whole = mcp_run_result(&result);
        const json_t *value = json_object_get(whole, "structuredContent");
        tap_is_str(json_string_value(json_object_get(value, "status")), ends[i].name, "a status");
        tap_is_str(json_string_value(json_object_get(value, "stdout")), "a\ufffd",
                   "and its output");
        tap_ok(json_is_true(json_object_get(whole, "isError")) == (i > 0), "and whether it failed");
        json_decref(whole);
    }
}

static void test_context(void)
{
    static const char lines[] =
        "{\"type\":\"result\",\"main\":true,\"data\":{\"text/plain\":\"42\",\"image/"
        "png\":\"AAAA\"}}\n"
        "no JSON\n"
        "{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":\"where\"}\n";
    struct execution_result result = {.status = EXECUTION_ERROR,
                                      .exit_code = -1,
                                      .output = {"printed", 7},
                                      .error_output = {"", 0}};
    json_t *whole = mcp_context_result(&result, &(struct execution_bytes){lines, sizeof lines - 1});
    const json_t *value = json_object_get(whole, "structuredContent");
    tap_is_str(json_string_value(json_object_get(value, "stdout")), "printed\n42\n",
               "a value comes after the output");
    tap_is_str(json_string_value(json_object_get(value, "stderr")), "where", "and the traceback");
    is_json(json_incref(json_array_get(json_object_get(whole, "content"), 1)),
            "{\"data\":\"AAAA\",\"mimeType\":\"image/png\",\"type\":\"image\"}", "and an image");
    tap_ok(json_is_true(json_object_get(whole, "isError")), "it failed");
    json_decref(whole);
}

static void test_files(void)
{
    static char large[40000];
    memset(large, 'x', sizeof large - 1);
    struct execution_file files[] = {{.name = "text", .content = {"abc", 3}},
                                     {.name = "bytes", .content = {"\xff", 1}},
                                     {.name = "gif", .content = {"GIF89a...", 9}},
                                     {.name = "large", .content = {large, sizeof large - 1}}};
    struct execution_result result = {.status = EXECUTION_OK,
                                      .output = {"", 0},
                                      .error_output = {"", 0},
                                      .files = files,
                                      .file_count = ARRAY_LENGTH(files)};
    json_t *whole = mcp_run_result(&result);
    is_json(json_incref(json_object_get(json_object_get(whole, "structuredContent"), "files")),
            "[{\"content\":\"abc\",\"encoding\":\"utf-8\",\"name\":\"text\",\"size\":3,"
            "\"truncated\":false},"
            "{\"content\":\"/"
            "w==\",\"encoding\":\"base64\",\"name\":\"bytes\",\"size\":1,\"truncated\":false},"
            "{\"name\":\"gif\",\"size\":9,\"truncated\":false},"
            "{\"name\":\"large\",\"size\":39999,\"truncated\":true}]",
            "returned files");
    is_json(json_incref(json_array_get(json_object_get(whole, "content"), 1)),
            "{\"data\":\"R0lGODlhLi4u\",\"mimeType\":\"image/gif\",\"type\":\"image\"}",
            "an image is content");
    json_decref(whole);
}

static const char *language_text(const json_t *tools)
{
    const json_t *schema = json_object_get(json_array_get(tools, 0), "inputSchema");
    const json_t *language = json_object_get(json_object_get(schema, "properties"), "language");
    return json_string_value(json_object_get(language, "description"));
}

static void test_tools(void)
{
    json_t *tools = mcp_tool_list(&config, NULL), *tool;
    size_t index;
    json_array_foreach(tools, index, tool)
    {
        const char *name = json_string_value(json_object_get(tool, "name"));
        tap_ok(mcp_tool_find(name), "%s is a tool", name);
        tap_ok(json_is_object(json_object_get(tool, "outputSchema")), "and has an output schema");
    }
    tap_ok(!mcp_tool_find("run"), "another name is none");
    tap_ok(strstr(language_text(tools), "python, node, bash"),
           "the languages of the server are listed");
    json_decref(tools);
    char text[] = "{\"runtimes\":[{\"name\":\"python\",\"available\":true},"
                  "{\"name\":\"node\",\"available\":false}]}";
    const struct str runtimes = {.data = text, .length = sizeof text - 1};
    tools = mcp_tool_list(&config, &runtimes);
    tap_ok(strstr(language_text(tools), "python, bash"), "without those that are not installed");
    json_decref(tools);
}

int main(void)
{
    const char *const env[] = {NULL};
    if (config_defaults(env, &config, NULL) < 0)
        return 1;
    test_messages();
    test_long_ids();
    test_bodies();
    test_statuses();
    test_context();
    test_files();
    test_tools();
    return tap_done();
}
