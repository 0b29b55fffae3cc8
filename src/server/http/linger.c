/* SPDX-License-Identifier: MIT */
/* Connections that were answered before their request was read to its end. */
#include "server/http/linger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/http.h"
#include "server/http/loop.h"

#define LINGER_MAX 64
#define LINGER_MS 2000
#define LINGER_BYTES_MAX ((size_t)64 << 20)

struct lingering {
    struct lingering *next;
    int fd;
    size_t bytes;
    uint64_t until_ms;
};

void linger_add(struct http *http, int fd)
{
    size_t count = 0;
    for (const struct lingering *linger = http->lingering; linger; linger = linger->next)
        count++;
    struct lingering *linger = count < LINGER_MAX ? calloc(1, sizeof *linger) : NULL;
    int copy = linger ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0 || loop_add(http, copy, LOOP_LINGER, NULL) < 0) {
        if (copy >= 0)
            (void)close(copy);
        free(linger);
        return;
    }
    (void)shutdown(copy, SHUT_WR);
    *linger = (struct lingering){
        .next = http->lingering, .fd = copy, .until_ms = http->now_ms + LINGER_MS};
    http->lingering = linger;
}

/* Whether there may be more. */
static bool read_away(struct lingering *linger)
{
    static char sink[65536];
    for (int i = 0; i < 16; i++) {
        ssize_t got = recv(linger->fd, sink, sizeof sink, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        linger->bytes += (size_t)got;
        if (linger->bytes > LINGER_BYTES_MAX)
            return false;
    }
    return true;
}

static void sweep(struct http *http, bool read)
{
    for (struct lingering **link = &http->lingering; *link;) {
        struct lingering *linger = *link;
        if (linger->until_ms > http->now_ms && (!read || read_away(linger))) {
            link = &linger->next;
            continue;
        }
        *link = linger->next;
        (void)close(linger->fd);
        free(linger);
    }
}

void linger_read(struct http *http)
{
    sweep(http, true);
}

void linger_tick(struct http *http)
{
    sweep(http, false);
}
