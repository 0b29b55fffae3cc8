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

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "home/fuse.h"
#include "home/home.h"
#include "home/masking.h"
#include "home/mounts.h"
#include "home/private.h"
#include "home/sockets.h"
#include "home/storage.h"
#include "home/wire.h"

#define RUNS_MAX 1024
/* How long it stays after the last run: the jail's /tmp lives as long. */
#define LINGER_MS (60 * 60 * 1000)

#define OVERFLOW_UID 65534
#define BUSY_MS 50
#define BLIND_MS 2000
#define WATCH_DELAY_MS 50 /* until a jail is made */

struct run {
    int socket;
    pid_t pid;
    struct private_limits disk;
    bool unwelcome;
};

struct holder {
    char name[HOME_NAME_MAX + 1];
    char key[STORAGE_KEY_MAX]; /* of its socket and its lock */
    char socket_name[STORAGE_KEY_MAX + 8];
    int sockets, storage, listener, lock;
    bool has_overlay, has_home;
    struct masking masking;     /* of the overlay */
    struct masking links;       /* of the home that a private one stands for: where masks lead */
    struct private_limits disk; /* as it is now */
    uint64_t watch_due_ms; /* when names are to be watched, by the monotonic clock; 0: they are */
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

/* What is found out for an answer. */
struct answer {
    bool created;                  /* the home is new */
    bool news;                     /* there are masks to be watched */
    const struct masking_set *set; /* the run's masks; NULL: it has none */
    char notice[BRIG_MESSAGE_MAX]; /* what the user should know of it */
};

/* The next string of a request; NULL when there is none. */
static const char *next_text(const struct home_message *request, size_t *at)
{
    if (*at >= request->head.length)
        return NULL;
    const char *text = request->text + *at;
    *at += strlen(text) + 1;
    return text;
}

/* Changes that do not fit are neither used nor deleted. */
static int find_changes(struct holder *holder, enum storage_layers layers, struct answer *answer,
                        int *ret_changes, struct brig_error *err)
{
    autoclose int changes =
        storage_part(holder->storage, holder->name, "changes", &answer->created, err);
    const char *reason;
    if (changes < 0)
        return changes;
    if (storage_misfits(changes, layers, &reason)) {
        char name[STORAGE_NAME_MAX];
        int fresh = storage_set_aside(changes, name, err);
        if (fresh < 0)
            return fresh;
        (void)close(changes);
        changes = fresh;
        answer->created = true;
        const struct links_home *home = &holder->masking.home;
        if (home->real && path_is_beneath(home->real, name))
            (void)mounts_mask(home->fd, name + strlen(home->real) + 1, NULL);
        (void)snprintf(
            answer->notice, sizeof answer->notice,
            "the changes of the jail '%s' are set aside in '%.512s', and it has new ones: "
            "%s",
            holder->name, name, reason);
    }
    *ret_changes = take_fd(&changes);
    return 0;
}

static int refuse_mount(const char *point, struct brig_error *err)
{
    (void)brig_fail(err, BRIG_E_SETUP, 0,
                    "the home directory cannot be copied on writing, because '%s' is mounted below "
                    "it",
                    point);
    return brig_advise(err, BRIG_E_SETUP, "Unmount it, or install fuse-overlayfs, or use -m bare");
}

/* In a user namespace the kernel does not lay anything over a directory with mounts in it. */
static int own_overlay(struct holder *holder, int home, const char *label, struct answer *answer,
                       struct brig_error *err)
{
    char point[4096];
    bool below = mounts_has_below(home, point, sizeof point);
    enum storage_layers layers = below ? STORAGE_FUSE : STORAGE_KERNEL;
    if (below && !fuse_is_installed())
        return refuse_mount(point, err);
    autoclose int changes = -1;
    int status = find_changes(holder, layers, answer, &changes, err);
    if (status < 0)
        return status;
    autoclose int work = storage_work(changes, holder->name, err);
    if (work < 0)
        return work;
    status = storage_check_upper(changes, holder->name, err);
    if (status == 0)
        status = below ? mounts_fuse_overlay(home, changes, holder->name, holder->lock, err)
                       : mounts_overlay(home, changes, work, label, err);
    if (status < 0)
        return status;
    storage_mark(changes, layers);
    return masking_mounted(&holder->masking, changes, answer->created, err);
}

/* The home directory a request names, or the one that came with it. */
static int open_home(const struct home_message *request, const struct given *given, int *ret_fd,
                     struct brig_error *err)
{
    size_t at = 0;
    const char *path = next_text(request, &at);
    int fd = given->fds[HOME_GIVEN_LOWER] >= 0
                 ? fcntl(given->fds[HOME_GIVEN_LOWER], F_DUPFD_CLOEXEC, 0)
             : path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                    : -1;
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the home directory '%s'",
                         path ? path : "");
    *ret_fd = fd;
    return 0;
}

