/* SPDX-License-Identifier: MIT */
/* Describes the HTTP interface from its tables: prints docs/api.md, or with --openapi docs/openapi.json,
 * which is part of brigd and is what GET /openapi.json answers. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/judge0_request.h"
#include "server/api/sandbox_request.h"
#include "server/http/detector.h"
#include "server/http/metrics.h"
#include "server/http/request.h"
#include "server/http/result_json.h"
#include "server/http/route.h"
#include "server/schemas_json.h" /* generated from src/server/http/schemas.json */

/* ---- OpenAPI. Jansson's functions pass a NULL for lack of memory on ---- */

/* "array of strings" and its kind, as JSON Schema. */
static json_t *schema_of(const char *type)
{
    const char *either = strstr(type, " or ");
    if (strcmp(type, "array of strings") == 0)
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    if (strcmp(type, "object of strings") == 0)
        return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
                         "string");
    if (either)
        return json_pack("{s:[s#, s]}", "type", type, (int)(either - type), either + 4);
    return json_pack("{s:s}", "type", type);
}

static json_t *closed_object(void)
{
    return json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");
}

/* The properties of the object that the dotted name is in, which is made where it is missing; *name
 * becomes its last part. */
static json_t *properties_for(json_t *root, const char **name)
{
    json_t *properties = json_object_get(root, "properties");
    for (const char *dot; (dot = strchr(*name, '.')); *name = dot + 1) {
        char part[64];
        (void)snprintf(part, sizeof part, "%.*s", (int)(dot - *name), *name);
        if (!json_object_get(properties, part))
            (void)json_object_set_new(properties, part, closed_object());
        properties = json_object_get(json_object_get(properties, part), "properties");
    }
    return properties;
}

static json_t *request_schema(void)
{
    json_t *root = closed_object(), *required = json_array();
    for (size_t i = 0; i < request_field_count; i++) {
        const struct request_field *field = &request_fields[i];
        const char *name = field->name;
        json_t *schema = schema_of(field->type), *properties = properties_for(root, &name);
        (void)json_object_set_new(schema, "description",
                                  json_sprintf("%s Allowed: %s.", field->doc, field->allowed));
        (void)json_object_set_new(properties, name, schema);
        if (field->required)
            (void)json_array_append_new(required, json_string(field->name));
    }
    (void)json_object_set_new(root, "required", required);
    return root;
}

/* The body of a request about sandboxes. */
static json_t *sandbox_schema(enum sandbox_operation operation)
{
    json_t *root = closed_object(), *required = json_array();
    for (size_t i = 0; i < sandbox_field_count; i++) {
        const struct sandbox_field *field = &sandbox_fields[i];
        const char *name = field->name;
        if (!(field->operations & 1U << operation))
            continue;
        json_t *schema = schema_of(field->type), *properties = properties_for(root, &name);
        (void)json_object_set_new(schema, "description",
                                  json_sprintf("%s Allowed: %s.", field->doc, field->allowed));
        (void)json_object_set_new(properties, name, schema);
        if (field->required)
            (void)json_array_append_new(required, json_string(field->name));
    }
    if (json_array_size(required) > 0)
        (void)json_object_set(root, "required", required);
    json_decref(required);
    return root;
}

/* Members that are not fields are ignored; numbers may be texts. */
static json_t *judge0_schema(void)
{
    static const char *const types[] = {
        [JUDGE0_STRING] = "string",   [JUDGE0_ENCODED] = "string", [JUDGE0_BINARY] = "string",
        [JUDGE0_INTEGER] = "integer", [JUDGE0_DECIMAL] = "number", [JUDGE0_BOOLEAN] = "boolean",
    };
    json_t *properties = json_object();
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++)
        (void)json_object_set_new(properties, judge0_rules[i].name,
                                  json_pack("{s:s, s:s}", "type", types[judge0_rules[i].kind],
                                            "description", judge0_rules[i].doc));
    return json_pack("{s:s, s:o}", "type", "object", "properties", properties);
}

