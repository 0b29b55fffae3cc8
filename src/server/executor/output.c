/* SPDX-License-Identifier: MIT */
/* The output of runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "server/config/config.h"
#include "server/executor/executor.h"
#include "server/executor/jail_check.h"

/* Output of runs is read as it arrives, kept up to the limits, passed on if the client streams it,
 * and left in the pipe while the http process is slow. Output beyond the limits is discarded; a run
 * that writes far more is ended. */

#define PIECE_BYTES 32768 /* with its first byte, a piece fits into an inline message */
_Static_assert(PIECE_BYTES + 1 <= MESSAGE_PIECE_MAX, "a piece of output is one message");
/* Output of an interactive run on its way to the client; more stays in the pipe. */
#define WINDOW_BYTES ((uint64_t)256 << 10)
/* A pipe holds at most 1 MiB; more can only come from a process that should not have the fd. */
#define DRAIN_ROUNDS 64

static void close_stream(struct run_stream *stream)
{
    struct executor *executor = stream->run->executor;
    if (stream->source.fd < 0)
        return;
    if (stream->paused)
        executor->paused_count--;
    else
        executor_unwatch(executor, &stream->source);
    stream->paused = false;
    (void)close(take_fd(&stream->source.fd));
}

static void pause_stream(struct run_stream *stream)
{
    struct executor *executor = stream->run->executor;
    if (stream->paused || stream->source.fd < 0)
        return;
    executor_unwatch(executor, &stream->source);
    stream->paused = true;
    executor->paused_count++;
}

/* Notes which stream the bytes came from. */
static void note_order(struct run_stream *stream, size_t length)
{
    struct run *run = stream->run;
    bool error = stream->number == 2;
    if (!run->order)
        run->order = calloc(EXECUTION_PIECES_MAX, sizeof *run->order);
    if (!run->order)
        return;
    struct execution_piece *last = run->order_count ? &run->order[run->order_count - 1] : NULL;
    if (last && last->error == error)
        last->length += length;
    else if (run->order_count < EXECUTION_PIECES_MAX)
        run->order[run->order_count++] = (struct execution_piece){error, length};
}

/* Without a limit in the request, output is left out, not refused, up to the server's limit. */
static bool is_too_much(const struct run_stream *stream)
{
    const struct run *run = stream->run;
    bool limited =
        jail_stage_limits(run->runtime, &run->request, executor_stage(run)).output_bytes > 0;
    return (limited && stream->truncated) ||
           run->output_bytes > run->executor->config->sandbox.max_output_bytes;
}

static bool window_is_full(const struct run *run)
{
    return run->untaken >= WINDOW_BYTES && run->http == run->executor->http_processes;
}

/* The first byte of `piece` is the stream's number. What an interactive client sees is not limited
 * by what is kept. */
static void take_piece(struct run_stream *stream, char *piece, size_t length)
{
    struct run *run = stream->run;
    size_t room = stream->most - stream->kept.length;
    size_t keep = length < room ? length : room;
    size_t tell = run->request.interactive ? length : keep;
    if (run->output_bytes == 0)
        run->trace.at_us[STEP_OUTPUT] = clock_now_us();
    run->output_bytes += length;
    if (keep < length)
        stream->truncated = true;
    if (keep > 0)
        str_append_bytes(&stream->kept, piece + 1, keep);
    if (keep > 0 && run->request.ordered)
        note_order(stream, keep);
    run->untaken += run->request.interactive ? tell : 0;
    if (tell > 0 && run->request.stream)
        executor_tell_http(run->executor, run->http, MESSAGE_OUTPUT, run->tag, piece, tell + 1);
    if (is_too_much(stream))
        executor_run_cancel(run, RUN_TOO_MUCH_OUTPUT);
}

/* Reads one piece. Returns 1, or 0 if there is none now or at end of file. */
static int read_piece(struct run_stream *stream)
{
    char piece[PIECE_BYTES + 1];
    ssize_t length;
    do
        length = read(stream->source.fd, piece + 1, PIECE_BYTES);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return 0;
    if (length <= 0) {
        close_stream(stream);
        return 0;
    }
    piece[0] = (char)stream->number;
    take_piece(stream, piece, (size_t)length);
    return 1;
}

static void stream_ready(void *owner, uint32_t events)
{
    struct run_stream *stream = owner;
    (void)events;
    if (stream->source.fd < 0 || stream->paused || stream->run->state == RUN_OVER)
        return;
    if (stream->run->state == RUN_WAITING) { /* output without a request */
        executor_pool_discard(stream->run);
        return;
    }
    bool wanted =
        stream->run->request.stream && stream->run->http == stream->run->executor->http_processes;
    if (wanted && (executor_http_is_full(stream->run->executor) || window_is_full(stream->run)))
        pause_stream(stream);
    else
        (void)read_piece(stream);
}

static int open_stream(struct run *run, int number, int *ret_end, struct brig_error *err)
{
    struct run_stream *stream = &run->streams[number - 1];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
    autoclose int theirs = ends[1];
    stream->source.fd = fds_keep_high(ends[0]);
    if (fcntl(stream->source.fd, F_SETFL, O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
    int result = executor_watch(run->executor, &stream->source, EPOLLIN, err);
    if (result < 0)
        return result;
    *ret_end = take_fd(&theirs);
    return 0;
}

int executor_output_open(struct run *run, int ret_ends[2], struct brig_error *err)
{
    uint64_t limit =
        run->runtime
            ? jail_stage_limits(run->runtime, &run->request, executor_stage(run)).output_bytes
            : 0;
    for (int i = 0; i < 2; i++) {
        size_t most = i == 0 ? EXECUTION_OUTPUT_MAX : EXECUTION_STDERR_MAX;
        run->streams[i] = (struct run_stream){
            .run = run, .number = i + 1, .most = limit && limit < most ? limit : most};
        run->streams[i].source =
            (struct executor_source){.ready = stream_ready, .owner = &run->streams[i], .fd = -1};
    }
    for (int i = 0; i < 2; i++) {
        int result = open_stream(run, i + 1, &ret_ends[i], err);
        if (result < 0)
            return result;
    }
    return 0;
}

void executor_output_drain(struct run *run)
{
    for (int i = 0; i < 2; i++) {
        struct run_stream *stream = &run->streams[i];
        for (int round = 0; round < DRAIN_ROUNDS && stream->source.fd >= 0; round++)
            if (read_piece(stream) == 0)
                break;
    }
    executor_output_close(run);
}

void executor_output_close(struct run *run)
{
    for (int i = 0; i < 2; i++)
        close_stream(&run->streams[i]);
}

void executor_output_resume(struct run *run)
{
    for (int i = 0; i < 2; i++) {
        struct run_stream *stream = &run->streams[i];
        if (!stream->paused || window_is_full(run))
            continue;
        stream->paused = false;
        run->executor->paused_count--;
        if (executor_watch(run->executor, &stream->source, EPOLLIN, NULL) < 0)
            (void)close(take_fd(&stream->source.fd));
    }
}
