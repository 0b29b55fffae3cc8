/* SPDX-License-Identifier: MIT */
/* Messages between brigd's processes: whole, in order, and safe from a hostile other side. */
#include "server/message.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "tap.h"

struct pair {
    struct channel *a, *b;
};

static struct pair new_pair(void)
{
    int ends[2];
    struct pair pair = {0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[0], &pair.a, NULL) < 0 || channel_new(&ends[1], &pair.b, NULL) < 0)
        exit(1);
    return pair;
}

static void end_pair(struct pair *pair)
{
    channel_free(pair->a);
    channel_free(pair->b);
}

static void test_sizes(void)
{
    static const size_t sizes[] = {0,
                                   1,
                                   MESSAGE_INLINE_MAX - 1,
                                   MESSAGE_INLINE_MAX,
                                   MESSAGE_INLINE_MAX + 1,
                                   MESSAGE_BYTES_MAX};
    struct pair pair = new_pair();
    autofree char *bytes = malloc(MESSAGE_BYTES_MAX + 1);
    for (size_t i = 0; i < MESSAGE_BYTES_MAX; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        automessage struct message got = {.fd = -1};
        int sent = channel_send(pair.a, MESSAGE_EXECUTE, i, bytes, sizes[i], NULL);
        int received = channel_receive(pair.b, &got, NULL);
        tap_ok(sent == 0 && received == 1 && got.tag == i && got.length == sizes[i] &&
                   memcmp(got.bytes, bytes, sizes[i]) == 0 && got.bytes[sizes[i]] == 0,
               "%zu bytes arrive", sizes[i]);
    }
    tap_is_int(channel_send(pair.a, MESSAGE_EXECUTE, 0, bytes, MESSAGE_BYTES_MAX + 1, NULL),
               BRIG_E_INVALID, "more are refused");
    struct message none;
    tap_is_int(channel_receive(pair.b, &none, NULL), 0, "then there is nothing");
    end_pair(&pair);
}

static void test_order(void)
{
    struct pair pair = new_pair();
    char bytes[20000] = {0};
    unsigned count = 0, wrong = 0;
    for (uint64_t i = 0; i < 500; i++)
        if (channel_send(pair.a, MESSAGE_OUTPUT, i, bytes, i * 40, NULL) < 0)
            wrong++;
    tap_ok(channel_wants_write(pair.a) && channel_queued(pair.a) > 0,
           "what the socket does not take is queued");
    for (;;) {
        automessage struct message got = {.fd = -1};
        if (channel_flush(pair.a, NULL) < 0 || channel_receive(pair.b, &got, NULL) != 1)
            break;
        wrong += got.tag != count || got.length != count * (size_t)40;
        count++;
    }
    tap_ok(count == 500 && wrong == 0, "and all arrive in order");
    tap_ok(!channel_wants_write(pair.a) && channel_queued(pair.a) == 0, "the queue is empty then");
    end_pair(&pair);
}

static void test_full(void)
{
    struct pair pair = new_pair();
    autofree char *bytes = calloc(1, (size_t)1 << 20);
    int result = 0;
    unsigned count = 0;
    while (result == 0 && count < 10000) {
        result = channel_send(pair.a, MESSAGE_OUTPUT, 0, bytes, (size_t)1 << 20, NULL);
        count++;
    }
    tap_ok(result < 0 && count < 1000, "a queue does not grow for ever");
    end_pair(&pair);
}

static void test_fd(void)
{
    struct pair pair = new_pair();
    automessage struct message got = {.fd = -1};
    int ends[2];
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(1);
    tap_is_int(channel_send_fd(pair.a, MESSAGE_PEER, ROLE_EXECUTOR, ends[1], NULL), 0,
               "an fd is sent");
    (void)close(ends[1]);
    tap_is_int(channel_receive(pair.b, &got, NULL), 1, "and arrives");
    tap_ok(got.fd >= 0 && (fcntl(got.fd, F_GETFD) & FD_CLOEXEC) && write(got.fd, "x", 1) == 1 &&
               read(ends[0], &byte, 1) == 1 && byte == 'x',
           "it is the same, and closed on exec");
    (void)close(ends[0]);
    end_pair(&pair);
}

