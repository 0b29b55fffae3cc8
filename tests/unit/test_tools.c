/* SPDX-License-Identifier: MIT */
/* The supervisor's side of the socket for tools, with a hostile jail at the other: as on a kernel that
 * lets descriptors through, whatever this one does. The group has no directories. */
#include "jail/nested_limits/nested_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/nested_limits/nested_limits_wire.h"
#include "tap.h"

#define BEGIN_US UINT64_C(1000000000)
#define HANG_SECONDS 20 /* then the test is killed: it hangs */

struct world {
    struct cgroup group;
    struct nested_limits *nested_limits;
    struct sockaddr_un address;
    socklen_t address_size;
    int epoll;
    uint64_t now_us;
};

static void world_begin(struct world *world, pid_t init)
{
    static const unsigned char same_as[CGROUP_TREES] = {0, 1, 2, 3, 4, 5};
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    *world = (struct world){.now_us = BEGIN_US, .address_size = sizeof world->address};
    cgroup_init(&world->group, CGROUP_NONE, same_as);
    world->epoll = epoll_create1(EPOLL_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof any.sun_family) < 0 ||
        listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&world->address, &world->address_size) < 0)
        tap_bail("cannot listen: %s", strerror(errno));
    world->nested_limits = nested_limits_new(fd, &world->group, init);
    nested_limits_watch(world->nested_limits, world->epoll, world->now_us);
}

static void world_end(struct world *world)
{
    nested_limits_free(world->nested_limits);
    (void)close(world->epoll);
}

static int connect_tools(const struct world *world)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (const struct sockaddr *)&world->address, world->address_size) < 0)
        tap_bail("cannot connect: %s", strerror(errno));
    return fd;
}

/* Serves what an event loop would be told of, until it is told of nothing. How much that was. */
static int serve(struct world *world)
{
    struct epoll_event event;
    int count = 0;
    while (epoll_wait(world->epoll, &event, 1, 0) == 1 && count < 10000) {
        (void)nested_limits_serve(world->nested_limits, event.data.fd, world->now_us);
        count++;
    }
    return count;
}

/* Some time passes. */
static int serve_later(struct world *world, uint64_t later_us)
{
    world->now_us += later_us;
    nested_limits_wake(world->nested_limits, world->now_us);
    return serve(world);
}

