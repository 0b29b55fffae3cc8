/* SPDX-License-Identifier: MIT */
/* A call's result: its words, its JSON, its release. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "call/call.h"

static const struct {
    const char *name;
    const char *text;
} outcomes[] = {
    [BRIG_CALL_RETURNED] = {"returned", "the function returned"},
    [BRIG_CALL_FAILED] = {"failed", "the function failed"},
    [BRIG_CALL_TIMEOUT] = {"timeout", "the function took longer than its timeout"},
    [BRIG_CALL_CPU_TIMEOUT] = {"cpu-timeout", "the function used more CPU time than its limit"},
    [BRIG_CALL_MEMORY] = {"memory", "the function needed more memory than its limit"},
    [BRIG_CALL_FILESYSTEM] = {"filesystem", "the function was refused a path"},
    [BRIG_CALL_NETWORK] = {"network", "the function was refused the network"},
    [BRIG_CALL_SYSCALL] = {"syscall", "the function was refused a system call"},
    [BRIG_CALL_PROCESSES] = {"processes", "the function was refused another process"},
    [BRIG_CALL_OUTPUT] = {"output", "the function's output or value is larger than its limit"},
    [BRIG_CALL_EXITED] = {"exited", "the function ended the process instead of returning"},
    [BRIG_CALL_CRASHED] = {"crashed", "the function crashed"},
    [BRIG_CALL_UNSUPPORTED] = {"unsupported", "this system cannot enforce what was asked"},
    [BRIG_CALL_SETUP_FAILED] = {"setup-failed", "the jail could not be built"},
    [BRIG_CALL_CANCELLED] = {"cancelled", "the call was cancelled"},
};

static const char *const accesses[] = {
    [BRIG_CALL_ACCESS_UNKNOWN] = "unknown", [BRIG_CALL_ACCESS_READ] = "read",
    [BRIG_CALL_ACCESS_WRITE] = "write",     [BRIG_CALL_ACCESS_EXECUTE] = "execute",
    [BRIG_CALL_ACCESS_CONNECT] = "connect", [BRIG_CALL_ACCESS_BIND] = "bind",
};

const char *brig_call_outcome_name(enum brig_call_outcome outcome)
{
    return (size_t)outcome < ARRAY_LENGTH(outcomes) ? outcomes[outcome].name : "?";
}

/* ---- release ---- */

static void release_value(struct brig_call_result *result)
{
    if (result->mapped > 0)
        (void)munmap(result->value, result->mapped);
    else
        free(result->value);
}

void brig_call_result_done(struct brig_call_result *result)
{
    if (!result)
        return;
    release_value(result);
    free(result->class_name);
    free(result->message);
    free(result->backtrace);
    free(result->denials);
    free(result->out.data);
    free(result->err.data);
    *result = (struct brig_call_result){0};
}

struct brig_call_result *brig_call_result_new(void)
{
    return calloc(1, sizeof(struct brig_call_result));
}

void brig_call_result_free(struct brig_call_result *result)
{
    brig_call_result_done(result);
    free(result);
}

const void *brig_call_result_value(const struct brig_call_result *result, size_t *ret_length)
{
    *ret_length = result->length;
    return result->value;
}

const char *brig_call_result_output(const struct brig_call_result *result, int stream,
                                    size_t *ret_length, int *ret_truncated)
{
    const struct brig_result streams = {.out = result->out, .err = result->err};
    return brig_result_output(&streams, stream, ret_length, ret_truncated);
}

void brig_call_text_free(char *text)
{
    free(text);
}

/* ---- words ---- */

