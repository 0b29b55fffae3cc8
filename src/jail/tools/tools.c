/* SPDX-License-Identifier: MIT */
/* Leaves for tools, on request of the jail. */
#include "jail/tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "jail/tools/tools_guard.h"
#include "jail/tools/tools_wire.h"

/* What the jail pays with is time: so much an answer, and so much can be saved up. To make a leaf and
 * to remove it is more work, and so is moving somebody, for which the kernel makes us wait. */
#define PRICE_US 2000
#define PRICE_LEAF_US 20000
#define SAVED_US 2000000
/* Without descriptors to accept with, the listener is not looked at for so long. */
#define ACCEPT_AGAIN_US 100000

struct tools *tools_new(int listener, struct cgroup *group, pid_t init)
{
    struct tools *tools = calloc(1, sizeof *tools);
    if (!tools) {
        guard_close(&listener, 1);
        return NULL;
    }
    tools->listener = listener;
    tools->epoll = -1;
    tools->group = group;
    tools->init = init;
    tools->no_rights = guard_refuses_rights(listener);
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++)
        tools->peers[i].fd = -1;
    return tools;
}

/* ---- watching ---- */

/* A descriptor leaves the set by itself only when nobody has it any more. */
static void watch(const struct tools *tools, int fd, bool on, bool *watched)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (tools->epoll < 0 || on == *watched)
        return;
    if (epoll_ctl(tools->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event) == 0 || !on)
        *watched = on;
}

static struct tools_peer *find_peer(struct tools *tools, int fd)
{
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++)
        if (tools->peers[i].fd == fd)
            return &tools->peers[i];
    return NULL;
}

/* Watches those who may be heard now, and nobody else: who is watched and not heard would be
 * reported without end. */
static void watch_all(struct tools *tools, uint64_t now_us)
{
    bool paid = tools->paid_us <= now_us;
    if (tools->accept_us <= now_us)
        tools->accept_us = 0;
    tools->due_us = paid ? tools->accept_us : tools->paid_us;
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++) {
        struct tools_peer *peer = &tools->peers[i];
        if (peer->fd >= 0)
            watch(tools, peer->fd, paid && !peer->shut, &peer->watched);
    }
    watch(tools, tools->listener, paid && tools->accept_us == 0 && find_peer(tools, -1) != NULL,
          &tools->listening);
}

void tools_watch(struct tools *tools, int epoll_fd, uint64_t now_us)
{
    tools->epoll = epoll_fd;
    watch_all(tools, now_us);
}

uint64_t tools_due_us(const struct tools *tools)
{
    return tools->due_us;
}

void tools_wake(struct tools *tools, uint64_t now_us)
{
    watch_all(tools, now_us);
}

static void pay(struct tools *tools, uint64_t price_us, uint64_t now_us)
{
    if (tools->paid_us + SAVED_US < now_us)
        tools->paid_us = now_us - SAVED_US;
    tools->paid_us += price_us;
}

/* ---- the end ---- */

static void free_leaf(struct tools_peer *peer)
{
    if (!peer->leaf)
        return;
    (void)cgroup_kill(peer->leaf);
    cgroup_free(take_ptr(&peer->leaf));
    peer->token = 0;
}

/* Ends a connection: closes it, unless there may be descriptors in it; then that waits until all is
 * over. */
static void drop_peer(struct tools *tools, struct tools_peer *peer, bool is_empty)
{
    watch(tools, peer->fd, false, &peer->watched);
    free_leaf(peer);
    if (!is_empty && !tools->no_rights) {
        peer->shut = true;
        return;
    }
    (void)close(peer->fd);
    *peer = (struct tools_peer){.fd = -1};
}

void tools_free(struct tools *tools)
{
    if (!tools)
        return;
    int fds[TOOLS_PEERS_MAX + 1];
    size_t count = 0;
    _Static_assert(ARRAY_LENGTH(fds) <= GUARD_CLOSE_MAX, "they are closed together");
    watch(tools, tools->listener, false, &tools->listening);
    fds[count++] = tools->listener;
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++) {
        struct tools_peer *peer = &tools->peers[i];
        if (peer->fd < 0)
            continue;
        watch(tools, peer->fd, false, &peer->watched);
        free_leaf(peer);
        fds[count++] = peer->fd;
    }
    guard_close(fds, count);
    free(tools);
}

/* ---- requests ---- */

