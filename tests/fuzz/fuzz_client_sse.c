/* SPDX-License-Identifier: MIT */
/* A stream of events from a server that may be anybody's. It has the same events in whatever pieces it
 * comes, and no event is what a line of it did not say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/client.h"

#define SEPARATOR '\x1e'

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* The program of brigctl may change what it is given. */
static int take(void *context, const char *event, char *data, size_t length)
{
    struct str *events = context;
    expect(*event && strlen(event) < SSE_EVENT_MAX && !strchr(event, '\n'));
    expect(strlen(data) == length);
    str_append(events, event);
    str_append_char(events, SEPARATOR);
    str_append_bytes(events, data, length);
    str_append_char(events, SEPARATOR);
    memset(data, 'x', length);
    return 0;
}

static void feed(const char *bytes, size_t size, size_t piece, struct str *events)
{
    struct sse sse = {0};
    for (size_t at = 0; at < size; at += piece) {
        size_t length = size - at < piece ? size - at : piece;
        expect(sse_feed(&sse, bytes + at, length, take, events) == 0 || sse.failed);
    }
    expect(!sse.failed); /* nothing here is so long */
    sse_done(&sse);
}

static int stop(void *context, const char *event, char *data, size_t length)
{
    (void)context;
    (void)event;
    (void)data;
    (void)length;
    return 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autostr struct str whole = {0}, pieces = {0};
    const size_t piece = size > 0 ? data[0] % 7 + 1 : 1;
    struct sse sse = {0};
    if (size > 65536)
        return 0;
    feed((const char *)data, size, size + 1, &whole);
    feed((const char *)data, size, piece, &pieces);
    expect(whole.length == pieces.length &&
           (whole.length == 0 || memcmp(whole.data, pieces.data, whole.length) == 0));
    int stopped = sse_feed(&sse, (const char *)data, size, stop, NULL);
    expect(stopped == (whole.length > 0 ? 7 : 0));
    sse_done(&sse);
    return 0;
}
