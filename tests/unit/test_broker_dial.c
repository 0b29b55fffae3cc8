/* SPDX-License-Identifier: MIT */
/* Connecting, and how data is sent to what is on this machine. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "net/broker_dial.h"
#include "net/broker_wire.h"
#include "tap.h"

static const uint8_t loopback[4] = {127, 0, 0, 1};

struct dialled {
    struct dial dial;
    int fd;
    bool done;
};

static void dialled(struct dial *dial, int fd, const struct net_address *address, int sys_errno)
{
    struct dialled *result = (struct dialled *)dial;
    (void)address, (void)sys_errno;
    result->fd = fd;
    result->done = true;
}

static int listen_somewhere(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) < 0)
        tap_bail("cannot listen");
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* The socket is the caller's; -1 if nobody answered. */
static int dial_to(struct loop *loop, uint16_t port)
{
    const struct net_address address = net_address_v4(loopback);
    struct dialled result = {.dial = {.done = dialled}, .fd = -1};
    dial_start(&result.dial, loop, &address, 1, port);
    while (!result.done)
        loop_round(loop);
    return result.fd;
}

static void test_own(struct loop *loop)
{
    uint16_t port;
    autoclose int listener = listen_somewhere(&port);
    autoclose int fd = dial_to(loop, port);
    tap_ok(listener >= 0 && fd >= 0, "a server that listens is connected to");
}

static void test_refused(struct loop *loop)
{
    uint16_t port;
    (void)close(listen_somewhere(&port));
    tap_is_int(dial_to(loop, port), -1, "where nobody listens nothing is connected to");
}

int main(void)
{
    struct loop loop;
    if (loop_init(&loop, NULL) < 0)
        tap_bail("no loop");
    test_own(&loop);
    test_refused(&loop);
    loop_done(&loop);
    return tap_done();
}
