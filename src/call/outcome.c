/* SPDX-License-Identifier: MIT */
/* Derives the result of a call from what was observed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "call/call.h"
#include "jail/confine/seccomp.h"

/* Not inlined: these functions have large stack frames that the common path should not pay for. */
#define RARE __attribute__((noinline, cold))

void outcome_nothing_ran(struct brig_call_result *ret, const struct brig_error *error)
{
    *ret = (struct brig_call_result){
        .outcome =
            error->code == BRIG_E_UNSUPPORTED ? BRIG_CALL_UNSUPPORTED : BRIG_CALL_SETUP_FAILED,
        .exit_code = -1,
        .error = *error,
    };
}

/* ---- the function never ran ---- */

static bool never_ran(const struct brig_call *call)
{
    return !call->told.passed;
}

/* Turns the failed step into an error message; or reports that the child was killed during
 * setup. */
static RARE int explain(struct brig_call *call, struct brig_call_result *ret,
                        struct brig_error *err)
{
    struct brig_error local = {0};
    int step = call->failed_step ? call->failed_step : call->told.step;
    int sys_errno = call->failed_step ? call->failed_errno : call->told.sys_errno;
    /* The filter of a call without namespaces keeps all its processes in one group. */
    if (step == PLAN_STEP_SESSION && sys_errno == EPERM && !call->caller->full)
        (void)memory_fail_inside(sys_errno, &local);
    else if (step != 0 || sys_errno != 0)
        (void)plan_explain_failure(call_plan(call), step, sys_errno, &local);
    else
        (void)brig_fail(&local, BRIG_E_SETUP, 0,
                        "the call's process ended before the function began (status %#x)",
                        (unsigned)call->status);
    outcome_nothing_ran(ret, &local);
    if (err)
        *err = local;
    return local.code;
}

/* ---- it ran ---- */

static bool used_up_cpu(const struct brig_call *call, int signal)
{
    uint64_t limit = call->caller->policy->limits[BRIG_LIMIT_CPU_MS] * 1000;
    if (limit == 0)
        return false;
    uint64_t used = call->cpu_user_us + call->cpu_sys_us;
    /* For RLIMIT_CPU the kernel charges whole ticks to the process that runs when the tick comes.
     * This can exceed the reported time by a tenth, and by more than a quarter where many processes
     * share a CPU. */
    if (signal == SIGXCPU)
        return used >= limit / 2;
    return signal == SIGKILL && used >= limit;
}

static enum brig_call_outcome by_signal(const struct brig_call *call, int signal)
{
    if (signal == SIGKILL && call->group_usage.oom_kills > 0)
        return BRIG_CALL_MEMORY;
    return used_up_cpu(call, signal) ? BRIG_CALL_CPU_TIMEOUT : BRIG_CALL_CRASHED;
}

static bool has_memory_limit(const struct brig_call *call)
{
    const uint64_t *limits = call->caller->policy->limits;
    return limits[BRIG_LIMIT_ADDRESS_SPACE] || limits[BRIG_LIMIT_MEMORY_BYTES];
}

/* Appends a denial to the call's list. Returns 0 or BRIG_E_NOMEM. */
static int keep_denial(struct brig_call *call, const struct brig_call_denial *denial)
{
    struct brig_call_denial *grown =
        realloc(call->denials, (call->denial_count + 1) * sizeof *grown);
    if (!grown)
        return BRIG_E_NOMEM;
    call->denials = grown;
    grown[call->denial_count++] = *denial;
    return 0;
}

void outcome_note_traced(struct brig_call *call, const struct brig_call_denial *denial)
{
    for (size_t i = 0; i < call->denial_count; i++)
        if (strcmp(call->denials[i].subject, denial->subject) == 0 &&
            call->denials[i].access == denial->access)
            return;
    if (call->denial_count < BRIG_CALL_DENIALS_MAX - 1) /* keep one for the report */
        (void)keep_denial(call, denial);
}

/* If the function reports only an errno: finds the last traced system call that was refused with
 * it. */
static bool was_traced(const struct brig_call *call, const struct memory_failure *failure,
                       struct brig_call_denial *ret)
{
    if (failure->texts[MEMORY_PATH] || failure->texts[MEMORY_ADDRESS] || failure->sys_errno == 0)
        return false;
    for (size_t i = call->denial_count; i-- > 0;)
        if (call->denials[i].traced && call->denials[i].sys_errno == failure->sys_errno) {
            *ret = call->denials[i];
            return true;
        }
    return false;
}

