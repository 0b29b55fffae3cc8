/* SPDX-License-Identifier: MIT */
/* The holder of a jail: a process that keeps its mounts and hands out clones of them. It runs as the
 * user, with an empty environment, and nothing of a jail ever runs in it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "home/hide.h"
#include "home/home.h"
#include "home/mounts.h"
#include "home/private.h"
#include "home/storage.h"
#include "home/wire.h"

#define RUNS_MAX 1024
/* How long it stays after the last run: the jail's /tmp lives as long. */
#define LINGER_MS (60 * 60 * 1000)

#define OVERFLOW_UID 65534
#define BUSY_MS 50
#define REFRESH_SECONDS 2

struct run {
    int socket;
    pid_t pid;
    struct private_limits disk;
};

struct request {
    struct home_request head;
    char text[HOME_TEXT_MAX + 1];
};

struct holder {
    char name[HOME_NAME_MAX + 1];
    char key[STORAGE_KEY_MAX]; /* of its socket and its lock */
    char runtime[STORAGE_PATH_MAX];
    char socket_name[STORAGE_KEY_MAX + 8];
    int runtime_fd, storage, listener, lock;
    bool has_overlay, has_home;
    time_t refreshed;
    struct request masked;      /* the request whose masks it was mounted with */
    struct private_limits disk; /* as it is now */
    struct run runs[RUNS_MAX];
    size_t run_count;
};

/* ---- requests ---- */

/* What came with it. */
struct given {
    int fds[HOME_GIVEN_COUNT]; /* -1: nothing */
};

static void given_done(struct given *given)
{
    for (size_t i = 0; i < HOME_GIVEN_COUNT; i++)
        if (given->fds[i] >= 0)
            (void)close(given->fds[i]);
}

/* The next string of a request; NULL when there is none. */
static const char *next_text(const struct request *request, size_t *at)
{
    if (*at >= request->head.length)
        return NULL;
    const char *text = request->text + *at;
    *at += strlen(text) + 1;
    return text;
}

static int apply_masks(int home, const struct request *request, size_t at, struct brig_error *err)
{
    const struct home_request *head = &request->head;
    const char *texts[HOME_RULES_MAX];
    size_t count = 0;
    while (count < HOME_RULES_MAX && (texts[count] = next_text(request, &at)))
        count++;
    if ((uint64_t)head->mask_count + head->shown_count + head->own_count != count)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are too many: at most %d",
                         HOME_RULES_MAX);
    const struct hide_rules rules = {
        .hidden = texts,
        .hidden_count = head->mask_count,
        .shown = texts + head->mask_count,
        .shown_count = head->shown_count,
        .own = texts + head->mask_count + head->shown_count,
        .own_count = head->own_count,
    };
    return hide_apply(home, &rules, err);
}

/* Whether these are the masks the overlay was mounted with. */
static bool has_same_masks(const struct holder *holder, const struct request *request)
{
    const struct home_request *head = &request->head, *mounted = &holder->masked.head;
    return head->mask_count == mounted->mask_count && head->shown_count == mounted->shown_count &&
           head->own_count == mounted->own_count && head->length == mounted->length &&
           memcmp(holder->masked.text, request->text, head->length) == 0;
}

/* What was not there when the overlay was mounted, nor the directory above it, may be there now. It
 * takes a while, so it is not waited for, and not done for each of many runs. */
static void refresh_masks(struct holder *holder, const struct request *request,
                          const struct given *given)
{
    size_t at = 0;
    const char *home_path = next_text(request, &at);
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (!home_path || now.tv_sec - holder->refreshed < REFRESH_SECONDS)
        return;
    holder->refreshed = now.tv_sec;
    int lower = given->fds[HOME_GIVEN_LOWER];
    autoclose int opened = lower >= 0 ? -1 : open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int home = lower >= 0 ? lower : opened;
    if (home >= 0)
        (void)apply_masks(home, request, at, NULL);
}

