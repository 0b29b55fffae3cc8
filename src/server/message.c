/* SPDX-License-Identifier: MIT */
/* Messages between brigd's processes. */
#include "server/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"

/* Sent before the bytes of each piece. All pieces of a message have the same. */
struct head {
    uint64_t type;
    uint64_t tag;
    uint64_t length; /* of the whole message */
};

struct queued {
    struct queued *next;
    struct head head;
    size_t sent; /* bytes of it */
    int fd;      /* or -1 */
    char bytes[];
};

struct channel {
    int fd;
    size_t queued_bytes, queue_max;
    struct queued *first, **last;
    struct message incoming; /* bytes is NULL if no piece of the next message has arrived */
    size_t arrived;          /* bytes of it */
    char buffer[sizeof(struct head) + MESSAGE_PIECE_MAX];
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
    channel->queue_max = CHANNEL_QUEUE_MAX;
    channel->last = &channel->first;
    channel->incoming.fd = -1;
    *ret_channel = channel;
    return 0;
}

/* The memory that a queued message takes. An empty message counts too: otherwise a peer that does
 * not read could cause any number of them. */
static size_t weight(size_t length)
{
    return sizeof(struct queued) + length;
}

static void drop_first(struct channel *channel)
{
    struct queued *first = channel->first;
    channel->first = first->next;
    if (!channel->first)
        channel->last = &channel->first;
    channel->queued_bytes -= weight((size_t)first->head.length);
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
    message_done(&channel->incoming);
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

bool channel_is_busy(const struct channel *channel)
{
    return channel && channel->queued_bytes > CHANNEL_BUSY;
}

bool channel_has_room(const struct channel *channel, size_t length)
{
    return channel->queued_bytes + weight(length) <= channel->queue_max;
}

void channel_add_room(struct channel *channel, size_t length)
{
    channel->queue_max += length;
}

/* ---- sending ---- */

/* Every piece of a message but the last is full. */
static size_t piece_length(size_t left)
{
    return left < MESSAGE_PIECE_MAX ? left : MESSAGE_PIECE_MAX;
}

/* Sends the piece after the first `sent` bytes. Returns 1, 0 if it has to wait, or a negative
 * code. */
static int send_piece(const struct channel *channel, const struct head *head, const char *bytes,
                      size_t sent, int fd, struct brig_error *err)
{
    const struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof *head},
                                   {.iov_base = (void *)(uintptr_t)(bytes + sent),
                                    .iov_len = piece_length((size_t)head->length - sent)}};
    bool with_fd = fd >= 0 && sent == 0;
    ssize_t result = fdpass_send(channel->fd, parts, ARRAY_LENGTH(parts), &fd, with_fd, 0);
    if (result >= 0)
        return 1;
    if (result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM)
        return 0;
    return brig_fail(err, BRIG_E_SYSTEM, (int)-result, "the process at the other end is gone");
}

static int queue(struct channel *channel, const struct head *head, const void *bytes, int *fd,
                 struct brig_error *err)
{
    size_t length = (size_t)head->length;
    if (!channel_has_room(channel, length))
        return brig_fail(err, BRIG_E_STATE, 0, "the process at the other end does not read");
    struct queued *item = malloc(sizeof *item + length);
    if (!item)
        return brig_fail_nomem(err);
    *item = (struct queued){.head = *head, .fd = take_fd(fd)};
    if (length > 0)
        memcpy(item->bytes, bytes, length);
    *channel->last = item;
    channel->last = &item->next;
    channel->queued_bytes += weight(length);
    return 0;
}

/* Keeps the order of messages. One of several pieces is queued first, so that no lack of memory can
 * end it in the middle. */
static int send_or_queue(struct channel *channel, const struct head *head, const void *bytes,
                         int *fd, struct brig_error *err)
{
    bool waits = channel->first != NULL;
    bool whole = head->length <= MESSAGE_PIECE_MAX;
    int result = whole && !waits ? send_piece(channel, head, bytes, 0, *fd, err) : 0;
    if (result != 0)
        return result < 0 ? result : 0;
    result = queue(channel, head, bytes, fd, err);
    return result < 0 || whole || waits ? result : channel_flush(channel, err);
}

