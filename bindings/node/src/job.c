/* SPDX-License-Identifier: MIT */
/* Jobs and templates.
 *
 * What takes milliseconds runs in a thread of libuv's pool: brig_start(), brig_template_start() and
 * brig_template_new(). What does not block runs in the thread of JavaScript: when libuv says that
 * brig_job_fd() is readable, index.js calls jobProcess(). A job is used by one thread at a time, as
 * the pool has let go of it when the promise is resolved. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "policy.h"

static const napi_type_tag JOB_TAG = {0x62726967206a6f62ULL, 1};
static const napi_type_tag TEMPLATE_TAG = {0x627269672074656dULL, 2};

/* ---- Templates ---- */

/* Used by JavaScript's object, and by each start that is under way. */
struct template_box {
    struct brig_template *template_;
    unsigned users;
};

static void template_release(struct template_box *box)
{
    if (box && --box->users == 0) {
        brig_template_free(box->template_);
        free(box);
    }
}

static void template_finalize(napi_env env, void *data, void *hint)
{
    (void)env, (void)hint;
    template_release(data);
}

/* ---- Jobs ---- */

/* Used by JavaScript's object, and by the loop as long as it watches. */
struct job {
    struct brig_job *job; /* NULL: released */
    void *input;          /* borrowed by the job */
    unsigned users;
    napi_env env;
    /* While it is watched: */
    bool watched;
    uv_poll_t poll;
    napi_ref callback;
    napi_async_context context;
    napi_async_cleanup_hook_handle hook;
};

static void job_end(struct job *job)
{
    brig_job_free(job->job);
    free(job->input);
    job->job = NULL;
    job->input = NULL;
}

static void job_release(struct job *job)
{
    if (--job->users == 0) {
        job_end(job);
        free(job);
    }
}

static void job_finalize(napi_env env, void *data, void *hint)
{
    (void)env, (void)hint;
    job_release(data);
}

static struct job *job_of(struct args *args)
{
    struct brig_error err = {.code = BRIG_E_STATE, .message = "the job was released"};
    struct job *job = args_external(args, args->values[0], &JOB_TAG);
    if (job && !job->job)
        (void)throws(args, BRIG_E_STATE, &err);
    return job;
}

/* ---- Watching ---- */

static void on_closed(uv_handle_t *handle)
{
    struct job *job = handle->data;
    (void)napi_delete_reference(job->env, job->callback);
    (void)napi_async_destroy(job->env, job->context);
    (void)napi_remove_async_cleanup_hook(job->hook);
    job_release(job);
}

/* Stops before the fd can be closed. */
static void unwatch(struct job *job)
{
    if (!job->watched)
        return;
    job->watched = false;
    (void)uv_poll_stop(&job->poll);
    uv_close((uv_handle_t *)&job->poll, on_closed);
}

/* A Worker ends, or the program. */
static void on_cleanup(napi_async_cleanup_hook_handle handle, void *data)
{
    struct job *job = data;
    (void)handle;
    unwatch(job);
    job_end(job);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct job *job = poll->data;
    napi_handle_scope scope;
    napi_value callback, receiver, error;
    (void)status, (void)events; /* jobProcess() finds out */
    if (napi_open_handle_scope(job->env, &scope) != napi_ok)
        return;
    napi_env env = job->env;
    if (napi_get_reference_value(env, job->callback, &callback) == napi_ok &&
        napi_get_global(env, &receiver) == napi_ok &&
        napi_make_callback(env, job->context, receiver, callback, 0, NULL, NULL) ==
            napi_pending_exception &&
        napi_get_and_clear_last_exception(env, &error) == napi_ok)
        (void)napi_fatal_exception(env, error);
    (void)napi_close_handle_scope(env, scope);
}

/* Calls a function whenever the job has something to do, until jobUnwatch() or jobFree(). */
static napi_value watch(napi_env env, napi_callback_info info)
{
    struct args args;
    uv_loop_t *loop;
    napi_value name;
    args_read(&args, env, info);
    struct job *job = job_of(&args);
    args_done(&args);
    if (args.failed)
        return NULL;
    if (job->watched || napi_get_uv_event_loop(env, &loop) != napi_ok ||
        uv_poll_init(loop, &job->poll, brig_job_fd(job->job)) != 0) {
        (void)napi_throw_error(env, NULL, "the job cannot be watched");
        return NULL;
    }
    job->watched = true;
    job->users++;
    job->env = env;
    job->poll.data = job;
    (void)napi_create_reference(env, args.values[1], 1, &job->callback);
    (void)napi_create_string_utf8(env, "brig", NAPI_AUTO_LENGTH, &name);
    (void)napi_async_init(env, NULL, name, &job->context);
    (void)napi_add_async_cleanup_hook(env, on_cleanup, job, &job->hook);
    (void)uv_poll_start(&job->poll, UV_READABLE, on_readable);
    return NULL;
}

