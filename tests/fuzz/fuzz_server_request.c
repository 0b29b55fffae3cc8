/* SPDX-License-Identifier: MIT */
/* Bodies of POST /execute from any bytes: what is accepted keeps to the limits, and the executor's
 * decoder takes it. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/config/config.h"
#include "server/http/request.h"

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
    expect(request->code.length > 0 && request->code.length <= EXECUTION_CODE_MAX);
    expect(request->timeout_ms <= 60000);
    expect(execution_request_encode(request, &packed, NULL) == 0);
    expect(execution_request_decode(packed.data, packed.length, &again, NULL) == 0);
    execution_request_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_config config;
    struct execution_request request;
    struct request_fault fault;
    const struct runtime *runtime = NULL;
    config.runtimes[0] = (struct runtime){.name = "python",
                                          .file_name = "main.py",
                                          .limits = {256, 50, 100, 100},
                                          .max_limits = {1024, 500, 1024, 400},
                                          .max_timeout_ms = 60000};
    config.runtime_count = 1;
    config.sandbox.allowed_workdir_roots = (struct config_list){.items = {"/srv"}, .count = 1};
    if (request_read((const char *)data, size, &config, &config.sandbox.allowed_workdir_roots,
                     &request, &runtime, &fault)) {
        check(&request);
        execution_request_done(&request);
    } else {
        expect(fault.error != ERROR_NONE && fault.message[0]);
    }
    return 0;
}
