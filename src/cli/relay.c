/* SPDX-License-Identifier: MIT */
/* Passing on a stream up to a limit; the rest is read and thrown away, so that nobody blocks. */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* What a pipe usually holds: less would cost us more CPU time for the same. */
#define BLOCK_BYTES 65536
/* At the end at most so many are read: more can only come from who was handed the pipe elsewhere. */
#define DRAIN_BLOCKS 64

int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err)
{
    int pair[2];
    struct stat status;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    *relay = (struct relay){.from = pair[0],
                            .to = to,
                            .to_file = fstat(to, &status) == 0 && S_ISREG(status.st_mode),
                            .limit = limit};
    *ret_write = pair[1];
    return 0;
}

void relay_done(struct relay *relay)
{
    if (relay->from >= 0)
        (void)close(relay->from);
    free(relay->block);
    relay->from = -1;
    relay->block = NULL;
    relay->length = 0;
}

/* Past the limit nobody has to be ready for what is thrown away. */
struct pollfd relay_poll(const struct relay *relay)
{
    if (relay->from >= 0 && relay->length > 0)
        return (struct pollfd){.fd = relay->to, .events = POLLOUT};
    return (struct pollfd){.fd = relay->from, .events = POLLIN};
}

/* Reads what comes next, and keeps what is still within the limit. False if there was nothing. */
static bool fill(struct relay *relay)
{
    if (!relay->block)
        relay->block = malloc(BLOCK_BYTES);
    ssize_t length = relay->block ? read(relay->from, relay->block, BLOCK_BYTES) : 0;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length <= 0) {
        relay_done(relay);
        return false;
    }
    uint64_t left = relay->limit > relay->seen ? relay->limit - relay->seen : 0;
    relay->seen += (uint64_t)length;
    relay->start = 0;
    relay->length = (uint64_t)length < left ? (size_t)length : (size_t)left;
    return true;
}

/* Passes on what can be without blocking: a pipe that is ready takes as much as PIPE_BUF. */
static void pass_on(struct relay *relay)
{
    struct pollfd ready = {.fd = relay->to, .events = POLLOUT};
    while (relay->length > 0 && (relay->to_file || poll(&ready, 1, 0) > 0)) {
        size_t most = relay->to_file || relay->length < PIPE_BUF ? relay->length : PIPE_BUF;
        ssize_t written = write(relay->to, relay->block + relay->start, most);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0) { /* nobody reads us: the command learns it as it would without us */
            relay_done(relay);
            return;
        }
        relay->start += (size_t)written;
        relay->length -= (size_t)written;
    }
}

void relay_process(struct relay *relay, short events)
{
    if (relay->from < 0 || events == 0)
        return;
    if (relay->length == 0)
        (void)fill(relay);
    pass_on(relay);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool relay_drain(struct relay *relay, int timeout_ms, int wake_fd)
{
    int64_t end_ms = now_ms() + timeout_ms;
    for (int blocks = 0; relay->from >= 0;) {
        if (relay->length == 0 && (blocks++ == DRAIN_BLOCKS || !fill(relay)))
            return true;
        pass_on(relay);
        if (relay->from < 0 || relay->length == 0)
            continue;
        int64_t left_ms = timeout_ms < 0 ? -1 : end_ms - now_ms();
        struct pollfd fds[] = {{.fd = relay->to, .events = POLLOUT},
                               {.fd = wake_fd, .events = POLLIN}};
        if (timeout_ms >= 0 && left_ms <= 0)
            return true;
        if (poll(fds, 2, (int)left_ms) < 0 && errno != EINTR)
            return true;
        if (fds[1].revents)
            return false;
    }
    return true;
}

bool relay_was_cut(const struct relay *relay)
{
    return relay->seen > relay->limit;
}
