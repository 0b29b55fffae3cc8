/* SPDX-License-Identifier: MIT */
/* The public interface as a program sees it: results by getters, pipes, terminals, waits with a limit,
 * structs of other versions, templates that threads share, results of calls. Nothing internal is included. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>
#include <brig/call.h>

#include "tap.h"

static struct brig_command shell(const char *const *argv)
{
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    return command;
}

static struct brig_job *start(const struct brig_command *command)
{
    struct brig_error err = {0};
    struct brig_job *job = NULL;
    if (brig_start(NULL, command, &job, &err) < 0)
        tap_bail("brig_start: %s", err.message);
    return job;
}

/* All until the end of the file, or of the terminal. */
static size_t read_all(int fd, char *buffer, size_t size)
{
    size_t length = 0;
    ssize_t count;
    while ((count = read(fd, buffer + length, size - 1 - length)) > 0)
        length += (size_t)count;
    buffer[length] = '\0';
    return length;
}

/* ---- runs ---- */

static void runs(void)
{
    const char *const argv[] = {"sh", "-c", "echo out; exit 3", NULL};
    struct brig_command command = shell(argv);
    struct brig_error err = {0};
    struct brig_result *result = NULL;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    tap_is_int(brig_run(NULL, &command, &result, &err), 0, "NULL is the sealed policy: %s",
               err.message);
    tap_is_int(brig_result_outcome(result), BRIG_EXITED, "the command exited");
    tap_is_int(brig_result_exit_code(result), 3, "with its code");
    tap_is_str(brig_result_output(result, 1, NULL, NULL), "out\n", "its output is there");
    tap_is_str(brig_result_output(result, 2, NULL, NULL), "", "what it did not write is empty");
    tap_is_int(brig_result_error(result)->code, BRIG_OK, "there is no error");
    brig_result_free(result);
    tap_is_int(brig_run(NULL, &command, NULL, &err), 0, "a caller need not want the result");

    const char *const missing[] = {"/no/such/program", NULL};
    command = shell(missing);
    tap_is_int(brig_run(NULL, &command, &result, &err), BRIG_E_NOT_FOUND, "no program, no run");
    tap_is_int(brig_result_outcome(result), BRIG_SETUP_FAILED, "but a result,");
    tap_is_str(brig_result_error(result)->message, err.message, "which says why");
    brig_result_free(result);
    tap_is_int(brig_run(NULL, NULL, NULL, &err), BRIG_E_INVALID, "no command, no run");
    command = shell(argv);
    command.stdio[2].kind = BRIG_STDIO_PIPE;
    tap_is_int(brig_run(NULL, &command, NULL, &err), BRIG_E_INVALID, "brig_run() has no pipes: %s",
               err.message);
}

/* ---- structs of other versions ---- */

struct later_command {
    struct brig_command known;
    long added;
};

static int run_later(struct later_command *later, struct brig_error *err)
{
    return brig_run(NULL, &later->known, NULL, err);
}

static void versions(void)
{
    const char *const argv[] = {"true", NULL};
    struct brig_error err = {0};
    struct brig_command command = shell(argv);
    command.size = 0;
    tap_is_int(brig_run(NULL, &command, NULL, &err), BRIG_E_INVALID, "a size of 0 is refused");
    tap_ok(strstr(err.message, "BRIG_COMMAND_INIT") != NULL, "with the remedy: %s", err.message);
    command.size = offsetof(struct brig_command, pass_fds);
    command.pass_fd_count = 99999;
    tap_is_int(brig_run(NULL, &command, NULL, &err), 0, "members beyond the size are not read");

    struct later_command later = {.known = shell(argv)};
    later.known.size = sizeof later;
    tap_is_int(run_later(&later, &err), 0, "a larger struct is fine while its rest is 0");
    later.added = 1;
    tap_is_int(run_later(&later, &err), BRIG_E_INVALID, "else it is refused");
    tap_ok(strstr(err.message, "older than the program") != NULL, "with the reason: %s",
           err.message);

    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_identity identity = BRIG_IDENTITY_INIT;
    struct brig_inject inject = BRIG_INJECT_INIT;
    tap_is_int(brig_policy_identity(policy, &identity, &err), 0, "an identity to be chosen");
    identity.size = 1;
    tap_is_int(brig_policy_identity(policy, &identity, &err), BRIG_E_INVALID, "of a bad size: %s",
               err.message);
    inject.size = 1 << 20;
    tap_is_int(brig_policy_inject(policy, &inject, &err), BRIG_E_INVALID, "a bad credential: %s",
               err.message);
    brig_policy_free(policy);
    struct brig_call_options options;
    memset(&options, 7, sizeof options);
    brig_call_options_init(&options, offsetof(struct brig_call_options, namespaces));
    tap_ok(options.size == offsetof(struct brig_call_options, namespaces) && options.trace != 0,
           "init writes no byte beyond the size");
}

