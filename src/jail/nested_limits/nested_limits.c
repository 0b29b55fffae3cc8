/* SPDX-License-Identifier: MIT */
/* Creates leaf cgroups for tools, at the jail's request. */
#include "jail/nested_limits/nested_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/nested_limits/nested_limits_wire.h"
#include "jail/sys.h"

/* Requests are paid for with time: each reply has a price, and unused time can be saved up to a
 * limit. Creating and removing a leaf is more work, and so is moving a process, for which the
 * kernel blocks the supervisor. */
#define PRICE_US 2000
#define PRICE_LEAF_US 20000
#define SAVED_US 2000000
/* If accept() runs out of descriptors, the listener is not watched for this long. */
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

/* The kernel removes an fd from the epoll set only when its last copy is closed. */
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

/* Watches only the fds that may be read now: a watched fd that is not read would be reported
 * repeatedly. */
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

/* ---- closing ---- */

static void free_leaf(struct nested_limits_peer *peer)
{
    if (!peer->leaf)
        return;
    (void)cgroup_kill(peer->leaf);
    cgroup_free(take_ptr(&peer->leaf));
    peer->token = 0;
}

/* Ends a connection: closes the socket, unless its queue may hold descriptors; such a socket is
 * closed at the end. */
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

/* Moves the peer. It must be in init's cgroup: not in a leaf, which no process may leave, and not
 * outside the jail. The pid may be reused before the move; between the check of its cgroup and the
 * move that would take a wrap-around of all pids. If the peer exits in between, the move is not
 * reported as a success. */
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

/* One row per request. A handler that returns false ends the connection. */
static const struct {
    uint64_t price_us;
    bool (*answer)(struct nested_limits *nested_limits, struct nested_limits_peer *peer,
                   const struct nested_limits_request *request);
} REQUESTS[] = {
    [NESTED_LIMITS_MAKE] = {PRICE_LEAF_US, answer_make}, /* including its removal */
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
    if (nested_limits->paid_us > now_us) /* of several reported fds, not all may be read */
        ;
    else if (fd == nested_limits->listener)
        accept_peer(nested_limits, now_us);
    else if (!peer->shut)
        serve_peer(nested_limits, peer, now_us);
    watch_all(nested_limits, now_us);
    return true;
}

/* ---- sockets with a hostile peer ---- */

/* Theory of operation: a process that can send to a UNIX socket can attach descriptors, whether the
 * receiver expects them or not. The receiver's kernel drops descriptors that are not taken, and
 * dropping the last reference to a file closes it in the receiver's context. Closing a TCP socket
 * with SO_LINGER and unsent data blocks for as long as the sender has set, and no signal interrupts
 * it: so a jail could hang its supervisor.
 *
 * Since 6.16 a socket can refuse descriptors (SO_PASSRIGHTS); the sender gets EPERM. On older
 * kernels, each message is peeked at first, which drops no reference, and a message with
 * descriptors stays in the queue. The queue is freed with the socket, so the last process to close
 * the socket must be one that is about to exit: the kernel does not linger for an exiting
 * process. */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since 6.5 */
#endif

/* How long to wait for the process that closes the sockets; usually it takes much less. After that
 * it is left alone. */
#define CLOSE_WAIT_NS 1000000
#define CLOSE_WAITS 500

/* ---- messages ---- */

bool guard_refuses_rights(int listener)
{
    int taken = 1;
    socklen_t size = sizeof taken;
    return getsockopt(listener, SOL_SOCKET, GUARD_SO_PASSRIGHTS, &taken, &size) == 0 && taken == 0;
}

/* With SO_PASSCRED every message carries its sender's credentials, and only end of file has none: a
 * message can be empty. */
void guard_prepare(int fd)
{
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

/* Peeks at the first message. The control buffer has room for the credentials only: descriptors do
 * not fit, and the kernel sets MSG_CTRUNC. */
static enum guard_what look(int fd)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char space[CMSG_LEN(sizeof(struct ucred))];
    } control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_LEN(sizeof(struct ucred))};
    ssize_t length = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0) /* ECONNRESET is returned once; the queue is still there */
        return GUARD_NOTHING;
    if (header.msg_flags & MSG_CTRUNC)
        return GUARD_RIGHTS;
    return length == 0 && header.msg_controllen == 0 ? GUARD_END : GUARD_MESSAGE;
}

enum guard_what guard_receive(int fd, void *buffer, size_t size, size_t *ret_length)
{
    enum guard_what what = look(fd);
    if (what != GUARD_MESSAGE)
        return what;
    ssize_t length = recv(fd, buffer, size, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0)
        return GUARD_NOTHING;
    *ret_length = (size_t)length;
    return GUARD_MESSAGE;
}

/* ---- the peer ---- */

int guard_peer(int fd, pid_t *ret_pid, int *ret_pidfd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    int pidfd = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return -errno;
    if (cred.pid <= 0)
        return -ESRCH;
    size = sizeof pidfd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
        if (errno != ENOPROTOOPT)
            return -errno;
        /* If the peer has exited and its pid was reused, the new process's cgroup is checked like
         * any other. */
        pidfd = (int)SYS(pidfd_open, cred.pid, 0);
    }
    if (pidfd < 0)
        return pidfd;
    *ret_pid = cred.pid;
    *ret_pidfd = pidfd;
    return 0;
}

bool guard_is_alive(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 0;
}

bool guard_are_together(pid_t one, pid_t other)
{
    char path[32], first[CGROUP_TEXT_MAX], second[CGROUP_TEXT_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)one);
    int first_length = cgroup_read(AT_FDCWD, path, first, sizeof first);
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)other);
    int second_length = cgroup_read(AT_FDCWD, path, second, sizeof second);
    return first_length > 0 && first_length < CGROUP_TEXT_MAX - 1 &&
           first_length == second_length && memcmp(first, second, (size_t)first_length) == 0;
}

