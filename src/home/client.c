/* SPDX-License-Identifier: MIT */
/* The client of a jail's holder, in a run: finds the holder or starts one, and sends requests. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "home/client.h"
#include "home/home.h"
#include "home/storage.h"
#include "jail/sys.h"
#include "jail/view/idmap.h"

/* A holder that another run is starting answers soon. */
#define PATIENCE_SECONDS 5
#define RETRY_MS 20
#define RETRIES 5
#define PROPAGATION_PRIVATE (1U << 18) /* MS_PRIVATE */

void home_mounts_done(struct home_mounts *mounts)
{
    int fds[] = {mounts->home, mounts->tmp,   mounts->var_tmp, mounts->shm,
                 mounts->run,  mounts->lease, mounts->lock,    mounts->in_use};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(&fds[i]);
    *mounts = HOME_MOUNTS_INIT;
}

/* ---- directories that only root can open ---- */

struct given {
    int fds[HOME_GIVEN_COUNT];
    size_t count;
    int in_use; /* see struct home_mounts */
};

static void given_done(struct given *given)
{
    for (size_t i = 0; i < given->count; i++)
        (void)close(given->fds[i]);
    own_close(&given->in_use);
}

/* Root creates the storage with the ids of the owner. */
static int open_storage(const struct home_spec *spec, struct brig_error *err)
{
    (void)SYS(setfsuid, spec->owner);
    int storage = storage_open(spec->storage, spec->owner, err);
    (void)SYS(setfsuid, geteuid());
    return storage;
}

/* Checks that a part is a directory with the right owner, and chowns a part that root has just
 * created. Uses the fd, because the directory above belongs to a user, who may have replaced the
 * part. */
static int give_part(int fd, const char *part, bool made, uid_t uid, gid_t gid,
                     struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot look at '%s'", part);
    if (info.st_uid == uid || (!made && giving_await(fd, uid)))
        return 0;
    if (!made || info.st_uid != geteuid())
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "'%s' in the storage directory belongs to uid %u, but this jail runs as "
                         "uid %u. Move it away",
                         part, info.st_uid, uid);
    if (fchown(fd, uid, gid) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot give '%s' to uid %u", part, uid);
    return 0;
}

static int make_isolated_uid_part(int storage, const struct home_spec *spec, const char *kind,
                                  struct brig_error *err)
{
    char part[HOME_NAME_MAX + 16];
    (void)snprintf(part, sizeof part, "%s.%s", spec->name, kind);
    bool overlay = spec->kind == POLICY_HOME_OVERLAY;
    bool made = mkdirat(storage, part, 0700) == 0;
    if (!made && errno != EEXIST)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make '%s' in the storage directory",
                         part);
    autoclose int fd = openat(storage, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s'", part);
    int status = give_part(fd, part, made, overlay ? spec->uid : spec->owner,
                           overlay ? spec->gid : (gid_t)-1, err);
    return status < 0 ? status : take_fd(&fd);
}

static int clone_tree(const char *path, const struct home_spec *spec, struct brig_error *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot look at '%s'", path);
    return prepared_tree(path, &info, spec->uid, spec->gid, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                         err);
}

static int give(struct given *given, int fd)
{
    if (fd >= 0)
        given->fds[given->count++] = fd;
    return fd < 0 ? fd : 0;
}

