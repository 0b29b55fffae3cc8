/* SPDX-License-Identifier: MIT */
/* Server-sent events from pieces of a stream. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define SSE_LINE_MAX ((size_t)24 << 20)
#define SSE_EVENT_MAX 64

/* Zero-initialise; sse_done() at the end. */
struct sse {
    struct str line; /* that has begun */
    char event[SSE_EVENT_MAX];
    struct str data;
    bool has_data;
    bool failed; /* a line was too long, or memory too short */
};
void sse_done(struct sse *sse);

/* An event that is whole; `data` may be changed. Nonzero stops. */
typedef int sse_take(void *context, const char *event, char *data, size_t length);
/* 0, or what `take` returned, or -1 if it cannot go on. */
int sse_feed(struct sse *sse, const char *bytes, size_t length, sse_take *take, void *context);
