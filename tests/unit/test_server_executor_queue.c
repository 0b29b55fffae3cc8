/* SPDX-License-Identifier: MIT */
/* The executor and the queue: nothing runs before its claim was answered, nothing runs twice, whatever the
 * history process does; this test is in its place. */
#include "executor_support.h"
#include "server/history/queue.h"

#define CLAIMS_MAX 16

static struct {
    enum message_type type;
    uint64_t tag;
    char id[EXECUTION_ID_LENGTH + 1];
} claims[CLAIMS_MAX];
static size_t claim_count;
static unsigned begins, ends;
static enum execution_status last_status;
static struct str peeked;
static int verdict;

static const char *id_of(unsigned number)
{
    static char ids[8][EXECUTION_ID_LENGTH + 1];
    static unsigned next;
    char *id = ids[next++ % 8];
    (void)snprintf(id, EXECUTION_ID_LENGTH + 1, "%08x-0000-4000-8000-000000000000", number);
    return id;
}

static void take_claim(const struct message *message)
{
    if (claim_count == CLAIMS_MAX)
        tap_bail("too many claims");
    claims[claim_count].type = message->type;
    claims[claim_count].tag = message->tag;
    (void)snprintf(claims[claim_count].id, sizeof claims[0].id, "%s",
                   message->type == MESSAGE_CLAIM ? message->bytes : "");
    claim_count++;
}

static void take_from_executor(struct rig *rig, const struct message *message)
{
    struct execution_result result;
    switch (message->type) {
    case MESSAGE_CLAIM:
    case MESSAGE_RESERVE:
        take_claim(message);
        return;
    case MESSAGE_BEGIN:
        begins++;
        break;
    case MESSAGE_END:
        ends++;
        if (execution_result_decode(message->bytes, message->length, &result, NULL) < 0)
            tap_bail("a result cannot be read");
        last_status = result.status;
        execution_result_done(&result);
        break;
    default:
        break;
    }
    if (!rig->deaf)
        (void)channel_send(rig->history, MESSAGE_STORED, message->tag, NULL, 0, NULL);
}

static void take_for_http(struct rig *rig, const struct message *message)
{
    if (message->type == MESSAGE_PEEKED) {
        str_done(&peeked);
        str_append_bytes(&peeked, message->bytes, message->length);
        str_append_char(&peeked, '\0');
    } else if (message->type == MESSAGE_KILLED) {
        rig->killed = message->bytes[0];
    } else if (message->type == MESSAGE_REPEATED) {
        verdict = message->bytes[0];
    } else if (message->type == MESSAGE_GAUGES) {
        memcpy(&rig->gauges, message->bytes, sizeof rig->gauges);
    }
}

/* Reads what is there. */
static void hear(struct rig *rig)
{
    struct channel *channels[] = {rig->supervisor, rig->http, rig->history};
    for (size_t i = 0; i < ARRAY_LENGTH(channels); i++)
        for (int got = 1; channels[i] && got == 1;) {
            automessage struct message message = {.fd = -1};
            got = channel_receive(channels[i], &message, NULL);
            if (got == 1 && i == 1)
                take_for_http(rig, &message);
            if (got == 1 && i == 2)
                take_from_executor(rig, &message);
        }
}

/* Until the number is there, or the time is over. */
#define until(rig, condition)                                                                      \
    ({                                                                                             \
        uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();                                 \
        hear(rig);                                                                                 \
        while (!(condition) && clock_now_ms() < deadline) {                                        \
            struct pollfd fds[3] = {                                                               \
                {.fd = channel_fd((rig)->supervisor), .events = POLLIN},                           \
                {.fd = channel_fd((rig)->http), .events = POLLIN},                                 \
                {.fd = (rig)->history ? channel_fd((rig)->history) : -1, .events = POLLIN}};       \
            (void)poll(fds, 3, 50);                                                                \
            hear(rig);                                                                             \
        }                                                                                          \
        (condition);                                                                               \
    })

