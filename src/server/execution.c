/* SPDX-License-Identifier: MIT */
/* Executions: names of their values, and their encoding for other processes. Encoder and decoder
 * list the fields in the same order. */
#include "server/execution.h"

#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/execution_wire.h"

#define VERSION 5            /* increment when fields or their order change */
#define WORD_MAX 128         /* ids, names of languages, addresses */
#define LINE_MAX_LENGTH 4096 /* details and messages */
#define UNENFORCED_MAX 64

static const char *const status_names[EXECUTION_STATUSES_] = {
    [EXECUTION_RUNNING] = "running",
    [EXECUTION_OK] = "ok",
    [EXECUTION_ERROR] = "error",
    [EXECUTION_TIMEOUT] = "timeout",
    [EXECUTION_CPU_TIMEOUT] = "cpu_timeout",
    [EXECUTION_OOM] = "oom",
    [EXECUTION_KILLED] = "killed",
    [EXECUTION_OUTPUT_LIMIT] = "output_limit",
    [EXECUTION_SETUP_FAILED] = "setup_failed",
    [EXECUTION_LOST] = "lost",
    [EXECUTION_BLOCKED] = "blocked",
    [EXECUTION_QUEUED] = "queued",
};

const char *execution_status_name(enum execution_status status)
{
    return status_names[status];
}

bool execution_status_is_final(enum execution_status status)
{
    return status != EXECUTION_RUNNING && status != EXECUTION_QUEUED;
}

enum execution_status execution_status_from_name(const char *name)
{
    unsigned i = 0;
    while (i < EXECUTION_STATUSES_ && !str_equal(name, status_names[i]))
        i++;
    return (enum execution_status)i;
}

const char *execution_step_name(enum execution_step step)
{
    static const char *const names[STEPS_] = {
        [STEP_DECODED] = "decoded", [STEP_SENT] = "sent",   [STEP_RECEIVED] = "received",
        [STEP_CHECKED] = "checked", [STEP_JAIL] = "jail",   [STEP_RELEASED] = "released",
        [STEP_OUTPUT] = "output",   [STEP_ENDED] = "ended", [STEP_ANSWERED] = "answered",
    };
    return names[step];
}

const char *execution_severity_name(enum execution_severity severity)
{
    static const char *const names[] = {
        [SEVERITY_LOW] = "low",
        [SEVERITY_MEDIUM] = "medium",
        [SEVERITY_HIGH] = "high",
        [SEVERITY_CRITICAL] = "critical",
    };
    return names[severity];
}

bool execution_id_is_valid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (!text || strlen(text) != EXECUTION_ID_LENGTH)
        return false;
    for (size_t i = 0; i < EXECUTION_ID_LENGTH; i++)
        if (form[i] == '-' ? text[i] != '-' : hex_value(text[i]) < 0)
            return false;
    return true;
}

void execution_id_make(char ret_id[EXECUTION_ID_LENGTH + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char r[16];
    /* getrandom() returns so few bytes completely; early after boot it blocks. */
    while (getrandom(r, sizeof r, 0) != sizeof r)
        ;
    r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
    r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof r; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *ret_id++ = '-';
        *ret_id++ = digits[r[i] >> 4];
        *ret_id++ = digits[r[i] & 15];
    }
    *ret_id = 0;
}

/* Whether `length` lower-case hexadecimal digits follow, not all of them 0. */
static bool is_trace_id(const char *text, size_t length)
{
    return strspn(text, "0123456789abcdef") == length && strspn(text, "0") < length;
}

bool execution_traceparent_is_valid(const char *text)
{
    return text && strlen(text) == EXECUTION_TRACEPARENT_LENGTH && memcmp(text, "00-", 3) == 0 &&
           is_trace_id(text + 3, 32) && text[35] == '-' && is_trace_id(text + 36, 16) &&
           text[52] == '-' && strspn(text + 53, "0123456789abcdef") == 2;
}

bool execution_idempotency_key_is_valid(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > EXECUTION_IDEMPOTENCY_MAX)
        return false;
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

