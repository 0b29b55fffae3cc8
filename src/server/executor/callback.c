/* SPDX-License-Identifier: MIT */
/* Callbacks: the request with its signature, and the jail that sends it. */
#include "server/executor/callback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "policy/policy.h"
#include "server/api/judge0_answer.h"
#include "server/callback.h"
#include "server/config/config.h"
#include "server/executor/executor.h"
#include "server/history/queue.h"
#include "server/http/result_json.h"

#define PROGRAM "/run/brig-callback" /* in the jail */
#define MARGIN_MS 2000               /* for the start of the jail and the program */
#define MEMORY_BYTES ((uint64_t)256 << 20)
#define PROCESSES 16 /* libcurl resolves names in a thread */
#define OUTPUT_BYTES 4096

/* The jail is held by a run that is in no list; it gives it a slot and a host uid. */
struct callback {
    struct callback *next;
    struct executor *executor;
    struct run *run;
    bool forgotten; /* nothing waits for its end */
    char id[EXECUTION_ID_LENGTH + 1];
    struct str input; /* of the program, as long as it runs */
};

/* ---- the request ---- */

/* Whole, or without files, or also without output: what fits. */
static void write_body(const struct execution_result *result, uint64_t most, struct str *out)
{
    struct execution_result part = *result;
    for (int left_out = 0; left_out < 3; left_out++) {
        struct json j;
        str_done(out);
        if (left_out > 0)
            part.file_count = 0;
        json_init(&j, out);
        result_json_write(&j, &part, left_out > 1, left_out > 1);
        if (out->failed || out->length <= most)
            return;
    }
}

static int make_body(const struct executor *executor, const struct queue_call *call,
                     struct str *out, struct brig_error *err)
{
    if (call->note.length > 0)
        return judge0_write_callback(call->id, call->note, call->result, out, err);
    struct execution_result result = {.id = call->id,
                                      .status = EXECUTION_LOST,
                                      .exit_code = -1,
                                      .output = {.data = ""},
                                      .error_output = {.data = ""},
                                      .message = "brigd or its executor ended before this "
                                                 "execution did"};
    int decoded = 0;
    if (call->result.length > 0)
        decoded = execution_result_decode(call->result.data, call->result.length, &result, err);
    if (decoded < 0)
        return decoded;
    write_body(&result, executor->config->callback.max_body_bytes, out);
    if (call->result.length > 0)
        execution_result_done(&result);
    return out->failed ? brig_fail_nomem(err) : 0;
}

/* As Standard Webhooks has it: HMAC-SHA256 of "ID.TIMESTAMP.BODY", in base64. */
static void write_signature(const char *secret, const char *id, const char *timestamp,
                            const struct str *body, struct str *out)
{
    unsigned char digest[SHA256_BYTES];
    autostr struct str text = {0};
    str_concat(&text, id, ".", timestamp, ".");
    str_append_bytes(&text, body->data, body->length);
    out->failed |= text.failed;
    hmac_sha256(secret, strlen(secret), text.data, text.length, digest);
    base64_append(out, digest, sizeof digest);
}

static int make_input(const struct executor *executor, const struct queue_call *call,
                      struct str *out, struct brig_error *err)
{
    const struct server_config *config = executor->config;
    const char *secret = *call->secret ? call->secret : config->callback.secret;
    char timestamp[32];
    autostr struct str body = {0};
    int result = make_body(executor, call, &body, err);
    if (result < 0)
        return result;
    bool judge0 = call->note.length > 0, has_secret = secret && *secret;
    if (!has_secret && !judge0)
        return brig_fail(err, BRIG_E_STATE, 0, "callback.secret is not set any more");
    (void)snprintf(timestamp, sizeof timestamp, "%lld", (long long)time(NULL));
    str_concat(out, "url ", call->url, "\n");
    str_appendf(out, "timeout %" PRIu64 "\n", config->callback.timeout_ms);
    if (judge0) /* Judge0 signs nothing; a signature is added if the server has a secret */
        str_append(out, "method PUT\n");
    str_append(out, "header Content-Type: application/json\nheader Expect:\n");
    str_append(out, "header User-Agent: brigd/" BRIG_VERSION "\n");
    str_concat(out, "header webhook-id: ", call->id, "\nheader webhook-timestamp: ", timestamp,
               "\n");
    if (has_secret) {
        str_append(out, "header webhook-signature: v1,");
        write_signature(secret, call->id, timestamp, &body, out);
        str_append_char(out, '\n');
    }
    str_appendf(out, "header X-Brig-Attempt: %" PRIu64 "\n\n", call->attempt);
    str_append_bytes(out, body.data, body.length);
    return out->failed ? brig_fail_nomem(err) : 0;
}

