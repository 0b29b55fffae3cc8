/* SPDX-License-Identifier: MIT */
/* Contexts of sandboxes: created, listed, removed, and requests about them. */
#include "server/executor/contexts.h"

#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/error.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "server/executor/executor.h"

#define RUNS_MAX 32 /* that wait for one context */

/* ---- answers ---- */

struct sandbox_context executor_context_describe(const struct context *context)
{
    return (struct sandbox_context){.number = context->number,
                                    .language = interpreter_names[context->kind],
                                    .cwd = context->request.cwd,
                                    .is_default = context->is_default,
                                    .runs = context->run_count,
                                    .count = context->count,
                                    .created_ns = context->created_ns};
}

static void answer_context(const struct context *context, struct caller caller)
{
    struct sandbox_context one = executor_context_describe(context);
    executor_sandbox_answer(context->sandbox->executor, caller,
                            &(struct sandbox_answer){.contexts = &one, .context_count = 1});
}

static void answer_list(const struct sandbox *sandbox, struct caller caller)
{
    struct sandbox_context all[SANDBOX_CONTEXTS_MAX];
    size_t count = 0;
    for (const struct context *at = sandbox->contexts; at && count < SANDBOX_CONTEXTS_MAX;
         at = at->next)
        if (at->number > 0)
            all[count++] = executor_context_describe(at);
    executor_sandbox_answer(sandbox->executor, caller,
                            &(struct sandbox_answer){.contexts = all, .context_count = count});
}

/* ---- contexts ---- */

static struct context *find(const struct sandbox *sandbox, uint64_t number)
{
    struct context *context = sandbox->contexts;
    while (context && context->number != number)
        context = context->next;
    return context;
}

static enum sandbox_fault choose_kind(const struct sandbox *sandbox, const char *language,
                                      enum interpreter_kind *ret_kind,
                                      const struct runtime **ret_runtime, struct brig_error *err)
{
    const struct server_config *config = sandbox->executor->config;
    const char *wanted = language ? language : sandbox->runtime->name;
    const struct runtime *runtime = config_find_runtime(config, wanted);
    for (int i = 0; i < INTERPRETERS_ && runtime; i++)
        if (strcmp(runtime->name, interpreter_names[i]) == 0) {
            *ret_kind = (enum interpreter_kind)i;
            *ret_runtime = runtime;
            return SANDBOX_OK;
        }
    (void)brig_fail(err, BRIG_E_INVALID, 0,
                    "there is no context for '%s': use python, node or bash",
                    str_shown(wanted).text);
    return SANDBOX_LANGUAGE;
}

/* Whether clients see as many as there may be. */
static bool is_full(const struct sandbox *sandbox, struct brig_error *err)
{
    size_t count = 0;
    for (const struct context *at = sandbox->contexts; at; at = at->next)
        count += at->number > 0;
    if (count < SANDBOX_CONTEXTS_MAX)
        return false;
    (void)brig_fail(err, BRIG_E_STATE, 0, "the sandbox has %d contexts, and may not have more",
                    SANDBOX_CONTEXTS_MAX);
    return true;
}

static void free_context(struct context *context)
{
    sandbox_request_done(&context->request);
    free(context);
}

/* Takes the request if it succeeds. */
static enum sandbox_fault create(struct sandbox *sandbox, struct sandbox_request *request,
                                 struct context **ret_context, struct brig_error *err)
{
    enum interpreter_kind kind;
    const struct runtime *runtime;
    enum sandbox_fault fault = choose_kind(sandbox, request->language, &kind, &runtime, err);
    if (fault == SANDBOX_OK && is_full(sandbox, err))
        fault = SANDBOX_LIMIT;
    if (fault != SANDBOX_OK)
        return fault;
    struct context *context = malloc(sizeof *context);
    if (!context) {
        (void)brig_fail_nomem(err);
        return SANDBOX_BUSY;
    }
    *context = (struct context){.sandbox = sandbox,
                                .kind = kind,
                                .runtime = runtime,
                                .next = sandbox->contexts,
                                .request = *request};
    *request = (struct sandbox_request){0};
    sandbox->contexts = context;
    *ret_context = context;
    return SANDBOX_OK;
}

/* Its first use: from now on clients can see it. */
static void use(struct context *context)
{
    context->number = ++context->sandbox->next_context;
    context->created_ns = clock_wall_ns();
}

static void unlink_context(struct context *context)
{
    struct context **at = &context->sandbox->contexts;
    while (*at != context)
        at = &(*at)->next;
    *at = context->next;
}

/* ---- requests ---- */

