/* SPDX-License-Identifier: MIT */
/* The queue in SQLite: what is submitted, claimed, lost, repeated and called back; as the history and as
 * the spool of PostgreSQL. */
#include "server/history/queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/history/kept.h"
#include "server/history/notes.h"
#include "server/history/query.h"
#include "server/history/store.h"
#include "server/history/usage.h"
#include "tap.h"

#define NOW INT64_C(1700000000000000000)
#define SECOND INT64_C(1000000000)

static struct store *store;
static char directory[64];
static bool is_spool;
static int64_t next_ns = NOW;
static const struct row_keep keep = {KEEP_HASH, KEEP_HASH};
static const struct queue_bounds bounds = {.max = 4, .max_per_key = 2, .forget_ns = NOW - SECOND};

static const char *id_of(unsigned number)
{
    static char ids[8][EXECUTION_ID_LENGTH + 1];
    static unsigned next;
    char *id = ids[next++ % 8];
    (void)snprintf(id, EXECUTION_ID_LENGTH + 1, "%08x-0000-4000-8000-000000000000", number);
    return id;
}

static void open_store(void)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/history.sqlite", directory);
    struct brig_error err = {0};
    if ((is_spool ? spool_open(directory, &store, &err) : store_open_sqlite(path, &store, &err)) <
        0)
        tap_bail("open: %s", err.message);
}

static struct execution_request request_of(unsigned number, const char *domain)
{
    return (struct execution_request){.id = id_of(number),
                                      .request_id = "r",
                                      .client = "127.0.0.1",
                                      .domain = domain,
                                      .language = "python",
                                      .code = {"print(1)", 8},
                                      .stdin_bytes = {"", 0},
                                      .queued = true,
                                      .traceparent = "",
                                      .idempotency_key = "",
                                      .body_sha256 = "",
                                      .callback_url = "",
                                      .callback_secret = ""};
}

static enum message_verdict submit(const struct execution_request *request, char *ret_id)
{
    struct row row;
    enum message_verdict verdict = 0;
    struct brig_error err = {0};
    char id[EXECUTION_ID_LENGTH + 1];
    if (row_from_request(ROW_QUEUED, request, keep, store_server_id(store), ++next_ns, &row, NULL) <
        0)
        tap_bail("row");
    if (queue_submit(store, &row, request, &bounds, &verdict, ret_id ? ret_id : id, &err) < 0)
        tap_bail("submit: %s", err.message);
    row_done(&row);
    return verdict;
}

static enum message_verdict submit_plain(unsigned number, const char *domain)
{
    const struct execution_request request = request_of(number, domain);
    return submit(&request, NULL);
}

static enum message_verdict claim(unsigned number, struct str *out)
{
    enum message_verdict verdict = 0;
    struct brig_error err = {0};
    if (queue_claim(store, id_of(number), &verdict, out, &err) < 0)
        tap_bail("claim: %s", err.message);
    return verdict;
}

static void apply(struct row *row)
{
    struct brig_error err = {0};
    if (store_apply(store, row, 1, &err) < 0)
        tap_bail("apply: %s", err.message);
    row_done(row);
}

static void begin(unsigned number)
{
    const struct execution_request request = request_of(number, "");
    struct row row;
    if (row_from_request(ROW_BEGIN, &request, keep, store_server_id(store), ++next_ns, &row, NULL) <
        0)
        tap_bail("row");
    apply(&row);
}

static void end_of(unsigned number, const char *domain, enum execution_status status)
{
    const struct execution_result result = {.id = id_of(number),
                                            .domain = domain,
                                            .kept = true,
                                            .status = status,
                                            .output = {"out", 3},
                                            .error_output = {"", 0},
                                            .message = "",
                                            .duration_us = 2000000,
                                            .cpu_time_us = 500000,
                                            .memory_peak_bytes = 3 << 20,
                                            .started_ns = NOW};
    autostr struct str bytes = {0};
    struct row row;
    if (execution_result_encode(&result, &bytes, NULL) < 0 ||
        row_from_result(&result, keep, store_server_id(store), ++next_ns, &row, NULL) < 0)
        tap_bail("row");
    row.result = (struct execution_bytes){bytes.data, bytes.length};
    apply(&row);
}

static void end(unsigned number, enum execution_status status)
{
    end_of(number, "a", status);
}

static void new_executor(void)
{
    struct row row;
    if (row_lost(store_server_id(store), ++next_ns, &row, NULL) < 0)
        tap_bail("row");
    apply(&row);
}

