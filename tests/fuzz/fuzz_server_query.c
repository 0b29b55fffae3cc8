/* SPDX-License-Identifier: MIT */
/* Queries for rows, and the JSON that a database holds as text, from any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/history/query.h"
#include "server/history/row.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void fuzz_json(const uint8_t *data, size_t size)
{
    autostr struct str json = {0};
    struct row row;
    row_init(&row, ROW_END);
    const char *text = arena_strndup(&row.arena, (const char *)data, size);
    if (text) {
        row.id = row.status = row.events = row.unenforced = row.files = row.message = text;
        row.duration_us = row.started_ns = row.created_ns = (int64_t)size;
        row_json_one(&row, NULL, &json);
        row_json_list(&row, 1, text, &json);
        expect(!json.failed);
    }
    row_done(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct query query;
    struct brig_error err = {0};
    if (query_parse((const char *)data, size, INT64_C(1700000000000000000), &query, &err) == 0)
        expect(query.limit >= 1 && query.limit <= QUERY_LIMIT_MAX);
    else
        expect(err.message[0] != '\0');
    fuzz_json(data, size);
    return 0;
}
