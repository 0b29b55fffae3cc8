/* SPDX-License-Identifier: MIT */
/* Executions as bytes for another process, and back. Both directions name the fields in one order. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "server/execution.h"
#include "server/pack.h"

#define FORMAT 2             /* changes with the order of the fields */
#define WORD_MAX 128         /* ids, names of languages, addresses */
#define LINE_MAX_LENGTH 4096 /* details and messages */
#define UNENFORCED_MAX 64

/* ---- parts of both ---- */

static void pack_events(struct str *out, const struct execution_event *events, size_t count)
{
    pack_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        pack_text(out, events[i].type);
        pack_text(out, events[i].detail);
        pack_u64(out, events[i].severity);
    }
}

static struct execution_event *unpack_events(struct unpack *in, size_t *ret_count)
{
    struct execution_event *events =
        unpack_array(in, EXECUTION_EVENTS_MAX, sizeof *events, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        events[i] = (struct execution_event){
            .type = unpack_needed_text(in, WORD_MAX),
            .detail = unpack_needed_text(in, LINE_MAX_LENGTH),
            .severity = (enum execution_severity)unpack_u64(in, SEVERITY_CRITICAL),
        };
    return events;
}

static void pack_files(struct str *out, const struct execution_file *files, size_t count)
{
    pack_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        pack_text(out, files[i].name);
        pack_bytes(out, files[i].content.data, files[i].content.length);
        pack_u64(out, files[i].truncated);
    }
}

static struct execution_file *unpack_files(struct unpack *in, size_t max, size_t bytes_max,
                                           size_t *ret_count)
{
    struct execution_file *files = unpack_array(in, max, sizeof *files, ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        files[i] = (struct execution_file){
            .name = unpack_needed_text(in, EXECUTION_NAME_MAX),
            .content = unpack_bytes(in, bytes_max),
            .truncated = unpack_u64(in, 1) != 0,
        };
        if (!execution_file_name_is_valid(files[i].name))
            in->failed = true;
    }
    return files;
}

static void pack_texts(struct str *out, const char *const *texts, size_t count)
{
    pack_u64(out, count);
    for (size_t i = 0; i < count; i++)
        pack_text(out, texts[i]);
}

static const char **unpack_texts(struct unpack *in, size_t max, size_t length_max,
                                 size_t *ret_count)
{
    const char **texts = unpack_array(in, max, sizeof *texts, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        texts[i] = unpack_needed_text(in, length_max);
    return texts;
}

static void pack_pairs(struct str *out, const struct execution_pair *pairs, size_t count)
{
    pack_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        pack_text(out, pairs[i].name);
        pack_text(out, pairs[i].value);
    }
}

