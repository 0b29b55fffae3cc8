/* SPDX-License-Identifier: MIT */
/* A thread that closes what takes long to close. What hostile code has left in its jail's private
 * directories is torn down by whoever has them open last, 65,536 names in a quarter of a second: not by
 * the loop, for which all runs wait. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct brig_error;

struct sweeper {
    pthread_t thread;
    bool running;
    int in, out; /* a pipe of numbers of fds */
};

int executor_sweeper_begin(struct sweeper *sweeper, struct brig_error *err);
/* Waits until everything is closed. For one that never began it does nothing. */
void executor_sweeper_end(struct sweeper *sweeper);
/* Takes a directory, or -1, and closes it by and by. */
void executor_sweeper_take(const struct sweeper *sweeper, int fd);
