/* SPDX-License-Identifier: MIT */
/* The network door: that the kernel takes what is written to it and does what is meant, which sockets
 * are planned, and what is made of a broker's events. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/job/result.h"
#include "jail/net/door_events.h"
#include "jail/net/door_netlink.h"
#include "jail/plan/plan.h"
#include "net/broker_wire.h"
#include "tap.h"

#define ORIGINAL_DESTINATION 80 /* SO_ORIGINAL_DST and its twin of IPv6 */

/* ---- the kernel ---- */

/* The first error about a subject, 0 for none, or -1 if it could not be said at all. */
static int tell_kernel(int protocol, const struct str *bytes, unsigned subject)
{
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0 || send(fd, bytes->data, bytes->length, 0) < 0)
        return -1;
    char buffer[8192] __attribute__((aligned(8)));
    int error = 0;
    for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
        for (struct nlmsghdr *head = (void *)buffer; NLMSG_OK(head, (size_t)got);
             head = NLMSG_NEXT(head, got)) {
            const struct nlmsgerr *answer = NLMSG_DATA(head);
            if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_seq == subject && error == 0)
                error = -answer->error;
        }
    return error;
}

static int listen_v4(const char *address, unsigned port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)inet_pton(AF_INET, address, &name.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (void *)&name, sizeof name) < 0 || listen(fd, 8) < 0)
        return -1;
    return fd;
}

static int listen_v6(const char *address, unsigned port)
{
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    (void)inet_pton(AF_INET6, address, &name.sin6_addr);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (void *)&name, sizeof name) < 0 || listen(fd, 8) < 0)
        return -1;
    return fd;
}

/* The errno of a connection, or 0. */
static int connect_to(const char *address, unsigned port, int type)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;
    (void)inet_pton(AF_INET, address, &v4.sin_addr);
    autoclose int fd = socket(is_v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0);
    const void *name = is_v6 ? (const void *)&v6 : (const void *)&v4;
    return connect(fd, name, is_v6 ? sizeof v6 : sizeof v4) < 0 ? errno : 0;
}

/* How a socket that goes there would send. */
static void congestion_to(const char *address, char text[static 32])
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
    socklen_t length = 31;
    (void)inet_pton(AF_INET, address, &to.sin_addr);
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(text, 0, 32);
    if (connect(fd, (void *)&to, sizeof to) < 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &length) < 0)
        (void)snprintf(text, 32, "errno %d", errno);
}

/* Where the connection that comes next was meant to go. */
static void meant_for(int listener, bool v6, char text[static 64])
{
    struct sockaddr_storage meant = {0};
    socklen_t length = sizeof meant;
    char address[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *in = (const void *)&meant;
    const struct sockaddr_in6 *in6 = (const void *)&meant;
    autoclose int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)snprintf(text, 64, "nowhere");
    if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DESTINATION, &meant, &length) < 0)
        return;
    (void)inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? (const void *)&in6->sin6_addr : &in->sin_addr,
                    address, sizeof address);
    (void)snprintf(text, 64, "%s %u", address, ntohs(v6 ? in6->sin6_port : in->sin_port));
}