/* A failure is a denial if the function named what was refused and this jail refuses it, or if the
 * function ran out of the memory it was limited to. */
static int judge_failure(struct brig_call *call, struct memory_failure *failure,
                         struct brig_call_result *ret, struct brig_error *err)
{
    struct brig_call_denial denial = {0};
    ret->outcome = BRIG_CALL_FAILED;
    ret->sys_errno = failure->sys_errno;
    ret->class_name = take_ptr(&failure->texts[MEMORY_CLASS]);
    ret->message = take_ptr(&failure->texts[MEMORY_MESSAGE]);
    ret->backtrace = take_ptr(&failure->texts[MEMORY_BACKTRACE]);
    if ((failure->out_of_memory || failure->sys_errno == ENOMEM) && has_memory_limit(call)) {
        ret->outcome = BRIG_CALL_MEMORY;
        return 0;
    }
    if (failure->sys_errno == EAGAIN && call->group_usage.pids_refused > 0) {
        ret->outcome = BRIG_CALL_PROCESSES;
        return 0;
    }
    if (!denial_check(call->caller, failure, &denial) && !was_traced(call, failure, &denial))
        return 0;
    if (keep_denial(call, &denial) < 0)
        return brig_fail_nomem(err);
    ret->outcome = denial.kind;
    return 0;
}

static RARE int take_failure(struct brig_call *call, const struct memory_head *head,
                             struct brig_call_result *ret, struct brig_error *err)
{
    struct memory_failure failure = {0};
    int result = memory_take_failure(call->memory, head, &failure, err);
    if (result == 0)
        result = judge_failure(call, &failure, ret, err);
    memory_failure_done(&failure);
    return result;
}

static int take_value(struct brig_call *call, const struct memory_head *head,
                      struct brig_call_result *ret, struct brig_error *err)
{
    if (head->length > call->caller->value_limit) {
        ret->outcome = BRIG_CALL_OUTPUT;
        return 0;
    }
    ret->outcome = BRIG_CALL_RETURNED;
    int result =
        memory_take_value(call->memory, (size_t)head->length, &ret->value, &ret->mapped, err);
    if (result == 0)
        ret->length = (size_t)head->length;
    return result;
}

/* The process exited by itself. */
static int by_head(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    struct memory_head head = {0};
    int result = memory_read_head(call->memory, &head);
    if (result < 0)
        return brig_fail(err, result, errno, "cannot read what the function left");
    bool exited = call->status_known && (WEXITSTATUS(call->status) != 0 || head.left == 0);
    if (exited) {
        ret->outcome = BRIG_CALL_EXITED;
        ret->exit_code = WEXITSTATUS(call->status);
        return 0;
    }
    /* The status is unknown: another thread reaped the process. It did not end regularly. */
    if (head.left == 0) {
        ret->outcome = BRIG_CALL_CRASHED;
        return 0;
    }
    switch (head.state) {
    case MEMORY_RETURNED:
        return take_value(call, &head, ret, err);
    case MEMORY_FAILED:
        return take_failure(call, &head, ret, err);
    case MEMORY_TOO_LARGE:
        ret->outcome = BRIG_CALL_OUTPUT;
        return 0;
    case MEMORY_NO_ROOM:
        ret->outcome = BRIG_CALL_MEMORY;
        return 0;
    default: /* no value was returned, or the state is not valid */
        ret->outcome = BRIG_CALL_RETURNED;
        return 0;
    }
}

static int decide(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    bool signalled = call->status_known && WIFSIGNALED(call->status);
    bool unknown = !call->status_known && call->caller->full; /* init was killed */
    if (signalled)
        ret->signal = WTERMSIG(call->status);
    if (unknown)
        ret->signal = SIGKILL;
    bool ended = signalled || unknown;
    /* A function that exited before the supervisor's signal arrived keeps its value. */
    if (call->has_reason && (ended || call->reason == BRIG_CALL_OUTPUT)) {
        ret->outcome = call->reason;
        return 0;
    }
    if (ended) {
        ret->outcome = by_signal(call, ret->signal);
        return 0;
    }
    return by_head(call, ret, err);
}

/* ---- the whole result ---- */

static void fill_usage(const struct brig_call *call, struct brig_usage *usage)
{
    const struct cgroup_usage *group = &call->group_usage;
    usage->wall_us = call->ended_us - call->started_us;
    usage->cpu_user_us = call->cpu_user_us;
    usage->cpu_sys_us = call->cpu_sys_us;
    usage->peak_memory_bytes =
        group->peak_memory_bytes ? group->peak_memory_bytes : call->peak_kb * 1024;
    usage->peak_pids = group->peak_pids;
    usage->oom_kills = group->oom_kills;
    usage->pids_refused = group->pids_refused;
    usage->cpu_throttled_us = group->throttled_us;
    for (int i = 0; i < 2; i++)
        usage->out_bytes[i] = call->captures[i].seen;
}