/* ---- closing sockets ---- */

static bool may_hold_rights(int fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int listens = 0;
    socklen_t size = sizeof listens;
    if (poll(&waiting, 1, 0) == 0) /* no connection and no message is queued */
        return false;
    (void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    return listens || look(fd) != GUARD_END;
}

static void sort(int *fds, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && fds[j - 1] > fds[j]; j--) {
            int swapped = fds[j];
            fds[j] = fds[j - 1];
            fds[j - 1] = swapped;
        }
}

/* Runs in a forked copy of this process and makes only system calls: other threads may have held
 * any lock. It keeps the sockets open and waits at `gate`. */
static __attribute__((noreturn)) void hold(int *fds, size_t count, int gate)
{
    char byte;
    int next = 0;
    fds[count++] = gate;
    sort(fds, count);
    for (size_t i = 0; i < count; i++) {
        if (fds[i] > next)
            (void)SYS(close_range, next, fds[i] - 1, 0);
        next = fds[i] + 1;
    }
    (void)SYS(close_range, next, ~0U, 0);
    while (SYS(read, gate, &byte, 1) == -EINTR)
        ;
    for (;;)
        (void)SYS(exit_group, 0);
}

static void reap_soon(pid_t pid)
{
    const struct timespec moment = {.tv_nsec = CLOSE_WAIT_NS};
    for (int i = 0; i < CLOSE_WAITS && waitpid(pid, NULL, WNOHANG | __WALL) == 0; i++)
        (void)nanosleep(&moment, NULL);
}

/* Closes the sockets while the forked process still has them open, so that its exit closes them
 * last. */
static void close_aside(int *fds, size_t count)
{
    int gate[2];
    sigset_t all, before;
    if (pipe2(gate, O_CLOEXEC) < 0)
        return; /* leave them open: they must not be closed here */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    long pid = SYS(clone, 0, 0, 0, 0, 0);
    if (pid == 0)
        hold(fds, count, gate[0]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && pid > 0; i++)
        (void)close(fds[i]);
    (void)close(gate[0]);
    (void)close(gate[1]);
    if (pid > 0)
        reap_soon((pid_t)pid);
}

void guard_close(const int *fds, size_t count)
{
    int held[GUARD_CLOSE_MAX + 1]; /* one more, for hold() */
    size_t held_count = 0;
    for (size_t i = 0; i < count; i++)
        if (held_count < GUARD_CLOSE_MAX && may_hold_rights(fds[i]))
            held[held_count++] = fds[i];
        else
            (void)close(fds[i]);
    if (held_count > 0)
        close_aside(held, held_count);
}

/* ---- leases ---- */

/* A leaf for a tool, leased from the supervisor of the surrounding jail. */

struct nested_limits_lease {
    int socket;
    uint64_t token;
};

void nested_limits_lease_free(struct nested_limits_lease *lease)
{
    if (!lease)
        return;
    (void)close(lease->socket);
    free(lease);
}

/* Sends a request and receives the reply; returns 0 or an errno. */
static int ask(struct nested_limits_lease *lease, const struct nested_limits_request *request,
               struct nested_limits_reply *ret_reply)
{
    if (send(lease->socket, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return errno;
    ssize_t length;
    do
        length = recv(lease->socket, ret_reply, sizeof *ret_reply, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno;
    return length == (ssize_t)sizeof *ret_reply ? ret_reply->error : EPROTO;
}

bool nested_limits_are_near(void)
{
    return access(NESTED_LIMITS_SOCKET, F_OK) == 0;
}

static int connect_supervisor(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = NESTED_LIMITS_SOCKET};
    if (!nested_limits_are_near()) /* the usual case */
        return -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = NESTED_LIMITS_PATIENCE_SECONDS};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int nested_limits_lease_new(const struct cgroup_limits *limits,
                            struct nested_limits_lease **ret_lease, unsigned *ret_missing,
                            struct brig_error *err)
{
    int fd = connect_supervisor();
    if (fd < 0)
        return brig_fail(err, BRIG_E_UNSUPPORTED, errno, "no supervisor of a jail answers");
    struct nested_limits_lease *lease = calloc(1, sizeof *lease);
    if (!lease) {
        (void)close(fd);
        return brig_fail_nomem(err);
    }
    lease->socket = fd;
    struct nested_limits_request request = {
        .magic = NESTED_LIMITS_MAGIC,
        .type = NESTED_LIMITS_MAKE,
        .memory_bytes = limits->memory_bytes,
        .pids = limits->pids,
        .io_read_bytes = limits->io_read_bytes,
        .io_write_bytes = limits->io_write_bytes,
        .cpu_percent = limits->cpu_percent,
    };
    struct nested_limits_reply text = {0};
    int error = ask(lease, &request, &text);
    if (error != 0) {
        nested_limits_lease_free(lease);
        return brig_fail(err, BRIG_E_UNSUPPORTED, error,
                         "the supervisor of this jail gives no limits to a tool");
    }
    lease->token = text.token;
    *ret_missing = text.missing;
    *ret_lease = lease;
    return 0;
}

uint64_t nested_limits_lease_token(const struct nested_limits_lease *lease)
{
    return lease->token;
}

void nested_limits_lease_usage(struct nested_limits_lease *lease, struct cgroup_usage *ret_usage)
{
    struct nested_limits_request request = {.magic = NESTED_LIMITS_MAGIC,
                                            .type = NESTED_LIMITS_USAGE};
    struct nested_limits_reply text = {0};
    *ret_usage = ask(lease, &request, &text) == 0 ? text.usage : (struct cgroup_usage){0};
}
