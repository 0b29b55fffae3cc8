/* SPDX-License-Identifier: MIT */
/* The record of a run as bytes, and back. Both ends are brigs of one machine, of the same version or
 * the record is refused: numbers lie in it as they are. A text is its length and its bytes; that of
 * NULL is ABSENT. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/attach/attach.h"

#define MAGIC "brig-run"
#define VERSION 1U
#define ABSENT UINT32_MAX
#define TEXT_MAX (1U << 20)
#define ENV_BYTES 32 /* of a rule for the environment, on average */

struct head {
    char magic[8];
    uint32_t version, size; /* of this head, which changes with what is in it */
    struct attach_facts facts;
    int32_t mode, seccomp, network;
    uint32_t allow_nested, disabled_layers;
    uint64_t limits[BRIG_LIMIT_COUNT_];
    uint32_t env_count, rule_count;
};

void attach_record_done(struct attach_record *record)
{
    brig_policy_free(record->policy);
    for (size_t i = 0; i < record->rule_count; i++)
        free(record->rules[i].path);
    free(record->rules);
    *record = (struct attach_record){0};
}

/* ---- writing ---- */

static void put_number(struct str *bytes, uint32_t number)
{
    str_append_bytes(bytes, &number, sizeof number);
}

static void put_text(struct str *bytes, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    str_reserve(bytes, sizeof(uint32_t) + length);
    put_number(bytes, text ? (uint32_t)length : ABSENT);
    str_append_bytes(bytes, text ? text : "", length);
}

void attach_record_write(const struct attach_record *record, struct str *ret_bytes)
{
    const struct brig_policy *policy = record->policy;
    struct head head = {.version = VERSION, .size = sizeof head};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    head.facts = record->facts;
    head.mode = (int32_t)policy->mode;
    head.seccomp = (int32_t)policy->seccomp;
    head.network = (int32_t)policy->network;
    head.allow_nested = policy->allow_nested;
    head.disabled_layers = policy->disabled_layers;
    memcpy(head.limits, policy->limits, sizeof head.limits);
    head.env_count = (uint32_t)policy->env_count;
    head.rule_count = (uint32_t)record->rule_count;
    str_reserve(ret_bytes, sizeof head + policy->env_count * ENV_BYTES);
    str_append_bytes(ret_bytes, &head, sizeof head);
    const char *const texts[] = {record->jail, policy->user_name, policy->home, policy->shell,
                                 policy->workdir};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        put_text(ret_bytes, texts[i]);
    for (size_t i = 0; i < policy->env_count; i++) {
        put_number(ret_bytes, (uint32_t)policy->env[i].kind);
        put_text(ret_bytes, policy->env[i].name);
        put_text(ret_bytes, policy->env[i].value);
    }
    for (size_t i = 0; i < record->rule_count; i++) {
        str_append_bytes(ret_bytes, &record->rules[i].access, sizeof record->rules[i].access);
        put_text(ret_bytes, record->rules[i].path);
    }
}

/* ---- reading ---- */

struct reader {
    const char *at;
    size_t left;
    bool failed; /* too short, or too long a text */
};

static void get(struct reader *reader, void *to, size_t size)
{
    if (reader->failed || reader->left < size) {
        reader->failed = true;
        memset(to, 0, size);
        return;
    }
    memcpy(to, reader->at, size);
    reader->at += size;
    reader->left -= size;
}

/* For the caller to free; NULL also for what is absent, and after a failure. */
static char *get_text(struct reader *reader)
{
    uint32_t length = ABSENT;
    get(reader, &length, sizeof length);
    if (reader->failed || length == ABSENT)
        return NULL;
    if (length > TEXT_MAX || length > reader->left || memchr(reader->at, 0, length)) {
        reader->failed = true;
        return NULL;
    }
    char *text = strndup(reader->at, length);
    reader->failed = !text;
    reader->at += length;
    reader->left -= length;
    return text;
}

static void read_texts(struct reader *reader, struct attach_record *record)
{
    struct brig_policy *policy = record->policy;
    autofree char *jail = get_text(reader);
    policy->user_name = get_text(reader);
    policy->home = get_text(reader);
    policy->shell = get_text(reader);
    policy->workdir = get_text(reader);
    reader->failed |=
        !jail || strlen(jail) > ENTRY_NAME_MAX || !policy->workdir || policy->workdir[0] != '/';
    if (!reader->failed)
        memcpy(record->jail, jail, strlen(jail) + 1);
}

static void read_env(struct reader *reader, struct brig_policy *policy, uint32_t count)
{
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        uint32_t kind = 0;
        get(reader, &kind, sizeof kind);
        autofree char *name = get_text(reader);
        autofree char *value = get_text(reader);
        if (reader->failed || !name || (kind == POLICY_ENV_SET) != (value != NULL))
            reader->failed = true;
        else if (kind == POLICY_ENV_UNSET)
            reader->failed = brig_policy_unsetenv(policy, name, NULL) < 0;
        else
            reader->failed =
                kind > POLICY_ENV_UNSET || brig_policy_setenv(policy, name, value, NULL) < 0;
    }
}

static void read_rules(struct reader *reader, struct attach_record *record, uint32_t count)
{
    if (reader->failed || count > ENTRY_RULES_MAX ||
        !(record->rules = calloc(count + 1, sizeof *record->rules))) {
        reader->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        struct attach_rule *rule = &record->rules[record->rule_count++];
        get(reader, &rule->access, sizeof rule->access);
        rule->path = get_text(reader);
        reader->failed |= !rule->path || rule->path[0] != '/';
    }
}

static bool is_known(const struct head *head)
{
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 && head->version == VERSION &&
           head->size == sizeof *head;
}

/* Values that the engine's tables are asked with. */
static bool is_sound(const struct head *head)
{
    return (head->seccomp == BRIG_SECCOMP_DEV || head->seccomp == BRIG_SECCOMP_CODE) &&
           head->network >= BRIG_NET_NONE && head->network <= BRIG_NET_OPEN &&
           head->env_count <= POLICY_ENV_MAX && head->facts.init > 0 &&
           head->facts.landlock_size <= sizeof head->facts.landlock;
}

int attach_record_read(const void *bytes, size_t length, struct attach_record *ret_record,
                       struct brig_error *err)
{
    struct reader reader = {.at = bytes, .left = length};
    struct head head;
    get(&reader, &head, sizeof head);
    if (reader.failed || !is_known(&head))
        return brig_fail(err, BRIG_E_INVALID, 0, "the run is of another version of brig");
    struct attach_record record = {.facts = head.facts};
    record.policy = is_sound(&head) ? brig_policy_new((enum brig_mode)head.mode) : NULL;
    if (record.policy) {
        struct brig_policy *policy = record.policy;
        policy->seccomp = (enum brig_seccomp)head.seccomp;
        policy->network = (enum brig_network)head.network;
        policy->allow_nested = head.allow_nested != 0;
        policy->disabled_layers = head.disabled_layers;
        memcpy(policy->limits, head.limits, sizeof policy->limits);
        read_texts(&reader, &record);
        read_env(&reader, policy, head.env_count);
        read_rules(&reader, &record, head.rule_count);
    }
    if (!record.policy || reader.failed || reader.left > 0) {
        attach_record_done(&record);
        return brig_fail(err, BRIG_E_INVALID, 0, "the record of the run is invalid");
    }
    *ret_record = record;
    return 0;
}
