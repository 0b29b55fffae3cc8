/* SPDX-License-Identifier: MIT */
/* The first message of TLS from any bytes: what is said of a part is not taken back, and a name
 * that is found is one and stands in the bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/client_hello.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* From a copy whose end the sanitizer sees. */
static enum client_hello_state look(const uint8_t *data, size_t size, struct client_hello *hello)
{
    autofree uint8_t *copy = malloc(size ? size : 1);
    expect(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return client_hello_read(copy, size, hello);
}

static void check_prefixes(const uint8_t *data, size_t size, enum client_hello_state whole)
{
    struct client_hello hello;
    size_t step = size / 16 + 1;
    for (size_t length = 0; length < size; length += step) {
        enum client_hello_state state = look(data, length, &hello);
        expect(state == CLIENT_HELLO_NEED_MORE || state == whole);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello hello;
    enum client_hello_state state = look(data, size, &hello);
    expect(size < CLIENT_HELLO_BYTES_MAX || state != CLIENT_HELLO_NEED_MORE);
    expect((state == CLIENT_HELLO_BAD) == (hello.reason != NULL));
    if (state == CLIENT_HELLO_DONE && hello.has_name) {
        char same[NET_NAME_MAX + 1];
        expect(net_name_read(hello.name, strlen(hello.name), same));
        expect(strcmp(hello.name, same) == 0 && strlen(hello.name) < size);
    }
    check_prefixes(data, size, state);
    return 0;
}
