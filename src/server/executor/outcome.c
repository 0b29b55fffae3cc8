/* SPDX-License-Identifier: MIT */
/* Turns the result of a job into the result of an execution. */
#include <errno.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "server/executor/executor.h"

static enum execution_status status_of_exit(const struct brig_result *from)
{
    bool good = from->outcome == BRIG_EXITED && from->exit_code == 0;
    if (!good && from->usage.oom_kills > 0)
        return EXECUTION_OOM; /* at least one child process was killed */
    return good ? EXECUTION_OK : EXECUTION_ERROR;
}

static enum execution_status status_of(const struct run *run, const struct brig_result *from)
{
    if (run->reason == RUN_TOO_MUCH_OUTPUT)
        return EXECUTION_OUTPUT_LIMIT;
    switch (from->outcome) {
    case BRIG_EXITED:
    case BRIG_SIGNALLED:
        return status_of_exit(from);
    case BRIG_TIMEOUT:
        return EXECUTION_TIMEOUT;
    case BRIG_CPU_TIMEOUT:
        return EXECUTION_CPU_TIMEOUT;
    case BRIG_OOM:
        return EXECUTION_OOM;
    case BRIG_OUTPUT_LIMIT:
        return EXECUTION_OUTPUT_LIMIT;
    case BRIG_DISK_LIMIT:
    case BRIG_PIDS_LIMIT:
    case BRIG_DENIED:
        return EXECUTION_ERROR;
    case BRIG_SETUP_FAILED:
        return EXECUTION_SETUP_FAILED;
    case BRIG_CANCELLED:
        return EXECUTION_KILLED;
    }
    return EXECUTION_ERROR;
}

static void copy_streams(const struct run *run, struct execution_result *result)
{
    const struct run_stream *streams = run->streams;
    result->output = (struct execution_bytes){streams[0].kept.data ? streams[0].kept.data : "",
                                              streams[0].kept.length};
    result->error_output = (struct execution_bytes){
        streams[1].kept.data ? streams[1].kept.data : "", streams[1].kept.length};
    result->output_truncated = streams[0].truncated || streams[0].kept.failed;
    result->error_output_truncated = streams[1].truncated || streams[1].kept.failed;
    result->ordered = run->request.ordered;
    result->order = run->order;
    result->order_count = run->order_count;
    result->stage = executor_stage(run);
    result->compile = (struct execution_result *)(uintptr_t)executor_stages_compiled(run);
}

static void begin(const struct run *run, struct execution_result *result)
{
    *result =
        (struct execution_result){.id = run->request.id,
                                  .domain = run->request.domain,
                                  .kept = run->request.queued || *run->request.idempotency_key,
                                  .exit_code = -1,
                                  .message = "",
                                  .output = {.data = ""},
                                  .error_output = {.data = ""},
                                  .started_ns = run->started_ns,
                                  .trace = run->trace};
    result->events = arena_alloc(&result->arena, EXECUTION_EVENTS_MAX * sizeof *result->events);
    for (size_t i = 0; result->events && i < run->request.event_count; i++)
        result->events[result->event_count++] = run->request.events[i];
}

/* Repeated denials of one destination are one event. */
static bool is_known(const struct execution_result *result, const char *detail)
{
    for (size_t i = 0; i < result->event_count; i++)
        if (strcmp(result->events[i].detail, detail) == 0)
            return true;
    return false;
}

static void add_event(struct execution_result *result, const char *type, const char *detail,
                      enum execution_severity severity)
{
    if (!detail || !result->events || result->event_count >= EXECUTION_EVENTS_MAX ||
        is_known(result, detail))
        return;
    result->events[result->event_count++] =
        (struct execution_event){.type = type, .detail = detail, .severity = severity};
}

static void add_denial(const struct brig_net_event *event, struct execution_result *result)
{
    if (event->verdict != BRIG_NET_DENIED)
        return;
    const char *what = event->name[0] ? event->name : event->address;
    char *detail = event->port ? arena_printf(&result->arena, "%s:%u by %s (%s)", what, event->port,
                                              event->via, event->because)
                               : arena_printf(&result->arena, "%s by %s (%s)", what, event->via,
                                              event->because);
    bool metadata = strcmp(event->address, "169.254.169.254") == 0;
    add_event(result, "network_denied", detail, metadata ? SEVERITY_HIGH : SEVERITY_MEDIUM);
}