bool execution_file_name_is_valid(const char *name)
{
    size_t length = strlen(name), parts = 0;
    if (length == 0 || length > EXECUTION_NAME_MAX)
        return false;
    for (const char *part = name; parts < EXECUTION_PARTS_MAX; parts++) {
        size_t part_length = strcspn(part, "/");
        if (part_length == 0 || (part_length == 1 && part[0] == '.') ||
            (part_length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[part_length] == 0)
            return true;
        part += part_length + 1;
    }
    return false;
}

void execution_interleave(const struct execution_result *result, struct str *out)
{
    struct execution_bytes left[2] = {result->output, result->error_output};
    for (size_t i = 0; i < result->order_count; i++) {
        struct execution_bytes *of = &left[result->order[i].error];
        size_t length = result->order[i].length;
        length = length < of->length ? length : of->length;
        str_append_bytes(out, of->data, length);
        of->data += length;
        of->length -= length;
    }
    for (int i = 0; i < 2; i++)
        str_append_bytes(out, left[i].data, left[i].length);
}

/* ---- Encoding: common parts ---- */

struct execution_bytes execution_get_bytes(struct wire_reader *in, size_t max)
{
    struct execution_bytes bytes;
    bytes.data = wire_get_bytes(in, max, &bytes.length);
    return bytes;
}

static void put_events(struct str *out, const struct execution_event *events, size_t count)
{
    wire_put_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        wire_put_text(out, events[i].type);
        wire_put_text(out, events[i].detail);
        wire_put_u64(out, events[i].severity);
    }
}

static struct execution_event *get_events(struct wire_reader *in, struct arena *arena,
                                          size_t *ret_count)
{
    struct execution_event *events =
        wire_get_array(in, arena, EXECUTION_EVENTS_MAX, sizeof *events, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        events[i] = (struct execution_event){
            .type = wire_get_text(in, WORD_MAX),
            .detail = wire_get_text(in, LINE_MAX_LENGTH),
            .severity = (enum execution_severity)wire_get_u64(in, SEVERITY_CRITICAL),
        };
    return events;
}

static void put_files(struct str *out, const struct execution_file *files, size_t count)
{
    wire_put_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        wire_put_text(out, files[i].name);
        wire_put_bytes(out, files[i].content.data, files[i].content.length);
        wire_put_bool(out, files[i].truncated);
    }
}

static struct execution_file *get_files(struct wire_reader *in, struct arena *arena, size_t max,
                                        size_t bytes_max, size_t *ret_count)
{
    struct execution_file *files = wire_get_array(in, arena, max, sizeof *files, ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        files[i] = (struct execution_file){
            .name = wire_get_text(in, EXECUTION_NAME_MAX),
            .content = execution_get_bytes(in, bytes_max),
            .truncated = wire_get_bool(in),
        };
        if (!execution_file_name_is_valid(files[i].name))
            in->failed = true;
    }
    return files;
}

void execution_put_texts(struct str *out, const char *const *texts, size_t count)
{
    wire_put_u64(out, count);
    for (size_t i = 0; i < count; i++)
        wire_put_text(out, texts[i]);
}

static const char **get_texts(struct wire_reader *in, struct arena *arena, size_t max,
                              size_t length_max, size_t *ret_count)
{
    const char **texts = wire_get_array(in, arena, max, sizeof *texts, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        texts[i] = wire_get_text(in, length_max);
    return texts;
}

void execution_put_pairs(struct str *out, const struct execution_pair *pairs, size_t count)
{
    wire_put_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        wire_put_text(out, pairs[i].name);
        wire_put_text(out, pairs[i].value);
    }
}

struct execution_pair *execution_get_pairs(struct wire_reader *in, struct arena *arena, size_t most,
                                           size_t value_max, size_t *ret_count)
{
    struct execution_pair *pairs = wire_get_array(in, arena, most, sizeof *pairs, ret_count);
    for (size_t i = 0; i < *ret_count; i++)
        pairs[i] = (struct execution_pair){
            .name = wire_get_text(in, EXECUTION_NAME_MAX),
            .value = wire_get_text(in, value_max),
        };
    return pairs;
}

/* A request has no id until the executor assigns one. */
const char *execution_get_id(struct wire_reader *in, bool may_be_empty)
{
    const char *id = wire_get_text(in, EXECUTION_ID_LENGTH);
    if (!(may_be_empty && !*id) && !execution_id_is_valid(id))
        in->failed = true;
    return id;
}

