/* SPDX-License-Identifier: MIT */
/* A thread that closes directories. The last process to close a jail's private directory pays for
 * its deletion, a quarter of a second for 65,536 names. Hostile code can cause this, so the loop,
 * for which all runs wait, must not do it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct brig_error;

struct sweeper {
    pthread_t thread;
    bool running;
    int in, out; /* a pipe that carries fd numbers */
};

int executor_sweeper_begin(struct sweeper *sweeper, struct brig_error *err);
/* Waits until everything is closed. Does nothing if the thread was not started. */
void executor_sweeper_end(struct sweeper *sweeper);
/* Takes a directory fd, or -1, and closes it in the thread. */
void executor_sweeper_take(const struct sweeper *sweeper, int fd);
