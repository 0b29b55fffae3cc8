/* SPDX-License-Identifier: MIT */
/* Requests of Piston clients from any bytes: what is accepted keeps to the limits, and the executor's
 * decoder takes it; and ranges of versions. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/api/piston_request.h"
#include "server/config/config.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check(struct execution_request *request)
{
    autostr struct str packed = {0};
    struct execution_request again;
    request->id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    request->request_id = request->client = request->domain = "";
    expect(request->timeout_ms <= 60000 && request->stdin_bytes.length > 0);
    expect(execution_request_encode(request, &packed, NULL) == 0);
    expect(execution_request_decode(packed.data, packed.length, &again, NULL) == 0);
    execution_request_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_config config;
    static json_t *runtimes;
    struct piston_call call;
    struct piston_fault fault;
    if (!runtimes) {
        runtimes = json_loads("[{\"name\":\"c\",\"version\":\"1.2\",\"available\":true}]", 0, NULL);
        config.runtimes[0] = (struct runtime){.name = "c",
                                              .compile = {"cc"},
                                              .file_name = "main.c",
                                              .limits = {256, 50, 100, 100},
                                              .max_limits = {1024, 500, 1024, 400},
                                              .max_timeout_ms = 60000};
        config.runtime_count = 1;
    }
    autostr struct str text = {0};
    str_append_bytes(&text, data, size);
    int has = text.data ? piston_range_has(text.data, "1.2.3") : 1;
    expect(has >= -1 && has <= 1);
    json_t *body = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (body && piston_read(body, runtimes, &config, size % 2, &call, &fault)) {
        check(&call.request);
        piston_call_done(&call);
    } else if (body) {
        expect(fault.status == 500 || (fault.status >= 400 && fault.message[0]));
    }
    json_decref(body);
    return 0;
}