int execution_encoded(const struct str *out, struct brig_error *err)
{
    return out->failed ? brig_fail_nomem(err) : 0;
}

/* ---- Requests ---- */

static void put_stages(struct str *out, const struct execution_request *request)
{
    wire_put_u64(out, request->cpu_ms);
    wire_put_u64(out, request->output_bytes);
    wire_put_u64(out, request->compile.timeout_ms);
    wire_put_u64(out, request->compile.cpu_ms);
    wire_put_u64(out, request->compile.memory_mb);
    wire_put_u64(out, request->compile.output_bytes);
    execution_put_texts(out, request->compile_args, request->compile_arg_count);
    wire_put_text(out, request->main);
    wire_put_bool(out, request->ordered);
    wire_put_bool(out, request->interactive);
}

static void get_stages(struct wire_reader *in, struct execution_request *ret)
{
    ret->cpu_ms = wire_get_u64(in, UINT32_MAX);
    ret->output_bytes = wire_get_u64(in, UINT32_MAX);
    ret->compile.timeout_ms = wire_get_u64(in, UINT32_MAX);
    ret->compile.cpu_ms = wire_get_u64(in, UINT32_MAX);
    ret->compile.memory_mb = wire_get_u64(in, UINT32_MAX);
    ret->compile.output_bytes = wire_get_u64(in, UINT32_MAX);
    ret->compile_args = get_texts(in, &ret->arena, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX,
                                  &ret->compile_arg_count);
    ret->main = wire_get_text_or_null(in, EXECUTION_NAME_MAX);
    ret->ordered = wire_get_bool(in);
    ret->interactive = wire_get_bool(in);
    if (ret->main && !execution_file_name_is_valid(ret->main))
        in->failed = true;
}

int execution_request_encode(const struct execution_request *request, struct str *out,
                             struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_text(out, request->id);
    wire_put_text(out, request->request_id);
    wire_put_text(out, request->client);
    wire_put_text(out, request->domain);
    wire_put_text(out, request->language);
    wire_put_bytes(out, request->code.data, request->code.length);
    wire_put_bytes(out, request->stdin_bytes.data, request->stdin_bytes.length);
    execution_put_texts(out, request->args, request->arg_count);
    execution_put_pairs(out, request->env, request->env_count);
    put_files(out, request->files, request->file_count);
    execution_put_texts(out, request->returns, request->return_count);
    execution_put_texts(out, request->allow, request->allow_count);
    wire_put_bool(out, request->network);
    wire_put_bool(out, request->stream);
    wire_put_text(out, request->work_dir);
    wire_put_u64(out, request->timeout_ms);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        wire_put_u64(out, request->limits[i]);
    put_events(out, request->events, request->event_count);
    wire_put_text(out, request->traceparent ? request->traceparent : "");
    wire_put_text(out, request->idempotency_key ? request->idempotency_key : "");
    wire_put_text(out, request->body_sha256 ? request->body_sha256 : "");
    wire_put_bool(out, request->queued);
    wire_put_i64(out, request->priority);
    wire_put_text(out, request->callback_url ? request->callback_url : "");
    wire_put_text(out, request->callback_secret ? request->callback_secret : "");
    wire_put_text(out, request->sandbox);
    put_stages(out, request);
    wire_put_u64(out, request->stack_kb);
    wire_put_u64(out, request->file_kb);
    wire_put_bool(out, request->alone);
    wire_put_bytes(out, request->note.data, request->note.length);
    return execution_encoded(out, err);
}

static void get_async(struct wire_reader *in, struct execution_request *ret)
{
    ret->traceparent = wire_get_text(in, EXECUTION_TRACEPARENT_LENGTH);
    ret->idempotency_key = wire_get_text(in, EXECUTION_IDEMPOTENCY_MAX);
    ret->body_sha256 = wire_get_text(in, SHA256_HEX_LENGTH);
    ret->queued = wire_get_bool(in);
    ret->priority = (int)wire_get_i64(in, -EXECUTION_PRIORITY_MAX, EXECUTION_PRIORITY_MAX);
    ret->callback_url = wire_get_text(in, EXECUTION_URL_MAX);
    ret->callback_secret = wire_get_text(in, EXECUTION_SECRET_MAX);
    if ((*ret->traceparent && !execution_traceparent_is_valid(ret->traceparent)) ||
        (*ret->idempotency_key && !execution_idempotency_key_is_valid(ret->idempotency_key)))
        in->failed = true;
}

