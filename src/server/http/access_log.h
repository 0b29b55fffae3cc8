/* SPDX-License-Identifier: MIT */
/* The access log: one line of JSON for each request. Writing never blocks: lines that cannot be
 * written are dropped. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct brig_error;
struct exchange;

#define ACCESS_LOG_BYTES_MAX ((size_t)1 << 20) /* bytes that wait to be written */

struct access_log {
    int fd;         /* -1: off */
    bool may_block; /* a pipe or a terminal */
    struct str lines;
    uint64_t dropped;
};

/* `where` is "-" for standard error, "off", or a path; for a path the supervisor opens the file and
 * sends its fd. */
int access_log_init(struct access_log *log, const char *where, struct brig_error *err);
void access_log_close(struct access_log *log);
/* Switches to another file, and takes the fd. */
void access_log_replace(struct access_log *log, int *fd);
void access_log_add(struct access_log *log, const struct exchange *exchange, unsigned status);
/* Writes as much as possible without blocking. */
void access_log_flush(struct access_log *log);