static int mount_overlay(struct holder *holder, const struct home_message *request, int home,
                         const struct given *given, struct answer *answer, struct brig_error *err)
{
    const int *fds = given->fds;
    char label[HOME_NAME_MAX + 16];
    (void)snprintf(label, sizeof label, "brig-%s", holder->name);
    mounts_drop_overlay(); /* and what is left of a failed attempt */
    int status = masking_begin(&holder->masking, home, request->text, true, err);
    if (status == 0)
        status = masking_add(&holder->masking, request, &answer->set, err);
    if (status < 0)
        return status;
    if (fds[HOME_GIVEN_STORE] < 0)
        return own_overlay(holder, home, label, answer, err);
    status = mounts_given_overlay(home, fds[HOME_GIVEN_STORE], fds[HOME_GIVEN_CHANGES],
                                  fds[HOME_GIVEN_WORK], label, err);
    return status < 0 ? status
                      : masking_mounted(&holder->masking, fds[HOME_GIVEN_CHANGES], false, err);
}

static int need_overlay(struct holder *holder, const struct home_message *request,
                        const struct given *given, struct answer *answer, struct brig_error *err)
{
    if (holder->has_overlay) {
        bool alone = holder->run_count == 1;
        answer->set = masking_find(&holder->masking, request);
        if (answer->set && (!alone || holder->masking.set_count == 1))
            return 0;
        answer->news = true;
        if (!alone)
            return masking_add(&holder->masking, request, &answer->set, err);
        holder->has_overlay = false; /* nobody else would miss it, nor the masks of others */
    }
    autoclose int home = -1;
    int status = open_home(request, given, &home, err);
    if (status == 0)
        status = mount_overlay(holder, request, home, given, answer, err);
    answer->news = true;
    holder->has_overlay = status == 0;
    return status;
}

/* Where masks lead by links, of a home that is not in the jail at all. */
static int find_links(struct holder *holder, const struct home_message *request,
                      const struct given *given, struct answer *answer, struct brig_error *err)
{
    if (request->head.mask_count == 0)
        return 0;
    answer->set = masking_find(&holder->links, request);
    if (answer->set)
        return 0;
    autoclose int home = -1;
    int status = open_home(request, given, &home, err);
    if (status == 0)
        status = masking_begin(&holder->links, home, request->text, false, err);
    return status < 0 ? status : masking_add(&holder->links, request, &answer->set, err);
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

static void send_reply(int socket, const struct home_reply *reply, const char *text, const int *fds,
                       size_t count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * HOME_FD_COUNT)];
    } control = {0};
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply},
                            {.iov_base = (void *)(uintptr_t)text, .iov_len = reply->length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LENGTH(parts)};
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

