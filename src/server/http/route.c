/* SPDX-License-Identifier: MIT */
/* Finding the route of a request. Pure. */
#include "server/http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define ID "{id}"

/* Whether the path has the form of the pattern; *ret_id is the part that stands for {id}, or NULL. */
static bool has_form(const char *pattern, const char *path, const char **ret_id)
{
    const char *id = strstr(pattern, ID);
    *ret_id = NULL;
    if (!id)
        return strcmp(pattern, path) == 0;
    size_t prefix = (size_t)(id - pattern);
    if (strncmp(pattern, path, prefix) != 0 || !path[prefix] || strchr(path + prefix, '/'))
        return false;
    *ret_id = path + prefix;
    return true;
}

static bool has_method(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

enum route_match route_find(const char *method, const char *path, const struct route **ret_route,
                            char ret_id[EXECUTION_ID_LENGTH + 1])
{
    bool known = false;
    for (size_t i = 0; i < route_count; i++) {
        const char *id;
        if (!has_form(routes[i].path, path, &id))
            continue;
        known = true;
        if (!has_method(&routes[i], method))
            continue;
        if (id && !execution_id_is_valid(id))
            return ROUTE_BAD_ID;
        *ret_route = &routes[i];
        (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", id ? id : "");
        return ROUTE_FOUND;
    }
    if (!known)
        return ROUTE_NO_PATH;
    return strcmp(method, "OPTIONS") == 0 ? ROUTE_OPTIONS : ROUTE_NO_METHOD;
}

bool route_methods(const char *path, char ret_methods[ROUTE_METHODS_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < route_count; i++) {
        const char *id;
        if (!has_form(routes[i].path, path, &id))
            continue;
        bool get = strcmp(routes[i].method, "GET") == 0;
        used += (size_t)snprintf(ret_methods + used, ROUTE_METHODS_MAX - used, "%s, %s",
                                 routes[i].method, get ? "HEAD, " : "");
    }
    if (used == 0)
        return false;
    (void)snprintf(ret_methods + used, ROUTE_METHODS_MAX - used, "OPTIONS");
    return true;
}
