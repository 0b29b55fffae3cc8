/* SPDX-License-Identifier: MIT */
/* A leaf for a tool, asked of the supervisor of the jail we are in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/nested_limits/nested_limits.h"
#include "jail/nested_limits/nested_limits_wire.h"

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

/* One question and its answer; 0 or an errno. */
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
    if (!nested_limits_are_near()) /* as almost always */
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