static void join(struct holder *holder, struct run *run, const struct home_message *request,
                 const struct given *given)
{
    struct home_reply reply = {0};
    struct brig_error err = {0};
    struct answer answer = {0};
    bool overlay = request->head.kind == POLICY_HOME_OVERLAY;
    int fds[HOME_FD_COUNT] = {-1, -1, -1, -1, -1, holder->lock};
    int status = overlay ? need_overlay(holder, request, given, &answer, &err)
                         : need_home(holder, given, &answer.created, &err);
    if (status == 0 && !overlay)
        status = find_links(holder, request, given, &answer, &err);
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
    reply.created = answer.created;
    reply.length = status == 0 && answer.set ? (uint32_t)answer.set->places.length : 0;
    reply.sys_errno = err.sys_errno;
    memcpy(reply.message, status < 0 ? err.message : answer.notice, sizeof reply.message);
    send_reply(run->socket, &reply, reply.length > 0 ? answer.set->places.data : NULL, fds,
               status == 0 ? HOME_FD_COUNT : 0);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    /* It takes a while, so it is not waited for, nor done while the jail is being made. */
    if (status == 0 && overlay && answer.news && holder->watch_due_ms == 0)
        holder->watch_due_ms = clock_now_ms() + WATCH_DELAY_MS;
    else if (status == 0 && (!overlay || holder->masking.blind))
        masking_refresh(overlay ? &holder->masking : &holder->links);
}

static void list(const struct holder *holder, const struct run *asking, struct home_reply *reply)
{
    for (size_t i = 0; i < holder->run_count; i++)
        if (holder->runs[i].socket != asking->socket && !holder->runs[i].unwelcome &&
            reply->pid_count < HOME_PIDS_MAX)
            reply->pids[reply->pid_count++] = holder->runs[i].pid;
}

static void leave(struct holder *holder, int status)
{
    (void)unlinkat(holder->sockets, holder->socket_name, 0);
    mounts_end(); /* before the lock is gone: who has it next may mount the same again */
    _exit(status);
}

static ssize_t receive(int socket, struct home_message *request, struct given *given)
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
    static struct home_message request; /* too large for the stack */
    __attribute__((cleanup(given_done))) struct given given = {{-1, -1, -1, -1}};
    ssize_t length = receive(run->socket, &request, &given);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR;
    if (length < (ssize_t)sizeof request.head || request.head.version != HOME_WIRE_VERSION ||
        request.head.length != (size_t)length - sizeof request.head)
        return false;
    request.text[request.head.length] = 0;
    struct home_reply reply = {0};
    if (run->unwelcome) {
        reply.code = BRIG_E_STATE;
        (void)snprintf(reply.message, sizeof reply.message,
                       "the jail '%s' is held outside of this container or jail, and cannot be "
                       "joined from here",
                       holder->name);
        send_reply(run->socket, &reply, NULL, NULL, 0);
        return false;
    }
    switch ((enum home_op)request.head.op) {
    case HOME_LEFT: /* more than there is room for have been closed already, by the kernel */
        return true;
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
    }
    send_reply(run->socket, &reply, NULL, NULL, 0);
    if (request.head.op == HOME_STOP && reply.code == 0)
        leave(holder, 0);
    return true;
}

/* ---- connections ---- */

#define NSPID "NSpid:"

/* Whether a process is in a namespace of process ids below ours, as everything in a jail is. */
static bool is_nested(pid_t pid)
{
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
    autofile FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, NSPID, strlen(NSPID)) != 0)
            continue;
        const char *first = line + strlen(NSPID) + strspn(line + strlen(NSPID), " \t");
        return first[strcspn(first, " \t")] != '\0'; /* one number for each namespace */
    }
    return true; /* it is gone, or cannot be seen */
}

static bool is_welcome(int socket, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    *ret_pid = peer.pid;
    /* Root, acting for the user, is nobody in our user namespace. Others than these two cannot come
     * here at all: the directory of the socket is the user's alone. */
    return peer.pid > 0 &&
           (peer.uid == OVERFLOW_UID || (peer.uid == geteuid() && !is_nested(peer.pid)));
}

/* The first run has started us, through a socket that nobody else could have. Who is not welcome is
 * told so when he has asked: of a socket that is closed with something unread nothing can be read. */
static void add_run(struct holder *holder, int socket, bool first)
{
    pid_t pid = 0;
    bool welcome = is_welcome(socket, &pid) || first;
    if (holder->run_count == RUNS_MAX)
        (void)close(socket);
    else
        holder->runs[holder->run_count++] =
            (struct run){.socket = socket, .pid = pid, .unwelcome = !welcome};
}

