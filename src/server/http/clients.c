/* SPDX-License-Identifier: MIT */
/* Who asks. */
#include "server/http/clients.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

int clients_init(struct clients *clients, const struct config_list *proxies, struct brig_error *err)
{
    *clients = (struct clients){0};
    for (size_t i = 0; i < proxies->count; i++) {
        const char *text = proxies->items[i];
        if (str_equal(text, "unix")) {
            clients->trusts_unix = true;
            continue;
        }
        int result =
            net_range_parse(text, strlen(text), &clients->proxies[clients->proxy_count], err);
        if (result < 0)
            return brig_wrap(err, result, "security.trusted_proxies");
        clients->proxy_count++;
    }
    return 0;
}

static bool is_trusted(const struct clients *clients, const struct net_address *address)
{
    for (size_t i = 0; i < clients->proxy_count; i++)
        if (net_range_contains(&clients->proxies[i], address))
            return true;
    return false;
}

static struct client client_of(const struct net_address *address)
{
    struct client client = {.address = *address};
    net_address_print(address, client.text);
    return client;
}

static struct client client_at(const struct sockaddr *peer)
{
    struct net_address address;
    if (peer && peer->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)peer;
        address = net_address_v4((const uint8_t *)&v4->sin_addr);
        return client_of(&address);
    }
    if (peer && peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)peer;
        address = net_address_v6(v6->sin6_addr.s6_addr);
        return client_of(&address);
    }
    struct client client = {.address = {.family = NET_V6}};
    (void)snprintf(client.text, sizeof client.text, "unix");
    return client;
}

/* The last part of the list, blanks taken off; *length is cut to what stands before it. */
static const char *last_part(const char *list, size_t *length, size_t *ret_part_length)
{
    size_t end = *length, start = end;
    while (start > 0 && list[start - 1] != ',')
        start--;
    *length = start > 0 ? start - 1 : 0;
    while (start < end && (list[start] == ' ' || list[start] == '\t'))
        start++;
    while (end > start && (list[end - 1] == ' ' || list[end - 1] == '\t'))
        end--;
    *ret_part_length = end - start;
    return list + start;
}

struct client clients_find(const struct clients *clients, const struct sockaddr *peer,
                           const char *forwarded)
{
    struct client client = client_at(peer);
    bool local = !peer || (peer->sa_family != AF_INET && peer->sa_family != AF_INET6);
    bool trusted = local ? clients->trusts_unix : is_trusted(clients, &client.address);
    size_t left = forwarded ? strlen(forwarded) : 0;
    while (trusted && left > 0) {
        size_t length;
        struct net_address address;
        const char *part = last_part(forwarded, &left, &length);
        if (!net_address_read(part, length, &address))
            break;
        client = client_of(&address);
        trusted = is_trusted(clients, &address);
    }
    return client;
}