static int own_overlay(struct holder *holder, int home, const char *label, bool *ret_created,
                       struct brig_error *err)
{
    autoclose int changes =
        storage_part(holder->storage, holder->name, "changes", ret_created, err);
    if (changes < 0)
        return changes;
    autoclose int work = storage_work(changes, holder->name, err);
    if (work < 0)
        return work;
    int status = storage_check_upper(changes, holder->name, err);
    return status < 0 ? status : mounts_overlay(home, changes, work, label, err);
}

static int need_overlay(struct holder *holder, const struct request *request,
                        const struct given *given, bool *ret_created, bool *ret_stale,
                        struct brig_error *err)
{
    size_t at = 0;
    const char *home_path = next_text(request, &at);
    const int *fds = given->fds;
    autoclose int opened = !home_path || fds[HOME_GIVEN_LOWER] >= 0
                               ? -1
                               : open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int home = fds[HOME_GIVEN_LOWER] >= 0 ? fds[HOME_GIVEN_LOWER] : opened;
    if (home < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the home directory '%s'",
                         home_path ? home_path : "");
    char label[HOME_NAME_MAX + 16];
    (void)snprintf(label, sizeof label, "brig-%s", holder->name);
    bool same = holder->has_overlay && has_same_masks(holder, request);
    if (holder->has_overlay && !same && holder->run_count == 1) {
        mounts_drop_overlay(); /* nobody else would miss it */
        holder->has_overlay = false;
    }
    *ret_stale = holder->has_overlay && !same;
    int status = same ? 0 : apply_masks(home, request, at, err);
    if (status < 0 || holder->has_overlay)
        return status;
    memcpy(&holder->masked, request, sizeof request->head + request->head.length);
    status = fds[HOME_GIVEN_STORE] < 0
                 ? own_overlay(holder, home, label, ret_created, err)
                 : mounts_given_overlay(home, fds[HOME_GIVEN_STORE], fds[HOME_GIVEN_CHANGES],
                                        fds[HOME_GIVEN_WORK], label, err);
    holder->has_overlay = status == 0;
    return status;
}

static int need_home(struct holder *holder, const struct given *given, bool *ret_created,
                     struct brig_error *err)
{
    if (holder->has_home)
        return 0;
    int status;
    if (given->fds[HOME_GIVEN_LOWER] >= 0) {
        status = mounts_given_home(given->fds[HOME_GIVEN_LOWER], err);
    } else {
        autoclose int home = storage_part(holder->storage, holder->name, "home", ret_created, err);
        status = home < 0 ? home : mounts_private_home(home, err);
    }
    holder->has_home = status == 0;
    return status;
}

/* ---- answers ---- */

static void send_reply(int socket, const struct home_reply *reply, const int *fds, size_t count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * HOME_FD_COUNT)];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = &control.header;
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* All runs have the same private directories, so the least that one of them asks for holds for all;
 * what only those asked for that are gone does not. */
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

static void limit_disk(struct holder *holder, struct run *run, const struct home_request *head,
                       struct home_reply *reply)
{
    run->disk = (struct private_limits){head->disk_bytes, head->disk_inodes};
    struct private_limits least = least_disk(holder);
    int result = set_disk(holder, &least);
    if (result < 0) /* then it is as it was */
        run->disk = (struct private_limits){0};
    reply->disk_errno = -result;
    reply->disk_bytes = least.bytes;
    reply->disk_inodes = least.inodes;
    reply->crowded = holder->run_count > 1;
}

