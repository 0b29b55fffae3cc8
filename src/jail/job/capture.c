/* SPDX-License-Identifier: MIT */
/* Collecting a stream up to a limit. */
#include "jail/job/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define CHUNK_BYTES 65536
/* One call drains at most this much, so that a flood cannot keep its caller's loop. */
#define ROUNDS_MAX 32

int capture_open(struct capture *capture, uint64_t limit, int *ret_write, struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    *capture = (struct capture){.fd = pair[0], .limit = limit};
    *ret_write = pair[1];
    return 0;
}

static bool make_room(struct capture *capture, size_t more)
{
    size_t needed = capture->length + more + 1;
    if (needed <= capture->room)
        return true;
    size_t wanted = capture->room ? capture->room * 2 : 4096;
    while (wanted < needed)
        wanted *= 2;
    char *grown = realloc(capture->data, wanted);
    if (!grown)
        return false;
    capture->data = grown;
    capture->room = wanted;
    return true;
}

static void keep(struct capture *capture, const char *bytes, size_t count)
{
    capture->seen += count;
    size_t fits = capture->limit - capture->length < count
                      ? (size_t)(capture->limit - capture->length)
                      : count;
    if (fits > 0 && make_room(capture, fits)) {
        memcpy(capture->data + capture->length, bytes, fits);
        capture->length += fits;
        capture->data[capture->length] = 0;
    } else if (fits > 0) {
        fits = 0;
    }
    if (fits < count)
        capture->truncated = true;
}

int capture_read(struct capture *capture)
{
    char chunk[CHUNK_BYTES];
    for (int round = 0; round < ROUNDS_MAX; round++) {
        ssize_t count = read(capture->fd, chunk, sizeof chunk);
        if (count > 0) {
            keep(capture, chunk, (size_t)count);
            continue;
        }
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return 0;
        return 1;
    }
    return 0;
}

void capture_take(struct capture *capture, struct brig_capture *ret)
{
    *ret = (struct brig_capture){
        .data = capture->data, .length = capture->length, .truncated = capture->truncated};
    capture->data = NULL;
    capture->length = capture->room = 0;
}

void capture_done(struct capture *capture)
{
    if (capture->fd >= 0)
        (void)close(capture->fd);
    free(capture->data);
    *capture = (struct capture){.fd = -1};
}
