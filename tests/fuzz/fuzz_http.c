/* SPDX-License-Identifier: MIT */
/* Requests of HTTP from any bytes, head and body, as one and in pieces: both say the same. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/http.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_slice(struct http_slice slice, const char *bytes, size_t length)
{
    expect(slice.at >= bytes && slice.at + slice.length <= bytes + length);
    expect(!memchr(slice.at, '\0', slice.length) && !memchr(slice.at, '\n', slice.length) &&
           !memchr(slice.at, '\r', slice.length));
}

static void check_head(const struct http_head *head, const char *bytes, size_t size)
{
    expect(head->length <= size && head->length <= HTTP_HEAD_MAX && !head->reason);
    expect(memcmp(bytes + head->length - 4, "\r\n\r\n", 4) == 0);
    check_slice(head->method, bytes, head->length);
    check_slice(head->target, bytes, head->length);
    for (size_t i = 0; i < head->header_count; i++) {
        check_slice(head->headers[i].name, bytes, head->length);
        check_slice(head->headers[i].value, bytes, head->length);
        (void)http_head_is_hop(head, &head->headers[i]);
    }
    expect(head->has_host || head->minor == 0);
    expect(http_head_find(head, "content-length", 0) < 0 ||
           http_head_find(head, "transfer-encoding", 0) < 0);
    int host = http_head_find(head, "host", 0);
    expect(host < 0 || http_head_find(head, "host", (size_t)host + 1) < 0);
    char same[NET_NAME_MAX + 1];
    if (head->has_host && !head->host.is_address)
        expect(net_name_read(head->host.name, strlen(head->host.name), same) &&
               strcmp(same, head->host.name) == 0);
}

/* A normalised path has nothing in it that leads elsewhere, and normalising it again changes nothing. */
static void check_path(struct http_slice path)
{
    size_t size, again;
    autofree char *to = malloc(path.length ? path.length : 1);
    autofree char *twice = malloc(path.length ? path.length : 1);
    expect(to && twice);
    if (!http_path_normalise(path, to, &size))
        return;
    expect(size <= path.length && size > 0 && to[0] == '/');
    expect(http_path_below((struct http_slice){.at = to, .length = size}, "/"));
    expect(http_path_normalise((struct http_slice){.at = to, .length = size}, twice, &again));
    expect(again == size && memcmp(to, twice, size) == 0);
    const char *query = memchr(to, '?', size);
    size_t length = query ? (size_t)(query - to) : size;
    expect(!memmem(to, length, "//", 2) && !memmem(to, length, "/./", 3) &&
           !memmem(to, length, "/../", 4) && !memmem(to, length, "/..%2F", 6) &&
           !memmem(to, length, "%2F../", 6) && !memmem(to, length, "%2E", 3));
    expect(length < 3 || memcmp(to + length - 3, "/..", 3) != 0);
    for (size_t i = 0; i < length; i++)
        expect((unsigned char)to[i] >= 0x20 && to[i] != '\\' && to[i] != ';');
}

/* The state at the end and where that was. */
struct end {
    enum http_state state;
    size_t consumed, data;
};

static struct end follow(const struct http_head *head, const char *bytes, size_t size, size_t piece)
{
    struct http_body body;
    struct end end = {.state = HTTP_NEED_MORE};
    http_body_init(&body, head);
    do {
        size_t part = size - end.consumed < piece ? size - end.consumed : piece, consumed;
        struct http_slice data;
        end.state = http_body_read(&body, bytes + end.consumed, part, &consumed, &data);
        expect(consumed <= part && data.at >= bytes && data.at + data.length <= bytes + size);
        expect(consumed > 0 || end.state != HTTP_NEED_MORE || part == 0);
        end.consumed += consumed;
        end.data += data.length;
    } while (end.state == HTTP_NEED_MORE && end.consumed < size);
    expect((body.reason != NULL) == (end.state == HTTP_BAD || end.state == HTTP_TOO_LARGE));
    return end;
}

static void check_body(const struct http_head *head, const char *bytes, size_t size)
{
    struct end whole = follow(head, bytes, size, SIZE_MAX), pieces = follow(head, bytes, size, 3);
    expect(whole.state == pieces.state && whole.data == pieces.data &&
           whole.consumed == pieces.consumed);
    if (whole.state == HTTP_DONE && head->framing == HTTP_BODY_LENGTH)
        expect(whole.data == head->content_length && whole.consumed == whole.data);
}

/* In steps, as bytes come. */
static enum http_state read_in_steps(const char *bytes, size_t size, struct http_head *head)
{
    enum http_state state = HTTP_NEED_MORE;
    size_t step = size / 8 + 1;
    for (size_t seen = 0; state == HTTP_NEED_MORE && seen < size; seen += step) {
        size_t length = size - seen < step ? size : seen + step;
        state = http_head_read(bytes, length, seen, head);
    }
    return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head head, again;
    autofree char *bytes = malloc(size ? size : 1);
    expect(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    enum http_state state = http_head_read(bytes, size, 0, &head);
    expect(read_in_steps(bytes, size, &again) == state);
    if (state == HTTP_DONE) {
        check_head(&head, bytes, size);
        expect(again.length == head.length && again.header_count == head.header_count);
        check_body(&head, bytes + head.length, size - head.length);
    }
    check_body(&(struct http_head){.framing = HTTP_BODY_CHUNKED}, bytes, size);
    check_path((struct http_slice){.at = bytes, .length = size});
    return 0;
}
