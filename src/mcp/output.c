/* SPDX-License-Identifier: MIT */
#include "mcp/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

void output_done(struct output *output)
{
    str_done(&output->waiting);
}

void output_message(struct output *output, json_t *message)
{
    autofree char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text) {
        output->failed = true;
        return;
    }
    str_concat(&output->waiting, text, "\n");
    output->failed = output->failed || output->waiting.failed;
}

size_t output_waiting(const struct output *output)
{
    return output->waiting.length - output->sent;
}

/* Clients use sockets or pipes. O_NONBLOCK would also apply to other processes that have the same
 * open file. A pipe that poll() reports has room for PIPE_BUF bytes. */
static ssize_t write_some(int fd, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

void output_flush(struct output *output)
{
    while (!output->failed && output_waiting(output) > 0) {
        ssize_t sent =
            write_some(output->fd, output->waiting.data + output->sent, output_waiting(output));
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent < 0 && errno != EINTR)
            output->failed = true;
        output->sent += sent > 0 ? (size_t)sent : 0;
    }
    if (output->sent > 0) {
        str_done(&output->waiting);
        str_init(&output->waiting);
        output->sent = 0;
    }
}
