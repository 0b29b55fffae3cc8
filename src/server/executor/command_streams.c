/* SPDX-License-Identifier: MIT */
/* The streams of commands in sandboxes: their output, which is kept up to a limit and sent to
 * clients that follow it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

#define PIECE_BYTES 32768
#define HEAD_BYTES 5 /* of a kept piece */
/* Output of all commands and runs. A command of a key that has no room left keeps only a little. */
#define KEPT_BYTES_MAX ((size_t)256 << 20)
#define KEPT_BYTES_LITTLE 4096

/* ---- kept output ---- */

bool executor_output_has_room(const struct sandbox *sandbox)
{
    return share_has_room(&sandbox->executor->sandboxes.kept, sandbox->request.domain,
                          KEPT_BYTES_MAX);
}

void executor_output_count(struct sandbox *sandbox, size_t more, size_t less)
{
    struct share_pool *pool = &sandbox->executor->sandboxes.kept;
    share_add(pool, &sandbox->kept, sandbox->request.domain, more);
    share_drop(pool, &sandbox->kept, less);
}

static size_t piece_length(const char *at)
{
    uint32_t length;
    memcpy(&length, at + 1, sizeof length);
    return length;
}

/* Drops the oldest pieces, so that `more` bytes have room. Drops a quarter at least: moving what
 * stays costs time. */
static void make_room(struct command *command, size_t more, size_t most)
{
    struct str *kept = &command->kept;
    if (kept->length + more <= most)
        return;
    size_t drop = 0, wanted = kept->length + more - most;
    wanted = wanted < most / 4 ? most / 4 : wanted;
    while (drop < kept->length && drop < wanted)
        drop += HEAD_BYTES + piece_length(kept->data + drop);
    memmove(kept->data, kept->data + drop, kept->length - drop);
    kept->length -= drop;
    executor_output_count(command->sandbox, 0, drop);
    command->dropped = true;
}

static void keep(struct command *command, enum sandbox_piece kind, const char *bytes, size_t length)
{
    struct sandbox *sandbox = command->sandbox;
    size_t most = sandbox->executor->config->sandboxes.output_kept_bytes;
    uint32_t count = (uint32_t)length;
    if (most > KEPT_BYTES_LITTLE && !executor_output_has_room(sandbox))
        most = KEPT_BYTES_LITTLE;
    if (length + HEAD_BYTES > most) { /* the end of the piece */
        size_t end = most > HEAD_BYTES ? most - HEAD_BYTES : 0;
        bytes += length - end;
        count = (uint32_t)end;
    }
    make_room(command, HEAD_BYTES + count, most);
    size_t before = command->kept.length;
    str_append_char(&command->kept, (char)kind);
    str_append_bytes(&command->kept, &count, sizeof count);
    str_append_bytes(&command->kept, bytes, count);
    if (command->kept.failed) { /* out of memory: nothing is kept any more */
        executor_output_count(sandbox, 0, before);
        str_done(&command->kept);
        command->dropped = true;
        return;
    }
    executor_output_count(sandbox, command->kept.length - before, 0);
}

void executor_output_forget(struct command *command)
{
    executor_output_count(command->sandbox, 0, command->kept.length + command->result.length);
    str_done(&command->kept);
    str_done(&command->result);
}

/* The pieces of one stream, for a result. */
void executor_output_collect(const struct command *command, enum sandbox_piece kind,
                             struct str *out)
{
    for (size_t at = 0; at < command->kept.length;) {
        const char *piece = command->kept.data + at;
        if ((enum sandbox_piece)piece[0] == kind)
            str_append_bytes(out, piece + HEAD_BYTES, piece_length(piece));
        at += HEAD_BYTES + piece_length(piece);
    }
    size_t most = kind == SANDBOX_STDERR ? EXECUTION_STDERR_MAX : EXECUTION_OUTPUT_MAX;
    if (out->length > most) {
        memmove(out->data, out->data + out->length - most, most);
        out->length = most;
    }
}

/* ---- followers ---- */

static void tell(const struct command *command, struct caller caller, enum sandbox_piece kind,
                 const char *bytes, size_t length)
{
    char piece[PIECE_BYTES + 1];
    while (length > 0) {
        size_t part = length < PIECE_BYTES ? length : PIECE_BYTES;
        piece[0] = (char)kind;
        memcpy(piece + 1, bytes, part);
        executor_tell_http(command->sandbox->executor, caller.http, MESSAGE_SANDBOX_PIECE,
                           caller.tag, piece, part + 1);
        bytes += part;
        length -= part;
    }
}