static const char *status_of(unsigned number)
{
    static char status[32];
    struct row row;
    status[0] = '\0';
    if (store_get(store, id_of(number), &row, NULL) == 1) {
        (void)snprintf(status, sizeof status, "%s", row.status);
        row_done(&row);
    }
    return status;
}

static int waiting(void)
{
    autofree struct queue_entry *entries = calloc(QUEUE_ENTRIES_MAX, sizeof *entries);
    return queue_list(store, 0, entries, NULL);
}

static int result_of(unsigned number, const char *domain)
{
    autostr struct str bytes = {0};
    int found = -1;
    if (queue_result(store, id_of(number), domain, &found, &bytes, NULL) < 0)
        return -1;
    return found;
}

/* ---- Tests ---- */

static void test_claims(void)
{
    autostr struct str bytes = {0}, again = {0}, none = {0};
    struct execution_request request;
    tap_is_int(submit_plain(1, "a"), VERDICT_GO, "one is submitted");
    tap_is_str(status_of(1), "queued", "it is queued");
    tap_is_int(result_of(1, "a"), 1, "it has no result");
    tap_is_int(result_of(1, "b"), 0, "and is not of another key");
    tap_is_int(waiting(), 1, "it waits");
    tap_is_int(claim(1, &bytes), VERDICT_GO, "it is claimed");
    tap_is_str(status_of(1), "running", "and called running before it runs");
    tap_is_int(execution_request_decode(bytes.data, bytes.length, &request, NULL), 0,
               "the executor gets its request");
    tap_is_str(request.id, id_of(1), "with its id");
    execution_request_done(&request);
    tap_is_int(waiting(), 0, "it waits no more");
    tap_is_int(claim(1, &again), VERDICT_GO, "the same executor may ask again");
    tap_is_int(again.length, bytes.length, "and gets the same");
    begin(1);
    tap_is_int(claim(1, &none), VERDICT_GONE, "but not after the start");
    tap_is_int(claim(99, &none), VERDICT_GONE, "nor for one that there is not");
    tap_is_int(none.length, 0, "then it gets nothing");
    end(1, EXECUTION_OK);
    tap_is_str(status_of(1), "ok", "it ends");
    tap_is_int(result_of(1, "a"), 2, "its result is kept");
    tap_is_int(result_of(1, "b"), 0, "for its key");
}

static void test_lost(void)
{
    autostr struct str bytes = {0}, result = {0};
    struct execution_result lost;
    int found = 0;
    tap_is_int(submit_plain(10, ""), VERDICT_GO, "one is submitted");
    tap_is_int(submit_plain(11, ""), VERDICT_GO, "another too");
    tap_is_int(submit_plain(12, ""), VERDICT_GO, "and a third");
    tap_is_int(claim(11, &bytes), VERDICT_GO, "the second is claimed");
    tap_is_int(claim(12, &bytes), VERDICT_GO, "the third too");
    begin(12);
    store_close(store);
    open_store();
    new_executor();
    tap_is_str(status_of(10), "queued", "after the death of all: the first is still queued");
    tap_is_str(status_of(11), "lost", "the one that was claimed is lost");
    tap_is_str(status_of(12), "lost", "the one that ran is lost");
    tap_is_int(waiting(), 1, "one waits");
    tap_is_int(claim(11, &bytes), VERDICT_GONE, "a lost one is never run");
    tap_is_int(queue_result(store, id_of(11), "", &found, &result, NULL), 0, "it has a result");
    tap_is_int(execution_result_decode(result.data, result.length, &lost, NULL), 0, "which");
    tap_is_int(lost.status, EXECUTION_LOST, "says that it is lost");
    execution_result_done(&lost);
    end(10, EXECUTION_KILLED);
    tap_is_int(waiting(), 0, "one that is ended waits no more");
    tap_is_int(claim(10, &bytes), VERDICT_GONE, "and is never run");
}

static void test_bounds(void)
{
    for (unsigned i = 20; i < 22; i++)
        tap_is_int(submit_plain(i, "a"), VERDICT_GO, "a key queues %u", i);
    tap_is_int(submit_plain(22, "a"), VERDICT_KEY_FULL, "not one more");
    for (unsigned i = 23; i < 25; i++)
        tap_is_int(submit_plain(i, "b"), VERDICT_GO, "another key queues %u", i);
    tap_is_int(submit_plain(25, "c"), VERDICT_FULL, "then the queue is full");
    tap_is_str(status_of(25), "", "of which there is no row");
    end(20, EXECUTION_KILLED);
    tap_is_int(submit_plain(26, "c"), VERDICT_GO, "until one ends");
    for (unsigned i = 21; i < 27; i++)
        end(i, EXECUTION_KILLED);
}

