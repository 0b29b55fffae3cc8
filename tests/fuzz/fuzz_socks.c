/* SPDX-License-Identifier: MIT */
/* SOCKS5 from any bytes: greeting and request. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/socks.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static enum socks_state look(const uint8_t *data, size_t size, struct socks_request *request)
{
    autofree uint8_t *copy = malloc(size ? size : 1);
    expect(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return socks_request_read(copy, size, request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t consumed = 0;
    if (socks_greeting_read(data, size, &consumed) == SOCKS_DONE)
        expect(consumed >= 3 && consumed <= size && consumed <= SOCKS_GREETING_MAX);
    data += consumed;
    size -= consumed;
    struct socks_request request, part;
    enum socks_state state = look(data, size, &request);
    expect(size < SOCKS_REQUEST_MAX || state != SOCKS_NEED_MORE);
    expect((state == SOCKS_BAD) == (request.code != SOCKS_OK));
    if (state == SOCKS_DONE) {
        char same[NET_NAME_MAX + 1];
        expect(request.length <= size && request.port > 0);
        expect(request.is_address || net_name_read(request.name, strlen(request.name), same));
    }
    for (size_t length = 0; length < size && length < SOCKS_REQUEST_MAX; length++) {
        enum socks_state earlier = look(data, length, &part);
        expect(earlier == SOCKS_NEED_MORE || earlier == state);
    }
    return 0;
}