struct forged {
    uint32_t type, apart;
    uint64_t tag, length;
    char bytes[8];
};

/* Sends what channel_send() never would. */
static int receive_forged(const struct forged *forged, size_t size, int fd)
{
    int ends[2];
    struct channel *channel = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[1], &channel, NULL) < 0)
        exit(1);
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)forged, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    (void)sendmsg(ends[0], &message, 0);
    automessage struct message got = {.fd = -1};
    int result = channel_receive(channel, &got, NULL);
    (void)close(ends[0]);
    channel_free(channel);
    return result;
}

static void test_forged(void)
{
    const size_t head = offsetof(struct forged, bytes);
    autoclose int memory = memfd_create("t", MFD_CLOEXEC);
    int ends[2];
    if (memory < 0 || ftruncate(memory, 4) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        exit(1);
    struct forged good = {MESSAGE_KILL, 0, 0, 8, "1234567"};
    tap_is_int(receive_forged(&good, sizeof good, -1), 1, "a message by hand is one");
    tap_is_int(receive_forged(&good, head - 1, -1), BRIG_E_INVALID, "half a head is none");
    tap_is_int(receive_forged(&good, sizeof good - 1, -1), BRIG_E_INVALID, "nor are too few bytes");
    struct forged bad = good;
    bad.type = MESSAGE_TYPES_;
    tap_is_int(receive_forged(&bad, sizeof bad, -1), BRIG_E_INVALID, "nor what has no type");
    bad = (struct forged){MESSAGE_KILL, 1, 0, 4, ""};
    tap_is_int(receive_forged(&bad, head, memory), 1, "what lies in memory is read");
    tap_is_int(receive_forged(&bad, head, -1), BRIG_E_INVALID, "not if there is none");
    bad.length = 5;
    tap_is_int(receive_forged(&bad, head, memory), BRIG_E_INVALID, "not if there is less of it");
    tap_is_int(receive_forged(&bad, head, ends[0]), BRIG_E_INVALID, "nor from a pipe, which waits");
    bad.length = UINT64_MAX;
    tap_is_int(receive_forged(&bad, head, memory), BRIG_E_INVALID,
               "nor as long as a number can be");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int first_free_fd(void)
{
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
    (void)close(fd);
    return fd;
}

/* The room for one file descriptor has place for a second. */
static void test_two_fds(void)
{
    struct pair pair = new_pair();
    uint64_t head[3] = {MESSAGE_CANCEL, 1, 0};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {.header = {CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), (int[2]){0, 1}, 2 * sizeof(int));
    struct iovec part = {head, sizeof head};
    struct msghdr forged = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    int before = first_free_fd();
    automessage struct message got = {.fd = -1};
    ssize_t sent = sendmsg(channel_fd(pair.a), &forged, MSG_NOSIGNAL);
    tap_is_int(sent, sizeof head, "two file descriptors can be sent at once");
    tap_is_int(channel_receive(pair.b, &got, NULL), BRIG_E_INVALID, "but are not taken");
    tap_is_int(first_free_fd(), before, "and none of them stays");
    end_pair(&pair);
}

/* Messages without any bytes take memory all the same. */
static void test_many_empty(void)
{
    struct pair pair = new_pair();
    unsigned count = 0;
    while (count < CHANNEL_QUEUE_MAX / 32 &&
           channel_send(pair.a, MESSAGE_MISSING, count, NULL, 0, NULL) == 0)
        count++;
    tap_ok(count > 1000, "many empty messages wait for who does not read");
    tap_ok(count < CHANNEL_QUEUE_MAX / 32, "but not any number of them");
    end_pair(&pair);
}

static void test_gone(void)
{
    struct pair pair = new_pair();
    struct message got;
    channel_free(pair.b);
    tap_ok(channel_send(pair.a, MESSAGE_KILL, 0, "x", 1, NULL) < 0, "nothing is sent to the dead");
    tap_ok(channel_receive(pair.a, &got, NULL) < 0, "nor received of them");
    channel_free(pair.a);
}

int main(void)
{
    test_sizes();
    test_order();
    test_full();
    test_fd();
    test_forged();
    test_two_fds();
    test_many_empty();
    test_gone();
    return tap_done();
}
