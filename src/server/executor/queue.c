/* SPDX-License-Identifier: MIT */
/* The queue as the executor sees it, and its claims. The history process owns the queue: entries here
 * are a copy, which a new history process sends again. Nothing runs before its claim was answered, and
 * a claim is sent after all rows of the journal, so that the history process knows what has ended. */
#include "server/executor/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

#define ENTRIES_MAX ((size_t)1 << 20)
#define RETRY_MS 1000    /* when the history process cannot store a claim */
#define RESERVE_MS 10000 /* how long a request waits for its idempotency key to be stored */
#define CLAIMS_MAX ((size_t)256)

/* ---- entries ---- */

static bool precedes(const struct queue_entry *a, const struct queue_entry *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->created_ns < b->created_ns;
}

static struct claim *find_claim(const struct executor *executor, const char *id)
{
    struct claim *claim = executor->queue.claims;
    while (claim && strcasecmp(claim->entry.id, id) != 0)
        claim = claim->next;
    return claim;
}

static size_t find_entry(const struct executor *executor, const char *id)
{
    size_t i = 0;
    while (i < executor->queue.count && strcasecmp(executor->queue.entries[i].id, id) != 0)
        i++;
    return i;
}

static bool grow(struct executor_queue *queue)
{
    size_t more = queue->capacity ? 2 * queue->capacity : 64;
    if (queue->count < queue->capacity)
        return true;
    struct queue_entry *entries =
        more <= ENTRIES_MAX ? realloc(queue->entries, more * sizeof *entries) : NULL;
    if (!entries)
        return false;
    queue->entries = entries;
    queue->capacity = more;
    return true;
}

/* Most entries come in their order, so the place is near the end. */
static bool add_entry(struct executor_queue *queue, const struct queue_entry *entry)
{
    size_t at = queue->count;
    if (!grow(queue))
        return false;
    while (at > 0 && precedes(entry, &queue->entries[at - 1]))
        at--;
    memmove(&queue->entries[at + 1], &queue->entries[at],
            (queue->count - at) * sizeof *queue->entries);
    queue->entries[at] = *entry;
    queue->count++;
    return true;
}

static struct queue_entry take_entry(struct executor_queue *queue, size_t at)
{
    struct queue_entry entry = queue->entries[at];
    memmove(&queue->entries[at], &queue->entries[at + 1],
            (--queue->count - at) * sizeof *queue->entries);
    return entry;
}

int executor_queue_take_waiting(struct executor *executor, const struct message *message,
                                struct brig_error *err)
{
    struct arena arena = {0};
    struct queue_entry *entries = NULL;
    size_t count = 0;
    int result =
        queue_entries_decode(message->bytes, message->length, &arena, &entries, &count, err);
    bool room = true;
    for (size_t i = 0; i < count && room; i++)
        if (!find_claim(executor, entries[i].id))
            room = add_entry(&executor->queue, &entries[i]);
    if (!room) /* the next executor gets them */
        executor_warn(executor, "out of memory: executions of the queue wait for a restart");
    arena_done(&arena);
    return result;
}

/* ---- claims ---- */

static struct claim *new_claim(struct executor *executor)
{
    struct claim *claim = calloc(1, sizeof *claim);
    if (!claim)
        return NULL;
    claim->tag = ++executor->queue.next_tag;
    claim->given_ms = clock_now_ms();
    claim->next = executor->queue.claims;
    executor->queue.claims = claim;
    executor->queue.claim_count++;
    return claim;
}

static void free_claim(struct executor *executor, struct claim *claim)
{
    struct claim **at = &executor->queue.claims;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    executor->queue.claim_count--;
    execution_request_done(&claim->request);
    free(claim);
}

static void encode_reservation(const struct execution_request *request, struct str *out)
{
    struct execution_request row = *request;
    execution_request_thin(&row);
    (void)execution_request_encode(&row, out, NULL);
}

