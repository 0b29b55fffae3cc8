/* SPDX-License-Identifier: MIT */
/* What a command is given: its streams and fds, checked and opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

/* The command's ends of its streams, ours to close once it has them. */
struct streams {
    int fds[3];     /* for the plan: an fd, PLAN_FD_PTY or PLAN_FD_NULL */
    int owned[3];   /* those of them we made */
    int terminal;   /* the host terminal that is being replaced, or -1 */
    int pty_master; /* without namespaces: a pty of the host's own */
    int pty_slave;
};

#define STREAMS_NONE                                                                               \
    (struct streams)                                                                               \
    {                                                                                              \
        .owned = {-1, -1, -1}, .terminal = -1, .pty_master = -1, .pty_slave = -1                   \
    }

/* Refuses what the caller cannot have meant. */
int streams_check(const struct brig_command *command, struct brig_error *err);
/* The command's end of one stream, and ours, which the job keeps. */
int streams_open(struct brig_job *job, const struct brig_policy *policy,
                 const struct brig_stdio *stdio, int number, struct streams *streams,
                 struct brig_error *err);
/* The input of a command that was promised it, and no more after that. */
int streams_fill_input(int fd, const void *bytes, size_t length, struct brig_error *err);
/* Without namespaces the pty has to be one of the host's. */
int streams_open_pty(struct streams *streams, struct brig_error *err);
bool streams_want_pty(const struct streams *streams);
void streams_done(struct streams *streams);

/* ---- capture ---- */

/* Collecting a stream up to a limit: what is beyond it is drained and counted, never kept. */

struct capture {
    int fd; /* the read end, non-blocking; -1: not captured, or at its end */
    uint64_t limit;
    uint64_t seen;
    char *data;
    size_t length, room;
    bool truncated;
};

/* Makes the pipe; *ret_write is the caller's to close after the start. */
int capture_open(struct capture *capture, uint64_t limit, int *ret_write, struct brig_error *err);
/* Reads what is there, without blocking: 1 at the end of the stream, else 0. */
int capture_read(struct capture *capture);
/* Moves what was collected into *ret. */
void capture_take(struct capture *capture, struct brig_capture *ret);
void capture_done(struct capture *capture);
