/* SPDX-License-Identifier: MIT */
/* Messages between brigd's processes: whole, in order, and safe from a hostile other side. */
#include "server/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "await.h"
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
    static const size_t sizes[] = {
        0, 1, MESSAGE_PIECE_MAX - 1, MESSAGE_PIECE_MAX, MESSAGE_PIECE_MAX + 1, MESSAGE_BYTES_MAX};
    struct pair pair = new_pair();
    autofree char *bytes = malloc(MESSAGE_BYTES_MAX + 1);
    for (size_t i = 0; i < MESSAGE_BYTES_MAX; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        automessage struct message got = {.fd = -1};
        int sent = channel_send(pair.a, MESSAGE_EXECUTE, i, bytes, sizes[i], NULL);
        int received = channel_receive(pair.b, &got, NULL);
        while (received == 0 && channel_wants_write(pair.a) && channel_flush(pair.a, NULL) == 0)
            received = channel_receive(pair.b, &got, NULL);
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
    uint64_t type, tag, length;
    char bytes[MESSAGE_PIECE_MAX];
};

#define HEAD offsetof(struct forged, bytes)

static void forge(const struct pair *pair, const struct forged *forged, size_t bytes)
{
    if (send(channel_fd(pair->a), forged, HEAD + bytes, MSG_NOSIGNAL) < 0)
        exit(1);
}

/* Sends what channel_send() never would. */
static int receive_forged(const struct forged *forged, size_t bytes)
{
    struct pair pair = new_pair();
    automessage struct message got = {.fd = -1};
    forge(&pair, forged, bytes);
    int result = channel_receive(pair.b, &got, NULL);
    end_pair(&pair);
    return result;
}

/* A first piece of two, and a second that is not the other's. */
static int receive_mixed(const struct forged *second, size_t bytes)
{
    struct forged first = {MESSAGE_KILL, 7, MESSAGE_PIECE_MAX + 8, ""};
    struct pair pair = new_pair();
    automessage struct message got = {.fd = -1};
    forge(&pair, &first, MESSAGE_PIECE_MAX);
    int result = channel_receive(pair.b, &got, NULL);
    forge(&pair, second, bytes);
    if (result == 0)
        result = channel_receive(pair.b, &got, NULL);
    end_pair(&pair);
    return result;
}

static void test_forged(void)
{
    struct forged good = {MESSAGE_KILL, 0, 8, "1234567"};
    tap_is_int(receive_forged(&good, 8), 1, "a message by hand is one");
    tap_is_int(receive_forged(&good, 0), BRIG_E_INVALID, "a head alone is none");
    tap_is_int(receive_forged(&good, 7), BRIG_E_INVALID, "nor are too few bytes");
    tap_is_int(receive_forged(&good, 9), BRIG_E_INVALID, "nor too many");
    struct forged bad = good;
    bad.type = MESSAGE_TYPES_;
    tap_is_int(receive_forged(&bad, 8), BRIG_E_INVALID, "nor what has no type");
    bad.type = UINT64_C(1) << 32 | MESSAGE_KILL;
    tap_is_int(receive_forged(&bad, 8), BRIG_E_INVALID, "nor a type that is longer than ours");
    bad = good;
    bad.length = UINT64_MAX;
    tap_is_int(receive_forged(&bad, MESSAGE_PIECE_MAX), BRIG_E_INVALID,
               "nor one as long as a number can be");
    bad.length = MESSAGE_PIECE_MAX + 8;
    tap_is_int(receive_forged(&bad, 8), BRIG_E_INVALID, "nor one in pieces that are not full");
    struct forged second = {MESSAGE_KILL, 7, MESSAGE_PIECE_MAX + 8, ""};
    tap_is_int(receive_mixed(&second, 8), 1, "a second piece completes a message");
    tap_is_int(receive_mixed(&second, 7), BRIG_E_INVALID, "not if it is too short");
    tap_is_int(receive_mixed(&second, 9), BRIG_E_INVALID, "not if it is too long");
    bad = second;
    bad.tag++;
    tap_is_int(receive_mixed(&bad, 8), BRIG_E_INVALID, "not if it has another tag");
    bad = second;
    bad.length = 8;
    tap_is_int(receive_mixed(&bad, 8), BRIG_E_INVALID, "not if it is a message of its own");
}

