/* SPDX-License-Identifier: MIT */
/* Sandboxes are created here: their settings and the quotas of their key are checked, and their
 * jail is started. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "server/config/config.h"
#include "server/executor/executor.h"
#include "server/executor/images.h"
#include "server/executor/jail_check.h"

#define MEBIBYTE (UINT64_C(1) << 20)
#define DEFAULT_LANGUAGE "bash"

/* ---- checks ---- */

/* Of the sandboxes of a key; those that wait have none. */
static size_t sum_of(const struct executor *executor, const char *domain,
                     enum execution_limit limit)
{
    size_t sum = 0;
    for (const struct sandbox *other = executor->sandboxes.first; other; other = other->next)
        if (!other->shape && strcmp(other->request.domain, domain) == 0)
            sum += limit == EXECUTION_LIMITS_ ? 1 : other->limits[limit];
    return sum;
}

/* Limits per key hold without keys, too: then all requests are of one. */
static int check_quotas(const struct executor *executor, const struct sandbox *sandbox,
                        struct brig_error *err)
{
    const typeof(executor->config->sandboxes) *config = &executor->config->sandboxes;
    const char *domain = sandbox->request.domain;
    uint64_t memory_mb = sandbox->limits[EXECUTION_MEMORY_MB];
    uint64_t pids = sandbox->limits[EXECUTION_PIDS];
    if (config->max_per_key && sum_of(executor, domain, EXECUTION_LIMITS_) >= config->max_per_key)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "this API key has %llu sandboxes, and may not have "
                         "more (sandboxes.max_per_key)",
                         (unsigned long long)config->max_per_key);
    uint64_t most_mb = config->memory_per_key_bytes / MEBIBYTE;
    if (most_mb && sum_of(executor, domain, EXECUTION_MEMORY_MB) + memory_mb > most_mb)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "with %llu MiB more, the sandboxes of this API key could use more than "
                         "%llu MiB of memory (sandboxes.memory_per_key)",
                         (unsigned long long)memory_mb, (unsigned long long)most_mb);
    if (config->pids_per_key &&
        sum_of(executor, domain, EXECUTION_PIDS) + pids > config->pids_per_key)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "with %llu more, the sandboxes of this API key could have more than %llu "
                         "processes (sandboxes.pids_per_key)",
                         (unsigned long long)pids, (unsigned long long)config->pids_per_key);
    return 0;
}

struct execution_request executor_sandbox_like(const struct sandbox_request *request)
{
    struct execution_request like = {.id = "",
                                     .request_id = request->request_id,
                                     .client = request->client,
                                     .domain = request->domain,
                                     .language = request->language,
                                     .code = {.data = "x", .length = 1},
                                     .stdin_bytes = {.data = ""},
                                     .env = request->env,
                                     .env_count = request->env_count,
                                     .allow = request->allow,
                                     .allow_count = request->allow_count,
                                     .network = request->network,
                                     .home = request->home};
    memcpy(like.limits, request->limits, sizeof like.limits);
    return like;
}

/* The runtime, with the image of the request if it has one. */
static const struct runtime *made_from(const struct sandbox *sandbox)
{
    return sandbox->with_image ? sandbox->with_image : sandbox->runtime;
}

enum sandbox_fault executor_sandbox_check(const struct sandbox *sandbox,
                                          const struct execution_request *like,
                                          const char **ret_field, struct brig_error *err)
{
    int result =
        executor_jail_check(&sandbox->executor->ground, made_from(sandbox), like, ret_field, err);
    if (result == 0)
        return SANDBOX_OK;
    if (str_starts_with(*ret_field, "permissions.network")) {
        *ret_field = "allow"; /* the name that it has here */
        return SANDBOX_FORBIDDEN;
    }
    return result == BRIG_E_NOT_FOUND ? SANDBOX_UNAVAILABLE : SANDBOX_INVALID;
}

enum sandbox_fault executor_sandbox_check_settings(struct sandbox *sandbox, const char **ret_field,
                                                   struct brig_error *err)
{
    const struct executor *executor = sandbox->executor;
    struct sandbox_request *request = &sandbox->request;
    const typeof(executor->config->sandboxes) *config = &executor->config->sandboxes;
    if (!request->language)
        request->language = DEFAULT_LANGUAGE;
    *ret_field = "language";
    sandbox->runtime = config_find_runtime(executor->config, request->language);
    if (!sandbox->runtime) {
        (void)config_fail_language(executor->config, request->language, err);
        return SANDBOX_LANGUAGE;
    }
    if (jail_check_sandbox(sandbox->runtime, err) < 0)
        return SANDBOX_LANGUAGE;
    *ret_field = "image";
    if (request->image && executor_image_use(executor->config, sandbox->runtime, request->image,
                                             &sandbox->with_image, err) < 0)
        return SANDBOX_INVALID;
    struct execution_request like = executor_sandbox_like(request);
    enum sandbox_fault fault = executor_sandbox_check(sandbox, &like, ret_field, err);
    if (fault != SANDBOX_OK)
        return fault;
    for (int i = 0; i < EXECUTION_LIMITS_; i++)
        sandbox->limits[i] = jail_limit(sandbox->runtime, &like, (enum execution_limit)i);
    *ret_field = "home";
    if (request->home && !jail_home_is_valid(request->home)) {
        (void)brig_fail(err, BRIG_E_INVALID, 0, "home has to be " JAIL_HOMES "NAME");
        return SANDBOX_INVALID;
    }
    *ret_field = "timeout";
    if (request->timeout_ms == 0)
        request->timeout_ms = config->default_timeout_ms;
    if (request->timeout_ms > config->max_timeout_ms) {
        (void)brig_fail(err, BRIG_E_INVALID, 0,
                        "timeout is longer than %llu s, the most that is "
                        "allowed (sandboxes.max_timeout)",
                        (unsigned long long)(config->max_timeout_ms / 1000));
        return SANDBOX_INVALID;
    }
    *ret_field = "";
    return SANDBOX_OK;
}

