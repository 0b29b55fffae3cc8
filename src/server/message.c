/* SPDX-License-Identifier: MIT */
/* Messages between brigd's processes. */
#include "server/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"

/* Sent before the bytes. */
struct head {
    uint32_t type;
    uint32_t apart; /* 1: the bytes are in the memfd that was sent along */
    uint64_t tag;
    uint64_t length;
};

struct queued {
    struct queued *next;
    struct head head;
    int fd; /* or -1 */
    char bytes[];
};

struct channel {
    int fd;
    size_t queued_bytes;
    struct queued *first, **last;
    char buffer[sizeof(struct head) + MESSAGE_INLINE_MAX];
};

const char *server_role_name(enum server_role role)
{
    static const char *const names[ROLES_] = {
        [ROLE_HTTP] = "http",
        [ROLE_EXECUTOR] = "executor",
        [ROLE_HISTORY] = "history",
    };
    return names[role];
}

void message_done(struct message *message)
{
    free(message->bytes);
    if (message->fd >= 0)
        (void)close(message->fd);
    *message = (struct message){.fd = -1};
}

int channel_new(int *fd, struct channel **ret_channel, struct brig_error *err)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return brig_fail_nomem(err);
    int flags = fcntl(*fd, F_GETFL);
    if (flags < 0 || fcntl(*fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        free(channel);
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot use a socket between processes");
    }
    channel->fd = take_fd(fd);
    channel->last = &channel->first;
    *ret_channel = channel;
    return 0;
}

/* The memory that a queued message takes. An empty message counts too: otherwise a peer that does
 * not read could cause any number of them. */
static size_t weight(const struct head *head)
{
    return sizeof(struct queued) + (size_t)head->length;
}

static void drop_first(struct channel *channel)
{
    struct queued *first = channel->first;
    channel->first = first->next;
    if (!channel->first)
        channel->last = &channel->first;
    channel->queued_bytes -= weight(&first->head);
    if (first->fd >= 0)
        (void)close(first->fd);
    free(first);
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    while (channel->first)
        drop_first(channel);
    (void)close(channel->fd);
    free(channel);
}

int channel_fd(const struct channel *channel)
{
    return channel->fd;
}

bool channel_wants_write(const struct channel *channel)
{
    return channel->first != NULL;
}

size_t channel_queued(const struct channel *channel)
{
    return channel->queued_bytes;
}

/* ---- sending ---- */

/* Returns 1 if the message was sent, 0 if it has to wait, or a negative code. */
static int send_now(const struct channel *channel, const struct head *head, const void *bytes,
                    int fd, struct brig_error *err)
{
    struct head copy = *head;
    const struct iovec parts[2] = {
        {.iov_base = &copy, .iov_len = sizeof copy},
        {.iov_base = (void *)(uintptr_t)bytes, .iov_len = head->apart ? 0 : (size_t)head->length}};
    ssize_t sent = fdpass_send(channel->fd, parts, ARRAY_LENGTH(parts), &fd, fd >= 0, 0);
    if (sent >= 0)
        return 1;
    if (sent == -EAGAIN || sent == -ENOBUFS)
        return 0;
    return brig_fail(err, BRIG_E_SYSTEM, (int)-sent, "the process at the other end is gone");
}

static int queue(struct channel *channel, const struct head *head, const void *bytes, int *fd,
                 struct brig_error *err)
{
    size_t length = head->apart ? 0 : (size_t)head->length;
    if (channel->queued_bytes + weight(head) > CHANNEL_QUEUE_MAX)
        return brig_fail(err, BRIG_E_SYSTEM, ENOBUFS, "the process at the other end is too slow");
    struct queued *item = malloc(sizeof *item + length);
    if (!item)
        return brig_fail_nomem(err);
    *item = (struct queued){.head = *head, .fd = take_fd(fd)};
    if (length > 0)
        memcpy(item->bytes, bytes, length);
    *channel->last = item;
    channel->last = &item->next;
    channel->queued_bytes += weight(head);
    return 0;
}

