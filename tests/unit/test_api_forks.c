/* SPDX-License-Identifier: MIT */
/* Programs in an odd state that use the public interface: without fds 0 to 2, with real-time priority,
 * with another user id, without any fd left, and forked from the process whose job or call it is. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "tap.h"

static const char *const kinds[] = {"without namespaces", "in the full jail"};

static struct brig_caller *new_caller(int namespaces)
{
    struct brig_call_options options;
    struct brig_caller *caller = NULL;
    struct brig_error err = {0};
    brig_call_options_init(&options, sizeof options);
    options.namespaces = namespaces;
    options.memory_mb = 0;
    if (brig_caller_new(NULL, &options, &caller, &err) < 0)
        tap_bail("brig_caller_new: %s", err.message);
    return caller;
}

/* ---- without fds 0 to 2 ---- */

/* Which of the fds 0 to 2 are not /dev/null. */
static int look_at_streams(struct brig_call_child *child, void *argument)
{
    char odd = 0;
    (void)argument;
    for (int fd = 0; fd < 3; fd++) {
        struct stat info;
        if (fstat(fd, &info) < 0 || !S_ISCHR(info.st_mode) || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
            odd = (char)(odd | 1 << fd);
    }
    return brig_call_return(child, &odd, sizeof odd);
}

/* Returns those bits, or 9 if the call did not return. */
static int call_without_stdio(int namespaces)
{
    struct brig_call_result *result = NULL;
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
    struct brig_caller *caller = new_caller(namespaces);
    (void)brig_caller_call(caller, look_at_streams, NULL, &result, NULL);
    const char *odd = brig_call_result_value(result, NULL);
    int status = odd ? *odd : 9;
    brig_call_result_free(result);
    brig_caller_free(caller);
    return status;
}

static int run_beside_template(int unused)
{
    const char *const argv[] = {"sh", "-c", "test -c /dev/fd/0 -a -c /dev/fd/2 && echo null", NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_template *template_ = NULL;
    struct brig_result *result = NULL;
    (void)unused;
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
    command.argv = argv;
    command.stdio[0].kind = command.stdio[2].kind = BRIG_STDIO_INHERIT;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    if (brig_template_new(NULL, &template_, NULL) < 0)
        return 2;
    (void)brig_run(NULL, &command, &result, NULL);
    int status = strcmp(brig_result_output(result, 1, NULL, NULL), "null\n") == 0 ? 0 : 1;
    brig_result_free(result);
    brig_template_free(template_);
    return status;
}

static int in_fork(int (*body)(int), int argument)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(body(argument));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        tap_bail("fork: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- with real-time priority ---- */

static int tell_policy(struct brig_call_child *child, void *argument)
{
    const int policy = sched_getscheduler(0);
    (void)argument;
    return brig_call_return(child, &policy, sizeof policy);
}

/* Returns 0, or 77 if this user has no real-time priority. */
static int run_in_real_time(int namespaces)
{
    const char *const argv[] = {"true", NULL};
    const struct sched_param lowest = {.sched_priority = 1};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_call_result *result = NULL;
    if (sched_setscheduler(0, SCHED_FIFO, &lowest) < 0)
        return 77;
    struct brig_caller *caller = new_caller(namespaces);
    (void)brig_caller_call(caller, tell_policy, NULL, &result, NULL);
    const int *policy = brig_call_result_value(result, NULL);
    int status = policy && *policy == SCHED_OTHER ? 0 : 1;
    command.argv = argv;
    if (namespaces && brig_run(NULL, &command, NULL, NULL) < 0)
        status = 2;
    brig_call_result_free(result);
    brig_caller_free(caller);
    return status;
}

static void real_time(int namespaces)
{
    int status = in_fork(run_in_real_time, namespaces);
    if (status == 77)
        tap_diag("this user cannot have real-time priority, and so cannot its jails");
    else
        tap_is_int(status, 0, "%s: a real-time caller has ordinary jails", kinds[namespaces]);
}

/* ---- with another user id ---- */

#define OTHER_ID 65534

static int regain_root(struct brig_call_child *child, void *argument)
{
    const char back = setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0;
    (void)argument;
    return brig_call_return(child, &back, sizeof back);
}

/* With privileges that are laid down for a while. */
static int call_after_seteuid(int unused)
{
    struct brig_call_result *result = NULL;
    (void)unused;
    if (setegid(OTHER_ID) < 0 || seteuid(OTHER_ID) < 0)
        return 77;
    struct brig_caller *caller = new_caller(0);
    (void)brig_caller_call(caller, regain_root, NULL, &result, NULL);
    const char *back = brig_call_result_value(result, NULL);
    int status = back ? *back : 9;
    brig_call_result_free(result);
    brig_caller_free(caller);
    return status;
}

/* A daemon that has given up root: the kernel has made it undumpable. */
static int run_after_setuid(int unused)
{
    const char *const argv[] = {"true", NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_error err = {0};
    (void)unused;
    command.argv = argv;
    if (setgroups(0, NULL) < 0 || setgid(OTHER_ID) < 0 || setuid(OTHER_ID) < 0)
        return 77;
    int first = brig_run(NULL, &command, NULL, &err);
    int told = strstr(err.message, "PR_SET_DUMPABLE") != NULL;
    (void)prctl(PR_SET_DUMPABLE, 1);
    int second = brig_run(NULL, &command, NULL, &err);
    if (second < 0) /* ordinary users have no namespaces here at all */
        return told ? 2 : 0;
    return first < 0 && told ? 0 : 1;
}

static void other_ids(void)
{
    if (geteuid() != 0) {
        tap_diag("only root can change its ids");
        return;
    }
    tap_is_int(in_fork(call_after_seteuid, 0), 0, "a function cannot return to ids of its caller");
    tap_is_int(in_fork(run_after_setuid, 0), 0, "an undumpable caller is told what to do");
}

/* ---- without any fd left ---- */

static void unwatched(int namespaces)
{
    struct brig_caller *caller = new_caller(namespaces);
    struct brig_call *call = NULL;
    struct brig_error err = {0};
    struct rlimit before, none;
    if (brig_call_begin(caller, &call, &err) < 0)
        tap_bail("brig_call_begin: %s", err.message);
    pid_t pid = fork();
    if (pid == 0) {
        struct brig_call_child *child = brig_call_enter(call, 0);
        (void)pause();
        brig_call_leave(child);
    }
    (void)getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    (void)setrlimit(RLIMIT_NOFILE, &none);
    tap_is_int(brig_call_started(call, pid, &err), BRIG_E_SYSTEM,
               "%s: a call that cannot be watched", kinds[namespaces]);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    tap_ok(kill(pid, 0) < 0 && errno == ESRCH, "%s: is ended and reaped", kinds[namespaces]);
    brig_call_free(call);
    brig_caller_free(caller);
}

/* ---- in a forked process ---- */

static struct brig_job *start_until_eof(void)
{
    static const char *const argv[] = {"sh", "-c", "read line; echo $line", NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    command.argv = argv;
    command.stdio[0].kind = BRIG_STDIO_PIPE;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    if (brig_start(NULL, &command, &job, &err) < 0)
        tap_bail("brig_start: %s", err.message);
    return job;
}

static struct brig_job *shared_job;

static int use_job(int unused)
{
    (void)unused;
    int refused = brig_job_process(shared_job, NULL) == BRIG_E_STATE &&
                  brig_job_wait_ms(shared_job, 0, NULL) == BRIG_E_STATE &&
                  brig_job_cancel(shared_job, NULL) == BRIG_E_STATE &&
                  brig_job_signal(shared_job, SIGKILL, NULL) == BRIG_E_STATE;
    brig_job_free(shared_job);
    return refused ? 0 : 1;
}

static void forked_job(void)
{
    struct brig_result *result = NULL;
    shared_job = start_until_eof();
    tap_is_int(in_fork(use_job, 0), 0, "a forked process cannot use the job, and frees its copy");
    (void)!write(brig_job_stream(shared_job, 0), "there\n", 6);
    if (brig_job_wait(shared_job, NULL) < 0 || brig_job_result(shared_job, &result, NULL) < 0)
        tap_bail("the job has no result");
    tap_is_str(brig_result_output(result, 1, NULL, NULL), "there\n", "the command goes on");
    brig_result_free(result);
    brig_job_free(shared_job);
}

static struct brig_call *shared_call;
static struct brig_caller *shared_caller;

static int use_call(int unused)
{
    (void)unused;
    int refused = brig_call_process(shared_call, NULL) == BRIG_E_STATE &&
                  brig_call_cancel(shared_call, NULL) == BRIG_E_STATE;
    brig_call_free(shared_call);
    brig_caller_free(shared_caller);
    return refused ? 0 : 1;
}

static void forked_call(int namespaces)
{
    struct brig_call_result *result = NULL;
    int ends[2];
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe2");
    shared_caller = new_caller(namespaces);
    if (brig_call_begin(shared_caller, &shared_call, NULL) < 0 ||
        brig_call_keep_fd(shared_call, ends[0], NULL) < 0)
        tap_bail("brig_call_begin");
    pid_t pid = fork();
    if (pid == 0) {
        struct brig_call_child *child = brig_call_enter(shared_call, 0);
        (void)!read(ends[0], &byte, 1);
        (void)brig_call_return(child, &byte, 1);
        brig_call_leave(child);
    }
    (void)brig_call_started(shared_call, pid, NULL);
    tap_is_int(in_fork(use_call, 0), 0, "%s: a forked process cannot use the call",
               kinds[namespaces]);
    (void)!write(ends[1], "x", 1);
    if (brig_call_wait(shared_call, NULL) < 0 || brig_call_finish(shared_call, &result, NULL) < 0)
        tap_bail("the call has no result");
    tap_is_int(brig_call_result_outcome(result), BRIG_CALL_RETURNED, "%s: the function goes on",
               kinds[namespaces]);
    brig_call_result_free(result);
    brig_call_free(shared_call);
    brig_caller_free(shared_caller);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        tap_is_int(in_fork(call_without_stdio, namespaces), 0,
                   "%s: a closed stream is inherited as /dev/null", kinds[namespaces]);
        real_time(namespaces);
        unwatched(namespaces);
        forked_call(namespaces);
    }
    tap_is_int(in_fork(run_beside_template, 0), 0, "so is one of a command, beside a template");
    forked_job();
    other_ids();
    return tap_done();
}
