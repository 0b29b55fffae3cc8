/* SPDX-License-Identifier: MIT */
/* The table of routes. */
#include "base/cleanup.h"
#include "server/http/execute.h"
#include "server/http/history.h"
#include "server/http/pages.h"
#include "server/http/route.h"

const struct route routes[] = {
    {"POST", "/execute", ROUTE_BODY, execute_begin, "Run code and get the result back",
     "Answers when the run has ended, with status 200 whatever became of the code: `status` and\n"
     "`exit_code` tell. A client that closes its connection ends the run."},
    {"POST", "/execute/stream", ROUTE_BODY | ROUTE_STREAM, execute_begin,
     "Run code and get its output as it comes",
     "The same request; the answer is a stream of server-sent events:\n\n"
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
    {"GET", "/executions", 0, history_list, "List executions, the newest first",
     "Needs a history (`database`). With API keys, those that were run with the same key."},
    {"GET", "/executions/{id}", 0, history_get, "Everything about one execution", ""},
    {"DELETE", "/executions/{id}", 0, history_kill, "End a running execution",
     "202 if it was running: it is being ended. 404 if there is no such or it has ended."},
    {"GET", "/health", ROUTE_OPEN | ROUTE_UNCOUNTED, pages_health, "Whether the server works",
     "200 while it can run code, 503 while it cannot or is shutting down."},
    {"GET", "/metrics", ROUTE_OPEN | ROUTE_UNCOUNTED, pages_metrics, "Numbers for Prometheus", ""},
    {"GET", "/runtimes", 0, pages_runtimes, "What can be run, and what is missing for it", ""},
    {"GET", "/openapi.json", ROUTE_OPEN, pages_openapi, "This interface for programs", ""},
};
const size_t route_count = ARRAY_LENGTH(routes);

const struct route_parameter route_parameters[] = {
    {"/execute/stream", "POST", "encoding", "`text` (default), `base64`",
     "How pieces of output are written; base64 gives every byte back as it was."},
    {"/executions", "GET", "language", "a name of `GET /runtimes`", "Of this language alone."},
    {"/executions", "GET", "status",
     "running, ok, error, timeout, cpu_timeout, oom, killed, output_limit, setup_failed, lost, "
     "blocked",
     "That ended, or not, like this."},
    {"/executions", "GET", "since",
     "`2026-11-15T13:00:00Z`, seconds since 1970, or a duration back from now: `1h`",
     "That began then or later."},
    {"/executions", "GET", "until", "the same", "That began before."},
    {"/executions", "GET", "limit", "1 to 500, default 50", "How many at most."},
    {"/executions", "GET", "cursor", "`next` of the answer before", "The page that follows."},
};
const size_t route_parameter_count = ARRAY_LENGTH(route_parameters);
