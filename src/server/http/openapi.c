/* SPDX-License-Identifier: MIT */
/* The interface as OpenAPI 3.1. */
#include "server/http/openapi.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <brig/brig.h>

#include "base/json.h"
#include "base/str.h"
#include "server/http/errors.h"
#include "server/http/request_json.h"
#include "server/http/result_json.h"
#include "server/http/route.h"

#define JSON_TYPE "application/json"

/* "array of strings" and its kind, as JSON Schema. */
static void write_schema_type(struct json *j, const char *type)
{
    if (strcmp(type, "array of strings") == 0) {
        json_text(j, "type", "array");
        json_open_object(j, "items");
        json_text(j, "type", "string");
        json_close_object(j);
        return;
    }
    if (strcmp(type, "object of strings") == 0) {
        json_text(j, "type", "object");
        json_open_object(j, "additionalProperties");
        json_text(j, "type", "string");
        json_close_object(j);
        return;
    }
    const char *either = strstr(type, " or ");
    if (!either) {
        json_text(j, "type", type);
        return;
    }
    json_open_array(j, "type");
    json_bytes(j, NULL, type, (size_t)(either - type));
    json_text(j, NULL, either + 4);
    json_close_array(j);
}

static void write_field(struct json *j, const struct request_field *field, const char *name)
{
    autostr struct str doc = {0};
    str_appendf(&doc, "%s Allowed: %s.", field->doc, field->allowed);
    json_open_object(j, name);
    write_schema_type(j, field->type);
    json_text(j, "description", doc.data);
    json_close_object(j);
}

/* The depth to which two dotted names are in the same objects. */
static size_t common_dots(const char *a, const char *b)
{
    size_t dots = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        dots += a[i] == '.';
    return dots;
}

static size_t dots_of(const char *name)
{
    size_t dots = 0;
    for (; *name; name++)
        dots += *name == '.';
    return dots;
}

static void open_schema_object(struct json *j, const char *key)
{
    json_open_object(j, key);
    json_text(j, "type", "object");
    json_bool(j, "additionalProperties", false);
    json_open_object(j, "properties");
}

static void close_schema_object(struct json *j)
{
    json_close_object(j);
    json_close_object(j);
}

/* The rows of nested objects stand together: each is opened and closed as the names change. */
static void write_fields(struct json *j)
{
    const char *before = "";
    for (size_t i = 0; i < request_field_count; i++) {
        const char *name = request_fields[i].name;
        size_t open = dots_of(before), kept = common_dots(before, name);
        for (; open > kept; open--)
            close_schema_object(j);
        const char *part = name;
        for (size_t depth = 0;; depth++) {
            const char *dot = strchr(part, '.');
            if (!dot)
                break;
            char key[64];
            (void)snprintf(key, sizeof key, "%.*s", (int)(dot - part), part);
            if (depth >= kept)
                open_schema_object(j, key);
            part = dot + 1;
        }
        write_field(j, &request_fields[i], part);
        before = name;
    }
    for (size_t open = dots_of(before); open > 0; open--)
        close_schema_object(j);
}

static void write_request(struct json *j)
{
    open_schema_object(j, "Request");
    write_fields(j);
    json_close_object(j); /* properties */
    json_open_array(j, "required");
    for (size_t i = 0; i < request_field_count; i++)
        if (request_fields[i].required)
            json_text(j, NULL, request_fields[i].name);
    json_close_array(j);
    json_close_object(j);
}

static void write_result(struct json *j)
{
    json_open_object(j, "Result");
    json_text(j, "type", "object");
    json_open_object(j, "properties");
    for (size_t i = 0; i < result_field_count; i++) {
        json_open_object(j, result_fields[i].name);
        json_text(j, "type", result_fields[i].type);
        json_text(j, "description", result_fields[i].doc);
        json_close_object(j);
    }
    json_close_object(j);
    json_close_object(j);
}

static void write_error(struct json *j)
{
    static const char *const members[] = {"error", "code", "request_id", "field", "id"};
    json_open_object(j, "Error");
    json_text(j, "type", "object");
    json_open_object(j, "properties");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        json_open_object(j, members[i]);
        json_text(j, "type", "string");
        if (strcmp(members[i], "code") == 0) {
            json_open_array(j, "enum");
            for (int error = ERROR_NONE + 1; error < ERRORS_; error++)
                json_text(j, NULL, error_row((enum http_error)error)->code);
            json_close_array(j);
        }
        json_close_object(j);
    }
    json_close_object(j);
    json_close_object(j);
}

