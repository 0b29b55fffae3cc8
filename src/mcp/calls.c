/* SPDX-License-Identifier: MIT */
/* The calls of a client: in which order they start, what they report, and how they end. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mcp/session.h"

#define REPORT_MS 200        /* between two reports of new output */
#define REPORT_IDLE_MS 10000 /* without output: shows that the call is still running */
#define REPORT_BYTES 2048    /* of output in one report: the last lines */

bool calls_add(struct session *session, json_t *id, json_t *params, const struct tool *tool,
               bool modern, bool elicits)
{
    struct call *call = session->call_count < SESSION_CALLS_MAX ? calloc(1, sizeof *call) : NULL;
    if (!call) {
        json_decref(params);
        return false;
    }
    json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");
    *call = (struct call){
        .id = json_incref(id),
        .params = params,
        .arguments = json_object_get(params, "arguments"),
        .progress = json_is_string(token) || json_is_integer(token) ? json_incref(token) : NULL,
        .tool = tool,
        .modern = modern,
        .elicits = elicits,
        .child = CHILD_INIT,
    };
    struct call **end = &session->calls;
    while (*end)
        end = &(*end)->next;
    *end = call;
    session->call_count++;
    return true;
}

static void call_free(struct call *call)
{
    child_done(&call->child);
    str_done(&call->lines);
    json_decref(call->id);
    json_decref(call->params);
    json_decref(call->progress);
    json_decref(call->result);
    free(call);
}

void calls_free(struct session *session)
{
    for (struct call *call = session->calls, *next; call; call = next) {
        next = call->next;
        call_free(call);
    }
    session->calls = NULL;
}

struct call *calls_find(const struct session *session, const json_t *id)
{
    for (struct call *call = session->calls; call; call = call->next)
        if (json_equal(call->id, id))
            return call;
    return NULL;
}

/* ---- Cancelling ---- */

void calls_cancel(struct call *call)
{
    call->cancelled = true;
    if (call->state != CALL_RUNNING)
        call->state = CALL_ENDED;
    else if (!call->tool->alone) /* an apply that has begun is completed */
        child_cancel(&call->child);
}

void calls_cancel_all(struct session *session)
{
    for (struct call *call = session->calls; call; call = call->next)
        calls_cancel(call);
}

void calls_kill_all(struct session *session)
{
    for (struct call *call = session->calls; call; call = call->next)
        if (call->state == CALL_RUNNING && !call->tool->alone)
            child_kill(&call->child);
}

/* ---- Starting and ending ---- */

/* After begin() or ended(): the tool has started a child, asked the user, or set the result. */
static void settle(struct call *call)
{
    if (call->result || (call->state != CALL_ASKING && call->child.pid == 0))
        call->state = CALL_ENDED;
    else if (call->state != CALL_ASKING)
        call->state = CALL_RUNNING;
}

static void start(struct session *session, struct call *call)
{
    call->started_ms = clock_now_ms();
    call->tool->begin(session, call);
    settle(call);
}

/* Calls start in order; one that runs alone waits for those before it and holds up those after
 * it. */
static void start_waiting(struct session *session)
{
    size_t running = 0;
    bool alone = false;
    for (const struct call *call = session->calls; call; call = call->next)
        if (call->state == CALL_RUNNING) {
            running++;
            alone = alone || call->tool->alone;
        }
    for (struct call *call = session->calls; call; call = call->next) {
        if (call->state != CALL_WAITING)
            continue;
        if (alone || running == SESSION_RUNNING_MAX || (call->tool->alone && running > 0))
            return;
        start(session, call);
        if (call->state == CALL_RUNNING) {
            running++;
            alone = call->tool->alone;
        }
    }
}

static void remove_ended(struct session *session)
{
    for (struct call **at = &session->calls; *at;) {
        struct call *call = *at;
        if (call->state != CALL_ENDED) {
            at = &call->next;
            continue;
        }
        session_answer(session, call);
        *at = call->next;
        session->call_count--;
        call_free(call);
    }
}

void calls_advance(struct session *session)
{
    remove_ended(session);
    start_waiting(session);
    remove_ended(session);
}

/* ---- Output ---- */

/* Keeps the last bytes of the output, from the beginning of a line if there is one. */
static void note_output(void *context, const char *bytes, size_t length)
{
    struct call *call = context;
    if (!call->progress)
        return;
    if (length > REPORT_BYTES) {
        bytes += length - REPORT_BYTES;
        length = REPORT_BYTES;
    }
    struct str *lines = &call->lines;
    if (lines->length + length > REPORT_BYTES) {
        size_t drop = lines->length + length - REPORT_BYTES;
        memmove(lines->data, lines->data + drop, lines->length - drop + 1);
        lines->length -= drop;
    }
    str_append_bytes(lines, bytes, length);
}

size_t calls_poll(const struct session *session, struct pollfd *fds)
{
    size_t count = 0;
    for (const struct call *call = session->calls; call; call = call->next)
        if (call->state == CALL_RUNNING && count < CALLS_POLL) {
            child_poll(&call->child, fds + count);
            count += CHILD_POLL;
        }
    return count;
}

void calls_process(struct session *session, const struct pollfd *fds)
{
    for (struct call *call = session->calls; call; call = call->next) {
        if (call->state != CALL_RUNNING)
            continue;
        const struct pollfd *mine = fds;
        fds += CHILD_POLL;
        if (mine[CHILD_STREAMS_].fd != call->child.pid_fd ||
            !child_process(&call->child, mine, note_output, call))
            continue;
        if (call->cancelled)
            call->state = CALL_ENDED;
        else
            call->tool->ended(session, call);
        settle(call);
    }
}

/* ---- Progress ---- */

/* When the next report is due, in milliseconds since the start of the call. */
static uint64_t report_at(const struct call *call)
{
    return call->reported_ms + (call->lines.length > 0 ? REPORT_MS : REPORT_IDLE_MS);
}

static bool reports(const struct call *call)
{
    return call->state == CALL_RUNNING && call->progress && !call->cancelled;
}

int calls_timeout(const struct session *session)
{
    uint64_t now = clock_now_ms();
    int timeout = -1;
    for (const struct call *call = session->calls; call; call = call->next) {
        if (!reports(call))
            continue;
        uint64_t due = call->started_ms + report_at(call);
        int left = due > now ? (int)(due - now) : 0;
        timeout = timeout < 0 || left < timeout ? left : timeout;
    }
    return timeout;
}

void calls_report(struct session *session)
{
    uint64_t now = clock_now_ms();
    for (struct call *call = session->calls; call; call = call->next) {
        uint64_t elapsed = now - call->started_ms;
        if (!reports(call) || elapsed < report_at(call))
            continue;
        autostr struct str text = {0};
        if (call->lines.length > 0)
            excerpt_append_clean(&text, call->lines.data, call->lines.length);
        else
            str_append(&text, "running");
        while (text.length > 0 && text.data[text.length - 1] == '\n')
            text.data[--text.length] = '\0';
        call->reported_ms = elapsed;
        str_done(&call->lines);
        str_init(&call->lines);
        if (!text.failed && output_waiting(&session->out) < OUTPUT_WAITING_MAX)
            session_progress(session, call, (double)elapsed / 1000, text.data ? text.data : "");
    }
}
