/* SPDX-License-Identifier: MIT */
/* How a run and other commands talk to a jail's holder. */
#include "home/talk.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "home/sockets.h"
#include "home/storage.h"

#define ANSWER_SECONDS 10

void talk_add_text(struct str *text, const char *string)
{
    str_append_bytes(text, string, strlen(string) + 1);
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
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LENGTH(parts)};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * HOME_GIVEN_COUNT)];
    } control = {0};
    if (fd_count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = &control.header;
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot ask the jail's holder");
    return 0;
}

pid_t talk_peer(int socket)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    (void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
}

/* Of who ended without having read all, that is said first, and his last words after it. */
static ssize_t receive_message(int socket, struct msghdr *message)
{
    const struct msghdr empty = *message;
    bool reset = false;
    ssize_t length;
    do {
        *message = empty;
        length = recvmsg(socket, message, MSG_CMSG_CLOEXEC);
        if (length < 0 && errno == ECONNRESET && !reset) {
            reset = true;
            errno = EINTR;
        }
    } while (length < 0 && errno == EINTR);
    if (reset && length <= 0) {
        length = -1;
        errno = ECONNRESET;
    }
    return length;
}

int talk_receive(int socket, struct home_reply *ret_reply, int fds[HOME_FD_COUNT],
                 struct brig_error *err)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * HOME_FD_COUNT)];
    } control;
    struct iovec part = {.iov_base = ret_reply, .iov_len = sizeof *ret_reply};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length = receive_message(socket, &message);
    for (size_t i = 0; i < HOME_FD_COUNT; i++)
        fds[i] = -1;
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    if (length != (ssize_t)sizeof *ret_reply || message.msg_flags & MSG_TRUNC) {
        int failed = length == 0 ? ECONNRESET : length < 0 ? errno : 0;
        pid_t peer = talk_peer(socket);
        return brig_fail(err, BRIG_E_SETUP, failed,
                         "the jail's holder, process %d, is gone or of another version of brig. If "
                         "it is still there, end what runs in the jail and then: kill %d",
                         peer, peer);
    }
    if (ret_reply->code >= 0)
        return 0;
    ret_reply->message[sizeof ret_reply->message - 1] = 0;
    return brig_fail(err, ret_reply->code, 0, "%s", ret_reply->message);
}

/* At one of the places for sockets: a connected socket, -ENOENT if nobody listens there, or a code. */
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
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != uid)
        return brig_fail(err, BRIG_E_SETUP, 0, "the holder of the jail '%s' is not yours", name);
    return take_fd(&fd);
}