static void write_reference(struct json *j, const char *key, const char *type, const char *name)
{
    autostr struct str target = {0};
    str_appendf(&target, "#/components/schemas/%s", name);
    json_open_object(j, key);
    json_open_object(j, type);
    json_open_object(j, "schema");
    json_text(j, "$ref", target.data);
    json_close_object(j);
    json_close_object(j);
    json_close_object(j);
}

static void write_body(struct json *j)
{
    json_open_object(j, "requestBody");
    json_bool(j, "required", true);
    write_reference(j, "content", JSON_TYPE, "Request");
    json_close_object(j);
}

static void write_parameters(struct json *j, const struct route *route)
{
    json_open_array(j, "parameters");
    if (strstr(route->path, "{id}")) {
        json_open_object(j, NULL);
        json_text(j, "name", "id");
        json_text(j, "in", "path");
        json_bool(j, "required", true);
        json_open_object(j, "schema");
        json_text(j, "type", "string");
        json_text(j, "format", "uuid");
        json_close_object(j);
        json_close_object(j);
    }
    for (size_t i = 0; i < route_parameter_count; i++) {
        const struct route_parameter *parameter = &route_parameters[i];
        if (strcmp(parameter->path, route->path) != 0 ||
            strcmp(parameter->method, route->method) != 0)
            continue;
        json_open_object(j, NULL);
        json_text(j, "name", parameter->name);
        json_text(j, "in", "query");
        json_text(j, "description", parameter->doc);
        json_open_object(j, "schema");
        json_text(j, "type", "string");
        json_close_object(j);
        json_close_object(j);
    }
    json_close_array(j);
}

static void write_responses(struct json *j, const struct route *route)
{
    json_open_object(j, "responses");
    json_open_object(j, strcmp(route->method, "DELETE") == 0 ? "202" : "200");
    json_text(j, "description", route->summary);
    if (route->flags & ROUTE_STREAM) {
        json_open_object(j, "content");
        json_open_object(j, "text/event-stream");
        json_close_object(j);
        json_close_object(j);
    } else if (route->flags & ROUTE_BODY) {
        write_reference(j, "content", JSON_TYPE, "Result");
    }
    json_close_object(j);
    json_open_object(j, "default");
    json_text(j, "description", "An error");
    write_reference(j, "content", JSON_TYPE, "Error");
    json_close_object(j);
    json_close_object(j);
}

static void write_operation(struct json *j, const struct route *route)
{
    char method[16] = "";
    for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)(route->method[i] | 0x20);
    json_open_object(j, method);
    json_text(j, "summary", route->summary);
    if (*route->doc)
        json_text(j, "description", route->doc);
    write_parameters(j, route);
    if (route->flags & ROUTE_BODY)
        write_body(j);
    if (route->flags & ROUTE_OPEN) {
        json_open_array(j, "security");
        json_close_array(j);
    }
    write_responses(j, route);
    json_close_object(j);
}

/* Routes of one path stand together in the table. */
static void write_paths(struct json *j)
{
    json_open_object(j, "paths");
    for (size_t i = 0; i < route_count; i++) {
        if (i == 0 || strcmp(routes[i].path, routes[i - 1].path) != 0)
            json_open_object(j, routes[i].path);
        write_operation(j, &routes[i]);
        if (i + 1 == route_count || strcmp(routes[i].path, routes[i + 1].path) != 0)
            json_close_object(j);
    }
    json_close_object(j);
}

static void write_security(struct json *j)
{
    json_open_object(j, "securitySchemes");
    json_open_object(j, "key");
    json_text(j, "type", "apiKey");
    json_text(j, "in", "header");
    json_text(j, "name", "X-API-Key");
    json_close_object(j);
    json_open_object(j, "bearer");
    json_text(j, "type", "http");
    json_text(j, "scheme", "bearer");
    json_close_object(j);
    json_close_object(j);
}

void openapi_write(struct str *out)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_text(&j, "openapi", "3.1.0");
    json_open_object(&j, "info");
    json_text(&j, "title", "brigd");
    json_text(&j, "description", "Runs untrusted code, each request in a fresh jail.");
    json_text(&j, "version", BRIG_VERSION);
    json_close_object(&j);
    json_open_array(&j, "security");
    json_open_object(&j, NULL);
    json_open_array(&j, "key");
    json_close_array(&j);
    json_close_object(&j);
    json_open_object(&j, NULL);
    json_open_array(&j, "bearer");
    json_close_array(&j);
    json_close_object(&j);
    json_open_object(&j, NULL);
    json_close_object(&j);
    json_close_array(&j);
    write_paths(&j);
    json_open_object(&j, "components");
    write_security(&j);
    json_open_object(&j, "schemas");
    write_request(&j);
    write_result(&j);
    write_error(&j);
    json_close_object(&j);
    json_close_object(&j);
    json_close_object(&j);
}
