/* SPDX-License-Identifier: MIT */
/* A look at JSON text before it is parsed. */
#include "server/http/json_shape.h"

/* The index behind the string that begins at `at`, or the length. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at;
}

enum json_shape json_shape(const char *text, size_t length, size_t depth_max, size_t values_max)
{
    size_t depth = 0, values = 0;
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '"':
            i = skip_string(text, length, i);
            break;
        case '{':
        case '[':
            if (++depth > depth_max)
                return JSON_SHAPE_TOO_DEEP;
            values++;
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            break;
        case ',':
        case ':':
            values++;
            break;
        default:
            break;
        }
        if (values > values_max)
            return JSON_SHAPE_TOO_MANY;
    }
    return JSON_SHAPE_OK;
}