static void offer(struct rig *rig, unsigned number, int priority)
{
    struct queue_entry entry = {.priority = priority, .created_ns = 1000 + number};
    autostr struct str bytes = {0};
    (void)snprintf(entry.id, sizeof entry.id, "%s", id_of(number));
    (void)snprintf(entry.domain, sizeof entry.domain, "%s", "d");
    queue_entries_encode(&entry, 1, &bytes);
    (void)channel_send(rig->history, MESSAGE_WAITING, 0, bytes.data, bytes.length, NULL);
}

static void answer_claim(struct rig *rig, uint64_t tag, enum message_verdict wanted,
                         unsigned number, const char *code)
{
    struct execution_request request = request_for("bash", code ? code : "");
    autostr struct str bytes = {0};
    str_append_char(&bytes, (char)wanted);
    request.id = id_of(number);
    request.domain = "d";
    request.queued = true;
    if (wanted == VERDICT_GO && code)
        (void)execution_request_encode(&request, &bytes, NULL);
    (void)channel_send(rig->history, MESSAGE_CLAIMED, tag, bytes.data, bytes.length, NULL);
}

static void ask(struct rig *rig, enum message_type type, unsigned number, const char *domain)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%s", id_of(number), domain);
    rig->killed = -1;
    (void)channel_send(rig->http, type, ++rig->tag, text, strlen(text), NULL);
}

static void start(struct rig *rig)
{
    *rig = (struct rig){0};
    claim_count = begins = ends = 0;
    rig_config(rig);
    rig->config.sandbox.max_concurrent = 1;
    rig->config.queue.places_percent = 100;
    rig_start(rig);
}

/* ---- Tests ---- */

static void test_order(struct rig *rig)
{
    start(rig);
    offer(rig, 1, 0);
    tap_ok(until(rig, claim_count == 1), "an entry is claimed");
    tap_is_str(claims[0].id, id_of(1), "by its id");
    offer(rig, 2, 0);
    offer(rig, 3, 5);
    ask(rig, MESSAGE_PEEK, 2, "d");
    tap_ok(until(rig, peeked.length > 0), "its place is asked for");
    tap_ok(peeked.length == 9 && peeked.data[0] == 2, "a higher priority is before it");
    tap_ok(begins == 0 && claim_count == 1, "nothing runs before the answer, nor is more claimed");
    answer_claim(rig, claims[0].tag, VERDICT_GO, 1, "echo out");
    tap_ok(until(rig, ends == 1), "then it runs");
    tap_is_int(last_status, EXECUTION_OK, "to its end");
    tap_ok(until(rig, claim_count == 2), "and the next is claimed");
    tap_is_str(claims[1].id, id_of(3), "the one with the higher priority");
    answer_claim(rig, claims[1].tag, VERDICT_GONE, 3, NULL);
    tap_ok(until(rig, claim_count == 3), "one that is gone gives way");
    tap_is_int(begins, 1, "and does not run");
    answer_claim(rig, claims[2].tag, VERDICT_LATER, 2, NULL);
    tap_ok(until(rig, claim_count == 4), "one that cannot be stored is claimed again");
    tap_is_str(claims[3].id, id_of(2), "later");
    answer_claim(rig, claims[3].tag, VERDICT_GO, 2, "echo out");
    tap_ok(until(rig, ends == 2), "and runs");
    answer_claim(rig, claims[3].tag, VERDICT_GO, 2, "echo out");
    answer_claim(rig, 999, VERDICT_GO, 2, "echo out");
    offer(rig, 4, 0);
    tap_ok(until(rig, claim_count == 5), "answers that nothing waits for");
    tap_is_int(begins, 2, "run nothing");
}

