/* SPDX-License-Identifier: MIT */
/* The response of an upstream, on its way to the jail: its head without what was between the upstream
 * and us, its body as it comes. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "net/broker_inject_parts.h"

/* Headers for one hop, and what must not make a client go past the door. */
static const char *const dropped[] = {
    "connection",        "keep-alive", "proxy-authenticate",
    "proxy-connection",  "te",         "trailer",
    "transfer-encoding", "upgrade",    "alt-svc",
};

static bool is_named(const char *line, size_t length, const char *name)
{
    size_t name_length = strlen(name);
    return length > name_length && strncasecmp(line, name, name_length) == 0 &&
           line[name_length] == ':';
}

static bool is_dropped(const char *line, size_t length)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (is_named(line, length, dropped[i]))
            return true;
    return false;
}

/* "HTTP/1.1 200 OK" or "HTTP/2 200": a new head begins; an earlier one was preliminary. */
static bool begin_head(struct inject_client *client, const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    size_t rest = space ? length - (size_t)(space - line) : 0;
    if (rest < 4)
        return false;
    client->status = 0;
    for (size_t i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return false;
        client->status = client->status * 10 + (unsigned)(space[i] - '0');
    }
    str_done(&client->reply_head);
    str_append(&client->reply_head, "HTTP/1.1");
    str_append_bytes(&client->reply_head, space, rest);
    str_append(&client->reply_head, "\r\n");
    client->reply_length[0] = 0;
    client->reply_encoded = false;
    return true;
}

static bool has_body(const struct inject_client *client)
{
    return !client->is_head && client->status != 204 && client->status != 304;
}

static bool finish_head(struct inject_client *client)
{
    struct str *head = &client->reply_head;
    if (client->status < 200)
        return true; /* 100 was said already, 103 is only advice */
    client->reply_begun = true;
    /* Refused before all of it was sent: libcurl stops sending, but not while it is paused. */
    if (!client->body_ended && client->status >= 400) {
        client->keep_alive = false;
        loop_queue(&client->broker->loop, &client->go_on);
    }
    bool known = client->reply_length[0] && !client->reply_encoded;
    bool unknown = has_body(client) && !known;
    client->chunked = unknown && client->minor > 0;
    if (unknown && !client->chunked)
        client->keep_alive = false; /* its end is the connection's */
    if (known)
        str_appendf(head, "Content-Length: %s\r\n", client->reply_length);
    if (client->chunked)
        str_append(head, "Transfer-Encoding: chunked\r\n");
    if (!client->keep_alive)
        str_append(head, "Connection: close\r\n");
    str_append(head, "\r\n");
    bool sent = !head->failed && inject_send(client, head->data, head->length);
    str_done(head);
    return sent;
}

/* Digits alone, and always the same. */
static bool take_length(struct inject_client *client, const char *line, size_t length)
{
    char digits[sizeof client->reply_length] = "";
    size_t at = strlen("content-length:"), count = 0;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    for (; at < length && line[at] >= '0' && line[at] <= '9' && count + 1 < sizeof digits; at++)
        digits[count++] = line[at];
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    if (count == 0 || at < length)
        return false;
    if (client->reply_length[0] && strcmp(client->reply_length, digits) != 0)
        return false;
    memcpy(client->reply_length, digits, sizeof digits);
    return true;
}

size_t inject_reply_line(char *line, size_t size, size_t count, void *data)
{
    struct inject_client *client = data;
    size_t length = size * count;
    if (client->reply_begun)
        return length; /* trailers */
    size_t text = length;
    while (text > 0 && (line[text - 1] == '\n' || line[text - 1] == '\r'))
        text--;
    if (text == 0)
        return finish_head(client) ? length : 0;
    if (strncmp(line, "HTTP/", 5) == 0)
        return begin_head(client, line, text) ? length : 0;
    if (client->reply_head.length + text > INJECT_REPLY_HEAD_MAX)
        return 0;
    if (is_named(line, text, "transfer-encoding"))
        client->reply_encoded = true;
    if (is_dropped(line, text))
        return length;
    if (is_named(line, text, "content-length"))
        return take_length(client, line, text) ? length : 0;
    str_append_bytes(&client->reply_head, line, text);
    str_append(&client->reply_head, "\r\n");
    return length;
}

size_t inject_reply_data(char *bytes, size_t size, size_t count, void *data)
{
    struct inject_client *client = data;
    size_t length = size * count;
    if (inject_has_output(client)) {
        client->paused |= CURLPAUSE_RECV;
        return CURL_WRITEFUNC_PAUSE;
    }
    client->bytes_in += length;
    broker_count_bytes(client->broker, length);
    if (!client->chunked)
        return inject_send(client, bytes, length) ? length : 0;
    autostr struct str chunk = {0};
    str_appendf(&chunk, "%zx\r\n", length);
    str_append_bytes(&chunk, bytes, length);
    str_append(&chunk, "\r\n");
    return !chunk.failed && inject_send(client, chunk.data, chunk.length) ? length : 0;
}
