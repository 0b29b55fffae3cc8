/* SPDX-License-Identifier: MIT */
/* The characters of HTTP/1 (RFC 9110 and 9112), for the readers of heads and bodies. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool http_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char http_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* What names of methods and headers are made of. */
static inline bool http_is_token(char c)
{
    if (http_is_digit(c) || (http_lower(c) >= 'a' && http_lower(c) <= 'z'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c);
}

/* What values are made of, blanks among it: no control character but the tab. */
static inline bool http_is_text(char c)
{
    unsigned char byte = (unsigned char)c;
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static inline bool http_is_blank(char c)
{
    return c == ' ' || c == '\t';
}
