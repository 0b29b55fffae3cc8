/* SPDX-License-Identifier: MIT */
/* Bytes as base64. */
#include "cli/base64.h"

#include "base/str.h"

void base64_append(struct str *out, const void *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    for (; length > 0; at += 3) {
        size_t here = length < 3 ? length : 3;
        unsigned group =
            (unsigned)at[0] << 16 | (here > 1 ? (unsigned)at[1] << 8 : 0) | (here > 2 ? at[2] : 0);
        str_append_char(out, digits[group >> 18]);
        str_append_char(out, digits[group >> 12 & 63]);
        str_append_char(out, here > 1 ? digits[group >> 6 & 63] : '=');
        str_append_char(out, here > 2 ? digits[group & 63] : '=');
        length -= here;
    }
}
