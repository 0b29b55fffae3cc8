/* SPDX-License-Identifier: MIT */
/* Leaves for tools, on request of the jail. */
#include "jail/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "jail/tools_wire.h"

/* One leaf in so long, with so many saved up: a jail must not keep its supervisor busy. */
#define RATION_US 50000
#define RATION_SAVED 40

struct tools *tools_new(int listener, struct cgroup *group)
{
    struct tools *tools = calloc(1, sizeof *tools);
    if (!tools) {
        (void)close(listener);
        return NULL;
    }
    tools->listener = listener;
    tools->group = group;
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++)
        tools->peers[i].fd = -1;
    return tools;
}

static void drop_peer(struct tools_peer *peer)
{
    (void)close(peer->fd);
    peer->fd = -1;
    if (!peer->leaf)
        return;
    (void)cgroup_kill(peer->leaf);
    cgroup_free(peer->leaf);
    peer->leaf = NULL;
}

void tools_free(struct tools *tools)
{
    if (!tools)
        return;
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++)
        if (tools->peers[i].fd >= 0)
            drop_peer(&tools->peers[i]);
    (void)close(tools->listener);
    free(tools);
}

/* ---- requests ---- */

/* The fds stay ours; sending copies them. */
static void reply(int fd, const struct tools_reply *text, const int *fds, size_t count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = sizeof *text};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(TOOLS_FDS_MAX * sizeof(int))];
    } control = {0};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    (void)sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool take_ration(struct tools *tools, uint64_t now_us)
{
    uint64_t saved = (uint64_t)RATION_SAVED * RATION_US;
    if (tools->ration_us + saved < now_us)
        tools->ration_us = now_us - saved;
    if (tools->ration_us > now_us)
        return false;
    tools->ration_us += RATION_US;
    return true;
}

static int make_leaf(struct tools *tools, struct tools_peer *peer,
                     const struct tools_request *request, uint64_t now_us, uint32_t *ret_missing)
{
    if (peer->leaf)
        return EBUSY;
    if (!take_ration(tools, now_us))
        return EAGAIN;
    struct cgroup_limits limits = {
        .memory_bytes = request->memory_bytes,
        .cpu_percent = request->cpu_percent,
        .pids = request->pids,
        .io_read_bytes = request->io_read_bytes,
        .io_write_bytes = request->io_write_bytes,
    };
    unsigned missing = 0;
    if (cgroup_new_leaf(tools->group, &limits, &peer->leaf, &missing, NULL) < 0)
        return ENOSPC;
    *ret_missing = missing;
    return 0;
}

static void answer_make(struct tools *tools, struct tools_peer *peer,
                        const struct tools_request *request, uint64_t now_us)
{
    struct tools_reply text = {0};
    text.error = make_leaf(tools, peer, request, now_us, &text.missing);
    int fds[TOOLS_FDS_MAX];
    size_t count = 0;
    autoclose int procs = -1;
    if (text.error == 0) {
        count = cgroup_join_fds(peer->leaf, fds);
        procs = cgroup_open_procs(peer->leaf);
        if (procs >= 0)
            fds[count++] = procs;
    }
    reply(peer->fd, &text, fds, count);
}

/* False ends the connection. */
static bool serve_peer(struct tools *tools, struct tools_peer *peer, uint64_t now_us)
{
    struct tools_request request;
    ssize_t length = recv(peer->fd, &request, sizeof request, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (length != (ssize_t)sizeof request || request.magic != TOOLS_MAGIC || request.zero != 0)
        return false;
    if (request.type == TOOLS_MAKE) {
        answer_make(tools, peer, &request, now_us);
        return true;
    }
    if (request.type != TOOLS_USAGE || !peer->leaf)
        return false;
    struct tools_reply text = {0};
    cgroup_usage(peer->leaf, &text.usage);
    reply(peer->fd, &text, NULL, 0);
    return true;
}

static int accept_peer(struct tools *tools)
{
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    int fd =
        accept4(tools->listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++) {
        if (tools->peers[i].fd >= 0)
            continue;
        tools->peers[i].fd = fd;
        return fd;
    }
    (void)close(fd); /* too many at a time */
    return -1;
}

bool tools_serve(struct tools *tools, int fd, uint64_t now_us, int *ret_new_fd)
{
    *ret_new_fd = -1;
    if (!tools)
        return false;
    if (fd == tools->listener) {
        *ret_new_fd = accept_peer(tools);
        return true;
    }
    for (size_t i = 0; i < TOOLS_PEERS_MAX; i++) {
        struct tools_peer *peer = &tools->peers[i];
        if (peer->fd != fd || fd < 0)
            continue;
        if (!serve_peer(tools, peer, now_us))
            drop_peer(peer);
        return true;
    }
    return false;
}
