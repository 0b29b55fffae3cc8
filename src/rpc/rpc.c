/* SPDX-License-Identifier: MIT */
#include "rpc/rpc.h"

#include <string.h>

#include <brig/brig.h>

#include "base/encode.h"

#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define CACHE_MS 3600000 /* how long a client may keep the list of tools */

static const char *const legacy_versions[] = {RPC_LEGACY_NEWEST, "2025-06-18", "2025-03-26",
                                              "2024-11-05", NULL};

bool rpc_refuse(struct rpc_fault *fault, enum rpc_code code, const char *message)
{
    *fault = (struct rpc_fault){.code = code, .message = message};
    return false;
}

/* ---- Reading ---- */

/* Whether a parser can read the text in bounded depth and memory. Whether it is JSON is the parser's
 * question. */
static bool is_bounded(const char *text, size_t length)
{
    size_t depth = 0, values = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (quoted)
            continue;
        else if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        else if (c == ',')
            values++;
        if (depth > RPC_DEPTH_MAX || values > RPC_VALUES_MAX)
            return false;
    }
    return true;
}

static bool is_id(const json_t *id)
{
    return json_is_integer(id) ||
           (json_is_string(id) && json_string_length(id) <= RPC_ID_LENGTH_MAX);
}

/* What is wrong with the envelope, or NULL. */
static const char *find_wrong(const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    if (!json_is_object(message))
        return json_is_array(message) ? "batches are not supported" : "not an object";
    if (!version || strcmp(version, "2.0") != 0)
        return "jsonrpc is not \"2.0\"";
    if (id && !is_id(id))
        return "the id is neither a text nor an integer";
    if (!json_is_string(json_object_get(message, "method")) &&
        (json_object_get(message, "method") ||
         (!json_object_get(message, "result") && !json_object_get(message, "error"))))
        return "the method is missing";
    return NULL;
}

bool rpc_read(const char *text, size_t length, struct rpc_request *ret, struct rpc_fault *fault)
{
    *ret = (struct rpc_request){0};
    if (!utf8_is_valid(text, length))
        return rpc_refuse(fault, RPC_PARSE, "the message is not UTF-8");
    if (!is_bounded(text, length))
        return rpc_refuse(fault, RPC_PARSE, "the message has too many values");
    ret->message =
        json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    if (!ret->message)
        return rpc_refuse(fault, RPC_PARSE, "the message is not JSON");
    json_t *id = json_object_get(ret->message, "id");
    ret->id = is_id(id) ? id : NULL;
    const char *wrong = find_wrong(ret->message);
    if (wrong)
        return rpc_refuse(fault, RPC_REQUEST, wrong);
    ret->method = json_string_value(json_object_get(ret->message, "method"));
    ret->params = json_object_get(ret->message, "params");
    if (ret->method && ret->params && !json_is_object(ret->params))
        return rpc_refuse(fault, id ? RPC_PARAMS : RPC_OK, "params is not an object");
    if (!json_is_object(ret->params) &&
        (!(ret->params = json_object()) ||
         json_object_set_new(ret->message, "params", ret->params) < 0))
        return rpc_refuse(fault, RPC_INTERNAL, "out of memory");
    return true;
}

void rpc_request_done(struct rpc_request *request)
{
    json_decref(request->message);
    *request = (struct rpc_request){0};
}

/* The versions for an error; both kinds, as a client may know only one. */
static json_t *supported_versions(const json_t *requested)
{
    json_t *list = json_pack("[s]", RPC_MODERN);
    for (size_t i = 0; legacy_versions[i]; i++)
        (void)json_array_append_new(list, json_string(legacy_versions[i]));
    return json_pack("{s:o, s:O}", "supported", list, "requested", requested);
}

bool rpc_read_meta(struct rpc_request *request, struct rpc_fault *fault)
{
    const json_t *meta = json_object_get(request->params, "_meta");
    const json_t *version = json_object_get(meta, RPC_META_VERSION);
    if (!version && strcmp(request->method, "server/discover") != 0)
        return true;
    request->capabilities = json_object_get(meta, RPC_META_CAPABILITIES);
    request->modern = true;
    if (!json_is_string(version))
        return rpc_refuse(fault, RPC_PARAMS, "_meta has no " RPC_META_VERSION);
    if (strcmp(json_string_value(version), RPC_MODERN) != 0) {
        (void)rpc_refuse(fault, RPC_VERSION, "unsupported protocol version");
        fault->data = supported_versions(version);
        return false;
    }
    if (!json_is_object(request->capabilities))
        return rpc_refuse(fault, RPC_PARAMS, "_meta has no " RPC_META_CAPABILITIES);
    return true;
}

bool rpc_is_legacy(const char *version)
{
    for (size_t i = 0; legacy_versions[i]; i++)
        if (strcmp(legacy_versions[i], version) == 0)
            return true;
    return false;
}

json_t *rpc_progress_token(const struct rpc_request *request)
{
    json_t *token = json_object_get(json_object_get(request->params, "_meta"), "progressToken");
    return is_id(token) ? token : NULL;
}

/* ---- Answering ---- */

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s}", "name", "brig", "version", brig_version());
}

json_t *rpc_error(json_t *id, struct rpc_fault *fault)
{
    json_t *error = json_pack("{s:i, s:s, s:o*}", "code", (int)fault->code, "message",
                              fault->message, "data", fault->data);
    fault->data = NULL;
    return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id ? json_incref(id) : json_null(),
                     "error", error);
}

json_t *rpc_result(json_t *id, json_t *result, bool modern)
{
    if (modern) {
        if (!json_object_get(result, "resultType"))
            (void)json_object_set_new(result, "resultType", json_string("complete"));
        (void)json_object_set_new(result, "_meta", json_pack("{s:o}", META_SERVER, server_info()));
    }
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_progress(json_t *token, double progress, const char *message)
{
    return json_pack("{s:s, s:s, s:{s:O, s:f, s:s}}", "jsonrpc", "2.0", "method",
                     "notifications/progress", "params", "progressToken", token, "progress",
                     progress, "message", message);
}

/* ---- Results ---- */

static json_t *own_capabilities(void)
{
    return json_pack("{s:{}}", "tools");
}

json_t *rpc_initialize(const struct rpc_request *request, const char *instructions,
                       struct rpc_fault *fault)
{
    const char *asked = json_string_value(json_object_get(request->params, "protocolVersion"));
    if (!asked) {
        (void)rpc_refuse(fault, RPC_PARAMS, "protocolVersion is missing");
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion",
                     rpc_is_legacy(asked) ? asked : RPC_LEGACY_NEWEST, "capabilities",
                     own_capabilities(), "serverInfo", server_info(), "instructions", instructions);
}

json_t *rpc_discover(const char *instructions)
{
    return json_pack("{s:[s], s:o, s:s, s:i, s:s}", "supportedVersions", RPC_MODERN, "capabilities",
                     own_capabilities(), "instructions", instructions, "ttlMs", CACHE_MS,
                     "cacheScope", "private");
}

json_t *rpc_tools(json_t *tools, bool modern)
{
    json_t *result = json_pack("{s:O}", "tools", tools);
    if (modern) {
        (void)json_object_set_new(result, "ttlMs", json_integer(CACHE_MS));
        (void)json_object_set_new(result, "cacheScope", json_string("private"));
    }
    return result;
}