static void test_keys(void)
{
    char id[EXECUTION_ID_LENGTH + 1];
    struct execution_request request = request_of(30, "a");
    struct row row;
    enum message_verdict verdict = 0;
    request.idempotency_key = "k";
    request.body_sha256 = "1";
    tap_is_int(submit(&request, id), VERDICT_GO, "a key is used");
    request.id = id_of(31);
    tap_is_int(submit(&request, id), VERDICT_REPEATED, "and repeated");
    tap_is_str(id, id_of(30), "which gives the first");
    request.body_sha256 = "2";
    tap_is_int(submit(&request, id), VERDICT_CONFLICT, "another body does not");
    request.domain = "b";
    tap_is_int(submit(&request, id), VERDICT_GO, "another API key is apart");
    request = request_of(32, "a");
    request.idempotency_key = "r";
    request.body_sha256 = "1";
    (void)row_from_request(ROW_BEGIN, &request, keep, store_server_id(store), ++next_ns, &row,
                           NULL);
    for (int i = 0; i < 2; i++) {
        tap_is_int(queue_reserve(store, &row, &request, bounds.forget_ns, &verdict, id, NULL), 0,
                   "one is reserved");
        tap_is_int(verdict, VERDICT_GO, "by the same execution %s", i ? "again" : "");
    }
    tap_is_str(status_of(32), "running", "it is called running");
    request.id = id_of(33);
    tap_is_int(queue_reserve(store, &row, &request, bounds.forget_ns, &verdict, id, NULL), 0,
               "and");
    tap_is_int(verdict, VERDICT_REPEATED, "not by another");
    end(32, EXECUTION_SETUP_FAILED);
    row_done(&row);
    (void)row_from_request(ROW_BEGIN, &request, keep, store_server_id(store), ++next_ns, &row,
                           NULL);
    tap_is_int(queue_reserve(store, &row, &request, bounds.forget_ns, &verdict, id, NULL), 0,
               "but");
    tap_is_int(verdict, VERDICT_GO, "when nothing of it ran");
    request.id = id_of(34);
    tap_is_int(queue_reserve(store, &row, &request, next_ns + 1, &verdict, id, NULL), 0, "and");
    tap_is_int(verdict, VERDICT_GO, "when its time is over");
    row_done(&row);
    for (unsigned i = 30; i < 35; i++)
        end(i, EXECUTION_OK);
}

static int take_call(int64_t now_ns, struct queue_call *call, int64_t *next)
{
    struct brig_error err = {0};
    int found = queue_call_take(store, now_ns, 1, call, next, &err);
    if (found < 0)
        tap_bail("call: %s", err.message);
    return found;
}

static void tell(const char *id, uint64_t status, int64_t now_ns)
{
    const struct queue_retry retry = {.attempts = 2, .first_ms = 1000};
    autostr struct str bytes = {0};
    queue_called_encode(id, status, "why", &bytes);
    if (queue_called(store, bytes.data, bytes.length, &retry, now_ns, NULL) < 0)
        tap_bail("called");
}

