/* SPDX-License-Identifier: MIT */
/* Descriptors over a UNIX socket: those sent arrive, others are closed. */
#include "base/fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tap.h"

static int ends[2];

static unsigned count_open(void)
{
    unsigned count = 0;
    autodir DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    return count;
}

static ssize_t send_text(const char *text, const int *fds, size_t count)
{
    const struct iovec parts[2] = {
        {.iov_base = (void *)(uintptr_t)text, .iov_len = 1},
        {.iov_base = (void *)(uintptr_t)(text + 1), .iov_len = strlen(text + 1)}};
    return fdpass_send(ends[0], parts, 2, fds, count, MSG_DONTWAIT);
}

static ssize_t receive(size_t size, int *fds, size_t *count, char *buffer)
{
    const struct iovec part = {.iov_base = buffer, .iov_len = size};
    return fdpass_receive(ends[1], &part, 1, fds, count, MSG_DONTWAIT);
}

int main(void)
{
    int fds[FDPASS_MAX + 1], got[FDPASS_MAX];
    char buffer[16] = "";
    size_t count = FDPASS_MAX;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        tap_bail("socketpair");
    for (size_t i = 0; i <= FDPASS_MAX; i++)
        fds[i] = STDERR_FILENO;
    tap_is_int((long)receive(sizeof buffer, got, &count, buffer), -EAGAIN, "nothing is there");
    tap_is_int((long)count, 0, "and no descriptor");
    unsigned before = count_open();

    tap_is_int((long)send_text("hello", NULL, 0), 5, "a message without any");
    count = 1;
    tap_is_int((long)receive(sizeof buffer, got, &count, buffer), 5, "arrives");
    tap_ok(count == 0 && strcmp(buffer, "hello") == 0, "as it was");

    tap_is_int((long)send_text("x", fds, FDPASS_MAX), 1, "as many as there may be");
    count = FDPASS_MAX;
    tap_is_int((long)receive(sizeof buffer, got, &count, buffer), 1, "arrive");
    tap_is_int((long)count, FDPASS_MAX, "all of them");
    tap_ok((fcntl(got[FDPASS_MAX - 1], F_GETFD) & FD_CLOEXEC) != 0, "closed on exec");
    for (size_t i = 0; i < count; i++)
        (void)close(got[i]);
    tap_is_int((long)send_text("x", fds, FDPASS_MAX + 1), -EINVAL, "one more is refused");

    for (size_t sent = 1; sent < 4; sent++)
        for (size_t room = 0; room < sent; room++) {
            (void)send_text("x", fds, sent);
            count = room;
            ssize_t result = receive(sizeof buffer, got, &count, buffer);
            tap_ok(result == -EMSGSIZE && count == 0 && count_open() == before,
                   "with room for %zu, %zu are all closed", room, sent);
        }
    (void)send_text("too long", fds, 1);
    count = 1;
    tap_ok(receive(3, got, &count, buffer) == -EMSGSIZE && count_open() == before,
           "as those of a message that is cut");
    (void)close(ends[0]);
    count = 1;
    tap_is_int((long)receive(sizeof buffer, got, &count, buffer), 0, "then there is the end");
    return tap_done();
}
