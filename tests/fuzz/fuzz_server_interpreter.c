/* SPDX-License-Identifier: MIT */
/* Lines of interpreters from any bytes: what the executor reads of them, and what the http process
 * takes as results. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/api/e2b_request.h"
#include "server/api/run_line.h"
#include "server/executor/interpreter_line.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct interpreter_line line;
    struct run_line run;
    autostr struct str out = {0};
    const char *text = (const char *)data;
    if (interpreter_line_read(text, size, &line))
        expect(strlen(line.name) <= INTERPRETER_NAME_MAX && line.word <= INTERPRETER_DONE);
    if (run_line_read(text, size, &run)) {
        expect(run.is_error ? run.name && run.value && run.traceback
                            : json_object_size(run.data) <= RUN_FORMS_MAX);
        run_line_done(&run);
    }
    json_t *body = json_loadb(text, size, 0, NULL);
    struct sandbox_request request = {0}, other = {0};
    const char *context;
    char message[E2B_MESSAGE_MAX];
    if (body && e2b_read_code(body, &request, &context, message))
        expect(!context != !request.language && request.bytes.data);
    (void)e2b_read_context(body, &other, message);
    sandbox_request_done(&request);
    sandbox_request_done(&other);
    json_decref(body);
    interpreter_line_write(&out, 1, NULL, 0, text, size);
    expect(out.failed || memchr(out.data, '\n', out.length) == out.data + out.length - 1);
    return 0;
}