/* The bodies of requests about sandboxes, by the name of their schema. */
static const struct {
    const char *name;
    enum sandbox_operation operation;
} sandbox_requests[] = {
    {"SandboxRequest", SANDBOX_CREATE},
    {"TimeoutRequest", SANDBOX_TIMEOUT},
    {"ContextRequest", SANDBOX_CONTEXT_CREATE},
    {"RunRequest", SANDBOX_CONTEXT_RUN},
    {"CommandRequest", SANDBOX_START},
    {"InputRequest", SANDBOX_INPUT},
    {"SignalRequest", SANDBOX_SIGNAL},
    {"ResizeRequest", SANDBOX_RESIZE},
    {"MoveRequest", SANDBOX_MOVE},
    {"NetworkRequest", SANDBOX_NETWORK},
    {"ForkRequest", SANDBOX_FORK},
    {"DirectoryRequest", SANDBOX_MAKE},
};

static json_t *result_schema(void)
{
    json_t *properties = json_object();
    for (size_t i = 0; i < result_field_count; i++)
        (void)json_object_set_new(properties, result_fields[i].name,
                                  json_pack("{s:s, s:s}", "type", result_fields[i].type,
                                            "description", result_fields[i].doc));
    return json_pack("{s:s, s:o}", "type", "object", "properties", properties);
}

static json_t *error_schema(void)
{
    json_t *codes = json_array();
    for (int i = ERROR_NONE + 1; i < ERRORS_; i++)
        (void)json_array_append_new(codes, json_string(error_row((enum http_error)i)->code));
    return json_pack("{s:s, s:[s, s, s], s:{s:{s:s}, s:{s:s, s:o}, s:{s:s}, s:{s:s}, s:{s:s}}}",
                     "type", "object", "required", "error", "code", "request_id", "properties",
                     "error", "type", "string", "code", "type", "string", "enum", codes,
                     "request_id", "type", "string", "field", "type", "string", "id", "type",
                     "string");
}

static json_t *content_of(const char *schema)
{
    return json_pack("{s:{s:{s:s+}}}", "application/json", "schema", "$ref",
                     "#/components/schemas/", schema);
}

static json_t *parameters_of(const struct route *route)
{
    json_t *list = json_array();
    if (strstr(route->path, "{id}"))
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s, s:s}}", "name", "id",
                                                    "in", "path", "required", 1, "schema", "type",
                                                    "string", "format", "uuid"));
    if (strstr(route->path, "{pid}"))
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", "pid", "in",
                                              "path", "required", 1, "schema", "type", "integer"));
    for (size_t i = 0; i < route_parameter_count; i++) {
        const struct route_parameter *row = &route_parameters[i];
        if (strcmp(row->path, route->path) == 0)
            (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:{s:s}}", "name",
                                                        row->name, "in", "query", "description",
                                                        row->doc, "schema", "type", "string"));
    }
    return list;
}

/* Judge0's own errors have another form. */
static bool judge0_may_fail(const struct route *route, enum http_error error)
{
    bool body = route->flags & ROUTE_BODY;
    return error == ERROR_UNAUTHORIZED || error == ERROR_RATE_LIMITED ||
           error == ERROR_SHUTTING_DOWN || error == ERROR_HISTORY_UNAVAILABLE ||
           (body && (error == ERROR_INVALID_JSON || error == ERROR_UNSUPPORTED_MEDIA_TYPE ||
                     error == ERROR_BODY_TOO_LARGE || error == ERROR_IDEMPOTENCY_CONFLICT ||
                     error == ERROR_HISTORY_FULL || error == ERROR_OVERLOADED));
}

