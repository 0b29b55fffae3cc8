/* SPDX-License-Identifier: MIT */
/* Describes the HTTP interface for programs, as OpenAPI, from its tables. Jansson's functions pass a
 * NULL for lack of memory on. */
#include "gen-openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/api/judge0.h"
#include "server/api/judge0_request.h"
#include "server/api/piston.h"
#include "server/api/sandbox_request.h"
#include "server/http/request.h"
#include "server/http/result_json.h"
#include "server/http/route.h"
#include "server/schemas_json.h" /* generated from src/server/http/schemas.json */

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
        const struct field *field = &request_fields[i];
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
        const struct field *field = &sandbox_fields[i];
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

const struct sandbox_body sandbox_bodies[] = {
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
const size_t sandbox_body_count = ARRAY_LENGTH(sandbox_bodies);

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

static void add_parameter(json_t *list, const char *name, const char *in, const char *type)
{
    (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", name, "in", in,
                                                "required", 1, "schema", "type", type));
}

static json_t *parameters_of(const struct route *route)
{
    json_t *list = json_array();
    if (strstr(route->path, "{id}"))
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s, s:s}}", "name", "id",
                                                    "in", "path", "required", 1, "schema", "type",
                                                    "string", "format", "uuid"));
    if (strstr(route->path, "{pid}"))
        add_parameter(list, "pid", "path", "integer");
    for (size_t i = 0; i < route_parameter_count; i++) {
        const struct route_parameter *row = &route_parameters[i];
        if (route_has_parameter(route, row))
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:o, s:{s:s}}", "name", row->name, "in", "query",
                          "description", json_sprintf("%s Allowed: %s.", row->doc, row->allowed),
                          "schema", "type", "string"));
    }
    return list;
}

/* The schema of errors. */
static const char *errors_of(const struct route *route)
{
    return route->dialect == &judge0_dialect   ? "Judge0Error"
           : route->dialect == &piston_dialect ? "PistonMessage"
                                               : "Error";
}

/* Judge0 and Piston have other errors of their own. */
static bool foreign_may_fail(const struct route *route, enum http_error error)
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
    if (strcmp(errors_of(route), "Error") != 0)
        return foreign_may_fail(route, error);
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
    case ERROR_PORT_CLOSED:
        return strstr(route->path, "/ports/");
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
            json_pack("{s:o, s:o}", "description", text, "content", content_of(errors_of(route)));
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
                                                            route->dialect != &judge0_dialect)
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

/* Groups of routes, by the beginning of their paths. */
static const struct {
    const char *name, *path, *doc, *link;
} tags[] = {
    {"Executions", "/execut", "Code that is run once, and the history of it.", NULL},
    {"Sandboxes", "/sandboxes", "Jails that stay, for many commands and files.", NULL},
    {"MCP", "/mcp", "Tools for models; see docs/mcp.md.", "https://modelcontextprotocol.io"},
    {"Judge0", "/judge0", "For clients of Judge0; see docs/server.md, Clients of Judge0.",
     "https://ce.judge0.com"},
    {"Piston", PISTON_PATH,
     "For clients of Piston; also below " PISTON_PATH
     "/piston. See docs/server.md, Clients of Piston.",
     "https://github.com/engineer-man/piston"},
    {"E2B", E2B_PATH,
     "For clients of E2B, whose documents describe bodies and answers; see docs/e2b.md.",
     "https://e2b.dev/docs"},
    {"Server", "/", "The server itself.", NULL},
};

static const char *tag_of(const char *path)
{
    size_t i = 0;
    while (i + 1 < ARRAY_LENGTH(tags) && !str_starts_with(path, tags[i].path))
        i++;
    return tags[i].name;
}

static json_t *all_tags(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_LENGTH(tags); i++) {
        json_t *tag = json_pack("{s:s, s:s}", "name", tags[i].name, "description", tags[i].doc);
        if (tags[i].link)
            (void)json_object_set_new(tag, "externalDocs", json_pack("{s:s}", "url", tags[i].link));
        (void)json_array_append_new(list, tag);
    }
    return list;
}

