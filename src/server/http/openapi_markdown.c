/* SPDX-License-Identifier: MIT */
/* The interface for people: docs/api.md. */
#include <string.h>

#include "base/str.h"
#include "server/http/detector.h"
#include "server/http/errors.h"
#include "server/http/metrics.h"
#include "server/http/openapi.h"
#include "server/http/request_json.h"
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
    "- **HEAD** works wherever GET does; **OPTIONS** lists the methods of a path.\n"
    "- What is no HTTP at all, or has a head larger than `server.max_header`, is answered with\n"
    "  400, 414 or 431 by the HTTP library, without JSON. Clients that are too slow are cut "
    "off.\n\n";

/* The pipe would end a cell. */
static void append_cell(struct str *out, const char *text)
{
    str_append(out, "| ");
    for (; *text; text++) {
        if (*text == '|')
            str_append_char(out, '\\');
        str_append_char(out, *text);
    }
    str_append_char(out, ' ');
}

static void end_row(struct str *out)
{
    str_append(out, "|\n");
}

static void append_parameters(struct str *out, const struct route *route)
{
    bool any = false;
    for (size_t i = 0; i < route_parameter_count; i++) {
        const struct route_parameter *parameter = &route_parameters[i];
        if (strcmp(parameter->path, route->path) != 0 ||
            strcmp(parameter->method, route->method) != 0)
            continue;
        if (!any)
            str_append(out, "\n| parameter | allowed | meaning |\n|---|---|---|\n");
        any = true;
        str_appendf(out, "| `%s` ", parameter->name);
        append_cell(out, parameter->allowed);
        append_cell(out, parameter->doc);
        end_row(out);
    }
}

static void append_routes(struct str *out)
{
    str_append(out, "## Routes\n");
    for (size_t i = 0; i < route_count; i++) {
        const struct route *route = &routes[i];
        str_appendf(out, "\n### %s %s\n\n%s%s.\n", route->method, route->path, route->summary,
                    route->flags & ROUTE_OPEN ? " (*open*)" : "");
        if (*route->doc)
            str_appendf(out, "%s\n", route->doc);
        append_parameters(out, route);
    }
}

static void append_request(struct str *out)
{
    str_append(
        out,
        "\n## The request of /execute\n\n"
        "    {\"language\": \"python\", \"code\": \"print('hello')\", \"timeout\": \"10s\",\n"
        "     \"limits\": {\"memory_mb\": 256}, \"files\": {\"data.csv\": \"a,b\\n1,2\\n\"}}\n\n"
        "`null` is as good as leaving a field out; other fields are refused.\n\n"
        "| field | type | allowed | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < request_field_count; i++) {
        str_appendf(out, "| `%s`%s ", request_fields[i].name,
                    request_fields[i].required ? " (required)" : "");
        append_cell(out, request_fields[i].type);
        append_cell(out, request_fields[i].allowed);
        append_cell(out, request_fields[i].doc);
        end_row(out);
    }
}

static void append_result(struct str *out)
{
    str_append(out, "\n## The result\n\n| member | type | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < result_field_count; i++) {
        str_appendf(out, "| `%s` ", result_fields[i].name);
        append_cell(out, result_fields[i].type);
        append_cell(out, result_fields[i].doc);
        end_row(out);
    }
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
        str_appendf(out, "| `%s` | %u ", row->code, row->status);
        append_cell(out, row->doc);
        end_row(out);
    }
}

static void append_metrics(struct str *out)
{
    str_append(out, "\n## Metrics\n\n| name | type | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < metrics_row_count; i++) {
        str_appendf(out, "| `%s` | %s ", metrics_rows[i].name, metrics_rows[i].type);
        append_cell(out, metrics_rows[i].doc);
        end_row(out);
    }
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
        str_append(out, "| `");
        for (const char *c = row->text; *c; c++)
            str_appendf(out, *c == '|' ? "\\%c" : "%c", *c);
        str_appendf(out, "` | %s | %s ", row->type, execution_severity_name(row->severity));
        append_cell(out, row->detail);
        end_row(out);
    }
}

void openapi_write_markdown(struct str *out)
{
    str_append(out, introduction);
    append_routes(out);
    append_request(out);
    append_result(out);
    append_errors(out);
    append_metrics(out);
    append_patterns(out);
}