/* Returns whether requests for the route can be answered with the error. */
static bool may_fail(const struct route *route, enum http_error error)
{
    bool mcp = strcmp(route->path, "/mcp") == 0; /* has errors of its own */
    bool body = route->flags & ROUTE_BODY && !mcp, id = strstr(route->path, "{id}");
    bool history = strncmp(route->path, "/executions", strlen("/executions")) == 0 ||
                   strcmp(route->path, "/usage") == 0;
    bool sandbox = strncmp(route->path, "/sandboxes", strlen("/sandboxes")) == 0;
    bool files = strstr(route->path, "/files"), bytes = route->flags & ROUTE_BYTES;
    bool starts = route->flags & ROUTE_CREATES || strcmp(route->operation, "startCommand") == 0;
    bool deletes = strcmp(route->method, "DELETE") == 0;
    if (route_is_judge0(route->path))
        return judge0_may_fail(route, error);
    switch (error) {
    case ERROR_NONE:
    case ERROR_METHOD_NOT_ALLOWED: /* of other methods */
    case ERRORS_:
        return false;
    case ERROR_MALFORMED_REQUEST:
    case ERROR_BODY_TOO_LARGE:
    case ERROR_INTERNAL:
        return true;
    case ERROR_WRONG_HOST:
    case ERROR_TOO_MANY_CONNECTIONS:
        return !(route->flags & ROUTE_PROBE);
    case ERROR_RATE_LIMITED:
    case ERROR_SHUTTING_DOWN:
        return !(route->flags & ROUTE_UNCOUNTED);
    case ERROR_UNAUTHORIZED:
        return !(route->flags & ROUTE_OPEN);
    case ERROR_INVALID_ID:
    case ERROR_NOT_FOUND:
        return id;
    case ERROR_INVALID_QUERY:
        return body || history || sandbox || mcp;
    case ERROR_WRONG_ORIGIN:
        return mcp;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_FILE_REFUSED:
    case ERROR_FILE_TOO_LARGE:
    case ERROR_WRONG_FILE_TYPE:
    case ERROR_FILES_UNAVAILABLE:
    case ERROR_NO_SPACE:
        return files;
    case ERROR_PORT_CLOSED: /* of ports, which are not listed */
        return false;
    case ERROR_CONFLICT:
    case ERROR_SANDBOX_LOST:
        return sandbox && id;
    case ERROR_SANDBOX_LIMIT:
        return starts || strstr(route->path, "/watch");
    case ERROR_NOT_SUPPORTED:
        return route->flags & ROUTE_CREATES || strstr(route->path, "/pause");
    case ERROR_HISTORY_UNAVAILABLE: /* of those with a body, with an idempotency key */
        return (history && !deletes) || (body && !sandbox);
    case ERROR_IN_PROGRESS:
        return body && !sandbox && !(route->flags & ROUTE_ACCEPTS);
    case ERROR_IDEMPOTENCY_CONFLICT:
        return body && (!sandbox || strcmp(route->operation, "startCommand") == 0);
    case ERROR_EXECUTION_LOST:
        return body || deletes || sandbox;
    case ERROR_OVERLOADED:
        return body || history || sandbox || mcp || strcmp(route->path, "/runtimes") == 0;
    case ERROR_INVALID_JSON:
    case ERROR_INVALID_FIELD:
    case ERROR_MISSING_FIELD:
    case ERROR_UNKNOWN_FIELD:
        return body;
    case ERROR_UNSUPPORTED_MEDIA_TYPE:
        return body || bytes || mcp;
    case ERROR_SETUP_FAILED:
    case ERROR_HISTORY_FULL:
        return sandbox ? starts : body;
    case ERROR_NETWORK_NOT_PERMITTED:
        return sandbox ? route->flags & ROUTE_CREATES || strstr(route->path, "/network") : body;
    case ERROR_UNKNOWN_LANGUAGE:
    case ERROR_RUNTIME_UNAVAILABLE:
        return sandbox ? route->flags & ROUTE_CREATES : body;
    case ERROR_ESCAPE_ATTEMPT:
    case ERROR_WORK_DIR_NOT_ALLOWED:
    case ERROR_KEY_BUSY:
    case ERROR_QUEUE_FULL:
    case ERROR_QUEUE_TIMEOUT:
        return body && !sandbox;
    }
    return false;
}

