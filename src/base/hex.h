/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits. Pure, whatever the locale. */
#pragma once

/* The digit's value, of either case, or -1. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
