/* SPDX-License-Identifier: MIT */
/* Sandboxes that wait: complete ones, with a started interpreter, in which nothing of a client has
 * run. When code was run in a sandbox for the first time, some with the same settings are started,
 * and the next request with these settings gets one of them. There are few kinds of settings at a
 * time, so the number of those that wait has a limit, whatever clients ask for. */
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

#define QUIET_MS 10 /* after a request, so that it has the processor first */

/* ---- settings ---- */

/* Everything that a jail is made of. False if none like it may wait: variables can be secrets, and
 * the name of an image can come to mean another one. With allowed
 * hosts it waits for its own key alone: others could see by the age of the interpreter that somebody
 * has allowed the same hosts. */
static bool settings_of(const struct sandbox *sandbox, struct str *out)
{
    const struct sandbox_request *from = &sandbox->request;
    struct sandbox_request settings = {.operation = SANDBOX_CREATE,
                                       .request_id = "",
                                       .client = "",
                                       .domain = from->allow_count > 0 ? from->domain : "",
                                       .id = "",
                                       .name = "",
                                       .bytes = {.data = ""},
                                       .language = sandbox->runtime->name,
                                       .network = from->network,
                                       .allow = from->allow,
                                       .allow_count = from->allow_count,
                                       .home = from->home};
    memcpy(settings.limits, from->limits, sizeof settings.limits);
    return from->env_count == 0 && !from->image &&
           sandbox_request_encode(&settings, out, NULL) == 0;
}

static struct sandbox_shape *find(struct sandboxes *all, const struct str *settings)
{
    for (struct sandbox_shape *at = all->shapes; at < all->shapes + SANDBOX_SHAPES; at++)
        if (at->settings.length == settings->length && settings->length > 0 &&
            memcmp(at->settings.data, settings->data, settings->length) == 0)
            return at;
    return NULL;
}

/* Whether the interpreter on the host is still the one that was started. */
static bool is_current(const struct sandbox_shape *shape, const struct runtime *runtime)
{
    struct runtime_program now = {0};
    return runtime_find_program(runtime, &now) && memcmp(&now, &shape->program, sizeof now) == 0;
}

static bool waits(const struct sandbox *sandbox, const struct sandbox_shape *shape)
{
    return sandbox->shape == shape && sandbox->state != SANDBOX_ENDING;
}

/* The shape can be used for other settings at once: one that is ending is never given out. */
static void forget(struct executor *executor, struct sandbox_shape *shape)
{
    str_done(&shape->settings);
    for (struct sandbox *at = executor->sandboxes.first; at; at = at->next)
        if (waits(at, shape))
            executor_sandbox_end(at, "sandboxes like it are no longer wanted");
}

void executor_waiting_want(const struct sandbox *sandbox)
{
    struct executor *executor = sandbox->executor;
    struct sandboxes *all = &executor->sandboxes;
    autostr struct str settings = {0};
    struct runtime_program program = {0};
    if (executor->config->sandboxes.waiting == 0 || !settings_of(sandbox, &settings) ||
        !runtime_find_program(sandbox->runtime, &program))
        return;
    struct sandbox_shape *shape = find(all, &settings);
    if (!shape) {
        shape = &all->shapes[0];
        for (int i = 1; i < SANDBOX_SHAPES; i++)
            if (all->shapes[i].until_ms < shape->until_ms)
                shape = &all->shapes[i];
        forget(executor, shape);
        shape->settings = settings;
        settings = (struct str){0};
        shape->program = program;
    }
    uint64_t now_ms = clock_now_ms();
    shape->until_ms = now_ms + executor->config->sandbox.pool.idle_ms;
    all->fill_ms = now_ms + QUIET_MS;
}

/* ---- giving out ---- */

static bool is_ready(const struct sandbox *sandbox)
{
    const struct interpreter *interpreter = sandbox->interpreters;
    return interpreter && interpreter->context && interpreter->ready;
}

