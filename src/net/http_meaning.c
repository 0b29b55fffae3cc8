/* SPDX-License-Identifier: MIT */
/* The head of an HTTP/1 request: where it goes to, how long its body is, and who it is for. */
#include <string.h>

#include "base/cleanup.h"
#include "net/http_head.h"
#include "net/http_parts.h"
#include "net/http_text.h"

#define LENGTH_DIGITS_MAX 18 /* so that it cannot overflow */
#define PORT_DIGITS_MAX 5

/* ---- Headers ------------------------------------------------------------------------------ */

int http_head_find(const struct http_head *head, const char *name, size_t from)
{
    for (size_t i = from; i < head->header_count; i++)
        if (http_slice_like(head->headers[i].name, name))
            return (int)i;
    return -1;
}

/* The value of a header, NULL if it is not there; false if it is there twice. */
static bool find_one(const struct http_head *head, const char *name,
                     const struct http_slice **ret_value)
{
    int at = http_head_find(head, name, 0);
    *ret_value = at < 0 ? NULL : &head->headers[at].value;
    return at < 0 || http_head_find(head, name, (size_t)at + 1) < 0;
}

/* Takes the next item of a list with commas, without blanks around it; false at the end. */
static bool next_item(struct http_slice *list, struct http_slice *ret_item)
{
    if (list->length == 0)
        return false;
    const char *comma = memchr(list->at, ',', list->length);
    size_t length = comma ? (size_t)(comma - list->at) : list->length;
    struct http_slice item = {.at = list->at, .length = length};
    size_t taken = comma ? length + 1 : length;
    list->at += taken;
    list->length -= taken;
    *ret_item = http_trim(item);
    return true;
}

static bool slices_like(struct http_slice a, struct http_slice b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (http_lower(a.at[i]) != http_lower(b.at[i]))
            return false;
    return true;
}

/* Does one of the headers of this name have the item in its list? */
static bool lists(const struct http_head *head, const char *name, struct http_slice wanted)
{
    for (int at = http_head_find(head, name, 0); at >= 0;
         at = http_head_find(head, name, (size_t)at + 1)) {
        struct http_slice list = head->headers[at].value, item;
        while (next_item(&list, &item))
            if (slices_like(item, wanted))
                return true;
    }
    return false;
}

static bool lists_word(const struct http_head *head, const char *name, const char *word)
{
    return lists(head, name, (struct http_slice){.at = word, .length = strlen(word)});
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

/* ---- Where to ----------------------------------------------------------------------------- */

static bool read_port(struct http_slice text, uint16_t *ret_port)
{
    unsigned value = 0;
    if (text.length == 0 || text.length > PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (!http_is_digit(text.at[i]))
            return false;
        value = value * 10 + (unsigned)(text.at[i] - '0');
    }
    if (value == 0 || value > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)value;
    return true;
}

/* Where the port's colon stands, or the end; IPv6 has brackets around it. */
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

/* "host", "host:port"; no user before it. */
static bool read_authority(struct http_slice text, struct http_authority *ret_authority)
{
    struct http_authority authority = {0};
    size_t length = host_length(text);
    struct http_slice host = {.at = text.at, .length = length};
    if (!read_host(host, &authority))
        return false;
    if (length < text.length) {
        struct http_slice port = {.at = text.at + length + 1, .length = text.length - length - 1};
        if (!read_port(port, &authority.port))
            return false;
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

/* Ports that are not given are the scheme's; a CONNECT's Host may be without. */
static bool same_port(const struct http_head *head, const struct http_authority *target,
                      const struct http_authority *host)
{
    unsigned usual = head->https ? 443 : 80;
    if (head->form == HTTP_FORM_AUTHORITY)
        return host->port == 0 || host->port == target->port;
    return (host->port ? host->port : usual) == (target->port ? target->port : usual);
}

/* http://host/path, from behind the scheme. */
static const char *read_absolute(struct http_head *head, struct http_slice rest)
{
    size_t length = 0;
    while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?')
        length++;
    if (!read_authority((struct http_slice){.at = rest.at, .length = length}, &head->host))
        return "the host in its target is not a host";
    head->has_host = true;
    head->form = HTTP_FORM_ABSOLUTE;
    head->path = (struct http_slice){.at = rest.at + length, .length = rest.length - length};
    if (head->path.length == 0)
        head->path = (struct http_slice){.at = "/", .length = 1};
    return head->path.at[0] == '/' ? NULL : "its target has a query but no path";
}

static const char *read_connect(struct http_head *head)
{
    if (!read_authority(head->target, &head->host) || head->host.port == 0)
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

static struct http_slice behind(struct http_slice text, const char *word)
{
    size_t length = strlen(word);
    return (struct http_slice){.at = text.at + length, .length = text.length - length};
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
        return read_absolute(head, behind(target, head->https ? "https://" : "http://"));
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
    if (!read_authority(*value, &host))
        return "its Host is not a host";
    if (head->has_host && (!same_host(&head->host, &host) || !same_port(head, &head->host, &host)))
        return "its Host is not that of its target";
    if (!head->has_host)
        head->host = host;
    head->has_host = true;
    return NULL;
}

/* ---- The body ----------------------------------------------------------------------------- */

static const char *read_length(struct http_head *head, struct http_slice text)
{
    uint64_t value = 0;
    if (text.length == 0 || text.length > LENGTH_DIGITS_MAX)
        return "its Content-Length is not a length";
    for (size_t i = 0; i < text.length; i++) {
        if (!http_is_digit(text.at[i]))
            return "its Content-Length is not a length";
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    head->framing = HTTP_BODY_LENGTH;
    head->content_length = value;
    return NULL;
}

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
    if (length)
        return read_length(head, *length);
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

const char *http_read_meaning(struct http_head *head)
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