static void send_claim(struct executor *executor, struct claim *claim)
{
    autostr struct str bytes = {0};
    if (claim->reserves)
        encode_reservation(&claim->request, &bytes);
    else
        str_append(&bytes, claim->entry.id);
    claim->sent = !bytes.failed &&
                  executor_tell_history(executor, claim->reserves ? MESSAGE_RESERVE : MESSAGE_CLAIM,
                                        claim->tag, bytes.data, bytes.length);
}

static void answer_http(struct executor *executor, const struct claim *claim,
                        enum message_verdict verdict, const char *id)
{
    char bytes[1 + EXECUTION_ID_LENGTH + 1];
    (void)snprintf(bytes + 1, sizeof bytes - 1, "%s", id);
    bytes[0] = (char)verdict;
    executor_tell_http(executor, claim->http, MESSAGE_REPEATED, claim->execute_tag, bytes,
                       1 + strlen(bytes + 1));
}

void executor_queue_reserve(struct executor *executor, struct execution_request *request,
                            uint64_t tag)
{
    struct claim *claim = executor->queue.claim_count < CLAIMS_MAX ? new_claim(executor) : NULL;
    const struct claim refused = {.execute_tag = tag, .http = executor->http_processes};
    if (!claim) {
        answer_http(executor, &refused, VERDICT_LATER, "");
        execution_request_done(request);
        return;
    }
    claim->reserves = true;
    claim->execute_tag = tag;
    claim->http = executor->http_processes;
    claim->request = *request;
    *request = (struct execution_request){0};
    (void)snprintf(claim->entry.id, sizeof claim->entry.id, "%s", claim->request.id);
    (void)snprintf(claim->entry.domain, sizeof claim->entry.domain, "%s", claim->request.domain);
}

/* ---- answers to claims ---- */

static void begin_reserved(struct executor *executor, struct claim *claim)
{
    if (claim->cancelled) {
        executor_run_refuse(executor, &claim->entry, EXECUTION_SETUP_FAILED,
                            "the history did not answer in time");
        return;
    }
    executor_tell_http(executor, claim->http, MESSAGE_BEGUN, claim->execute_tag, claim->entry.id,
                       EXECUTION_ID_LENGTH);
    executor_run_begin(executor, &claim->request, claim->execute_tag, claim->http);
}

static void begin_queued(struct executor *executor, struct claim *claim,
                         const struct message *message)
{
    struct execution_request request;
    if (claim->cancelled) {
        executor_run_refuse(executor, &claim->entry, EXECUTION_KILLED,
                            "it was ended before it began");
        return;
    }
    if (execution_request_decode(message->bytes + 1, message->length - 1, &request, NULL) < 0) {
        executor_run_refuse(executor, &claim->entry, EXECUTION_SETUP_FAILED,
                            "it was queued by another version of brigd; submit it again");
        return;
    }
    executor_run_begin(executor, &request, 0, 0);
}

int executor_queue_take_claimed(struct executor *executor, const struct message *message,
                                struct brig_error *err)
{
    struct claim *claim = executor->queue.claims;
    while (claim && claim->tag != message->tag)
        claim = claim->next;
    if (!claim || message->length < 1)
        return claim ? brig_fail(err, BRIG_E_INVALID, 0, "a claim has an empty answer") : 0;
    enum message_verdict verdict = (enum message_verdict)message->bytes[0];
    if (verdict == VERDICT_GO && claim->reserves)
        begin_reserved(executor, claim);
    else if (verdict == VERDICT_GO)
        begin_queued(executor, claim, message);
    else if (claim->reserves && !claim->cancelled)
        answer_http(executor, claim, verdict, message->bytes + 1);
    else if (verdict == VERDICT_LATER && !claim->reserves) {
        executor->queue.retry_ms = clock_now_ms() + RETRY_MS;
        (void)add_entry(&executor->queue, &claim->entry);
    }
    free_claim(executor, claim);
    return 0;
}

/* ---- what there is room for ---- */

static size_t queued_claims(const struct executor *executor)
{
    size_t count = 0;
    for (const struct claim *claim = executor->queue.claims; claim; claim = claim->next)
        count += !claim->reserves;
    return count;
}