/* ---- pipes ---- */

static void pipes(void)
{
    const char *const argv[] = {"sh", "-c",
                                "while read -r line; do echo \"<$line>\"; done; echo e >&2", NULL};
    struct brig_command command = shell(argv);
    for (int i = 0; i < 3; i++)
        command.stdio[i].kind = BRIG_STDIO_PIPE;
    struct brig_job *job = start(&command);
    char text[64];
    struct brig_error err = {0};
    struct brig_result *result = NULL;
    tap_ok(fcntl(brig_job_stream(job, 1), F_GETFD) & FD_CLOEXEC, "a pipe is closed by exec");
    tap_is_int(write(brig_job_stream(job, 0), "one\n", 4), 4, "a line is written");
    ssize_t count = read(brig_job_stream(job, 1), text, sizeof text - 1);
    tap_ok(count == 6 && memcmp(text, "<one>\n", 6) == 0, "and its answer read while it runs");
    tap_is_int(brig_job_wait_ms(job, 10, &err), 0, "the command goes on");
    tap_is_int(brig_job_result(job, &result, &err), BRIG_E_STATE, "so there is no result");
    tap_is_int(brig_job_close_stream(job, 0, &err), 0, "its input ends");
    tap_is_int(brig_job_close_stream(job, 0, &err), BRIG_E_STATE, "once");
    tap_is_int(brig_job_stream(job, 0), -1, "and is not there any more");
    tap_is_int(brig_job_wait_ms(job, -1, &err), 1, "then the command ends");
    tap_is_int(brig_job_wait_ms(job, 0, &err), 1, "and stays so");
    tap_ok(read_all(brig_job_stream(job, 2), text, sizeof text) == 2 && strcmp(text, "e\n") == 0,
           "the pipe outlives it");
    tap_is_int(brig_job_stream(job, 3), -1, "there is no stream 3");
    tap_is_int(brig_job_result(job, &result, &err), 0, "now there is a result");
    struct brig_result *again = NULL;
    tap_is_int(brig_job_result(job, &again, &err), BRIG_E_STATE, "which is taken once");
    tap_is_str(brig_result_output(result, 1, NULL, NULL), "", "pipes are not captured");
    brig_result_free(result);
    brig_job_free(job);
}

static void no_pipes(void)
{
    const char *const argv[] = {"sleep", "60", NULL};
    struct brig_command command = shell(argv);
    struct brig_job *job = start(&command);
    struct brig_error err = {0};
    tap_is_int(brig_job_stream(job, 0), -1, "a job without pipes has no streams");
    tap_is_int(brig_job_close_stream(job, -1, &err), BRIG_E_STATE, "nor one of number -1");
    tap_is_int(brig_job_resize(job, 24, 80, &err), BRIG_E_STATE, "nor a terminal");
    tap_ok(!brig_job_take_net_event(job), "nor events");
    tap_is_int(brig_job_cancel(job, &err), 0, "it is cancelled");
    tap_is_int(brig_job_wait_ms(job, 60000, &err), 1, "and ends within the time");
    struct brig_result *result = NULL;
    tap_is_int(brig_job_result(job, &result, &err), 0, "with a result:");
    tap_is_int(brig_result_outcome(result), BRIG_CANCELLED, "cancelled");
    brig_result_free(result);
    brig_job_free(job);
}

