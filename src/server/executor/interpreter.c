/* SPDX-License-Identifier: MIT */
/* The programs of contexts: an interpreter of the sandbox with a script of ours, a socket for lines
 * of JSON, and pipes for its output. Whatever runs in the sandbox can write to the socket, too. So
 * lines have a limit, and one that cannot be understood ends the program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "jail/job/job.h"
#include "server/executor/executor.h"
#include "server/executor/interpreter_line.h"
#include "server/interpreter_bash.h" /* made from interpreter.sh */
#include "server/interpreter_node.h"
#include "server/interpreter_python.h"

#define CHANNEL_FD 3
#define PIECE_BYTES 32768
#define PIECES_AT_ONCE 8
#define DRAIN_ROUNDS 32           /* a pipe can have 1 MiB */
#define LINE_FREE ((size_t)65536) /* of a line, which is not counted */

const char *const interpreter_names[INTERPRETERS_] = {
    [INTERPRETER_PYTHON] = "python", [INTERPRETER_NODE] = "node", [INTERPRETER_BASH] = "bash"};

#define MANGLED "something that is not the interpreter has written to its channel"

/* ---- sending ---- */

static void watch_channel(struct interpreter *interpreter)
{
    bool wants = interpreter->sent < interpreter->waiting.length;
    struct epoll_event event = {.events = (interpreter->paused ? 0 : (uint32_t)EPOLLIN) |
                                          (wants ? (uint32_t)EPOLLOUT : 0),
                                .data.ptr = &interpreter->channel};
    interpreter->writing = wants;
    (void)epoll_ctl(interpreter->sandbox->executor->epoll, EPOLL_CTL_MOD, interpreter->channel.fd,
                    &event);
}

