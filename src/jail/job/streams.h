/* SPDX-License-Identifier: MIT */
/* The streams and fds of a command, checked and opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "jail/job/result.h"

/* The command's ends of its streams; the parent closes them after the start. */
struct streams {
    int fds[3];     /* for the plan: an fd, PLAN_FD_PTY or PLAN_FD_NULL */
    int owned[3];   /* the fds among them that streams_open() created */
    int terminal;   /* the host terminal that the jail's pty replaces, or -1 */
    int pty_master; /* without namespaces: the master of a host pty */
    int pty_slave;
};

#define STREAMS_NONE                                                                               \
    (struct streams)                                                                               \
    {                                                                                              \
        .owned = {-1, -1, -1}, .terminal = -1, .pty_master = -1, .pty_slave = -1                   \
    }

/* Copies what this library knows of a command, and refuses combinations of streams and fds that make no
 * sense. */
int streams_read(const struct brig_command *command, struct brig_command *ret_command,
                 struct brig_error *err);
/* Opens the command's end of one stream; the job keeps the other end. */
int streams_open(struct brig_job *job, const struct brig_policy *policy,
                 const struct brig_stdio *stdio, int number, struct streams *streams,
                 struct brig_error *err);
/* Writes the late input of a command into its pipe; the caller then closes the pipe. */
int streams_fill_input(int fd, const void *bytes, size_t length, struct brig_error *err);
/* Opens a pty of the host, for jails without namespaces, which have no devpts instance. */
int streams_open_pty(struct streams *streams, struct brig_error *err);
bool streams_want_pty(const struct streams *streams);
void streams_done(struct streams *streams);

/* ---- capture ---- */

/* Collects a stream up to a limit; bytes beyond the limit are read and counted, but not stored. */

struct capture {
    int fd; /* the read end, non-blocking; -1: not captured, or at end of file */
    uint64_t limit;
    uint64_t seen;
    char *data;
    size_t length, room;
    bool truncated;
};

/* Creates the pipe; the caller closes *ret_write after the start. */
int capture_open(struct capture *capture, uint64_t limit, int *ret_write, struct brig_error *err);
/* Reads the available bytes without blocking. Returns 1 at end of file, else 0. */
int capture_read(struct capture *capture);
/* Moves the collected bytes into *ret. */
void capture_take(struct capture *capture, struct brig_capture *ret);
void capture_done(struct capture *capture);