/* ---- a terminal ---- */

static void terminal(void)
{
    const char *const argv[] = {"sh", "-c",
                                "trap 'stty size; exit 4' WINCH; stty size; echo ready;"
                                "while :; do sleep 1; done",
                                NULL};
    struct brig_command command = shell(argv);
    for (int i = 0; i < 3; i++)
        command.stdio[i].kind = BRIG_STDIO_PTY;
    struct brig_job *job = start(&command);
    struct brig_error err = {0};
    char text[256] = "";
    size_t length = 0;
    tap_ok(isatty(brig_job_terminal(job)), "the job has a terminal");
    while (!strstr(text, "ready") && length < sizeof text - 1) {
        ssize_t count = read(brig_job_terminal(job), text + length, sizeof text - 1 - length);
        if (count <= 0)
            break;
        length += (size_t)count;
        text[length] = '\0';
    }
    tap_ok(strstr(text, "24 80\r\n") != NULL, "of the usual size");
    tap_is_int(brig_job_resize(job, 0, 80, &err), BRIG_E_INVALID, "which cannot be nothing");
    tap_is_int(brig_job_resize(job, 24, 70000, &err), BRIG_E_INVALID, "nor too large");
    tap_is_int(brig_job_resize(job, 50, 100, &err), 0, "it is resized");
    (void)read_all(brig_job_terminal(job), text, sizeof text);
    tap_ok(strstr(text, "50 100\r\n") != NULL, "and the command is told with SIGWINCH");
    tap_is_int(brig_job_wait(job, &err), 0, "it ends");
    struct brig_result *result = NULL;
    tap_is_int(brig_job_result(job, &result, &err), 0, "with a result");
    tap_is_int(brig_result_exit_code(result), 4, "of its trap");
    brig_result_free(result);
    brig_job_free(job);
}

/* One of the streams alone; the others stay what they are. */
/* The output of a command whose stderr goes where stdout does. */
static void merged(enum brig_stdio_kind kind, const char *name)
{
    const char *const argv[] = {"sh", "-c", "echo a; echo b >&2; echo c", NULL};
    struct brig_command command = shell(argv);
    struct brig_result *result = NULL;
    char text[64] = "";
    command.stdio[1].kind = kind;
    command.stdio[2].kind = BRIG_STDIO_STDOUT;
    struct brig_job *job = start(&command);
    if (kind == BRIG_STDIO_PIPE)
        (void)read_all(brig_job_stream(job, 1), text, sizeof text);
    if (brig_job_wait(job, NULL) < 0 || brig_job_result(job, &result, NULL) < 0)
        tap_bail("the job has no result");
    tap_is_str(kind == BRIG_STDIO_PIPE ? text : brig_result_output(result, 1, NULL, NULL),
               kind == BRIG_STDIO_NULL ? "" : "a\nb\nc\n", "stderr follows stdout: %s", name);
    tap_ok(brig_job_stream(job, 2) < 0 && !*brig_result_output(result, 2, NULL, NULL),
           "stderr has no end of its own: %s", name);
    brig_result_free(result);
    brig_job_free(job);
}

static void merges(void)
{
    const char *const argv[] = {"true", NULL};
    struct brig_command command = shell(argv);
    merged(BRIG_STDIO_NULL, "nowhere");
    merged(BRIG_STDIO_CAPTURE, "captured");
    merged(BRIG_STDIO_PIPE, "a pipe");
    command.stdio[1].kind = BRIG_STDIO_STDOUT;
    tap_is_int(brig_run(NULL, &command, NULL, NULL), BRIG_E_INVALID, "stdout cannot follow itself");
}

/* ---- pointers that are NULL ---- */