static void join(struct holder *holder, struct run *run, const struct request *request,
                 const struct given *given)
{
    struct home_reply reply = {0};
    struct brig_error err = {0};
    bool created = false, stale = false, overlay = request->head.kind == POLICY_HOME_OVERLAY;
    int fds[HOME_FD_COUNT] = {-1, -1, -1, -1, -1, holder->lock};
    int status = overlay ? need_overlay(holder, request, given, &created, &stale, &err)
                         : need_home(holder, given, &created, &err);
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
    if (status == 0)
        limit_disk(holder, run, &request->head, &reply);
    reply.code = status;
    reply.created = created;
    reply.stale = stale;
    reply.sys_errno = err.sys_errno;
    memcpy(reply.message, err.message, sizeof reply.message);
    send_reply(run->socket, &reply, fds, status == 0 ? HOME_FD_COUNT : 0);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

static void list(const struct holder *holder, const struct run *asking, struct home_reply *reply)
{
    for (size_t i = 0; i < holder->run_count; i++)
        if (holder->runs[i].socket != asking->socket && reply->pid_count < HOME_PIDS_MAX)
            reply->pids[reply->pid_count++] = holder->runs[i].pid;
}

static void leave(struct holder *holder, int status)
{
    (void)unlinkat(holder->runtime_fd, holder->socket_name, 0);
    mounts_end(); /* before the lock is gone: who has it next may mount the same again */
    _exit(status);
}

static ssize_t receive(int socket, struct request *request, struct given *given)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * HOME_GIVEN_COUNT)];
    } control;
    struct iovec part = {.iov_base = request, .iov_len = sizeof *request - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(given->fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    return length;
}

/* Serves one request; false when the connection is of no more use. */
static bool serve(struct holder *holder, struct run *run)
{
    static struct request request; /* too large for the stack */
    __attribute__((cleanup(given_done))) struct given given = {{-1, -1, -1, -1}};
    ssize_t length = receive(run->socket, &request, &given);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR;
    if (length < (ssize_t)sizeof request.head || request.head.version != HOME_WIRE_VERSION ||
        request.head.length != (size_t)length - sizeof request.head)
        return false;
    request.text[request.head.length] = 0;
    struct home_reply reply = {0};
    switch ((enum home_op)request.head.op) {
    case HOME_JOIN:
        join(holder, run, &request, &given);
        if (holder->has_overlay && request.head.kind == POLICY_HOME_OVERLAY)
            refresh_masks(holder, &request, &given);
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
    }
    send_reply(run->socket, &reply, NULL, 0);
    if (request.head.op == HOME_STOP && reply.code == 0)
        leave(holder, 0);
    return true;
}

/* ---- connections ---- */

static bool is_welcome(int socket, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    *ret_pid = peer.pid;
    /* Root, acting for the user, is nobody in our user namespace. Others than these two cannot come
     * here at all: the directory of the socket is the user's alone. */
    return peer.uid == geteuid() || peer.uid == OVERFLOW_UID;
}

static void add_run(struct holder *holder, int socket)
{
    pid_t pid = 0;
    if (holder->run_count == RUNS_MAX || !is_welcome(socket, &pid)) {
        (void)close(socket);
        return;
    }
    holder->runs[holder->run_count++] = (struct run){.socket = socket, .pid = pid};
}

static void accept_run(struct holder *holder)
{
    /* cppcheck-suppress nullPointer */
    int socket = accept4(holder->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0)
        add_run(holder, socket);
    else if (errno == EMFILE || errno == ENFILE) /* until a run is over */
        (void)nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
}

static void drop_run(struct holder *holder, size_t which)
{
    (void)close(holder->runs[which].socket);
    holder->runs[which] = holder->runs[--holder->run_count];
    struct private_limits least = least_disk(holder);
    (void)set_disk(holder, &least);
}

static __attribute__((noreturn)) void serve_all(struct holder *holder)
{
    static struct pollfd fds[RUNS_MAX + 1];
    for (;;) {
        fds[0] = (struct pollfd){.fd = holder->listener, .events = POLLIN};
        for (size_t i = 0; i < holder->run_count; i++)
            fds[i + 1] = (struct pollfd){.fd = holder->runs[i].socket, .events = POLLIN};
        size_t count = holder->run_count;
        int ready = poll(fds, count + 1, count > 0 ? -1 : LINGER_MS);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            leave(holder, 0);
        for (size_t i = count; i-- > 0;) /* from the end: dropping moves the last one here */
            if (fds[i + 1].revents &&
                (!(fds[i + 1].revents & POLLIN) || !serve(holder, &holder->runs[i])))
                drop_run(holder, i);
        if (fds[0].revents & POLLIN)
            accept_run(holder);
    }
}

/* ---- beginning ---- */

/* Where the changes are, as the directory of sockets may be another one tomorrow. */
static int take_lock(struct holder *holder, int storage, struct brig_error *err)
{
    char name[STORAGE_KEY_MAX + 8];
    (void)snprintf(name, sizeof name, "%s.lock", storage >= 0 ? holder->name : holder->key);
    holder->lock = openat(storage >= 0 ? storage : holder->runtime_fd, name,
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (holder->lock < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s'", name);
    if (flock(holder->lock, LOCK_EX | LOCK_NB) < 0)
        return brig_fail(err, BRIG_E_STATE, errno, "the jail '%s' is held already", holder->name);
    return 0;
}

static int start_listening(struct holder *holder, struct brig_error *err)
{
    (void)snprintf(holder->socket_name, sizeof holder->socket_name, "%s.sock", holder->key);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", holder->runtime,
                          holder->socket_name);
    if (length < 0 || (size_t)length >= sizeof address.sun_path)
        return brig_fail(err, BRIG_E_INVALID, 0, "the jail's name '%s' is too long", holder->name);
    (void)unlink(address.sun_path); /* we have the lock: it is nobody's */
    holder->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (holder->listener < 0 ||
        bind(holder->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(holder->listener, 64) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot listen on '%s'", address.sun_path);
    return 0;
}

/* Out of the caller's session, and with nothing of it. */
static void settle_down(void)
{
    (void)setsid();
    if (chdir("/") < 0)
        _exit(1);
    (void)umask(077);
    (void)prctl(PR_SET_NAME, HOME_HOLDER_NAME);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
    const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

/* By the storage as it is in the namespace we are about to leave; without one by the key alone. */
static int lock_jail(struct holder *holder, const char *storage, struct brig_error *err)
{
    if (*holder->key)
        return take_lock(holder, -1, err);
    autoclose int made = storage_open(storage, geteuid(), err);
    if (made < 0)
        return made;
    int status = storage_key(storage, holder->name, holder->key, err);
    return status < 0 ? status : take_lock(holder, made, err);
}

static int begin(struct holder *holder, const struct request *request, struct brig_error *err)
{
    size_t at = 0;
    const char *name = next_text(request, &at), *storage = next_text(request, &at);
    const char *key = next_text(request, &at);
    if (!name || !storage || !key || strlen(name) > HOME_NAME_MAX || strlen(key) >= STORAGE_KEY_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the holder was told nothing");
    (void)snprintf(holder->name, sizeof holder->name, "%s", name);
    (void)snprintf(holder->key, sizeof holder->key, "%s", key);
    holder->runtime_fd = storage_runtime(geteuid(), holder->runtime, err);
    if (holder->runtime_fd < 0)
        return holder->runtime_fd;
    int status = lock_jail(holder, storage, err);
    if (status == 0)
        status = start_listening(holder, err);
    if (status == 0)
        status = mounts_begin(err);
    if (status < 0)
        return status;
    (void)prctl(PR_SET_DUMPABLE, 0); /* only now: it would have hidden the id maps from us */
    if (*key)
        return 0; /* root gives what is to be mounted */
    holder->storage = storage_open(storage, geteuid(), err);
    return holder->storage < 0 ? holder->storage : 0;
}

int home_holder_main(void)
{
    static struct holder holder; /* large, and all zeros in the program's file */
    static struct request request;
    const int first = 3;
    holder.runtime_fd = holder.storage = holder.listener = holder.lock = -1;
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
    add_run(&holder, first);
    serve_all(&holder);
}
