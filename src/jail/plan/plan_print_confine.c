/* SPDX-License-Identifier: MIT */
/* Landlock, the syscall filter, the limits and the network of a plan as text. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/confine/landlock.h"
#include "jail/confine/seccomp.h"
#include "jail/plan/plan_print.h"
#include "net/broker_wire.h"
#include "policy/net_rules.h"

/* ---- Landlock ---- */

static const char *const grant_names[] = {[LANDLOCK_GRANT_READ] = "read",
                                          [LANDLOCK_GRANT_WRITE] = "write",
                                          [LANDLOCK_GRANT_DEVICE] = "device"};

static void append_names(struct str *out, uint64_t bits, const char *(*name_of)(unsigned))
{
    for (unsigned bit = 0; bits != 0; bit++, bits >>= 1)
        if (bits & 1)
            str_appendf(out, " %s", name_of(bit) ? name_of(bit) : "?");
}

/* As kinds of grant, which the head of the section defines; else as names of rights. */
static void append_rights(struct str *out, uint64_t access, int abi)
{
    for (size_t i = 0; i < ARRAY_LENGTH(grant_names); i++)
        for (int directory = 1; directory >= 0; directory--)
            if (access == landlock_rights(abi, (enum landlock_grant)i, directory)) {
                str_appendf(out, " %s%s", grant_names[i], directory ? "" : ", of a file");
                return;
            }
    append_names(out, access, landlock_fs_name);
}

static int compare_rules(const void *left, const void *right)
{
    return strcmp(((const struct plan_rule *)left)->path, ((const struct plan_rule *)right)->path);
}

static void print_rules(struct str *out, const struct plan *plan, int abi)
{
    size_t count = plan->rule_count;
    autofree struct plan_rule *rules = calloc(count + 1, sizeof *rules);
    if (!rules) {
        out->failed = true;
        return;
    }
    memcpy(rules, plan->rules, count * sizeof *rules);
    qsort(rules, count, sizeof *rules, compare_rules);
    for (size_t i = 0; i < count; i++) {
        uint64_t access = rules[i].access; /* several rules for one path add up */
        while (i + 1 < count && strcmp(rules[i].path, rules[i + 1].path) == 0)
            access |= rules[++i].access;
        str_appendf(out, "  %s:", rules[i].path);
        append_rights(out, access, abi);
        str_append_char(out, '\n');
    }
}

void plan_print_landlock(struct str *out, const struct plan *plan, int abi)
{
    str_append(out, "landlock:\n");
    if (!plan->landlock) {
        str_append(out, "  none\n");
        return;
    }
    const struct landlock_attr *attr = &plan->landlock_attr;
    str_append(out, "  refused elsewhere");
    append_names(out, attr->handled_access_fs, landlock_fs_name);
    str_append(out, attr->handled_access_fs ? "\n" : " nothing\n");
    if (attr->handled_access_net) {
        str_append(out, "  refused of the network");
        append_names(out, attr->handled_access_net, landlock_net_name);
        str_append_char(out, '\n');
    }
    if (attr->scoped) {
        str_append(out, "  only within the jail");
        append_names(out, attr->scoped, landlock_scope_name);
        str_append_char(out, '\n');
    }
    for (size_t i = 0; attr->handled_access_fs && i < ARRAY_LENGTH(grant_names); i++) {
        str_appendf(out, "  %s means", grant_names[i]);
        append_names(out, landlock_rights(abi, (enum landlock_grant)i, true), landlock_fs_name);
        str_append_char(out, '\n');
    }
    print_rules(out, plan, abi);
}

/* ---- system calls ---- */

/* The verdicts of the filters. */
static const int answers[] = {0,      EPERM,  ENOSYS,          EACCES,
                              EINVAL, ENOTTY, EPROTONOSUPPORT, EAFNOSUPPORT};

static const char *error_name(int error)
{
    const char *name = error == 0 ? "allowed" : strerrorname_np(error);
    return name ? name : "another error";
}

