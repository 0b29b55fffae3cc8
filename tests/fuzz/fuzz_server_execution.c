/* SPDX-License-Identifier: MIT */
/* Requests and results from any bytes: what is accepted is the same when it was packed again. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/execution.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct execution_request request;
    struct execution_result result;
    if (execution_request_decode(data, size, &request, NULL) == 0) {
        autostr struct str again = {0};
        expect(!*request.id || execution_id_is_valid(request.id));
        expect(execution_request_encode(&request, &again, NULL) == 0);
        expect(again.length == size && memcmp(again.data, data, size) == 0);
        execution_request_done(&request);
    }
    if (execution_result_decode(data, size, &result, NULL) == 0) {
        autostr struct str again = {0};
        expect(execution_result_encode(&result, &again, NULL) == 0);
        expect(again.length == size && memcmp(again.data, data, size) == 0);
        execution_result_done(&result);
    }
    return 0;
}
