/* SPDX-License-Identifier: MIT */
/* The thread that makes things ahead. It touches nothing of the executor's but what it is given. Signals are
 * left to it as to the loop, or commands would begin with a mask that no other has. */
#include "server/executor/builder.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

/* False: it is over. */
static bool next_wanted(struct builder *builder, builder_make **ret_make, void **ret_what)
{
    (void)pthread_mutex_lock(&builder->lock);
    while (!builder->stop && !builder->make)
        (void)pthread_cond_wait(&builder->given, &builder->lock);
    bool goes_on = !builder->stop;
    if (goes_on) {
        *ret_make = take_ptr(&builder->make);
        *ret_what = builder->what;
    }
    (void)pthread_mutex_unlock(&builder->lock);
    return goes_on;
}

static void put(struct builder *builder, void *what, int result, const struct brig_error *err)
{
    (void)pthread_mutex_lock(&builder->lock);
    builder->made = what;
    builder->result = result;
    builder->err = *err;
    (void)pthread_mutex_unlock(&builder->lock);
    (void)eventfd_write(builder->event, 1);
}

static void *work(void *context)
{
    struct builder *builder = context;
    builder_make *make;
    void *what;
    while (next_wanted(builder, &make, &what)) {
        struct brig_error err = {0};
        int result = make(what, &err);
        put(builder, what, result, &err);
    }
    return NULL;
}

int executor_builder_begin(struct builder *builder, struct brig_error *err)
{
    *builder = (struct builder){.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (builder->event < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a thread for waiting jails");
    (void)pthread_mutex_init(&builder->lock, NULL);
    (void)pthread_cond_init(&builder->given, NULL);
    int error = pthread_create(&builder->thread, NULL, work, builder);
    if (error)
        return brig_fail(err, BRIG_E_SYSTEM, error, "cannot make a thread for waiting jails");
    builder->running = true;
    return 0;
}

void *executor_builder_end(struct builder *builder)
{
    if (!builder->running)
        return NULL;
    (void)pthread_mutex_lock(&builder->lock);
    builder->stop = true;
    (void)pthread_cond_signal(&builder->given);
    (void)pthread_mutex_unlock(&builder->lock);
    (void)pthread_join(builder->thread, NULL);
    builder->running = false;
    (void)close(take_fd(&builder->event));
    return builder->busy ? builder->what : NULL;
}

bool executor_builder_is_busy(const struct builder *builder)
{
    return builder->busy;
}

void executor_builder_give(struct builder *builder, builder_make *make, void *what)
{
    builder->busy = true;
    (void)pthread_mutex_lock(&builder->lock);
    builder->make = make;
    builder->what = what;
    (void)pthread_cond_signal(&builder->given);
    (void)pthread_mutex_unlock(&builder->lock);
}

void *executor_builder_take(struct builder *builder, int *ret_result, struct brig_error *ret_err)
{
    eventfd_t count;
    (void)eventfd_read(builder->event, &count);
    (void)pthread_mutex_lock(&builder->lock);
    void *made = take_ptr(&builder->made);
    *ret_result = builder->result;
    *ret_err = builder->err;
    (void)pthread_mutex_unlock(&builder->lock);
    if (made)
        builder->busy = false;
    return made;
}
