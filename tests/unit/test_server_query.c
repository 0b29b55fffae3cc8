/* SPDX-License-Identifier: MIT */
/* Queries for executions: what is understood, and what is said of what is not. */
#include "server/history/query.h"

#include "base/error.h"
#include "server/history/row.h"
#include "tap.h"

#define NOW_NS INT64_C(1700000000000000000)
#define ID "f47ac10b-58cc-4372-a567-0e02b2c3d479"

static struct query query;

static int parse(const char *text, struct brig_error *err)
{
    return query_parse(text, strlen(text), NOW_NS, &query, err);
}

static void check_taken(const char *text)
{
    struct brig_error err = {0};
    tap_is_int(parse(text, &err), 0, "taken: %s %s", text, err.message);
}

static void check_refused(const char *text, const char *named)
{
    struct brig_error err = {0};
    tap_is_int(parse(text, &err), BRIG_E_INVALID, "refused: %s", text);
    tap_has_str(err.message, named, "and it says %s", named);
}

int main(void)
{
    check_taken("");
    tap_ok(query.limit == 50 && query.since_ns == 0 && query.until_ns == INT64_MAX &&
               query.before_ns == 0 && !query.language[0] && !query.status[0],
           "nothing asks for the newest fifty");
    check_taken("language=python&status=timeout&limit=500&domain=0123456789abcdef");
    tap_ok(strcmp(query.language, "python") == 0 && strcmp(query.status, "timeout") == 0 &&
               query.limit == 500 && strcmp(query.domain, "0123456789abcdef") == 0,
           "filters are read");
    check_taken("&&language=&status=&");
    tap_ok(!query.language[0], "empty parts are left out of account");
    check_taken("language=c%2b%2B");
    tap_is_str(query.language, "c++", "percent signs are taken apart");
    check_taken("since=2023-11-14T22:13:20Z");
    tap_is_int(query.since_ns, NOW_NS, "a time is read");
    check_taken("since=2023-11-14T22:13:20.999Z");
    tap_is_int(query.since_ns, NOW_NS, "with a fraction");
    check_taken("since=2023-11-15T00:13:20%2B02:00");
    tap_is_int(query.since_ns, NOW_NS, "with a zone");
    check_taken("since=2023-11-15T00:13:20+02:00");
    tap_is_int(query.since_ns, NOW_NS, "also where its sign became a space");
    check_taken("until=2023-11-14T20:13:20-02:00");
    tap_is_int(query.until_ns, NOW_NS, "to the west");
    check_taken("since=1700000000");
    tap_is_int(query.since_ns, NOW_NS, "seconds are read");
    check_taken("since=1h");
    tap_is_int(query.since_ns, NOW_NS - INT64_C(3600000000000), "a duration is back from now");
    check_taken("since=1970-01-02");
    tap_is_int(query.since_ns, INT64_C(86400000000000), "a day is read");
    check_taken("cursor=1700000000000000001." ID);
    tap_ok(query.before_ns == NOW_NS + 1 && strcmp(query.before_id, ID) == 0, "a cursor is read");
    struct row row = {.created_ns = NOW_NS, .id = ID};
    char cursor[QUERY_CURSOR_MAX], text[128];
    query_cursor(&row, cursor);
    (void)snprintf(text, sizeof text, "cursor=%s", cursor);
    check_taken(text);
    tap_ok(query.before_ns == NOW_NS && strcmp(query.before_id, ID) == 0, "as it was written");

    check_refused("status=fine", "one of running, ok, error");
    check_refused("limit=0", "1 to 500");
    check_refused("limit=501", "1 to 500");
    check_refused("limit=-1", "'-1'");
    check_refused("limit=5&limit=5", "given twice");
    check_refused("order=asc", "unknown filter 'order'");
    check_refused("since=yesterday", "a time is");
    check_refused("since=2023-13-01", "a time is");
    check_refused("since=2023-11-14T25:00:00Z", "a time is");
    check_refused("since=99999999999999999999", "a time is");
    check_refused("cursor=abc", "\"next\"");
    check_refused("cursor=1.not-an-id", "\"next\"");
    check_refused("cursor=0." ID, "\"next\"");
    check_refused("language=%zz", "percent");
    check_refused("language=%0", "percent");
    check_refused("language=a%00b", "percent");
    struct brig_error err = {0};
    char longest[QUERY_TEXT_MAX + 1];
    memset(longest, '&', sizeof longest);
    tap_is_int(query_parse(longest, QUERY_TEXT_MAX, NOW_NS, &query, &err), 0,
               "a query of the largest size is taken");
    tap_is_int(query_parse(longest, QUERY_TEXT_MAX + 1, NOW_NS, &query, &err), BRIG_E_INVALID,
               "one byte more is not");
    tap_is_int(query_parse("limit=5\0x", 9, NOW_NS, &query, NULL), BRIG_E_INVALID, "nor a NUL");
    char word[QUERY_WORD_MAX + 16] = "language=";
    memset(word + 9, 'a', QUERY_WORD_MAX - 1);
    check_taken(word);
    word[9 + QUERY_WORD_MAX - 1] = 'a';
    check_refused(word, "127 characters");
    return tap_done();
}
