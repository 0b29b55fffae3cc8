/* SPDX-License-Identifier: MIT */
/* The door inside the jail: routes, redirection and sockets in a new network namespace. */
#include <linux/fcntl.h>
#include <linux/netlink.h>

#include "jail/child/child_start.h"
#include "jail/net/door_netlink.h"
#include "jail/plan/plan_door.h"
#include "jail/sys.h"
#include "jail/wire.h"
#include "net/broker_wire.h"

enum {
    FAMILY_NETLINK = 16,
    FAMILY_INET6 = 10,
    SOCKET_STREAM = 1,
    SOCKET_RAW = 3,
    LEVEL_IPV6 = 41,
    OPTION_V6ONLY = 26,
    LEVEL_TCP = 6,
    OPTION_CONGESTION = 13,
    MESSAGE_DONTWAIT = 0x40,
    BACKLOG = 4096,
    SUBJECTS = DOOR_ABOUT_TARGET + 1,
};

/* Stores the first error of each subject, 0 if there was none. */
static void collect_errors(const char *bytes, long length, int errors[SUBJECTS])
{
    while (length >= (long)sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *head = (const void *)bytes;
        long size = (long)NLMSG_ALIGN(head->nlmsg_len);
        if (head->nlmsg_len < sizeof *head || size > length)
            return;
        const struct nlmsgerr *answer = (const void *)(bytes + NLMSG_HDRLEN);
        if (head->nlmsg_type == NLMSG_ERROR && answer->error < 0 && head->nlmsg_seq < SUBJECTS &&
            errors[head->nlmsg_seq] == 0)
            errors[head->nlmsg_seq] = answer->error;
        bytes += size;
        length -= size;
    }
}

static long open_netlink(int protocol)
{
    return SYS(socket, FAMILY_NETLINK, SOCKET_RAW | O_CLOEXEC | O_NONBLOCK, protocol);
}

/* The kernel handles the messages before sendto() returns, so all replies are available then. */
static int tell_socket(long fd, const void *bytes, size_t length, int errors[SUBJECTS])
{
    char answers[8192] __attribute__((aligned(8)));
    long result = SYS(sendto, fd, bytes, length, 0, 0, 0), got = 0;
    while (result >= 0 &&
           (got = SYS(recvfrom, fd, answers, sizeof answers, MESSAGE_DONTWAIT, 0, 0)) > 0)
        collect_errors(answers, got, errors);
    return result < 0 ? (int)result : 0;
}

static int tell_kernel(int protocol, const void *bytes, size_t length, int errors[SUBJECTS])
{
    long fd = open_netlink(protocol);
    if (fd < 0)
        return (int)fd;
    int result = tell_socket(fd, bytes, length, errors);
    (void)SYS(close, fd);
    return result;
}

/* Accepted sockets inherit the congestion control algorithm; the peer has it from its route. */
static long start_listening(long fd)
{
    (void)SYS(setsockopt, fd, LEVEL_TCP, OPTION_CONGESTION, DOOR_CONGESTION,
              sizeof DOOR_CONGESTION - 1);
    return SYS(listen, fd, BACKLOG);
}

static long listen_at(const struct plan_listener *listener)
{
    int on = 1;
    long fd = SYS(socket, listener->family, listener->type | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    long result = 0;
    if (listener->family == FAMILY_INET6)
        result = SYS(setsockopt, fd, LEVEL_IPV6, OPTION_V6ONLY, &on, sizeof on);
    if (result >= 0)
        result = SYS(bind, fd, listener->address, listener->address_length);
    if (result >= 0 && listener->type == SOCKET_STREAM)
        result = start_listening(fd);
    if (result >= 0)
        return fd;
    (void)SYS(close, fd);
    return result;
}

static int send_listener(const struct start *start, const struct plan_listener *listener)
{
    long fd = listen_at(listener);
    if (fd < 0)
        return listener->soft ? 0 : (int)fd;
    int said = child_say_fd(start->wire, WIRE_DOOR, listener->kind << 8 | listener->index, (int)fd);
    (void)SYS(close, fd);
    return said;
}

/* Without nf_tables brig listens on the usual ports instead, and the result says so. */
static int tell_nftables(const void *bytes, size_t length)
{
    int errors[SUBJECTS] = {0};
    int result = tell_kernel(NETLINK_NETFILTER, bytes, length, errors);
    return result < 0 ? result : errors[DOOR_ABOUT_REDIRECT];
}

static bool redirect(const struct start *start, const struct plan_door *door)
{
    int result = tell_nftables(door->redirect, door->redirect_length);
    if (result < 0)
        child_say(start->wire, WIRE_SOFT, PLAN_STEP_REDIRECT, -result);
    return result == 0;
}

/* Where the kernel can hold connections until they are decided about, the broker gets a queue of
 * them. Else it accepts a connection before it knows whether the other side answers. */
static int hold(const struct start *start, const struct plan_door *door)
{
    int errors[SUBJECTS] = {0}, said = 0;
    long fd = open_netlink(NETLINK_NETFILTER);
    if (fd < 0)
        return 0;
    int result = tell_socket(fd, door->queue, door->queue_length, errors);
    if (result == 0)
        result = errors[DOOR_ABOUT_HOLD];
    int way = errors[DOOR_ABOUT_TARGET] == 0;
    if (result == 0 && tell_nftables(door->holds[way], door->holds_length[way]) == 0)
        said = child_say_fd(start->wire, WIRE_DOOR, DOOR_SOCKET_QUEUE << 8, (int)fd);
    (void)SYS(close, fd);
    return said;
}

int child_open_door(const struct start *start)
{
    const struct plan_door *door = start->plan->door;
    int errors[SUBJECTS] = {0};
    int result = tell_kernel(NETLINK_ROUTE, door->routes, door->routes_length, errors);
    if (result == 0)
        result = errors[DOOR_ABOUT_DEVICE];
    if (result < 0)
        return child_failed(start, PLAN_STEP_LOOPBACK, result);
    if (errors[DOOR_ABOUT_ADDRESSES] < 0)
        child_say(start->wire, WIRE_SOFT, PLAN_STEP_ROUTES, -errors[DOOR_ABOUT_ADDRESSES]);
    bool redirected = redirect(start, door);
    for (size_t i = 0; i < door->listener_count; i++) {
        const struct plan_listener *listener = &door->listeners[i];
        if (listener->when == (redirected ? PLAN_LISTEN_FALLBACK : PLAN_LISTEN_REDIRECTED))
            continue;
        if ((result = send_listener(start, listener)) < 0)
            return child_failed(start, PLAN_STEP_DOOR, result);
    }
    if (redirected && (result = hold(start, door)) < 0)
        return child_failed(start, PLAN_STEP_DOOR, result);
    return 0;
}
