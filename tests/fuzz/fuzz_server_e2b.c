/* SPDX-License-Identifier: MIT */
/* What E2B's clients send: paths, filters and JSON, through every reader. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/config/config.h"

static void read_all(const json_t *body, const struct server_config *config)
{
    typedef bool reader(const json_t *, struct sandbox_request *, char[E2B_MESSAGE_MAX]);
    static reader *const readers[] = {e2b_read_start, e2b_read_selector, e2b_read_input,
                                      e2b_read_signal, e2b_read_size};
    char message[E2B_MESSAGE_MAX];
    uint64_t timeout_ms = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++) {
        struct sandbox_request request = {0};
        (void)readers[i](body, &request, message);
        sandbox_request_done(&request);
    }
    struct sandbox_request request = {0};
    (void)e2b_read_create(body, config, &request, message);
    sandbox_request_done(&request);
    (void)e2b_read_timeout(body, &timeout_ms, message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_config config;
    static bool loaded;
    static const char *const env[] = {NULL};
    if (!loaded && config_defaults(env, &config, NULL) < 0)
        return 0;
    loaded = true;
    autofree char *text = strndup((const char *)data, size);
    char id[EXECUTION_ID_LENGTH + 1];
    struct sandbox_request request = {0};
    if (!text)
        return 0;
    (void)e2b_find(size % 2 ? E2B_API : E2B_ENVD, "POST", text, id);
    (void)e2b_read_filter(text, &request);
    sandbox_request_done(&request);
    json_t *body = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (body)
        read_all(body, &config);
    json_decref(body);
    return 0;
}
