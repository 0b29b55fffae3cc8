/* SPDX-License-Identifier: MIT */
/* The interface described from its tables, as OpenAPI 3.1. */
#include "server/http/openapi.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/http/request.h"
#include "server/http/result_json.h"
#include "server/http/route.h"

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
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s, s:o}, s:{s:s}, s:{s:s}, s:{s:s}}}", "type",
                     "object", "properties", "error", "type", "string", "code", "type", "string",
                     "enum", codes, "request_id", "type", "string", "field", "type", "string", "id",
                     "type", "string");
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
    for (size_t i = 0; i < route_parameter_count; i++) {
        const struct route_parameter *row = &route_parameters[i];
        if (strcmp(row->path, route->path) == 0)
            (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:{s:s}}", "name",
                                                        row->name, "in", "query", "description",
                                                        row->doc, "schema", "type", "string"));
    }
    return list;
}

static json_t *operation_of(const struct route *route)
{
    json_t *done = json_pack("{s:s}", "description", route->summary);
    if (route->flags & ROUTE_STREAM)
        (void)json_object_set_new(done, "content", json_pack("{s:{}}", "text/event-stream"));
    else if (route->flags & ROUTE_BODY)
        (void)json_object_set_new(done, "content", content_of("Result"));
    json_t *operation = json_pack(
        "{s:s, s:o, s:{s:o, s:{s:s, s:o}}}", "summary", route->summary, "parameters",
        parameters_of(route), "responses", strcmp(route->method, "DELETE") == 0 ? "202" : "200",
        done, "default", "description", "An error", "content", content_of("Error"));
    if (*route->doc)
        (void)json_object_set_new(operation, "description", json_string(route->doc));
    if (route->flags & ROUTE_BODY)
        (void)json_object_set_new(
            operation, "requestBody",
            json_pack("{s:b, s:o}", "required", 1, "content", content_of("Request")));
    if (route->flags & ROUTE_OPEN)
        (void)json_object_set_new(operation, "security", json_array());
    return operation;
}

static json_t *all_paths(void)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < route_count; i++) {
        char method[16] = "";
        for (size_t k = 0; routes[i].method[k] && k + 1 < sizeof method; k++)
            method[k] = (char)tolower((unsigned char)routes[i].method[k]);
        if (!json_object_get(paths, routes[i].path))
            (void)json_object_set_new(paths, routes[i].path, json_object());
        (void)json_object_set_new(json_object_get(paths, routes[i].path), method,
                                  operation_of(&routes[i]));
    }
    return paths;
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
        "{s:s, s:{s:s, s:s, s:s}, s:[{s:[]}, {s:[]}, {}], s:o, s:{s:o, s:{s:o, s:o, s:o}}}",
        "openapi", "3.1.0", "info", "title", "brigd", "description",
        "Runs untrusted code, each request in a fresh jail.", "version", BRIG_VERSION, "security",
        "key", "bearer", "paths", all_paths(), "components", "securitySchemes", schemes, "schemas",
        "Request", request_schema(), "Result", result_schema(), "Error", error_schema());
    if (!root || json_dump_callback(root, append, out, JSON_COMPACT) < 0)
        out->failed = true;
    json_decref(root);
}
