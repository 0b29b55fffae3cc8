/* SPDX-License-Identifier: MIT */
/* Waiting in tests: for an event, up to one generous deadline, never for a fixed time.
 *
 *     tap_ok(await(access(path, F_OK) == 0), "the file appears");
 *
 * Before a test says that something does not happen, it waits for a sign that it could have. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define AWAIT_SECONDS 60 /* when it is over, something is wrong: a loaded machine is faster */
#define AWAIT_PAUSE_MS 2

/* How many times slower than usual this machine is: tests/vm/command sets BRIG_SLOW. */
static inline int await_slowness(void)
{
    const char *slow = getenv("BRIG_SLOW");
    long times = slow ? strtol(slow, NULL, 10) : 1;
    return times < 1 ? 1 : times > 20 ? 20 : (int)times;
}

/* The deadline, in milliseconds from now; also for limits that must not be reached. */
static inline int await_ms(void)
{
    return AWAIT_SECONDS * 1000 * await_slowness();
}

static inline uint64_t await_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Evaluates the condition until it holds; false if it did not before the deadline. */
#define await(condition)                                                                           \
    __extension__({                                                                                \
        uint64_t await_end_ = await_now_ms() + (uint64_t)await_ms();                               \
        bool await_holds_ = false;                                                                 \
        while (!(await_holds_ = (condition)) && await_now_ms() < await_end_)                       \
            (void)poll(NULL, 0, AWAIT_PAUSE_MS);                                                   \
        await_holds_;                                                                              \
    })

/* Waits until there is something to read, or the other end is closed. */
static inline bool await_readable(int fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int ready;
    while ((ready = poll(&waiting, 1, await_ms())) < 0 && errno == EINTR)
        ;
    return ready == 1;
}

/* Waits for one byte. */
static inline bool await_byte(int fd)
{
    char byte;
    return await_readable(fd) && read(fd, &byte, 1) == 1;
}

/* Waits for the end of a pipe or connection: all who could write to it are gone. Bytes before it are
 * skipped. */
static inline bool await_end(int fd)
{
    char bytes[512];
    ssize_t length = 1;
    while (length > 0 && await_readable(fd))
        length = read(fd, bytes, sizeof bytes);
    return length == 0;
}

/* Waits until a process that is not our child, or a child while SIGCHLD is ignored, is gone. */
static inline bool await_gone(pid_t pid)
{
    return await(kill(pid, 0) < 0 && errno == ESRCH);
}
