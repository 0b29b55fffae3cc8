/* SPDX-License-Identifier: MIT */
/* The head of an HTTP/1 request: its lines, the meaning of its headers, and paths. */
#include "net/http.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"

#define LENGTH_DIGITS_MAX 18 /* cannot overflow */
#define PORT_DIGITS_MAX 5

/* ---- Characters and slices ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_letter_or_digit(char c)
{
    return http_is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

bool http_is_token(char c)
{
    return is_letter_or_digit(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_is_text(char c)
{
    unsigned char byte = (unsigned char)c;
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static char lower_or_dash(char c)
{
    return is_letter_or_digit(c) ? lower(c) : '-';
}

static struct http_slice slice_between(const char *from, const char *to)
{
    return (struct http_slice){.at = from, .length = (size_t)(to - from)};
}

static struct http_slice slice_of(const char *text)
{
    return (struct http_slice){.at = text, .length = strlen(text)};
}

/* A slice without its first bytes. */
static struct http_slice skip(struct http_slice slice, size_t bytes)
{
    return (struct http_slice){.at = slice.at + bytes, .length = slice.length - bytes};
}

static bool is_same(struct http_slice a, struct http_slice b, char (*fold)(char))
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (fold(a.at[i]) != fold(b.at[i]))
            return false;
    return true;
}

