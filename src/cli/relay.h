/* SPDX-License-Identifier: MIT */
/* A stream of the command's that passes through brig, because it is to be cut somewhere. */
#pragma once

#include <poll.h>

#include <brig/brig.h>

struct relay {
    int from;       /* -1: at its end, or there is none */
    int to;         /* borrowed */
    bool to_file;   /* which takes any amount at a time */
    uint64_t limit; /* bytes that are passed on */
    uint64_t seen;
    char *block;          /* made when first needed */
    size_t start, length; /* of what is in it and has still to be passed on */
};

/* Makes the pipe; *ret_write is the command's end, the caller's to close. */
int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err);
void relay_done(struct relay *relay);

/* What to wait for, and what to do when that is there; never blocks for long. */
struct pollfd relay_poll(const struct relay *relay);
void relay_process(struct relay *relay, short events);
/* When every writer is gone: passes on what is left, waiting for at most so long (-1: for ever) for
 * whoever takes it. True once that is done, or time is up; false as soon as `wake_fd` is readable. */
bool relay_drain(struct relay *relay, int timeout_ms, int wake_fd);
bool relay_was_cut(const struct relay *relay);
