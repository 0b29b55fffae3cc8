/* SPDX-License-Identifier: MIT */
/* The routes: one table for the server, openapi.json and docs/api.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

struct exchange;

#define ROUTE_METHODS_MAX 64

enum route_flag {
    ROUTE_OPEN = 1 << 0,      /* needs no API key */
    ROUTE_UNCOUNTED = 1 << 1, /* not part of the rate limit */
    ROUTE_BODY = 1 << 2,      /* has a JSON body */
    ROUTE_STREAM = 1 << 3,    /* answers with events */
};

struct route {
    const char *method;
    const char *path; /* "{id}" stands for a UUID */
    unsigned flags;
    /* Called when the request is there as a whole. It makes an answer, or leaves the exchange
     * waiting. */
    void (*handle)(struct exchange *exchange);
    const char *summary;
    const char *doc; /* Markdown, for docs/api.md */
};
extern const struct route routes[];
extern const size_t route_count;

enum route_match { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD, ROUTE_OPTIONS, ROUTE_BAD_ID };

/* HEAD finds GET. *ret_route and the id are filled in for ROUTE_FOUND alone. */
enum route_match route_find(const char *method, const char *path, const struct route **ret_route,
                            char ret_id[EXECUTION_ID_LENGTH + 1]);
/* "GET, HEAD, OPTIONS" of a path; false if there is no such path. */
bool route_methods(const char *path, char ret_methods[ROUTE_METHODS_MAX]);

/* Query parameters, by route path, for the documentation and the check. */
struct route_parameter {
    const char *path, *method, *name, *allowed, *doc;
};
extern const struct route_parameter route_parameters[];
extern const size_t route_parameter_count;
