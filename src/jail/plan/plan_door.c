/* SPDX-License-Identifier: MIT */
/* Plans the network door: routes, the redirection, and its sockets. */
#include "jail/plan/plan_door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/net/door_netlink.h"
#include "jail/plan/plan.h"
#include "net/broker_wire.h"

#define DNS_PORT 53
#define RANGES_MAX 256
/* Maximum of ports to listen on where the kernel does not redirect. */
#define FALLBACK_PORTS_MAX 24

/* The most used ports, for `open` without nf_tables. */
static const uint16_t usual_ports[] = {443,  80,   22,   8080, 8443, 8000, 3000, 5000,
                                       9418, 5432, 3306, 6379, 993,  995,  587,  465,
                                       21,   853,  5222, 1883, 8883, 8888, 9000, 9090};
_Static_assert(ARRAY_LENGTH(usual_ports) <= FALLBACK_PORTS_MAX, "they are all listened on");

struct ports {
    uint16_t items[FALLBACK_PORTS_MAX];
    size_t count;
};

static struct plan_listener *add_listener(struct plan_door *door, enum door_socket kind, int index,
                                          enum plan_listener_when when)
{
    struct plan_listener *listener = &door->listeners[door->listener_count++];
    *listener =
        (struct plan_listener){.kind = kind, .index = index, .when = when, .type = SOCK_STREAM};
    return listener;
}

static void bind_v4(struct plan_listener *listener, uint32_t address, unsigned port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(address)};
    listener->family = AF_INET;
    listener->address_length = sizeof name;
    memcpy(listener->address, &name, sizeof name);
}

static void bind_v6(struct plan_listener *listener, struct in6_addr address, unsigned port)
{
    struct sockaddr_in6 name = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = address};
    listener->family = AF_INET6;
    listener->soft = true;
    listener->address_length = sizeof name;
    memcpy(listener->address, &name, sizeof name);
}

static void add_name_server(struct plan_door *door, uint32_t address)
{
    struct plan_listener *udp = add_listener(door, DOOR_SOCKET_DNS_UDP, 0, PLAN_LISTEN_ALWAYS);
    udp->type = SOCK_DGRAM;
    bind_v4(udp, address, DNS_PORT);
    bind_v4(add_listener(door, DOOR_SOCKET_DNS_TCP, 0, PLAN_LISTEN_ALWAYS), address, DNS_PORT);
}

static uint32_t read_v4(const char *text)
{
    struct in_addr address = {0};
    (void)inet_pton(AF_INET, text, &address);
    return ntohl(address.s_addr);
}

static void add_proxies(struct plan_door *door)
{
    uint32_t address = read_v4(POLICY_PROXY_ADDRESS);
    bind_v4(add_listener(door, DOOR_SOCKET_HTTP_PROXY, 0, PLAN_LISTEN_ALWAYS), address,
            POLICY_PROXY_HTTP_PORT);
    bind_v4(add_listener(door, DOOR_SOCKET_SOCKS, 0, PLAN_LISTEN_ALWAYS), address,
            POLICY_PROXY_SOCKS_PORT);
}

static void add_redirect(struct plan_door *door)
{
    struct in6_addr device = in6addr_any;
    (void)inet_pton(AF_INET6, DOOR_IPV6_PREFIX_TEXT "1", &device);
    bind_v4(add_listener(door, DOOR_SOCKET_REDIRECT, 0, PLAN_LISTEN_REDIRECTED), DOOR_IPV4_DEVICE,
            DOOR_REDIRECT_PORT);
    bind_v6(add_listener(door, DOOR_SOCKET_REDIRECT, 0, PLAN_LISTEN_REDIRECTED), device,
            DOOR_REDIRECT_PORT);
}

static void note_port(struct ports *ports, uint16_t port)
{
    for (size_t i = 0; i < ports->count; i++)
        if (ports->items[i] == port)
            return;
    if (ports->count < FALLBACK_PORTS_MAX && port != 0)
        ports->items[ports->count++] = port;
}

/* Of a range of ports only the ends: it may have thousands. */
static void note_ports(struct ports *ports, const struct net_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        for (size_t k = 0; !rules->items[i].deny && k < rules->items[i].port_count; k++) {
            note_port(ports, rules->items[i].ports[k].first);
            note_port(ports, rules->items[i].ports[k].last);
        }
}

static void add_fallback(struct plan_door *door, const struct net_rules *rules, bool open)
{
    struct ports ports = {0};
    note_ports(&ports, rules);
    for (size_t i = 0; open && i < ARRAY_LENGTH(usual_ports); i++)
        note_port(&ports, usual_ports[i]);
    for (size_t i = 0; i < ports.count; i++) {
        bind_v4(add_listener(door, DOOR_SOCKET_REDIRECT, 0, PLAN_LISTEN_FALLBACK), INADDR_ANY,
                ports.items[i]);
        bind_v6(add_listener(door, DOOR_SOCKET_REDIRECT, 0, PLAN_LISTEN_FALLBACK), in6addr_any,
                ports.items[i]);
    }
}