static json_t *operation_of(const struct route *route)
{
    json_t *operation =
        json_pack("{s:s, s:[s], s:s, s:o, s:o}", "operationId", route->operation, "tags",
                  tag_of(route->path), "summary", route->summary, "parameters",
                  parameters_of(route), "responses", responses_of(route));
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

/* Adds an operation, if the path has none with this method; else releases it. */
static void add_operation(json_t *paths, const char *path, const char *method, json_t *operation)
{
    char lower[16] = "";
    for (size_t i = 0; method[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)method[i]);
    if (!json_object_get(paths, path))
        (void)json_object_set_new(paths, path, json_object());
    if (json_object_get(json_object_get(paths, path), lower))
        json_decref(operation);
    else
        (void)json_object_set_new(json_object_get(paths, path), lower, operation);
}

/* ---- Ports of sandboxes, and interfaces of other programs ---- */

/* The path of ports has no end in OpenAPI: {path} may have slashes. */
static void add_ports(json_t *paths, const struct route *route)
{
    static const char *const methods[][2] = {
        {"GET", "portGet"}, {"POST", "portPost"}, {"PUT", "portPut"}, {"DELETE", "portDelete"}};
    for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
        struct route one = *route;
        one.operation = methods[i][1];
        json_t *operation = operation_of(&one), *parameters = json_array(), *responses;
        add_parameter(parameters, "id", "path", "string");
        add_parameter(parameters, "port", "path", "integer");
        add_parameter(parameters, "path", "path", "string");
        (void)json_object_set_new(operation, "parameters", parameters);
        responses = json_object_get(operation, "responses");
        (void)json_object_del(responses, "200");
        (void)json_object_del(responses, "202");
        (void)json_object_set_new(responses, "default",
                                  json_pack("{s:s}", "description", "What the program answers."));
        add_operation(paths, OPENAPI_PORTS_PATH, methods[i][0], operation);
    }
}

static void add_piston(json_t *paths)
{
    for (size_t i = 0; i < piston_route_count; i++) {
        const struct piston_route *row = &piston_routes[i];
        char path[64];
        (void)snprintf(path, sizeof path, "%s%s", PISTON_PATH, row->path);
        const struct route route = {.method = row->method,
                                    .dialect = &piston_dialect,
                                    .path = path,
                                    .flags = row->request ? ROUTE_BODY : 0,
                                    .operation = row->operation,
                                    .schema = row->schema,
                                    .summary = row->summary,
                                    .doc = "",
                                    .request = row->request};
        json_t *operation = operation_of(&route);
        json_t *responses = json_object_get(operation, "responses");
        const char *status = strcmp(row->method, "DELETE") == 0 ? "202" : "200";
        json_t *good = json_object_get(responses, status);
        bool refused = str_starts_with(row->summary, "403");
        if (refused || !row->schema) {
            (void)json_object_set(responses, refused ? "403" : "101", good);
            (void)json_object_del(responses, status);
        }
        if (!row->schema)
            (void)json_object_del(json_object_get(responses, "101"), "content");
        add_operation(paths, path, row->method, operation);
    }
}

/* "e2bPostSandboxesIdPause" */
static void name_e2b(const struct e2b_route *row, char *ret_name, size_t size)
{
    size_t used = (size_t)snprintf(ret_name, size, "e2b%c", row->method[0]);
    bool begin = false;
    for (const char *at = row->method + 1; *at && used + 1 < size; at++)
        ret_name[used++] = (char)tolower((unsigned char)*at);
    for (const char *at = row->path; *at && used + 1 < size; at++) {
        if (isalnum((unsigned char)*at))
            ret_name[used++] = begin ? (char)toupper((unsigned char)*at) : *at;
        begin = !isalnum((unsigned char)*at);
    }
    ret_name[used] = '\0';
}