static void test_half_a_head(void)
{
    struct pair pair = new_pair();
    struct message got;
    if (send(channel_fd(pair.a), "1234567", 8, MSG_NOSIGNAL) != 8)
        exit(1);
    tap_is_int(channel_receive(pair.b, &got, NULL), BRIG_E_INVALID, "half a head is no message");
    end_pair(&pair);
}

/* The other end is gone before the last piece. */
static void test_cut(void)
{
    struct forged first = {MESSAGE_KILL, 7, MESSAGE_BYTES_MAX, ""};
    struct pair pair = new_pair();
    struct message got;
    forge(&pair, &first, MESSAGE_PIECE_MAX);
    tap_is_int(channel_receive(pair.b, &got, NULL), 0, "a message is not there before its end");
    channel_free(pair.a);
    tap_ok(channel_receive(pair.b, &got, NULL) < 0, "nor if the end never comes");
    channel_free(pair.b);
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

/* A queue has a bound, which can be moved, and nothing of what it took is lost. */
static void test_full_queue(void)
{
    enum { LARGE = 16 << 20 };
    const unsigned fit = (unsigned)(CHANNEL_QUEUE_MAX / LARGE) - 1; /* each has a head, too */
    struct pair pair = new_pair();
    autofree char *bytes = calloc(1, LARGE);
    unsigned count = 0, got = 0;
    tap_ok(bytes &&
               channel_send(pair.a, MESSAGE_DONE, count++, bytes, CHANNEL_BUSY / 2, NULL) == 0 &&
               !channel_is_busy(pair.a),
           "a short queue is not busy");
    while (bytes && count <= 2 * fit &&
           channel_send(pair.a, MESSAGE_DONE, count, bytes, LARGE, NULL) == 0)
        count++;
    tap_is_int(count, fit + 1, "a queue takes so many messages");
    tap_ok(channel_is_busy(pair.a) && !channel_has_room(pair.a, LARGE), "then it is full");
    tap_is_int(channel_send(pair.a, MESSAGE_DONE, count, bytes, LARGE, NULL), BRIG_E_STATE,
               "which is not the error of a process that is gone");
    channel_add_room(pair.a, LARGE);
    tap_is_int(channel_send(pair.a, MESSAGE_DONE, count++, bytes, LARGE, NULL), 0,
               "there can be room for more");
    for (int result = 0; got < count && result >= 0;) {
        automessage struct message message = {.fd = -1};
        result = channel_receive(pair.b, &message, NULL);
        if (result == 0)
            result = channel_flush(pair.a, NULL);
        got += message.type == MESSAGE_DONE && message.tag == got;
    }
    tap_is_int(got, count, "all of them arrive in their order");
    end_pair(&pair);
}

/* What was sent before the end is not lost, whatever the sender has left unread. */
static void test_last_words(void)
{
    struct pair pair = new_pair();
    automessage struct message got = {.fd = -1};
    tap_ok(channel_send(pair.b, MESSAGE_KILL, 1, "x", 1, NULL) == 0 &&
               channel_send(pair.a, MESSAGE_DONE, 2, "y", 1, NULL) == 0,
           "two messages cross");
    channel_free(pair.a);
    tap_is_int(channel_receive(pair.b, &got, NULL), 1, "one arrives though its sender is gone");
    tap_ok(got.tag == 2 && got.length == 1 && got.bytes[0] == 'y', "and is whole");
    struct message none;
    tap_ok(channel_receive(pair.b, &none, NULL) < 0, "then there is nothing");
    channel_free(pair.b);
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
    test_half_a_head();
    test_cut();
    test_two_fds();
    test_many_empty();
    test_full_queue();
    test_last_words();
    test_gone();
    return tap_done();
}