/* ---- the jail ---- */

static int set_limits(struct brig_policy *policy, uint64_t timeout_ms, struct brig_error *err)
{
    const struct {
        enum brig_limit limit;
        uint64_t value;
    } rows[] = {
        {BRIG_LIMIT_WALL_MS, timeout_ms + MARGIN_MS},
        {BRIG_LIMIT_MEMORY_BYTES, MEMORY_BYTES},
        {BRIG_LIMIT_PROCESSES, PROCESSES},
        {BRIG_LIMIT_OUTPUT_BYTES, OUTPUT_BYTES},
    };
    int result = brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, err);
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && result == 0; i++)
        result = brig_policy_limit(policy, rows[i].limit, rows[i].value, err);
    return result;
}

static int set_identity(struct brig_policy *policy, uid_t host_uid, struct brig_error *err)
{
    const struct brig_identity identity = {
        .size = sizeof identity,
        .host_uid = host_uid,
        .host_gid = (gid_t)host_uid,
        .inside_uid = RUNTIME_CODE_UID,
        .inside_gid = RUNTIME_CODE_UID,
        .name = "callback",
    };
    policy->stranger = host_uid != (uid_t)-1;
    return brig_policy_identity(policy, &identity, err);
}

static bool has_port(const struct net_rule *rule, uint16_t port)
{
    bool found = rule->port_count == 0;
    for (size_t i = 0; i < rule->port_count; i++)
        found = found || (rule->ports[i].first <= port && port <= rule->ports[i].last);
    return found;
}

/* A name may resolve to an address that is not public only if callback.allow has that with the port of
 * the URL. */
static int set_network(const struct executor *executor, struct brig_policy *policy,
                       const struct callback_target *target, struct brig_error *err)
{
    const struct config_list *allow = &executor->config->callback.allow;
    int result = brig_policy_network(policy, BRIG_NET_ALLOW, err);
    if (result == 0 && executor->broker[0])
        result = brig_policy_broker(policy, executor->broker, err);
    if (result == 0)
        result = brig_policy_allow(policy, target->rule, err);
    for (size_t i = 0; i < allow->count && result == 0; i++) {
        struct net_rule rule;
        char text[NET_RULE_TEXT_MAX];
        if (net_rule_parse(allow->items[i], false, &rule, NULL) < 0 ||
            rule.kind != NET_RULE_RANGE || !has_port(&rule, target->port))
            continue;
        rule.ports[0] = (struct net_ports){target->port, target->port};
        rule.port_count = 1;
        net_rule_print(&rule, text);
        result = brig_policy_allow(policy, text, err);
    }
    return result;
}

static int make_policy(const struct callback *callback, const struct callback_target *target,
                       struct brig_policy *policy, struct brig_error *err)
{
    const struct executor *executor = callback->executor;
    int result = brig_policy_origin(policy, "callback", err);
    if (result == 0)
        result = brig_policy_seccomp(policy, BRIG_SECCOMP_CODE, err);
    if (result == 0)
        result = brig_policy_terminal(policy, BRIG_TERMINAL_NONE, err);
    if (result == 0)
        result = set_identity(policy, callback->run->host_uid, err);
    if (result == 0)
        result = set_limits(policy, executor->config->callback.timeout_ms, err);
    if (result == 0)
        result = set_network(executor, policy, target, err);
    if (result == 0)
        result =
            brig_policy_grant(policy, BRIG_READ_ONLY, executor->callback_program, PROGRAM, 0, err);
    return result;
}

static int start_jail(struct callback *callback, const struct callback_target *target,
                      struct brig_error *err)
{
    static const char *const argv[] = {PROGRAM, NULL};
    const struct brig_command command = {
        .size = sizeof command,
        .argv = argv,
        .stdio = {{.kind = BRIG_STDIO_BYTES,
                   .bytes = callback->input.data,
                   .length = callback->input.length},
                  {.kind = BRIG_STDIO_CAPTURE},
                  {.kind = BRIG_STDIO_NULL}},
    };
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    int result = policy ? make_policy(callback, target, policy, err) : brig_fail_nomem(err);
    if (result == 0)
        result = brig_start(policy, &command, &callback->run->job, err);
    brig_policy_free(policy);
    return result;
}