static void reply(int fd, const struct tools_reply *text)
{
    (void)send(fd, text, sizeof *text, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_leaf(struct tools *tools, struct tools_peer *peer,
                     const struct tools_request *request, struct tools_reply *text)
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
    if (cgroup_new_leaf(tools->group, &limits, &peer->leaf, &missing, NULL) < 0)
        return ENOSPC;
    text->missing = missing;
    text->token = peer->token = token;
    return 0;
}

static bool answer_make(struct tools *tools, struct tools_peer *peer,
                        const struct tools_request *request)
{
    struct tools_reply text = {0};
    text.error = make_leaf(tools, peer, request, &text);
    reply(peer->fd, &text);
    return true;
}

static bool answer_usage(struct tools *tools, struct tools_peer *peer,
                         const struct tools_request *request)
{
    (void)tools, (void)request;
    struct tools_reply text = {0};
    if (!peer->leaf)
        return false;
    cgroup_usage(peer->leaf, &text.usage);
    reply(peer->fd, &text);
    return true;
}

static struct tools_peer *find_lease(struct tools *tools, uint64_t token)
{
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++)
        if (tools->peers[i].leaf && tools->peers[i].token != 0 && tools->peers[i].token == token)
            return &tools->peers[i];
    return NULL;
}

/* Moves who has connected. It must be where init is: not in a leaf, which nobody leaves, and not
 * outside. A pid is a name that another may have by the time it is used. Between the look at where
 * it is and the move that would take all pids to be given out once; if it ended in between, that is
 * at least not taken for success. */
static int join_leaf(struct tools *tools, const struct tools_peer *peer, uint64_t token)
{
    struct tools_peer *lease = find_lease(tools, token);
    if (!lease)
        return ENOENT;
    if (peer->leaf)
        return EBUSY;
    autoclose int pidfd = -1;
    pid_t pid = 0;
    int result = guard_peer(peer->fd, &pid, &pidfd);
    if (result < 0)
        return -result;
    if (pid == tools->init || !guard_are_together(pid, tools->init))
        return EPERM;
    if (!guard_is_alive(pidfd))
        return ESRCH;
    lease->token = 0;
    result = cgroup_move(lease->leaf, pid);
    if (result == 0 && !guard_is_alive(pidfd))
        result = -ESRCH;
    return -result;
}

static bool answer_join(struct tools *tools, struct tools_peer *peer,
                        const struct tools_request *request)
{
    struct tools_reply text = {.error = join_leaf(tools, peer, request->token)};
    reply(peer->fd, &text);
    return true;
}

/* One row a request. A handler that returns false ends the connection. */
static const struct {
    uint64_t price_us;
    bool (*answer)(struct tools *tools, struct tools_peer *peer,
                   const struct tools_request *request);
} REQUESTS[] = {
    [TOOLS_MAKE] = {PRICE_LEAF_US, answer_make}, /* and its end */
    [TOOLS_USAGE] = {0, answer_usage},
    [TOOLS_JOIN] = {PRICE_LEAF_US, answer_join},
};

bool tools_read_request(const void *bytes, size_t length, struct tools_request *ret_request)
{
    struct tools_request request;
    if (length != sizeof request)
        return false;
    memcpy(&request, bytes, sizeof request);
    if (request.magic != TOOLS_MAGIC || request.zero != 0 ||
        request.type >= ARRAY_LENGTH(REQUESTS) || !REQUESTS[request.type].answer)
        return false;
    *ret_request = request;
    return true;
}

static void serve_peer(struct tools *tools, struct tools_peer *peer, uint64_t now_us)
{
    char bytes[sizeof(struct tools_request)];
    struct tools_request request;
    size_t length = 0;
    enum guard_what what = guard_receive(peer->fd, bytes, sizeof bytes, &length);
    pay(tools, PRICE_US, now_us);
    if (what == GUARD_NOTHING)
        return;
    if (what != GUARD_MESSAGE || !tools_read_request(bytes, length, &request)) {
        drop_peer(tools, peer, what == GUARD_END);
        return;
    }
    pay(tools, REQUESTS[request.type].price_us, now_us);
    if (!REQUESTS[request.type].answer(tools, peer, &request))
        drop_peer(tools, peer, false);
}

static void accept_peer(struct tools *tools, uint64_t now_us)
{
    struct tools_peer *peer = find_peer(tools, -1);
    if (!peer)
        return;
    /* cppcheck-suppress nullPointer */
    int fd = accept4(tools->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            tools->accept_us = now_us + ACCEPT_AGAIN_US;
        return;
    }
    pay(tools, PRICE_US, now_us);
    guard_prepare(fd);
    peer->fd = fd;
}

bool tools_serve(struct tools *tools, int fd, uint64_t now_us)
{
    if (!tools || fd < 0)
        return false;
    struct tools_peer *peer = find_peer(tools, fd);
    if (fd != tools->listener && !peer)
        return false;
    if (tools->paid_us > now_us) /* of several that were reported together, not all may be heard */
        ;
    else if (fd == tools->listener)
        accept_peer(tools, now_us);
    else if (!peer->shut)
        serve_peer(tools, peer, now_us);
    watch_all(tools, now_us);
    return true;
}
