/* SPDX-License-Identifier: MIT */
/* Passing on a stream up to a limit; the rest is read and thrown away, so that nobody blocks. */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/message.h"

int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    *relay = (struct relay){.from = pair[0], .to = to, .limit = limit};
    *ret_write = pair[1];
    return 0;
}

void relay_done(struct relay *relay)
{
    if (relay->from >= 0)
        (void)close(relay->from);
    relay->from = -1;
}

struct pollfd relay_poll(const struct relay *relay)
{
    if (relay->ready && relay->from >= 0)
        return (struct pollfd){.fd = relay->to, .events = POLLOUT};
    return (struct pollfd){.fd = relay->from, .events = POLLIN};
}

/* A pipe that is ready takes as much as this without blocking. */
static bool pass_on(struct relay *relay)
{
    char block[PIPE_BUF];
    ssize_t length = read(relay->from, block, sizeof block);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length <= 0) {
        relay_done(relay);
        return false;
    }
    uint64_t left = relay->limit > relay->seen ? relay->limit - relay->seen : 0;
    relay->seen += (uint64_t)length;
    size_t kept = (uint64_t)length < left ? (size_t)length : (size_t)left;
    if (kept > 0 && write_all(relay->to, block, kept) < 0)
        relay_done(relay); /* nobody reads us: the command learns it as it would without us */
    return true;
}

void relay_process(struct relay *relay, short events)
{
    if (relay->from < 0 || events == 0)
        return;
    if (!relay->ready) {
        relay->ready = true;
        return;
    }
    relay->ready = false;
    (void)pass_on(relay);
}

void relay_drain(struct relay *relay)
{
    while (relay->from >= 0 && pass_on(relay))
        ;
}

bool relay_was_cut(const struct relay *relay)
{
    return relay->seen > relay->limit;
}
