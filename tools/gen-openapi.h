/* SPDX-License-Identifier: MIT */
/* The OpenAPI document of the HTTP interface. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "server/sandbox.h"

struct e2b_route;
struct str;

#define OPENAPI_PORTS_PATH "/sandboxes/{id}/ports/{port}/{path}"

/* The bodies of requests about sandboxes, by the name of their schema. */
struct sandbox_body {
    const char *name;
    enum sandbox_operation operation;
};
extern const struct sandbox_body sandbox_bodies[];
extern const size_t sandbox_body_count;

/* The schemas of schemas.json and those made from tables, by name; for the caller to release. */
json_t *openapi_schemas(void);
/* What a row of E2B's routes belongs to. */
const char *openapi_e2b_service(const struct e2b_route *row);
void openapi_write(struct str *out);
