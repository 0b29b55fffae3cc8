/* SPDX-License-Identifier: MIT */
/* Leaves for tools, on request of the jail. */
#include "jail/nested_limits/nested_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/nested_limits/nested_limits_guard.h"
#include "jail/nested_limits/nested_limits_wire.h"

/* What the jail pays with is time: so much an answer, and so much can be saved up. To make a leaf and
 * to remove it is more work, and so is moving somebody, for which the kernel makes us wait. */
#define PRICE_US 2000
#define PRICE_LEAF_US 20000
#define SAVED_US 2000000
/* Without descriptors to accept with, the listener is not looked at for so long. */
#define ACCEPT_AGAIN_US 100000

struct nested_limits *nested_limits_new(int listener, struct cgroup *group, pid_t init)
{
    struct nested_limits *nested_limits = calloc(1, sizeof *nested_limits);
    if (!nested_limits) {
        guard_close(&listener, 1);
        return NULL;
    }
    nested_limits->listener = listener;
    nested_limits->epoll = -1;
    nested_limits->group = group;
    nested_limits->init = init;
    nested_limits->no_rights = guard_refuses_rights(listener);
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++)
        nested_limits->peers[i].fd = -1;
    return nested_limits;
}

/* ---- watching ---- */

/* A descriptor leaves the set by itself only when nobody has it any more. */
static void watch(const struct nested_limits *nested_limits, int fd, bool on, bool *watched)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (nested_limits->epoll < 0 || on == *watched)
        return;
    if (epoll_ctl(nested_limits->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event) == 0 || !on)
        *watched = on;
}

static struct nested_limits_peer *find_peer(struct nested_limits *nested_limits, int fd)
{
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++)
        if (nested_limits->peers[i].fd == fd)
            return &nested_limits->peers[i];
    return NULL;
}

/* Watches those who may be heard now, and nobody else: who is watched and not heard would be
 * reported without end. */
static void watch_all(struct nested_limits *nested_limits, uint64_t now_us)
{
    bool paid = nested_limits->paid_us <= now_us;
    if (nested_limits->accept_us <= now_us)
        nested_limits->accept_us = 0;
    nested_limits->due_us = paid ? nested_limits->accept_us : nested_limits->paid_us;
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++) {
        struct nested_limits_peer *peer = &nested_limits->peers[i];
        if (peer->fd >= 0)
            watch(nested_limits, peer->fd, paid && !peer->shut, &peer->watched);
    }
    watch(nested_limits, nested_limits->listener,
          paid && nested_limits->accept_us == 0 && find_peer(nested_limits, -1) != NULL,
          &nested_limits->listening);
}

void nested_limits_watch(struct nested_limits *nested_limits, int epoll_fd, uint64_t now_us)
{
    nested_limits->epoll = epoll_fd;
    watch_all(nested_limits, now_us);
}

uint64_t nested_limits_due_us(const struct nested_limits *nested_limits)
{
    return nested_limits->due_us;
}

void nested_limits_wake(struct nested_limits *nested_limits, uint64_t now_us)
{
    watch_all(nested_limits, now_us);
}

static void pay(struct nested_limits *nested_limits, uint64_t price_us, uint64_t now_us)
{
    if (nested_limits->paid_us + SAVED_US < now_us)
        nested_limits->paid_us = now_us - SAVED_US;
    nested_limits->paid_us += price_us;
}

/* ---- the end ---- */

static void free_leaf(struct nested_limits_peer *peer)
{
    if (!peer->leaf)
        return;
    (void)cgroup_kill(peer->leaf);
    cgroup_free(take_ptr(&peer->leaf));
    peer->token = 0;
}

/* Ends a connection: closes it, unless there may be descriptors in it; then that waits until all is
 * over. */
static void drop_peer(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                      bool is_empty)
{
    watch(nested_limits, peer->fd, false, &peer->watched);
    free_leaf(peer);
    if (!is_empty && !nested_limits->no_rights) {
        peer->shut = true;
        return;
    }
    (void)close(peer->fd);
    *peer = (struct nested_limits_peer){.fd = -1};
}

void nested_limits_free(struct nested_limits *nested_limits)
{
    if (!nested_limits)
        return;
    int fds[NESTED_LIMITS_PEERS_MAX + 1];
    size_t count = 0;
    _Static_assert(ARRAY_LENGTH(fds) <= GUARD_CLOSE_MAX, "they are closed together");
    watch(nested_limits, nested_limits->listener, false, &nested_limits->listening);
    fds[count++] = nested_limits->listener;
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++) {
        struct nested_limits_peer *peer = &nested_limits->peers[i];
        if (peer->fd < 0)
            continue;
        watch(nested_limits, peer->fd, false, &peer->watched);
        free_leaf(peer);
        fds[count++] = peer->fd;
    }
    guard_close(fds, count);
    free(nested_limits);
}

/* ---- requests ---- */

