/* SPDX-License-Identifier: MIT */
/* Records of the spool, their rows, and queries for rows, from any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/history/query.h"
#include "server/history/row.h"
#include "server/history/row_json.h"
#include "server/history/spool.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* A row that is taken is written as the same bytes. */
static void fuzz_row(const uint8_t *data, size_t size)
{
    struct row row;
    autostr struct str again = {0}, json = {0};
    if (row_decode(data, size, &row, NULL) < 0)
        return;
    expect(row_encode(&row, &again, NULL) == 0);
    expect(again.length == size && memcmp(again.data, data, size) == 0);
    row_json_one(&row, &json);
    row_json_list(&row, 1, NULL, &json);
    expect(!json.failed);
    row_done(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spool_record record;
    struct query query;
    struct brig_error err = {0};
    long taken = spool_record_parse(data, size, &record);
    expect(taken <= (long)size);
    if (taken > 0)
        fuzz_row((const uint8_t *)record.bytes, record.length);
    fuzz_row(data, size);
    unsigned char head[SPOOL_HEAD_BYTES];
    if (size <= 4096) {
        unsigned char whole[SPOOL_HEAD_BYTES + 4096];
        spool_record_head(data, size, head);
        memcpy(whole, head, sizeof head);
        memcpy(whole + sizeof head, data, size);
        expect(spool_record_parse(whole, sizeof head + size, &record) ==
               (long)(sizeof head + size));
        expect(spool_record_parse(whole, sizeof head + size - 1, &record) <= 0);
    }
    if (query_parse((const char *)data, size, INT64_C(1700000000000000000), &query, &err) == 0)
        expect(query.limit >= 1 && query.limit <= QUERY_LIMIT_MAX);
    else
        expect(err.message[0] != '\0');
    return 0;
}
