/* SPDX-License-Identifier: MIT */
/* The tables of routes, query parameters and errors, and searching them. */
#include "server/http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/contexts.h"
#include "server/api/e2b.h"
#include "server/api/judge0.h"
#include "server/api/mcp.h"
#include "server/api/piston.h"
#include "server/api/ports.h"
#include "server/api/sandboxes.h"
#include "server/config/config.h"
#include "server/history/query.h"
#include "server/http/async.h"
#include "server/http/http.h"
#include "server/http/web.h"

#define ID "{id}"
#define NUMBER "{pid}"

bool route_has_form(const char *pattern, const char *path, const char **ret_id,
                    const char **ret_number)
{
    *ret_id = *ret_number = NULL;
    if (strcmp(pattern, "/") == 0) /* also the files that the page consists of */
        return web_has(path);
    while (*pattern && *path) {
        const char **part = str_starts_with(pattern, ID)       ? ret_id
                            : str_starts_with(pattern, NUMBER) ? ret_number
                                                               : NULL;
        if (part) {
            *part = path;
            pattern += part == ret_id ? strlen(ID) : strlen(NUMBER);
            path += strcspn(path, "/");
            if (path == *part)
                return false;
        } else if (*pattern == '*') {
            return true;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return (!*pattern || strcmp(pattern, "*") == 0) && !*path;
}

/* Copies the part at {id}; false if it is not an id. */
static bool copy_id(const char *id, char ret_id[EXECUTION_ID_LENGTH + 1])
{
    char copy[EXECUTION_ID_LENGTH + 2] = "";
    size_t length = id ? strcspn(id, "/") : 0;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)length, id ? id : "");
    if (id && !execution_id_is_valid(copy))
        return false;
    memcpy(ret_id, copy, EXECUTION_ID_LENGTH + 1);
    return true;
}

uint64_t route_number(const struct route *route, const char *path)
{
    const char *id, *number;
    char copy[24] = "";
    uint64_t value = 0;
    if (!route_has_form(route->path, path, &id, &number) || !number)
        return 0;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)strcspn(number, "/"), number);
    return parse_uint(copy, UINT64_MAX, 0, &value, NULL) < 0 ? 0 : value;
}

