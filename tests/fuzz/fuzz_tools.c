/* SPDX-License-Identifier: MIT */
/* Requests for tools, as a hostile jail could send them: the input is what its connections do, one
 * after the other, to a supervisor whose group has no directories. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/nested_limits/nested_limits.h"
#include "jail/nested_limits/nested_limits_wire.h"

#define CLIENTS_MAX 80 /* more than are served */
#define STEPS_MAX 256
#define ROUNDS_MAX 2000 /* what can be saved up, in the cheapest messages, and some */
/* As tools.c has them: the prices of a leaf and of a message, and what can be saved up. */
#define LEAF_US 20000
#define SAVED_US 2000000

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* ---- the input ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take_byte(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static size_t take_bytes(struct input *input, void *buffer, size_t size)
{
    size_t count = size < input->left ? size : input->left;
    memcpy(buffer, input->at, count);
    input->at += count;
    input->left -= count;
    return count;
}

/* ---- the world ---- */

struct world {
    struct cgroup group;
    struct nested_limits *nested_limits;
    struct sockaddr_un address;
    socklen_t address_size;
    int epoll;
    int clients[CLIENTS_MAX];
    uint64_t token; /* the last that was given out */
    uint64_t begin_us, now_us;
};

/* An address the kernel chooses, in no directory. */
static void world_begin(struct world *world)
{
    static const unsigned char same_as[CGROUP_TREES] = {0, 1, 2, 3, 4, 5};
    *world = (struct world){.now_us = UINT64_C(1000000000)};
    world->begin_us = world->now_us;
    cgroup_init(&world->group, CGROUP_NONE, same_as);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        world->clients[i] = -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    world->address_size = sizeof world->address;
    expect(fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any.sun_family) == 0 &&
           listen(fd, 16) == 0 &&
           getsockname(fd, (struct sockaddr *)&world->address, &world->address_size) == 0);
    world->nested_limits = nested_limits_new(fd, &world->group, getppid());
    world->epoll = epoll_create1(EPOLL_CLOEXEC);
    expect(world->nested_limits != NULL && world->epoll >= 0);
    nested_limits_watch(world->nested_limits, world->epoll, world->now_us);
}

static void check(const struct world *world)
{
    unsigned leaves = 0;
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++) {
        const struct nested_limits_peer *peer = &world->nested_limits->peers[i];
        expect(peer->fd >= 0 || (!peer->leaf && !peer->watched && !peer->shut));
        expect(peer->token == 0 || peer->leaf);
        expect(!peer->shut || (!peer->leaf && !peer->watched));
        leaves += peer->leaf != NULL;
    }
    expect(world->group.leaf_count == leaves && leaves <= CGROUP_LEAF_MAX);
    uint64_t rations = (SAVED_US + world->now_us - world->begin_us) / LEAF_US + 1;
    expect(world->group.leaf_next <= rations);
    expect(world->nested_limits->paid_us <= world->now_us ||
           nested_limits_due_us(world->nested_limits) > world->now_us);
}

/* As an event loop would, until there is nothing to do. */
static void serve(struct world *world)
{
    struct epoll_event event;
    int rounds = 0;
    while (epoll_wait(world->epoll, &event, 1, 0) == 1) {
        expect(nested_limits_serve(world->nested_limits, event.data.fd, world->now_us));
        expect(rounds++ < ROUNDS_MAX); /* or a jail could keep its supervisor busy */
        check(world);
    }
}

static void world_end(struct world *world)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (world->clients[i] >= 0)
            (void)close(world->clients[i]);
    expect(!nested_limits_serve(world->nested_limits, -1, world->now_us));
    nested_limits_free(world->nested_limits);
    (void)close(world->epoll);
    expect(world->group.leaf_count == 0);
}

/* ---- what a jail does ---- */

static void client_connect(struct world *world, int *client)
{
    if (*client >= 0)
        return;
    *client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    expect(*client >= 0);
    const struct sockaddr *address = (const struct sockaddr *)&world->address;
    if (connect(*client, address, world->address_size) < 0) { /* too many wait to be accepted */
        expect(errno == EAGAIN);
        (void)close(*client);
        *client = -1;
    }
}

static void client_close(int *client)
{
    if (*client >= 0)
        (void)close(*client);
    *client = -1;
}

/* Held against a second reading, byte by byte. */
static void check_reading(const void *bytes, size_t length)
{
    struct nested_limits_request request, seen = {0};
    memcpy(&seen, bytes, length < sizeof seen ? length : sizeof seen);
    bool is_one = length == sizeof seen && seen.magic == NESTED_LIMITS_MAGIC && seen.zero == 0 &&
                  (seen.type == NESTED_LIMITS_MAKE || seen.type == NESTED_LIMITS_USAGE ||
                   seen.type == NESTED_LIMITS_JOIN);
    expect(nested_limits_read_request(bytes, length, &request) == is_one);
    expect(!is_one || memcmp(&request, &seen, sizeof seen) == 0);
}

