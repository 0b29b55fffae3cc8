/* SPDX-License-Identifier: MIT */
/* The holder of a jail: a process that keeps its mounts and hands out clones of them. It runs as
 * the user, with an empty environment, and never runs code of a jail. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "home/client.h"
#include "home/holder.h"
#include "home/mounts.h"
#include "home/storage.h"

#define LAST_WORDS 8 /* messages of a closed connection that are read at a time */
/* How long the holder, and with it the jail's /tmp, stays after the last run. */
#define LINGER_MS (60 * 60 * 1000)

#define OVERFLOW_UID 65534
#define BUSY_MS 50
#define BLIND_MS 2000

/* ---- requests ---- */

static void given_done(struct holder_given *given)
{
    for (size_t i = 0; i < HOME_GIVEN_COUNT; i++)
        close_fd(&given->fds[i]);
}

const char *holder_next_text(const struct home_message *request, size_t *at)
{
    if (*at >= request->head.length)
        return NULL;
    const char *text = request->text + *at;
    *at += strlen(text) + 1;
    return text;
}

/* ---- answers ---- */

static void send_reply(int socket, const struct home_reply *reply, const int *fds, size_t count)
{
    const struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply};
    (void)fdpass_send(socket, &part, 1, fds, count, MSG_DONTWAIT);
}

static void leave(struct holder *holder, int status)
{
    (void)unlinkat(holder->sockets, holder->socket_name, 0);
    mounts_end(); /* before the lock is released: the next holder may mount the same directories */
    _exit(status);
}

static void join(struct holder *holder, struct holder_run *run, struct home_message *request,
                 const struct holder_given *given)
{
    struct home_reply reply = {0};
    struct brig_error err = {0};
    struct holder_answer answer = {0};
    bool overlay = request->head.kind == POLICY_HOME_OVERLAY;
    int fds[HOME_FD_COUNT] = {-1, -1, -1, -1, -1, holder->lock};
    run->has_overlay = overlay;
    int status = holder_take_points(run, request, &err);
    if (status == 0)
        status = overlay ? holder_need_overlay(holder, request, given, &answer, &err)
                         : holder_need_home(holder, request, given, &answer.created, &err);
    if (status == 0)
        status = holder_pin(holder, run, &err);
    const enum mounts_part wanted[] = {
        [HOME_FD_HOME] = overlay ? MOUNTS_OVERLAY : MOUNTS_PRIVATE_HOME,
        [HOME_FD_TMP] = MOUNTS_TMP,
        [HOME_FD_VAR_TMP] = MOUNTS_TMP,
        [HOME_FD_SHM] = MOUNTS_SHM,
        [HOME_FD_RUN] = MOUNTS_RUN,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wanted) && status == 0; i++) {
        fds[i] = mounts_clone(wanted[i], &err);
        status = fds[i] < 0 ? fds[i] : 0;
    }
    if (status == BRIG_E_STATE && holder->run_count == 1)
        leave(holder, 0); /* it cannot be mounted any more: the run starts another holder */
    if (status == 0)
        holder_limit_disk(holder, run, &request->head, &reply);
    run->joined = status == 0;
    reply.code = status;
    reply.created = answer.created;
    reply.sys_errno = err.sys_errno;
    memcpy(reply.message, status < 0 ? err.message : answer.notice, sizeof reply.message);
    send_reply(run->socket, &reply, fds, status == 0 ? HOME_FD_COUNT : 0);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++)
        close_fd(&fds[i]);
    if (status == 0)
        mounts_let_go(); /* after the answer: unmounting takes the kernel a while */
    if (status == 0 && overlay && answer.news) /* the run need not wait for this either */
        overlay_masks_watch(&holder->masks);
    else if (status == 0 && overlay && holder->masks.watch.blind)
        overlay_masks_refresh(&holder->masks);
}

static void list(const struct holder *holder, const struct holder_run *asking,
                 struct home_reply *reply)
{
    for (size_t i = 0; i < holder->run_count; i++)
        if (holder->runs[i].socket != asking->socket && !holder->runs[i].unwelcome &&
            reply->pid_count < HOME_PIDS_MAX)
            reply->pids[reply->pid_count++] = holder->runs[i].pid;
}

