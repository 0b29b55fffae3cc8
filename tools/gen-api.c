/* SPDX-License-Identifier: MIT */
/* Prints docs/api.md, or with --openapi what GET /openapi.json answers. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/http/detector.h"
#include "server/http/metrics.h"
#include "server/http/openapi.h"
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
        "\n## The request of /execute\n\n"
        "    {\"language\": \"python\", \"code\": \"print('hello')\", \"timeout\": \"10s\",\n"
        "     \"limits\": {\"memory_mb\": 256}, \"files\": {\"data.csv\": \"a,b\\n1,2\\n\"}}\n\n"
        "`null` is as good as leaving a field out; other fields are refused.\n\n"
        "| field | type | allowed | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < request_field_count; i++)
        append_row(out, request_fields[i].name, request_fields[i].required ? " (required)" : "",
                   request_fields[i].type, request_fields[i].allowed, request_fields[i].doc);
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
    append_result(out);
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