static void test_history_dies(struct rig *rig)
{
    start(rig);
    offer(rig, 1, 0);
    tap_ok(until(rig, claim_count == 1), "an entry is claimed");
    channel_free(take_ptr(&rig->history));
    rig->history = connect_peer(rig, ROLE_HISTORY);
    offer(rig, 1, 0); /* the claim was not stored: it still waits */
    tap_ok(until(rig, claim_count == 2), "a new history process is asked again");
    tap_is_str(claims[1].id, id_of(1), "for the same");
    answer_claim(rig, claims[1].tag, VERDICT_GO, 1, "echo out");
    tap_ok(until(rig, ends == 1), "it runs");
    offer(rig, 2, 0);
    tap_ok(until(rig, claim_count == 3), "the next is claimed");
    tap_is_str(claims[2].id, id_of(2), "and not the first again");
    tap_is_int(begins, 1, "which ran once");
}

static void test_kill(struct rig *rig)
{
    start(rig);
    offer(rig, 1, 0);
    tap_ok(until(rig, claim_count == 1), "an entry is claimed");
    offer(rig, 2, 0);
    ask(rig, MESSAGE_KILL, 2, "other");
    tap_ok(until(rig, rig->killed == 0), "another key cannot end the one that waits");
    ask(rig, MESSAGE_KILL, 1, "other");
    tap_ok(until(rig, rig->killed == 0), "nor the one that is claimed");
    ask(rig, MESSAGE_KILL, 1, "d");
    tap_ok(until(rig, rig->killed == 1), "its own key can");
    answer_claim(rig, claims[0].tag, VERDICT_GO, 1, "echo out");
    tap_ok(until(rig, ends == 1), "it ends");
    tap_is_int(last_status, EXECUTION_KILLED, "as killed");
    tap_ok(until(rig, claim_count == 2), "the second is claimed");
    answer_claim(rig, claims[1].tag, VERDICT_GONE, 2, NULL);
    offer(rig, 3, 0);
    tap_ok(until(rig, claim_count == 3), "a third too");
    offer(rig, 4, 0);
    rig->deaf = true;
    ask(rig, MESSAGE_KILL, 4, "d");
    tap_ok(until(rig, ends == 2), "one that waits is ended");
    tap_is_int(rig->killed, -1, "which is not said before it is stored");
    (void)channel_send(rig->history, MESSAGE_STORED, UINT64_MAX, NULL, 0, NULL);
    tap_ok(until(rig, rig->killed == 1), "then it is");
    tap_is_int(begins, 0, "nothing ran");
}

static void test_reserve(struct rig *rig)
{
    struct execution_request request = request_for("bash", "echo out");
    autostr struct str bytes = {0};
    start(rig);
    request.domain = "d";
    request.idempotency_key = "k";
    request.body_sha256 = "00";
    (void)execution_request_encode(&request, &bytes, NULL);
    for (unsigned i = 0; i < 3; i++)
        (void)channel_send(rig->http, MESSAGE_EXECUTE, 100 + i, bytes.data, bytes.length, NULL);
    tap_ok(until(rig, claim_count == 3), "requests with an idempotency key are asked about");
    tap_ok(claims[0].type == MESSAGE_RESERVE && begins == 0, "before they run");
    answer_claim(rig, claims[0].tag, VERDICT_CONFLICT, 1, NULL);
    tap_ok(until(rig, verdict == VERDICT_CONFLICT), "a conflict is told to the http process");
    answer_claim(rig, claims[1].tag, VERDICT_REPEATED, 1, NULL);
    tap_ok(until(rig, verdict == VERDICT_REPEATED), "a repetition too");
    tap_is_int(begins, 0, "neither runs");
    answer_claim(rig, claims[2].tag, VERDICT_GO, 1, NULL);
    tap_ok(until(rig, ends == 1), "another runs");
    tap_is_int(last_status, EXECUTION_OK, "to its end");
}

int main(void)
{
    static void (*const tests[])(struct rig *) = {test_order, test_history_dies, test_kill,
                                                  test_reserve};
    for (size_t i = 0; i < ARRAY_LENGTH(tests); i++) {
        struct rig rig;
        int status = -1;
        tests[i](&rig);
        drop_peers(&rig); /* the executor ends with the supervisor */
        (void)waitpid(rig.executor, &status, 0);
        tap_is_int(status, 0, "the executor ends");
        rig_done(&rig);
    }
    str_done(&peeked);
    return tap_done();
}