static void add_injects(struct plan_door *door, const struct policy_net *net)
{
    for (size_t i = 0; i < net->inject_count; i++) {
        const struct policy_inject *inject = &net->inject[i];
        bind_v4(add_listener(door, DOOR_SOCKET_INJECT, (int)i, PLAN_LISTEN_ALWAYS),
                read_v4(POLICY_INJECT_ADDRESS), inject->port);
        if (inject->site)
            bind_v4(add_listener(door, DOOR_SOCKET_INJECT, (int)i, PLAN_LISTEN_ALWAYS),
                    read_v4(inject->site_address), POLICY_SITE_PORT);
    }
}

/* If no file can be mounted at /etc/resolv.conf, resolvers ask 127.0.0.1. */
static bool lacks_resolv_conf(struct plan *plan, const struct brig_policy *policy)
{
    if (policy->view != BRIG_VIEW_HOST && policy->view != BRIG_VIEW_ROOT)
        return false; /* the file is made */
    struct stat info;
    const char *root = policy->view == BRIG_VIEW_ROOT ? policy->root_path : "";
    const char *path = arena_concat(&plan->arena, root, "/etc/resolv.conf");
    return path && lstat(path, &info) < 0;
}

/* Lists the ranges to route: everything, or the addresses that rules allow. */
static size_t list_ranges(const struct brig_policy *policy, struct net_range ranges[RANGES_MAX],
                          bool open)
{
    const struct net_rules *rules = &policy->net.rules;
    size_t count = 0;
    for (size_t i = 0; !open && i < rules->count; i++) {
        if (rules->items[i].deny || rules->items[i].kind != NET_RULE_RANGE)
            continue;
        if (count == RANGES_MAX) {
            open = true; /* too many for routes; the broker checks each connection anyway */
            break;
        }
        ranges[count++] = rules->items[i].range;
    }
    if (!open)
        return count;
    ranges[0] = (struct net_range){.base = {.family = NET_V4}};
    ranges[1] = (struct net_range){.base = {.family = NET_V6}};
    return 2;
}

static const void *keep(struct plan *plan, const struct str *bytes, size_t *ret_length)
{
    *ret_length = bytes->length;
    return bytes->failed ? NULL : arena_copy(&plan->arena, bytes->data, bytes->length);
}

static int write_messages(struct plan *plan, struct plan_door *door,
                          const struct brig_policy *policy, bool open, struct brig_error *err)
{
    struct net_range ranges[RANGES_MAX];
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    autostr struct str queue = {0};
    autostr struct str hold = {0};
    autostr struct str hold_target = {0};
    door_write_routes(&routes, ranges, list_ranges(policy, ranges, open));
    door_write_redirect(&redirect);
    door_write_queue(&queue);
    door_write_hold(&hold, false);
    door_write_hold(&hold_target, true);
    door->routes = keep(plan, &routes, &door->routes_length);
    door->redirect = keep(plan, &redirect, &door->redirect_length);
    door->queue = keep(plan, &queue, &door->queue_length);
    door->holds[0] = keep(plan, &hold, &door->holds_length[0]);
    door->holds[1] = keep(plan, &hold_target, &door->holds_length[1]);
    bool kept = door->routes && door->redirect && door->queue && door->holds[0] && door->holds[1];
    return kept ? 0 : brig_fail_nomem(err);
}

_Static_assert(2 * 2 + 2 + 2 + 2 * FALLBACK_PORTS_MAX + POLICY_INJECT_MAX <=
                   PLAN_DOOR_LISTENERS_MAX,
               "all of them fit");

int plan_add_door(struct plan *plan, const struct brig_policy *policy, struct brig_error *err)
{
    bool open = policy->network == BRIG_NET_OPEN || net_rules_is_open(&policy->net.rules);
    struct plan_door *door = arena_alloc(&plan->arena, sizeof *door);
    if (door)
        door->listeners =
            arena_alloc(&plan->arena, PLAN_DOOR_LISTENERS_MAX * sizeof *door->listeners);
    if (!door || !door->listeners)
        return brig_fail_nomem(err);
    add_name_server(door, DOOR_IPV4_NAME_SERVER);
    if (lacks_resolv_conf(plan, policy))
        add_name_server(door, INADDR_LOOPBACK);
    add_redirect(door);
    add_proxies(door);
    add_injects(door, &policy->net);
    add_fallback(door, &policy->net.rules, open || policy->net.ask);
    plan->door = door;
    return write_messages(plan, door, policy, open, err);
}