static void nulls(void)
{
    const char *const argv[] = {"true", NULL};
    struct brig_command passing = shell(argv), reading = shell(argv);
    struct brig_call_options keeping;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    passing.pass_fd_count = 1;
    tap_is_int(brig_run(NULL, &passing, NULL, NULL), BRIG_E_INVALID, "no fds to pass, but a count");
    reading.stdio[0].kind = BRIG_STDIO_BYTES;
    reading.stdio[0].length = 1;
    tap_is_int(brig_run(NULL, &reading, NULL, NULL), BRIG_E_INVALID, "no bytes, but a length");
    tap_is_int(brig_policy_file(policy, "/tmp/a", NULL, 1, 0600, NULL), BRIG_E_INVALID,
               "no bytes of a file, but a length");
    tap_is_int(brig_policy_file(policy, "/tmp/a", NULL, 0, 0600, NULL), 0, "an empty file");
    brig_call_options_init(&keeping, sizeof keeping);
    tap_is_int(brig_call_run(NULL, &keeping, NULL, NULL, NULL, NULL), BRIG_E_INVALID,
               "no function");
    keeping.keep_fd_count = 1;
    tap_is_int(brig_call_run(NULL, &keeping, NULL, NULL, NULL, NULL), BRIG_E_INVALID,
               "no fds to keep, but a count");
    brig_policy_free(policy);
}

/* ---- stops ---- */

/* The command stops as soon as it runs, so that some of the stops are noticed by brig_start(). */
static void stops(void)
{
    enum { ROUNDS = 10 };
    const char *const argv[] = {"sh", "-c", "kill -STOP $$", NULL};
    struct brig_command command = shell(argv);
    int told = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct brig_job *job = start(&command);
        struct pollfd waiting = {.fd = brig_job_fd(job), .events = POLLIN};
        int stop = 0;
        if (i % 2 == 0) /* without looking first */
            (void)poll(NULL, 0, 5);
        while (stop == 0 && poll(&waiting, 1, 20000) > 0 && brig_job_process(job, NULL) == 0)
            stop = brig_job_take_stop(job);
        told += stop == SIGSTOP;
        brig_job_free(job);
    }
    tap_is_int(told, ROUNDS, "the fd of a job tells of every stop");
}

static void part_terminal(void)
{
    const char *const argv[] = {"sh", "-c", "test -t 1 && ! test -t 0 && ! test -t 2", NULL};
    struct brig_command command = shell(argv);
    command.stdio[1].kind = BRIG_STDIO_PTY;
    struct brig_job *job = start(&command);
    struct brig_result *result = NULL;
    tap_ok(brig_job_wait(job, NULL) == 0 && brig_job_result(job, &result, NULL) == 0, "it ends");
    tap_is_int(brig_result_exit_code(result), 0, "a terminal can be one of the streams");
    brig_result_free(result);
    brig_job_free(job);
}

/* Without namespaces the terminal is one of the host's. */
static void without_namespaces(void)
{
    const char *const argv[] = {"sh", "-c", "test -t 0 && stty size && cat >&2", NULL};
    struct brig_command command = shell(argv);
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_error err = {0};
    struct brig_job *job = NULL;
    command.stdio[0].kind = BRIG_STDIO_PTY;
    command.stdio[1].kind = BRIG_STDIO_PTY;
    command.stdio[2].kind = BRIG_STDIO_PIPE;
    (void)brig_policy_disable(policy, BRIG_LAYER_NAMESPACES, &err);
    (void)brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, &err);
    if (brig_start(policy, &command, &job, &err) < 0)
        tap_bail("brig_start: %s", err.message);
    brig_policy_free(policy);
    char text[64] = "";
    ssize_t count = read(brig_job_terminal(job), text, sizeof text - 1);
    tap_ok(count > 0 && strncmp(text, "24 80", 5) == 0, "a terminal without namespaces");
    tap_is_int(brig_job_resize(job, 30, 90, &err), 0, "can be resized");
    tap_is_int(write(brig_job_terminal(job), "typed\n\004", 7), 7, "and typed into");
    (void)read_all(brig_job_stream(job, 2), text, sizeof text);
    tap_is_str(text, "typed\n", "beside a pipe");
    tap_is_int(brig_job_wait(job, &err), 0, "the command ends at Ctrl-D");
    brig_job_free(job);
}