static bool has_room(const struct executor *executor)
{
    const struct server_config *config = executor->config;
    const struct executor_queue *queue = &executor->queue;
    size_t claims = queued_claims(executor), runs = executor->run_count + claims;
    uint64_t share = config->sandbox.max_concurrent * config->queue.places_percent / 100;
    if (claims >= CLAIMS_MAX || queue->running + claims >= (share > 0 ? share : 1))
        return false;
    return runs == 0 || (runs < config->sandbox.max_concurrent && runs < executor->gauges.places);
}

static size_t claims_of(const struct executor *executor, const char *domain)
{
    size_t count = 0;
    for (const struct claim *claim = executor->queue.claims; claim; claim = claim->next)
        count += strcmp(claim->entry.domain, domain) == 0;
    return count;
}

/* Returns the first entry whose key may run more, or `count`. */
static size_t next_entry(const struct executor *executor)
{
    const struct executor_queue *queue = &executor->queue;
    const char *full = NULL;
    for (size_t i = 0; i < queue->count; i++) {
        const char *domain = queue->entries[i].domain;
        if (full && strcmp(full, domain) == 0)
            continue;
        if (!executor_key_is_full(executor, domain, claims_of(executor, domain)))
            return i;
        full = domain;
    }
    return queue->count;
}

static void claim_next(struct executor *executor)
{
    while (executor->queue.count > 0 && has_room(executor)) {
        size_t at = next_entry(executor);
        struct claim *claim = at < executor->queue.count ? new_claim(executor) : NULL;
        if (!claim)
            return;
        claim->entry = take_entry(&executor->queue, at);
    }
}

/* The client of a reservation gets an answer; the claim must not begin when it comes. */
static void end_late(struct executor *executor, uint64_t now_ms)
{
    for (struct claim *claim = executor->queue.claims; claim; claim = claim->next)
        if (claim->reserves && !claim->cancelled && now_ms - claim->given_ms >= RESERVE_MS) {
            claim->cancelled = true;
            answer_http(executor, claim, VERDICT_LATER, "");
        }
}

static bool may_claim(const struct executor *executor)
{
    const struct channel *history = executor->peers[ROLE_HISTORY].channel;
    return history && !channel_is_busy(history) && journal_is_sent(&executor->journal);
}

void executor_queue_settle(struct executor *executor, uint64_t now_ms)
{
    if (may_claim(executor) && !executor->draining && now_ms >= executor->queue.retry_ms)
        claim_next(executor);
    for (struct claim *claim = executor->queue.claims; claim && may_claim(executor);
         claim = claim->next)
        if (!claim->sent)
            send_claim(executor, claim);
    end_late(executor, now_ms);
}

uint64_t executor_queue_due_ms(const struct executor *executor)
{
    uint64_t due = UINT64_MAX;
    if (executor->queue.count > 0 && executor->queue.retry_ms > clock_now_ms())
        due = executor->queue.retry_ms;
    for (const struct claim *claim = executor->queue.claims; claim; claim = claim->next)
        if (claim->reserves && !claim->cancelled && claim->given_ms + RESERVE_MS < due)
            due = claim->given_ms + RESERVE_MS;
    return due;
}

void executor_queue_renew(struct executor *executor)
{
    executor->queue.count = 0;
    for (struct claim *claim = executor->queue.claims; claim; claim = claim->next)
        claim->sent = false;
}

void executor_queue_done(struct executor *executor)
{
    while (executor->queue.claims)
        free_claim(executor, executor->queue.claims);
    executor_queue_stored(executor, UINT64_MAX);
    free(executor->queue.entries);
}

/* ---- questions ---- */

static bool is_own(const struct queue_entry *entry, const char *domain)
{
    return !*domain || strcmp(entry->domain, domain) == 0;
}

enum queue_kill { QUEUE_UNKNOWN, QUEUE_KILLED, QUEUE_KILLED_LATER };

/* Ends an execution that waits or is about to begin. With QUEUE_KILLED_LATER the answer to this tag
 * follows when it is stored: after a restart it must not run. */
