/* SPDX-License-Identifier: MIT */
/* The list of changes that brig-review reads, and the texts that it shows. */
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "review/changes.h"
#include "review/shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct changes changes = {0};
    struct changes_reader reader;
    struct str out = {0};
    size_t half = size / 2;
    changes_reader_init(&reader, &changes);
    if (changes_reader_feed(&reader, (const char *)data, half) &&
        changes_reader_feed(&reader, (const char *)data + half, size - half) &&
        changes_finish(&reader)) {
        for (size_t i = 0; i < changes.row_count; i++) {
            const struct entry *entry = &changes.entries[changes.rows[i].entry];
            size_t from, to;
            changes_range(&changes, i, &from, &to);
            entry_describe(entry, &out);
            (void)changes_find_row(&changes, changes.layers[entry->layer].root, entry->path);
        }
        (void)changes_filter(&changes, true);
        (void)changes_search(&changes, 0, "a", true);
    }
    out.length = 0;
    shown_append(&out, (const char *)data, size, true);
    for (size_t i = 0; i < out.length; i++)
        if ((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7f)
            __builtin_trap();
    str_done(&out);
    changes_reader_done(&reader);
    changes_done(&changes);
    return 0;
}