static void feed(struct interpreter *interpreter)
{
    struct str *waiting = &interpreter->waiting;
    if (interpreter->channel.fd < 0)
        return;
    while (interpreter->sent < waiting->length) {
        ssize_t done = send(interpreter->channel.fd, waiting->data + interpreter->sent,
                            waiting->length - interpreter->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            break; /* there is no room; or the program is gone, as its job says soon */
        interpreter->sent += (size_t)done;
    }
    if (interpreter->sent == waiting->length) {
        str_done(waiting);
        interpreter->sent = 0;
    }
    if ((interpreter->sent < waiting->length) != interpreter->writing)
        watch_channel(interpreter);
}

void executor_interpreter_send(struct interpreter *interpreter, uint64_t run,
                               const struct sandbox_request *request)
{
    if (interpreter->waiting.length > 0) { /* it told the end of a run that it has not read */
        executor_context_broken(interpreter->context, EXECUTION_ERROR, MANGLED);
        return;
    }
    interpreter_line_write(&interpreter->waiting, run, request->env, request->env_count,
                           request->bytes.data, request->bytes.length);
    if (interpreter->waiting.failed) {
        str_done(&interpreter->waiting);
        executor_context_broken(interpreter->context, EXECUTION_ERROR, "out of memory");
        return;
    }
    if (interpreter->pulses >= 0)
        (void)!write(interpreter->pulses, "\n", 1);
    feed(interpreter);
}

void executor_interpreter_interrupt(const struct interpreter *interpreter)
{
    (void)brig_job_signal(interpreter->job, SIGINT, NULL); /* fails if the job is over already */
}

/* ---- lines ---- */

static void forget_line(struct interpreter *interpreter, size_t length)
{
    struct str *line = &interpreter->line;
    executor_output_count(interpreter->sandbox, 0, length);
    memmove(line->data, line->data + length, line->length - length);
    line->length -= length;
    interpreter->line_seen = 0;
}

/* Returns false if the program has to be ended. */
static bool take_lines(struct interpreter *interpreter)
{
    struct str *from = &interpreter->line;
    size_t begin = 0;
    while (interpreter->context) {
        const char *end = memchr(from->data + begin + interpreter->line_seen, '\n',
                                 from->length - begin - interpreter->line_seen);
        if (!end)
            break;
        struct interpreter_line line;
        const char *text = from->data + begin;
        size_t length = (size_t)(end - text);
        if (!interpreter_line_read(text, length, &line))
            return false;
        if (line.word == INTERPRETER_READY)
            interpreter->ready = true;
        executor_context_heard(interpreter->context, &line, text, length);
        begin += length + 1;
        interpreter->line_seen = 0;
    }
    if (!interpreter->context)
        return true;
    forget_line(interpreter, begin);
    interpreter->line_seen = from->length;
    return from->length <= INTERPRETER_LINE_MAX;
}

/* Returns 1 if there may be more, 0 if not, negative if the program has to be ended. */
static int read_channel(struct interpreter *interpreter)
{
    struct sandboxes *all = &interpreter->sandbox->executor->sandboxes;
    char piece[PIECE_BYTES];
    ssize_t got = recv(interpreter->channel.fd, piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (got == 0) { /* its job says soon how it has ended */
        executor_unwatch(interpreter->sandbox->executor, &interpreter->channel);
        (void)close(take_fd(&interpreter->channel.fd));
        interpreter->closed_ms = clock_now_ms();
        all->due_ms = 0;
        return 0;
    }
    if (interpreter->line.length > LINE_FREE && !executor_output_has_room(interpreter->sandbox))
        return -1;
    str_append_bytes(&interpreter->line, piece, (size_t)got);
    if (interpreter->line.failed)
        return -1;
    executor_output_count(interpreter->sandbox, (size_t)got, 0);
    return take_lines(interpreter) ? 1 : -1;
}

static bool is_full(const struct interpreter *interpreter)
{
    struct executor *executor = interpreter->sandbox->executor;
    if (!interpreter->context || !executor_http_is_full(executor) ||
        !executor_context_is_followed(interpreter->context))
        return false;
    executor->sandboxes.has_paused = true;
    return true;
}

static void channel_ready(void *owner, uint32_t events)
{
    struct interpreter *interpreter = owner;
    if (interpreter->channel.fd < 0)
        return;
    if (events & EPOLLOUT)
        feed(interpreter);
    if (is_full(interpreter)) {
        interpreter->paused = true;
        watch_channel(interpreter);
        return;
    }
    int more = 1;
    for (int i = 0; i < PIECES_AT_ONCE && more > 0 && interpreter->context; i++)
        more = read_channel(interpreter);
    if (more < 0 && interpreter->context)
        executor_context_broken(interpreter->context, EXECUTION_ERROR, MANGLED);
}

/* ---- output ---- */

static void close_stream(struct interpreter_stream *stream)
{
    if (stream->source.fd < 0)
        return;
    if (!stream->paused)
        executor_unwatch(stream->interpreter->sandbox->executor, &stream->source);
    stream->paused = false;
    (void)close(take_fd(&stream->source.fd));
}

/* What a program that cannot be started writes is for the message. */
static void note_start(struct interpreter *interpreter, const char *bytes, size_t length)
{
    size_t most = sizeof interpreter->said - 1;
    size_t part = length < most ? length : most;
    memcpy(interpreter->said, bytes + length - part, part);
    interpreter->said[part] = '\0';
}

/* Returns whether there may be more. */
static bool read_stream(struct interpreter_stream *stream)
{
    struct interpreter *interpreter = stream->interpreter;
    char piece[PIECE_BYTES];
    ssize_t length;
    do
        length = read(stream->source.fd, piece, sizeof piece);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return false;
    if (length <= 0) {
        close_stream(stream);
        return false;
    }
    if (!interpreter->ready && stream->is_stderr)
        note_start(interpreter, piece, (size_t)length);
    else if (interpreter->context)
        executor_context_output(interpreter->context, stream->is_stderr, piece, (size_t)length);
    return true;
}

static void stream_ready(void *owner, uint32_t events)
{
    struct interpreter_stream *stream = owner;
    (void)events;
    if (stream->source.fd < 0 || stream->paused)
        return;
    if (is_full(stream->interpreter)) {
        executor_unwatch(stream->interpreter->sandbox->executor, &stream->source);
        stream->paused = true;
        return;
    }
    (void)read_stream(stream);
}

void executor_interpreter_drain(struct interpreter *interpreter)
{
    for (int i = 0; i < 2; i++)
        for (int round = 0; round < DRAIN_ROUNDS && interpreter->streams[i].source.fd >= 0; round++)
            if (!read_stream(&interpreter->streams[i]))
                break;
}

void executor_interpreters_resume(struct sandbox *sandbox)
{
    for (struct interpreter *interpreter = sandbox->interpreters; interpreter;
         interpreter = interpreter->next) {
        if (interpreter->paused && interpreter->channel.fd >= 0) {
            interpreter->paused = false;
            watch_channel(interpreter);
        }
        for (int i = 0; i < 2; i++) {
            struct interpreter_stream *stream = &interpreter->streams[i];
            if (!stream->paused)
                continue;
            stream->paused = false;
            if (executor_watch(sandbox->executor, &stream->source, EPOLLIN, NULL) < 0)
                (void)close(take_fd(&stream->source.fd));
        }
    }
}

/* ---- the end ---- */

static void close_all(struct interpreter *interpreter)
{
    struct executor *executor = interpreter->sandbox->executor;
    if (interpreter->channel.fd >= 0) {
        executor_unwatch(executor, &interpreter->channel);
        (void)close(take_fd(&interpreter->channel.fd));
    }
    for (int i = 0; i < 2; i++)
        close_stream(&interpreter->streams[i]);
    close_fd(&interpreter->pulses);
    executor_output_count(interpreter->sandbox, 0, interpreter->line.length);
    str_done(&interpreter->line);
    str_done(&interpreter->waiting);
    interpreter->sent = 0;
}

void executor_interpreter_end(struct interpreter *interpreter)
{
    interpreter->context = NULL;
    close_all(interpreter);
    (void)brig_job_cancel(interpreter->job, NULL); /* fails if the job is over already */
    interpreter->sandbox->executor->sandboxes.due_ms = 0;
}

/* How it has ended, and a sentence about it. */
static enum execution_status explain(struct interpreter *interpreter, char *why, size_t size)
{
    struct brig_result result = {0};
    bool early = !interpreter->ready && *interpreter->said;
    if (job_take_result(interpreter->job, &result, NULL) < 0)
        result.outcome = BRIG_CANCELLED;
    bool oom = result.outcome == BRIG_OOM || result.usage.oom_kills > 0;
    if (oom)
        (void)snprintf(why, size, "the interpreter was ended because its memory ran out");
    else if (result.outcome == BRIG_EXITED)
        (void)snprintf(why, size, "the interpreter ended with exit code %d%s%s", result.exit_code,
                       early ? ": " : "", early ? interpreter->said : "");
    else if (result.outcome == BRIG_SIGNALLED)
        (void)snprintf(why, size, "the interpreter was ended by signal %d", result.signal);
    else
        (void)snprintf(why, size, "the interpreter was ended");
    result_done(&result);
    return oom ? EXECUTION_OOM : EXECUTION_ERROR;
}

static void job_ready(void *owner, uint32_t events)
{
    struct interpreter *interpreter = owner;
    char why[sizeof interpreter->said + 128];
    (void)events;
    if (interpreter->gone || brig_job_process(interpreter->job, NULL) == 0)
        return;
    interpreter->gone = true;
    executor_unwatch(interpreter->sandbox->executor, &interpreter->source);
    interpreter->sandbox->executor->sandboxes.due_ms = 0;
    if (!interpreter->context)
        return;
    executor_interpreter_drain(interpreter);
    enum execution_status status = explain(interpreter, why, sizeof why);
    executor_context_broken(interpreter->context, status, why);
}

static void free_interpreter(struct interpreter *interpreter)
{
    close_all(interpreter);
    if (!interpreter->gone && interpreter->source.fd >= 0)
        executor_unwatch(interpreter->sandbox->executor, &interpreter->source);
    brig_job_free(interpreter->job);
    free(interpreter);
}

void executor_interpreters_clear(struct sandbox *sandbox, bool all)
{
    for (struct interpreter **at = &sandbox->interpreters; *at;) {
        struct interpreter *interpreter = *at;
        if (!all && (interpreter->context || !interpreter->gone)) {
            at = &interpreter->next;
            continue;
        }
        *at = interpreter->next;
        free_interpreter(interpreter);
    }
}

void executor_interpreter_usage(const struct interpreter *interpreter, uint64_t *ret_cpu_us,
                                uint64_t *ret_memory_bytes)
{
    struct cgroup_usage usage;
    const struct cgroup *group = interpreter->job ? interpreter->job->limits.group : NULL;
    *ret_cpu_us = *ret_memory_bytes = 0;
    if (!group)
        return;
    cgroup_usage(group, &usage);
    (void)cgroup_cpu_us(group, ret_cpu_us);
    *ret_memory_bytes = usage.peak_memory_bytes;
}

/* ---- the start ---- */

static const char **make_argv(enum interpreter_kind kind, uint64_t memory_mb, struct arena *arena)
{
    const char *const python[] = {"python3", "-B", "-c", NULL, NULL};
    const char *const node[] = {"node", NULL, "-e", NULL, NULL};
    const char *const bash[] = {"bash", "--noprofile", "--norc", "--noediting", "-i", NULL};
    const char **argv = NULL;
    switch (kind) {
    case INTERPRETER_PYTHON:
        argv = arena_copy(arena, python, sizeof python);
        if (argv)
            argv[3] = arena_strndup(arena, (const char *)interpreter_python_script,
                                    sizeof interpreter_python_script);
        break;
    case INTERPRETER_NODE:
        argv = arena_copy(arena, node, sizeof node);
        if (argv) {
            argv[1] =
                arena_printf(arena, "--max-old-space-size=%llu", (unsigned long long)memory_mb);
            argv[3] = arena_strndup(arena, (const char *)interpreter_node_script,
                                    sizeof interpreter_node_script);
        }
        break;
    case INTERPRETER_BASH:
    case INTERPRETERS_:
        argv = arena_copy(arena, bash, sizeof bash);
        break;
    }
    return arena->failed ? NULL : argv;
}

/* Makes a pipe, of which the program gets the writing end. */
static int open_stream(struct interpreter *interpreter, int index, int *ret_theirs,
                       struct brig_error *err)
{
    struct interpreter_stream *stream = &interpreter->streams[index];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
    *ret_theirs = ends[1];
    stream->source.fd = fds_keep_high(ends[0]);
    stream->source.ready = stream_ready;
    stream->source.owner = stream;
    if (stream->source.fd < 0 || fcntl(stream->source.fd, F_SETFL, O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
    return executor_watch(interpreter->sandbox->executor, &stream->source, EPOLLIN, err);
}

static int open_channel(struct interpreter *interpreter, int *ret_theirs, struct brig_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
    *ret_theirs = pair[1];
    interpreter->channel =
        (struct executor_source){channel_ready, interpreter, fds_keep_high(pair[0])};
    if (interpreter->channel.fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
    return executor_watch(interpreter->sandbox->executor, &interpreter->channel, EPOLLIN, err);
}

/* Bash reads its script from its standard input. */
static int open_pulses(struct interpreter *interpreter, int *ret_theirs, struct brig_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the input");
    *ret_theirs = ends[0];
    interpreter->pulses = fds_keep_high(ends[1]);
    if (interpreter->pulses < 0 || fcntl(interpreter->pulses, F_SETFL, O_NONBLOCK) < 0 ||
        write(interpreter->pulses, interpreter_bash_script, sizeof interpreter_bash_script) !=
            sizeof interpreter_bash_script)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the input");
    return 0;
}

static int start(struct interpreter *interpreter, enum interpreter_kind kind,
                 struct sandbox_request *plain, struct brig_error *err)
{
    struct sandbox *sandbox = interpreter->sandbox;
    autoclose int channel = -1, out = -1, error = -1, in = -1;
    int result = open_channel(interpreter, &channel, err);
    if (result == 0)
        result = open_stream(interpreter, 0, &out, err);
    if (result == 0)
        result = open_stream(interpreter, 1, &error, err);
    if (result == 0 && kind == INTERPRETER_BASH)
        result = open_pulses(interpreter, &in, err);
    if (result < 0)
        return result;
    const struct brig_policy *policy = executor_command_policy(sandbox, plain, err);
    const char **argv = make_argv(kind, sandbox->limits[EXECUTION_MEMORY_MB], &plain->arena);
    if (!policy || !argv)
        return brig_fail_nomem(err);
    const struct brig_pass_fd pass = {.fd = channel, .number = CHANNEL_FD};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv,
        .stdio = {{.kind = in < 0 ? BRIG_STDIO_NULL : BRIG_STDIO_FD, .fd = in},
                  {.kind = BRIG_STDIO_FD, .fd = out},
                  {.kind = BRIG_STDIO_FD, .fd = error}},
        .pass_fds = &pass,
        .pass_fd_count = 1,
    };
    const struct job_source source = {
        .policy = policy, .attach = &sandbox->attach, .jail = sandbox->job};
    result = job_start(&source, &command, &interpreter->job, err);
    if (result < 0)
        return result;
    interpreter->source =
        (struct executor_source){job_ready, interpreter, brig_job_fd(interpreter->job)};
    return executor_watch(sandbox->executor, &interpreter->source, EPOLLIN, err);
}

struct interpreter *executor_interpreter_start(struct sandbox *sandbox, struct context *context,
                                               enum interpreter_kind kind,
                                               const struct sandbox_request *request,
                                               struct brig_error *err)
{
    struct sandbox_request plain = {
        .cwd = request->cwd, .env = request->env, .env_count = request->env_count};
    struct interpreter *interpreter = malloc(sizeof *interpreter);
    if (!interpreter) {
        (void)brig_fail_nomem(err);
        return NULL;
    }
    *interpreter = (struct interpreter){.sandbox = sandbox,
                                        .context = context,
                                        .source = {.fd = -1},
                                        .channel = {.fd = -1},
                                        .pulses = -1};
    for (int i = 0; i < 2; i++)
        interpreter->streams[i] = (struct interpreter_stream){
            .interpreter = interpreter, .source = {.fd = -1}, .is_stderr = i == 1};
    int result = start(interpreter, kind, &plain, err);
    sandbox_request_done(&plain);
    if (result < 0) {
        free_interpreter(interpreter);
        return NULL;
    }
    interpreter->next = sandbox->interpreters;
    sandbox->interpreters = interpreter;
    return interpreter;
}
