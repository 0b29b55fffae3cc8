/* SPDX-License-Identifier: MIT */
/* Writes the result of an execution as JSON. */
#include "server/http/result_json.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"
#include "server/execution.h"

#define MEGABYTE ((uint64_t)1 << 20)

/* "45.2ms", "1.500s" */
static void write_duration(struct json *j, const char *key, uint64_t duration_us)
{
    char text[32];
    if (duration_us < 1000000)
        (void)snprintf(text, sizeof text, "%.1fms", (double)duration_us / 1e3);
    else
        (void)snprintf(text, sizeof text, "%.3fs", (double)duration_us / 1e6);
    json_text(j, key, text);
}

static void write_usage(struct json *j, const struct execution_result *result)
{
    json_open_object(j, "resource_usage");
    json_uint(j, "cpu_time_ms", (result->cpu_time_us + 999) / 1000);
    json_uint(j, "memory_peak_mb", (result->memory_peak_bytes + MEGABYTE - 1) / MEGABYTE);
    json_uint(j, "pids_used", result->pids_used);
    json_close_object(j);
}

static void write_events(struct json *j, const struct execution_result *result)
{
    json_open_array(j, "security_events");
    for (size_t i = 0; i < result->event_count; i++) {
        json_open_object(j, NULL);
        json_text(j, "type", result->events[i].type);
        json_text(j, "severity", execution_severity_name(result->events[i].severity));
        json_text(j, "detail", result->events[i].detail);
        json_close_object(j);
    }
    json_close_array(j);
}

/* Returns whether the bytes are text, and not longer in JSON than in base64: a control character
 * takes six bytes. */
static bool is_text(const struct execution_bytes *bytes)
{
    size_t controls = 0;
    for (size_t i = 0; i < bytes->length; i++) {
        unsigned char c = (unsigned char)bytes->data[i];
        controls += (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    }
    return controls <= bytes->length / 15 && utf8_is_valid(bytes->data, bytes->length);
}

static void write_file(struct json *j, const struct execution_file *file)
{
    bool text = is_text(&file->content);
    json_open_object(j, file->name);
    if (text) {
        json_bytes(j, "content", file->content.data, file->content.length);
    } else {
        autostr struct str encoded = {0};
        base64_append(&encoded, file->content.data, file->content.length);
        j->out->failed |= encoded.failed;
        json_bytes(j, "content", encoded.data, encoded.length);
    }
    json_text(j, "encoding", text ? "utf-8" : "base64");
    json_bool(j, "truncated", file->truncated);
    json_close_object(j);
}

void result_json_files(struct json *j, const char *key, const struct execution_result *result)
{
    if (result->file_count == 0)
        return;
    json_open_object(j, key);
    for (size_t i = 0; i < result->file_count; i++)
        write_file(j, &result->files[i]);
    json_close_object(j);
}

static void write_unenforced(struct json *j, const struct execution_result *result)
{
    if (result->unenforced_count == 0)
        return;
    json_open_array(j, "unenforced");
    for (size_t i = 0; i < result->unenforced_count; i++)
        json_text(j, NULL, result->unenforced[i]);
    json_close_array(j);
}

static void write_combined(struct json *j, const struct execution_result *result)
{
    autostr struct str text = {0};
    execution_interleave(result, &text);
    j->out->failed |= text.failed;
    json_bytes(j, "combined", text.data ? text.data : "", text.length);
}

/* What a result says of one stage. */
static void write_stage(struct json *j, const struct execution_result *result, bool streamed,
                        bool dropped)
{
    json_text(j, "status", execution_status_name(result->status));
    if (!streamed) {
        json_bytes(j, "output", result->output.data, result->output.length);
        json_bytes(j, "stderr", result->error_output.data, result->error_output.length);
    }
    json_int(j, "exit_code", result->exit_code);
    if (result->signal)
        json_int(j, "signal", result->signal);
    write_duration(j, "duration", result->duration_us);
    write_usage(j, result);
    json_open_object(j, "truncated");
    json_bool(j, "output", result->output_truncated || dropped);
    json_bool(j, "stderr", result->error_output_truncated || dropped);
    json_close_object(j);
}

void result_json_stages(struct json *j, const struct execution_result *result, bool streamed)
{
    if (result->ordered && !streamed)
        write_combined(j, result);
    if (result->stage == STAGE_COMPILE || result->compile)
        json_text(j, "stage", result->stage == STAGE_COMPILE ? "compile" : "run");
    if (!result->compile)
        return;
    json_open_object(j, "compile");
    write_stage(j, result->compile, streamed, false);
    if (result->compile->ordered && !streamed)
        write_combined(j, result->compile);
    json_close_object(j);
}

void result_json_write(struct json *j, const struct execution_result *result, bool streamed,
                       bool dropped)
{
    json_open_object(j, NULL);
    json_text(j, "id", result->id);
    write_stage(j, result, streamed, dropped);
    result_json_stages(j, result, streamed);
    write_events(j, result);
    result_json_files(j, "files", result);
    if (result->message && *result->message)
        json_text(j, "message", result->message);
    write_unenforced(j, result);
    json_close_object(j);
}

const struct result_field result_fields[] = {
    {"id", "string", "UUID of the execution; also in the header `X-Execution-ID`."},
    {"status", "string",
     "`ok`, `error` (another exit code, or a signal), `timeout`, `cpu_timeout`, `oom`, `killed`, "
     "`output_limit`."},
    {"output", "string",
     "The standard output, at most 1 MiB; bytes that are no UTF-8 become U+FFFD."},
    {"stderr", "string", "The standard error output, at most 256 KiB."},
    {"exit_code", "integer", "-1 where there is none, as on a timeout."},
    {"signal", "integer", "Present where a signal ended it."},
    {"duration", "string", "Wall clock: `\"45.2ms\"`, `\"1.500s\"`."},
    {"resource_usage", "object", "`cpu_time_ms`, `memory_peak_mb`, `pids_used`."},
    {"security_events", "array",
     "`type`, `severity` (low, medium, high, critical) and `detail` of what the detector saw in "
     "the "
     "code and of denials that were observed."},
    {"truncated", "object", "`output` and `stderr`: whether there was more."},
    {"files", "object",
     "What `return_files` asked for: name to `content`, `encoding` (`utf-8`, or `base64` where "
     "it is no text or shorter so) and `truncated`."},
    {"combined", "string", "Both streams in order of arrival, if the request has `combined`."},
    {"stage", "string",
     "For a compiled language: `run`; or `compile` if the compiler failed, and then the members "
     "above describe the compiler, and the code did not run."},
    {"compile", "object",
     "What the compiler did before the code ran: `status`, `output`, `stderr`, `combined`, "
     "`exit_code`, `signal`, `duration`, `resource_usage`, `truncated`, as above."},
    {"message", "string", "A line for people, where there is something to say."},
    {"unenforced", "array", "What this machine could not enforce; absent where all was."},
};
const size_t result_field_count = ARRAY_LENGTH(result_fields);