static bool has_method(const struct route *route, const char *method)
{
    if (*route->method == '*')
        return strcmp(method, "OPTIONS") != 0;
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

enum route_match route_find(const char *method, const char *path, const struct route **ret_route,
                            char ret_id[EXECUTION_ID_LENGTH + 1])
{
    bool known = false;
    for (size_t i = 0; i < route_count; i++) {
        const char *id, *number;
        if (!route_has_form(routes[i].path, path, &id, &number))
            continue;
        known = true;
        if (!has_method(&routes[i], method))
            continue;
        *ret_route = &routes[i];
        return copy_id(id, ret_id) ? ROUTE_FOUND : ROUTE_BAD_ID;
    }
    if (!known)
        return ROUTE_NO_PATH;
    return strcmp(method, "OPTIONS") == 0 ? ROUTE_OPTIONS : ROUTE_NO_METHOD;
}

bool route_methods(const char *path, char ret_methods[ROUTE_METHODS_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < route_count; i++) {
        const char *id, *number;
        if (!route_has_form(routes[i].path, path, &id, &number))
            continue;
        bool get = strcmp(routes[i].method, "GET") == 0;
        const char *method = *routes[i].method == '*' ? "GET, POST, PUT, DELETE" : routes[i].method;
        used += (size_t)snprintf(ret_methods + used, ROUTE_METHODS_MAX - used, "%s, %s", method,
                                 get ? "HEAD, " : "");
        if (*routes[i].method == '*')
            break;
    }
    if (used == 0)
        return false;
    (void)snprintf(ret_methods + used, ROUTE_METHODS_MAX - used, "OPTIONS");
    return true;
}

/* ---- The tables ---- */

#define PROBE (ROUTE_OPEN | ROUTE_UNCOUNTED | ROUTE_PROBE)

/* Rows leave out what they do not have. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

const struct route routes[] = {
    {"POST", "/execute", ROUTE_BODY, execute_begin, "execute", "Result",
     "Run code and get the result back",
     "Answers when the run has ended, with status 200 whatever became of the code: `status` and\n"
     "`exit_code` tell. A client that closes its connection ends the run."},
    {"POST", "/execute/stream", ROUTE_BODY | ROUTE_STREAM, execute_begin, "executeStream", NULL,
     "Run code and get its output as it comes",
     "The same request; the answer is a stream of server-sent events:\n\n"
     "- `stage`: of a compiled language, `{\"stage\": \"compile\"}`, then `{\"stage\": \"run\"}`;\n"
     "  output that follows is of this stage.\n"
     "- `stdout`, `stderr`: a piece of output. Line ends in it (`\\n`, `\\r`, `\\r\\n`) come as\n"
     "  separate `data:` lines, which a reader joins with `\\n`; bytes that are no UTF-8 come as\n"
     "  U+FFFD. No output can begin another event.\n"
     "- `done`: the result as below, without `output` and `stderr`; the last event.\n"
     "- `error`: an error object; the last event.\n\n"
     "A comment comes where nothing else does for 15 seconds. Output is kept for a slow reader up "
     "to\n"
     "the 1 MiB and 256 KiB that are kept of it at all; what a reader lost beyond that, or for "
     "lack\n"
     "of memory, is marked in `truncated`. A slow reader never slows another, nor the run. One "
     "that\n"
     "reads nothing for `server.idle_timeout`, or goes away, ends the run."},
    {"POST", "/executions", ROUTE_BODY | ROUTE_ACCEPTS, async_submit, "submitExecution", "Queued",
     "Queue code to be run",
     "The request of `/execute`, with `priority` and `callback`. Answers 202 with the id as soon "
     "as "
     "it is\nstored, so that it survives a restart of the server. It then runs exactly once, or "
     "never if it is\nended before; one that ran when the server died has the status `lost`. Its "
     "whole result, with the\nreturned files, is kept for `queue.keep`. Executions with a higher "
     "`priority` run first, those of the\nsame in their order."},
    {"GET", "/executions", 0, pages_list, "listExecutions", "ExecutionList",
     "List executions, the newest first",
     "Needs a history (`database`). With API keys, those that were run with the same key."},
    {"GET", "/executions/{id}", 0, async_get, "getExecution", "Execution",
     "Everything about one execution",
     "While it is queued, `position` is its place in the queue; while it runs, `output` and "
     "`stderr` are\nwhat it has written so far. `callback` has the `state` of the callback: "
     "`waiting` for the end,\n`pending`, `calling`, `delivered` or `failed`."},
    {"DELETE", "/executions/{id}", 0, pages_kill, "killExecution", "Killed",
     "End a running or queued execution",
     "202 if it was queued or running: it is being ended. 404 if there is no such or it has "
     "ended."},
    {"POST", "/sandboxes", ROUTE_BODY | ROUTE_CREATES, sandboxes_create, "createSandbox", "Sandbox",
     "Create a sandbox: a jail that stays, for many commands",
     "It has a private /workspace, /tmp and /output in memory, and ends at its deadline.",
     "SandboxRequest"},
    {"GET", "/sandboxes", 0, sandboxes_list, "listSandboxes", "SandboxList",
     "List sandboxes, the newest first",
     "With API keys, those that were created with the same key."},
    {"GET", "/sandboxes/{id}", 0, sandboxes_get, "getSandbox", "Sandbox",
     "Everything about one sandbox",
     "404 if it has ended. 410 if it ended because the executor was started again."},
    {"DELETE", "/sandboxes/{id}", ROUTE_EMPTY, sandboxes_end, "endSandbox", NULL, "End a sandbox",
     ""},
    {"POST", "/sandboxes/{id}/timeout", ROUTE_BODY, sandboxes_timeout, "setSandboxTimeout",
     "Sandbox", "Set the deadline anew", "", "TimeoutRequest"},
    {"POST", "/sandboxes/{id}/pause", 0, sandboxes_pause, "pauseSandbox", "Sandbox",
     "Stop all processes of a sandbox",
     "They keep their memory. The deadline and the time limits of commands stand still. After\n"
     "`sandboxes.max_paused` the sandbox is ended."},
    {"POST", "/sandboxes/{id}/resume", 0, sandboxes_resume, "resumeSandbox", "Sandbox",
     "Let them go on", ""},
    {"POST", "/sandboxes/{id}/fork", ROUTE_BODY | ROUTE_CREATES, sandboxes_fork, "forkSandbox",
     "Sandbox", "Create a sandbox like this one, with a copy of its files",
     "The files of /workspace, /tmp and /output are copied as they are at the time; processes are\n"
     "not. The time is that of the bytes. Answers when everything is copied, at most after a\n"
     "minute.",
     "ForkRequest"},
    {"PUT", "/sandboxes/{id}/network", ROUTE_BODY, sandboxes_network, "setSandboxNetwork",
     "Sandbox", "Change what a sandbox can reach",
     "The rules replace those before; connections that they do not allow are ended. 409 if the\n"
     "sandbox was created without a network. Addresses without a name can be reached only if it\n"
     "was created with the whole network.",
     "NetworkRequest"},
    {"GET", "/sandboxes/{id}/metrics", 0, sandboxes_metrics, "getSandboxMetrics", "SandboxMetrics",
     "What a sandbox uses", "0 where it is not counted on this machine."},
    {"POST", "/sandboxes/{id}/commands", ROUTE_BODY, sandboxes_start, "startCommand", "Command",
     "Start a command in a sandbox",
     "Answers when the command has ended; with `background` at once; with `stream=1` with\n"
     "server-sent events: `start` (the command), `stdout`, `stderr` or `pty` (output, as for\n"
     "`/execute/stream`), `gap` (output was lost, because the reader was slow or it is not kept),\n"
     "and `end` (the command and its result) or `error`. A command goes on when its client\n"
     "disconnects. Processes that it leaves behind end with it. Each command is an execution\n"
     "with an id in the history.",
     "CommandRequest"},
    {"GET", "/sandboxes/{id}/commands", 0, sandboxes_commands, "listCommands", "CommandList",
     "List the commands of a sandbox", "Those that run, and the last 64 that have ended."},
    {"GET", "/sandboxes/{id}/commands/{pid}", 0, sandboxes_command, "getCommand", "Command",
     "Connect to a command",
     "Its state and what is kept of its output, the newest `sandboxes.output_kept`; with\n"
     "`stream=1` as events, which then go on."},
    {"DELETE", "/sandboxes/{id}/commands/{pid}", ROUTE_EMPTY, sandboxes_kill, "killCommand", NULL,
     "End a command with all its processes", ""},
    {"POST", "/sandboxes/{id}/commands/{pid}/stdin", ROUTE_BODY | ROUTE_EMPTY, sandboxes_input,
     "sendInput", NULL, "Send input to a command that was started with `keep_stdin` or `pty`", "",
     "InputRequest"},
    {"POST", "/sandboxes/{id}/commands/{pid}/signal", ROUTE_BODY | ROUTE_EMPTY, sandboxes_signal,
     "sendSignal", NULL, "Send a signal to a command", "", "SignalRequest"},
    {"POST", "/sandboxes/{id}/commands/{pid}/resize", ROUTE_BODY | ROUTE_EMPTY, sandboxes_resize,
     "resizeTerminal", NULL, "Set the size of a command's terminal", "", "ResizeRequest"},
    {"GET", "/sandboxes/{id}/files", 0, sandboxes_read, "readFile", NULL,
     "Read a file of a sandbox, or list a directory",
     "The bytes as `application/octet-stream`, at most 24 MiB at once; with `list=1` JSON with\n"
     "at most 10000 `entries`, or 16 MiB of paths. Files are opened in the sandbox, by a program\n"
     "with the rights of its commands."},
    {"PUT", "/sandboxes/{id}/files", ROUTE_BYTES | ROUTE_EMPTY, sandboxes_write, "writeFile", NULL,
     "Write a file in a sandbox",
     "The body is the content, with `Content-Type: application/octet-stream`. Directories above\n"
     "it are made."},
    {"DELETE", "/sandboxes/{id}/files", ROUTE_EMPTY, sandboxes_remove, "removeFile", NULL,
     "Remove a file or a directory with everything in it", ""},
    {"GET", "/sandboxes/{id}/files/stat", 0, sandboxes_stat, "statFile", "FileEntry",
     "What a file is", "Of a symbolic link the link itself."},
    {"GET", "/sandboxes/{id}/files/watch", ROUTE_STREAM, sandboxes_watch, "watchFiles", NULL,
     "Get changes in a directory as they happen",
     "Server-sent events: `start`, then `change` with `{\"type\", \"name\"}`: `create`, `write`,\n"
     "`remove`, `rename`, `chmod`, and `overflow` where changes were lost. A slow reader loses\n"
     "changes."},
    {"POST", "/sandboxes/{id}/files/move", ROUTE_BODY | ROUTE_EMPTY, sandboxes_move, "moveFile",
     NULL, "Move a file", "", "MoveRequest"},
    {"POST", "/sandboxes/{id}/files/mkdir", ROUTE_BODY, sandboxes_make, "makeDirectory", "Created",
     "Make a directory, and those above it", "", "DirectoryRequest"},
    {"POST", "/sandboxes/{id}/contexts", ROUTE_BODY | ROUTE_CREATES, contexts_create,
     "createContext", "Context",
     "Create a context: an interpreter that keeps its state between runs of code", "",
     "ContextRequest"},
    {"GET", "/sandboxes/{id}/contexts", 0, contexts_list, "listContexts", "ContextList",
     "List the contexts of a sandbox", "Also the default ones that were used."},
    {"GET", "/sandboxes/{id}/contexts/{pid}", 0, contexts_get, "getContext", "Context",
     "What a context is, and whether it runs something", ""},
    {"DELETE", "/sandboxes/{id}/contexts/{pid}", ROUTE_EMPTY, contexts_end, "endContext", NULL,
     "End a context with its processes", ""},
    {"POST", "/sandboxes/{id}/contexts/{pid}/restart", 0, contexts_restart, "restartContext",
     "Context", "Begin again with an empty state", "What runs in the context is ended."},
    {"POST", "/sandboxes/{id}/contexts/{pid}/interrupt", ROUTE_EMPTY, contexts_interrupt,
     "interruptContext", NULL, "Interrupt what runs in a context, which keeps its state",
     "Like Ctrl-C in a terminal: the processes of the context get SIGINT."},
    {"POST", "/sandboxes/{id}/contexts/{pid}/run", ROUTE_BODY, contexts_run, "runInContext", "Run",
     "Run code in a context",
     "Runs in one context take turns. Answers when the code has ended; with `stream=1` with\n"
     "server-sent events: `start` (the run), `stdout`, `stderr` (output, as for\n"
     "`/execute/stream`), `result` (`main`, `data`), `exception` (`name`, `value`,\n"
     "`traceback`), `gap` (output was lost), and `end` (the run) or `error`. A result is the\n"
     "value of the last expression (`main`), or what `display()` was given: `data` has it as\n"
     "`text/plain` and in other forms, by MIME type; images are in base64. A client that closes\n"
     "its connection interrupts the run. Each run is an execution with an id in the history.",
     "RunRequest"},
    {"POST", "/sandboxes/{id}/run", ROUTE_BODY, contexts_run, "runInSandbox", "Run",
     "Run code in the default context of a language",
     "The same; the context is made when it is used first.", "RunRequest"},
    {"*", "/sandboxes/{id}/ports/{pid}/*", ROUTE_FOREIGN, ports_handle, "port", NULL,
     "A request to a program in a sandbox that listens on a port of its loopback",
     "Any method but OPTIONS. The slash after the port is needed; what follows is the path that\n"
     "the program sees. The request is passed on as HTTP/1.0 without API key and cookies; the\n"
     "answer comes as the program writes it, without cookies. See\n"
     "[server.md](server.md#sandboxes)."},
    {"POST", "/mcp", ROUTE_BODY, mcp_handle, "mcp", "object",
     "The Model Context Protocol: run code from a model",
     "JSON-RPC, one message each, of the revisions 2024-11-05 to 2026-07-28; see docs/mcp.md. The\n"
     "answer is JSON, or server-sent events if the call asks for progress. A client that closes\n"
     "its connection ends the run.",
     "object", &mcp_dialect},
    {"GET", "/health", PROBE, pages_health, "health", "Health",
     "Whether the server works, in detail",
     "200 while it can run code, 503 while it cannot or is shutting down."},
    {"GET", "/livez", PROBE, pages_livez, "livez", "Probe", "Whether the server answers at all",
     "200 as long as there is an answer. Restart the server where there is none."},
    {"GET", "/readyz", PROBE, pages_readyz, "readyz", "Probe",
     "Whether to send requests to the server",
     "200 while executions are taken. 503 while it starts, from the moment it is told to stop, "
     "and\n"
     "while the history cannot take more rows; `reason` says why."},
    {"GET", "/metrics", ROUTE_OPEN | ROUTE_UNCOUNTED, pages_metrics, "metrics", NULL,
     "Numbers for Prometheus", ""},
    {"GET", "/runtimes", 0, pages_runtimes, "listRuntimes", "Runtimes",
     "What can be run, and what is missing for it", ""},
    {"GET", "/config", 0, pages_config, "config", NULL, "The configuration in force",
     "YAML, each value with its origin, without secrets. With API keys only if\n"
     "`server.show_config` is set."},
    {"GET", "/", ROUTE_OPEN | ROUTE_UNCOUNTED | ROUTE_PAGE, web_answer, "page", NULL,
     "The page for browsers",
     "It consists of this file and of those below `/web/`, and calls this interface with the API\n"
     "key that the user types."},
    {"GET", "/node", 0, pages_node, "node", "Node", "What this server is, and how full it is",
     "For a scheduler with several servers: version, capacity, load from 0 to 1, runtimes, "
     "uptime."},
    {"GET", "/usage", 0, async_usage, "usage", "Usage", "What executions used, by day and API key",
     "With API keys, that of the same key; else of all. Needs a history. Days are in UTC; the last "
     "400\nare kept."},
    {"GET", "/openapi.json", ROUTE_OPEN, pages_openapi, "openapi", "object",
     "This interface for programs", ""},
    /* Judge0: "batch" and "all" stand before the routes with an id. */
    {"POST", "/judge0/submissions", ROUTE_BODY | ROUTE_CREATES | ROUTE_FORM, judge0_create,
     "judge0Create", "Judge0Submission", "Create a submission of Judge0",
     "Answers with the `token`; with `wait=true` when it has ended, with the submission. Wrong\n"
     "fields are answered with 422 and an object with an array of messages for each.",
     "Judge0Request", .dialect = &judge0_dialect},
    {"GET", "/judge0/submissions", 0, judge0_list, "judge0List", "Judge0List",
     "List submissions of Judge0, the newest first",
     "Those of the API key, which has to be sent as `X-Auth-Token` and as `X-Auth-User`; 403\n"
     "else.",
     .dialect = &judge0_dialect},
    {"POST", "/judge0/submissions/batch", ROUTE_BODY | ROUTE_CREATES, judge0_create_batch,
     "judge0CreateBatch", "Judge0Array", "Create up to 20 submissions",
     "Answers with an array of objects with a `token`, or with the errors of the submission.",
     "Judge0Batch", .dialect = &judge0_dialect},
    {"GET", "/judge0/submissions/batch", 0, judge0_get_batch, "judge0GetBatch", "Judge0List",
     "Get up to 20 submissions", "`null` for one that does not exist.", .dialect = &judge0_dialect},
    {"GET", "/judge0/submissions/{id}", 0, judge0_get, "judge0Get", "Judge0Submission",
     "Get a submission", "It is kept for `queue.keep`.", .dialect = &judge0_dialect},
    {"DELETE", "/judge0/submissions/{id}", 0, judge0_delete, "judge0Delete", "Judge0Submission",
     "Remove a submission that has ended",
     "With `judge0.allow_delete`, and the API key as `X-Auth-User`.", .dialect = &judge0_dialect},
    {"GET", "/judge0/languages", 0, judge0_languages, "judge0Languages", "Judge0Array",
     "Languages of Judge0 that are installed", "An array of objects with `id` and `name`.",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/languages/all", 0, judge0_all_languages, "judge0AllLanguages", "Judge0Array",
     "All languages of Judge0", "Those that are not installed have `is_archived`.",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/languages/{pid}", 0, judge0_language, "judge0Language", "object",
     "One language of Judge0", "", .dialect = &judge0_dialect},
    {"GET", "/judge0/statuses", 0, judge0_statuses, "judge0Statuses", "Judge0Array",
     "Statuses of submissions", "An array of objects with `id` and `description`.",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/config_info", 0, judge0_config_info, "judge0Config", "object",
     "Limits of submissions", "", .dialect = &judge0_dialect},
    {"GET", "/judge0/about", 0, judge0_about, "judge0About", "object", "The version of Judge0",
     "It is 1.13.1.", .dialect = &judge0_dialect},
    {"GET", "/judge0/version", 0, judge0_version, "judge0Version", NULL, "The same as text", "",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/license", 0, judge0_license, "judge0License", NULL, "The license", "",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/isolate", 0, judge0_isolate, "judge0Isolate", NULL, "What runs the code", "",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/system_info", 0, judge0_system_info, "judge0System", "object", "Empty", "",
     .dialect = &judge0_dialect},
    {"GET", "/judge0/statistics", 0, judge0_statistics, "judge0Statistics", "object",
     "How many submissions are kept", "", .dialect = &judge0_dialect},
    {"GET", "/judge0/workers", 0, judge0_workers, "judge0Workers", "Judge0Array",
     "How full the queue is", "", .dialect = &judge0_dialect},
    {"POST", "/judge0/authenticate", 0, judge0_authenticate, "judge0Authenticate", NULL,
     "Whether the API key is known", "200 or 401.", .dialect = &judge0_dialect},
    {"POST", "/judge0/authorize", 0, judge0_authorize, "judge0Authorize", NULL,
     "Whether `X-Auth-User` is the API key", "200 or 403.", .dialect = &judge0_dialect},
    {"*", E2B_SANDBOX_PATH "/*", ROUTE_OPEN | ROUTE_FOREIGN, e2b_handle, "e2bSandbox", NULL,
     "A sandbox for clients of E2B", "", .dialect = &e2b_dialect, .admit = e2b_admit},
    {"*", E2B_PATH "/*", ROUTE_FOREIGN, e2b_handle, "e2b", NULL, "The interface of E2B", "",
     .dialect = &e2b_dialect},
    {"*", E2B_HOST "/*", ROUTE_OPEN | ROUTE_FOREIGN, e2b_handle, "e2bHost", NULL,
     "A sandbox that has a name of its own", "", .dialect = &e2b_dialect, .admit = e2b_admit},
    {"*", PISTON_PATH "/*", ROUTE_FOREIGN, piston_handle, "piston", NULL, "The interface of Piston",
     "", .dialect = &piston_dialect},
};
const size_t route_count = ARRAY_LENGTH(routes);