/* One response for each status, which lists its codes. */
static void add_errors(const struct route *route, json_t *responses)
{
    for (int i = ERROR_NONE + 1; i < ERRORS_; i++) {
        const struct error_row *row = error_row((enum http_error)i);
        char status[16];
        if (!may_fail(route, (enum http_error)i))
            continue;
        (void)snprintf(status, sizeof status, "%u", row->status);
        json_t *known = json_object_get(responses, status);
        const char *before =
            known ? json_string_value(json_object_get(known, "description")) : NULL;
        json_t *text = json_sprintf("%s%s`%s`: %s", before ? before : "", before ? " " : "",
                                    row->code, row->doc);
        json_t *response =
            json_pack("{s:o, s:o}", "description", text, "content",
                      content_of(route_is_judge0(route->path) ? "Judge0Error" : "Error"));
        if (row->status == 429 || row->status == 503)
            (void)json_object_set_new(response, "headers",
                                      json_pack("{s:{s:s, s:{s:s}}}", "Retry-After", "description",
                                                "Seconds to wait.", "schema", "type", "integer"));
        (void)json_object_set_new(responses, status, response);
    }
}

static json_t *answer_content(const struct route *route)
{
    if (route->flags & ROUTE_STREAM)
        return json_pack("{s:{s:{s:s}}}", "text/event-stream", "schema", "type", "string");
    if (strcmp(route->operation, "readFile") == 0)
        return json_pack("{s:{}, s:{s:{s:s}}}", "application/octet-stream", "application/json",
                         "schema", "$ref", "#/components/schemas/FileList");
    if (!route->schema)
        return json_pack("{s:{s:{s:s}}}", "text/plain", "schema", "type", "string");
    if (strcmp(route->schema, "object") == 0)
        return json_pack("{s:{s:{s:s}}}", "application/json", "schema", "type", "object");
    return content_of(route->schema);
}

static json_t *responses_of(const struct route *route)
{
    json_t *responses = json_object();
    add_errors(route, responses);
    const char *status = route->flags & ROUTE_EMPTY     ? "204"
                         : route->flags & ROUTE_CREATES ? "201"
                         : route->flags & ROUTE_ACCEPTS || (strcmp(route->method, "DELETE") == 0 &&
                                                            !route_is_judge0(route->path))
                             ? "202"
                             : "200";
    json_t *good = json_pack("{s:s}", "description", route->summary);
    if (!(route->flags & ROUTE_EMPTY))
        (void)json_object_set_new(good, "content", answer_content(route));
    (void)json_object_set_new(responses, status, good);
    if (route->flags & ROUTE_PROBE && strcmp(route->operation, "livez") != 0)
        (void)json_object_set_new(responses, "503",
                                  json_pack("{s:s, s:o}", "description", "It does not, now.",
                                            "content", answer_content(route)));
    return responses;
}

static json_t *operation_of(const struct route *route)
{
    json_t *operation = json_pack("{s:s, s:s, s:o, s:o}", "operationId", route->operation,
                                  "summary", route->summary, "parameters", parameters_of(route),
                                  "responses", responses_of(route));
    if (*route->doc)
        (void)json_object_set_new(operation, "description", json_string(route->doc));
    if (route->flags & ROUTE_BODY)
        (void)json_object_set_new(
            operation, "requestBody",
            json_pack("{s:b, s:o}", "required", 1, "content",
                      content_of(route->request ? route->request : "Request")));
    if (route->flags & ROUTE_BYTES)
        (void)json_object_set_new(
            operation, "requestBody",
            json_pack("{s:b, s:{s:{}}}", "required", 1, "content", "application/octet-stream"));
    if (route->flags & ROUTE_OPEN)
        (void)json_object_set_new(operation, "security", json_array());
    return operation;
}

