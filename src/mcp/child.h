/* SPDX-License-Identifier: MIT */
/* Programs that brig-mcp starts, all of them brig: their output in memory, and their end. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "rpc/excerpt.h"

/* Descriptors of a run, for the script in the jail and for --result. */
#define CHILD_ERRORS_FD 3
#define CHILD_RESULT_FD 4

enum child_stream {
    CHILD_OUTPUT,   /* standard output */
    CHILD_MESSAGES, /* standard error of brig itself */
    CHILD_ERRORS,   /* CHILD_ERRORS_FD: standard error of the command, if the script uses it */
    CHILD_STREAMS_,
};
#define CHILD_POLL (CHILD_STREAMS_ + 1)

/* Initialise with CHILD_INIT; release with child_done(). */
struct child {
    pid_t pid; /* 0: none */
    int pid_fd;
    int streams[CHILD_STREAMS_];
    int result; /* a file in memory */
    struct excerpt captures[CHILD_STREAMS_];
    int status; /* the exit status, or 128 and the number of a signal */
};
#define CHILD_INIT                                                                                 \
    (struct child)                                                                                 \
    {                                                                                              \
        .pid_fd = -1, .streams = {-1, -1, -1}, .result = -1                                        \
    }

/* Starts words[0] in a session of its own. `input` is its standard input and may be -1 for
 * /dev/null. With `dies` it is killed if this process dies. The captures must have their limits. */
int child_start(struct child *child, const char *const *words, int input, bool dies,
                struct brig_error *err);
void child_poll(const struct child *child, struct pollfd fds[static CHILD_POLL]);
/* Reads what is there, calls `seen` (which may be NULL) with output and errors, and returns true
 * when the child has ended; its status and captures are then complete. */
typedef void (*child_seen)(void *context, const char *bytes, size_t length);
bool child_process(struct child *child, const struct pollfd fds[static CHILD_POLL], child_seen seen,
                   void *context);
/* Asks a run of brig to end: SIGTERM, the grace period, SIGKILL. */
void child_cancel(const struct child *child);
/* Kills brig; the jail's init then ends the jail. */
void child_kill(const struct child *child);
void child_done(struct child *child);

/* A file in memory with these bytes, for standard input; -1 on failure. */
int child_input(const char *bytes, size_t length);