static ssize_t receive(int socket, struct home_message *request, struct holder_given *given)
{
    const struct iovec part = {.iov_base = request, .iov_len = sizeof *request - 1};
    size_t count = HOME_GIVEN_COUNT;
    return fdpass_receive(socket, &part, 1, given->fds, &count, MSG_DONTWAIT);
}

/* Serves one request; false when the connection is to be closed. */
static bool serve(struct holder *holder, struct holder_run *run)
{
    static struct home_message request; /* too large for the stack */
    __attribute__((cleanup(given_done))) struct holder_given given = {
        {[0 ... HOME_GIVEN_COUNT - 1] = -1}, run->pid};
    ssize_t length = receive(run->socket, &request, &given);
    if (length < 0)
        return length == -EAGAIN;
    if (length < (ssize_t)sizeof request.head || request.head.version != HOME_WIRE_VERSION ||
        request.head.length != (size_t)length - sizeof request.head)
        return false;
    request.text[request.head.length] = 0;
    struct home_reply reply = {0};
    struct brig_error err = {0};
    if (run->unwelcome) {
        reply.code = BRIG_E_STATE;
        (void)snprintf(reply.message, sizeof reply.message,
                       "the jail '%s' is held outside of this container or jail, and cannot be "
                       "joined from here",
                       holder->name);
        send_reply(run->socket, &reply, NULL, 0);
        return false;
    }
    switch ((enum home_op)request.head.op) {
    case HOME_JOIN:
        join(holder, run, &request, &given);
        return true;
    case HOME_LIST:
        list(holder, run, &reply);
        break;
    case HOME_STOP:
        list(holder, run, &reply);
        if (reply.pid_count > 0) {
            reply.code = BRIG_E_STATE;
            (void)snprintf(reply.message, sizeof reply.message,
                           "the jail '%s' is in use by process %d%s", holder->name, reply.pids[0],
                           reply.pid_count > 1 ? " and others" : "");
        }
        break;
    case HOME_MASK:
        reply.code = holder_mask(holder, run, &request, &given, &reply.told, &err);
        memcpy(reply.message, err.message, sizeof reply.message);
        break;
    }
    send_reply(run->socket, &reply, NULL, 0);
    if (request.head.op == HOME_STOP && reply.code == 0)
        leave(holder, 0);
    return true;
}

/* ---- connections ---- */

/* Whether to accept a peer. The first run started this holder, and its socket is a socketpair. */
static bool is_welcome(int socket, bool first, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return first;
    *ret_pid = peer.pid;
    if (first)
        return true;
    /* Root, acting for the user, has the overflow uid in our user namespace. No other user can
     * connect, because the socket is in a directory of the user with mode 0700. */
    return peer.pid > 0 &&
           (peer.uid == OVERFLOW_UID || (peer.uid == geteuid() && !talk_is_nested(peer.pid)));
}

/* An unwelcome peer gets its refusal as the answer to its first request: if the socket were closed
 * with unread data, the peer could not read the refusal. */
static void add_run(struct holder *holder, int socket, bool first)
{
    pid_t pid = 0;
    bool welcome = is_welcome(socket, first, &pid);
    if (holder->run_count == HOLDER_RUNS_MAX)
        (void)close(socket);
    else
        holder->runs[holder->run_count++] =
            (struct holder_run){.socket = socket, .pid = pid, .unwelcome = !welcome};
}

static void accept_run(struct holder *holder)
{
    /* cppcheck-suppress nullPointer */
    int socket = accept4(holder->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0)
        add_run(holder, socket, false);
    else if (errno == EMFILE || errno == ENFILE) /* wait until a run ends */
        (void)nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
}

static void drop_run(struct holder *holder, size_t which)
{
    (void)close(holder->runs[which].socket);
    free(holder->runs[which].mount_points);
    holder->runs[which] = holder->runs[--holder->run_count];
    holder_unpin(holder);
    holder_relax_disk(holder);
}

/* The timeout of poll(). */
static int patience_ms(const struct holder *holder)
{
    if (holder->run_count == 0)
        return LINGER_MS;
    return holder->masks.watch.blind ? BLIND_MS : -1;
}