/* ---- threads ---- */

#define THREADS 8
#define RUNS 12

struct worker {
    struct brig_template *template_;
    pthread_t thread;
    int number, good;
};

static bool run_one(struct worker *worker, int turn)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "%d.%d\n", worker->number, turn);
    const char *const argv[] = {"cat", NULL};
    struct brig_command command = shell(argv);
    struct brig_job *job = NULL;
    struct brig_result *result = NULL;
    command.stdio[0] = (struct brig_stdio){BRIG_STDIO_BYTES, -1, wanted, strlen(wanted)};
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    bool good = brig_template_start(worker->template_, &command, &job, NULL) == 0 &&
                brig_job_wait(job, NULL) == 0 && brig_job_result(job, &result, NULL) == 0 &&
                strcmp(brig_result_output(result, 1, NULL, NULL), wanted) == 0;
    brig_result_free(result);
    brig_job_free(job);
    return good;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int turn = 0; turn < RUNS; turn++)
        worker->good += run_one(worker, turn);
    return NULL;
}

static void threads(void)
{
    struct brig_error err = {0};
    struct brig_template *template_ = NULL;
    struct worker workers[THREADS] = {{.number = 0}};
    int good = 0;
    if (brig_template_new(NULL, &template_, &err) < 0)
        tap_bail("brig_template_new: %s", err.message);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.template_ = template_, .number = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            tap_bail("pthread_create failed");
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        good += workers[i].good;
    }
    brig_template_free(template_);
    tap_is_int(good, THREADS * RUNS, "threads start jobs from one template at the same time");
}

/* ---- calls ---- */

static int fail_in_words(struct brig_call_child *child, void *argument)
{
    struct brig_call_failure failure = BRIG_CALL_FAILURE_INIT;
    failure.class_name = "Error";
    failure.message = argument;
    failure.backtrace = "line 1";
    failure.sys_errno = ENOSPC;
    return brig_call_fail(child, &failure);
}

static int exit_with_four(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)argument;
    _exit(4);
}

static void calls(void)
{
    struct brig_call_result *result = NULL;
    struct brig_error err = {0};
    char full[] = "full", line[64];
    tap_is_int(brig_call_run(NULL, NULL, fail_in_words, full, &result, &err), 0, "a call: %s",
               err.message);
    tap_is_int(brig_call_result_outcome(result), BRIG_CALL_FAILED, "fails");
    tap_is_str(brig_call_result_class_name(result), "Error", "with a class");
    tap_is_str(brig_call_result_message(result), "full", "a message");
    tap_is_str(brig_call_result_backtrace(result), "line 1", "a backtrace");
    tap_is_int(brig_call_result_errno(result), ENOSPC, "an errno");
    (void)brig_call_result_text(result, line, sizeof line);
    tap_is_str(line, "Error: full", "and a line for people");
    tap_ok(!brig_call_result_denial(result) && brig_call_result_denial_count(result) == 0 &&
               !brig_call_result_denial_at(result, 0),
           "nothing was denied");
    tap_is_int(brig_call_result_exit_code(result), -1, "it did not exit");
    tap_is_int(brig_call_result_error(result)->code, BRIG_OK, "and it ran");
    tap_ok(brig_call_result_usage(result)->wall_us > 0, "for some time");
    brig_call_result_free(result);

    tap_is_int(brig_call_run(NULL, NULL, exit_with_four, NULL, &result, &err), 0, "another call");
    tap_is_str(brig_call_outcome_name(brig_call_result_outcome(result)), "exited", "exits");
    tap_is_int(brig_call_result_exit_code(result), 4, "with a code");
    tap_is_int(brig_call_result_signal(result), 0, "and without a signal");
    brig_call_result_free(result);
}

int main(void)
{
    runs();
    calls();
    versions();
    pipes();
    no_pipes();
    terminal();
    part_terminal();
    merges();
    nulls();
    stops();
    without_namespaces();
    threads();
    return tap_done();
}