/* Calls whose verdict depends on their arguments. The numbers are from the kernel's headers. */
static const struct {
    const char *call, *what;
    uint64_t args[6];
} probes[] = {
    {"clone", "CLONE_NEWUSER", {0x10000000}},
    {"clone", "CLONE_PARENT", {0x8000}},
    {"clone", "threads", {0x3d0f00}},
    {"fchmod", "setgid", {3, 02755}},
    {"fchmod", "setuid", {3, 04755}},
    {"fchmodat", "setuid", {3, 0, 04755}},
    {"fcntl", "F_SETLEASE", {3, 1024, 0}},
    {"fcntl", "F_SETFL", {3, 4, 0}},
    {"ioctl", "TCGETS", {0, 0x5401}},
    {"ioctl", "TIOCSTI", {0, 0x5412}},
    {"ioctl", "TIOCLINUX", {0, 0x541c}},
    {"ioctl", "TIOCSETD", {0, 0x5423}},
    {"ioctl", "FIONREAD", {0, 0x541b}},
    {"ioctl", "FICLONE", {3, 0x40049409, 4}},
    {"ioctl", "KVM_CREATE_VM", {3, 0xae01}},
    {"mknodat", "block device", {3, 0, 0060644}},
    {"mknodat", "character device", {3, 0, 0020644}},
    {"mknodat", "fifo", {3, 0, 0010644}},
    {"openat", "O_CREAT setuid", {3, 0, 0101, 04755}},
    {"openat", "O_RDONLY", {3, 0, 0, 0}},
    {"personality", "ADDR_NO_RANDOMIZE", {0x0040000}},
    {"personality", "query", {0xffffffff}},
    {"personality", "READ_IMPLIES_EXEC", {0x0400000}},
    {"prctl", "PR_SET_SECCOMP filter", {22, 2}},
    {"prlimit64", "of pid 1", {1, 7}},
    {"prlimit64", "of itself", {0, 7}},
    {"seccomp", "filter", {1, 0}},
    {"seccomp", "filter with listener", {1, 8}},
    {"setpriority", "of a user", {2, 0, 10}},
    {"setpriority", "of itself", {0, 0, 10}},
    {"socket", "AF_INET datagram", {2, 2, 0}},
    {"socket", "AF_INET raw", {2, 3, 1}},
    {"socket", "AF_INET stream", {2, 1, 0}},
    {"socket", "AF_INET6 stream", {10, 1, 0}},
    {"socket", "AF_NETLINK audit", {16, 3, 9}},
    {"socket", "AF_NETLINK route", {16, 3, 0}},
    {"socket", "AF_PACKET", {17, 3, 0}},
    {"socket", "AF_UNIX", {1, 1, 0}},
    {"socket", "AF_VSOCK", {40, 1, 0}},
    {"socketpair", "AF_TIPC", {30, 5, 0}},
    {"socketpair", "AF_UNIX", {1, 1, 0}},
    {"unshare", "CLONE_FILES", {0x400}},
    {"unshare", "CLONE_NEWNS", {0x20000}},
};

/* With zero arguments most calls request nothing special. */
static void print_calls(struct str *out, const struct sock_fprog *filter, int answer)
{
    static const uint64_t zero[6];
    bool any = false;
    int number;
    for (size_t i = 0; (number = seccomp_common_number(i)) >= 0; i++) {
        if (seccomp_verdict(filter, number, zero) != answer)
            continue;
        if (!any)
            str_appendf(out, "  %s:", error_name(answer));
        str_appendf(out, " %s", seccomp_name(number));
        any = true;
    }
    if (any)
        str_append_char(out, '\n');
}