#define FILE_PATH "at most 4095 bytes; relative to /workspace"
#define FLAG "`0` (default), `1`"
#define EVENTS "Whether output comes as events."
#define ENCODING "`text` (default), `base64`"
#define PIECES "How pieces of output are written."
#define TRUE_FALSE "`true`, `false` (default)"
#define ENCODED "Whether texts are base64, in both directions."
#define NAMES "names with commas, or `*`"
#define MEMBERS "Members of the answer."

const struct route_parameter route_parameters[] = {
    {"POST", "/execute/stream", "encoding", ENCODING,
     "How pieces of output are written; base64 gives every byte back as it was."},
    {"GET", "/executions", "language", "a name of `GET /runtimes`", "Of this language alone."},
    {"GET", "/executions", "status",
     "queued, running, ok, error, timeout, cpu_timeout, oom, killed, output_limit, setup_failed, "
     "lost, blocked",
     "That ended, or not, like this."},
    {"GET", "/executions", "since",
     "`2026-11-15T13:00:00Z`, seconds since 1970, or a duration back from now: `1h`",
     "That began then or later."},
    {"GET", "/executions", "until", "as `since`", "That began before."},
    {"GET", "/executions", "limit", "1 to 500, default 50", "How many at most."},
    {"GET", "/executions", "cursor", "`next` of the answer before", "The page that follows."},
    {"GET", "/executions/{id}", "wait",
     "seconds, default 0; more than `queue.max_wait` (60) is shortened",
     "How long to wait for its end; the answer comes when it has ended, or then."},
    {"GET", "/usage", "since",
     "`2026-11-15T13:00:00Z`, seconds since 1970, or a duration back from now: `7d`",
     "From this day."},
    {"GET", "/usage", "until", "as `since`", "To this day."},
    {"GET", "/sandboxes", "state", "`running`, `paused`", "In this state alone."},
    {"GET", "/sandboxes", "metadata", "`name=value`, several joined by `&`, as one encoded value",
     "With this metadata alone."},
    {"POST", "/sandboxes/{id}/commands", "stream", FLAG, EVENTS},
    {"POST", "/sandboxes/{id}/commands", "encoding", ENCODING, PIECES},
    {"GET", "/sandboxes/{id}/commands/{pid}", "stream", FLAG, EVENTS},
    {"GET", "/sandboxes/{id}/commands/{pid}", "wait", FLAG,
     "Whether to answer when the command has ended."},
    {"GET", "/sandboxes/{id}/commands/{pid}", "encoding", ENCODING, PIECES},
    {"POST", "/sandboxes/{id}/contexts/{pid}/run", "stream", FLAG, EVENTS},
    {"POST", "/sandboxes/{id}/contexts/{pid}/run", "encoding", ENCODING, PIECES},
    {"POST", "/sandboxes/{id}/run", "stream", FLAG, EVENTS},
    {"POST", "/sandboxes/{id}/run", "encoding", ENCODING, PIECES},
    {"GET", "/sandboxes/{id}/files", "path", FILE_PATH,
     "The file, or with `list=1` the directory."},
    {"PUT DELETE", "/sandboxes/{id}/files", "path", FILE_PATH, "The file."},
    {"GET", "/sandboxes/{id}/files", "list", FLAG, "List the directory."},
    {"GET", "/sandboxes/{id}/files", "depth", "0 to 64, default 1", "How many levels of it."},
    {"GET PUT", "/sandboxes/{id}/files", "offset", "a number of bytes",
     "Where to begin in the file."},
    {"GET", "/sandboxes/{id}/files", "length", "at most 24 MiB", "How much to read."},
    {"PUT", "/sandboxes/{id}/files", "append", FLAG, "Write at the end of the file."},
    {"PUT", "/sandboxes/{id}/files", "mode", "three octal digits, default 644", "Of a new file."},
    {"GET", "/sandboxes/{id}/files/stat", "path", FILE_PATH, "The file."},
    {"GET", "/sandboxes/{id}/files/watch", "path", FILE_PATH, "The directory."},
    {"GET", "/sandboxes/{id}/files/watch", "recursive", FLAG,
     "Also directories below, at most 256."},
    {"POST GET", "/judge0/submissions", "base64_encoded", TRUE_FALSE, ENCODED},
    {"POST", "/judge0/submissions", "wait", TRUE_FALSE, "Whether to wait for the end."},
    {"POST GET", "/judge0/submissions", "fields", NAMES, MEMBERS},
    {"GET", "/judge0/submissions", "page", "from 1", "Of the list."},
    {"GET", "/judge0/submissions", "per_page", "at most 1000, default 20", "How many in a page."},
    {"GET", "/judge0/submissions/batch", "tokens", "at most 20, with commas; or a header",
     "The submissions."},
    {"POST GET", "/judge0/submissions/batch", "base64_encoded", TRUE_FALSE, ENCODED},
    {"GET", "/judge0/submissions/batch", "fields", NAMES, MEMBERS},
    {"GET DELETE", "/judge0/submissions/{id}", "base64_encoded", TRUE_FALSE, ENCODED},
    {"GET DELETE", "/judge0/submissions/{id}", "fields", NAMES, MEMBERS},
};
const size_t route_parameter_count = ARRAY_LENGTH(route_parameters);