static json_t *all_paths(void)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < route_count; i++) {
        char method[16] = "";
        if (routes[i].flags & ROUTE_FOREIGN)
            continue;
        for (size_t k = 0; routes[i].method[k] && k + 1 < sizeof method; k++)
            method[k] = (char)tolower((unsigned char)routes[i].method[k]);
        if (!json_object_get(paths, routes[i].path))
            (void)json_object_set_new(paths, routes[i].path, json_object());
        (void)json_object_set_new(json_object_get(paths, routes[i].path), method,
                                  operation_of(&routes[i]));
    }
    return paths;
}

/* Those of schemas.json, and those made from tables; Result is both. */
static json_t *all_schemas(void)
{
    json_t *schemas = json_loadb((const char *)schemas_json, sizeof schemas_json, 0, NULL);
    json_t *result = result_schema();
    (void)json_object_update_recursive(result, json_object_get(schemas, "Result"));
    (void)json_object_set_new(schemas, "Result", result);
    (void)json_object_set_new(schemas, "Request", request_schema());
    for (size_t i = 0; i < ARRAY_LENGTH(sandbox_requests); i++)
        (void)json_object_set_new(schemas, sandbox_requests[i].name,
                                  sandbox_schema(sandbox_requests[i].operation));
    (void)json_object_set_new(schemas, "Judge0Request", judge0_schema());
    (void)json_object_set_new(schemas, "Error", error_schema());
    return schemas;
}

static int append(const char *bytes, size_t length, void *out)
{
    str_append_bytes(out, bytes, length);
    return 0;
}

static void write_openapi(struct str *out)
{
    json_t *schemes =
        json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s}}", "key", "type", "apiKey", "in", "header",
                  "name", "X-API-Key", "bearer", "type", "http", "scheme", "bearer");
    json_t *root = json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], s:[{s:[]}, {s:[]}, {}], s:o, s:{s:o, "
        "s:o}}",
        "openapi", "3.1.0", "info", "title", "brigd", "description",
        "Runs untrusted code, each request in a fresh jail.", "version", BRIG_VERSION, "license",
        "name", "MIT", "identifier", "MIT", "servers", "url", "/", "security", "key", "bearer",
        "paths", all_paths(), "components", "securitySchemes", schemes, "schemas", all_schemas());
    if (!root || json_dump_callback(root, append, out, JSON_INDENT(1)) < 0)
        out->failed = true;
    str_append_char(out, '\n');
    json_decref(root);
}

/* ---- Markdown ---- */

static const char introduction[] =
    "<!-- Made by `gen-api` from the tables in src/server/http; change it there. -->\n"
    "# The HTTP interface of brigd\n\n"
    "JSON in UTF-8, over HTTP/1.1. `GET /openapi.json` says the same to programs.\n\n"
    "- **Keys**: where `security.allowed_keys` is set, a request needs one of them as `X-API-Key` "
    "or\n"
    "  `Authorization: Bearer`; but for those marked *open*.\n"
    "- **Bodies** are sent with `Content-Type: application/json`, at most `server.max_body`\n"
    "  (8 MiB); JSON with a key twice, nested deeper than 8 levels or with more than 8192 values "
    "is\n"
    "  refused.\n"
    "- **Request ids**: `X-Request-ID` of a request (letters, digits, `-`, `_`, `.`; at most 64) "
    "is\n"
    "  kept, otherwise one is made; it is in the answer, the access log and errors.\n"
    "- **Rate**: `security.rate_limit_rps` requests a second for each client address (of IPv6 "
    "each\n"
    "  /64); beyond that 429 with `Retry-After`. `/health` and `/metrics` are not counted.\n"
    "- **Idempotency-Key** (1 to 255 visible ASCII characters) on every request that runs code: a\n"
    "  repeated request with the same key, path and body, from the same API key, gets the same\n"
    "  execution and the same answer, with `Idempotency-Replayed: true`, for `queue.keep`. While "
    "the\n"
    "  first still runs, the second waits for it, at most `queue.max_wait`, then it is answered "
    "with\n"
    "  409. Another body is answered with 422. A key whose execution failed with `SETUP_FAILED`, "
    "so\n"
    "  that nothing of its code ran, can be used again. The run of `/execute` then goes on when "
    "its\n"
    "  client goes away.\n"
    "- **traceparent** of W3C Trace Context, version 00, is written to the access log and the "
    "history.\n"
    "- **HEAD** works wherever GET does; **OPTIONS** lists the methods of a path.\n"
    "- What is no HTTP at all, or has a head larger than `server.max_header`, is answered with\n"
    "  400, 414 or 431 by the HTTP library, without JSON. Clients that are too slow are cut "
    "off.\n\n";