static void test_calls(void)
{
    struct queue_call call;
    struct row_more more;
    int64_t next = 0, now = next_ns + 100 * SECOND;
    for (unsigned i = 40; i < 42; i++) {
        struct execution_request request = request_of(i, "a");
        request.callback_url = "http://example.com/";
        request.callback_secret = "s";
        tap_is_int(submit(&request, NULL), VERDICT_GO, "one with a callback");
    }
    tap_is_int(take_call(now, &call, &next), 0, "nothing is called before the end");
    end(40, EXECUTION_OK);
    end(41, EXECUTION_OK);
    tap_is_int(take_call(now, &call, &next), 1, "then one is");
    tap_is_int(call.attempt, 1, "for the first time");
    tap_ok(call.result.length > 0 && strcmp(call.secret, "s") == 0, "with result and secret");
    queue_call_done(&call);
    tap_is_int(take_call(now, &call, &next), 0, "of one key not two at a time");
    tap_is_int(queue_calls_again(store, now, NULL), 0, "a new executor");
    tap_is_int(take_call(now, &call, &next), 1, "gets the one that waits longest");
    tap_is_str(call.id, id_of(41), "which is the other");
    queue_call_done(&call);
    tell(id_of(41), 0, now);
    tap_is_int(take_call(now, &call, &next), 1, "then the first again");
    tap_is_int(call.attempt, 2, "for the second time");
    queue_call_done(&call);
    tell(id_of(40), 500, now);
    (void)queue_more(store, id_of(40), &more, NULL);
    tap_is_str(more.callback_state, "failed", "after the last attempt it has failed");
    tap_is_int(more.callback_status, 500, "with this status");
    row_more_done(&more);
    tap_is_int(take_call(now, &call, &next), 0, "the other waits after its failure");
    tap_ok(next == now + SECOND, "for a second");
    tap_is_int(take_call(next, &call, &next), 1, "then it is called again");
    queue_call_done(&call);
    tell(id_of(41), 204, now);
    (void)queue_more(store, id_of(41), &more, NULL);
    tap_is_str(more.callback_state, "delivered", "and delivered");
    row_more_done(&more);
    tap_is_int(queue_forget(store, now + SECOND, "2000-01-01", NULL), 0, "old ones are forgotten");
    (void)queue_more(store, id_of(41), &more, NULL);
    tap_ok(!more.callback_state && !more.has_result, "with their results");
    row_more_done(&more);
}

static void test_usage(void)
{
    autostr struct str all = {0}, other = {0};
    struct query query = {.until_ns = INT64_MAX};
    tap_is_int(usage_write(store, &query, &all, NULL), 0, "usage is told");
    tap_has_str(all.data, "\"day\":\"2023-11-14\"", "by day");
    tap_has_str(all.data, "\"key\":\"a\"", "and key");
    (void)snprintf(query.domain, sizeof query.domain, "other");
    tap_is_int(usage_write(store, &query, &other, NULL), 0, "of another key");
    tap_has_str(other.data, "\"usage\":[],\"total\":{\"executions\":0", "there is none");
}

static void test_entries(void)
{
    struct queue_entry entries[2] = {{.id = "", .priority = -10, .created_ns = 5},
                                     {.domain = "d", .priority = 10}};
    autostr struct str bytes = {0};
    struct queue_entry *got = NULL;
    struct arena arena = {0};
    size_t count = 0;
    (void)snprintf(entries[0].id, sizeof entries[0].id, "%s", id_of(1));
    (void)snprintf(entries[1].id, sizeof entries[1].id, "%s", id_of(2));
    queue_entries_encode(entries, 2, &bytes);
    tap_is_int(queue_entries_decode(bytes.data, bytes.length, &arena, &got, &count, NULL), 0,
               "entries are decoded");
    tap_ok(count == 2 && got[0].priority == -10 && strcmp(got[1].domain, "d") == 0, "as they were");
    unsigned wrong = 0;
    for (size_t i = 0; i < bytes.length; i++)
        wrong += queue_entries_decode(bytes.data, i, &arena, &got, &count, NULL) == 0;
    tap_is_int(wrong, 0, "parts of a message are refused");
    arena_done(&arena);
}

static enum note_state note_of(unsigned number, const char *domain)
{
    struct note note;
    if (notes_get(store, id_of(number), domain, &note, NULL) < 0)
        tap_bail("note");
    enum note_state state = note.state;
    note_done(&note);
    return state;
}

static void submit_noted(unsigned number)
{
    struct execution_request request = request_of(number, "a");
    request.note = (struct execution_bytes){"noted", 5};
    if (submit(&request, NULL) != VERDICT_GO)
        tap_bail("submit");
}