static void ask(int fd, enum nested_limits_type type, uint64_t token)
{
    struct nested_limits_request request = {
        .magic = NESTED_LIMITS_MAGIC, .type = type, .token = token};
    (void)send(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The error in the answer, -1 without one, -2 at the end of the connection. */
static int answer(int fd, struct nested_limits_reply *ret_reply)
{
    struct nested_limits_reply reply = {0};
    ssize_t length = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
    if (ret_reply)
        *ret_reply = reply;
    if (length == (ssize_t)sizeof reply)
        return reply.error;
    return length == 0 || (length < 0 && errno == ECONNRESET) ? -2 : -1;
}

static size_t count_fds(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* ---- requests ---- */

static void test_sizes(void)
{
    struct world world;
    char bytes[2 * sizeof(struct nested_limits_request)] = {0};
    struct nested_limits_request request = {.magic = NESTED_LIMITS_MAGIC,
                                            .type = NESTED_LIMITS_MAKE};
    memcpy(bytes, &request, sizeof request);
    world_begin(&world, getpid());
    for (int more = -1; more <= 1; more++) {
        autoclose int fd = connect_tools(&world);
        (void)send(fd, bytes, (size_t)((int)sizeof request + more), 0);
        (void)serve(&world);
        if (more == 0)
            tap_is_int(answer(fd, NULL), 0, "a request of the right size is answered");
        else /* nor closed: as long as descriptors may be in it, it is left alone */
            tap_is_int(answer(fd, NULL), -1, "one of %d more bytes is not", more);
    }
    world_end(&world);
}

static void test_join(void)
{
    struct world world;
    struct nested_limits_reply made;
    pid_t init = fork(); /* beside us, as in a jail */
    if (init == 0) {
        (void)pause();
        _exit(0);
    }
    world_begin(&world, init);
    autoclose int lease = connect_tools(&world);
    autoclose int joiner = connect_tools(&world);
    ask(lease, NESTED_LIMITS_MAKE, 0);
    (void)serve(&world);
    tap_is_int(answer(lease, &made), 0, "there is a leaf");
    tap_ok(made.token != 0, "with a token");
    ask(joiner, NESTED_LIMITS_JOIN, made.token + 1);
    (void)serve(&world);
    tap_is_int(answer(joiner, NULL), ENOENT, "another token is of no use");
    ask(lease, NESTED_LIMITS_JOIN, made.token);
    (void)serve(&world);
    tap_is_int(answer(lease, NULL), EBUSY, "who holds a leaf is not moved into it");
    ask(joiner, NESTED_LIMITS_JOIN, made.token);
    (void)serve(&world);
    tap_is_int(answer(joiner, NULL), 0, "who has the token is");
    ask(joiner, NESTED_LIMITS_JOIN, made.token);
    (void)serve(&world);
    tap_is_int(answer(joiner, NULL), ENOENT, "but once only");
    ask(lease, NESTED_LIMITS_MAKE, 0);
    (void)serve(&world);
    tap_is_int(answer(lease, NULL), EBUSY, "and there is one leaf a connection");
    world_end(&world);

    world_begin(&world, getpid());
    autoclose int other = connect_tools(&world);
    autoclose int self = connect_tools(&world);
    ask(other, NESTED_LIMITS_MAKE, 0);
    (void)serve(&world);
    (void)answer(other, &made);
    ask(self, NESTED_LIMITS_JOIN, made.token);
    (void)serve(&world);
    tap_is_int(answer(self, NULL), EPERM, "init is not moved");
    world_end(&world);
    (void)kill(init, SIGKILL);
    (void)waitpid(init, NULL, 0);
}

/* ---- descriptors ---- */

/* A TCP socket with unsent data whose close would wait for days. */
static int make_trap(int *ret_other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
        connect(fd, (struct sockaddr *)&address, size) < 0)
        tap_bail("no loopback: %s", strerror(errno));
    *ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    static const char block[65536];
    while (send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    const struct linger linger = {.l_onoff = 1, .l_linger = 1 << 20};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    return fd;
}

static void send_fd(int to, const void *bytes, size_t length, int fd)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    if (sendmsg(to, &header, MSG_NOSIGNAL) < 0)
        tap_bail("cannot send a descriptor: %s", strerror(errno));
}

/* The jail lets go of the trap: only what it sent has it now. Not by close(), which would wait. */
static void let_go(int fd)
{
    autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup3(null, fd, O_CLOEXEC) < 0) /* not the last reference: it is in the queue */
        tap_bail("dup3: %s", strerror(errno));
    (void)close(fd);
}

static void test_trap(bool served, bool empty_first, const char *what)
{
    struct world world;
    size_t fds = count_fds();
    int other = -1;
    struct nested_limits_request request = {.magic = NESTED_LIMITS_MAGIC,
                                            .type = NESTED_LIMITS_MAKE};
    world_begin(&world, getpid());
    int plain = connect_tools(&world), hostile = connect_tools(&world), trap = make_trap(&other);
    if (served)
        (void)serve(&world);
    if (empty_first) /* which looks like the end of the connection */
        (void)send(hostile, "", 0, MSG_NOSIGNAL);
    send_fd(hostile, &request, sizeof request, trap);
    let_go(trap);
    if (served) {
        ask(plain, NESTED_LIMITS_MAKE, 0);
        (void)alarm(HANG_SECONDS);
        (void)serve(&world);
        tap_is_int(answer(hostile, NULL), -1, "%s: who sends descriptors gets no answer", what);
        tap_is_int(answer(plain, NULL), 0, "%s: who does not, does", what);
        tap_is_int(serve_later(&world, 1000000), 0, "%s: and nobody is kept busy", what);
    }
    (void)alarm(HANG_SECONDS);
    world_end(&world);
    tap_ok(true, "%s: the supervisor does not hang", what);
    (void)close(plain);
    (void)close(hostile);
    (void)close(other);
    tap_is_int(count_fds(), fds, "%s: nothing stays open", what);
    while (waitpid(-1, NULL, __WALL) > 0) /* one that did not get to run before */
        ;
    (void)alarm(0);
    tap_is_int(errno, ECHILD, "%s: nobody is left behind", what);
}

/* ---- rations ---- */

static void test_flood(void)
{
    struct world world;
    int answered = 0;
    world_begin(&world, getpid());
    autoclose int fd = connect_tools(&world);
    ask(fd, NESTED_LIMITS_MAKE, 0);
    (void)serve(&world);
    tap_is_int(answer(fd, NULL), 0, "before a flood there is a leaf");
    for (int i = 0; i < 20000; i++) { /* ten seconds */
        ask(fd, NESTED_LIMITS_USAGE, 0);
        (void)serve_later(&world, 500);
        answered += answer(fd, NULL) == 0;
    }
    tap_ok(answered > 4000 && answered < 7000, "a flood is answered in part: %d of 20000",
           answered);
    tap_ok(nested_limits_due_us(world.nested_limits) > world.now_us,
           "the supervisor knows when to go on");
    while (nested_limits_due_us(world.nested_limits) != 0)
        (void)serve_later(&world, 500);
    while (answer(fd, NULL) >= 0)
        ;
    ask(fd, NESTED_LIMITS_USAGE, 0);
    (void)serve(&world);
    tap_is_int(answer(fd, NULL), 0, "and when it is over, everything is as before");
    world_end(&world);
}

static void test_many_connections(void)
{
    struct world world;
    int fds[NESTED_LIMITS_PEERS_MAX + 8], made = 0;
    world_begin(&world, getpid());
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++) {
        fds[i] = connect_tools(&world);
        ask(fds[i], NESTED_LIMITS_MAKE, 0);
    }
    for (int i = 0; i < 100; i++)
        (void)serve_later(&world, 100000);
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        made += answer(fds[i], NULL) == 0;
    tap_is_int(made, CGROUP_LEAF_MAX, "of many tools so many are bounded, and no more");
    tap_is_int(serve_later(&world, 100000), 0, "those who wait to be let in keep nobody busy");
    (void)close(fds[0]);
    (void)close(fds[NESTED_LIMITS_PEERS_MAX - 1]);
    for (int i = 0; i < 20; i++)
        (void)serve_later(&world, 100000);
    made = 0;
    for (size_t i = NESTED_LIMITS_PEERS_MAX; i < ARRAY_LENGTH(fds); i++)
        made += answer(fds[i], NULL) == 0;
    tap_is_int(made, 1, "where one has left, another is let in");
    for (size_t i = 1; i < ARRAY_LENGTH(fds); i++)
        if (i != NESTED_LIMITS_PEERS_MAX - 1)
            (void)close(fds[i]);
    world_end(&world);
}

static void test_no_descriptors(void)
{
    struct world world;
    struct rlimit before, few;
    world_begin(&world, getpid());
    autoclose int fd = connect_tools(&world);
    (void)getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)fd + 1; /* up to here all are taken */
    for (int other = 0; other < fd; other++)
        if (fcntl(other, F_GETFD) < 0)
            (void)dup3(STDERR_FILENO, other, O_CLOEXEC);
    (void)setrlimit(RLIMIT_NOFILE, &few);
    ask(fd, NESTED_LIMITS_MAKE, 0);
    tap_ok(serve(&world) < 10, "without descriptors nobody is kept busy");
    tap_ok(nested_limits_due_us(world.nested_limits) > world.now_us, "but looks again");
    (void)setrlimit(RLIMIT_NOFILE, &before);
    (void)serve_later(&world, 1000000);
    tap_is_int(answer(fd, NULL), 0, "and then lets in who waited");
    world_end(&world);
}

int main(void)
{
    test_sizes();
    test_join();
    test_trap(true, false, "a descriptor in a message");
    test_trap(true, true, "behind an empty message");
    test_trap(false, false, "before anybody has looked");
    test_flood();
    test_many_connections();
    test_no_descriptors();
    return tap_done();
}
