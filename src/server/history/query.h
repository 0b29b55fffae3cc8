/* SPDX-License-Identifier: MIT */
/* What a list of executions is asked for by: the query part of the URL, as it came.
 *
 *     language=python&status=timeout&since=2026-01-31T12:00:00Z&limit=50&cursor=…
 *
 * since and until are times of RFC 3339, seconds since 1970, or durations back from now ("2h"); cursor
 * is the "next" of the answer before; domain is for the http process alone. Parts without a value are left
 * out of account; unknown and doubled ones are refused by name. */
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
    /* Rows that are older than this one alone; 0: from the newest. */
    int64_t before_ns;
    char before_id[QUERY_CURSOR_MAX];
};

/* `now_ns` is for durations. Pure. */
int query_parse(const char *text, size_t length, int64_t now_ns, struct query *ret_query,
                struct brig_error *err);
/* The cursor for the rows after this one. */
void query_cursor(const struct row *row, char ret_text[QUERY_CURSOR_MAX]);