/* The network of a run with stages is that of the jail that they share. */
static void add_denials(const struct run *run, const struct brig_net_result *net,
                        struct execution_result *result)
{
    struct brig_job *jail = executor_stages_jail(run);
    struct brig_net_event event;
    for (size_t i = 0; i < net->count; i++)
        add_denial(&net->events[i], result);
    while (jail && job_take_net_event(jail, &event))
        add_denial(&event, result);
}

static void add_refusals(const struct brig_usage *usage, struct execution_result *result)
{
    if (usage->pids_refused > 0)
        add_event(result, "pids_limit",
                  arena_printf(&result->arena, "%llu processes or threads refused",
                               (unsigned long long)usage->pids_refused),
                  SEVERITY_LOW);
    if (usage->stuck_pid)
        add_event(result, "stuck_process", "a process sleeps in the kernel and could not be ended",
                  SEVERITY_HIGH);
}

/* The severity of refused system calls. Calls in neither list are medium. */
static const char *const attacks[] = {
    "bpf",
    "chroot",
    "clone",
    "create_module",
    "delete_module",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "reboot",
    "setns",
    "umount2",
    "unshare",
    "userfaultfd",
};
/* Ordinary programs make these calls, to preserve file modes or set priorities. */
static const char *const mistakes[] = {
    "chmod",      "creat",         "fchmod",        "fchmodat",      "fchmodat2",
    "ioprio_set", "open",          "openat",        "sched_setattr", "sched_setscheduler",
    "mbind",      "get_mempolicy", "set_mempolicy",
};

static bool is_among(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static enum execution_severity severity_of(const char *name)
{
    if (is_among(name, attacks, ARRAY_LENGTH(attacks)))
        return SEVERITY_HIGH;
    return is_among(name, mistakes, ARRAY_LENGTH(mistakes)) ? SEVERITY_LOW : SEVERITY_MEDIUM;
}

static void add_syscalls(const struct brig_denials *denials, struct execution_result *result)
{
    for (size_t i = 0; i < denials->count; i++) {
        const struct brig_denial *denial = &denials->items[i];
        const char *detail =
            arena_printf(&result->arena, "%s: %s, %llu time%s", denial->name,
                         denial->sys_errno == EACCES ? "EACCES" : "EPERM", /* no other is kept */
                         (unsigned long long)denial->count, denial->count == 1 ? "" : "s");
        add_event(result, "syscall_denied", detail, severity_of(denial->name));
    }
}

static void copy_unenforced(const struct brig_unenforced *from, struct execution_result *result)
{
    result->unenforced = arena_alloc(&result->arena, (from->count + 1) * sizeof(char *));
    for (size_t i = 0; result->unenforced && i < from->count; i++) {
        const char *text = arena_strdup(&result->arena, from->text[i]);
        if (text)
            result->unenforced[result->unenforced_count++] = text;
    }
}

void executor_outcome(const struct run *run, const struct brig_result *from,
                      struct execution_result *ret_result)
{
    const struct brig_usage *usage = &from->usage;
    begin(run, ret_result);
    copy_streams(run, ret_result);
    ret_result->status = status_of(run, from);
    ret_result->signal = from->signal;
    if (from->outcome == BRIG_EXITED && run->reason == RUN_BY_ITSELF)
        ret_result->exit_code = from->exit_code;
    ret_result->duration_us = usage->wall_us;
    ret_result->cpu_time_us = usage->cpu_user_us + usage->cpu_sys_us;
    ret_result->memory_peak_bytes = usage->peak_memory_bytes;
    ret_result->pids_used = usage->peak_pids;
    add_denials(run, &from->net, ret_result);
    add_refusals(usage, ret_result);
    add_syscalls(&from->denials, ret_result);
    copy_unenforced(&from->unenforced, ret_result);
    if (run->reason == RUN_TOO_MUCH_INPUT)
        ret_result->message = "too much of its standard input was not read";
}

void executor_outcome_so_far(const struct run *run, struct execution_result *ret_result)
{
    int64_t now_ns = clock_wall_ns();
    begin(run, ret_result);
    copy_streams(run, ret_result);
    ret_result->status = EXECUTION_RUNNING;
    if (now_ns > run->started_ns)
        ret_result->duration_us = (uint64_t)(now_ns - run->started_ns) / 1000;
}

void executor_outcome_failed(const struct run *run, const char *why,
                             struct execution_result *ret_result)
{
    begin(run, ret_result);
    ret_result->status = EXECUTION_SETUP_FAILED;
    ret_result->message = why;
    ret_result->fault = run->fault;
    ret_result->field = run->fault == FAULT_REQUEST ? run->field : "";
}
