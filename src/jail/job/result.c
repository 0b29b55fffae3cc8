/* SPDX-License-Identifier: MIT */
/* A result as an exit status, as a word, and as JSON; and the list of restrictions not enforced. */
#include "jail/job/result.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "jail/net/door_events.h"

/* Exit statuses as used by shells and timeout(1). */
enum {
    STATUS_TIMEOUT = 124,
    STATUS_BRIG_FAILED = 125,
    STATUS_NOT_EXEC = 126,
    STATUS_NOT_FOUND = 127,
    STATUS_SIGNAL = 128,
};

static const char *const outcome_names[] = {
    [BRIG_EXITED] = "exited",
    [BRIG_SIGNALLED] = "signalled",
    [BRIG_TIMEOUT] = "timeout",
    [BRIG_CPU_TIMEOUT] = "cpu-timeout",
    [BRIG_OOM] = "oom",
    [BRIG_OUTPUT_LIMIT] = "output-limit",
    [BRIG_DISK_LIMIT] = "disk-limit",
    [BRIG_PIDS_LIMIT] = "pids-limit",
    [BRIG_DENIED] = "denied",
    [BRIG_SETUP_FAILED] = "setup-failed",
    [BRIG_CANCELLED] = "cancelled",
};

void result_done(struct brig_result *result)
{
    if (!result)
        return;
    free(result->out.data);
    free(result->err.data);
    free(result->net.events);
    result->net = (struct brig_net_result){0};
    result->out = (struct brig_capture){0};
    result->err = (struct brig_capture){0};
}

const char *capture_text(const struct brig_capture *capture, size_t *ret_length, int *ret_truncated)
{
    if (ret_length)
        *ret_length = capture ? capture->length : 0;
    if (ret_truncated)
        *ret_truncated = capture && capture->truncated;
    return capture && capture->data ? capture->data : "";
}

const char *brig_outcome_name(enum brig_outcome outcome)
{
    return (size_t)outcome < ARRAY_LENGTH(outcome_names) ? outcome_names[outcome] : "?";
}

static int setup_status(int code)
{
    if (code == BRIG_E_NOT_FOUND)
        return STATUS_NOT_FOUND;
    if (code == BRIG_E_NOT_EXEC)
        return STATUS_NOT_EXEC;
    return STATUS_BRIG_FAILED;
}

int brig_result_status(const struct brig_result *result)
{
    switch (result->outcome) {
    case BRIG_EXITED:
        return result->exit_code;
    case BRIG_SIGNALLED:
        return STATUS_SIGNAL + result->signal;
    case BRIG_TIMEOUT:
    case BRIG_CPU_TIMEOUT:
        return STATUS_TIMEOUT;
    case BRIG_SETUP_FAILED:
        return setup_status(result->error.code);
    case BRIG_CANCELLED:
        return STATUS_SIGNAL + (result->signal ? result->signal : SIGTERM);
    case BRIG_OOM:
    case BRIG_OUTPUT_LIMIT:
    case BRIG_DISK_LIMIT:
    case BRIG_PIDS_LIMIT:
    case BRIG_DENIED:
        /* The jail ended the command, so the status is not 0, whatever the command returned. */
        if (result->exit_code > 0)
            return result->exit_code;
        return STATUS_SIGNAL + (result->signal ? result->signal : SIGKILL);
    }
    return STATUS_BRIG_FAILED;
}