static void get_request(struct wire_reader *in, struct execution_request *ret)
{
    ret->id = execution_get_id(in, true);
    ret->request_id = wire_get_text(in, WORD_MAX);
    ret->client = wire_get_text(in, WORD_MAX);
    ret->domain = wire_get_text(in, WORD_MAX);
    ret->language = wire_get_text(in, WORD_MAX);
    ret->code = execution_get_bytes(in, EXECUTION_CODE_MAX);
    ret->stdin_bytes = execution_get_bytes(in, EXECUTION_STDIN_MAX);
    ret->args =
        get_texts(in, &ret->arena, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &ret->arg_count);
    ret->env = execution_get_pairs(in, &ret->arena, EXECUTION_ENV_MAX, EXECUTION_VALUE_MAX,
                                   &ret->env_count);
    ret->files =
        get_files(in, &ret->arena, EXECUTION_FILES_MAX, EXECUTION_FILE_BYTES_MAX, &ret->file_count);
    ret->returns =
        get_texts(in, &ret->arena, EXECUTION_RETURNS_MAX, EXECUTION_NAME_MAX, &ret->return_count);
    ret->allow =
        get_texts(in, &ret->arena, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &ret->allow_count);
    ret->network = wire_get_bool(in);
    ret->stream = wire_get_bool(in);
    ret->work_dir = wire_get_text_or_null(in, EXECUTION_PATH_MAX);
    ret->timeout_ms = wire_get_u64(in, UINT32_MAX);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        ret->limits[i] = wire_get_u64(in, UINT32_MAX);
    ret->events = get_events(in, &ret->arena, &ret->event_count);
    get_async(in, ret);
    ret->sandbox = wire_get_text_or_null(in, EXECUTION_ID_LENGTH);
    get_stages(in, ret);
    ret->stack_kb = wire_get_u64(in, EXECUTION_RLIMIT_KB_MAX);
    ret->file_kb = wire_get_u64(in, EXECUTION_RLIMIT_KB_MAX);
    ret->alone = wire_get_bool(in);
    ret->note = execution_get_bytes(in, EXECUTION_NOTE_MAX);
}