static struct execution_pair *unpack_pairs(struct unpack *in, size_t *ret_count)
{
    struct execution_pair *pairs = unpack_array(in, EXECUTION_ENV_MAX, sizeof *pairs, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        pairs[i] = (struct execution_pair){
            .name = unpack_needed_text(in, EXECUTION_NAME_MAX),
            .value = unpack_needed_text(in, EXECUTION_VALUE_MAX),
        };
    return pairs;
}

static const char *unpack_id(struct unpack *in)
{
    const char *id = unpack_needed_text(in, EXECUTION_ID_LENGTH);
    if (!execution_id_is_valid(id))
        in->failed = true;
    return id;
}

/* A request has none before the executor has given it one. */
static const char *unpack_id_or_none(struct unpack *in)
{
    const char *id = unpack_needed_text(in, EXECUTION_ID_LENGTH);
    if (*id && !execution_id_is_valid(id))
        in->failed = true;
    return id;
}

static int packed(const struct str *out, struct brig_error *err)
{
    return out->failed ? brig_fail_nomem(err) : 0;
}

/* ---- requests ---- */

int execution_request_encode(const struct execution_request *request, struct str *out,
                             struct brig_error *err)
{
    pack_u64(out, FORMAT);
    pack_text(out, request->id);
    pack_text(out, request->request_id);
    pack_text(out, request->client);
    pack_text(out, request->domain);
    pack_text(out, request->language);
    pack_bytes(out, request->code.data, request->code.length);
    pack_bytes(out, request->stdin_bytes.data, request->stdin_bytes.length);
    pack_texts(out, request->args, request->arg_count);
    pack_pairs(out, request->env, request->env_count);
    pack_files(out, request->files, request->file_count);
    pack_texts(out, request->returns, request->return_count);
    pack_texts(out, request->allow, request->allow_count);
    pack_u64(out, request->network);
    pack_u64(out, request->stream);
    pack_text(out, request->work_dir);
    pack_u64(out, request->timeout_ms);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        pack_u64(out, request->limits[i]);
    pack_events(out, request->events, request->event_count);
    return packed(out, err);
}

static void unpack_request(struct unpack *in, struct execution_request *ret)
{
    if (unpack_u64(in, UINT64_MAX) != FORMAT)
        in->failed = true;
    ret->id = unpack_id_or_none(in);
    ret->request_id = unpack_needed_text(in, WORD_MAX);
    ret->client = unpack_needed_text(in, WORD_MAX);
    ret->domain = unpack_needed_text(in, WORD_MAX);
    ret->language = unpack_needed_text(in, WORD_MAX);
    ret->code = unpack_bytes(in, EXECUTION_CODE_MAX);
    ret->stdin_bytes = unpack_bytes(in, EXECUTION_STDIN_MAX);
    ret->args = unpack_texts(in, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &ret->arg_count);
    ret->env = unpack_pairs(in, &ret->env_count);
    ret->files = unpack_files(in, EXECUTION_FILES_MAX, EXECUTION_FILE_BYTES_MAX, &ret->file_count);
    ret->returns = unpack_texts(in, EXECUTION_RETURNS_MAX, EXECUTION_NAME_MAX, &ret->return_count);
    ret->allow = unpack_texts(in, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &ret->allow_count);
    ret->network = unpack_u64(in, 1) != 0;
    ret->stream = unpack_u64(in, 1) != 0;
    ret->work_dir = unpack_text(in, EXECUTION_PATH_MAX);
    ret->timeout_ms = unpack_u64(in, UINT32_MAX);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        ret->limits[i] = unpack_u64(in, UINT32_MAX);
    ret->events = unpack_events(in, &ret->event_count);
}

int execution_request_decode(const void *bytes, size_t length, struct execution_request *ret,
                             struct brig_error *err)
{
    struct execution_request request = {0};
    struct unpack in = {.at = bytes, .left = length, .arena = &request.arena};
    unpack_request(&in, &request);
    if (in.failed || in.left > 0) {
        execution_request_done(&request);
        return brig_fail(err, BRIG_E_INVALID, 0, "a request for an execution is malformed");
    }
    *ret = request;
    return 0;
}

void execution_request_done(struct execution_request *request)
{
    arena_done(&request->arena);
    *request = (struct execution_request){0};
}

/* ---- results ---- */

int execution_result_encode(const struct execution_result *result, struct str *out,
                            struct brig_error *err)
{
    pack_u64(out, FORMAT);
    pack_text(out, result->id);
    pack_u64(out, result->status);
    pack_u64(out, (uint64_t)result->exit_code + 1); /* -1 becomes 0 */
    pack_u64(out, (uint64_t)result->signal);
    pack_bytes(out, result->output.data, result->output.length);
    pack_bytes(out, result->error_output.data, result->error_output.length);
    pack_u64(out, result->output_truncated);
    pack_u64(out, result->error_output_truncated);
    pack_u64(out, result->duration_us);
    pack_u64(out, result->cpu_time_us);
    pack_u64(out, result->memory_peak_bytes);
    pack_u64(out, result->pids_used);
    pack_events(out, result->events, result->event_count);
    pack_files(out, result->files, result->file_count);
    pack_text(out, result->message ? result->message : "");
    pack_texts(out, result->unenforced, result->unenforced_count);
    pack_u64(out, (uint64_t)result->started_ns);
    pack_u64(out, result->fault);
    pack_text(out, result->field ? result->field : "");
    pack_u64(out, result->trace.warm);
    for (size_t i = 0; i < STEPS_; i++)
        pack_u64(out, result->trace.at_us[i]);
    return packed(out, err);
}

static void unpack_result(struct unpack *in, struct execution_result *ret)
{
    if (unpack_u64(in, UINT64_MAX) != FORMAT)
        in->failed = true;
    ret->id = unpack_id(in);
    ret->status = (enum execution_status)unpack_u64(in, EXECUTION_STATUSES_ - 1);
    ret->exit_code = (int)unpack_u64(in, 256) - 1;
    ret->signal = (int)unpack_u64(in, 64);
    ret->output = unpack_bytes(in, EXECUTION_OUTPUT_MAX);
    ret->error_output = unpack_bytes(in, EXECUTION_STDERR_MAX);
    ret->output_truncated = unpack_u64(in, 1) != 0;
    ret->error_output_truncated = unpack_u64(in, 1) != 0;
    ret->duration_us = unpack_u64(in, UINT64_MAX);
    ret->cpu_time_us = unpack_u64(in, UINT64_MAX);
    ret->memory_peak_bytes = unpack_u64(in, UINT64_MAX);
    ret->pids_used = unpack_u64(in, UINT64_MAX);
    ret->events = unpack_events(in, &ret->event_count);
    ret->files = unpack_files(in, EXECUTION_RETURNED_FILES_MAX, EXECUTION_RETURNED_BYTES_MAX,
                              &ret->file_count);
    ret->message = unpack_needed_text(in, LINE_MAX_LENGTH);
    ret->unenforced = unpack_texts(in, UNENFORCED_MAX, LINE_MAX_LENGTH, &ret->unenforced_count);
    ret->started_ns = (int64_t)unpack_u64(in, INT64_MAX);
    ret->fault = (enum execution_fault)unpack_u64(in, FAULTS_ - 1);
    ret->field = unpack_needed_text(in, WORD_MAX);
    ret->trace.warm = unpack_u64(in, 1) != 0;
    for (size_t i = 0; i < STEPS_; i++)
        ret->trace.at_us[i] = unpack_u64(in, UINT64_MAX);
}

int execution_result_decode(const void *bytes, size_t length, struct execution_result *ret,
                            struct brig_error *err)
{
    struct execution_result result = {0};
    struct unpack in = {.at = bytes, .left = length, .arena = &result.arena};
    unpack_result(&in, &result);
    if (in.failed || in.left > 0) {
        execution_result_done(&result);
        return brig_fail(err, BRIG_E_INVALID, 0, "the result of an execution is malformed");
    }
    *ret = result;
    return 0;
}

void execution_result_done(struct execution_result *result)
{
    arena_done(&result->arena);
    *result = (struct execution_result){0};
}