static enum sandbox_fault check_env(const struct sandbox_request *request, struct brig_error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->env_count; i++) {
        bytes += strlen(request->env[i].name) + strlen(request->env[i].value) + 2;
        if (!environment_name_is_valid(request->env[i].name)) {
            (void)brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a valid variable name",
                            str_shown(request->env[i].name).text);
            return SANDBOX_INVALID;
        }
    }
    if (bytes <= EXECUTION_WORDS_MAX)
        return SANDBOX_OK;
    (void)brig_fail(err, BRIG_E_INVALID, 0, "env has more than %zu bytes", EXECUTION_WORDS_MAX);
    return SANDBOX_INVALID;
}

enum sandbox_fault executor_context_fault(struct brig_error *err, const char **ret_field)
{
    bool directory = executor_sandbox_blames_directory(err);
    bool missing = err->code == BRIG_E_NOT_FOUND; /* as in an image without Python */
    *ret_field = directory ? "cwd" : missing ? "language" : "";
    return directory ? SANDBOX_INVALID : missing ? SANDBOX_UNAVAILABLE : SANDBOX_FAILED;
}

/* Starts the interpreter at once, so that the answer can say that the directory is missing. */
static void create_asked(struct sandbox *sandbox, struct sandbox_request *request,
                         struct caller caller)
{
    struct brig_error err = {0};
    struct context *context = NULL;
    const char *field = "env";
    enum sandbox_fault fault = check_env(request, &err);
    if (fault == SANDBOX_OK) {
        field = "language";
        fault = create(sandbox, request, &context, &err);
    }
    if (fault == SANDBOX_OK && executor_context_start(context, &err) < 0) {
        fault = executor_context_fault(&err, &field);
        unlink_context(context);
        free_context(context);
    }
    if (fault == SANDBOX_OK) {
        use(context);
        answer_context(context, caller);
    } else
        executor_sandbox_refuse(sandbox->executor, caller, fault,
                                fault == SANDBOX_LIMIT ? "" : field, "%s", err.message);
}

/* The default context of a language is made when it is used first. */
static enum sandbox_fault find_default(struct sandbox *sandbox, const char *language,
                                       struct context **ret_context, struct brig_error *err)
{
    enum interpreter_kind kind;
    const struct runtime *runtime;
    struct sandbox_request plain = {0};
    enum sandbox_fault fault = choose_kind(sandbox, language, &kind, &runtime, err);
    for (struct context *at = sandbox->contexts; at && fault == SANDBOX_OK; at = at->next)
        if (at->is_default && at->kind == kind) {
            *ret_context = at;
            return at->number == 0 && is_full(sandbox, err) ? SANDBOX_LIMIT : SANDBOX_OK;
        }
    if (fault != SANDBOX_OK)
        return fault;
    plain.language = interpreter_names[kind];
    fault = create(sandbox, &plain, ret_context, err);
    if (fault == SANDBOX_OK)
        (*ret_context)->is_default = true;
    return fault;
}

int executor_context_prepare(struct sandbox *sandbox, struct brig_error *err)
{
    struct context *context = NULL;
    if (find_default(sandbox, NULL, &context, err) != SANDBOX_OK)
        return err->code ? -1 : BRIG_E_NOMEM;
    return executor_context_start(context, err);
}

static enum sandbox_fault check_run(const struct sandbox *sandbox,
                                    const struct sandbox_request *request, const char **ret_field,
                                    struct brig_error *err)
{
    const struct execution_bytes *code = &request->bytes;
    uint64_t most = sandbox->executor->config->sandboxes.max_commands;
    *ret_field = "code";
    if (code->length > EXECUTION_CODE_MAX || memchr(code->data, 0, code->length) ||
        !utf8_is_valid(code->data, code->length)) {
        (void)brig_fail(err, BRIG_E_INVALID, 0,
                        "code has to be UTF-8 without NUL, of at most %zu bytes",
                        EXECUTION_CODE_MAX);
        return SANDBOX_INVALID;
    }
    *ret_field = "env";
    enum sandbox_fault fault = check_env(request, err);
    if (fault != SANDBOX_OK)
        return fault;
    *ret_field = "";
    if (sandbox->running_count < most)
        return SANDBOX_OK;
    (void)brig_fail(err, BRIG_E_STATE, 0,
                    "%llu commands run in the sandbox, and there may not be more "
                    "(sandboxes.max_commands)",
                    (unsigned long long)most);
    return SANDBOX_LIMIT;
}