/* glibc has sigabbrev_np(); other libcs have no equivalent. */
static const char *const SIGNAL_NAMES[] = {
    [SIGHUP] = "HUP",     [SIGINT] = "INT",   [SIGQUIT] = "QUIT",     [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP",   [SIGABRT] = "ABRT", [SIGBUS] = "BUS",       [SIGFPE] = "FPE",
    [SIGKILL] = "KILL",   [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE",   [SIGALRM] = "ALRM", [SIGTERM] = "TERM",     [SIGSTKFLT] = "STKFLT",
    [SIGCHLD] = "CHLD",   [SIGCONT] = "CONT", [SIGSTOP] = "STOP",     [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN",   [SIGTTOU] = "TTOU", [SIGURG] = "URG",       [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ",   [SIGPROF] = "PROF", [SIGVTALRM] = "VTALRM", [SIGIO] = "IO",
    [SIGWINCH] = "WINCH", [SIGPWR] = "PWR",   [SIGSYS] = "SYS",
};

static void json_signal_name(struct json *j, int number)
{
    char name[32];
    const char *known = NULL;
    if (number > 0 && number < (int)ARRAY_LENGTH(SIGNAL_NAMES))
        known = SIGNAL_NAMES[number];
    if (number <= 0) {
        json_nothing(j, "signal_name");
        return;
    }
    if (known)
        (void)snprintf(name, sizeof name, "SIG%s", known);
    else
        (void)snprintf(name, sizeof name, "SIG%d", number);
    json_text(j, "signal_name", name);
}

static void json_usage(struct json *j, const struct brig_usage *usage)
{
    json_open_object(j, "usage");
    json_uint(j, "wall_us", usage->wall_us);
    json_uint(j, "cpu_user_us", usage->cpu_user_us);
    json_uint(j, "cpu_sys_us", usage->cpu_sys_us);
    if (usage->peak_memory_bytes > 0)
        json_uint(j, "peak_memory_bytes", usage->peak_memory_bytes);
    else
        json_nothing(j, "peak_memory_bytes");
    if (usage->peak_pids > 0)
        json_uint(j, "peak_pids", usage->peak_pids);
    else
        json_nothing(j, "peak_pids");
    json_uint(j, "oom_kills", usage->oom_kills);
    json_uint(j, "pids_refused", usage->pids_refused);
    json_uint(j, "cpu_throttled_us", usage->cpu_throttled_us);
    if (usage->stuck_pid > 0)
        json_uint(j, "stuck_pid", (uint64_t)usage->stuck_pid);
    json_uint(j, "stdout_bytes", usage->out_bytes[0]);
    json_uint(j, "stderr_bytes", usage->out_bytes[1]);
    json_close_object(j);
}

static void json_list(struct json *j, const char *name, const struct brig_unenforced *list)
{
    json_open_array(j, name);
    for (size_t i = 0; i < list->count && i < BRIG_UNENFORCED_MAX; i++)
        json_bytes(j, NULL, list->text[i], strnlen(list->text[i], sizeof list->text[i]));
    json_close_array(j);
}

static void json_network(struct json *j, const struct brig_net_result *net)
{
    json_open_object(j, "network");
    json_uint(j, "allowed", net->totals.allowed);
    json_uint(j, "denied", net->totals.denied);
    json_uint(j, "failed", net->totals.failed);
    json_uint(j, "bytes_in", net->totals.bytes_in);
    json_uint(j, "bytes_out", net->totals.bytes_out);
    json_uint(j, "events_dropped", net->totals.dropped);
    json_open_array(j, "events");
    for (size_t i = 0; i < net->count; i++)
        door_event_write(&net->events[i], j);
    json_close_array(j);
    json_close_object(j);
}

static void json_denials(struct json *j, const struct brig_denials *denials)
{
    if (!denials->traced) {
        json_nothing(j, "denials");
        return;
    }
    json_open_object(j, "denials");
    json_uint(j, "total", denials->total);
    json_open_array(j, "syscalls");
    for (size_t i = 0; i < denials->count; i++) {
        json_open_object(j, NULL);
        json_text(j, "name", denials->items[i].name);
        json_int(j, "errno", denials->items[i].sys_errno);
        json_uint(j, "count", denials->items[i].count);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void json_error(struct json *j, const struct brig_error *error)
{
    if (error->code == BRIG_OK) {
        json_nothing(j, "error");
        return;
    }
    json_open_object(j, "error");
    json_int(j, "code", error->code);
    json_int(j, "errno", error->sys_errno);
    json_bytes(j, "message", error->message, strnlen(error->message, sizeof error->message));
    json_close_object(j);
}

int brig_result_json(const struct brig_result *result, char **ret_text, struct brig_error *err)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_text(&j, "outcome", brig_outcome_name(result->outcome));
    json_int(&j, "status", brig_result_status(result));
    if (result->exit_code >= 0)
        json_int(&j, "exit_code", result->exit_code);
    else
        json_nothing(&j, "exit_code");
    if (result->signal > 0)
        json_int(&j, "signal", result->signal);
    else
        json_nothing(&j, "signal");
    json_signal_name(&j, result->signal);
    json_usage(&j, &result->usage);
    json_open_object(&j, "truncated");
    json_bool(&j, "stdout", result->out.truncated);
    json_bool(&j, "stderr", result->err.truncated);
    json_close_object(&j);
    json_bool(&j, "inside_jail", result->inside_jail);
    json_list(&j, "unenforced", &result->unenforced);
    json_list(&j, "notices", &result->notices);
    json_network(&j, &result->net);
    json_denials(&j, &result->denials);
    json_error(&j, &result->error);
    json_close_object(&j);
    str_append_char(&out, '\n');
    return str_take(&out, ret_text, err);
}

/* ---- restrictions that were not enforced ---- */

const char *unenforced_line(const struct brig_unenforced *list, size_t index)
{
    return index < list->count && index < BRIG_UNENFORCED_MAX ? list->text[index] : NULL;
}

void unenforced_add(struct brig_unenforced *list, const char *format, ...)
{
    char text[sizeof list->text[0]];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0)
            return;
    if (list->count == BRIG_UNENFORCED_MAX) {
        (void)snprintf(list->text[BRIG_UNENFORCED_MAX - 1], sizeof text, "and more");
        return;
    }
    memcpy(list->text[list->count++], text, strlen(text) + 1);
}