int brig_call_result_text(const struct brig_call_result *result, char *buffer, size_t size)
{
    const char *text = (size_t)result->outcome < ARRAY_LENGTH(outcomes)
                           ? outcomes[result->outcome].text
                           : "no such outcome";
    const struct brig_call_denial *denial = result->denial;
    if (denial)
        return snprintf(buffer, size, "%s: %s '%s' (%s)", text, accesses[denial->access],
                        str_shown(denial->subject).text, denial->rule);
    if (result->error.code != 0)
        return snprintf(buffer, size, "%s", result->error.message);
    if (result->outcome == BRIG_CALL_EXITED)
        return snprintf(buffer, size, "%s (exit code %d)", text, result->exit_code);
    if (result->outcome == BRIG_CALL_CRASHED && result->signal > 0)
        return snprintf(buffer, size, "%s (signal %d)", text, result->signal);
    if (result->outcome == BRIG_CALL_CRASHED)
        return snprintf(buffer, size,
                        "the function's process is gone and was reaped by another part of the "
                        "program, so its status is unknown");
    if (result->outcome == BRIG_CALL_FAILED && result->message)
        return snprintf(buffer, size, "%s%s%s", result->class_name ? result->class_name : "",
                        result->class_name ? ": " : "", str_shown(result->message).text);
    return snprintf(buffer, size, "%s", text);
}

/* ---- JSON ---- */

static void json_denial(struct json *j, const char *key, const struct brig_call_denial *denial)
{
    json_open_object(j, key);
    json_text(j, "kind", brig_call_outcome_name(denial->kind));
    json_text(j, "access", accesses[denial->access]);
    json_int(j, "errno", denial->sys_errno);
    json_bool(j, "traced", denial->traced);
    json_text(j, "subject", denial->subject);
    json_text(j, "rule", denial->rule);
    json_close_object(j);
}

static void json_denials(struct json *j, const struct brig_call_result *result)
{
    if (result->denial)
        json_denial(j, "denial", result->denial);
    else
        json_nothing(j, "denial");
    json_open_array(j, "denials");
    for (size_t i = 0; i < result->denial_count; i++)
        json_denial(j, NULL, &result->denials[i]);
    json_close_array(j);
}

static void json_usage(struct json *j, const struct brig_usage *usage)
{
    json_open_object(j, "usage");
    json_uint(j, "wall_us", usage->wall_us);
    json_uint(j, "cpu_user_us", usage->cpu_user_us);
    json_uint(j, "cpu_sys_us", usage->cpu_sys_us);
    json_uint(j, "peak_memory_bytes", usage->peak_memory_bytes);
    json_uint(j, "oom_kills", usage->oom_kills);
    json_uint(j, "pids_refused", usage->pids_refused);
    json_uint(j, "stdout_bytes", usage->out_bytes[0]);
    json_uint(j, "stderr_bytes", usage->out_bytes[1]);
    json_close_object(j);
}

static void json_error(struct json *j, const struct brig_error *error)
{
    json_open_object(j, "error");
    json_int(j, "code", error->code);
    json_int(j, "errno", error->sys_errno);
    json_text(j, "message", error->message);
    json_close_object(j);
}

int brig_call_result_json(const struct brig_call_result *result, char **ret_text,
                          struct brig_error *err)
{
    autostr struct str out = {0};
    struct json j;
    char text[BRIG_MESSAGE_MAX];
    (void)brig_call_result_text(result, text, sizeof text);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_text(&j, "outcome", brig_call_outcome_name(result->outcome));
    json_text(&j, "text", text);
    json_uint(&j, "length", result->length);
    json_int(&j, "exit_code", result->exit_code);
    json_int(&j, "signal", result->signal);
    json_int(&j, "errno", result->sys_errno);
    json_text(&j, "class", result->class_name);
    json_text(&j, "message", result->message);
    json_text(&j, "backtrace", result->backtrace);
    json_denials(&j, result);
    json_open_object(&j, "truncated");
    json_bool(&j, "stdout", result->out.truncated);
    json_bool(&j, "stderr", result->err.truncated);
    json_close_object(&j);
    json_usage(&j, &result->usage);
    json_open_array(&j, "unenforced");
    for (size_t i = 0; i < result->unenforced.count; i++)
        json_text(&j, NULL, result->unenforced.text[i]);
    json_close_array(&j);
    if (result->error.code != 0)
        json_error(&j, &result->error);
    else
        json_nothing(&j, "error");
    json_close_object(&j);
    return str_take(&out, ret_text, err);
}