/* ---- from the start to the end ---- */

static void report(struct executor *executor, const char *id, uint64_t status, const char *why)
{
    autostr struct str bytes = {0};
    queue_called_encode(id, status, why, &bytes);
    if (!bytes.failed)
        (void)executor_tell_history(executor, MESSAGE_CALLED, 0, bytes.data, bytes.length);
}

/* Leaves the jail to the loop, which does not wait for the kernel's cleanup. */
static void free_callback(struct callback *callback)
{
    struct callback **at = &callback->executor->callbacks;
    while (*at && *at != callback)
        at = &(*at)->next;
    if (*at)
        *at = callback->next;
    if (callback->run) {
        callback->run->trace.at_us[STEP_ENDED] = clock_now_us();
        executor_unwatch(callback->executor, &callback->run->source);
        executor_run_bury(callback->run);
    }
    str_done(&callback->input);
    free(callback);
}

/* "204" or "0 why". */
static void report_output(const struct callback *callback, const struct brig_result *result)
{
    size_t length = 0;
    char *end = NULL, line[OUTPUT_BYTES];
    (void)snprintf(line, sizeof line, "%s", brig_result_output(result, 1, &length, NULL));
    unsigned long status = strtoul(line, &end, 10);
    line[strcspn(line, "\n")] = '\0';
    if (result->outcome == BRIG_TIMEOUT)
        report(callback->executor, callback->id, 0, "no answer in time");
    else if (result->outcome == BRIG_SETUP_FAILED)
        report(callback->executor, callback->id, 0, result->error.message);
    else if (end == line || status > 999)
        report(callback->executor, callback->id, 0, "brig-callback failed");
    else
        report(callback->executor, callback->id, status, *end == ' ' ? end + 1 : "");
}

static void call_ready(void *owner, uint32_t events)
{
    struct callback *callback = owner;
    struct brig_result result = {0};
    struct brig_error err = {0};
    (void)events;
    int over = brig_job_process(callback->run->job, &err);
    if (over == 0)
        return;
    if (over > 0)
        over = job_take_result(callback->run->job, &result, &err);
    if (!callback->forgotten && over < 0)
        report(callback->executor, callback->id, 0, err.message);
    else if (!callback->forgotten)
        report_output(callback, &result);
    if (over >= 0)
        result_done(&result);
    free_callback(callback);
}

static int start(struct callback *callback, const struct queue_call *call, struct brig_error *err)
{
    struct executor *executor = callback->executor;
    struct callback_target target;
    int result = callback_parse(call->url, &executor->config->callback.allow, &target, err);
    if (result < 0)
        return result;
    if (!executor->config->callback.enabled || !executor->callback_program[0])
        return brig_fail(err, BRIG_E_STATE, 0, "this server makes no callbacks");
    callback->run = executor_run_new(executor);
    if (!callback->run)
        return brig_fail(err, BRIG_E_STATE, 0, "too many concurrent jails");
    result = make_input(executor, call, &callback->input, err);
    if (result == 0)
        result = start_jail(callback, &target, err);
    if (result < 0)
        return result;
    struct run *run = callback->run;
    executor_instance_note(&executor->instance, run->slot, brig_job_pid(run->job));
    run->source = (struct executor_source){
        .ready = call_ready, .owner = callback, .fd = brig_job_fd(run->job)};
    return executor_watch(executor, &run->source, EPOLLIN, err);
}

int executor_callback_take(struct executor *executor, const struct message *message,
                           struct brig_error *err)
{
    struct brig_error why = {0};
    struct queue_call call;
    int result = queue_call_decode(message->bytes, message->length, &call, err);
    if (result < 0)
        return result;
    struct callback *callback = calloc(1, sizeof *callback);
    if (callback) {
        *callback = (struct callback){.executor = executor, .next = executor->callbacks};
        (void)snprintf(callback->id, sizeof callback->id, "%s", call.id);
        executor->callbacks = callback;
    }
    if (!callback || start(callback, &call, &why) < 0) {
        report(executor, call.id, 0, callback ? why.message : "out of memory");
        if (callback)
            free_callback(callback);
    }
    queue_call_done(&call);
    return 0;
}

void executor_callbacks_forget(struct executor *executor)
{
    for (struct callback *callback = executor->callbacks; callback; callback = callback->next)
        callback->forgotten = true;
}

void executor_callbacks_end(struct executor *executor)
{
    while (executor->callbacks)
        free_callback(executor->callbacks);
}
