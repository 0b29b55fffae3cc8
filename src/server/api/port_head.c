/* SPDX-License-Identifier: MIT */
/* Parses the head of an HTTP/1 answer. */
#include "server/api/port_head.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"

#define STATUS_LENGTH 12 /* of "HTTP/1.1 200" */
#define HEADERS_MAX 100

/* Those of one connection (RFC 9110, 7.6.1), and those that this server sets. */
static bool is_passed(const char *name)
{
    static const char *const kept[] = {"Connection",
                                       "Keep-Alive",
                                       "Proxy-Authenticate",
                                       "Proxy-Connection",
                                       "TE",
                                       "Trailer",
                                       "Transfer-Encoding",
                                       "Upgrade",
                                       "Content-Length",
                                       "Date",
                                       "Set-Cookie",
                                       "Set-Cookie2",
                                       "Alt-Svc",
                                       "Strict-Transport-Security",
                                       "Clear-Site-Data",
                                       "Content-Security-Policy",
                                       "X-Frame-Options",
                                       "X-Content-Type-Options"};
    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
        if (strcasecmp(name, kept[i]) == 0)
            return false;
    return strncasecmp(name, "Access-Control-", strlen("Access-Control-")) != 0;
}

static bool is_token(const char *text, size_t length)
{
    static const char signs[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < length; i++)
        if (!text[i] || !strchr(signs, text[i]))
            return false;
    return length > 0;
}

/* One line without its end. */
static bool read_header(const char *line, size_t length, struct str *headers)
{
    const char *colon = memchr(line, ':', length);
    size_t name = colon ? (size_t)(colon - line) : 0, at = name + 1;
    autostr struct str text = {0};
    if (!is_token(line, name))
        return false;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (length > at && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        length--;
    for (size_t i = at; i < length; i++)
        if ((unsigned char)line[i] < ' ' && line[i] != '\t')
            return false;
    str_append_bytes(&text, line, name);
    if (text.failed || strcasecmp(text.data, "Transfer-Encoding") == 0)
        return false;
    if (!is_passed(text.data) || at >= length)
        return true;
    str_list_add(headers, text.data);
    text.length = 0;
    str_append_bytes(&text, line + at, length - at);
    if (text.failed)
        return false;
    str_list_add(headers, text.data);
    return !headers->failed;
}

static bool read_status(const char *line, size_t length, unsigned *ret_status)
{
    if (length < STATUS_LENGTH || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
        (length > STATUS_LENGTH && line[STATUS_LENGTH] != ' '))
        return false;
    *ret_status = 0;
    for (size_t i = 9; i < STATUS_LENGTH; i++) {
        if (line[i] < '0' || line[i] > '9')
            return false;
        *ret_status = *ret_status * 10 + (unsigned)(line[i] - '0');
    }
    return *ret_status >= 100 && *ret_status <= 599;
}

long port_head_read(const char *bytes, size_t length, unsigned *ret_status, struct str *headers)
{
    size_t most = length < PORT_HEAD_MAX ? length : PORT_HEAD_MAX;
    const char *end = memmem(bytes, most, "\r\n\r\n", 4);
    if (!end)
        return length >= PORT_HEAD_MAX ? -1 : 0;
    size_t whole = (size_t)(end - bytes) + 2, count = 0; /* with the end of the last line */
    for (size_t at = 0; at < whole; count++) {
        const char *line = bytes + at;
        size_t size = (size_t)((const char *)memmem(line, whole - at, "\r\n", 2) - line);
        bool good = at == 0 ? read_status(line, size, ret_status)
                            : count <= HEADERS_MAX && read_header(line, size, headers);
        if (!good)
            return -1;
        at += size + 2;
    }
    return (long)whole + 2;
}
