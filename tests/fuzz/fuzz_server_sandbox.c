/* SPDX-License-Identifier: MIT */
/* Requests about sandboxes, their answers and the bodies of HTTP requests from any bytes: what is
 * accepted keeps to the limits, and is accepted again when it was packed. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/api/sandbox_request.h"
#include "server/sandbox.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_request(const struct sandbox_request *request)
{
    expect(request->operation < SANDBOX_OPERATIONS_ && request->mode <= 0777);
    expect(request->depth <= SANDBOX_DEPTH_MAX && request->length <= SANDBOX_FILE_MAX);
    expect(request->arg_count <= EXECUTION_ARGS_MAX && request->signal <= 64);
    expect(!request->path || strlen(request->path) <= SANDBOX_PATH_MAX);
}

static void pack(const struct sandbox_request *request)
{
    autostr struct str again = {0};
    struct sandbox_request read;
    expect(sandbox_request_encode(request, &again, NULL) == 0);
    expect(sandbox_request_decode(again.data, again.length, &read, NULL) == 0);
    sandbox_request_done(&read);
}

static void read_body(enum sandbox_operation operation, const char *text, size_t size)
{
    struct request_fault fault;
    /* What the HTTP process adds to every request. */
    struct sandbox_request request = {.operation = operation,
                                      .request_id = "",
                                      .client = "",
                                      .domain = "",
                                      .name = "",
                                      .id = "f47ac10b-58cc-4372-a567-0e02b2c3d479"};
    if (sandbox_request_read(text, size, &request, &fault)) {
        check_request(&request);
        pack(&request);
    } else {
        expect(fault.error != ERROR_NONE && fault.message[0]);
    }
    sandbox_request_done(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sandbox_request request;
    struct sandbox_answer answer;
    if (sandbox_request_decode(data, size, &request, NULL) == 0) {
        check_request(&request);
        pack(&request);
        sandbox_request_done(&request);
    }
    if (sandbox_answer_decode(data, size, &answer, NULL) == 0) {
        expect(answer.entry_count <= SANDBOX_LIST_MAX && answer.fault < SANDBOX_FAULTS_);
        sandbox_answer_done(&answer);
    }
    if (size > 0)
        read_body((enum sandbox_operation)(data[0] % SANDBOX_OPERATIONS_), (const char *)data + 1,
                  size - 1);
    return 0;
}
