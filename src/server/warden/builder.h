/* SPDX-License-Identifier: MIT */
/* A thread that makes jails ahead, one at a time, so that no request waits for it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <brig/brig.h>

struct run;

struct builder {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t given;
    bool stop, busy;     /* busy: between give and take */
    struct run *wanted;  /* given and not begun */
    struct run *made;    /* to be taken */
    int result;          /* of that one */
    struct brig_error err;
    int event; /* readable when there is something to take */
};

/* Called in the thread: makes the jail of a run. */
int warden_park_build(struct run *run, struct brig_error *err);

int warden_builder_begin(struct builder *builder, struct brig_error *err);
/* Waits for what is being made; gives it, or NULL. For one that never began it does nothing. */
struct run *warden_builder_end(struct builder *builder);
bool warden_builder_is_busy(const struct builder *builder);
/* The run is the thread's until it is taken. */
void warden_builder_give(struct builder *builder, struct run *run);
/* What was made, or NULL; *ret_result and *ret_err say whether it was. */
struct run *warden_builder_take(struct builder *builder, int *ret_result,
                                struct brig_error *ret_err);