static void test_notes(void)
{
    autostr struct str bytes = {0};
    struct execution_request request;
    struct note note;
    struct note_list list;
    struct note_page page = {.domain = "a", .limit = 10};
    submit_noted(90);
    tap_is_int(note_of(90, "a"), NOTE_QUEUED, "one with a note waits");
    tap_is_int(note_of(90, "b"), NOTE_MISSING, "and is not of another key");
    tap_is_int(claim(90, &bytes), VERDICT_GO, "it is claimed");
    tap_ok(execution_request_decode(bytes.data, bytes.length, &request, NULL) == 0 &&
               request.note.length == 0,
           "without its note");
    execution_request_done(&request);
    tap_is_int(note_of(90, "a"), NOTE_RUNNING, "it runs");
    begin(90);
    tap_is_int(note_of(90, ""), NOTE_RUNNING, "still");
    tap_is_int(notes_remove(store, id_of(90), "a", &note, NULL), 0, "the note of one that runs");
    note_done(&note);
    end(90, EXECUTION_OK);
    tap_is_int(notes_get(store, id_of(90), "", &note, NULL), 0, "is not removed");
    tap_ok(note.state == NOTE_ENDED && note.text.length == 5 && note.result.length > 0,
           "and has its result");
    note_done(&note);
    submit_noted(91);
    tap_is_int(notes_list(store, &page, &list, NULL), 0, "a list");
    tap_ok(list.total == 2 && list.count == 2 && strcmp(list.ids[0], id_of(91)) == 0,
           "has the newest first");
    note_list_done(&list);
    page.offset = page.limit = 1;
    tap_is_int(notes_list(store, &page, &list, NULL), 0, "its second page");
    tap_ok(list.total == 2 && list.count == 1 && strcmp(list.ids[0], id_of(90)) == 0, "the other");
    note_list_done(&list);
    tap_is_int(notes_remove(store, id_of(90), "a", &note, NULL), 0, "one that has ended");
    note_done(&note);
    tap_ok(note_of(90, "a") == NOTE_MISSING && result_of(90, "a") == 0, "is removed");
    tap_is_int(queue_forget(store, next_ns + SECOND, "2000-01-01", NULL), 0, "old ones go");
    tap_is_int(note_of(91, "a"), NOTE_QUEUED, "but not one that waits");
    (void)claim(91, &bytes);
    new_executor();
    tap_is_int(note_of(91, "a"), NOTE_ENDED, "one that was lost has ended");
    tap_is_int(queue_forget(store, next_ns + SECOND, "2000-01-01", NULL), 0, "and goes");
    tap_is_int(note_of(91, "a"), NOTE_MISSING, "with its note");
}

/* ---- Bytes of one key ---- */

#define LARGE 100000

static enum message_verdict submit_large(unsigned number, const char *domain)
{
    static char text[LARGE];
    struct execution_request request = request_of(number, domain);
    memset(text, 'n', sizeof text);
    request.note = (struct execution_bytes){text, sizeof text};
    return submit(&request, NULL);
}

static void test_bytes_of_a_key(void)
{
    autostr struct str bytes = {0};
    store->kept_max = 3 * LARGE;
    for (unsigned i = 100; i < 102; i++) {
        tap_is_int(submit_large(i, "a"), VERDICT_GO, "a key keeps note %u", i);
        end(i, EXECUTION_OK);
    }
    tap_is_int(submit_large(110, "b"), VERDICT_GO, "another key keeps one");
    end_of(110, "b", EXECUTION_OK);
    tap_ok(note_of(100, "a") == NOTE_ENDED && note_of(101, "a") == NOTE_ENDED, "all are there");
    tap_is_int(submit_large(102, "a"), VERDICT_GO, "a third that fits only without the first");
    tap_ok(note_of(100, "a") == NOTE_MISSING && result_of(100, "a") == 0, "the oldest has gone");
    tap_is_int(note_of(101, "a"), NOTE_ENDED, "the second not");
    tap_is_int(note_of(110, "b"), NOTE_ENDED, "nor that of another key");
    tap_is_int(submit_large(103, "a"), VERDICT_GO, "a fourth, in place of the second");
    tap_is_int(note_of(101, "a"), NOTE_MISSING, "which has gone");
    store->kept_max = 2 * LARGE + LARGE / 2;
    end(102, EXECUTION_OK);
    tap_is_int(note_of(102, "a"), NOTE_ENDED, "one that ends is kept, as it fits");
    tap_is_int(submit_large(104, "a"), VERDICT_GO, "another takes its place");
    tap_is_int(note_of(102, "a"), NOTE_MISSING, "and only that");
    /* Two wait, which are never removed. max_per_key is 2 as well: let one begin. */
    tap_is_int(claim(103, &bytes), VERDICT_GO, "one runs");
    tap_is_int(submit_large(105, "a"), VERDICT_KEY_FULL,
               "where nothing can go, a request is refused");
    tap_is_int(note_of(105, "a"), NOTE_MISSING, "and leaves nothing");
    tap_is_str(status_of(105), "", "not even a row");
    tap_is_int(submit_plain(106, "a"), VERDICT_GO, "a small one fits");
    for (unsigned i = 103; i < 107; i++)
        if (i != 105)
            end(i, EXECUTION_OK);
    end(104, EXECUTION_OK); /* once more: replaced, not counted twice */
    tap_is_int(queue_forget(store, next_ns + SECOND, "2000-01-01", NULL), 0, "old ones go");
    store->kept_max = 1;
    bool fits = false;
    tap_is_int(kept_make_room(store, "a", "", &fits, NULL), 0,
               "what is left of a key that has none");
    tap_ok(fits, "is nothing");
    store->kept_max = 0;
}

