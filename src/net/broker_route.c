/* SPDX-License-Identifier: MIT */
/* Where an address leads from this machine, by rtnetlink. */
#include "net/broker_route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

/* A route without a gateway that is as wide as this is a tunnel for everything, not a network. */
#define WIDE_IPV4 8
#define WIDE_IPV6 16

struct route_question {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    uint8_t address[16];
};

union route_answer {
    struct nlmsghdr head;
    char bytes[4096];
};

int route_open(int *ret_fd, struct brig_error *err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot ask the kernel for routes");
    *ret_fd = fd;
    return 0;
}

/* There is no way there; who connects will be told. */
static bool is_unreachable(int sys_errno)
{
    return sys_errno == ENETUNREACH || sys_errno == EHOSTUNREACH || sys_errno == EACCES ||
           sys_errno == EINVAL;
}

static enum route_kind read_error(struct nlmsghdr *head)
{
    const struct nlmsgerr *error = NLMSG_DATA(head);
    if (head->nlmsg_len < NLMSG_LENGTH(sizeof *error) || !is_unreachable(-error->error))
        return ROUTE_NEAR;
    return ROUTE_FAR;
}

static bool has_gateway(struct nlmsghdr *head)
{
    int left = (int)RTM_PAYLOAD(head);
    struct rtmsg *route = NLMSG_DATA(head);
    for (struct rtattr *at = RTM_RTA(route); RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == RTA_GATEWAY || at->rta_type == RTA_VIA ||
            at->rta_type == RTA_MULTIPATH || at->rta_type == RTA_NH_ID)
            return true;
    return false;
}

/* The kernel's macros do not know const. */
static enum route_kind read_answer(struct nlmsghdr *head, size_t length)
{
    if (length < sizeof *head || !NLMSG_OK(head, length))
        return ROUTE_NEAR;
    if (head->nlmsg_type == NLMSG_ERROR)
        return read_error(head);
    const struct rtmsg *route = NLMSG_DATA(head);
    if (head->nlmsg_type != RTM_NEWROUTE || head->nlmsg_len < NLMSG_LENGTH(sizeof *route))
        return ROUTE_NEAR;
    if (route->rtm_type == RTN_BLACKHOLE || route->rtm_type == RTN_UNREACHABLE ||
        route->rtm_type == RTN_PROHIBIT)
        return ROUTE_FAR;
    if (route->rtm_type != RTN_UNICAST)
        return ROUTE_OWN;
    unsigned wide = route->rtm_family == AF_INET ? WIDE_IPV4 : WIDE_IPV6;
    return has_gateway(head) || route->rtm_dst_len <= wide ? ROUTE_FAR : ROUTE_NEAR;
}

enum route_kind route_find(int fd, const struct net_address *address)
{
    bool v4 = address->family == NET_V4;
    size_t size = v4 ? 4 : 16;
    struct route_question question = {
        .head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = v4 ? AF_INET : AF_INET6,
                  .rtm_dst_len = (unsigned char)(size * 8),
                  .rtm_flags = RTM_F_FIB_MATCH},
        .attribute = {.rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(size)},
    };
    union route_answer answer;
    memcpy(question.address, address->bytes, size);
    question.head.nlmsg_len =
        (uint32_t)(offsetof(struct route_question, attribute) + RTA_LENGTH(size));
    /* The kernel answers before send() returns; what an earlier one left is not for this one. */
    while (recv(fd, &answer, sizeof answer, MSG_DONTWAIT) >= 0)
        ;
    if (send(fd, &question, question.head.nlmsg_len, MSG_DONTWAIT) < 0)
        return ROUTE_NEAR;
    ssize_t length = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    return length < 0 ? ROUTE_NEAR : read_answer(&answer.head, (size_t)length);
}

const char *route_text(enum route_kind kind)
{
    switch (kind) {
    case ROUTE_FAR:
        return "far away";
    case ROUTE_OWN:
        return "this machine's own";
    case ROUTE_NEAR:
        return "on the local network";
    }
    return "";
}
