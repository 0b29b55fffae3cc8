/* SPDX-License-Identifier: MIT */
/* What SQLite keeps besides the rows of the history, also where PostgreSQL has these: the queue of
 * asynchronous executions, idempotency keys, whole results and callbacks; and see usage.h.
 *
 * An execution of the queue is in the table `queue` until the row of its start is stored. The executor
 * claims it before it runs it: the claim sets its status to `running` in one transaction. So after
 * any crash it is either still queued, and runs later, or `running`, and the next executor's first
 * row makes it `lost`. A claim may be repeated by the same executor, which has not run it then. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/execution.h"
#include "server/history/row.h"
#include "server/message.h"

struct brig_error;
struct store;
struct str;

#define QUEUE_ENTRIES_MAX 4096 /* in one message */
#define QUEUE_DOMAIN_MAX 128

/* A migration of SQLite. */
#define QUEUE_TABLES                                                                               \
    "CREATE TABLE queue (id TEXT PRIMARY KEY, domain TEXT NOT NULL, priority INTEGER NOT NULL,"    \
    " created_ns INTEGER NOT NULL, claimed INTEGER NOT NULL DEFAULT 0, request BLOB NOT NULL);"    \
    "CREATE INDEX queue_claimed ON queue (claimed, domain);"                                       \
    "CREATE TABLE idempotency (domain TEXT NOT NULL, key TEXT NOT NULL,"                           \
    " body_sha256 TEXT NOT NULL, id TEXT NOT NULL, created_ns INTEGER NOT NULL, PRIMARY KEY "      \
    "(domain, key)) WITHOUT ROWID;"                                                                \
    "CREATE INDEX idempotency_id ON idempotency (id);"                                             \
    "CREATE INDEX idempotency_created ON idempotency (created_ns);"                                \
    "CREATE TABLE results (id TEXT PRIMARY KEY, domain TEXT NOT NULL,"                             \
    " created_ns INTEGER NOT NULL, result BLOB NOT NULL);"                                         \
    "CREATE INDEX results_created ON results (created_ns);"                                        \
    "CREATE TABLE callbacks (id TEXT PRIMARY KEY, domain TEXT NOT NULL, url TEXT NOT NULL,"        \
    " secret TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,"             \
    " next_ns INTEGER NOT NULL DEFAULT 0, status INTEGER NOT NULL DEFAULT 0,"                      \
    " message TEXT NOT NULL DEFAULT '', created_ns INTEGER NOT NULL);"                             \
    "CREATE INDEX callbacks_next ON callbacks (state, next_ns);"                                   \
    "CREATE TABLE usage (day TEXT NOT NULL, domain TEXT NOT NULL, executions INTEGER NOT NULL,"    \
    " duration_us INTEGER NOT NULL, cpu_us INTEGER NOT NULL, memory_mb_us INTEGER NOT NULL,"       \
    " output_bytes INTEGER NOT NULL, PRIMARY KEY (day, domain)) WITHOUT ROWID;"

/* Called by store_apply() for each row, in its transaction. */
int queue_applied(struct store *store, const struct row *row, struct brig_error *err);

/* ---- Entries, for the executor ---- */

struct queue_entry {
    char id[EXECUTION_ID_LENGTH + 1];
    char domain[QUEUE_DOMAIN_MAX + 1];
    int priority;
    int64_t created_ns; /* unique */
};
void queue_entries_encode(const struct queue_entry *entries, size_t count, struct str *out);
/* The entries are in the arena. */
int queue_entries_decode(const void *bytes, size_t length, struct arena *arena,
                         struct queue_entry **ret_entries, size_t *ret_count,
                         struct brig_error *err);

/* ---- The queue ---- */

struct queue_bounds {
    uint64_t max, max_per_key;
    int64_t forget_ns; /* idempotency keys made before are not known any more */
};

/* Stores a row of kind ROW_QUEUED and its request, which has the id of the row. Sets *ret_verdict to
 * VERDICT_GO, _REPEATED, _CONFLICT, _FULL or _KEY_FULL, and ret_id to the execution's id, which is
 * another one if it is repeated. */
int queue_submit(struct store *store, const struct row *row,
                 const struct execution_request *request, const struct queue_bounds *bounds,
                 enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                 struct brig_error *err);
/* Appends the encoded request to *out. VERDICT_GO or _GONE. */
int queue_claim(struct store *store, const char *id, enum message_verdict *ret_verdict,
                struct str *out, struct brig_error *err);
/* Stores the idempotency key of an execution that is about to begin, and its row of kind ROW_BEGIN.
 * VERDICT_GO, _REPEATED or _CONFLICT. */
int queue_reserve(struct store *store, const struct row *row,
                  const struct execution_request *request, int64_t forget_ns,
                  enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                  struct brig_error *err);
/* Reads at most QUEUE_ENTRIES_MAX entries that wait and are newer than `after_ns`, oldest first.
 * Returns their number. */
int queue_list(struct store *store, int64_t after_ns, struct queue_entry *entries,
               struct brig_error *err);

/* ---- Results ---- */

/* Sets *ret_found: 0 no such execution of this domain, 1 it has not ended, 2 its encoded result was
 * appended to *out. */
int queue_result(struct store *store, const char *id, const char *domain, int *ret_found,
                 struct str *out, struct brig_error *err);
/* What is known besides the row; empty for most executions. */
int queue_more(struct store *store, const char *id, struct row_more *ret_more,
               struct brig_error *err);
/* Removes results, idempotency keys and callbacks that are done and older than `before_ns`, and
 * usage of days before `day`. */
int queue_forget(struct store *store, int64_t before_ns, const char *day, struct brig_error *err);

/* ---- Callbacks ---- */

struct queue_call {
    struct arena arena;
    const char *id, *url, *secret;
    uint64_t attempt;              /* from 1 */
    struct execution_bytes result; /* encoded; empty: the execution was lost */
    struct execution_bytes note;   /* of a submission of Judge0, or empty */
};
void queue_call_done(struct queue_call *call);
int queue_call_encode(const struct queue_call *call, struct str *out, struct brig_error *err);
int queue_call_decode(const void *bytes, size_t length, struct queue_call *ret_call,
                      struct brig_error *err);
/* What became of one: the status of its answer, or 0 and why there is none. */
void queue_called_encode(const char *id, uint64_t status, const char *message, struct str *out);

/* All calls that were under way are made again. */
int queue_calls_again(struct store *store, int64_t now_ns, struct brig_error *err);
/* Takes the next call that is due, and counts the attempt. At most `max_per_key` calls of one API key
 * are under way. Returns 1, or 0: there is none; then *ret_next_ns is when there will be, or 0. */
int queue_call_take(struct store *store, int64_t now_ns, uint64_t max_per_key,
                    struct queue_call *ret_call, int64_t *ret_next_ns, struct brig_error *err);
struct queue_retry {
    uint64_t attempts, first_ms;
};
/* Stores what became of a call; `bytes` are of queue_called_encode(). */
int queue_called(struct store *store, const void *bytes, size_t length,
                 const struct queue_retry *retry, int64_t now_ns, struct brig_error *err);
