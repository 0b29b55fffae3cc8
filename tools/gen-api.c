/* SPDX-License-Identifier: MIT */
/* Describes the HTTP interface from its tables: prints docs/api.md, or with --openapi docs/openapi.json,
 * which is part of brigd and is what GET /openapi.json answers. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "gen-openapi.h"
#include "server/api/e2b.h"
#include "server/api/piston.h"
#include "server/api/sandbox_request.h"
#include "server/http/detector.h"
#include "server/http/metrics.h"
#include "server/http/request.h"
#include "server/http/result_json.h"
#include "server/http/route.h"

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
    "- A request that is not HTTP, or whose head is larger than `server.max_header`, is answered "
    "with\n"
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
        bool port = strstr(route->path, "/ports/");
        if (route->flags & ROUTE_FOREIGN && !port)
            continue;
        str_appendf(out, "\n### %s %s\n\n%s%s.\n", port ? "ANY" : route->method,
                    port ? OPENAPI_PORTS_PATH : route->path, route->summary,
                    route->flags & ROUTE_OPEN ? " (*open*)" : "");
        if (*route->doc)
            str_concat(out, route->doc, "\n");
        for (size_t k = 0; k < route_parameter_count; k++) {
            const struct route_parameter *row = &route_parameters[k];
            if (!route_has_parameter(route, row))
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

/* "Of `POST /sandboxes`, `GET …`.": the routes that have the schema, in requests or answers. */
static void append_users(struct str *out, const char *schema, bool request)
{
    const char *before = "\nOf ";
    for (size_t i = 0; i < route_count; i++) {
        const char *name = request ? routes[i].request : routes[i].schema;
        if (!str_equal(name, schema))
            continue;
        str_concat(out, before, "`", routes[i].method, " ", routes[i].path, "`");
        before = ", ";
    }
    str_append(out, *before == '\n' ? "" : ".\n");
}

static void append_sandbox_requests(struct str *out)
{
    str_append(out, "\n## The requests of /sandboxes\n\n"
                    "`null` is as good as leaving a field out; other fields are refused.\n");
    for (size_t i = 0; i < sandbox_body_count; i++) {
        str_concat(out, "\n### ", sandbox_bodies[i].name, "\n");
        append_users(out, sandbox_bodies[i].name, true);
        str_append(out, "\n| field | type | allowed | meaning |\n|---|---|---|---|\n");
        for (size_t k = 0; k < sandbox_field_count; k++) {
            const struct field *field = &sandbox_fields[k];
            if (field->operations & 1U << sandbox_bodies[i].operation)
                append_row(out, field->name, field->required ? " (required)" : "", field->type,
                           field->allowed, field->doc);
        }
    }
}

/* The name of a schema that the value refers to, or NULL. */
static const char *referred(const json_t *value)
{
    const char *path = json_string_value(json_object_get(value, "$ref"));
    return path ? strrchr(path, '/') + 1 : NULL;
}

/* "string or null", "array of Command", "running, paused or ending" */
static void append_type(struct str *out, const json_t *value)
{
    const json_t *type = json_object_get(value, "type"), *items = json_object_get(value, "items");
    const json_t *either = json_object_get(value, "enum"), *one;
    size_t i;
    if (!either && json_is_array(type))
        either = type;
    json_array_foreach(either, i, one) str_concat(out,
                                                  i == 0                            ? ""
                                                  : i + 1 < json_array_size(either) ? ", "
                                                                                    : " or ",
                                                  json_string_value(one));
    if (either)
        return;
    str_append(out, referred(value) ? referred(value) : json_string_value(type));
    if (items)
        str_concat(out, " of ", referred(items) ? referred(items) : "string");
}

static void append_sandbox_answers(struct str *out)
{
    static const char *const names[] = {"Sandbox",     "SandboxList", "SandboxMetrics", "Command",
                                        "CommandList", "Context",     "ContextList",    "Run",
                                        "RunValue",    "RunError",    "FileEntry",      "FileList",
                                        "Created"};
    json_auto_t *schemas = openapi_schemas();
    str_append(out, "\n## The answers of /sandboxes\n\n"
                    "Members that are not marked as *always* are left out where there is nothing "
                    "to say.\n");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const json_t *schema = json_object_get(schemas, names[i]), *one;
        const char *name;
        json_t *member;
        size_t k;
        str_concat(out, "\n### ", names[i], "\n");
        append_users(out, names[i], false);
        str_append(out, "\n| member | type | meaning |\n|---|---|---|\n");
        json_object_foreach(json_object_get(schema, "properties"), name, member)
        {
            autostr struct str type = {0};
            const char *doc = json_string_value(json_object_get(member, "description"));
            bool always = false;
            append_type(&type, member);
            json_array_foreach(json_object_get(schema, "required"), k, one) always =
                always || strcmp(json_string_value(one), name) == 0;
            append_row(out, name, always ? " (always)" : "", type.data, doc ? doc : "");
        }
    }
}

static void append_foreign(struct str *out)
{
    str_append(out,
               "\n## Interfaces of other programs\n\n"
               "For their unchanged clients. Requests, answers and errors have the form that these "
               "expect.\n\n"
               "- **Judge0**: the routes below `/judge0` above; see "
               "[server.md](server.md#clients-of-judge0).\n"
               "- **Piston**, below `" PISTON_PATH "` and `" PISTON_PATH "/piston`; see "
               "[server.md](server.md#clients-of-piston).\n"
               "- **E2B**, below `" E2B_PATH "`; see [e2b.md](e2b.md). Requests below "
               "`" E2B_SANDBOX_PATH "` go into a sandbox:\n"
               "  they have the headers `E2b-Sandbox-Id`, `E2b-Sandbox-Port` and "
               "`X-Access-Token`, and no API key.\n\n"
               "| request | does |\n|---|---|\n");
    for (size_t i = 0; i < piston_route_count; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s %s%s", piston_routes[i].method, PISTON_PATH,
                       piston_routes[i].path);
        append_row(out, name, "", piston_routes[i].summary);
    }
    for (size_t i = 0; i < e2b_route_count; i++) {
        const struct e2b_route *row = &e2b_routes[i];
        char name[128];
        (void)snprintf(name, sizeof name, "%s %s%s", row->method,
                       row->port == E2B_API ? E2B_PATH : E2B_SANDBOX_PATH, row->path);
        if (row->handle != e2b_unsupported)
            append_row(out, name, "", openapi_e2b_service(row));
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
    append_sandbox_answers(out);
    append_result(out);
    append_callbacks(out);
    append_foreign(out);
    append_errors(out);
    append_metrics(out);
    append_patterns(out);
}

int main(int argc, char **argv)
{
    autostr struct str out = {0};
    if (argc == 2 && strcmp(argv[1], "--openapi") == 0)
        openapi_write(&out);
    else if (argc == 1)
        write_markdown(&out);
    if (out.failed || !out.data) {
        (void)fputs("usage: gen-api [--openapi]\n", stderr);
        return 1;
    }
    return fwrite(out.data, 1, out.length, stdout) == out.length ? 0 : 1;
}