bool executor_waiting_take(struct sandbox **sandbox)
{
    struct sandbox *asked = *sandbox, *found = NULL;
    struct sandboxes *all = &asked->executor->sandboxes;
    autostr struct str settings = {0};
    struct sandbox_shape *shape =
        all->waiting_count > 0 && settings_of(asked, &settings) ? find(all, &settings) : NULL;
    if (shape && !is_current(shape, asked->runtime)) {
        forget(asked->executor, shape);
        return false;
    }
    for (struct sandbox *at = all->first; at && shape; at = at->next)
        if (waits(at, shape) && (!found || is_ready(at)))
            found = at;
    if (!found)
        return false;
    executor_sandbox_unlink(found);
    sandbox_request_done(&found->request);
    found->request = asked->request;
    found->shape = NULL;
    asked->request = (struct sandbox_request){0};
    executor_sandbox_release(asked);
    executor_sandbox_keep_unenforced(found);
    executor_sandbox_link(found);
    all->fill_ms = clock_now_ms() + QUIET_MS;
    *sandbox = found;
    return true;
}

/* ---- starting ---- */

static int start_one(struct executor *executor, struct sandbox_shape *shape, struct brig_error *err)
{
    const char *field;
    struct sandbox_request request;
    int result =
        sandbox_request_decode(shape->settings.data, shape->settings.length, &request, err);
    if (result < 0)
        return result;
    struct sandbox *sandbox = executor_sandbox_new(executor, &request);
    sandbox_request_done(&request);
    if (!sandbox)
        return brig_fail_nomem(err);
    if (executor_sandbox_check_settings(sandbox, &field, err) != SANDBOX_OK ||
        executor_sandbox_start(sandbox, &field, err) != SANDBOX_OK) {
        executor_sandbox_release(sandbox);
        return -1;
    }
    sandbox->shape = shape;
    executor_sandbox_link(sandbox);
    return executor_context_prepare(sandbox, err);
}

/* Starts one if it is missing; returns when to look again. */
static uint64_t fill(struct executor *executor, struct sandbox_shape *shape, uint64_t now_ms)
{
    struct brig_error err = {0};
    size_t count = 0;
    bool starts = false;
    for (const struct sandbox *at = executor->sandboxes.first; at; at = at->next)
        if (waits(at, shape)) {
            count++;
            starts = starts || (at->interpreters && !is_ready(at));
        }
    if (starts)
        return now_ms + QUIET_MS;
    if (count >= executor->config->sandboxes.waiting)
        return shape->until_ms;
    if (start_one(executor, shape, &err) == 0)
        return now_ms + QUIET_MS;
    forget(executor, shape); /* a client can choose settings that fail, and is told why itself */
    return UINT64_MAX;
}

void executor_waiting_settle(struct executor *executor, uint64_t now_ms)
{
    struct sandboxes *all = &executor->sandboxes;
    if (now_ms < all->fill_ms)
        return;
    all->fill_ms = UINT64_MAX;
    for (struct sandbox_shape *at = all->shapes; at < all->shapes + SANDBOX_SHAPES; at++) {
        if (at->settings.length == 0)
            continue;
        if (now_ms >= at->until_ms || executor->draining) {
            forget(executor, at);
            continue;
        }
        uint64_t due_ms =
            executor_slots_are_spare(executor) ? fill(executor, at, now_ms) : at->until_ms;
        all->fill_ms = due_ms < all->fill_ms ? due_ms : all->fill_ms;
    }
}

void executor_waiting_renew(struct executor *executor)
{
    for (int i = 0; i < SANDBOX_SHAPES; i++)
        forget(executor, &executor->sandboxes.shapes[i]);
}

void executor_waiting_end(struct executor *executor)
{
    for (int i = 0; i < SANDBOX_SHAPES; i++)
        str_done(&executor->sandboxes.shapes[i].settings);
}
