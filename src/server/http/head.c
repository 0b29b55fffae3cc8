/* SPDX-License-Identifier: MIT */
/* The head of a request. */
#include "server/http/head.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

struct head {
    unsigned lengths, encodings, hosts;
    bool unsound;
};

/* RFC 9110, 5.6.2. */
static bool is_token(const char *text, size_t length)
{
    static const char signs[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return length > 0 && strnlen(text, length) == length && strspn(text, signs) >= length;
}

static bool has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\t')
            return true;
    return false;
}

/* The library glues a line that is folded to the name of the one before it: what begins like one of
 * those that matter is not taken for another. */
static bool begins_like(const char *name, const char *wanted)
{
    return strncasecmp(name, wanted, strlen(wanted)) == 0;
}

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name,
                               size_t name_length, const char *value, size_t value_length)
{
    struct head *head = context;
    (void)kind;
    if (!is_token(name, name_length) || has_control(value, value_length)) {
        head->unsound = true;
        return MHD_NO;
    }
    head->hosts += strcasecmp(name, "Host") == 0;
    if (begins_like(name, "Content-Length")) {
        head->lengths++;
        head->unsound = head->unsound || strcasecmp(name, "Content-Length") != 0;
    } else if (begins_like(name, "Transfer-Encoding")) {
        head->encodings++;
        head->unsound = head->unsound || strcasecmp(name, "Transfer-Encoding") != 0 ||
                        strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

bool head_is_sound(struct MHD_Connection *connection)
{
    struct head head = {0};
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &head);
    return !head.unsound && head.lengths + head.encodings <= 1 && head.hosts <= 1;
}

struct join {
    const char *name;
    struct str *out;
};

static enum MHD_Result join_one(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    const struct join *join = context;
    (void)kind;
    if (strcasecmp(name, join->name) == 0 && value)
        str_appendf(join->out, "%s%s", join->out->length > 0 ? "," : "", value);
    return MHD_YES;
}

void head_join(struct MHD_Connection *connection, const char *name, struct str *out)
{
    struct join join = {.name = name, .out = out};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, join_one, &join);
}