/* Keeps the order of messages. */
static int send_or_queue(struct channel *channel, const struct head *head, const void *bytes,
                         int *fd, struct brig_error *err)
{
    int result = channel->first ? 0 : send_now(channel, head, bytes, *fd, err);
    if (result == 0)
        return queue(channel, head, bytes, fd, err);
    return result < 0 ? result : 0;
}

int channel_send(struct channel *channel, enum message_type type, uint64_t tag, const void *bytes,
                 size_t length, struct brig_error *err)
{
    struct head head = {.type = type, .tag = tag, .length = length};
    autoclose int fd = -1;
    if (length > MESSAGE_BYTES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a message of %zu bytes is too long", length);
    if (length > MESSAGE_INLINE_MAX) {
        head.apart = 1;
        fd = memfd_create("brigd-message", MFD_CLOEXEC);
        int failed = fd < 0 ? -errno : write_all(fd, bytes, length);
        if (failed < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot store a message");
    }
    return send_or_queue(channel, &head, bytes, &fd, err);
}

int channel_send_fd(struct channel *channel, enum message_type type, uint64_t tag, int fd,
                    struct brig_error *err)
{
    struct head head = {.type = type, .tag = tag};
    autoclose int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot hand over a file descriptor");
    return send_or_queue(channel, &head, NULL, &copy, err);
}

int channel_flush(struct channel *channel, struct brig_error *err)
{
    while (channel->first) {
        const struct queued *first = channel->first;
        int result = send_now(channel, &first->head, first->bytes, first->fd, err);
        if (result <= 0)
            return result;
        drop_first(channel);
    }
    return 0;
}

/* ---- receiving ---- */

static int misbehaves(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the process at the other end does not keep to the form");
}

/* Copies the bytes, because the sender can still write to the memfd. */
static int read_apart(int fd, size_t length, char *bytes)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(fd, bytes + done, length - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        done += (size_t)got;
    }
    return 0;
}

/* A read from a memfd never blocks. A pipe that was sent instead could. */
static bool is_memory(int fd)
{
    return fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0;
}

static int take_message(const char *buffer, size_t got, int *fd, struct message *ret,
                        struct brig_error *err)
{
    struct head head;
    if (got < sizeof head)
        return misbehaves(err);
    memcpy(&head, buffer, sizeof head);
    size_t here = got - sizeof head;
    bool fits = head.apart ? here == 0 && is_memory(*fd) : here == head.length;
    if (head.type == 0 || head.type >= MESSAGE_TYPES_ || head.apart > 1 || !fits ||
        head.length > MESSAGE_BYTES_MAX)
        return misbehaves(err);
    autofree char *bytes = malloc((size_t)head.length + 1);
    if (!bytes)
        return brig_fail_nomem(err);
    if (!head.apart)
        memcpy(bytes, buffer + sizeof head, here);
    else if (read_apart(*fd, (size_t)head.length, bytes) < 0)
        return misbehaves(err);
    bytes[head.length] = 0;
    *ret = (struct message){.type = (enum message_type)head.type,
                            .tag = head.tag,
                            .bytes = take_ptr(&bytes),
                            .length = (size_t)head.length,
                            .fd = head.apart ? -1 : take_fd(fd)};
    return 1;
}

int channel_receive(struct channel *channel, struct message *ret_message, struct brig_error *err)
{
    const struct iovec part = {.iov_base = channel->buffer, .iov_len = sizeof channel->buffer};
    autoclose int fd = -1;
    size_t fd_count = 1; /* a message has at most one fd */
    ssize_t got = fdpass_receive(channel->fd, &part, 1, &fd, &fd_count, 0);
    if (got == -EAGAIN)
        return 0;
    if (got == -EMSGSIZE)
        return misbehaves(err);
    if (got <= 0)
        return brig_fail(err, BRIG_E_SYSTEM, (int)-got, "the process at the other end is gone");
    return take_message(channel->buffer, (size_t)got, &fd, ret_message, err);
}