void executor_output_tell(const struct command *command, struct caller caller)
{
    if (command->dropped) {
        const char gap = SANDBOX_GAP;
        executor_tell_http(command->sandbox->executor, caller.http, MESSAGE_SANDBOX_PIECE,
                           caller.tag, &gap, 1);
    }
    for (size_t at = 0; at < command->kept.length;) {
        const char *piece = command->kept.data + at;
        tell(command, caller, (enum sandbox_piece)piece[0], piece + HEAD_BYTES,
             piece_length(piece));
        at += HEAD_BYTES + piece_length(piece);
    }
}

bool executor_follower_add(struct command *command, struct caller caller, bool output)
{
    struct follower *follower = malloc(sizeof *follower);
    if (!follower)
        return false;
    *follower = (struct follower){.next = command->followers, .caller = caller, .output = output};
    command->followers = follower;
    return true;
}

bool executor_follower_remove(struct command *command, struct caller caller)
{
    for (struct follower **at = &command->followers; *at; at = &(*at)->next)
        if ((*at)->caller.tag == caller.tag && (*at)->caller.http == caller.http) {
            struct follower *follower = *at;
            *at = follower->next;
            free(follower);
            return true;
        }
    return false;
}

/* Those of an earlier http process are gone. */
static bool is_followed(struct command *command)
{
    bool found = false;
    for (struct follower **at = &command->followers; *at;) {
        struct follower *follower = *at;
        if (follower->caller.http == command->sandbox->executor->http_processes) {
            found = found || follower->output;
            at = &follower->next;
            continue;
        }
        *at = follower->next;
        free(follower);
    }
    return found;
}

/* ---- streams ---- */

void executor_stream_close(struct command_stream *stream)
{
    if (stream->source.fd < 0)
        return;
    if (!stream->paused)
        executor_unwatch(stream->command->sandbox->executor, &stream->source);
    stream->paused = false;
    (void)close(take_fd(&stream->source.fd));
}

/* Returns 1 if there may be more. A terminal fails with EIO when nothing has it open. */
int executor_stream_read(struct command_stream *stream)
{
    struct command *command = stream->command;
    char piece[PIECE_BYTES];
    ssize_t length;
    do
        length = read(stream->source.fd, piece, sizeof piece);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return 0;
    if (length <= 0) {
        executor_stream_close(stream);
        return 0;
    }
    if (command->request.operation != SANDBOX_RELAY)
        keep(command, stream->kind, piece, (size_t)length);
    for (const struct follower *at = command->followers; at; at = at->next)
        if (at->output)
            tell(command, at->caller, stream->kind, piece, (size_t)length);
    return 1;
}

static void stream_ready(void *owner, uint32_t events)
{
    struct command_stream *stream = owner;
    struct executor *executor = stream->command->sandbox->executor;
    (void)events;
    if (stream->source.fd < 0 || stream->paused)
        return;
    if (executor_http_is_full(executor) && is_followed(stream->command)) {
        executor_unwatch(executor, &stream->source);
        stream->paused = true;
        executor->sandboxes.has_paused = true;
        return;
    }
    (void)executor_stream_read(stream);
}

void executor_commands_resume_streams(struct sandbox *sandbox)
{
    for (struct command *command = sandbox->commands; command; command = command->next)
        for (int i = 0; i < 2; i++) {
            struct command_stream *stream = &command->streams[i];
            if (!stream->paused)
                continue;
            stream->paused = false;
            if (executor_watch(sandbox->executor, &stream->source, EPOLLIN, NULL) < 0)
                (void)close(take_fd(&stream->source.fd));
        }
}

/* Takes the fd. */
int executor_stream_open(struct command *command, int index, enum sandbox_piece kind, int fd,
                         struct brig_error *err)
{
    struct command_stream *stream = &command->streams[index];
    *stream = (struct command_stream){
        .command = command, .kind = kind, .source = {stream_ready, stream, fds_keep_high(fd)}};
    if (stream->source.fd < 0 || fcntl(stream->source.fd, F_SETFL, O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
    return executor_watch(command->sandbox->executor, &stream->source, EPOLLIN, err);
}
