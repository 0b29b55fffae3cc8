/* SPDX-License-Identifier: MIT */
/* Namespaces made ahead: what is said of them, and a run's side of it. */
#include "home/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "home/self.h"
#include "home/talk.h"
#include "jail/sys.h"

#define FDS_MAX (READY_NAMESPACES + READY_SOCKETS_MAX)

union fd_space {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
};

static size_t list_fds(const struct ready_set *set, struct ready_answer *answer, int fds[FDS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < READY_NAMESPACES; i++)
        if (set->namespaces[i] >= 0) {
            answer->namespaces |= 1U << i;
            fds[count++] = set->namespaces[i];
        }
    answer->socket_count = (uint32_t)set->socket_count;
    for (size_t i = 0; i < set->socket_count; i++) {
        answer->sockets[i] = (uint32_t)(set->sockets[i].kind << 8 | set->sockets[i].index);
        fds[count++] = set->sockets[i].fd;
    }
    return count;
}

bool ready_send(int socket, const struct ready_set *set, bool wants_preparer)
{
    struct ready_answer answer = {
        .version = HOME_WIRE_VERSION, .ready = set != NULL, .wants_preparer = wants_preparer};
    int fds[FDS_MAX];
    size_t count = set ? list_fds(set, &answer, fds) : 0;
    union fd_space control = {.header = {.cmsg_level = SOL_SOCKET,
                                         .cmsg_type = SCM_RIGHTS,
                                         .cmsg_len = CMSG_LEN(sizeof(int) * count)}};
    memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * count);
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = count > 0 ? &control : NULL,
                             .msg_controllen = count > 0 ? CMSG_SPACE(sizeof(int) * count) : 0};
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof answer;
}

/* All fds that came, each in its place; false if they are not those that were told of. */
static bool place_fds(const struct ready_answer *answer, const int *fds, size_t count,
                      struct ready_set *set)
{
    size_t at = 0;
    for (size_t i = 0; i < READY_NAMESPACES && at < count; i++)
        if (answer->namespaces & 1U << i)
            set->namespaces[i] = fds[at++];
    for (size_t i = 0; i < answer->socket_count && i < READY_SOCKETS_MAX && at < count; i++)
        set->sockets[set->socket_count++] =
            (struct door_socket_item){.fd = fds[at++],
                                      .kind = (int)(answer->sockets[i] >> 8),
                                      .index = (int)(answer->sockets[i] & 0xff)};
    for (size_t i = at; i < count; i++)
        (void)close(fds[i]);
    return at == count && set->socket_count == answer->socket_count &&
           (answer->ready == 0 || set->namespaces[READY_USER] >= 0);
}

bool ready_receive(int socket, int flags, struct ready_answer *ret_answer,
                   struct ready_set *ret_set)
{
    struct ready_answer answer = {0};
    struct ready_set set = READY_SET_NONE;
    union fd_space control;
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length;
    do
        length = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    size_t count = 0;
    int fds[FDS_MAX];
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    }
    bool whole = place_fds(&answer, fds, count, &set);
    if (!whole || length != (ssize_t)sizeof answer || answer.version != HOME_WIRE_VERSION) {
        ready_set_done(&set);
        return false;
    }
    *ret_answer = answer;
    *ret_set = set;
    return true;
}

void home_ask_ready(int called, const char *shape, size_t length)
{
    struct home_request head = {
        .version = HOME_WIRE_VERSION, .op = HOME_READY, .length = (uint32_t)length};
    struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof head},
                            {.iov_base = (void *)(uintptr_t)shape, .iov_len = length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LENGTH(parts)};
    (void)sendmsg(called, &message, MSG_NOSIGNAL);
}

int home_take_ready(int called, struct ready_set *ret_set, bool *ret_wants_preparer)
{
    struct ready_answer answer;
    if (!ready_receive(called, 0, &answer, ret_set))
        return -1;
    *ret_wants_preparer = answer.wants_preparer != 0;
    return answer.ready != 0;
}

/* ---- starting the preparer ---- */

/* In our memory, until its exec. */
static __attribute__((noreturn)) void become_preparer(int program, int socket)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    self_execute(program, socket, HOME_PREPARER_NAME);
}

/* Its parent is gone at once, so that nobody has to wait for it. */
static bool start_preparer(int program, int socket)
{
    pid_t pid = vfork();
    if (pid == 0) {
        if (vfork() == 0)
            become_preparer(program, socket);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return pid > 0;
}

void home_start_preparer(int lease)
{
    int pair[2];
    autoclose int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    autoclose int ours = pair[0];
    autoclose int theirs = pair[1];
    const struct str nothing = {0};
    if (start_preparer(program, theirs))
        (void)talk_send(lease, (struct home_request){.op = HOME_PREPARER}, &nothing, &ours, 1,
                        NULL);
}