/* Serves the connections that were closed by the peer, or the others. Iterates backwards, because
 * drop_run() moves the last run to index i. */
static void serve_some(struct holder *holder, struct pollfd *fds, bool gone)
{
    for (size_t i = holder->run_count; i-- > 0;) {
        short events = fds[i + 1].revents;
        if (events == 0 || ((events & POLLHUP) != 0) != gone)
            continue;
        bool stays = (gone || events & POLLIN) && serve(holder, &holder->runs[i]);
        for (int more = 0; gone && stays && more < LAST_WORDS; more++)
            stays = serve(holder, &holder->runs[i]);
        if (stays)
            continue;
        fds[i + 1] = fds[holder->run_count];
        drop_run(holder, i);
    }
}

static __attribute__((noreturn)) void serve_all(struct holder *holder)
{
    static struct pollfd fds[HOLDER_RUNS_MAX + 2];
    for (;;) {
        bool has_any = holder->has_overlay || holder->has_home;
        if (holder->run_count == 0 && (!has_any || mounts_hold_disks()))
            leave(holder, 0); /* nothing was requested, or the disks must be released */
        size_t count = holder->run_count, events = count + 1;
        fds[0] = (struct pollfd){.fd = holder->listener, .events = POLLIN};
        for (size_t i = 0; i < count; i++) /* joined runs send only last messages, which can wait */
            fds[i + 1] = (struct pollfd){.fd = holder->runs[i].socket,
                                         .events = holder->runs[i].joined ? 0 : POLLIN};
        fds[events] =
            (struct pollfd){.fd = count > 0 ? holder->masks.watch.fd : -1, .events = POLLIN};
        int ready = poll(fds, count + 2, patience_ms(holder));
        if ((ready == 0 && count == 0) || (ready < 0 && errno != EINTR))
            leave(holder, 0);
        (void)mounts_have_host(); /* switches to another /proc if the host's root is gone */
        if (ready == 0)
            overlay_masks_refresh(&holder->masks);
        if (fds[events].revents & POLLIN) /* first, so that new runs get the masks */
            overlay_masks_process(&holder->masks);
        /* Closed connections first: a run that joins now may then be the only one, and get an
         * overlay with only its masks. */
        serve_some(holder, fds, true);
        serve_some(holder, fds, false);
        if (fds[0].revents & POLLIN)
            accept_run(holder);
    }
}

/* ---- beginning ---- */

/* Takes the lock in the storage, next to the changes, because the directory of sockets may be
 * another one later. */