bool http_slice_is(struct http_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

bool http_slice_like(struct http_slice slice, const char *text)
{
    return is_same(slice, slice_of(text), lower);
}

bool http_slice_alias(struct http_slice slice, const char *text)
{
    return is_same(slice, slice_of(text), lower_or_dash);
}

struct http_slice http_trim(struct http_slice slice)
{
    while (slice.length > 0 && is_blank(slice.at[0]))
        slice = skip(slice, 1);
    while (slice.length > 0 && is_blank(slice.at[slice.length - 1]))
        slice.length--;
    return slice;
}

static bool all(struct http_slice slice, bool (*is)(char))
{
    for (size_t i = 0; i < slice.length; i++)
        if (!is(slice.at[i]))
            return false;
    return true;
}

/* Parses decimal digits only, at most digits_max. */
static bool read_number(struct http_slice text, size_t digits_max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (text.length == 0 || text.length > digits_max)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (!http_is_digit(text.at[i]))
            return false;
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    *ret_value = value;
    return true;
}

/* ---- Headers ---- */

int http_head_find(const struct http_head *head, const char *name, size_t from)
{
    for (size_t i = from; i < head->header_count; i++)
        if (http_slice_like(head->headers[i].name, name))
            return (int)i;
    return -1;
}

/* The value of a header, NULL if it is missing; false if it occurs twice. */
static bool find_one(const struct http_head *head, const char *name,
                     const struct http_slice **ret_value)
{
    int at = http_head_find(head, name, 0);
    *ret_value = at < 0 ? NULL : &head->headers[at].value;
    return at < 0 || http_head_find(head, name, (size_t)at + 1) < 0;
}

/* Takes the next item of a comma-separated list, without surrounding blanks; false at the end. */
static bool next_item(struct http_slice *list, struct http_slice *ret_item)
{
    if (list->length == 0)
        return false;
    const char *comma = memchr(list->at, ',', list->length);
    size_t length = comma ? (size_t)(comma - list->at) : list->length;
    *ret_item = http_trim((struct http_slice){.at = list->at, .length = length});
    *list = skip(*list, comma ? length + 1 : length);
    return true;
}

/* Whether the list of one of the headers with this name has the item. */
static bool lists(const struct http_head *head, const char *name, struct http_slice wanted)
{
    for (int at = http_head_find(head, name, 0); at >= 0;
         at = http_head_find(head, name, (size_t)at + 1)) {
        struct http_slice list = head->headers[at].value, item;
        while (next_item(&list, &item))
            if (is_same(item, wanted, lower))
                return true;
    }
    return false;
}

static bool lists_word(const struct http_head *head, const char *name, const char *word)
{
    return lists(head, name, slice_of(word));
}

bool http_head_is_hop(const struct http_head *head, const struct http_header *header)
{
    static const char *const hop[] = {
        "connection", "keep-alive",          "proxy-connection", "proxy-authenticate",
        "te",         "proxy-authorization", "trailer",          "transfer-encoding",
        "upgrade",    "http2-settings",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(hop); i++)
        if (http_slice_alias(header->name, hop[i]))
            return true;
    return lists(head, "connection", header->name);
}

/* ---- Destinations ---- */

/* The offset of the colon before the port, or the length; an IPv6 address is in brackets. */
static size_t host_length(struct http_slice text)
{
    size_t from = 0;
    if (text.length > 0 && text.at[0] == '[') {
        const char *close = memchr(text.at, ']', text.length);
        if (!close)
            return text.length;
        from = (size_t)(close - text.at);
    }
    const char *colon = memchr(text.at + from, ':', text.length - from);
    return colon ? (size_t)(colon - text.at) : text.length;
}

static bool read_host(struct http_slice host, struct http_authority *authority)
{
    bool brackets = host.length > 2 && host.at[0] == '[' && host.at[host.length - 1] == ']';
    if (brackets)
        host = (struct http_slice){.at = host.at + 1, .length = host.length - 2};
    authority->is_address = net_address_read(host.at, host.length, &authority->address);
    if (authority->is_address) {
        bool has_colon = memchr(host.at, ':', host.length) != NULL;
        return has_colon == brackets;
    }
    return !brackets && net_name_read(host.at, host.length, authority->name);
}

bool http_authority_read(struct http_slice text, struct http_authority *ret_authority)
{
    struct http_authority authority = {0};
    size_t length = host_length(text);
    if (!read_host((struct http_slice){.at = text.at, .length = length}, &authority))
        return false;
    if (length < text.length) {
        uint64_t port;
        if (!read_number(skip(text, length + 1), PORT_DIGITS_MAX, &port) || port == 0 ||
            port > UINT16_MAX)
            return false;
        authority.port = (uint16_t)port;
    }
    *ret_authority = authority;
    return true;
}

static bool same_host(const struct http_authority *a, const struct http_authority *b)
{
    if (a->is_address != b->is_address)
        return false;
    if (a->is_address)
        return net_address_equal(&a->address, &b->address);
    return strcmp(a->name, b->name) == 0;
}

/* A missing port is that of the scheme; the Host of a CONNECT may lack the port. */
static bool same_port(const struct http_head *head, const struct http_authority *target,
                      const struct http_authority *host)
{
    unsigned usual = head->https ? 443 : 80;
    if (head->form == HTTP_FORM_AUTHORITY)
        return host->port == 0 || host->port == target->port;
    return (host->port ? host->port : usual) == (target->port ? target->port : usual);
}

/* Parses http://host/path after the scheme. */
static const char *read_absolute(struct http_head *head, struct http_slice rest)
{
    size_t length = 0;
    while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?')
        length++;
    if (!http_authority_read((struct http_slice){.at = rest.at, .length = length}, &head->host))
        return "the host in its target is not a host";
    head->has_host = true;
    head->form = HTTP_FORM_ABSOLUTE;
    head->path = length < rest.length ? skip(rest, length) : slice_of("/");
    return head->path.at[0] == '/' ? NULL : "its target has a query but no path";
}

static const char *read_connect(struct http_head *head)
{
    if (!http_authority_read(head->target, &head->host) || head->host.port == 0)
        return "what to connect to is not a host and a port";
    head->has_host = true;
    head->form = HTTP_FORM_AUTHORITY;
    head->path = (struct http_slice){.at = head->target.at, .length = 0};
    return NULL;
}

static bool begins_like(struct http_slice text, const char *word)
{
    size_t length = strlen(word);
    return text.length >= length &&
           http_slice_like((struct http_slice){.at = text.at, .length = length}, word);
}

static const char *read_target(struct http_head *head)
{
    struct http_slice target = head->target;
    for (size_t i = 0; i < target.length; i++)
        if (target.at[i] <= ' ' || target.at[i] > '~' || target.at[i] == '#')
            return "its target has a character that none has";
    if (http_slice_is(head->method, "CONNECT"))
        return read_connect(head);
    head->https = begins_like(target, "https://");
    if (head->https || begins_like(target, "http://"))
        return read_absolute(head, skip(target, strlen(head->https ? "https://" : "http://")));
    head->path = target;
    head->form = HTTP_FORM_ORIGIN;
    if (target.length > 0 && target.at[0] == '/')
        return NULL;
    head->form = HTTP_FORM_ASTERISK;
    if (http_slice_is(target, "*") && http_slice_is(head->method, "OPTIONS"))
        return NULL;
    return "its target is not a path or a URL";
}

static const char *read_host_header(struct http_head *head)
{
    const struct http_slice *value;
    if (!find_one(head, "host", &value))
        return "it has two Host headers";
    if (!value)
        return head->minor == 0 ? NULL : "it has no Host header";
    struct http_authority host;
    if (!http_authority_read(*value, &host))
        return "its Host is not a host";
    if (head->has_host && (!same_host(&head->host, &host) || !same_port(head, &head->host, &host)))
        return "its Host is not that of its target";
    if (!head->has_host)
        head->host = host;
    head->has_host = true;
    return NULL;
}

/* ---- The body ---- */

static const char *read_framing(struct http_head *head)
{
    const struct http_slice *length, *coding;
    if (!find_one(head, "content-length", &length))
        return "it has two Content-Length headers";
    if (!find_one(head, "transfer-encoding", &coding))
        return "it has two Transfer-Encoding headers";
    if (length && coding)
        return "it has both Content-Length and Transfer-Encoding";
    if ((length || coding) && head->form == HTTP_FORM_AUTHORITY)
        return "a CONNECT has a body";
    if (length && !read_number(*length, LENGTH_DIGITS_MAX, &head->content_length))
        return "its Content-Length is not a length";
    if (length)
        head->framing = HTTP_BODY_LENGTH;
    if (!coding)
        return NULL;
    if (head->minor == 0 || !http_slice_like(*coding, "chunked"))
        return "its Transfer-Encoding is not just chunked, of HTTP/1.1";
    head->framing = HTTP_BODY_CHUNKED;
    return NULL;
}

static const char *read_expect(struct http_head *head)
{
    const struct http_slice *value;
    if (!find_one(head, "expect", &value))
        return "it has two Expect headers";
    if (value && !http_slice_like(*value, "100-continue"))
        return "it expects something other than 100-continue";
    head->expect_continue = value && head->minor == 1 && head->framing != HTTP_BODY_NONE;
    return NULL;
}

static void read_connection(struct http_head *head)
{
    bool close = lists_word(head, "connection", "close");
    bool keep = lists_word(head, "connection", "keep-alive");
    head->keep_alive = !close && (head->minor == 1 || keep);
    head->upgrade =
        http_head_find(head, "upgrade", 0) >= 0 && lists_word(head, "connection", "upgrade");
}

/* Derives the other members from the request line and the headers. NULL, or the reason why it is
 * bad. */
static const char *read_meaning(struct http_head *head)
{
    head->has_host = head->https = false;
    head->host = (struct http_authority){0};
    head->framing = HTTP_BODY_NONE;
    head->content_length = 0;
    static const char *(*const steps[])(struct http_head *) = {read_target, read_host_header,
                                                               read_framing, read_expect};
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        const char *reason = steps[i](head);
        if (reason)
            return reason;
    }
    read_connection(head);
    return NULL;
}