static const struct error_row rows[ERRORS_] = {[ERROR_NONE] = {"OK", 200, "", ""},
#define X(code, status, text, doc) [ERROR_##code] = {#code, status, text, doc},
                                               HTTP_ERRORS(X)
#undef X
};

const struct error_row *error_row(enum http_error error)
{
    return &rows[(unsigned)error < ERRORS_ ? error : ERROR_INTERNAL];
}

/* ---- Query parameters ---- */

struct check {
    struct exchange *exchange;
    const char *seen[8];
    size_t count;
    bool refused;
};

bool route_has_parameter(const struct route *route, const struct route_parameter *parameter)
{
    return strcmp(parameter->path, route->path) == 0 && strstr(parameter->methods, route->method);
}

static bool is_known(const struct route *route, const char *name)
{
    for (size_t i = 0; i < route_parameter_count; i++)
        if (route_has_parameter(route, &route_parameters[i]) &&
            strcmp(route_parameters[i].name, name) == 0)
            return true;
    return false;
}

static bool refuse(struct exchange *exchange, const char *name, const char *message)
{
    answer_field_error(exchange, ERROR_INVALID_QUERY, name, message);
    return false;
}

static enum MHD_Result check_one(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct check *check = context;
    char message[STR_SHOWN_MAX + 64];
    (void)kind;
    bool again = false;
    for (size_t i = 0; i < check->count; i++)
        again = again || strcmp(check->seen[i], name) == 0;
    bool known = is_known(check->exchange->route, name);
    if (!again && value && known && check->count < ARRAY_LENGTH(check->seen)) {
        check->seen[check->count++] = name;
        return MHD_YES;
    }
    (void)snprintf(message, sizeof message,
                   again             ? "the parameter '%s' is given twice"
                   : known && !value ? "the parameter '%s' has no value"
                                     : "unknown parameter '%s'; GET /openapi.json lists them",
                   str_shown(name).text);
    check->refused = !refuse(check->exchange, name, message);
    return MHD_NO;
}