void plan_print_filter(struct str *out, const struct plan *plan, const struct brig_policy *policy)
{
    str_append(out, "system calls:\n");
    if (!plan->seccomp) {
        str_append(out, "  no filter\n");
        return;
    }
    str_appendf(out, "  profile %s\n", policy_word(POLICY_SECCOMP, policy->seccomp));
    for (size_t i = 0; i < ARRAY_LENGTH(answers); i++)
        print_calls(out, plan->seccomp, answers[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(probes); i++)
        str_appendf(out, "  %s %s: %s\n", probes[i].call, probes[i].what,
                    error_name(seccomp_verdict(plan->seccomp, seccomp_number(probes[i].call),
                                               probes[i].args)));
}

/* ---- limits ---- */

static const char *rlimit_name(int resource)
{
    static const struct {
        int resource;
        const char *name;
    } names[] = {{RLIMIT_AS, "address space"}, {RLIMIT_CORE, "core"},
                 {RLIMIT_CPU, "cpu seconds"},  {RLIMIT_DATA, "data"},
                 {RLIMIT_FSIZE, "file size"},  {RLIMIT_NOFILE, "open files"},
                 {RLIMIT_NPROC, "processes"},  {RLIMIT_STACK, "stack"}};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (names[i].resource == resource)
            return names[i].name;
    return "?";
}

static int compare_rlimits(const void *left, const void *right)
{
    return strcmp(rlimit_name(((const struct plan_rlimit *)left)->resource),
                  rlimit_name(((const struct plan_rlimit *)right)->resource));
}

void plan_print_limits(struct str *out, const struct plan *plan, const struct brig_policy *policy,
                       unsigned grouped)
{
    static const char *const resources[] = {"memory", "cpu", "pids", "io", "time"};
    str_append(out, "limits:\n");
    for (int limit = 0; limit < BRIG_LIMIT_COUNT_; limit++)
        if (policy->limits[limit])
            str_appendf(out, "  %s %llu\n", policy_word(POLICY_LIMIT, (enum brig_limit)limit),
                        (unsigned long long)policy->limits[limit]);
    str_append(out, "  by a cgroup:");
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++)
        if (grouped & 1U << i)
            str_appendf(out, " %s", resources[i]);
    str_append(out, grouped ? "\n" : " none\n");
    struct plan_rlimit rlimits[PLAN_RLIMIT_MAX];
    memcpy(rlimits, plan->rlimits, sizeof rlimits);
    qsort(rlimits, plan->rlimit_count, sizeof *rlimits, compare_rlimits);
    for (size_t i = 0; i < plan->rlimit_count; i++)
        str_appendf(out, "  of each process: %s %llu, hard %llu\n",
                    rlimit_name(rlimits[i].resource), (unsigned long long)rlimits[i].limit.rlim_cur,
                    (unsigned long long)rlimits[i].limit.rlim_max);
}

/* ---- the network ---- */

static unsigned port_of(const struct plan_listener *listener)
{
    uint16_t port; /* at the same offset in both kinds of address */
    memcpy(&port, listener->address + offsetof(struct sockaddr_in, sin_port), sizeof port);
    return ntohs(port);
}

static void append_address(struct str *out, const struct plan_listener *listener)
{
    char text[INET6_ADDRSTRLEN] = "?";
    bool v4 = listener->family == AF_INET;
    size_t at =
        v4 ? offsetof(struct sockaddr_in, sin_addr) : offsetof(struct sockaddr_in6, sin6_addr);
    (void)inet_ntop(listener->family, listener->address + at, text, sizeof text);
    str_appendf(out, v4 ? "%s" : "[%s]", text);
}

/* Returns whether two listeners differ only in their port. */
static bool is_alike(const struct plan_listener *a, const struct plan_listener *b)
{
    struct plan_listener other = *b;
    size_t at = offsetof(struct sockaddr_in, sin_port);
    memcpy(other.address + at, a->address + at, sizeof(uint16_t));
    return a->kind == b->kind && a->index == b->index && a->when == b->when &&
           a->family == b->family && memcmp(a->address, other.address, sizeof other.address) == 0;
}

/* The first listener of a kind is printed with the ports of all. */
static void print_listener(struct str *out, const struct plan_door *door, size_t index)
{
    static const char *const kinds[DOOR_SOCKET_COUNT] = {
        [DOOR_SOCKET_DNS_UDP] = "name server",    [DOOR_SOCKET_DNS_TCP] = "name server, TCP",
        [DOOR_SOCKET_REDIRECT] = "connections",   [DOOR_SOCKET_HTTP_PROXY] = "HTTP proxy",
        [DOOR_SOCKET_SOCKS] = "SOCKS proxy",      [DOOR_SOCKET_INJECT] = "credential",
        [DOOR_SOCKET_QUEUE] = "held connections", [DOOR_SOCKET_PUBLISH] = "published service",
        [DOOR_SOCKET_CONNECTOR] = "connector"};
    static const char *const when[] = {[PLAN_LISTEN_ALWAYS] = "",
                                       [PLAN_LISTEN_REDIRECTED] =
                                           ", where all ports are redirected",
                                       [PLAN_LISTEN_FALLBACK] = ", where they are not"};
    const struct plan_listener *listener = &door->listeners[index];
    for (size_t i = 0; i < index; i++)
        if (is_alike(&door->listeners[i], listener))
            return;
    str_appendf(out, "  listens for %s", kinds[listener->kind]);
    if (listener->kind == DOOR_SOCKET_INJECT)
        str_appendf(out, " %d", listener->index);
    str_append(out, " at ");
    append_address(out, listener);
    str_append(out, " port");
    for (unsigned port = 0; port != UINT16_MAX + 1U;) { /* sorted: find the next larger port */
        unsigned next = UINT16_MAX + 1U;
        for (size_t i = index; i < door->listener_count; i++) {
            unsigned other = port_of(&door->listeners[i]);
            if (is_alike(&door->listeners[i], listener) && other > port && other < next)
                next = other;
        }
        if (next <= UINT16_MAX)
            str_appendf(out, " %u", next);
        port = next;
    }
    str_appendf(out, "%s\n", when[listener->when]);
}

