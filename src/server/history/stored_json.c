/* SPDX-License-Identifier: MIT */
/* Reading JSON that was stored as text. */
#include "server/history/stored_json.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"

bool stored_json_items(const char *text, struct str *out)
{
    bool any = false;
    json_t *array = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(array); i++) {
        autofree char *item = json_dumps(json_array_get(array, i), JSON_COMPACT | JSON_ENCODE_ANY);
        if (!item)
            continue;
        str_append(out, any ? "," : "");
        str_append(out, item);
        any = true;
    }
    json_decref(array);
    return any;
}