/* The job is over, and has something left to be asked for. */
static napi_value stop_watching(napi_env env, napi_callback_info info)
{
    struct args args;
    args_read(&args, env, info);
    struct job *job = job_of(&args);
    args_done(&args);
    if (!args.failed)
        unwatch(job);
    return NULL;
}

static napi_value release(napi_env env, napi_callback_info info)
{
    struct args args;
    args_read(&args, env, info);
    struct job *job = args_external(&args, args.values[0], &JOB_TAG);
    args_done(&args);
    if (!args.failed) {
        unwatch(job);
        job_end(job);
    }
    return NULL;
}

/* Whether the loop goes on for this job alone. */
static napi_value keep_alive(napi_env env, napi_callback_info info)
{
    struct args args;
    args_read(&args, env, info);
    struct job *job = args_external(&args, args.values[0], &JOB_TAG);
    bool wanted = args_number(&args, args.values[1]) != 0;
    args_done(&args);
    if (!args.failed && job->watched && wanted)
        uv_ref((uv_handle_t *)&job->poll);
    else if (!args.failed && job->watched)
        uv_unref((uv_handle_t *)&job->poll);
    return NULL;
}

/* ---- Starting ---- */

/* What is on its way through the pool: a job, or a template if `argv` is NULL. */
struct start {
    struct args args; /* owns the texts of the command */
    napi_async_work work;
    napi_deferred deferred;
    struct brig_policy *policy; /* a copy: JavaScript may change its own meanwhile */
    struct template_box *template_;
    struct brig_command command;
    struct brig_pass_fd pass_fds[BRIG_PASS_FD_MAX];
    void *input;
    struct brig_job *job;
    struct brig_template *made;
    int code;
    struct brig_error err;
};

static void start_free(struct start *start)
{
    brig_policy_free(start->policy);
    template_release(start->template_);
    brig_job_free(start->job);
    brig_template_free(start->made);
    free(start->input);
    args_done(&start->args);
    free(start);
}

static void execute(napi_env env, void *data)
{
    struct start *start = data;
    (void)env;
    if (!start->command.argv)
        start->code = brig_template_new(start->policy, &start->made, &start->err);
    else if (start->template_)
        start->code = brig_template_start(start->template_->template_, &start->command, &start->job,
                                          &start->err);
    else
        start->code = brig_start(start->policy, &start->command, &start->job, &start->err);
}

static napi_value wrap_job(napi_env env, struct start *start)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    *job = (struct job){.job = start->job, .input = start->input, .users = 1};
    start->job = NULL;
    start->input = NULL;
    napi_value value = make_external(env, job, &JOB_TAG, job_finalize);
    if (!value)
        job_release(job);
    return value;
}

static napi_value wrap_template(napi_env env, struct start *start)
{
    struct template_box *box = calloc(1, sizeof *box);
    if (!box)
        return NULL;
    *box = (struct template_box){.template_ = start->made, .users = 1};
    start->made = NULL;
    napi_value value = make_external(env, box, &TEMPLATE_TAG, template_finalize);
    if (!value)
        template_release(box);
    return value;
}

static void complete(napi_env env, napi_status status, void *data)
{
    struct start *start = data;
    napi_value value = NULL;
    if (status != napi_ok && start->code == 0) {
        start->code = start->err.code = BRIG_E_STATE;
        (void)strcpy(start->err.message, "the start was cancelled");
    }
    if (start->code == 0)
        value = start->made ? wrap_template(env, start) : wrap_job(env, start);
    if (value)
        (void)napi_resolve_deferred(env, start->deferred, value);
    else
        (void)napi_reject_deferred(env, start->deferred, make_error(env, &start->err));
    (void)napi_delete_async_work(env, start->work);
    start_free(start);
}