/* The denial that decided the outcome is the one that the function reported; it is the last. */
static void give_denials(struct brig_call *call, struct brig_call_result *ret)
{
    ret->denial_count = call->denial_count;
    ret->denials = take_ptr(&call->denials);
    call->denial_count = 0;
    bool is_denial = ret->outcome == BRIG_CALL_FILESYSTEM || ret->outcome == BRIG_CALL_NETWORK ||
                     ret->outcome == BRIG_CALL_SYSCALL;
    if (is_denial && ret->denial_count > 0)
        ret->denial = &ret->denials[ret->denial_count - 1];
}

/* Filled in place: writing to a result on the stack would copy pages that are still shared with the
 * child. */
int outcome_fill(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    int code = 0;
    *ret = (struct brig_call_result){.exit_code = -1};
    if (!never_ran(call))
        code = decide(call, ret, err);
    else if (call->has_reason)
        ret->outcome = call->reason;
    else
        code = explain(call, ret, err);
    fill_usage(call, &ret->usage);
    ret->unenforced = call->own ? call->own->unenforced : call->caller->unenforced;
    capture_take(&call->captures[0], &ret->out);
    capture_take(&call->captures[1], &ret->err);
    give_denials(call, ret);
    if (code < 0 && ret->error.code == 0) /* the value or the texts could not be read */
        call_result_done(ret);
    return code;
}

/* ---- denials ---- */

/* Decides whether the jail caused a failure. The function's report is checked: the jail is blamed
 * only for what its policy does not grant. Whether the caller's own permissions would also have
 * refused the access makes no difference, so root and other users get the same answer. */

static bool is_write(enum brig_call_access access)
{
    return access == BRIG_CALL_ACCESS_WRITE;
}

/* Removes the last component; false if there is none. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return false;
    slash[slash == path] = 0;
    return true;
}

/* Resolves the path without symlinks. For a path that does not exist, this is the directory that
 * would contain it; for one that this user may not reach, the nearest directory above it that can
 * be opened. */
static bool resolve(const char *path, char real[PATH_LENGTH_MAX + 1], bool *ret_exists)
{
    char above[PATH_LENGTH_MAX + 1];
    if (strlen(path) >= sizeof above)
        return false;
    (void)snprintf(above, sizeof above, "%s", path);
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    *ret_exists = fd >= 0 || errno == EACCES;
    if (fd < 0 && errno == ENOENT && cut_last(above))
        fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EACCES && cut_last(above))
        fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    return path_of_fd(fd, real);
}

static void fill(struct brig_call_denial *denial, enum brig_call_outcome kind,
                 const struct memory_failure *failure, const char *subject, const char *rule)
{
    *denial = (struct brig_call_denial){
        .kind = kind, .access = failure->access, .sys_errno = failure->sys_errno};
    (void)snprintf(denial->subject, sizeof denial->subject, "%s", subject);
    (void)snprintf(denial->rule, sizeof denial->rule, "%s", rule);
}

/* The errors of a jail's filesystem: Landlock gives EACCES, and EXDEV for renames; a view gives
 * ENOENT and EROFS. */
static bool is_filesystem_error(const struct brig_caller *caller, int sys_errno)
{
    if (!caller->full && caller->ruleset < 0) /* the jail does not restrict files */
        return false;
    if (sys_errno == EACCES || sys_errno == EXDEV)
        return true;
    return caller->full && (sys_errno == ENOENT || sys_errno == EROFS);
}

const char *denial_path_rule(bool write)
{
    return write ? "not below any path of fs_allow"
                 : "not below a path of fs_allow or fs_read_allow, and not part of the system";
}

static bool check_path(const struct brig_caller *caller, const struct memory_failure *failure,
                       struct brig_call_denial *ret)
{
    const char *path = failure->texts[MEMORY_PATH];
    char real[PATH_LENGTH_MAX + 1];
    bool exists;
    if (!path || path[0] != '/' || !is_filesystem_error(caller, failure->sys_errno) ||
        !resolve(path, real, &exists))
        return false;
    if (!exists && failure->sys_errno == ENOENT)
        return false; /* the file does not exist outside either */
    struct memory_failure tried = *failure;
    /* The access is not known: it was a write if reading is granted. */
    if (tried.access == BRIG_CALL_ACCESS_UNKNOWN)
        tried.access = exists && !confine_cover(caller->policy, real, false)
                           ? BRIG_CALL_ACCESS_READ
                           : BRIG_CALL_ACCESS_WRITE;
    bool write = !exists || is_write(tried.access);
    if (confine_cover(caller->policy, real, write))
        return false;
    fill(ret, BRIG_CALL_FILESYSTEM, &tried, path, denial_path_rule(write));
    return true;
}