/* ---- the jail ---- */

void executor_sandbox_keep_unenforced(struct sandbox *sandbox)
{
    const struct brig_unenforced *from = &sandbox->job->plan.unenforced;
    struct arena *arena = &sandbox->request.arena;
    sandbox->unenforced = arena_alloc(arena, (from->count + 1) * sizeof(char *));
    sandbox->unenforced_count = 0;
    for (size_t i = 0; sandbox->unenforced && i < from->count; i++) {
        const char *text = arena_strdup(arena, from->text[i]);
        if (text)
            sandbox->unenforced[sandbox->unenforced_count++] = text;
    }
}

static int start_jail(struct sandbox *sandbox, const char **ret_field, struct brig_error *err)
{
    struct executor *executor = sandbox->executor;
    struct execution_request like = executor_sandbox_like(&sandbox->request);
    struct jail jail;
    int result = executor_jail_make(&executor->ground, made_from(sandbox), &like, JAIL_HELD,
                                    sandbox->host_uid, &jail, err);
    if (jail.field)
        *ret_field = jail.field;
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = jail.argv;
    if (result == 0)
        result = brig_start(jail.policy, &command, &sandbox->job, err);
    executor_jail_done(&jail);
    if (result < 0)
        return result;
    if ((result = attach_own(sandbox->job->entry_fd, &sandbox->attach, err)) < 0)
        return result;
    close_fd(&sandbox->job->entry_fd);
    executor_instance_note(&executor->instance, sandbox->slot, brig_job_pid(sandbox->job));
    executor_sandbox_keep_unenforced(sandbox);
    sandbox->source = (struct executor_source){
        .ready = executor_sandbox_job_ready, .owner = sandbox, .fd = brig_job_fd(sandbox->job)};
    return executor_watch(executor, &sandbox->source, EPOLLIN, err);
}

void executor_sandbox_release(struct sandbox *sandbox)
{
    attach_done(&sandbox->attach);
    brig_job_free(sandbox->job);
    executor_instance_note(&sandbox->executor->instance, sandbox->slot, 0);
    executor_slot_free(sandbox->executor, sandbox->slot);
    sandbox_request_done(&sandbox->request);
    sandbox_request_done(&sandbox->network);
    executor_image_release(sandbox->with_image);
    free(sandbox);
}

struct sandbox *executor_sandbox_new(struct executor *executor, struct sandbox_request *request)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    if (!sandbox)
        return NULL;
    *sandbox = (struct sandbox){.executor = executor,
                                .request = *request,
                                .slot = SIZE_MAX,
                                .attach = ENTRY_INIT,
                                .source = {.fd = -1}};
    *request = (struct sandbox_request){0};
    execution_id_make(sandbox->id);
    execution_id_make(sandbox->token);
    return sandbox;
}

enum sandbox_fault executor_sandbox_start(struct sandbox *sandbox, const char **ret_field,
                                          struct brig_error *err)
{
    *ret_field = "";
    if (!executor_slot_take(sandbox->executor, &sandbox->slot, &sandbox->host_uid)) {
        (void)brig_fail(err, BRIG_E_STATE, 0, "too many concurrent jails");
        return SANDBOX_BUSY;
    }
    if (start_jail(sandbox, ret_field, err) == 0)
        return SANDBOX_OK;
    return **ret_field                                            ? SANDBOX_INVALID
           : err->sys_errno == EMFILE || err->sys_errno == ENFILE ? SANDBOX_BUSY
                                                                  : SANDBOX_FAILED;
}

/* ---- requests ---- */

static enum sandbox_fault check(struct sandbox *sandbox, const char **ret_field,
                                struct brig_error *err)
{
    const struct executor *executor = sandbox->executor;
    const typeof(executor->config->sandboxes) *config = &executor->config->sandboxes;
    *ret_field = "";
    if (!config->enabled) {
        (void)brig_fail(err, BRIG_E_STATE, 0, "sandboxes are switched off (sandboxes.enabled)");
        return SANDBOX_UNSUPPORTED;
    }
    if (executor->draining || executor->sandboxes.count >= config->max) {
        (void)brig_fail(err, BRIG_E_STATE, 0,
                        executor->draining ? "the server is shutting down"
                                           : "too many sandboxes (sandboxes.max)");
        return SANDBOX_BUSY;
    }
    enum sandbox_fault fault = executor_sandbox_check_settings(sandbox, ret_field, err);
    if (fault != SANDBOX_OK)
        return fault;
    return check_quotas(executor, sandbox, err) < 0 ? SANDBOX_LIMIT : SANDBOX_OK;
}

struct sandbox *executor_sandbox_create(struct executor *executor, struct sandbox_request *request,
                                        struct caller caller)
{
    const char *field;
    struct brig_error err = {0};
    struct sandbox *sandbox = executor_sandbox_new(executor, request);
    if (!sandbox) {
        executor_sandbox_refuse(executor, caller, SANDBOX_BUSY, "", "out of memory");
        return NULL;
    }
    enum sandbox_fault fault = check(sandbox, &field, &err);
    if (fault == SANDBOX_OK && executor_waiting_take(&sandbox))
        return sandbox;
    if (fault == SANDBOX_OK)
        fault = executor_sandbox_start(sandbox, &field, &err);
    if (fault == SANDBOX_OK) {
        executor_sandbox_link(sandbox);
        return sandbox;
    }
    executor_sandbox_refuse(executor, caller, fault, field, "%s", err.message);
    executor_sandbox_release(sandbox);
    return NULL;
}
