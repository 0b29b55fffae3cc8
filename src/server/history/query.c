/* SPDX-License-Identifier: MIT */
/* Parses queries for executions. */
#include "server/history/query.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/execution.h"
#include "server/history/row.h"

#define SECOND_NS INT64_C(1000000000)
#define TIME_FORM                                                                                  \
    "a time is as in 2026-01-31T12:00:00Z, seconds since 1970, or a duration back from now, as "   \
    "in 2h"
#define YEAR_FIRST 1970
#define YEAR_LAST 2200

/* ---- Times ---- */

/* Reads a time zone as seconds east of Greenwich. Returns the text after it, or NULL. URL decoding
 * may have turned a '+' into a space. */
static const char *read_zone(const char *at, int64_t *ret_seconds)
{
    struct tm offset = {0};
    *ret_seconds = 0;
    if (*at == 'Z' || *at == 'z')
        return at + 1;
    if (*at != '+' && *at != '-' && *at != ' ')
        return NULL;
    const char *end = strptime(at + 1, "%H:%M", &offset);
    *ret_seconds = (*at == '-' ? -1 : 1) * (int64_t)(offset.tm_hour * 3600 + offset.tm_min * 60);
    return end;
}

/* Reads "2026-01-31", or "2026-01-31T12:00:00" with an optional fraction and a zone. */
static bool read_date(const char *text, int64_t *ret_ns)
{
    struct tm tm = {0};
    int64_t zone = 0;
    const char *at = strptime(text, "%Y-%m-%d", &tm);
    if (at && *at) {
        at = strchr("Tt ", *at) ? strptime(at + 1, "%H:%M:%S", &tm) : NULL;
        if (at && *at == '.')
            at += 1 + strspn(at + 1, "0123456789");
        at = at ? read_zone(at, &zone) : NULL;
    }
    if (!at || *at || tm.tm_year < YEAR_FIRST - 1900 || tm.tm_year > YEAR_LAST - 1900)
        return false;
    *ret_ns = ((int64_t)timegm(&tm) - zone) * SECOND_NS;
    return true;
}