static void accept_run(struct holder *holder)
{
    /* cppcheck-suppress nullPointer */
    int socket = accept4(holder->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0)
        add_run(holder, socket, false);
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

/* How long to wait for something to happen. */
static int patience_ms(const struct holder *holder)
{
    if (holder->watch_due_ms != 0)
        return WATCH_DELAY_MS;
    if (holder->run_count == 0)
        return LINGER_MS;
    return holder->masking.blind ? BLIND_MS : -1;
}

static __attribute__((noreturn)) void serve_all(struct holder *holder)
{
    static struct pollfd fds[RUNS_MAX + 2];
    for (;;) {
        size_t count = holder->run_count, events = count + 1;
        fds[0] = (struct pollfd){.fd = holder->listener, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            fds[i + 1] = (struct pollfd){.fd = holder->runs[i].socket, .events = POLLIN};
        fds[events] =
            (struct pollfd){.fd = count > 0 ? holder->masking.inotify : -1, .events = POLLIN};
        int ready = poll(fds, count + 2, patience_ms(holder));
        if ((ready == 0 && count == 0 && holder->watch_due_ms == 0) ||
            (ready < 0 && errno != EINTR))
            leave(holder, 0);
        if (holder->watch_due_ms != 0 && clock_now_ms() >= holder->watch_due_ms) {
            holder->watch_due_ms = 0;
            masking_watch(&holder->masking);
        } else if (ready == 0) {
            masking_refresh(&holder->masking);
        }
        if (fds[events].revents & POLLIN) /* first, so that who joins now has it hidden */
            masking_process(&holder->masking);
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
    holder->lock = openat(storage >= 0 ? storage : holder->sockets, name,
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
    struct sockaddr_un address;
    int status = sockets_address(holder->sockets, holder->key, &address, err);
    if (status < 0)
        return status;
    (void)unlinkat(holder->sockets, holder->socket_name, 0); /* we have the lock: it is nobody's */
    holder->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (holder->listener < 0 ||
        bind(holder->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(holder->listener, 64) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot listen on '%s'", holder->socket_name);
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

static int open_sockets(struct holder *holder, const char *storage, struct brig_error *err)
{
    holder->sockets = sockets_make(geteuid(), storage, err);
    return holder->sockets < 0 ? holder->sockets : 0;
}

/* By the storage as it is in the namespace we are about to leave; without one by the key alone. */
static int lock_jail(struct holder *holder, const char *storage, struct brig_error *err)
{
    if (*holder->key) {
        int opened = open_sockets(holder, NULL, err);
        return opened < 0 ? opened : take_lock(holder, -1, err);
    }
    autoclose int made = storage_open(storage, geteuid(), err);
    if (made < 0)
        return made;
    int status = storage_key(storage, holder->name, holder->key, err);
    if (status == 0)
        status = take_lock(holder, made, err);
    return status < 0 ? status : open_sockets(holder, storage, err);
}

static int begin(struct holder *holder, const struct home_message *request, struct brig_error *err)
{
    size_t at = 0;
    const char *name = next_text(request, &at), *storage = next_text(request, &at);
    const char *key = next_text(request, &at);
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
    (void)prctl(PR_SET_DUMPABLE, 0); /* only now: it would have hidden the id maps from us */
    if (*key)
        return 0; /* root gives what is to be mounted */
    holder->storage = storage_open(storage, geteuid(), err);
    return holder->storage < 0 ? holder->storage : 0;
}

int home_holder_main(void)
{
    static struct holder holder; /* large, and all zeros in the program's file */
    static struct home_message request;
    const int first = 3;
    holder.sockets = holder.storage = holder.listener = holder.lock = -1;
    holder.masking = holder.links = MASKING_INIT;
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
    send_reply(first, &reply, NULL, NULL, 0);
    if (reply.code < 0)
        return 1;
    add_run(&holder, first, true);
    serve_all(&holder);
}
