/* SPDX-License-Identifier: MIT */
/* WebSocket frames from any bytes, in pieces of any size. */
#include <stdlib.h>

#include "server/http/websocket.h"

#define MOST 1000

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct websocket websocket = {.most = MOST};
    size_t piece = size > 0 ? data[0] % 32 + 1 : 1, used = 0;
    for (size_t at = size > 0; at < size; at += used) {
        size_t length = size - at < piece ? size - at : piece;
        enum websocket_event event = websocket_take(&websocket, data + at, length, &used);
        expect(used <= length && (used > 0 || event != WEBSOCKET_MORE));
        expect(websocket.message.length <= MOST && websocket.control.length <= 125);
        if (event == WEBSOCKET_INVALID || event == WEBSOCKET_CLOSED)
            break;
    }
    websocket_done(&websocket);
    return 0;
}