static int take_lock(struct holder *holder, int storage, struct brig_error *err)
{
    char name[STORAGE_KEY_MAX + 8];
    (void)snprintf(name, sizeof name, "%s.lock", storage >= 0 ? holder->name : holder->key);
    holder->lock = openat(storage >= 0 ? storage : holder->sockets, name,
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (holder->lock < 0) {
        (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s' in the directory of jails",
                        name);
        return brig_advise(err, BRIG_E_SETUP,
                           "Keep them where you can write, by --storage DIR, or use -m sealed");
    }
    if (flock(holder->lock, LOCK_EX | LOCK_NB) < 0)
        return brig_fail(err, BRIG_E_STATE, errno, "the jail '%s' is held already", holder->name);
    return 0;
}

static int start_listening(struct holder *holder, struct brig_error *err)
{
    (void)snprintf(holder->socket_name, sizeof holder->socket_name, "%s.sock", holder->key);
    struct sockaddr_un address;
    int status = sockets_address(holder->sockets, holder->key, &address, err);
    if (status < 0)
        return status;
    (void)unlinkat(holder->sockets, holder->socket_name, 0); /* stale: we hold the lock */
    holder->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (holder->listener < 0 ||
        bind(holder->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(holder->listener, 64) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot listen on '%s'", holder->socket_name);
    return 0;
}

/* Detaches from the caller: directory, umask, session, standard streams, signals. */
static void settle_down(void)
{
    sigset_t none;
    if (chdir("/") < 0)
        _exit(1);
    (void)umask(077);
    (void)prctl(PR_SET_NAME, HOME_HOLDER_NAME);
    (void)setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
    const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* the parent has blocked all signals */
}

static int open_sockets(struct holder *holder, const char *storage, struct brig_error *err)
{
    holder->sockets = sockets_make(geteuid(), storage, err);
    return holder->sockets < 0 ? holder->sockets : 0;
}

/* Takes the lock in the storage or, without one, under the key in the directory of sockets. */
static int lock_jail(struct holder *holder, const char *storage, struct brig_error *err)
{
    if (*holder->key) {
        int opened = open_sockets(holder, NULL, err);
        return opened < 0 ? opened : take_lock(holder, -1, err);
    }
    holder->storage = storage_open(storage, geteuid(), err);
    if (holder->storage < 0)
        return holder->storage;
    int status = storage_key(storage, holder->name, holder->key, err);
    if (status == 0)
        status = take_lock(holder, holder->storage, err);
    return status < 0 ? status : open_sockets(holder, storage, err);
}

static int begin(struct holder *holder, const struct home_message *request, struct brig_error *err)
{
    size_t at = 0;
    const char *name = holder_next_text(request, &at), *storage = holder_next_text(request, &at);
    const char *key = holder_next_text(request, &at);
    if (!name || !storage || !key || strlen(name) > HOME_NAME_MAX || strlen(key) >= STORAGE_KEY_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the holder was told nothing");
    (void)snprintf(holder->name, sizeof holder->name, "%s", name);
    (void)snprintf(holder->key, sizeof holder->key, "%s", key);
    int status = lock_jail(holder, storage, err);
    if (status == 0)
        status = start_listening(holder, err);
    if (status == 0)
        status = mounts_begin(err);
    if (status < 0)
        return status;
    (void)prctl(PR_SET_DUMPABLE, 0); /* only now: it makes our id maps inaccessible */
    return 0;
}

int home_holder_main(void)
{
    static struct holder holder; /* large; in .bss */
    static struct home_message request;
    const int first = 3;
    holder.sockets = holder.storage = holder.listener = holder.lock = -1;
    holder.masks = OVERLAY_MASKS_INIT;
    settle_down();
    ssize_t length = recv(first, &request, sizeof request - 1, 0);
    if (length < (ssize_t)sizeof request.head || request.head.version != HOME_WIRE_VERSION ||
        request.head.length != (size_t)length - sizeof request.head)
        return 1;
    request.text[request.head.length] = 0;
    struct brig_error err = {0};
    struct home_reply reply = {0};
    reply.code = begin(&holder, &request, &err);
    reply.sys_errno = err.sys_errno;
    memcpy(reply.message, err.message, sizeof reply.message);
    send_reply(first, &reply, NULL, 0);
    if (reply.code < 0)
        return 1;
    add_run(&holder, first, true);
    serve_all(&holder);
}

/* ---- holder disk ---- */

/* Limits on what the runs of a jail write to its private directories. */

/* The lowest limits of the current runs; the limits of runs that have ended do not count. */
static struct private_limits least_disk(const struct holder *holder)
{
    struct private_limits least = {0};
    for (size_t i = 0; i < holder->run_count; i++)
        least = private_least(least, holder->runs[i].disk);
    return least;
}

static int set_disk(struct holder *holder, const struct private_limits *limits)
{
    if (limits->bytes == holder->disk.bytes && limits->inodes == holder->disk.inodes)
        return 0;
    int result = private_limit(MOUNTS_PRIVATE, limits);
    if (result == 0)
        holder->disk = *limits;
    return result;
}

void holder_limit_disk(struct holder *holder, struct holder_run *run,
                       const struct home_request *head, struct home_reply *reply)
{
    run->disk = (struct private_limits){head->disk_bytes, head->disk_inodes};
    struct private_limits least = least_disk(holder);
    int result = set_disk(holder, &least);
    if (result < 0) /* then the limits are unchanged */
        run->disk = (struct private_limits){0};
    reply->disk_errno = -result;
    reply->disk_bytes = least.bytes;
    reply->disk_inodes = least.inodes;
    reply->crowded = holder->run_count > 1;
}

void holder_relax_disk(struct holder *holder)
{
    struct private_limits least = least_disk(holder);
    (void)set_disk(holder, &least);
}