int channel_send(struct channel *channel, enum message_type type, uint64_t tag, const void *bytes,
                 size_t length, struct brig_error *err)
{
    const struct head head = {.type = type, .tag = tag, .length = length};
    int none = -1;
    if (length > MESSAGE_BYTES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a message of %zu bytes is too long", length);
    return send_or_queue(channel, &head, bytes, &none, err);
}

int channel_send_fd(struct channel *channel, enum message_type type, uint64_t tag, int fd,
                    struct brig_error *err)
{
    const struct head head = {.type = type, .tag = tag};
    autoclose int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot hand over a file descriptor");
    return send_or_queue(channel, &head, "", &copy, err);
}

int channel_flush(struct channel *channel, struct brig_error *err)
{
    while (channel->first) {
        struct queued *first = channel->first;
        int result = send_piece(channel, &first->head, first->bytes, first->sent, first->fd, err);
        if (result <= 0)
            return result;
        first->sent += piece_length((size_t)first->head.length - first->sent);
        if (first->sent == first->head.length)
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

/* Makes room for a message, from the head of its first piece. */
static int begin_message(struct channel *channel, const struct head *head, int *fd,
                         struct brig_error *err)
{
    if (head->type == 0 || head->type >= MESSAGE_TYPES_ || head->length > MESSAGE_BYTES_MAX)
        return misbehaves(err);
    char *bytes = malloc((size_t)head->length + 1);
    if (!bytes)
        return brig_fail_nomem(err);
    channel->arrived = 0;
    channel->incoming = (struct message){.type = (enum message_type)head->type,
                                         .tag = head->tag,
                                         .bytes = bytes,
                                         .length = (size_t)head->length,
                                         .fd = take_fd(fd)};
    return 0;
}

/* Returns 1 with the message if the piece in the buffer is its last, 0 if others follow. */
static int take_piece(struct channel *channel, size_t got, int *fd, struct message *ret_message,
                      struct brig_error *err)
{
    struct message *message = &channel->incoming;
    struct head head;
    if (got < sizeof head)
        return misbehaves(err);
    memcpy(&head, channel->buffer, sizeof head);
    int result = message->bytes ? 0 : begin_message(channel, &head, fd, err);
    if (result < 0)
        return result;
    size_t here = got - sizeof head;
    if (head.type != (uint64_t)message->type || head.tag != message->tag ||
        head.length != message->length || *fd >= 0 ||
        here != piece_length(message->length - channel->arrived))
        return misbehaves(err);
    memcpy(message->bytes + channel->arrived, channel->buffer + sizeof head, here);
    channel->arrived += here;
    if (channel->arrived < message->length)
        return 0;
    message->bytes[message->length] = 0;
    *ret_message = *message;
    *message = (struct message){.fd = -1};
    return 1;
}

int channel_receive(struct channel *channel, struct message *ret_message, struct brig_error *err)
{
    int result = 0;
    do { /* a message has few enough pieces to take them all at once */
        const struct iovec part = {.iov_base = channel->buffer, .iov_len = sizeof channel->buffer};
        autoclose int fd = -1;
        size_t fd_count = 1; /* a message has at most one fd */
        ssize_t got = fdpass_receive(channel->fd, &part, 1, &fd, &fd_count, 0);
        if (got == -EAGAIN)
            return 0;
        if (got == -ECONNRESET) /* said once if the other end has gone and left messages unread */
            continue;
        if (got == -EMSGSIZE)
            return misbehaves(err);
        if (got <= 0)
            return brig_fail(err, BRIG_E_SYSTEM, (int)-got, "the process at the other end is gone");
        result = take_piece(channel, (size_t)got, &fd, ret_message, err);
    } while (result == 0);
    return result;
}