static void reply(int fd, const struct nested_limits_reply *text)
{
    (void)send(fd, text, sizeof *text, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_leaf(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                     const struct nested_limits_request *request, struct nested_limits_reply *text)
{
    struct cgroup_limits limits = {
        .memory_bytes = request->memory_bytes,
        .cpu_percent = request->cpu_percent,
        .pids = request->pids,
        .io_read_bytes = request->io_read_bytes,
        .io_write_bytes = request->io_write_bytes,
        .tcp = true,
    };
    unsigned missing = 0;
    uint64_t token = 0;
    if (peer->leaf)
        return EBUSY;
    if (getrandom(&token, sizeof token, GRND_NONBLOCK) != (ssize_t)sizeof token || token == 0)
        return EAGAIN;
    if (cgroup_new_leaf(nested_limits->group, &limits, &peer->leaf, &missing, NULL) < 0)
        return ENOSPC;
    text->missing = missing;
    text->token = peer->token = token;
    return 0;
}

static bool answer_make(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                        const struct nested_limits_request *request)
{
    struct nested_limits_reply text = {0};
    text.error = make_leaf(nested_limits, peer, request, &text);
    reply(peer->fd, &text);
    return true;
}

static bool answer_usage(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                         const struct nested_limits_request *request)
{
    (void)nested_limits, (void)request;
    struct nested_limits_reply text = {0};
    if (!peer->leaf)
        return false;
    cgroup_usage(peer->leaf, &text.usage);
    reply(peer->fd, &text);
    return true;
}

static struct nested_limits_peer *find_lease(struct nested_limits *nested_limits, uint64_t token)
{
    for (size_t i = 0; i < NESTED_LIMITS_PEERS_MAX; i++)
        if (nested_limits->peers[i].leaf && nested_limits->peers[i].token != 0 &&
            nested_limits->peers[i].token == token)
            return &nested_limits->peers[i];
    return NULL;
}

/* Moves who has connected. It must be where init is: not in a leaf, which nobody leaves, and not
 * outside. A pid is a name that another may have by the time it is used. Between the look at where
 * it is and the move that would take all pids to be given out once; if it ended in between, that is
 * at least not taken for success. */
static int join_leaf(struct nested_limits *nested_limits, const struct nested_limits_peer *peer,
                     uint64_t token)
{
    struct nested_limits_peer *lease = find_lease(nested_limits, token);
    if (!lease)
        return ENOENT;
    if (peer->leaf)
        return EBUSY;
    autoclose int pidfd = -1;
    pid_t pid = 0;
    int result = guard_peer(peer->fd, &pid, &pidfd);
    if (result < 0)
        return -result;
    if (pid == nested_limits->init || !guard_are_together(pid, nested_limits->init))
        return EPERM;
    if (!guard_is_alive(pidfd))
        return ESRCH;
    lease->token = 0;
    result = cgroup_move(lease->leaf, pid);
    if (result == 0 && !guard_is_alive(pidfd))
        result = -ESRCH;
    return -result;
}

static bool answer_join(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                        const struct nested_limits_request *request)
{
    struct nested_limits_reply text = {.error = join_leaf(nested_limits, peer, request->token)};
    reply(peer->fd, &text);
    return true;
}

/* One row a request. A handler that returns false ends the connection. */
static const struct {
    uint64_t price_us;
    bool (*answer)(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                   const struct nested_limits_request *request);
} REQUESTS[] = {
    [NESTED_LIMITS_MAKE] = {PRICE_LEAF_US, answer_make}, /* and its end */
    [NESTED_LIMITS_USAGE] = {0, answer_usage},
    [NESTED_LIMITS_JOIN] = {PRICE_LEAF_US, answer_join},
};

bool nested_limits_read_request(const void *bytes, size_t length,
                                struct nested_limits_request *ret_request)
{
    struct nested_limits_request request;
    if (length != sizeof request)
        return false;
    memcpy(&request, bytes, sizeof request);
    if (request.magic != NESTED_LIMITS_MAGIC || request.zero != 0 ||
        request.type >= ARRAY_LENGTH(REQUESTS) || !REQUESTS[request.type].answer)
        return false;
    *ret_request = request;
    return true;
}

static void serve_peer(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                       uint64_t now_us)
{
    char bytes[sizeof(struct nested_limits_request)];
    struct nested_limits_request request;
    size_t length = 0;
    enum guard_what what = guard_receive(peer->fd, bytes, sizeof bytes, &length);
    pay(nested_limits, PRICE_US, now_us);
    if (what == GUARD_NOTHING)
        return;
    if (what != GUARD_MESSAGE || !nested_limits_read_request(bytes, length, &request)) {
        drop_peer(nested_limits, peer, what == GUARD_END);
        return;
    }
    pay(nested_limits, REQUESTS[request.type].price_us, now_us);
    if (!REQUESTS[request.type].answer(nested_limits, peer, &request))
        drop_peer(nested_limits, peer, false);
}

static void accept_peer(struct nested_limits *nested_limits, uint64_t now_us)
{
    struct nested_limits_peer *peer = find_peer(nested_limits, -1);
    if (!peer)
        return;
    /* cppcheck-suppress nullPointer */
    int fd = accept4(nested_limits->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            nested_limits->accept_us = now_us + ACCEPT_AGAIN_US;
        return;
    }
    pay(nested_limits, PRICE_US, now_us);
    guard_prepare(fd);
    peer->fd = fd;
}

bool nested_limits_serve(struct nested_limits *nested_limits, int fd, uint64_t now_us)
{
    if (!nested_limits || fd < 0)
        return false;
    struct nested_limits_peer *peer = find_peer(nested_limits, fd);
    if (fd != nested_limits->listener && !peer)
        return false;
    if (nested_limits->paid_us >
        now_us) /* of several that were reported together, not all may be heard */
        ;
    else if (fd == nested_limits->listener)
        accept_peer(nested_limits, now_us);
    else if (!peer->shut)
        serve_peer(nested_limits, peer, now_us);
    watch_all(nested_limits, now_us);
    return true;
}
