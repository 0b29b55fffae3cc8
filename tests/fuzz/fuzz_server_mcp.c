/* SPDX-License-Identifier: MIT */
/* Bodies and headers of POST /mcp from any bytes: what is accepted makes bodies that are JSON, and
 * what is not has an error that can be sent. The first lines are headers. */
#include <stdlib.h>
#include <string.h>

#include "rpc/tool.h"
#include "server/api/mcp.h"
#include "server/config/config.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void drop(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    expect(!value || text);
    free(text);
    json_decref(value);
}

/* Takes one line; NULL if it is empty. */
static const char *take_line(char **at)
{
    char *line = strsep(at, "\n");
    return line && *line ? line : NULL;
}

static void call(const struct server_config *config, const struct rpc_request *request)
{
    static json_t *tools; /* parsed once: it takes longer than an input */
    const char *name = json_string_value(json_object_get(request->params, "name")), *message = NULL;
    const json_t *arguments = json_object_get(request->params, "arguments");
    char *fault = NULL;
    if (!tools)
        tools = mcp_tool_list(config, NULL);
    if (!name || !mcp_tool_find(name) || !json_is_object(arguments))
        return;
    if (!tool_check(tools, name, arguments, &fault)) {
        expect(fault);
        free(fault);
        return;
    }
    if (strncmp(name, "run", 3) == 0) {
        drop(mcp_execution_body(arguments));
        json_t *body = mcp_command_body(config, arguments, &message);
        expect(body || message);
        drop(body);
    }
    drop(mcp_sandbox_body(arguments));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_config config;
    config.runtimes[0] = (struct runtime){.name = "python"};
    config.runtime_count = 1;
    char *copy = malloc(size + 1), *at = copy;
    struct rpc_request request;
    struct rpc_fault fault = {0};
    unsigned status;
    memcpy(copy, data, size);
    copy[size] = '\0';
    const struct mcp_headers headers = {take_line(&at), take_line(&at), take_line(&at),
                                        take_line(&at)};
    const char *text = at ? at : "";
    bool good = rpc_read(text, size - (size_t)(at ? at - copy : (ptrdiff_t)size), &request, &fault);
    if (good && request.method && mcp_check(&request, &headers, &fault, &status))
        call(&config, &request);
    else if (fault.code != RPC_OK)
        drop(rpc_error(request.id, &fault));
    rpc_request_done(&request);
    free(copy);
    return 0;
}
