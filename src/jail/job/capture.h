/* SPDX-License-Identifier: MIT */
/* Collecting a stream up to a limit: what is beyond it is drained and counted, never kept. */
#pragma once

#include <brig/brig.h>

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
