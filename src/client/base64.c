/* SPDX-License-Identifier: MIT */
/* Base64, for output and files of any bytes. */
#include <string.h>

#include "base/str.h"
#include "client/client.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void client_base64_append(struct str *out, const void *bytes, size_t length)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        unsigned value = (unsigned)b[i] << 16 | (left > 1 ? (unsigned)b[i + 1] << 8 : 0) |
                         (left > 2 ? b[i + 2] : 0u);
        str_append_char(out, digits[value >> 18]);
        str_append_char(out, digits[value >> 12 & 63]);
        str_append_char(out, left > 1 ? digits[value >> 6 & 63] : '=');
        str_append_char(out, left > 2 ? digits[value & 63] : '=');
    }
}

/* 64 for '=', negative for what is no digit. */
static int digit(char c)
{
    if (c == '=')
        return 64;
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

long client_base64_decode(char *text, size_t length)
{
    size_t to = 0;
    if (length % 4 != 0)
        return -1;
    for (size_t i = 0; i < length; i += 4) {
        int d[4] = {0};
        for (size_t j = 0; j < 4; j++)
            d[j] = digit(text[i + j]);
        bool last = i + 4 == length;
        size_t padding = d[3] == 64 ? (d[2] == 64 ? 2 : 1) : 0;
        if (d[0] < 0 || d[0] > 63 || d[1] < 0 || d[1] > 63 || d[2] < 0 || d[3] < 0 ||
            (d[2] == 64 && d[3] != 64) || (padding > 0 && !last))
            return -1;
        unsigned value = (unsigned)d[0] << 18 | (unsigned)d[1] << 12 | (unsigned)(d[2] & 63) << 6 |
                         (unsigned)(d[3] & 63);
        text[to++] = (char)(value >> 16);
        if (padding < 2)
            text[to++] = (char)(value >> 8);
        if (padding < 1)
            text[to++] = (char)value;
    }
    return (long)to;
}
