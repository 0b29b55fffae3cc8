/* SPDX-License-Identifier: MIT */
/* Paths of requests: is one what it says, and what is it below? */
#include <string.h>

#include "base/hex.h"
#include "egress/http_head.h"
#include "egress/http_text.h"

/* Takes a character from the path, without its escape; false if the escape is broken. */
static bool next_character(struct http_slice *path, bool *ret_escaped, char *ret_character)
{
    char c = path->at[0];
    size_t taken = 1;
    *ret_escaped = c == '%';
    if (*ret_escaped) {
        int high = path->length > 2 ? hex_value(path->at[1]) : -1;
        int low = path->length > 2 ? hex_value(path->at[2]) : -1;
        if (high < 0 || low < 0)
            return false;
        c = (char)(high << 4 | low);
        taken = 3;
    }
    path->at += taken;
    path->length -= taken;
    *ret_character = c;
    return true;
}

/* A segment is a name unless it is empty, or dots that lead elsewhere. */
static bool leads_elsewhere(size_t characters, size_t dots)
{
    return characters == dots && dots <= 2;
}

static bool is_strange(char c, bool escaped)
{
    unsigned char byte = (unsigned char)c;
    if (byte < 0x20 || byte == 0x7f || c == '\\')
        return true;
    /* Encoded twice, or parts of a path made to look like a name. A ';' has parameters behind it
     * for some servers, which take them away: "..;" is then "..". */
    return c == ';' || (escaped && (c == '/' || c == '%' || c == '?' || c == '#'));
}

bool http_path_is_plain(struct http_slice path)
{
    const char *query = memchr(path.at, '?', path.length);
    struct http_slice rest = path;
    if (query)
        rest.length = (size_t)(query - path.at);
    if (rest.length == 0 || rest.at[0] != '/')
        return false;
    rest.at++;
    rest.length--;
    size_t characters = 0, dots = 0;
    while (rest.length > 0) {
        bool escaped;
        char c;
        if (!next_character(&rest, &escaped, &c) || is_strange(c, escaped))
            return false;
        if (c == '/') {
            if (leads_elsewhere(characters, dots))
                return false;
            characters = dots = 0;
            continue;
        }
        characters++;
        dots += c == '.';
    }
    /* The last may be empty: a directory. */
    return characters == 0 || !leads_elsewhere(characters, dots);
}

bool http_path_below(struct http_slice path, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strcmp(prefix, "/") == 0)
        return path.length > 0 && path.at[0] == '/';
    if (length == 0 || path.length < length || memcmp(path.at, prefix, length) != 0 ||
        !http_path_is_plain(path))
        return false;
    if (prefix[length - 1] == '/' || path.length == length)
        return true;
    return path.at[length] == '/' || path.at[length] == '?';
}
