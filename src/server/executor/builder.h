/* SPDX-License-Identifier: MIT */
/* A thread that makes things ahead, one at a time, so that no request waits for it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <brig/brig.h>

/* Called in the thread; what it is given is its own meanwhile. */
typedef int builder_make(void *what, struct brig_error *err);

struct builder {
    pthread_t thread;
    bool running;
    bool busy;            /* something was given and not taken back */
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t given;
    bool stop;
    builder_make *make; /* what is to be done, until it is begun */
    void *what, *made;
    int result; /* of what was made */
    struct brig_error err;
    int event; /* readable when there is something to take */
};

int executor_builder_begin(struct builder *builder, struct brig_error *err);
/* Waits for what is being made, and gives what was given last and not taken, or NULL. For one that
 * never began it does nothing. */
void *executor_builder_end(struct builder *builder);
bool executor_builder_is_busy(const struct builder *builder);
void executor_builder_give(struct builder *builder, builder_make *make, void *what);
/* What was made, or NULL; *ret_result and *ret_err say whether it was. */
void *executor_builder_take(struct builder *builder, int *ret_result, struct brig_error *ret_err);