static bool is_network_error(int sys_errno)
{
    return sys_errno == EACCES || sys_errno == EPERM || sys_errno == ENETUNREACH ||
           sys_errno == EAFNOSUPPORT || sys_errno == EADDRNOTAVAIL;
}

static bool has_no_network(const struct brig_policy *policy)
{
    return policy->network == BRIG_NET_NONE || policy->network == BRIG_NET_LOOPBACK;
}

static bool check_network(const struct brig_caller *caller, const struct memory_failure *failure,
                          struct brig_call_denial *ret)
{
    const char *address = failure->texts[MEMORY_ADDRESS];
    if (!address || !has_no_network(caller->policy) || !is_network_error(failure->sys_errno))
        return false;
    fill(ret, BRIG_CALL_NETWORK, failure, address, "the call has no network");
    return true;
}

const char *denial_syscall_rule(const struct brig_caller *caller, int number)
{
    const struct brig_policy *policy = caller->policy;
    const uint64_t args[6] = {0};
    bool full =
        caller->full || seccomp_verdict(seccomp_program(policy->seccomp, policy->network, false),
                                        number, args) != 0;
    return full ? "refused by the syscall filter"
                : "refused by the syscall filter of calls without namespaces";
}

static const struct sock_fprog *filter_of(const struct brig_caller *caller)
{
    const struct brig_policy *policy = caller->policy;
    if (policy->disabled_layers & BRIG_LAYER_SECCOMP)
        return NULL;
    return caller->full ? seccomp_program(policy->seccomp, policy->network, policy->allow_nested)
                        : caller->plan.seccomp;
}

static bool check_syscall(const struct brig_caller *caller, const struct memory_failure *failure,
                          struct brig_call_denial *ret)
{
    const char *name = failure->texts[MEMORY_SYSCALL];
    const struct sock_fprog *filter = filter_of(caller);
    int number = name ? seccomp_number(name) : -1;
    if (number < 0 || !filter || failure->sys_errno == 0)
        return false;
    bool socket = strcmp(name, "socket") == 0;
    const uint64_t args[6] = {socket ? AF_INET : 0, socket ? SOCK_STREAM : 0};
    const uint64_t local[6] = {AF_UNIX, SOCK_STREAM};
    bool refused = seccomp_verdict(filter, number, args) == failure->sys_errno ||
                   (socket && seccomp_verdict(filter, number, local) == failure->sys_errno);
    if (!refused)
        return false;
    bool network = socket && has_no_network(caller->policy);
    bool is_unasked = socket && !network && !caller->full && !caller->policy->unix_sockets;
    struct memory_failure tried = *failure;
    tried.access = BRIG_CALL_ACCESS_UNKNOWN; /* that is of a path */
    fill(ret, network ? BRIG_CALL_NETWORK : BRIG_CALL_SYSCALL, &tried, name,
         network      ? "the call has no network"
         : is_unasked ? "UNIX sockets need unix_sockets, or namespaces"
                      : denial_syscall_rule(caller, number));
    return true;
}

bool denial_check(const struct brig_caller *caller, const struct memory_failure *failure,
                  struct brig_call_denial *ret)
{
    return check_path(caller, failure, ret) || check_network(caller, failure, ret) ||
           check_syscall(caller, failure, ret);
}

/* ---- results: text, JSON, release ---- */

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

void call_result_done(struct brig_call_result *result)
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

/* ---- words ---- */

int brig_call_result_text(const struct brig_call_result *result, char *buffer, size_t size)
{
    const char *text = (size_t)result->outcome < ARRAY_LENGTH(outcomes)
                           ? outcomes[result->outcome].text
                           : "no such outcome";
    const struct brig_call_denial *denial = result->denial;
    if (denial && denial->access == BRIG_CALL_ACCESS_UNKNOWN)
        return snprintf(buffer, size, "%s: '%s' (%s)", text, str_shown(denial->subject).text,
                        denial->rule);
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
        return snprintf(buffer, size, "%s: %s", result->class_name ? result->class_name : text,
                        str_shown(result->message).text);
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
