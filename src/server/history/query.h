/* SPDX-License-Identifier: MIT */
/* Parses a query for executions: the query part of the URL, still encoded.
 *
 *     language=python&status=timeout&since=2026-01-31T12:00:00Z&limit=50&cursor=…
 *
 * since and until are RFC 3339 times, seconds since 1970, or durations before now ("2h"). cursor is
 * "next" of the previous answer. domain is set by the http process only. Parameters without a value
 * are ignored; unknown and repeated ones are refused by name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct brig_error;
struct row;

#define QUERY_TEXT_MAX 2048
#define QUERY_WORD_MAX 128
#define QUERY_LIMIT_DEFAULT 50
#define QUERY_LIMIT_MAX 500
#define QUERY_CURSOR_MAX 64

struct query {
    char language[QUERY_WORD_MAX]; /* "": any */
    char status[QUERY_WORD_MAX];
    char domain[QUERY_WORD_MAX];
    int64_t since_ns, until_ns; /* since 1970; 0 and INT64_MAX: any */
    uint64_t limit;
    /* Only rows older than this one; 0: start with the newest. */
    int64_t before_ns;
    char before_id[QUERY_CURSOR_MAX];
};

/* `now_ns` is for durations. Pure. */
int query_parse(const char *text, size_t length, int64_t now_ns, struct query *ret_query,
                struct brig_error *err);
/* Makes the cursor for the rows after this one. */
void query_cursor(const struct row *row, char ret_text[QUERY_CURSOR_MAX]);
