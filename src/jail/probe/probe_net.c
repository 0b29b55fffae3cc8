/* SPDX-License-Identifier: MIT */
/* The attempt at a network door. */
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/net/door_netlink.h"
#include "jail/probe/probe_checks.h"
#include "policy/net_address.h"

/* The errno the kernel answers with about a subject, or 0. */
static int ask_kernel(int protocol, const struct str *message, unsigned subject)
{
    char buffer[8192] __attribute__((aligned(8)));
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (message->failed || fd < 0 || send(fd, message->data, message->length, 0) < 0)
        return message->failed ? ENOMEM : errno;
    for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
        for (struct nlmsghdr *head = (void *)buffer; NLMSG_OK(head, (size_t)got);
             head = NLMSG_NEXT(head, got)) {
            const struct nlmsgerr *answer = NLMSG_DATA(head);
            if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_seq == subject && answer->error < 0)
                return -answer->error;
        }
    return 0;
}

void check_door(const struct probe_context *context, struct probe_answer *answer)
{
    const struct net_range all = {.base = {.family = NET_V4}};
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    if (probe_enter(context, CLONE_NEWNET, answer) < 0)
        return;
    door_write_routes(&routes, &all, 1);
    door_write_redirect(&redirect);
    int error = ask_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_DEVICE);
    if (error) {
        probe_failed(answer, error, "loopback");
        return;
    }
    error = ask_kernel(NETLINK_NETFILTER, &redirect, DOOR_ABOUT_REDIRECT);
    if (error)
        probe_failed(answer, error, "nf_tables");
}
