/* SPDX-License-Identifier: MIT */
/* What the front's loop waits for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct brig_error;
struct front;

enum loop_source {
    LOOP_HTTP,     /* the library has something to do */
    LOOP_CONTROL,  /* the keeper */
    LOOP_WARDEN,   /* */
    LOOP_RECORDER, /* */
    LOOP_LINGER,   /* sockets that are read to their end */
    LOOP_END,      /* from here on: the client of ticket (value - LOOP_END) went away */
};

int loop_add(struct front *front, int fd, enum loop_source source, struct brig_error *err);
/* Tells when the other side of a suspended connection is gone, or says no more. Of one that is half closed
 * only the former. */
void loop_watch_end(struct front *front, int fd, uint64_t tag, bool half_closed);
void loop_forget(struct front *front, int fd);
/* Whether to be told when a channel has room again. */
void loop_want_write(struct front *front, int fd, enum loop_source source, bool wanted);
/* Until it was told to drain and everything is answered, or the keeper is gone. */
int loop_run(struct front *front, struct brig_error *err);
