/* SPDX-License-Identifier: MIT */
/* What the tests of the public API share: short ways to run something, and to see what is left. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <brig/brig.h>

#include "await.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "tap.h"

static inline struct brig_policy *new_policy(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        tap_bail("brig_policy_new: out of memory");
    /* Those that take a cgroup, which not everybody has; test_cgroup.c and limits.bats are about
     * them. */
    if (brig_policy_limit(policy, BRIG_LIMIT_MEMORY_BYTES, 0, NULL) < 0 ||
        brig_policy_limit(policy, BRIG_LIMIT_CPU_PERCENT, 0, NULL) < 0)
        tap_bail("brig_policy_limit: a limit cannot be lifted");
    return policy;
}

static inline void set_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value)
{
    struct brig_error err = {0};
    if (brig_policy_limit(policy, limit, value, &err) < 0)
        tap_bail("brig_policy_limit: %s", err.message);
}

/* `sh -c script` with both outputs captured. */
struct shell {
    const char *argv[4];
    struct brig_command command;
};

static inline void shell_init(struct shell *shell, const char *script)
{
    *shell = (struct shell){.argv = {"/bin/sh", "-c", script, NULL}};
    shell->command.size = sizeof shell->command;
    shell->command.argv = shell->argv;
    shell->command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    shell->command.stdio[2].kind = BRIG_STDIO_CAPTURE;
}

/* Runs and says what went wrong with the jail itself, if anything. */
static inline int run(const struct brig_policy *policy, const struct brig_command *command,
                      struct brig_result *ret_result)
{
    struct brig_error err = {0};
    int code = job_run(policy, command, ret_result, &err);
    if (code < 0)
        tap_diag("brig_run: %s", err.message);
    return code;
}

static inline int run_shell(const struct brig_policy *policy, const char *script,
                            struct brig_result *ret_result)
{
    struct shell shell;
    shell_init(&shell, script);
    return run(policy, &shell.command, ret_result);
}

static inline struct brig_job *start(const struct brig_policy *policy,
                                     const struct brig_command *command)
{
    struct brig_error err = {0};
    struct brig_job *job = NULL;
    if (brig_start(policy, command, &job, &err) < 0) {
        tap_diag("brig_start: %s", err.message);
        return NULL;
    }
    return job;
}

/* Waits for a job, takes its result and frees it. */
static inline int finish(struct brig_job *job, struct brig_result *ret_result)
{
    struct brig_error err = {0};
    *ret_result = (struct brig_result){.outcome = BRIG_SETUP_FAILED};
    int code = job ? brig_job_wait(job, &err) : BRIG_E_STATE;
    if (code >= 0)
        code = job_take_result(job, ret_result, &err);
    if (code < 0)
        tap_diag("the job: %s", err.message);
    brig_job_free(job);
    return code;
}

static inline void is_exit(const struct brig_result *result, int code, const char *name)
{
    if (!tap_ok(result->outcome == BRIG_EXITED && result->exit_code == code, "%s", name))
        tap_diag("%s, exit code %d, signal %d, error '%s', stderr '%s'",
                 brig_outcome_name(result->outcome), result->exit_code, result->signal,
                 result->error.message, result->err.data ? result->err.data : "");
}

static inline void is_outcome(const struct brig_result *result, enum brig_outcome outcome,
                              const char *name)
{
    if (!tap_ok(result->outcome == outcome, "%s", name))
        tap_diag("%s, exit code %d, signal %d, error '%s'", brig_outcome_name(result->outcome),
                 result->exit_code, result->signal, result->error.message);
}

static inline int open_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        tap_bail("/proc/self/fd: %s", strerror(errno));
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count;
}

/* True if this process has no child at all, of whatever kind. */
static inline bool no_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

/* A pipe whose writing end goes into the jail as fd 7: end of file means nobody there lives. */
struct leash {
    int read_fd;
    int write_fd;
    struct brig_pass_fd pass;
};

static inline void leash_init(struct leash *leash, struct brig_command *command)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    *leash = (struct leash){.read_fd = fds[0], .write_fd = fds[1], .pass = {fds[1], 7}};
    command->pass_fds = &leash->pass;
    command->pass_fd_count = 1;
}

/* Closes our writing end and tells whether end of file comes; bytes before it are passed over. */
static inline bool leash_ends(struct leash *leash)
{
    if (leash->write_fd >= 0)
        (void)close(leash->write_fd);
    leash->write_fd = -1;
    bool ended = await_end(leash->read_fd);
    (void)close(leash->read_fd);
    return ended;
}

/* Blocks until the jail wrote a byte. */
static inline bool leash_ready(const struct leash *leash)
{
    return await_byte(leash->read_fd);
}

/* A group of checks; the name may be given as an argument to run it alone. */
struct job_test {
    const char *name;
    void (*run)(void);
};

/* Runs the groups and checks after each that it left neither fd nor child behind. */
static inline int job_main(const struct job_test *tests, size_t count, int argc, char **argv)
{
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], tests[i].name) != 0)
            continue;
        int before = open_fds();
        tests[i].run();
        tap_is_int(open_fds(), before, "%s: no fd is leaked", tests[i].name);
        tap_ok(no_children(), "%s: no child is left", tests[i].name);
    }
    return tap_done();
}

/* Both are too long to be shown: what is the same at their beginning is left out. */
static inline void is_same_text(const char *got, const char *wanted, const char *what)
{
    size_t same = 0;
    while (got[same] && got[same] == wanted[same])
        same++;
    while (same > 0 && got[same - 1] != '\n')
        same--;
    tap_is_str(got + same, wanted + same, "%s", what);
}
