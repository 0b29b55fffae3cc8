/* SPDX-License-Identifier: MIT */
/* A run, from its request to its result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "jail/prepare/template.h"
#include "server/config/config.h"
#include "server/executor/executor.h"
#include "server/executor/returned.h"

/* How long the kernel may take to clean up an ended run before the executor waits for it. */
#define LINGER_US 2000000

/* How long a zygote may take to fork a jail, which normally takes some milliseconds. */
#define BUILD_US 3000000

/* ---- the list ---- */

void executor_run_link(struct run **list, struct run *run)
{
    run->previous = NULL;
    run->next = *list;
    if (run->next)
        run->next->previous = run;
    *list = run;
}

void executor_run_unlink(struct run **list, struct run *run)
{
    *(run->previous ? &run->previous->next : list) = run->next;
    if (run->next)
        run->next->previous = run->previous;
    run->next = run->previous = NULL;
}

static void remove_run(struct run *run)
{
    struct executor *executor = run->executor;
    executor_run_unlink(&executor->runs, run);
    executor->run_count--;
    executor->queue.running -= run->request.queued;
    if (run->http != executor->http_processes)
        executor->inherited_count--;
    executor_run_bury(run);
}

struct run *executor_run_find(const struct executor *executor, const char *id)
{
    for (struct run *run = executor->runs; run; run = run->next)
        if (strcasecmp(run->request.id, id) == 0)
            return run;
    return NULL;
}

static bool take_slot(struct run *run)
{
    return executor_slot_take(run->executor, &run->slot, &run->host_uid);
}

/* ---- the end of a run ---- */

static void count_end(size_t language, const struct execution_result *result,
                      struct counters *counters)
{
    if (language < RUNTIMES_MAX)
        counters->languages[language].running--;
    counters_execution(counters, language, result);
    counters_events(counters, result->events, result->event_count);
}

/* If too many rows wait for the history process, results are stored without output and files. */
void executor_note_end(struct executor *executor, const struct runtime *runtime,
                       const struct execution_result *result, const struct str *bytes)
{
    struct journal *journal = &executor->journal;
    autostr struct str thin = {0};
    if (journal_bytes(journal) > JOURNAL_BYTES_MANY) {
        struct execution_result row = *result;
        row.file_count = 0;
        row.output.length = row.error_output.length = 0;
        row.output_truncated = row.output_truncated || result->output.length > 0;
        row.error_output_truncated = row.error_output_truncated || result->error_output.length > 0;
        (void)execution_result_encode(&row, &thin, NULL);
        bytes = &thin;
    }
    struct journal_state *state = journal_begin(journal);
    if (bytes->failed ||
        journal_add(journal, state, MESSAGE_END, bytes->data, bytes->length, NULL) < 0) {
        executor_warn(executor, "out of memory: the end of a run is missing in the history");
        return;
    }
    count_end(executor_language(executor, runtime), result, &state->counters);
    journal_commit(journal);
}

/* Takes the result; its strings may belong to the run. The row is sent first: a client that has its
 * result finds the run ended in the history. */
static void conclude(struct run *run, struct execution_result *result)
{
    autostr struct str bytes = {0};
    bool encoded = execution_result_encode(result, &bytes, NULL) == 0;
    executor_note_end(run->executor, run->runtime, result, &bytes);
    executor_send_rows(run->executor);
    if (encoded)
        executor_tell_http(run->executor, run->http, MESSAGE_DONE, run->tag, bytes.data,
                           bytes.length);
    execution_result_done(result);
    executor_stages_end(run);
    remove_run(run);
}

static void fail(struct run *run, const char *why)
{
    struct execution_result result;
    executor_outcome_failed(run, why, &result);
    conclude(run, &result);
}

static void finish(struct run *run)
{
    struct brig_result from = {0};
    struct execution_result result;
    struct brig_error err = {0};
    run->trace.at_us[STEP_ENDED] = clock_now_us();
    executor_output_drain(run);
    if (job_take_result(run->job, &from, &err) < 0) {
        fail(run, err.message);
        return;
    }
    executor_outcome(run, &from, &result);
    result_done(&from);
    executor_note_unenforced(run->executor, result.unenforced, result.unenforced_count);
    int next = run->stages ? executor_stages_next(run, &result, &err) : 0;
    if (next < 0)
        fail(run, err.message);
    if (next != 0)
        return;
    if (!run->stages)
        executor_stage_tell(run, &result);
    const struct brig_job *jail = run->stages ? executor_stages_jail(run) : run->job;
    if (run->request.return_count > 0)
        executor_return_files(&run->request, brig_job_kept_dir(jail), &result);
    conclude(run, &result);
}