static void check_open(void)
{
    const struct net_range all[] = {{.base = {.family = NET_V4}}, {.base = {.family = NET_V6}}};
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    char text[64];
    door_write_routes(&routes, all, ARRAY_LENGTH(all));
    door_write_redirect(&redirect);
    tap_is_int(tell_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_DEVICE), 0, "loopback is up");
    tap_is_int(tell_kernel(NETLINK_NETFILTER, &redirect, DOOR_ABOUT_REDIRECT), 0,
               "the redirection is taken");
    int v4 = listen_v4("198.18.0.1", DOOR_REDIRECT_PORT);
    int v6 = listen_v6("fd62:7269:6700::1", DOOR_REDIRECT_PORT);
    tap_ok(v4 >= 0 && v6 >= 0, "the door's addresses can be listened on at once");
    static const struct {
        const char *address;
        unsigned port;
    } rows[] = {{"198.18.0.16", 443}, {"198.19.255.254", 22},      {"1.2.3.4", 80},
                {"10.0.0.1", 5432},   {"fd62:7269:6700::10", 443}, {"2001:4860::8888", 65535}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char wanted[64];
        bool is_v6 = strchr(rows[i].address, ':') != NULL;
        (void)snprintf(wanted, sizeof wanted, "%s %u", rows[i].address, rows[i].port);
        tap_is_int(connect_to(rows[i].address, rows[i].port, SOCK_STREAM), 0, "%s is connected to",
                   rows[i].address);
        meant_for(is_v6 ? v6 : v4, is_v6, text);
        tap_is_str(text, wanted, "through the door, which knows what was meant");
    }
    int packets = tell_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_PACKETS);
    if (packets == EINVAL)
        tap_skip("before 5.19", "packets are larger than 64 KiB");
    else
        tap_is_int(packets, 0, "packets are larger than 64 KiB");
    congestion_to("198.18.0.16", text);
    tap_is_str(text, DOOR_CONGESTION, "what goes to a name is sent without timers");
    congestion_to("1.2.3.4", text);
    tap_is_str(text, DOOR_CONGESTION, "to an address, too");
    tap_is_int(connect_to("127.0.0.1", 443, SOCK_STREAM), ECONNREFUSED,
               "loopback is the jail's own");
    tap_is_int(connect_to("::1", 443, SOCK_STREAM), ECONNREFUSED, "of IPv6 too");
    tap_is_int(connect_to("198.18.0.2", 53, SOCK_STREAM), ECONNREFUSED,
               "the name server is not redirected");
    tap_is_int(connect_to("8.8.8.8", 53, SOCK_DGRAM), ENETUNREACH, "UDP has no route");
    tap_is_int(connect_to("2001:4860::8888", 53, SOCK_DGRAM), ENETUNREACH, "in IPv6 neither");
    tap_is_int(connect_to("198.18.0.2", 53, SOCK_DGRAM), 0, "but to the name server it has");
    autoclose int own = listen_v4("127.0.0.1", DOOR_REDIRECT_PORT);
    tap_ok(own >= 0, "every port of 127.0.0.1 can be used");
    (void)close(v4);
    (void)close(v6);
}

static void check_allow(void)
{
    const struct net_range one[] = {
        {.base = {.family = NET_V4, .bytes = {10, 1, 2, 0}}, .prefix = 24}};
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    char text[64];
    door_write_routes(&routes, one, ARRAY_LENGTH(one));
    door_write_redirect(&redirect);
    tap_is_int(tell_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_ADDRESSES), 0, "a range has a route");
    tap_is_int(tell_kernel(NETLINK_NETFILTER, &redirect, DOOR_ABOUT_REDIRECT), 0,
               "and the redirection is taken");
    autoclose int door = listen_v4("198.18.0.1", DOOR_REDIRECT_PORT);
    tap_is_int(connect_to("10.1.2.3", 5432, SOCK_STREAM), 0, "what is in the range is reached");
    meant_for(door, false, text);
    tap_is_str(text, "10.1.2.3 5432", "through the door");
    tap_is_int(connect_to("10.1.3.3", 5432, SOCK_STREAM), ENETUNREACH, "another is not, at once");
    tap_is_int(connect_to("1.2.3.4", 443, SOCK_STREAM), ENETUNREACH, "nor anything else");
    tap_is_int(connect_to("2001:4860::8888", 443, SOCK_STREAM), ENETUNREACH, "in IPv6 neither");
    tap_is_int(connect_to("198.18.0.16", 443, SOCK_STREAM), 0, "the address of a name is");
    tap_is_int(connect_to("fd62:7269:6700::10", 443, SOCK_STREAM), ECONNREFUSED,
               "in IPv6 too, where nobody listens now");
}

/* In a network namespace of its own, and that in a user namespace, as a user has it. */
static void in_namespace(void (*check)(void), int namespaces, const char *what)
{
    if (unshare(namespaces) < 0)
        tap_skip("no namespaces", "%s", what);
    else
        check();
}