/* ---- Where the head ends ---- */

/* Finds the empty line. Each line ends in CR LF, and neither character may occur elsewhere. */
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

/* The first bytes show whether this can be a request, long before a line ends. */
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

/* ---- Lines ---- */

/* Takes a line without its end from the head, which contains a complete one. */
static struct http_slice next_line(struct http_slice *rest)
{
    const char *end = memchr(rest->at, '\r', rest->length);
    struct http_slice line = slice_between(rest->at, end);
    *rest = slice_between(end + 2, rest->at + rest->length);
    return line;
}

/* "METHOD target HTTP/1.x", separated by single spaces. */
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
    if (is_blank(line.at[0]))
        return "a header is folded over two lines";
    const char *colon = memchr(line.at, ':', line.length);
    if (!colon)
        return "a header has no colon";
    struct http_header header = {
        .name = slice_between(line.at, colon),
        .value = http_trim(slice_between(colon + 1, line.at + line.length)),
    };
    if (header.name.length == 0 || !all(header.name, http_is_token))
        return "a header's name has a character that none has";
    if (!all(header.value, http_is_text))
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
    reason = read_meaning(head);
    return reason ? refuse(head, HTTP_BAD, reason) : HTTP_DONE;
}

enum http_state http_head_read(const char *bytes, size_t length, size_t seen,
                               struct http_head *ret_head)
{
    size_t end, limit = length < HTTP_HEAD_MAX ? length : HTTP_HEAD_MAX;
    /* The end is found first, so that bytes after the head are not parsed. */
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

/* ---- Paths: the canonical form, and whether a path is below a prefix ---- */

/* Takes a character from the path and decodes its escape; false if the escape is malformed. */
static bool next_character(struct http_slice *path, bool *ret_escaped, unsigned char *ret_character)
{
    unsigned char c = (unsigned char)path->at[0];
    size_t taken = 1;
    *ret_escaped = c == '%';
    if (*ret_escaped) {
        int high = path->length > 2 ? hex_value(path->at[1]) : -1;
        int low = path->length > 2 ? hex_value(path->at[2]) : -1;
        if (high < 0 || low < 0)
            return false;
        c = (unsigned char)(high << 4 | low);
        taken = 3;
    }
    *path = skip(*path, taken);
    *ret_character = c;
    return true;
}

/* RFC 3986, 2.3: these mean the same with and without an escape. */
static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Characters that servers interpret differently. Some treat a backslash as a slash. Parameters
 * follow a ';', and some servers remove them: "..;" is then "..". An escaped '%' becomes an escape
 * for a server that decodes twice; an escaped '?' or '#' ends the path for a server that decodes
 * early. */
static bool is_ambiguous(unsigned char c, bool escaped)
{
    return c < 0x20 || c == 0x7f || c == '\\' || c == ';' ||
           (escaped && (c == '%' || c == '?' || c == '#'));
}

/* An overlong UTF-8 encoding, which a careless decoder takes for an ASCII character. */
static bool is_overlong(unsigned char before, unsigned char c)
{
    return c == 0xc0 || c == 0xc1 || (before == 0xe0 && c >= 0x80 && c < 0xa0) ||
           (before == 0xf0 && c >= 0x80 && c < 0x90);
}

/* "", "." or "..". */
static bool is_dots(const char *text, size_t length)
{
    return length <= 2 && memcmp(text, "..", length) == 0;
}

/* Writes a segment in canonical form, which is not longer. An encoded slash may be a slash to the
 * server, so each part between two of them must be a name. */
static bool write_segment(struct http_slice segment, char *to, size_t *ret_length)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0, part = 0;
    bool split = false, escaped;
    unsigned char before = 0, c;
    for (; segment.length > 0; before = c) {
        if (!next_character(&segment, &escaped, &c) || is_ambiguous(c, escaped) ||
            is_overlong(before, c))
            return false;
        bool slash = c == '/';
        if (slash && is_dots(to + part, length - part))
            return false;
        if (escaped && !is_unreserved(c)) {
            to[length++] = '%';
            to[length++] = digits[c >> 4];
            to[length++] = digits[c & 0xf];
        } else {
            to[length++] = (char)c;
        }
        if (slash) {
            part = length;
            split = true;
        }
    }
    *ret_length = length;
    return !split || !is_dots(to + part, length - part);
}

