/* SPDX-License-Identifier: MIT */
/* The head of an HTTP/1 request: its lines. What the headers mean is in http_meaning.c. */
#include "net/http_head.h"

#include <string.h>

#include "net/http_parts.h"
#include "net/http_text.h"

/* ---- Slices ------------------------------------------------------------------------------- */

bool http_slice_is(struct http_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

bool http_slice_like(struct http_slice slice, const char *text)
{
    if (slice.length != strlen(text))
        return false;
    for (size_t i = 0; i < slice.length; i++)
        if (http_lower(slice.at[i]) != http_lower(text[i]))
            return false;
    return true;
}

static char lower_or_dash(char c)
{
    char l = http_lower(c);
    return http_is_digit(l) || (l >= 'a' && l <= 'z') ? l : '-';
}

bool http_slice_alias(struct http_slice slice, const char *text)
{
    if (slice.length != strlen(text))
        return false;
    for (size_t i = 0; i < slice.length; i++)
        if (lower_or_dash(slice.at[i]) != lower_or_dash(text[i]))
            return false;
    return true;
}

static struct http_slice slice_between(const char *from, const char *to)
{
    return (struct http_slice){.at = from, .length = (size_t)(to - from)};
}

static bool is_token(struct http_slice slice)
{
    for (size_t i = 0; i < slice.length; i++)
        if (!http_is_token(slice.at[i]))
            return false;
    return slice.length > 0;
}

static bool all_text(struct http_slice slice)
{
    for (size_t i = 0; i < slice.length; i++)
        if (!http_is_text(slice.at[i]))
            return false;
    return true;
}

/* ---- Where it ends ------------------------------------------------------------------------ */

/* Finds the empty line. Each line ends in CR LF and neither stands anywhere else. */
static const char *find_end(const char *bytes, size_t length, size_t seen, size_t *ret_end)
{
    for (size_t at = seen; at < length; at++) {
        char c = bytes[at];
        if (at > 0 && bytes[at - 1] == '\r' && c != '\n')
            return "a line ends in CR without LF";
        if (c == '\0')
            return "it has a NUL in it";
        if (c != '\n')
            continue;
        if (at == 0 || bytes[at - 1] != '\r')
            return "a line ends in LF without CR";
        if (at >= 3 && bytes[at - 2] == '\n') {
            *ret_end = at + 1;
            return NULL;
        }
    }
    *ret_end = 0;
    return NULL;
}

/* What is no request is known from its first bytes, long before a line ends. */
static bool begins_as_request(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == ' ')
            return i > 0;
        if (i == HTTP_METHOD_MAX || !http_is_token(bytes[i]))
            return false;
    }
    return true;
}

/* ---- Lines -------------------------------------------------------------------------------- */

/* Takes a line without its end from the head, which has a whole one. */
static struct http_slice next_line(struct http_slice *rest)
{
    const char *end = memchr(rest->at, '\r', rest->length);
    struct http_slice line = slice_between(rest->at, end);
    *rest = slice_between(end + 2, rest->at + rest->length);
    return line;
}

/* "METHOD target HTTP/1.x", with one space each. */
static const char *read_request_line(struct http_slice line, struct http_head *head)
{
    const char *end = line.at + line.length;
    const char *first = memchr(line.at, ' ', line.length);
    if (!first)
        return "the request has no target";
    const char *second = memchr(first + 1, ' ', (size_t)(end - first - 1));
    if (!second)
        return "the request has no version";
    head->method = slice_between(line.at, first);
    head->target = slice_between(first + 1, second);
    struct http_slice version = slice_between(second + 1, end);
    if (!http_slice_is(version, "HTTP/1.1") && !http_slice_is(version, "HTTP/1.0"))
        return "the version is not HTTP/1.1 or HTTP/1.0";
    head->minor = version.at[version.length - 1] == '1' ? 1 : 0;
    return NULL;
}

static const char *read_header(struct http_slice line, struct http_head *head)
{
    if (http_is_blank(line.at[0]))
        return "a header is folded over two lines";
    const char *colon = memchr(line.at, ':', line.length);
    if (!colon)
        return "a header has no colon";
    struct http_header header = {
        .name = slice_between(line.at, colon),
        .value = http_trim(slice_between(colon + 1, line.at + line.length)),
    };
    if (!is_token(header.name))
        return "a header's name has a character that none has";
    if (!all_text(header.value))
        return "a header's value has a control character";
    head->headers[head->header_count++] = header;
    return NULL;
}

static enum http_state refuse(struct http_head *head, enum http_state state, const char *reason)
{
    head->reason = reason;
    return state;
}

static enum http_state read_lines(struct http_slice rest, struct http_head *head)
{
    const char *reason = read_request_line(next_line(&rest), head);
    if (reason)
        return refuse(head, HTTP_BAD, reason);
    for (;;) {
        struct http_slice line = next_line(&rest);
        if (line.length == 0)
            break;
        if (head->header_count == HTTP_HEADERS_MAX)
            return refuse(head, HTTP_TOO_LARGE, "it has too many headers");
        reason = read_header(line, head);
        if (reason)
            return refuse(head, HTTP_BAD, reason);
    }
    reason = http_read_meaning(head);
    return reason ? refuse(head, HTTP_BAD, reason) : HTTP_DONE;
}

enum http_state http_head_read(const char *bytes, size_t length, size_t seen,
                               struct http_head *ret_head)
{
    size_t end, limit = length < HTTP_HEAD_MAX ? length : HTTP_HEAD_MAX;
    /* What follows the head is not looked at, so it is found first. */
    const char *reason = find_end(bytes, limit, seen < limit ? seen : limit, &end);
    ret_head->reason = reason;
    if (reason)
        return HTTP_BAD;
    if (!begins_as_request(bytes, limit))
        return refuse(ret_head, HTTP_BAD, "it does not begin as a request does");
    if (end == 0 && length >= HTTP_HEAD_MAX)
        return refuse(ret_head, HTTP_TOO_LARGE, "its head is too long");
    if (end == 0)
        return HTTP_NEED_MORE;
    ret_head->length = end;
    ret_head->header_count = 0;
    return read_lines((struct http_slice){.at = bytes, .length = end}, ret_head);
}