static void add_e2b(json_t *paths)
{
    for (size_t i = 0; i < e2b_route_count; i++) {
        const struct e2b_route *row = &e2b_routes[i];
        bool inside = row->port != E2B_API;
        char path[128], name[128];
        if (row->handle == e2b_unsupported)
            continue;
        (void)snprintf(path, sizeof path, "%s%s", inside ? E2B_SANDBOX_PATH : E2B_PATH, row->path);
        name_e2b(row, name, sizeof name);
        json_t *parameters = json_array();
        if (strstr(row->path, "{id}"))
            add_parameter(parameters, "id", "path", "string");
        if (inside) {
            add_parameter(parameters, "E2b-Sandbox-Id", "header", "string");
            add_parameter(parameters, "E2b-Sandbox-Port", "header", "integer");
            add_parameter(parameters, "X-Access-Token", "header", "string");
        }
        json_t *operation =
            json_pack("{s:s, s:[s], s:s, s:o, s:{s:{s:s}}}", "operationId", name, "tags", "E2B",
                      "summary", openapi_e2b_service(row), "parameters", parameters, "responses",
                      "default", "description", "As in E2B's documents.");
        if (strcmp(row->method, "POST") == 0)
            (void)json_object_set_new(operation, "requestBody",
                                      json_pack("{s:{s:{}}}", "content",
                                                row->form == E2B_STREAM ? "application/connect+json"
                                                                        : "application/json"));
        if (inside)
            (void)json_object_set_new(operation, "security", json_array());
        add_operation(paths, path, row->method, operation);
    }
}

const char *openapi_e2b_service(const struct e2b_route *row)
{
    return row->port == E2B_API    ? "E2B: sandboxes"
           : row->port == E2B_ENVD ? "E2B: commands and files of a sandbox (port 49983)"
                                   : "E2B: the code interpreter of a sandbox (port 49999)";
}

/* ---- The document ---- */

static json_t *all_paths(void)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < route_count; i++) {
        if (strstr(routes[i].path, "/ports/"))
            add_ports(paths, &routes[i]);
        else if (!(routes[i].flags & ROUTE_FOREIGN))
            add_operation(paths, routes[i].path, routes[i].method, operation_of(&routes[i]));
    }
    add_piston(paths);
    add_e2b(paths);
    return paths;
}

/* Result is both in schemas.json and in a table. */
json_t *openapi_schemas(void)
{
    json_t *schemas = json_loadb((const char *)schemas_json, sizeof schemas_json, 0, NULL);
    json_t *result = result_schema();
    (void)json_object_update_recursive(result, json_object_get(schemas, "Result"));
    (void)json_object_set_new(schemas, "Result", result);
    (void)json_object_set_new(schemas, "Request", request_schema());
    for (size_t i = 0; i < sandbox_body_count; i++)
        (void)json_object_set_new(schemas, sandbox_bodies[i].name,
                                  sandbox_schema(sandbox_bodies[i].operation));
    (void)json_object_set_new(schemas, "Judge0Request", judge0_schema());
    (void)json_object_set_new(schemas, "Error", error_schema());
    return schemas;
}

static int append(const char *bytes, size_t length, void *out)
{
    str_append_bytes(out, bytes, length);
    return 0;
}

void openapi_write(struct str *out)
{
    json_t *schemes =
        json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s}}", "key", "type", "apiKey", "in", "header",
                  "name", "X-API-Key", "bearer", "type", "http", "scheme", "bearer");
    json_t *root = json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], s:[{s:[]}, {s:[]}, {}], s:o, s:{s:o, "
        "s:o}, s:o}",
        "openapi", "3.1.0", "info", "title", "brigd", "description",
        "Runs untrusted code, each request in a fresh jail.", "version", BRIG_VERSION, "license",
        "name", "MIT", "identifier", "MIT", "servers", "url", "/", "security", "key", "bearer",
        "paths", all_paths(), "components", "securitySchemes", schemes, "schemas",
        openapi_schemas(), "tags", all_tags());
    if (!root || json_dump_callback(root, append, out, JSON_INDENT(1)) < 0)
        out->failed = true;
    str_append_char(out, '\n');
    json_decref(root);
}
