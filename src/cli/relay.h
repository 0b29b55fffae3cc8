/* SPDX-License-Identifier: MIT */
/* A stream of the command's that passes through brig, because it is to be cut somewhere. */
#pragma once

#include <poll.h>

#include <brig/brig.h>

struct relay {
    int from;       /* -1: at its end, or there is none */
    int to;         /* borrowed */
    uint64_t limit; /* bytes that are passed on */
    uint64_t seen;
    bool ready; /* there is something to read; now `to` has to be ready */
};

/* Makes the pipe; *ret_write is the command's end, the caller's to close. */
int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err);
void relay_done(struct relay *relay);

/* What to wait for, and what to do when that is there; never blocks for long. */
struct pollfd relay_poll(const struct relay *relay);
void relay_process(struct relay *relay, short events);
/* When every writer is gone: passes on what is left. */
void relay_drain(struct relay *relay);
bool relay_was_cut(const struct relay *relay);