static void client_send(int client, const void *bytes, size_t length)
{
    check_reading(bytes, length);
    if (client >= 0)
        (void)send(client, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A request that is right, but for what the input says. */
static void client_ask(int client, struct input *input, enum nested_limits_type type)
{
    struct nested_limits_request request = {.magic = NESTED_LIMITS_MAGIC, .type = type};
    (void)take_bytes(input, &request.memory_bytes, sizeof request.memory_bytes);
    (void)take_bytes(input, &request.pids, sizeof request.pids);
    (void)take_bytes(input, &request.cpu_percent, sizeof request.cpu_percent);
    client_send(client, &request, sizeof request);
}

static void client_join(int client, uint64_t token)
{
    struct nested_limits_request request = {
        .magic = NESTED_LIMITS_MAGIC, .type = NESTED_LIMITS_JOIN, .token = token};
    client_send(client, &request, sizeof request);
}

static void client_send_any(int client, struct input *input)
{
    char bytes[2 * sizeof(struct nested_limits_request)];
    size_t length = take_bytes(input, bytes, take_byte(input) % sizeof bytes);
    client_send(client, bytes, length);
}

/* With a descriptor nobody asked for. */
static void client_send_fd(int client, struct input *input)
{
    struct nested_limits_request request = {.magic = NESTED_LIMITS_MAGIC, .type = take_byte(input)};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &client, sizeof client);
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    if (client >= 0)
        (void)sendmsg(client, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void client_receive(struct world *world, int client)
{
    struct nested_limits_reply text;
    ssize_t length = client < 0 ? 0 : recv(client, &text, sizeof text, MSG_DONTWAIT | MSG_TRUNC);
    if (length <= 0)
        return;
    expect(length == (ssize_t)sizeof text);
    static const int errors[] = {0, EBUSY, EAGAIN, ENOSPC, ENOENT, EPERM, ESRCH};
    bool known = false;
    for (size_t i = 0; i < ARRAY_LENGTH(errors); i++)
        known = known || text.error == errors[i];
    expect(known && (text.error == 0 || (text.missing == 0 && text.token == 0)));
    if (text.token != 0)
        world->token = text.token;
}

/* As many connections as can be had, each with a leaf. */
static void be_greedy(struct world *world, struct input *input)
{
    size_t count = take_byte(input) % (CLIENTS_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        client_connect(world, &world->clients[i]);
        client_ask(world->clients[i], input, NESTED_LIMITS_MAKE);
        serve(world);
    }
}

static void step(struct world *world, struct input *input)
{
    enum {
        CONNECT,
        CLOSE,
        MAKE,
        USAGE,
        JOIN,
        SEND,
        SEND_FD,
        RECEIVE,
        WAIT,
        HALF_CLOSE,
        GREED,
        KINDS
    };
    uint8_t what = take_byte(input);
    int *client = &world->clients[take_byte(input) % CLIENTS_MAX];
    switch (what % KINDS) {
    case CONNECT:
        client_connect(world, client);
        break;
    case CLOSE:
        client_close(client);
        break;
    case MAKE:
        client_ask(*client, input, NESTED_LIMITS_MAKE);
        break;
    case USAGE:
        client_ask(*client, input, NESTED_LIMITS_USAGE);
        break;
    case JOIN:
        client_join(*client, world->token ^ (take_byte(input) & 1));
        break;
    case SEND:
        client_send_any(*client, input);
        break;
    case SEND_FD:
        client_send_fd(*client, input);
        break;
    case RECEIVE:
        client_receive(world, *client);
        break;
    case WAIT:
        world->now_us += (uint64_t)take_byte(input) * (LEAF_US / 8);
        nested_limits_wake(world->nested_limits, world->now_us);
        break;
    case HALF_CLOSE:
        if (*client >= 0)
            (void)shutdown(*client, SHUT_WR);
        break;
    case GREED:
        be_greedy(world, input);
        break;
    default:
        break;
    }
    if (what & 0x80) /* else more comes before the supervisor looks */
        serve(world);
}

/* The lowest number that is free: of an fd that was left open it would be another. */
static int lowest_free(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    expect(fd >= 0);
    (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {size > 0 ? data : (const uint8_t *)"", size};
    struct world world;
    int lowest = lowest_free();
    world_begin(&world);
    for (int i = 0; i < STEPS_MAX && input.left > 0; i++)
        step(&world, &input);
    serve(&world);
    world_end(&world);
    expect(lowest_free() == lowest);
    return 0;
}