int execution_request_decode(const void *bytes, size_t length, struct execution_request *ret,
                             struct brig_error *err)
{
    struct execution_request request = {0};
    const void *copy = arena_copy(&request.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, VERSION);
    get_request(&in, &request);
    if (!wire_done(&in)) {
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

void execution_request_thin(struct execution_request *request)
{
    request->stdin_bytes = (struct execution_bytes){.data = ""};
    request->file_count = request->arg_count = request->env_count = 0;
    request->return_count = request->allow_count = request->compile_arg_count = 0;
    request->callback_url = request->callback_secret = "";
    request->note = (struct execution_bytes){.data = ""};
}

/* ---- Results ---- */

/* What a result says of one stage. */
static void put_outcome(struct str *out, const struct execution_result *result)
{
    wire_put_u64(out, result->status);
    wire_put_i64(out, result->exit_code);
    wire_put_u64(out, (uint64_t)result->signal);
    wire_put_bytes(out, result->output.data, result->output.length);
    wire_put_bytes(out, result->error_output.data, result->error_output.length);
    wire_put_bool(out, result->output_truncated);
    wire_put_bool(out, result->error_output_truncated);
    wire_put_u64(out, result->duration_us);
    wire_put_u64(out, result->cpu_time_us);
    wire_put_u64(out, result->memory_peak_bytes);
    wire_put_u64(out, result->pids_used);
    wire_put_bool(out, result->ordered);
    wire_put_u64(out, result->order_count);
    for (size_t i = 0; i < result->order_count; i++) {
        wire_put_bool(out, result->order[i].error);
        wire_put_u64(out, result->order[i].length);
    }
}

static void get_outcome(struct wire_reader *in, struct arena *arena, struct execution_result *ret)
{
    ret->status = (enum execution_status)wire_get_u64(in, EXECUTION_STATUSES_ - 1);
    ret->exit_code = (int)wire_get_i64(in, -1, 255);
    ret->signal = (int)wire_get_u64(in, 64);
    ret->output = execution_get_bytes(in, EXECUTION_OUTPUT_MAX);
    ret->error_output = execution_get_bytes(in, EXECUTION_STDERR_MAX);
    ret->output_truncated = wire_get_bool(in);
    ret->error_output_truncated = wire_get_bool(in);
    ret->duration_us = wire_get_u64(in, UINT64_MAX);
    ret->cpu_time_us = wire_get_u64(in, UINT64_MAX);
    ret->memory_peak_bytes = wire_get_u64(in, UINT64_MAX);
    ret->pids_used = wire_get_u64(in, UINT64_MAX);
    ret->ordered = wire_get_bool(in);
    ret->order =
        wire_get_array(in, arena, EXECUTION_PIECES_MAX, sizeof *ret->order, &ret->order_count);
    for (size_t i = 0; i < ret->order_count; i++)
        ret->order[i] = (struct execution_piece){.error = wire_get_bool(in),
                                                 .length = wire_get_u64(in, EXECUTION_OUTPUT_MAX)};
}

int execution_result_encode(const struct execution_result *result, struct str *out,
                            struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_text(out, result->id);
    wire_put_text(out, result->domain ? result->domain : "");
    wire_put_bool(out, result->kept);
    put_outcome(out, result);
    put_events(out, result->events, result->event_count);
    put_files(out, result->files, result->file_count);
    wire_put_text(out, result->message ? result->message : "");
    execution_put_texts(out, result->unenforced, result->unenforced_count);
    wire_put_i64(out, result->started_ns);
    wire_put_u64(out, result->fault);
    wire_put_text(out, result->field ? result->field : "");
    wire_put_bool(out, result->trace.warm);
    for (size_t i = 0; i < STEPS_; i++)
        wire_put_u64(out, result->trace.at_us[i]);
    wire_put_u64(out, result->stage);
    wire_put_bool(out, result->compile != NULL);
    if (result->compile)
        put_outcome(out, result->compile);
    return execution_encoded(out, err);
}

static void get_result(struct wire_reader *in, struct execution_result *ret)
{
    ret->id = execution_get_id(in, false);
    ret->domain = wire_get_text(in, WORD_MAX);
    ret->kept = wire_get_bool(in);
    get_outcome(in, &ret->arena, ret);
    ret->events = get_events(in, &ret->arena, &ret->event_count);
    ret->files = get_files(in, &ret->arena, EXECUTION_RETURNED_FILES_MAX,
                           EXECUTION_RETURNED_BYTES_MAX, &ret->file_count);
    ret->message = wire_get_text(in, LINE_MAX_LENGTH);
    ret->unenforced =
        get_texts(in, &ret->arena, UNENFORCED_MAX, LINE_MAX_LENGTH, &ret->unenforced_count);
    ret->started_ns = wire_get_i64(in, 0, INT64_MAX);
    ret->fault = (enum execution_fault)wire_get_u64(in, FAULTS_ - 1);
    ret->field = wire_get_text(in, WORD_MAX);
    ret->trace.warm = wire_get_bool(in);
    for (size_t i = 0; i < STEPS_; i++)
        ret->trace.at_us[i] = wire_get_u64(in, UINT64_MAX);
    ret->stage = (enum execution_stage)wire_get_u64(in, STAGES_ - 1);
    if (!wire_get_bool(in))
        return;
    ret->compile = arena_alloc(&ret->arena, sizeof *ret->compile);
    if (!ret->compile) {
        in->failed = true;
        return;
    }
    *ret->compile = (struct execution_result){.stage = STAGE_COMPILE};
    get_outcome(in, &ret->arena, ret->compile);
}

int execution_result_decode(const void *bytes, size_t length, struct execution_result *ret,
                            struct brig_error *err)
{
    struct execution_result result = {0};
    const void *copy = arena_copy(&result.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, VERSION);
    get_result(&in, &result);
    if (!wire_done(&in)) {
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
