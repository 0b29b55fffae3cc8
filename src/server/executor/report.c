/* SPDX-License-Identifier: MIT */
/* What GET /runtimes and GET /node say: the runtimes, and what this machine does not enforce. */
#include <brig/brig.h>

#include "base/json.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

static int make_runtimes(struct executor *executor, struct str *out)
{
    struct json json;
    json_init(&json, out);
    json_open_object(&json, NULL);
    json_open_array(&json, "runtimes");
    for (size_t i = 0; i < executor->config->runtime_count; i++)
        runtime_json(&executor->config->runtimes[i], executor->versions.known[i].text, &json);
    json_close_array(&json);
    if (executor->unenforced.length > 0) /* known after the first run */
        str_concat(out, ",\"unenforced\":", executor->unenforced.data);
    json_close_object(&json);
    return out->failed ? BRIG_E_NOMEM : 0;
}

void executor_tell_runtimes(struct executor *executor, bool always)
{
    struct str text = {0};
    if (make_runtimes(executor, &text) < 0 ||
        (!always && str_equal(text.data, executor->runtimes.data))) {
        str_done(&text);
        return;
    }
    str_done(&executor->runtimes);
    executor->runtimes = text;
    executor_tell_http(executor, executor->http_processes, MESSAGE_RUNTIMES, 0, text.data,
                       text.length);
}

void executor_note_unenforced(struct executor *executor, const char *const *texts, size_t count)
{
    struct str list = {0};
    struct json json;
    json_init(&json, &list);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < count; i++)
        json_text(&json, NULL, texts[i]);
    json_close_array(&json);
    if (list.failed || str_equal(list.data, executor->unenforced.data)) {
        str_done(&list);
        return;
    }
    str_done(&executor->unenforced);
    executor->unenforced = list;
    executor_tell_runtimes(executor, false);
}