/* A jail from a zygote has its init only after the fork. */
static void note_jail(struct run *run)
{
    pid_t pid = run->noted ? 0 : brig_job_pid(run->job);
    if (pid <= 0)
        return;
    executor_instance_note(&run->executor->instance, run->slot, pid);
    run->noted = true;
}

/* Returns whether a zygote is still making the jail. */
static bool is_building(const struct run *run)
{
    return run->job && run->job->building;
}

static void start_again(struct run *run);

static void job_ready(void *owner, uint32_t events)
{
    struct run *run = owner;
    struct brig_error err = {0};
    (void)events;
    if (run->state == RUN_OVER)
        return;
    bool building = is_building(run);
    int result = brig_job_process(run->job, &err);
    note_jail(run);
    if (run->state == RUN_RUNNING && building && result == 0 && !is_building(run)) {
        result = executor_pool_release(run, &err);
        run->trace.at_us[STEP_RELEASED] = clock_now_us();
    }
    if (run->state == RUN_WAITING) {
        executor_pool_heard(run, result, &err);
    } else if (result < 0 && building)
        start_again(run);
    else if (result < 0)
        fail(run, err.message);
    else if (result > 0)
        finish(run);
}

void executor_run_cancel(struct run *run, enum run_reason reason)
{
    if (run->state != RUN_RUNNING)
        return;
    run->state = RUN_ENDING;
    run->reason = reason;
    if (run->job)                              /* otherwise it is held */
        (void)brig_job_cancel(run->job, NULL); /* fails if the job is over already */
}

static struct run *find_by_tag(const struct executor *executor, uint64_t tag)
{
    for (struct run *run = executor->runs; run; run = run->next)
        if (run->tag == tag && run->http == executor->http_processes)
            return run;
    return NULL;
}

/* The run may have ended already. */
int executor_run_take_input(struct executor *executor, const struct message *message,
                            struct brig_error *err)
{
    struct run *run = find_by_tag(executor, message->tag);
    (void)err;
    if (run && run->request.interactive &&
        !executor_input_take(&run->input, message->bytes, message->length))
        executor_run_cancel(run, RUN_TOO_MUCH_INPUT);
    return 0;
}

int executor_run_take_signal(struct executor *executor, const struct message *message,
                             struct brig_error *err)
{
    struct run *run = find_by_tag(executor, message->tag);
    if (message->length != 1)
        return brig_fail(err, BRIG_E_INVALID, 0, "the http process sent an invalid signal");
    if (run && run->request.interactive && run->job)
        (void)brig_job_signal(run->job, message->bytes[0], NULL); /* fails if it is over */
    return 0;
}

int executor_run_take_taken(struct executor *executor, const struct message *message,
                            struct brig_error *err)
{
    struct run *run = find_by_tag(executor, message->tag);
    uint64_t bytes;
    if (message->length != sizeof bytes)
        return brig_fail(err, BRIG_E_INVALID, 0, "the http process sent an invalid count");
    memcpy(&bytes, message->bytes, sizeof bytes);
    if (run) {
        run->untaken -= bytes < run->untaken ? bytes : run->untaken;
        executor_output_resume(run);
    }
    return 0;
}

/* Ends the jail, if there is one. */
static void drop_job(struct run *run)
{
    executor_output_close(run);
    executor_input_done(&run->input);
    if (run->gate.fd >= 0)
        (void)close(take_fd(&run->gate.fd));
    if (!run->job && !run->stages)
        return;
    int kept = -1;
    if (run->job) {
        executor_unwatch(run->executor, &run->source); /* a child may hold a copy of the fd */
        kept = job_take_kept(run->job);
        brig_job_free(take_ptr(&run->job));
    }
    if (run->stages)
        kept = executor_stages_free(run);
    executor_sweeper_take(&run->executor->sweeper, kept); /* the last reference; see sweeper.h */
    executor_instance_note(&run->executor->instance, run->slot, 0);
    run->noted = false;
}

static void free_run(struct run *run)
{
    struct executor *executor = run->executor;
    drop_job(run);
    executor_slot_free(executor, run->slot);
    for (int i = 0; i < 2; i++)
        str_done(&run->streams[i].kept);
    free(run->order);
    execution_request_done(&run->request);
    free(run);
}

void executor_run_bury(struct run *run)
{
    run->state = RUN_OVER;
    executor_run_link(&run->executor->over, run);
}

/* Returns whether the run was answered but the kernel is still cleaning up its jail; nothing should
 * block on that. */
