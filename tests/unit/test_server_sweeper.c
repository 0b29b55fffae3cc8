/* SPDX-License-Identifier: MIT */
/* The thread that closes what takes long to close. */
#include <fcntl.h>
#include <unistd.h>

#include <brig/brig.h>

#include "server/executor/sweeper.h"
#include "tap.h"

#define COUNT 100

/* Of a filesystem with a great many names. */
static int open_many(void)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        tap_bail("cannot open /");
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_thread(void)
{
    struct sweeper sweeper = {0};
    struct brig_error err = {0};
    int given[COUNT];
    tap_is_int(executor_sweeper_begin(&sweeper, &err), 0, "it begins");
    for (size_t i = 0; i < COUNT; i++)
        given[i] = open_many();
    for (size_t i = 0; i < COUNT; i++)
        executor_sweeper_take(&sweeper, given[i]);
    executor_sweeper_take(&sweeper, -1);
    executor_sweeper_end(&sweeper);
    size_t left = 0;
    for (size_t i = 0; i < COUNT; i++)
        left += is_open(given[i]);
    tap_is_int((long)left, 0, "all that it was given is closed when it has ended");
    executor_sweeper_end(&sweeper);
    tap_pass("it ends once");
}

/* A pipe that nobody reads stands for a thread that has come to nothing yet. */
static void test_who_closes(void)
{
    int ends[2], taken = -1;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        tap_bail("no pipe");
    struct sweeper sweeper = {.running = true, .in = ends[1], .out = ends[0]};
    int many = open_many();
    executor_sweeper_take(&sweeper, many);
    tap_ok(is_open(many), "it is not closed at once");
    tap_ok(read(ends[0], &taken, sizeof taken) == (ssize_t)sizeof taken && taken == many,
           "it is left to the thread");
    while (write(ends[1], &taken, sizeof taken) == (ssize_t)sizeof taken)
        ;
    executor_sweeper_take(&sweeper, many);
    tap_ok(!is_open(many), "unless that has too much to do");
    sweeper.running = false;
    many = open_many();
    executor_sweeper_take(&sweeper, many);
    tap_ok(!is_open(many), "or there is none");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    test_thread();
    test_who_closes();
    return tap_done();
}