static void run_asked(struct sandbox *sandbox, struct sandbox_request *request,
                      struct caller caller)
{
    struct brig_error err = {0};
    const char *field = "";
    struct context *context = NULL;
    enum sandbox_fault fault = check_run(sandbox, request, &field, &err);
    if (fault == SANDBOX_OK && request->command == 0) {
        field = "language";
        fault = find_default(sandbox, request->language, &context, &err);
    } else if (fault == SANDBOX_OK) {
        context = find(sandbox, request->command);
        if (!context) {
            fault = SANDBOX_NO_COMMAND;
            field = "";
            (void)brig_fail(&err, BRIG_E_NOT_FOUND, 0, "the sandbox has no context %llu",
                            (unsigned long long)request->command);
        }
    }
    if (fault == SANDBOX_OK && context->run_count >= RUNS_MAX) {
        fault = SANDBOX_LIMIT;
        field = "";
        (void)brig_fail(&err, BRIG_E_STATE, 0, "%d runs wait for the context", RUNS_MAX);
    }
    if (fault == SANDBOX_OK && context->number == 0) {
        use(context);
        if (context->runtime == sandbox->runtime)
            executor_waiting_want(sandbox);
    }
    if (fault == SANDBOX_OK)
        executor_context_add_run(context, request, caller);
    else
        executor_sandbox_refuse(sandbox->executor, caller, fault, field, "%s", err.message);
}

static void act(struct context *context, enum sandbox_operation operation, struct caller caller)
{
    struct executor *executor = context->sandbox->executor;
    if (operation == SANDBOX_CONTEXT) {
        answer_context(context, caller);
        return;
    }
    if (operation == SANDBOX_CONTEXT_INTERRUPT) {
        if (!context->runs || !context->runs->sent) {
            executor_sandbox_refuse(executor, caller, SANDBOX_CONFLICT, "",
                                    "nothing runs in the context");
            return;
        }
        executor_context_interrupt(context);
        executor_sandbox_answer(executor, caller, &(struct sandbox_answer){0});
        return;
    }
    bool restart = operation == SANDBOX_CONTEXT_RESTART;
    executor_context_stop(context, SANDBOX_CONFLICT,
                          restart ? "the context was started again" : "the context was removed");
    if (restart) {
        answer_context(context, caller);
        return;
    }
    unlink_context(context);
    free_context(context);
    executor_sandbox_answer(executor, caller, &(struct sandbox_answer){0});
}

void executor_context_asked(struct sandbox *sandbox, struct sandbox_request *request,
                            const struct caller *caller)
{
    if (request->operation == SANDBOX_CONTEXT_CREATE) {
        create_asked(sandbox, request, *caller);
    } else if (request->operation == SANDBOX_CONTEXT_RUN) {
        run_asked(sandbox, request, *caller);
    } else if (request->operation == SANDBOX_CONTEXTS) {
        answer_list(sandbox, *caller);
    } else {
        struct context *context = find(sandbox, request->command);
        if (context)
            act(context, request->operation, *caller);
        else
            executor_sandbox_refuse(sandbox->executor, *caller, SANDBOX_NO_COMMAND, "",
                                    "the sandbox has no context %llu",
                                    (unsigned long long)request->command);
    }
}

bool executor_contexts_left(struct sandbox *sandbox, const struct caller *caller)
{
    for (struct context *context = sandbox->contexts; context; context = context->next)
        if (executor_context_leave(context, caller))
            return true;
    return false;
}

/* ---- the loop ---- */

void executor_contexts_pause(struct sandbox *sandbox, bool paused)
{
    uint64_t now_ms = clock_now_ms();
    for (struct context *context = sandbox->contexts; context; context = context->next) {
        struct context_run *run = context->runs;
        if (!paused)
            context->since_ms = now_ms;
        if (!run || !run->deadline_ms)
            continue;
        if (paused)
            run->left_ms = run->deadline_ms > now_ms ? run->deadline_ms - now_ms : 0;
        else
            run->deadline_ms = now_ms + run->left_ms;
    }
}

uint64_t executor_contexts_settle(struct sandbox *sandbox, uint64_t now_ms)
{
    uint64_t due_ms = UINT64_MAX;
    if (sandbox->state == SANDBOX_PAUSED) /* nothing can go on, or end */
        return due_ms;
    for (struct context *context = sandbox->contexts; context; context = context->next) {
        uint64_t one_ms = executor_context_settle(context, now_ms);
        due_ms = one_ms < due_ms ? one_ms : due_ms;
    }
    executor_interpreters_clear(sandbox, false);
    return due_ms;
}

void executor_contexts_end(struct sandbox *sandbox)
{
    for (struct context *context; (context = sandbox->contexts);) {
        executor_context_stop(context, SANDBOX_NOT_FOUND, "the sandbox has ended");
        sandbox->contexts = context->next;
        free_context(context);
    }
}
