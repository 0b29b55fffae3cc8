/* SPDX-License-Identifier: MIT */
/* The thread that closes directories: see sweeper.h. */
#include "server/executor/sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"

static bool next_given(const struct sweeper *sweeper, int *ret_fd)
{
    ssize_t got;
    do
        got = read(sweeper->out, ret_fd, sizeof *ret_fd);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *ret_fd;
}

static void *work(void *context)
{
    const struct sweeper *sweeper = context;
    int fd;
    while (next_given(sweeper, &fd))
        (void)close(fd);
    return NULL;
}

int executor_sweeper_begin(struct sweeper *sweeper, struct brig_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a thread that clears up");
    *sweeper = (struct sweeper){.out = fds_keep_high(ends[0]), .in = fds_keep_high(ends[1])};
    (void)fcntl(sweeper->in, F_SETFL, O_NONBLOCK);
    int error = pthread_create(&sweeper->thread, NULL, work, sweeper);
    sweeper->running = error == 0;
    if (error == 0) {
        (void)pthread_setname_np(sweeper->thread, "brigd-sweeper");
        return 0;
    }
    (void)close(sweeper->in);
    (void)close(sweeper->out);
    return brig_fail(err, BRIG_E_SYSTEM, error, "cannot make a thread that clears up");
}

void executor_sweeper_end(struct sweeper *sweeper)
{
    if (!sweeper->running)
        return;
    (void)close(sweeper->in);
    (void)pthread_join(sweeper->thread, NULL);
    (void)close(sweeper->out);
    sweeper->running = false;
}

void executor_sweeper_take(const struct sweeper *sweeper, int fd)
{
    if (fd < 0)
        return;
    /* The pipe holds thousands of fds before it is full. */
    if (!sweeper->running || write(sweeper->in, &fd, sizeof fd) != (ssize_t)sizeof fd)
        (void)close(fd);
}