/* A pipe would end the cell. */
static void append_escaped(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            str_append_char(out, '\\');
        str_append_char(out, *text);
    }
}

/* "| `code` note | cell | … |" */
#define append_row(out, code, note, ...)                                                           \
    append_cells(out, code, note, (const char *const[]){__VA_ARGS__, NULL})
static void append_cells(struct str *out, const char *code, const char *note,
                         const char *const *cells)
{
    str_append(out, "| `");
    append_escaped(out, code);
    str_concat(out, "`", note, " ");
    for (; *cells; cells++) {
        str_append(out, "| ");
        append_escaped(out, *cells);
        str_append_char(out, ' ');
    }
    str_append(out, "|\n");
}

static void append_routes(struct str *out)
{
    str_append(out, "## Routes\n");
    for (size_t i = 0; i < route_count; i++) {
        const struct route *route = &routes[i];
        bool any = false;
        if (route->flags & ROUTE_FOREIGN)
            continue;
        str_appendf(out, "\n### %s %s\n\n%s%s.\n", route->method, route->path, route->summary,
                    route->flags & ROUTE_OPEN ? " (*open*)" : "");
        if (*route->doc)
            str_concat(out, route->doc, "\n");
        for (size_t k = 0; k < route_parameter_count; k++) {
            const struct route_parameter *row = &route_parameters[k];
            if (strcmp(row->path, route->path) != 0)
                continue;
            if (!any)
                str_append(out, "\n| parameter | allowed | meaning |\n|---|---|---|\n");
            any = true;
            append_row(out, row->name, "", row->allowed, row->doc);
        }
    }
}