/* Clones a directory of the storage, whose files belong to the jail already. */
static int clone_own(int directory, const struct home_spec *spec, struct brig_error *err)
{
    long tree = SYS(open_tree, directory, "", AT_EMPTY_PATH | 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
    struct mount_attr attr = {.propagation = PROPAGATION_PRIVATE};
    if (tree < 0)
        return brig_fail(err, BRIG_E_SETUP, (int)-tree, "cannot clone '%s'", spec->storage);
    (void)SYS(mount_setattr, (int)tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
    return (int)tree;
}

/* The directories below the changes of a jail that was forked. */
static int give_below(struct given *given, int storage, const struct home_spec *spec,
                      struct brig_error *err)
{
    __attribute__((cleanup(storage_below_done))) struct storage_below below = {0};
    int status = storage_open_below(storage, spec->name, &below, err);
    for (size_t i = 0; i < below.count && status == 0; i++)
        status = give(given, clone_own(below.fds[i], spec, err));
    return status;
}

/* A jail with an isolated uid owns nothing on the host, so its files are id-mapped: a private home
 * as a whole; of an overlay only the lower directory, because the upper directory is owned by the
 * isolated uid. */
static int give_parts(const struct home_spec *spec, struct given *given, struct brig_error *err)
{
    autoclose int storage = open_storage(spec, err);
    if (storage < 0)
        return storage;
    if (spec->kind != POLICY_HOME_OVERLAY) {
        autoclose int home = make_isolated_uid_part(storage, spec, "home", err);
        int status = home < 0 ? home : give(given, clone_tree(path_proc(home).text, spec, err));
        if (status == 0 && flock(home, LOCK_SH | LOCK_NB) == 0)
            given->in_use = take_fd(&home);
        return status;
    }
    int status = give(given, clone_tree(spec->user_home, spec, err));
    int store = status < 0 ? -1 : clone_own(storage, spec, err);
    if (status == 0)
        status = give(given, store);
    if (status == 0)
        status = give(given, make_isolated_uid_part(store, spec, "changes", err));
    if (status == 0)
        status = give(given, make_isolated_uid_part(store, spec, "work", err));
    return status < 0 ? status : give_below(given, storage, spec, err);
}

/* ---- finding or starting it ---- */

/* In the child: changes to the user's ids, then executes brig again as the holder. */
static __attribute__((noreturn)) void become_holder(const struct home_spec *spec, int program,
                                                    int socket)
{
    if (geteuid() != spec->uid &&
        (setgroups(0, NULL) < 0 || setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
         setresuid(spec->uid, spec->uid, spec->uid) < 0))
        _exit(1);
    self_execute(program, socket, HOME_HOLDER_NAME);
}

/* Starts a new holder and returns a socket to it. The intermediate parent exits at once, so that
 * the caller need not reap the holder. */
static int fork_holder(const struct home_spec *spec, struct brig_error *err)
{
    int pair[2];
    autoclose int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the jail's holder");
    autoclose int ours = pair[0];
    autoclose int theirs = pair[1];
    pid_t starter = fork();
    if (starter == 0) {
        if (fork() == 0)
            become_holder(spec, program, theirs);
        _exit(0);
    }
    if (starter < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the jail's holder");
    (void)process_wait(starter);
    return take_fd(&ours);
}

/* Tells a new holder which jail it serves. */
static int introduce(int socket, const char *name, const char *storage, const char *key,
                     struct brig_error *err)
{
    autostr struct str text = {0};
    talk_add_text(&text, name);
    talk_add_text(&text, *key ? "" : storage);
    talk_add_text(&text, key);
    return talk_send(socket, (struct home_request){.op = HOME_JOIN}, &text, NULL, 0, err);
}

static int introduce_for(const struct home_spec *spec, int socket, struct brig_error *err)
{
    char key[STORAGE_KEY_MAX] = "";
    if (spec->owner != spec->uid) { /* an isolated uid can access neither the storage nor /run */
        autoclose int sockets = sockets_make(spec->uid, NULL, err);
        autoclose int storage = sockets < 0 ? sockets : open_storage(spec, err);
        int status = storage < 0 ? storage : storage_key(spec->storage, spec->name, key, err);
        if (status < 0)
            return status;
    }
    return introduce(socket, spec->name, spec->storage, key, err);
}

/* Starts a holder and returns a socket to it when it is ready. */
static int start_holder(const struct home_spec *spec, struct brig_error *err)
{
    autoclose int socket = fork_holder(spec, err);
    if (socket < 0)
        return socket;
    struct home_reply reply = {0};
    int fds[HOME_FD_COUNT] = {[0 ... HOME_FD_COUNT - 1] = -1};
    int status = introduce_for(spec, socket, err);
    if (status == 0)
        status = talk_receive(socket, &reply, fds, err);
    return status < 0 ? status : take_fd(&socket);
}

static int find_holder(const struct home_spec *spec, struct brig_error *err)
{
    struct timespec began, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    for (;;) {
        int fd = talk_connect(spec->storage, spec->name, spec->uid, err);
        if (fd != -ENOENT)
            return fd;
        struct brig_error local = {0};
        fd = start_holder(spec, &local);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if (fd != BRIG_E_STATE || now.tv_sec - began.tv_sec >= PATIENCE_SECONDS) {
            if (fd < 0 && err)
                *err = local;
            return fd != BRIG_E_STATE
                       ? fd
                       : brig_advise(err, fd,
                                     "Its holder is gone, but a run is left in it: end that first "
                                     "(see `brig list`)");
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    }
}

static int join_once(const struct home_spec *spec, const struct str *text,
                     struct home_mounts *ret_mounts, struct brig_error *err)
{
    const struct home_request request = {.op = HOME_JOIN,
                                         .kind = spec->kind,
                                         .mask_count = (uint32_t)spec->mask_count,
                                         .shown_count = (uint32_t)spec->shown_count,
                                         .own_count = (uint32_t)spec->own_count,
                                         .filter_count = (uint32_t)spec->filter_count,
                                         .mount_points = (uint32_t)spec->mount_points->length,
                                         .disk_bytes = spec->disk_bytes,
                                         .disk_inodes = spec->disk_inodes,
                                         .place = spec->place};
    autoclose int socket = find_holder(spec, err);
    if (socket < 0)
        return socket;
    struct home_reply reply = {0};
    int fds[HOME_FD_COUNT] = {[0 ... HOME_FD_COUNT - 1] = -1};
    __attribute__((cleanup(given_done))) struct given given = {.in_use = -1};
    int status = spec->owner != spec->uid ? give_parts(spec, &given, err) : 0;
    if (status == 0)
        status = talk_send(socket, request, text, given.fds, given.count, err);
    if (status == 0)
        status = talk_receive(socket, &reply, fds, err);
    if (status < 0)
        return status;
    *ret_mounts = (struct home_mounts){
        .home = fds[HOME_FD_HOME],
        .tmp = fds[HOME_FD_TMP],
        .var_tmp = fds[HOME_FD_VAR_TMP],
        .shm = fds[HOME_FD_SHM],
        .run = fds[HOME_FD_RUN],
        .lock = fds[HOME_FD_LOCK],
        .in_use = take_fd(&given.in_use),
        .lease = take_fd(&socket),
        .created = reply.created != 0,
        .crowded = reply.crowded != 0,
        .disk_errno = reply.disk_errno,
        .disk_bytes = reply.disk_bytes,
        .disk_inodes = reply.disk_inodes,
    };
    memcpy(ret_mounts->notice, reply.message, sizeof ret_mounts->notice);
    ret_mounts->notice[sizeof ret_mounts->notice - 1] = 0;
    return 0;
}

static void add_texts(struct str *text, const char *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        talk_add_text(text, items[i]);
}

static void add_rules(struct str *text, const struct home_spec *spec)
{
    talk_add_text(text, spec->user_home);
    add_texts(text, spec->masks, spec->mask_count);
    add_texts(text, spec->shown, spec->shown_count);
    add_texts(text, spec->own, spec->own_count);
    add_texts(text, spec->filters, spec->filter_count);
}

int home_join(const struct home_spec *spec, struct home_mounts *ret_mounts, struct brig_error *err)
{
    autostr struct str text = {0};
    struct brig_error local;
    unsigned attempts = 0;
    int status;
    add_rules(&text, spec);
    str_append_bytes(&text, spec->mount_points->data, spec->mount_points->length);
    do {
        local = (struct brig_error){0};
        status = join_once(spec, &text, ret_mounts, &local);
    } while (status < 0 && talk_again(&local, &attempts));
    if (status < 0 && err)
        *err = local;
    return status;
}

/* ---- talk ---- */

/* The protocol between a jail's holder and runs and other commands. */

#define ANSWER_SECONDS 10
#define STATUS_MAX 8192

void talk_add_text(struct str *text, const char *string)
{
    str_append_bytes(text, string, strlen(string) + 1);
}

pid_t talk_peer(int socket)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    (void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
}

/* It has ended, or it does not understand us and has closed the connection. */
static int no_answer(int socket, int failed, struct brig_error *err)
{
    pid_t peer = talk_peer(socket);
    return brig_fail(
        err, BRIG_E_SETUP, failed,
        "the jail's holder, process %d, is gone or of another version of brig. If it is "
        "still there, end what runs in the jail and then: kill %d",
        peer, peer);
}

int talk_send(int socket, struct home_request head, const struct str *text, const int *fds,
              size_t fd_count, struct brig_error *err)
{
    if (text->failed)
        return brig_fail_nomem(err);
    if (text->length > HOME_TEXT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are too many: more than %d bytes",
                         HOME_TEXT_MAX);
    head.version = HOME_WIRE_VERSION;
    head.length = (uint32_t)text->length;
    struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof head},
                            {.iov_base = text->data, .iov_len = text->length}};
    ssize_t sent = fdpass_send(socket, parts, ARRAY_LENGTH(parts), fds, fd_count, 0);
    if (sent == -EPIPE || sent == -ECONNRESET)
        return no_answer(socket, (int)-sent, err);
    if (sent < 0)
        return brig_fail(err, BRIG_E_SETUP, (int)-sent, "cannot send to the jail's holder");
    return 0;
}

bool talk_again(const struct brig_error *err, unsigned *attempts)
{
    bool gone = err->sys_errno == ECONNRESET || err->sys_errno == EPIPE;
    if (!gone || (*attempts)++ == RETRIES)
        return false;
    (void)nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    return true;
}

int talk_receive(int socket, struct home_reply *ret_reply, int fds[HOME_FD_COUNT],
                 struct brig_error *err)
{
    const struct iovec part = {.iov_base = ret_reply, .iov_len = sizeof *ret_reply};
    size_t count = HOME_FD_COUNT;
    for (size_t i = 0; i < HOME_FD_COUNT; i++)
        fds[i] = -1;
    ssize_t length = fdpass_receive(socket, &part, 1, fds, &count, 0);
    if (length == -ECONNRESET) { /* it exited before it read everything; its last reply follows */
        count = HOME_FD_COUNT;
        length = fdpass_receive(socket, &part, 1, fds, &count, 0);
        length = length <= 0 ? -ECONNRESET : length;
    }
    if (length != (ssize_t)sizeof *ret_reply) {
        int failed = length == 0 ? ECONNRESET : length < 0 ? (int)-length : 0;
        return no_answer(socket, failed, err);
    }
    if (ret_reply->code >= 0)
        return 0;
    ret_reply->message[sizeof ret_reply->message - 1] = 0;
    return brig_fail(err, ret_reply->code, 0, "%s", ret_reply->message);
}

/* Connects in one of the directories for sockets: a connected socket, -ENOENT if there is no
 * listener, or a code. */
static int connect_at(int directory, const char *key, const char *name, struct brig_error *err)
{
    struct sockaddr_un address;
    int status = sockets_address(directory, key, &address, err);
    if (status < 0)
        return status;
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return take_fd(&fd);
    if (errno == ENOENT || errno == ECONNREFUSED)
        return -ENOENT;
    return brig_fail(err, BRIG_E_SETUP, errno, "cannot reach the holder of the jail '%s'", name);
}

bool talk_is_nested(pid_t pid)
{
    char path[64];
    bool whole;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    autofree char *text = proc_read(path, STATUS_MAX, &whole);
    const char *ids = text ? strstr(text, "\nNSpid:\t") : NULL;
    if (!ids)
        return true;
    ids += strlen("\nNSpid:\t"); /* one number for each namespace, with a tab between */
    return strcspn(ids, "\t") < strcspn(ids, "\n");
}

/* A jail may have the same uid, and make a place for sockets in a directory that it was granted. */
int talk_connect(const char *storage, const char *name, uid_t uid, struct brig_error *err)
{
    char key[STORAGE_KEY_MAX];
    struct brig_error local = {0};
    int status = storage_key(storage, name, key, &local);
    if (status < 0 && local.sys_errno == ENOENT)
        return -ENOENT;
    if (status < 0 && err)
        *err = local;
    if (status < 0)
        return status;
    autoclose int fd = -ENOENT;
    for (unsigned i = 0; i < SOCKETS_PLACES && fd == -ENOENT; i++) {
        autoclose int directory = sockets_open(i, uid, storage);
        fd = directory < 0 ? -ENOENT : connect_at(directory, key, name, err);
    }
    if (fd < 0)
        return fd;
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct ucred peer;
    socklen_t size = sizeof peer;
    /* The pid is 0 if the holder is in a pid namespace above ours; then it refuses us itself. */
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == uid;
    if (known && (peer.pid == 0 || !talk_is_nested(peer.pid)))
        return take_fd(&fd);
    if (known && kill(peer.pid, 0) < 0 && errno == ESRCH)
        return -ENOENT; /* the holder has just ended */
    return brig_fail(err, BRIG_E_SETUP, 0, "the holder of the jail '%s' is not yours", name);
}

/* ---- self ---- */

void self_execute(int program, int socket, const char *name)
{
    char *const argv[] = {(char *)(uintptr_t)name, NULL};
    char *const envp[] = {NULL};
    int moved = fcntl(program, F_DUPFD_CLOEXEC, 10);
    if (moved >= 0 && (socket == 3 ? fcntl(3, F_SETFD, 0) : dup2(socket, 3)) >= 0) {
        (void)SYS(close_range, 4, 9, 0);
        (void)SYS(close_range, 4, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
        (void)SYS(execveat, moved, "", argv, envp, AT_EMPTY_PATH);
    }
    _exit(1);
}

/* ---- giving ---- */

/* The creator chowns the directory two calls later. */
#define PATIENCE_MS 200

bool giving_await(int fd, uid_t uid)
{
    struct stat info;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; fstat(fd, &info) == 0; i++) {
        if (info.st_uid == uid)
            return true;
        if (geteuid() != 0 || info.st_uid != 0 || i == PATIENCE_MS)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}