bool query_check(struct exchange *exchange)
{
    struct check check = {.exchange = exchange};
    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, check_one, &check);
    return !check.refused;
}

bool query_encoding(struct exchange *exchange, bool *ret_base64)
{
    const char *value = exchange_parameter(exchange, "encoding");
    *ret_base64 = str_equal(value, "base64");
    return !value || *ret_base64 || strcmp(value, "text") == 0 ||
           refuse(exchange, "encoding", "encoding has to be text or base64");
}

/* A longer wait than the longest is shortened. */
bool query_wait(struct exchange *exchange, uint64_t *ret_wait_ms)
{
    const char *value = exchange_parameter(exchange, "wait");
    uint64_t most = exchange->http->config->queue.max_wait_ms;
    *ret_wait_ms = 0;
    if (!value || strcmp(value, "0") == 0)
        return true;
    if (parse_duration(value, 0, ret_wait_ms, NULL) < 0) {
        char message[STR_SHOWN_MAX + 64];
        (void)snprintf(message, sizeof message,
                       "wait: '%s' is not a number of seconds, or like 30s", str_shown(value).text);
        return refuse(exchange, "wait", message);
    }
    *ret_wait_ms = *ret_wait_ms < most ? *ret_wait_ms : most;
    return true;
}

/* Returns the value in the form that the history process expects: a language by its name instead of
 * an alias. NULL, with an error, if it is invalid. */