static int read_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct brig_error *err)
{
    uint64_t value = 0;
    if (read_date(text, ret_ns))
        return 0;
    if (parse_uint(text, (uint64_t)(INT64_MAX / SECOND_NS), PARSE_ZERO_OK, &value, NULL) == 0) {
        *ret_ns = (int64_t)value * SECOND_NS;
        return 0;
    }
    if (parse_duration(text, 0, &value, NULL) == 0) {
        *ret_ns = now_ns - (int64_t)value * 1000000;
        return 0;
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s': " TIME_FORM, str_shown(text).text);
}

/* ---- Parameters ---- */

static int read_word(const char *text, char word[QUERY_WORD_MAX], struct brig_error *err)
{
    if (strlen(text) >= QUERY_WORD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is longer than %d characters",
                         str_shown(text).text, QUERY_WORD_MAX - 1);
    memcpy(word, text, strlen(text) + 1);
    return 0;
}

static int read_status(const char *text, char word[QUERY_WORD_MAX], struct brig_error *err)
{
    if (execution_status_from_name(text) != EXECUTION_STATUSES_)
        return read_word(text, word, err);
    autostr struct str known = {0};
    for (int i = 0; i < EXECUTION_STATUSES_; i++)
        str_appendf(&known, "%s%s", i ? ", " : "", execution_status_name((enum execution_status)i));
    return nearest_fail(text, known.data ? known.data : "", err);
}

static int read_limit(const char *text, uint64_t *ret_limit, struct brig_error *err)
{
    if (parse_uint(text, QUERY_LIMIT_MAX, 0, ret_limit, NULL) == 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a number from 1 to %d",
                     str_shown(text).text, QUERY_LIMIT_MAX);
}

static int read_cursor(const char *text, struct query *query, struct brig_error *err)
{
    uint64_t ns = 0;
    char number[QUERY_CURSOR_MAX];
    size_t length = strcspn(text, ".");
    if (length < sizeof number && text[length] == '.' && execution_id_is_valid(text + length + 1)) {
        (void)snprintf(number, sizeof number, "%.*s", (int)length, text);
        if (parse_uint(number, INT64_MAX, 0, &ns, NULL) == 0) {
            query->before_ns = (int64_t)ns;
            (void)snprintf(query->before_id, sizeof query->before_id, "%s", text + length + 1);
            return 0;
        }
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not the \"next\" of an earlier answer",
                     str_shown(text).text);
}

enum part { LANGUAGE, STATUS, SINCE, UNTIL, LIMIT, CURSOR, DOMAIN, PARTS_ };

static int read_value(struct query *query, enum part part, const char *value, int64_t now_ns,
                      struct brig_error *err)
{
    switch (part) {
    case LANGUAGE:
        return read_word(value, query->language, err);
    case STATUS:
        return read_status(value, query->status, err);
    case SINCE:
        return read_time(value, now_ns, &query->since_ns, err);
    case UNTIL:
        return read_time(value, now_ns, &query->until_ns, err);
    case LIMIT:
        return read_limit(value, &query->limit, err);
    case CURSOR:
        return read_cursor(value, query, err);
    case DOMAIN:
        return read_word(value, query->domain, err);
    case PARTS_:
        break;
    }
    return 0;
}

static int read_part(struct query *query, const char *name, const char *value, int64_t now_ns,
                     unsigned *seen, struct brig_error *err)
{
    static const char *const names[PARTS_] = {
        [LANGUAGE] = "language", [STATUS] = "status", [SINCE] = "since",   [UNTIL] = "until",
        [LIMIT] = "limit",       [CURSOR] = "cursor", [DOMAIN] = "domain",
    };
    enum part part = 0;
    while (part < PARTS_ && strcmp(names[part], name) != 0)
        part++;
    if (part == PARTS_)
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "unknown filter '%s'; allowed are language, status, since, until, limit and cursor",
            str_shown(name).text);
    if (*seen & 1u << part)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s is given twice", name);
    *seen |= 1u << part;
    int result = value[0] ? read_value(query, part, value, now_ns, err) : 0;
    return result < 0 ? brig_wrap(err, result, "%s", name) : 0;
}

/* ---- The whole query ---- */

/* Decodes %41 and + in place. */
static int decode(char *text, struct brig_error *err)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        *to = *from == '+' ? ' ' : *from;
        if (*from == '%') {
            int high = hex_value(from[1]), low = high < 0 ? -1 : hex_value(from[2]);
            if (low < 0 || (high == 0 && low == 0))
                return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not percent-encoded rightly",
                                 str_shown(from).text);
            *to = (char)(high * 16 + low);
            from += 2;
        }
        to++;
    }
    *to = '\0';
    return 0;
}

int query_parse(const char *text, size_t length, int64_t now_ns, struct query *ret_query,
                struct brig_error *err)
{
    char copy[QUERY_TEXT_MAX + 1];
    struct query query = {.limit = QUERY_LIMIT_DEFAULT, .until_ns = INT64_MAX};
    unsigned seen = 0;
    if (length > QUERY_TEXT_MAX || memchr(text, '\0', length))
        return brig_fail(err, BRIG_E_INVALID, 0, "the query is longer than %d bytes, or has a NUL",
                         QUERY_TEXT_MAX);
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (char *part = copy, *next; part; part = next) {
        next = strchr(part, '&');
        if (next)
            *next++ = '\0';
        if (*part == '\0')
            continue;
        char *value = strchr(part, '=');
        static char nothing[] = "";
        if (value)
            *value++ = '\0';
        int result = decode(part, err);
        if (result == 0 && value)
            result = decode(value, err);
        if (result == 0)
            result = read_part(&query, part, value ? value : nothing, now_ns, &seen, err);
        if (result < 0)
            return result;
    }
    *ret_query = query;
    return 0;
}

void query_cursor(const struct row *row, char ret_text[QUERY_CURSOR_MAX])
{
    (void)snprintf(ret_text, QUERY_CURSOR_MAX, "%" PRId64 ".%s", row->created_ns, row->id);
}