bool http_path_normalise(struct http_slice path, char *to, size_t *ret_length)
{
    const char *query = memchr(path.at, '?', path.length);
    size_t query_length = query ? path.length - (size_t)(query - path.at) : 0;
    struct http_slice rest = {.at = path.at, .length = path.length - query_length};
    if (rest.length == 0 || rest.at[0] != '/')
        return false;
    size_t length = 0;
    to[length++] = '/';
    rest = skip(rest, 1);
    while (rest.length > 0) {
        const char *slash = memchr(rest.at, '/', rest.length);
        struct http_slice segment = {.at = rest.at,
                                     .length = slash ? (size_t)(slash - rest.at) : rest.length};
        size_t written, taken = segment.length + (slash ? 1 : 0);
        if (!write_segment(segment, to + length, &written))
            return false;
        if (!is_dots(to + length, written)) {
            length += written;
            if (slash)
                to[length++] = '/';
        } else if (written == 2) {
            if (length == 1)
                return false; /* above the root */
            for (length--; to[length - 1] != '/';)
                length--;
        }
        rest = skip(rest, taken);
    }
    if (query_length > 0)
        memmove(to + length, query, query_length);
    *ret_length = length + query_length;
    return true;
}

bool http_path_below(struct http_slice path, const char *prefix)
{
    size_t length = strlen(prefix);
    if (length == 0 || path.length < length || memcmp(path.at, prefix, length) != 0)
        return false;
    if (prefix[length - 1] == '/' || path.length == length)
        return true;
    return path.at[length] == '/' || path.at[length] == '?';
}