static const char *checked(const struct exchange *exchange, const char *name, const char *value,
                           struct brig_error *err)
{
    struct query query;
    autostr struct str text = {0};
    if (strcmp(name, "language") == 0) {
        const struct runtime *runtime = config_find_runtime(exchange->http->config, value);
        if (!runtime)
            (void)config_fail_language(exchange->http->config, value, err);
        return runtime ? runtime->name : NULL;
    }
    if (!*value || value[strcspn(value, "&=%+ ")]) {
        (void)brig_fail(err, BRIG_E_INVALID, 0,
                        "the parameter is empty or has signs that it cannot have");
        return NULL;
    }
    str_concat(&text, name, "=", value);
    if (text.failed || query_parse(text.data, text.length, INT64_MAX, &query, err) < 0)
        return NULL;
    return value;
}

bool query_list(struct exchange *exchange, struct str *out)
{
    /* A key can see only executions that were started with it. */
    if (*exchange->domain)
        str_concat(out, "domain=", exchange->domain);
    for (size_t i = 0; i < route_parameter_count; i++) {
        const char *name = route_parameters[i].name;
        const char *value = route_has_parameter(exchange->route, &route_parameters[i])
                                ? exchange_parameter(exchange, name)
                                : NULL;
        struct brig_error error = {0};
        if (!value)
            continue;
        value = checked(exchange, name, value, &error);
        if (!value)
            return refuse(exchange, name, error.message);
        str_concat(out, out->length > 0 ? "&" : "", name, "=", value);
    }
    if (out->failed)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    return !out->failed;
}