static void end_small(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        (void)submit_plain(i, "a");
        end(i, EXECUTION_OK);
    }
}

static unsigned results_of(unsigned first, unsigned count)
{
    unsigned found = 0;
    for (unsigned i = first; i < first + count; i++)
        found += result_of(i, "a") == 2;
    return found;
}

/* Many results in the place of one request; the history process does nothing else meanwhile. */
static void test_many_small_results(void)
{
    autostr struct str bytes = {0};
    store->kept_max = 3 * LARGE;
    end_small(200, 20);
    tap_is_int(submit_large(220, "a"), VERDICT_GO, "a large one waits beside small results");
    tap_is_int(claim(220, &bytes), VERDICT_GO, "and runs");
    tap_is_int(results_of(200, 20), 20, "all of which are kept");
    store->kept_max = LARGE + 4000;
    tap_is_int(submit_large(221, "a"), VERDICT_KEY_FULL, "another does not fit without them");
    tap_is_int(results_of(200, 20), 20, "and does not remove them");
    tap_is_int(submit_plain(222, "a"), VERDICT_GO, "a small one fits without some");
    unsigned left = results_of(200, 20);
    tap_ok(left > 0 && left < 20 && results_of(220 - left, left) == left, "the oldest");
    store->kept_max = LARGE;
    end(222, EXECUTION_OK);
    tap_ok(results_of(200, 20) == 0 && results_of(222, 1) == 1,
           "a result is kept in any case, and the others go");
    store->kept_max = 0;
    end(220, EXECUTION_OK);
}

/* A file of an older brigd is counted when it is opened. */
static void test_bytes_of_an_older_file(void)
{
    static const char *const undo[] = {"DROP TABLE kept",
                                       "DROP INDEX results_domain",
                                       "DROP TRIGGER queue_added",
                                       "DROP TRIGGER queue_removed",
                                       "DROP TRIGGER notes_added",
                                       "DROP TRIGGER notes_removed",
                                       "DROP TRIGGER results_added",
                                       "DROP TRIGGER results_removed",
                                       "PRAGMA user_version = 5"};
    bool fits = true;
    tap_is_int(submit_large(120, "a"), VERDICT_GO, "one that an older brigd has stored");
    for (size_t i = 0; i < ARRAY_LENGTH(undo); i++)
        if (store_run(store, undo[i], NULL, ROW_NO_NUMBER, "undo", NULL) < 0)
            tap_bail("%s", undo[i]);
    store_close(store);
    open_store();
    store->kept_max = LARGE;
    tap_is_int(kept_make_room(store, "a", "", &fits, NULL), 0, "the file is opened again");
    tap_ok(!fits, "what it has is counted");
    store->kept_max = 2 * LARGE;
    tap_is_int(kept_make_room(store, "a", "", &fits, NULL), 0, "with a larger limit");
    tap_ok(fits, "it fits");
    store->kept_max = 0;
    end(120, EXECUTION_OK);
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        is_spool = i;
        (void)snprintf(directory, sizeof directory, "/tmp/brig-queue-XXXXXX");
        if (!mkdtemp(directory))
            tap_bail("mkdtemp");
        open_store();
        test_claims();
        test_lost();
        test_bounds();
        test_keys();
        test_calls();
        test_usage();
        test_notes();
        test_bytes_of_a_key();
        test_many_small_results();
        test_bytes_of_an_older_file();
        store_close(store);
        static const char *const names[] = {"history.sqlite", "spool.sqlite"};
        static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
        for (size_t k = 0; k < ARRAY_LENGTH(suffixes); k++) {
            char path[128];
            (void)snprintf(path, sizeof path, "%s/%s%s", directory, names[i], suffixes[k]);
            (void)unlink(path);
        }
        (void)rmdir(directory);
    }
    test_entries();
    return tap_done();
}
