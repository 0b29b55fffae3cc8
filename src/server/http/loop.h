/* SPDX-License-Identifier: MIT */
/* What the http process's loop waits for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct brig_error;
struct http;

enum loop_source {
    LOOP_HTTP,     /* the library has something to do */
    LOOP_CONTROL,  /* the supervisor */
    LOOP_EXECUTOR, /* */
    LOOP_HISTORY,  /* */
    LOOP_LINGER,   /* sockets that are read to their end */
    LOOP_END,      /* from here on: the client of ticket (value - LOOP_END) went away */
};

int loop_add(struct http *http, int fd, enum loop_source source, struct brig_error *err);
/* Tells when the other side of a suspended connection is gone, or says no more. Of one that is half closed
 * only the former. */
void loop_watch_end(struct http *http, int fd, uint64_t tag, bool half_closed);
void loop_forget(struct http *http, int fd);
/* Whether to be told when a channel has room again. */
void loop_want_write(struct http *http, int fd, enum loop_source source, bool wanted);
/* Until it was told to drain and everything is answered, or the supervisor is gone. */
int loop_run(struct http *http, struct brig_error *err);