static bool lingers(const struct run *run)
{
    uint64_t ended_us = run->trace.at_us[STEP_ENDED];
    bool left = (run->job && !job_is_gone(run->job)) || executor_stages_linger(run);
    return left && ended_us != 0 && clock_now_us() < ended_us + LINGER_US;
}

void executor_runs_clear(struct executor *executor, bool all)
{
    for (struct run *run = executor->over, *next; run; run = next) {
        next = run->next;
        if (!all && lingers(run))
            continue;
        executor_run_unlink(&executor->over, run);
        free_run(run);
    }
}

void executor_runs_abandon(struct executor *executor)
{
    while (executor->runs)
        remove_run(executor->runs);
    executor_runs_clear(executor, true);
}

void executor_runs_resume(struct executor *executor)
{
    for (struct run *run = executor->runs; run && executor->paused_count > 0; run = run->next)
        executor_output_resume(run);
}

/* ---- the start of a run ---- */

int executor_run_watch(struct run *run, struct brig_error *err)
{
    job_answer_early(run->job);
    return executor_run_watch_stage(run, err);
}

int executor_run_watch_stage(struct run *run, struct brig_error *err)
{
    note_jail(run);
    run->source =
        (struct executor_source){.ready = job_ready, .owner = run, .fd = brig_job_fd(run->job)};
    return executor_watch(run->executor, &run->source, EPOLLIN, err);
}

static struct run *new_run(struct executor *executor)
{
    struct run *run = malloc(sizeof *run);
    if (!run)
        return NULL;
    *run = (struct run){
        .executor = executor, .slot = SIZE_MAX, .gate = {.fd = -1}, .input.source.fd = -1};
    for (int i = 0; i < 2; i++)
        run->streams[i] = (struct run_stream){.run = run, .source.fd = -1};
    return run;
}

struct run *executor_run_new(struct executor *executor)
{
    struct run *run = new_run(executor);
    if (!run || take_slot(run))
        return run;
    free(run);
    return NULL;
}

/* Starts the run in the runtime's frame, if there is one. If that fails, none of the code has run,
 * so it is tried without the frame; that attempt decides who is to blame. */
static int start_command(struct run *run, const struct jail *jail,
                         const struct brig_command *command, struct brig_error *err)
{
    struct brig_template *frame = executor_frame_find(run->executor, run->runtime, jail->policy);
    const struct job_source source = {.policy = jail->policy, .template = frame};
    if (frame && job_start(&source, command, &run->job, NULL) == 0)
        return 0;
    int result = brig_start(jail->policy, command, &run->job, err);
    if (frame && result == 0)
        executor_frame_failed(run->executor, run->runtime);
    return result;
}

/* A compiler has no input. */
int executor_run_streams(struct run *run, int ends[3], struct brig_command *command,
                         struct brig_error *err)
{
    const struct execution_bytes *in =
        run->runtime->input == RUNTIME_STDIN ? &run->request.code : &run->request.stdin_bytes;
    command->stdio[1] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = ends[0]};
    command->stdio[2] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = ends[1]};
    command->stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_NULL};
    if (executor_stage(run) == STAGE_COMPILE)
        return 0;
    command->stdio[0] =
        (struct brig_stdio){.kind = BRIG_STDIO_BYTES, .bytes = in->data, .length = in->length};
    if (!run->request.interactive)
        return 0;
    int result = executor_input_start(&run->input, run->executor, &ends[2], err);
    command->stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = ends[2]};
    return result;
}

static int start_job(struct run *run, const struct jail *jail, int ends[3], struct brig_error *err)
{
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = jail->argv};
    int result = executor_run_streams(run, ends, &command, err);
    if (result == 0)
        result = start_command(run, jail, &command, err);
    if (result < 0)
        return result;
    executor_stage_tell(run, NULL);
    return executor_run_watch(run, err);
}

static int start_run(struct run *run, struct brig_error *err)
{
    struct executor *executor = run->executor;
    struct jail jail;
    int ends[3] = {-1, -1, -1};
    if (executor_stages_wanted(run->runtime))
        return executor_stages_start(run, err);
    int result = executor_output_open(run, ends, err);
    autoclose int out = ends[0], error = ends[1];
    if (result < 0)
        return result;
    result = executor_jail_make(&executor->ground, run->runtime, &run->request, JAIL_ONE,
                                run->host_uid, &jail, err);
    if (jail.field) {
        run->fault = FAULT_REQUEST;
        run->field = jail.field;
    }
    if (result == 0)
        result = start_job(run, &jail, ends, err);
    autoclose int in = ends[2];
    executor_jail_done(&jail);
    (void)in;
    (void)out;
    (void)error;
    return result;
}