/* Prints the address or destination of an rtnetlink message with a family header of `header`
 * bytes. */
static void print_route(struct str *out, const struct nlmsghdr *message, size_t header,
                        const char *what, int family, unsigned prefix, unsigned wanted)
{
    char text[INET6_ADDRSTRLEN] = "everything";
    const char *data = (const char *)message;
    size_t at = NLMSG_ALIGN(sizeof *message) + NLMSG_ALIGN(header);
    while (at + sizeof(struct rtattr) <= message->nlmsg_len) {
        struct rtattr attribute;
        memcpy(&attribute, data + at, sizeof attribute);
        if (attribute.rta_len < sizeof attribute)
            break;
        if (attribute.rta_type == wanted)
            (void)inet_ntop(family, data + at + RTA_LENGTH(0), text, sizeof text);
        at += RTA_ALIGN(attribute.rta_len);
    }
    str_appendf(out, "  %s %s %s/%u\n", what, family == AF_INET ? "IPv4" : "IPv6", text, prefix);
}

static void print_routes(struct str *out, const struct plan_door *door)
{
    const char *data = door->routes;
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= door->routes_length;) {
        const struct nlmsghdr *message = (const void *)(data + at); /* the arena is aligned */
        if (message->nlmsg_len < sizeof *message)
            break;
        const void *body = data + at + NLMSG_HDRLEN;
        if (message->nlmsg_type == RTM_NEWADDR) {
            const struct ifaddrmsg *head = body;
            print_route(out, message, sizeof *head, "address", head->ifa_family,
                        head->ifa_prefixlen, head->ifa_family == AF_INET ? IFA_LOCAL : IFA_ADDRESS);
        } else if (message->nlmsg_type == RTM_NEWROUTE) {
            const struct rtmsg *head = body;
            print_route(out, message, sizeof *head, "route", head->rtm_family, head->rtm_dst_len,
                        RTA_DST);
        }
        at += NLMSG_ALIGN(message->nlmsg_len);
    }
}

static void print_inject(struct str *out, const struct policy_inject *inject)
{
    char url[POLICY_INJECT_URL_MAX];
    policy_inject_url(inject, url);
    str_appendf(out, "  credential %s for %s, inside at %s", inject->header, inject->name, url);
    if (inject->upstream)
        str_appendf(out, ", upstream %s", inject->upstream);
    if (inject->variable)
        str_appendf(out, ", variable %s", inject->variable);
    static const char *const names[] = {"method", "path", "strip"};
    char **const words[] = {inject->methods, inject->paths, inject->strip};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        for (char **word = words[i]; word && *word; word++)
            str_appendf(out, ", %s %s", names[i], *word);
    str_append_char(out, '\n');
}

static void print_rule(struct str *out, const struct net_rule *rule)
{
    char line[NET_RULE_LINE_MAX];
    net_rule_write(rule, line);
    str_appendf(out, "  %s\n", line);
}

void plan_print_network(struct str *out, const struct plan *plan, const struct brig_policy *policy)
{
    const struct policy_net *net = &policy->net;
    str_appendf(out, "network:\n  %s%s\n", policy_network_word(policy),
                plan->loopback ? ", loopback is up" : "");
    for (size_t i = 0; plan->door && i < plan->door->listener_count; i++)
        print_listener(out, plan->door, i);
    if (plan->door)
        print_routes(out, plan->door);
    for (size_t i = 0; plan->door && i < net->rules.count; i++)
        print_rule(out, &net->rules.items[i]);
    for (size_t i = 0; plan->door && i < net->inject_count; i++)
        print_inject(out, &net->inject[i]);
    for (size_t i = 0; plan->door && i < net->publish_count; i++) {
        char address[NET_ADDRESS_TEXT_MAX];
        net_address_print(&net->publish[i].address, address);
        str_appendf(out, "  port %u of the host's %s leads to port %u inside\n",
                    net->publish[i].host_port, address, net->publish[i].port);
    }
    if (plan->door && net->proxy)
        str_appendf(out, "  through the host's proxy %s\n", net->proxy);
}