/* The promise of what the pool will have made. */
static napi_value queue(napi_env env, struct start *start)
{
    napi_value promise = NULL, name;
    if (start->args.failed) {
        start_free(start);
        return NULL;
    }
    (void)napi_create_string_utf8(env, "brig.start", NAPI_AUTO_LENGTH, &name);
    if (napi_create_promise(env, &start->deferred, &promise) != napi_ok ||
        napi_create_async_work(env, NULL, name, execute, complete, start, &start->work) !=
            napi_ok ||
        napi_queue_async_work(env, start->work) != napi_ok) {
        start_free(start);
        (void)napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    return promise;
}

static struct start *start_new(napi_env env, napi_callback_info info)
{
    struct start *start = calloc(1, sizeof *start);
    if (!start) {
        (void)napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    start->command = (struct brig_command)BRIG_COMMAND_INIT;
    args_read(&start->args, env, info);
    struct args *args = &start->args;
    if (!args_is_null(args, args->values[0])) {
        struct brig_policy *policy = policy_of(args, args->values[0]);
        start->policy = policy ? brig_policy_copy(policy) : NULL;
        struct brig_error err = {.code = BRIG_E_NOMEM, .message = "out of memory"};
        if (policy && !start->policy)
            (void)throws(args, BRIG_E_NOMEM, &err);
    }
    return start;
}

static int int_element(struct args *args, napi_value array, uint32_t index)
{
    napi_value value;
    if (args->failed || napi_get_element(args->env, array, index, &value) != napi_ok)
        return -1;
    return (int)args_number(args, value);
}

/* The bytes of stdin are the job's until it is over, so they are copied. */
static void read_input(struct start *start, napi_value value)
{
    struct brig_error err = {.code = BRIG_E_NOMEM, .message = "out of memory"};
    size_t length = 0;
    const void *bytes = args_bytes(&start->args, value, &length);
    if (start->args.failed)
        return;
    start->input = malloc(length + 1);
    if (!start->input) {
        (void)throws(&start->args, BRIG_E_NOMEM, &err);
        return;
    }
    memcpy(start->input, bytes, length);
    start->command.stdio[0].bytes = start->input;
    start->command.stdio[0].length = length;
}

/* passFds is flat: the fd, its number inside, the next fd. */
static void read_pass_fds(struct start *start, napi_value value)
{
    struct brig_error err = {.code = BRIG_E_INVALID,
                             .message = "passFds: more than can be handed into a jail"};
    uint32_t count = 0;
    (void)napi_get_array_length(start->args.env, value, &count);
    if (count / 2 > BRIG_PASS_FD_MAX) {
        (void)throws(&start->args, BRIG_E_INVALID, &err);
        return;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        start->pass_fds[i].fd = int_element(&start->args, value, 2 * i);
        start->pass_fds[i].number = int_element(&start->args, value, 2 * i + 1);
    }
    start->command.pass_fds = start->pass_fds;
    start->command.pass_fd_count = count / 2;
}

/* jobStart(policy, template, argv, envp, kinds, fds, input, passFds): the promise of a job. */
static napi_value job_start(napi_env env, napi_callback_info info)
{
    struct start *start = start_new(env, info);
    if (!start)
        return NULL;
    struct args *args = &start->args;
    napi_value *values = args->values;
    if (!args_is_null(args, values[1])) {
        start->template_ = args_external(args, values[1], &TEMPLATE_TAG);
        if (start->template_)
            start->template_->users++;
    }
    static const char *const no_words[] = {NULL};
    const char *const *argv = args_texts(args, values[2]);
    start->command.argv = argv ? argv : no_words;
    start->command.envp = args_texts(args, values[3]);
    for (uint32_t i = 0; i < 3; i++) {
        start->command.stdio[i].kind = (enum brig_stdio_kind)int_element(args, values[4], i);
        start->command.stdio[i].fd = int_element(args, values[5], i);
    }
    if (!args_is_null(args, values[6]))
        read_input(start, values[6]);
    read_pass_fds(start, values[7]);
    return queue(env, start);
}

/* templateNew(policy): the promise of a template. */
static napi_value template_new(napi_env env, napi_callback_info info)
{
    struct start *start = start_new(env, info);
    return start ? queue(env, start) : NULL;
}

/* The object is of no use any more; starts that are under way go on. */
static napi_value template_free(napi_env env, napi_callback_info info)
{
    struct args args;
    void *data = NULL;
    args_read(&args, env, info);
    (void)args_external(&args, args.values[0], &TEMPLATE_TAG);
    if (!args.failed && napi_remove_wrap(env, args.values[0], &data) == napi_ok)
        template_release(data);
    args_done(&args);
    return NULL;
}

/* ---- What a job can be asked ---- */

/* Each function below: find the job, call, throw or return. */
#define BEGIN                                                                                      \
    struct args args;                                                                              \
    struct brig_error err = {0};                                                                   \
    args_read(&args, env, info);                                                                   \
    struct job *job = job_of(&args);                                                               \
    args_done(&args);                                                                              \
    if (args.failed)                                                                               \
        return NULL;                                                                               \
    (void)err

/* A boolean: whether the job is over. */
static napi_value process(napi_env env, napi_callback_info info)
{
    BEGIN;
    int code = brig_job_process(job->job, &err);
    if (throws(&args, code, &err))
        return NULL;
    napi_value over = NULL;
    (void)napi_get_boolean(env, code == 1, &over);
    return over;
}

static napi_value send_signal(napi_env env, napi_callback_info info)
{
    BEGIN;
    int number = (int)args_number(&args, args.values[1]);
    if (!args.failed)
        (void)throws(&args, brig_job_signal(job->job, number, &err), &err);
    return NULL;
}

static napi_value cancel(napi_env env, napi_callback_info info)
{
    BEGIN;
    (void)throws(&args, brig_job_cancel(job->job, &err), &err);
    return NULL;
}

static napi_value resize(napi_env env, napi_callback_info info)
{
    BEGIN;
    unsigned rows = (unsigned)args_number(&args, args.values[1]);
    unsigned columns = (unsigned)args_number(&args, args.values[2]);
    if (!args.failed)
        (void)throws(&args, brig_job_resize(job->job, rows, columns, &err), &err);
    return NULL;
}

static napi_value pid(napi_env env, napi_callback_info info)
{
    BEGIN;
    return make_number(env, brig_job_pid(job->job));
}

static napi_value take_stop(napi_env env, napi_callback_info info)
{
    BEGIN;
    return make_number(env, brig_job_take_stop(job->job));
}

static napi_value kept_dir(napi_env env, napi_callback_info info)
{
    BEGIN;
    return make_number(env, brig_job_kept_dir(job->job));
}

/* A copy of a job's fd, which JavaScript closes; -1 if the job has none. */
static napi_value copy_fd(struct args *args, int fd)
{
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0 && copy < 0) {
        struct brig_error err = {.code = BRIG_E_SYSTEM, .sys_errno = errno};
        (void)strcpy(err.message, "cannot copy a descriptor of the job");
        (void)throws(args, BRIG_E_SYSTEM, &err);
        return NULL;
    }
    return make_number(args->env, copy);
}

static napi_value terminal(napi_env env, napi_callback_info info)
{
    BEGIN;
    return copy_fd(&args, brig_job_terminal(job->job));
}

/* The only copy: when JavaScript closes it, the pipe is closed. */
static napi_value take_stream(napi_env env, napi_callback_info info)
{
    BEGIN;
    int stream = (int)args_number(&args, args.values[1]);
    int fd = args.failed ? -1 : brig_job_stream(job->job, stream);
    napi_value copy = args.failed ? NULL : copy_fd(&args, fd);
    if (copy && fd >= 0)
        (void)brig_job_close_stream(job->job, stream, NULL);
    return copy;
}

/* The next event of the network door as JSON, or undefined. */
static napi_value take_net_event(napi_env env, napi_callback_info info)
{
    BEGIN;
    char *text = NULL;
    const struct brig_net_event *event = brig_job_take_net_event(job->job);
    if (!event || throws(&args, brig_net_event_json(event, &text, &err), &err))
        return NULL;
    return make_text(env, text);
}

static void set_output(napi_env env, napi_value object, const char *name,
                       const struct brig_result *result, int stream)
{
    size_t length = 0;
    const char *bytes = brig_result_output(result, stream, &length, NULL);
    napi_value buffer;
    if (napi_create_buffer_copy(env, length, bytes, NULL, &buffer) == napi_ok)
        (void)napi_set_named_property(env, object, name, buffer);
}

/* {json, insideJail, stdout, stderr}. */
static napi_value result(napi_env env, napi_callback_info info)
{
    BEGIN;
    struct brig_result *result = NULL;
    char *text = NULL;
    napi_value object = NULL;
    if (!throws(&args, brig_job_result(job->job, &result, &err), &err) &&
        !throws(&args, brig_result_json(result, &text, &err), &err) &&
        napi_create_object(env, &object) == napi_ok) {
        napi_value inside = make_number(env, brig_result_inside_jail(result));
        (void)napi_set_named_property(env, object, "json", make_text(env, text));
        (void)napi_set_named_property(env, object, "insideJail", inside);
        set_output(env, object, "stdout", result, 1);
        set_output(env, object, "stderr", result, 2);
    }
    brig_result_free(result);
    return object;
}

void job_define(napi_env env, napi_value exports)
{
    static const struct function functions[] = {
        {"templateNew", template_new},
        {"templateFree", template_free},
        {"jobStart", job_start},
        {"jobWatch", watch},
        {"jobUnwatch", stop_watching},
        {"jobFree", release},
        {"jobKeepAlive", keep_alive},
        {"jobProcess", process},
        {"jobSignal", send_signal},
        {"jobCancel", cancel},
        {"jobResize", resize},
        {"jobPid", pid},
        {"jobTakeStop", take_stop},
        {"jobKeptDir", kept_dir},
        {"jobTerminal", terminal},
        {"jobTakeStream", take_stream},
        {"jobTakeNetEvent", take_net_event},
        {"jobResult", result},
    };
    define(env, exports, functions, sizeof functions / sizeof functions[0]);
}