/* ---- the plan ---- */

static size_t count_of(const struct plan_door *door, int kind, enum plan_listener_when when)
{
    size_t count = 0;
    for (size_t i = 0; i < door->listener_count; i++)
        count += door->listeners[i].kind == kind && door->listeners[i].when == when;
    return count;
}

static void test_plan(void)
{
    struct brig_error err = {0};
    struct plan plan = PLAN_INIT;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    brig_policy_network(policy, BRIG_NET_ALLOW, &err);
    brig_policy_allow(policy, "good.example:22,8000-8999", &err);
    tap_is_int(plan_add_door(&plan, policy, &err), 0, "a door is planned");
    const struct plan_door *door = plan.door;
    tap_is_int((long)count_of(door, DOOR_SOCKET_DNS_UDP, PLAN_LISTEN_ALWAYS), 1, "a name server");
    tap_is_int((long)count_of(door, DOOR_SOCKET_DNS_TCP, PLAN_LISTEN_ALWAYS), 1, "by TCP too");
    tap_is_int((long)count_of(door, DOOR_SOCKET_REDIRECT, PLAN_LISTEN_REDIRECTED), 2,
               "one target of the redirection for each family");
    tap_is_int((long)count_of(door, DOOR_SOCKET_REDIRECT, PLAN_LISTEN_FALLBACK), 6,
               "without it, the ports that are allowed, and of a range its ends");
    tap_is_int((long)count_of(door, DOOR_SOCKET_INJECT, PLAN_LISTEN_ALWAYS), 0, "no credential");
    brig_policy_network(policy, BRIG_NET_OPEN, &err);
    struct brig_inject inject = {
        .size = sizeof(struct brig_inject), .name = "a.example", .header = "h", .value = "v"};
    for (int i = 0; i < POLICY_INJECT_MAX; i++)
        (void)brig_policy_inject(policy, &inject, &err);
    for (int i = 0; i < 100; i++) {
        char rule[32];
        (void)snprintf(rule, sizeof rule, "b.example:%d", 1000 + i);
        (void)brig_policy_allow(policy, rule, &err);
    }
    tap_is_int(plan_add_door(&plan, policy, &err), 0, "the largest door is planned");
    tap_ok(plan.door->listener_count <= PLAN_DOOR_LISTENERS_MAX, "within its room");
    tap_is_int((long)count_of(plan.door, DOOR_SOCKET_INJECT, PLAN_LISTEN_ALWAYS), POLICY_INJECT_MAX,
               "a socket for each credential");
    brig_policy_free(policy);
    plan_done(&plan);
}

/* ---- events ---- */

static struct door_event an_event(uint32_t verdict)
{
    struct door_event event = {.head = {.version = DOOR_WIRE_VERSION, .type = DOOR_EVENT},
                               .verdict = verdict,
                               .because = DOOR_BECAUSE_RULE,
                               .via = DOOR_SOCKET_REDIRECT,
                               .port = 443,
                               .time_ns = 1700000000123456789,
                               .connection = 1,
                               .bytes_in = 10,
                               .bytes_out = 20};
    (void)snprintf(event.name, sizeof event.name, "good.example");
    return event;
}

static void test_bad_events(void)
{
    struct door_events events = {0};
    struct door_event event = an_event(DOOR_ALLOWED);
    tap_ok(!door_events_add(&events, &event, sizeof event - 1), "one that is too short is none");
    event.head.version++;
    tap_ok(!door_events_add(&events, &event, sizeof event), "nor one of another version");
    event = an_event(DOOR_WAITING + 1);
    tap_ok(!door_events_add(&events, &event, sizeof event), "nor one with another verdict");
    event = an_event(DOOR_ALLOWED);
    event.because = DOOR_BECAUSE_COUNT;
    tap_ok(!door_events_add(&events, &event, sizeof event), "nor one with another reason");
    event = an_event(DOOR_ALLOWED);
    event.via = DOOR_SOCKET_COUNT;
    tap_ok(!door_events_add(&events, &event, sizeof event), "nor one from another socket");
    event = an_event(DOOR_ALLOWED);
    event.port = 65536;
    tap_ok(!door_events_add(&events, &event, sizeof event), "nor one with no port");
    tap_is_int((long)events.count, 0, "none was kept");
    event = an_event(DOOR_DENIED);
    memset(event.name, '\033', sizeof event.name);
    memset(event.detail, 'd', sizeof event.detail);
    tap_ok(door_events_add(&events, &event, sizeof event), "texts without an end are cut");
    struct brig_net_event kept;
    tap_ok(door_events_take(&events, &kept), "and kept");
    tap_ok(strlen(kept.name) == sizeof kept.name - 1 &&
               strlen(kept.detail) == sizeof kept.detail - 1,
           "with their lengths");
    tap_is_int(kept.name[0], '?', "and nothing that moves a cursor");
    door_events_done(&events);
}