static void append_request(struct str *out)
{
    str_append(
        out,
        "\n## The request of /execute and /executions\n\n"
        "    {\"language\": \"python\", \"code\": \"print('hello')\", \"timeout\": \"10s\",\n"
        "     \"limits\": {\"memory_mb\": 256}, \"files\": {\"data.csv\": \"a,b\\n1,2\\n\"}}\n\n"
        "`null` is as good as leaving a field out; other fields are refused.\n\n"
        "| field | type | allowed | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < request_field_count; i++)
        append_row(out, request_fields[i].name, request_fields[i].required ? " (required)" : "",
                   request_fields[i].type, request_fields[i].allowed, request_fields[i].doc);
}

static void append_sandbox_requests(struct str *out)
{
    str_append(out, "\n## The requests of /sandboxes\n\n"
                    "`null` is as good as leaving a field out; other fields are refused.\n");
    for (size_t i = 0; i < ARRAY_LENGTH(sandbox_requests); i++) {
        for (size_t k = 0; k < route_count; k++)
            if (routes[k].request && strcmp(routes[k].request, sandbox_requests[i].name) == 0)
                str_appendf(out, "\n### %s: %s %s\n\n", sandbox_requests[i].name, routes[k].method,
                            routes[k].path);
        str_append(out, "| field | type | allowed | meaning |\n|---|---|---|---|\n");
        for (size_t k = 0; k < sandbox_field_count; k++) {
            const struct sandbox_field *field = &sandbox_fields[k];
            if (field->operations & 1U << sandbox_requests[i].operation)
                append_row(out, field->name, field->required ? " (required)" : "", field->type,
                           field->allowed, field->doc);
        }
    }
}

static void append_result(struct str *out)
{
    str_append(out, "\n## The result\n\n| member | type | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < result_field_count; i++)
        append_row(out, result_fields[i].name, "", result_fields[i].type, result_fields[i].doc);
}

static void append_errors(struct str *out)
{
    str_append(out,
               "\n## Errors\n\n"
               "    {\"error\": \"timeout is 90s, …\", \"code\": \"INVALID_FIELD\", \"field\": "
               "\"timeout\", \"request_id\": \"…\"}\n\n"
               "| code | status | when |\n|---|---|---|\n");
    for (int i = ERROR_NONE + 1; i < ERRORS_; i++) {
        const struct error_row *row = error_row((enum http_error)i);
        append_row(out, row->code, "", str_number(row->status).text, row->doc);
    }
}

static void append_callbacks(struct str *out)
{
    str_append(
        out,
        "\n## Callbacks\n\n"
        "`callback.url` of `POST /executions` is sent the result, as `POST /execute` answers it, "
        "when the\n"
        "execution has ended, whatever its status. The request is a POST with these headers, as "
        "Standard\n"
        "Webhooks has them:\n\n"
        "    webhook-id: the id of the execution\n"
        "    webhook-timestamp: seconds since 1970\n"
        "    webhook-signature: v1,BASE64\n\n"
        "BASE64 is the HMAC-SHA256, with the secret as the key, of the id, a dot, the timestamp, a "
        "dot and\n"
        "the body. To verify one, compute it over the bytes of the body as they came, compare it "
        "in\n"
        "constant time, and refuse timestamps that are older than some minutes. In Python:\n\n"
        "    text = f\"{headers['webhook-id']}.{headers['webhook-timestamp']}.\".encode() + body\n"
        "    wanted = base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()\n"
        "    hmac.compare_digest(headers['webhook-signature'], 'v1,' + wanted)\n\n"
        "An answer with 2xx is the end of it. Otherwise it is tried again after `callback.retry` "
        "(5 s),\n"
        "then after twice that, and so on, `callback.attempts` (6) times in all; redirects are "
        "not\n"
        "followed. A callback comes at least once, also over restarts of the server: use "
        "`webhook-id` to\n"
        "recognise one that comes twice. A result larger than `callback.max_body` comes without "
        "`files`,\n"
        "and if need be without `output` and `stderr`.\n\n"
        "Only public addresses are called, and what the operator has in `callback.allow`; a "
        "service on the\n"
        "loopback of the server has the name `host`.\n");
}

static void append_metrics(struct str *out)
{
    str_append(out, "\n## Metrics\n\n| name | type | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < metrics_row_count; i++)
        append_row(out, metrics_rows[i].name, "", metrics_rows[i].type, metrics_rows[i].doc);
}

static void append_patterns(struct str *out)
{
    str_append(
        out, "\n## What the detector looks for\n\n"
             "In `code`, whatever the case of letters and the blanks between them. `critical` is\n"
             "answered with 403 and not run (but for agents, whose code is a prompt); the others\n"
             "are in `security_events`. The detector is no wall, the jail is:\n"
             "`security.detector: false` takes nothing from its safety.\n\n"
             "| pattern | type | severity | the code … |\n|---|---|---|---|\n");
    for (size_t i = 0; i < detector_pattern_count; i++) {
        const struct detector_pattern *row = &detector_patterns[i];
        append_row(out, row->text, "", row->type, execution_severity_name(row->severity),
                   row->detail);
    }
}

static void write_markdown(struct str *out)
{
    str_append(out, introduction);
    append_routes(out);
    append_request(out);
    append_sandbox_requests(out);
    append_result(out);
    append_callbacks(out);
    append_errors(out);
    append_metrics(out);
    append_patterns(out);
}

int main(int argc, char **argv)
{
    autostr struct str out = {0};
    if (argc == 2 && strcmp(argv[1], "--openapi") == 0)
        write_openapi(&out);
    else if (argc == 1)
        write_markdown(&out);
    if (out.failed || !out.data) {
        (void)fputs("usage: gen-api [--openapi]\n", stderr);
        return 1;
    }
    return fwrite(out.data, 1, out.length, stdout) == out.length ? 0 : 1;
}
