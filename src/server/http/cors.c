/* SPDX-License-Identifier: MIT */
/* Web pages of other origins. */
#include "server/http/cors.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "policy/net_address.h"
#include "server/config.h"
#include "server/http/http.h"
#include "server/http/route.h"

static bool is_allowed(const struct config_list *origins, const char *origin)
{
    for (size_t i = 0; i < origins->count; i++)
        if (str_equal(origins->items[i], "*") || str_equal(origins->items[i], origin))
            return true;
    return false;
}

void cors_add_headers(const struct exchange *exchange, struct MHD_Response *response)
{
    const struct config_list *origins = &exchange->http->config->server.cors_origins;
    char methods[ROUTE_METHODS_MAX];
    if (origins->count == 0)
        return;
    const char *origin =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Origin");
    (void)MHD_add_response_header(response, "Vary", "Origin");
    if (!origin || !is_allowed(origins, origin))
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                  "X-Request-ID, X-Execution-ID, Retry-After");
    if (strcmp(exchange->method, MHD_HTTP_METHOD_OPTIONS) != 0 ||
        !route_methods(exchange->path, methods))
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Methods", methods);
    (void)MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                  "Authorization, Content-Type, X-API-Key, X-Request-ID");
    (void)MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

/* What stands before the port: "[::1]:8080", "127.0.0.1:8080", "localhost". */
static size_t name_length(const char *host)
{
    if (*host != '[')
        return strcspn(host, ":");
    const char *end = strchr(host, ']');
    return end ? (size_t)(end - host) + 1 : 0;
}

bool cors_host_is_own(const char *host)
{
    static const char local[] = "localhost";
    struct net_address address;
    size_t length = name_length(host);
    size_t local_length = sizeof local - 1;
    if (length > 2 && host[0] == '[')
        return net_address_read(host + 1, length - 2, &address);
    if (net_address_read(host, length, &address))
        return true;
    if (length < local_length ||
        strncasecmp(host + length - local_length, local, local_length) != 0)
        return false;
    return length == local_length || host[length - local_length - 1] == '.';
}