bool executor_key_is_full(const struct executor *executor, const char *domain, size_t more)
{
    uint64_t most = executor->config->security.max_executions_per_key, count = more;
    if (most == 0 || !*domain)
        return false;
    for (const struct run *run = executor->runs; run; run = run->next)
        count += strcmp(run->request.domain, domain) == 0;
    return count >= most;
}

/* The result of checking a request. */
struct verdict {
    const struct runtime *runtime;
    enum execution_fault fault; /* set if the run cannot start */
    const char *field;          /* FAULT_REQUEST: the wrong field */
};

static int check(struct executor *executor, const struct execution_request *request,
                 struct verdict *verdict, struct brig_error *err)
{
    verdict->fault = FAULT_BUSY;
    if (executor->draining && !request->queued) /* what was claimed must run */
        return brig_fail(err, BRIG_E_STATE, 0, "the server is shutting down");
    verdict->fault = FAULT_REQUEST;
    verdict->field = "language";
    verdict->runtime = config_find_runtime(executor->config, request->language);
    if (!verdict->runtime)
        return config_fail_language(executor->config, request->language, err);
    int result =
        executor_jail_check(&executor->ground, verdict->runtime, request, &verdict->field, err);
    if (result < 0)
        return result;
    verdict->fault = FAULT_BUSY;
    if (executor->run_count >= executor->run_most)
        return brig_fail(err, BRIG_E_STATE, 0, "too many concurrent runs (limit %zu)",
                         executor->run_most);
    if (executor_key_is_full(executor, request->domain, 0))
        return brig_fail(err, BRIG_E_STATE, 0, "too many concurrent executions with this API key");
    verdict->fault = FAULT_SERVER;
    return 0;
}

/* The history does not store input and files of a request. If too many rows wait for the history
 * process, it does not get the code either, so that rows do not fill the memory. */
static int encode_row(const struct executor *executor, const struct execution_request *request,
                      struct str *out)
{
    struct execution_request row = *request;
    execution_request_thin(&row);
    if (journal_bytes(&executor->journal) > JOURNAL_BYTES_MANY)
        row.code = (struct execution_bytes){.data = ""};
    return execution_request_encode(&row, out, NULL);
}

void executor_note_blocked(struct executor *executor, const struct execution_request *request,
                           size_t language)
{
    struct journal *journal = &executor->journal;
    autostr struct str bytes = {0};
    bool fits = journal_bytes(journal) <= JOURNAL_BYTES_FULL;
    struct journal_state *state = journal_begin(journal);
    if (language < RUNTIMES_MAX)
        state->counters.languages[language].statuses[EXECUTION_BLOCKED]++;
    counters_events(&state->counters, request->events, request->event_count);
    if (!fits ||
        (encode_row(executor, request, &bytes) == 0 &&
         journal_add(journal, state, MESSAGE_BLOCKED, bytes.data, bytes.length, NULL) == 0))
        journal_commit(journal);
}

int executor_note_begin(struct executor *executor, const struct execution_request *request,
                        size_t language)
{
    struct journal *journal = &executor->journal;
    autostr struct str bytes = {0};
    int result = encode_row(executor, request, &bytes);
    if (result < 0)
        return result;
    struct journal_state *state = journal_begin(journal);
    result = journal_add(journal, state, MESSAGE_BEGIN, bytes.data, bytes.length, NULL);
    if (result < 0)
        return result;
    if (language < RUNTIMES_MAX)
        state->counters.languages[language].running++;
    journal_commit(journal);
    return 0;
}

static void mark(struct run *run, enum execution_step step)
{
    run->trace.at_us[step] = clock_now_us();
}

static void give(struct run *run, struct execution_request *request, uint64_t tag, uint64_t http)
{
    struct executor *executor = run->executor;
    run->request = *request;
    *request = (struct execution_request){0};
    run->tag = tag;
    run->http = http;
    executor->inherited_count += http != executor->http_processes;
    executor->queue.running += run->request.queued;
    run->started_ns = clock_wall_ns();
    run->state = RUN_RUNNING;
    executor_run_link(&run->executor->runs, run);
    run->executor->run_count++;
}

static int hold(struct run *run)
{
    run->executor->held_count += !run->held;
    run->held = true;
    return 0;
}

/* A run that finds no slot or no descriptor waits for other runs, if there are any: also one that
 * has been answered has its jail until the kernel has cleaned up. */
