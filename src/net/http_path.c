/* SPDX-License-Identifier: MIT */
/* Paths of requests: one spelling for each, and whether a path is below a prefix. */
#include <string.h>

#include "base/hex.h"
#include "net/http_head.h"
#include "net/http_text.h"

/* Takes a character from the path, without its escape; false if the escape is broken. */
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
    path->at += taken;
    path->length -= taken;
    *ret_character = c;
    return true;
}

/* RFC 3986, 2.3: escaped or not, these mean the same. */
static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Characters that servers read differently. A backslash is a slash to some. A ';' has parameters
 * after it, which some remove: "..;" is then "..". An escaped '%' is an escape in the path to a
 * server that decodes twice; an escaped '?' or '#' ends the path for a server that decodes early. */
static bool is_ambiguous(unsigned char c, bool escaped)
{
    return c < 0x20 || c == 0x7f || c == '\\' || c == ';' ||
           (escaped && (c == '%' || c == '?' || c == '#'));
}

/* Too long an encoding in UTF-8, which a careless decoder takes for an ASCII character. */
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

/* Writes a segment in its one spelling; at most as many bytes as it has. An encoded slash may be a
 * slash to the server, so each part between two of them must be a name. */
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
    rest.at++;
    rest.length--;
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
        rest.at += taken;
        rest.length -= taken;
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
