/* SPDX-License-Identifier: MIT */
/* What a holder has ready for the next run: see ready.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "home/holder_parts.h"

/* Not while a run is starting or ending, when both CPUs are busy. */
#define AFTER_START_MS 50
#define AFTER_END_MS 3

void holder_ready_init(struct holder_ready *ready)
{
    ready->preparer = -1;
    ready->set = READY_SET_NONE;
}

static bool fits(const struct holder_ready *ready, const struct home_message *request)
{
    return ready->has_set && ready->length == request->head.length &&
           memcmp(ready->shape, request->text, ready->length) == 0;
}

/* What the last run wanted the next one will want. */
static void remember(struct holder_ready *ready, const struct home_message *request)
{
    if (ready->length == request->head.length &&
        memcmp(ready->shape, request->text, ready->length) == 0)
        return;
    ready_set_done(&ready->set);
    ready->has_set = ready->failed = false;
    ready->stale = ready->asked;
    ready->length = request->head.length;
    memcpy(ready->shape, request->text, ready->length);
}

bool holder_ready_give(struct holder *holder, const struct holder_run *run,
                       const struct home_message *request)
{
    struct holder_ready *ready = &holder->ready;
    if (request->head.length == 0 || request->head.length > sizeof ready->shape)
        return false;
    if (run->confined)
        return ready_send(run->socket, NULL, false);
    bool given = fits(ready, request);
    bool sent = ready_send(run->socket, given ? &ready->set : NULL, ready->preparer < 0);
    if (given) { /* whether it has arrived or not: nobody else gets it */
        ready_set_done(&ready->set);
        ready->has_set = false;
    }
    remember(ready, request);
    ready->due_ms = clock_now_ms() + AFTER_START_MS;
    return sent;
}

void holder_ready_adopt(struct holder *holder, const struct holder_run *run,
                        struct holder_given *given)
{
    struct holder_ready *ready = &holder->ready;
    if (given->fds[0] < 0 || ready->preparer >= 0 || run->confined)
        return;
    ready->preparer = take_fd(&given->fds[0]);
    ready->asked = ready->stale = ready->failed = false;
}

static bool is_wanted(const struct holder_ready *ready)
{
    return ready->preparer >= 0 && ready->length > 0 && !ready->has_set && !ready->asked &&
           !ready->failed;
}

void holder_ready_after(struct holder *holder)
{
    if (is_wanted(&holder->ready))
        holder->ready.due_ms = clock_now_ms() + AFTER_END_MS;
}

int holder_ready_patience_ms(const struct holder *holder)
{
    const struct holder_ready *ready = &holder->ready;
    if (!is_wanted(ready) || ready->due_ms == 0)
        return -1;
    uint64_t now = clock_now_ms();
    return now < ready->due_ms ? (int)(ready->due_ms - now) : 0;
}

static void dismiss(struct holder_ready *ready)
{
    (void)close(ready->preparer);
    ready->preparer = -1;
    ready->asked = false;
}

bool holder_ready_prepare(struct holder *holder)
{
    struct holder_ready *ready = &holder->ready;
    if (holder_ready_patience_ms(holder) != 0)
        return false;
    ready->due_ms = 0;
    if (send(ready->preparer, ready->shape, ready->length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        dismiss(ready);
    else
        ready->asked = true;
    return true;
}

void holder_ready_take(struct holder *holder)
{
    struct holder_ready *ready = &holder->ready;
    struct ready_answer answer;
    struct ready_set set;
    if (!ready_receive(ready->preparer, MSG_DONTWAIT, &answer, &set)) {
        dismiss(ready);
        return;
    }
    bool stale = ready->stale || ready->has_set || !ready->asked;
    ready->asked = ready->stale = false;
    if (stale || answer.ready == 0) {
        ready_set_done(&set);
        ready->failed = !stale; /* it would fail again */
        return;
    }
    ready->set = set;
    ready->has_set = true;
}