static int start_cold(struct run *run, struct brig_error *err)
{
    struct executor *executor = run->executor;
    struct brig_error own = {0};
    bool alone = executor->run_count <= 1 && !executor->over;
    run->fault = FAULT_BUSY;
    if (run->slot >= executor->slot_count && !take_slot(run))
        return alone ? brig_fail(err, BRIG_E_STATE, 0, "too many concurrent jails (limit %zu)",
                                 executor->slot_count)
                     : hold(run);
    run->fault = FAULT_SERVER;
    int result = start_run(run, &own);
    mark(run, STEP_JAIL);
    mark(run, STEP_RELEASED);
    if (result < 0 && !alone && (own.sys_errno == EMFILE || own.sys_errno == ENFILE)) {
        drop_job(run);
        return hold(run);
    }
    if (result < 0 && err)
        *err = own;
    return result;
}

void executor_runs_start_held(struct executor *executor)
{
    size_t held = executor->held_count;
    for (struct run *run = executor->runs, *next; run && held > 0; run = next) {
        struct brig_error err = {0};
        next = run->next;
        if (!run->held)
            continue;
        held--;
        run->held = false;
        executor->held_count--;
        int result = run->state == RUN_RUNNING ? start_cold(run, &err) : BRIG_E_STATE;
        if (result == 0)
            continue;
        executor_output_close(run);
        fail(run, err.message[0] ? err.message : "it was ended before it began");
    }
}

/* A waiting jail failed: none of the code has run, so the run is started cold. */
static int go_cold(struct run *run, struct brig_error *err)
{
    executor_unwatch(run->executor, &run->source);
    executor_unwatch(run->executor, &run->gate);
    drop_job(run);
    run->trace.warm = false;
    return start_cold(run, err);
}

/* If a zygote is still making the jail, job_ready() releases it later. */
static int start_warm(struct run *run, struct brig_error *err)
{
    if (is_building(run))
        return 0;
    int result = executor_pool_release(run, NULL);
    mark(run, STEP_RELEASED);
    return result < 0 ? go_cold(run, err) : 0;
}

static void start_again(struct run *run)
{
    struct brig_error err = {0};
    if (run->state == RUN_RUNNING && go_cold(run, &err) == 0)
        return;
    executor_output_close(run);
    fail(run, err.message[0] ? err.message : "it was ended before it began");
}

void executor_runs_hurry(struct executor *executor)
{
    for (struct run *run = executor->runs, *next; run; run = next) {
        next = run->next;
        const struct zygote *stuck = run->job ? job_stuck_zygote(run->job, BUILD_US) : NULL;
        if (!stuck)
            continue;
        executor_pools_zygote_stuck(executor, stuck);
        start_again(run);
    }
}

void executor_run_refuse(struct executor *executor, const struct queue_entry *entry,
                         enum execution_status status, const char *why)
{
    const struct execution_result result = {.id = entry->id,
                                            .domain = entry->domain,
                                            .kept = true,
                                            .status = status,
                                            .exit_code = -1,
                                            .output = {.data = ""},
                                            .error_output = {.data = ""},
                                            .message = why,
                                            .started_ns = clock_wall_ns()};
    autostr struct str bytes = {0};
    struct journal_state *state = journal_begin(&executor->journal);
    if (execution_result_encode(&result, &bytes, NULL) < 0 ||
        journal_add(&executor->journal, state, MESSAGE_END, bytes.data, bytes.length, NULL) < 0) {
        executor_warn(executor, "out of memory: the end of a run is missing in the history");
        return;
    }
    journal_commit(&executor->journal);
}

void executor_run_begin(struct executor *executor, struct execution_request *request, uint64_t tag,
                        uint64_t http)
{
    struct brig_error err = {0};
    struct verdict verdict = {0};
    uint64_t received_us = clock_now_us();
    int result = check(executor, request, &verdict, &err);
    uint64_t checked_us = clock_now_us();
    struct run *run = result < 0 ? NULL : executor_pool_take(executor, verdict.runtime, request);
    if (!run)
        run = new_run(executor);
    size_t language = executor_language(executor, verdict.runtime);
    if (!run || executor_note_begin(executor, request, language) < 0) {
        if (run)
            executor_run_bury(run);
        execution_request_done(request);
        executor_warn(executor, "out of memory: a run was not started");
        return;
    }
    run->runtime = verdict.runtime;
    run->fault = verdict.fault;
    run->field = verdict.field;
    give(run, request, tag, http);
    run->trace.at_us[STEP_RECEIVED] = received_us;
    run->trace.at_us[STEP_CHECKED] = checked_us;
    mark(run, STEP_JAIL);
    if (result == 0)
        result = run->trace.warm ? start_warm(run, &err) : start_cold(run, &err);
    if (result < 0) {
        executor_output_close(run);
        fail(run, err.message);
    }
}