static enum queue_kill kill_waiting(struct executor *executor, const char *id, const char *domain,
                                    uint64_t tag)
{
    struct claim *claim = find_claim(executor, id);
    if (claim) {
        claim->cancelled = claim->cancelled || is_own(&claim->entry, domain);
        return is_own(&claim->entry, domain) ? QUEUE_KILLED : QUEUE_UNKNOWN;
    }
    size_t at = find_entry(executor, id);
    if (at == executor->queue.count || !is_own(&executor->queue.entries[at], domain))
        return QUEUE_UNKNOWN;
    const struct queue_entry entry = take_entry(&executor->queue, at);
    executor_run_refuse(executor, &entry, EXECUTION_KILLED, "it was ended before it began");
    struct ended_entry *ended = malloc(sizeof *ended);
    if (!ended)
        return QUEUE_KILLED;
    *ended = (struct ended_entry){.next = executor->queue.ended,
                                  .http = executor->http_processes,
                                  .tag = tag,
                                  .row = journal_last(&executor->journal)};
    executor->queue.ended = ended;
    return QUEUE_KILLED_LATER;
}

int executor_queue_take_kill(struct executor *executor, const struct message *message,
                             struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    (void)snprintf(id, sizeof id, "%s", message->bytes);
    if (!execution_id_is_valid(id))
        return brig_fail(err, BRIG_E_INVALID, 0, "a request to end an execution has no valid id");
    const char *domain = message->bytes + EXECUTION_ID_LENGTH;
    executor_hear_history(executor);
    struct run *run = executor_run_find(executor, id);
    if (run && *domain && strcmp(run->request.domain, domain) != 0)
        run = NULL; /* belongs to another API key */
    enum queue_kill waited = run ? QUEUE_UNKNOWN : kill_waiting(executor, id, domain, message->tag);
    char answer = run != NULL || waited == QUEUE_KILLED;
    if (run)
        executor_run_cancel(run, RUN_CANCELLED);
    if (waited != QUEUE_KILLED_LATER)
        executor_tell_http(executor, executor->http_processes, MESSAGE_KILLED, message->tag,
                           &answer, 1);
    return 0;
}

void executor_queue_stored(struct executor *executor, uint64_t row)
{
    for (struct ended_entry **at = &executor->queue.ended; *at;) {
        struct ended_entry *ended = *at;
        if (ended->row > row) {
            at = &ended->next;
            continue;
        }
        const char answer = 1;
        executor_tell_http(executor, ended->http, MESSAGE_KILLED, ended->tag, &answer, 1);
        *at = ended->next;
        free(ended);
    }
}

uint64_t executor_queue_position(const struct executor *executor, const char *id,
                                 const char *domain)
{
    const struct claim *claim = find_claim(executor, id);
    size_t at = find_entry(executor, id);
    if (claim)
        return is_own(&claim->entry, domain) ? 1 : 0;
    return at < executor->queue.count && is_own(&executor->queue.entries[at], domain) ? at + 1 : 0;
}

int executor_queue_take_peek(struct executor *executor, const struct message *message,
                             struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    autostr struct str bytes = {0};
    (void)snprintf(id, sizeof id, "%s", message->bytes);
    if (!execution_id_is_valid(id))
        return brig_fail(err, BRIG_E_INVALID, 0, "a question about an execution has no valid id");
    const char *domain = message->bytes + EXECUTION_ID_LENGTH;
    executor_hear_history(executor);
    const struct run *run = executor_run_find(executor, id);
    if (run && (!*domain || strcmp(run->request.domain, domain) == 0)) {
        struct execution_result result;
        executor_outcome_so_far(run, &result);
        (void)execution_result_encode(&result, &bytes, NULL);
        execution_result_done(&result);
    } else {
        uint64_t position = executor_queue_position(executor, id, domain);
        str_append_bytes(&bytes, &position, position > 0 ? sizeof position : 0);
    }
    executor_tell_http(executor, executor->http_processes, MESSAGE_PEEKED, message->tag,
                       bytes.failed ? NULL : bytes.data, bytes.failed ? 0 : bytes.length);
    return 0;
}
