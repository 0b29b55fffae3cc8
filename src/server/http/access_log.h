/* SPDX-License-Identifier: MIT */
/* The access log: one line of JSON for each request. Writing never blocks: lines that cannot be
 * written are dropped. Requests without a valid credential share a number of bytes a second, so that
 * their clients cannot fill the disk; a line counts those that were left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct brig_error;
struct exchange;

#define ACCESS_LOG_BYTES_MAX ((size_t)1 << 20)       /* bytes that wait to be written */
#define ACCESS_LOG_UNPROVEN_BYTES ((size_t)32 << 10) /* in a second */

struct access_log {
    int fd;         /* -1: off */
    bool may_block; /* a pipe or a terminal */
    struct str lines;
    uint64_t dropped;
    uint64_t second;       /* in which unproven_bytes were written */
    size_t unproven_bytes; /* of requests without a credential */
    uint64_t skipped;      /* such requests that were not written */
};

/* `where` is "-" for standard error, "off", or a path; for a path the supervisor opens the file and
 * sends its fd. */
int access_log_init(struct access_log *log, const char *where, struct brig_error *err);
void access_log_close(struct access_log *log);
/* Switches to another file, and takes the fd. */
void access_log_replace(struct access_log *log, int *fd);
void access_log_add(struct access_log *log, const struct exchange *exchange, unsigned status);
/* Adds the line about requests that were skipped, when their second is over. */
void access_log_tick(struct access_log *log, uint64_t now_ms);
/* Writes as much as possible without blocking. */
void access_log_flush(struct access_log *log);