static void test_ring(void)
{
    struct door_events events = {0};
    const unsigned total = BRIG_NET_EVENTS_MAX + 10;
    struct brig_net_event event;
    for (unsigned i = 0; i < total; i++) {
        struct door_event one = an_event(i % 2 ? DOOR_ENDED : DOOR_ALLOWED);
        one.connection = i + 1;
        (void)door_events_add(&events, &one, sizeof one);
        if (i == 4)
            while (door_events_take(&events, &event))
                ;
    }
    tap_ok(door_events_take(&events, &event), "there are some to take");
    tap_is_int((long)event.connection, 11, "what was pushed out is gone");
    struct brig_net_result result;
    door_events_take_all(&events, &result);
    tap_is_int((long)result.count, BRIG_NET_EVENTS_MAX, "the last are kept");
    tap_is_int((long)result.totals.dropped, 10, "the others counted");
    tap_ok(result.events[0].connection == 11 &&
               result.events[BRIG_NET_EVENTS_MAX - 1].connection == total,
           "in their order");
    tap_ok(result.totals.allowed == total / 2 && result.totals.bytes_in == (uint64_t)total / 2 * 10,
           "and the sums are those of all");
    free(result.events);
}

static void test_json(void)
{
    struct door_events events = {0};
    struct door_event ended = an_event(DOOR_ENDED), query = an_event(DOOR_DENIED);
    query.port = 0;
    query.connection = 0;
    query.because = DOOR_BECAUSE_NO_RULE;
    query.via = DOOR_SOCKET_DNS_UDP;
    (void)snprintf(query.name, sizeof query.name, "evil\".example");
    (void)door_events_add(&events, &ended, sizeof ended);
    (void)door_events_add(&events, &query, sizeof query);
    struct brig_net_event event;
    autofree char *first = NULL;
    autofree char *second = NULL;
    (void)door_events_take(&events, &event);
    (void)brig_net_event_json(&event, &first, NULL);
    (void)door_events_take(&events, &event);
    (void)brig_net_event_json(&event, &second, NULL);
    tap_is_str(
        first,
        "{\"time\":\"2023-11-14T22:13:20.123Z\",\"verdict\":\"ended\",\"name\":"
        "\"good.example\",\"address\":null,\"port\":443,\"via\":\"tcp\",\"because\":\"rule\","
        "\"rule\":null,\"detail\":null,\"connection\":1,\"bytes_in\":10,\"bytes_out\":20,"
        "\"duration_ms\":0}\n",
        "an end in JSON");
    tap_is_str(second,
               "{\"time\":\"2023-11-14T22:13:20.123Z\",\"verdict\":\"denied\",\"name\":"
               "\"evil\\\".example\",\"address\":null,\"port\":null,\"via\":\"dns\",\"because\":"
               "\"no-rule\",\"rule\":null,\"detail\":null}\n",
               "a refused query in JSON");
    door_events_done(&events);
}

int main(void)
{
    test_plan();
    test_bad_events();
    test_ring();
    test_json();
    in_namespace(check_open, CLONE_NEWUSER | CLONE_NEWNET, "everything through the door");
    in_namespace(check_allow, CLONE_NEWNET, "only what is allowed through the door");
    return tap_done();
}
