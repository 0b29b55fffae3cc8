/* SPDX-License-Identifier: MIT */
/* The record of a run, from any bytes: what is read is whole, and is written as it was read. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "jail/attach/attach.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check(const struct attach_record *record)
{
    expect(record->policy && record->policy->workdir && record->policy->workdir[0] == '/');
    expect(strlen(record->jail) <= ENTRY_NAME_MAX && record->rule_count <= ENTRY_RULES_MAX);
    for (size_t i = 0; i < record->rule_count; i++)
        expect(record->rules[i].path && record->rules[i].path[0] == '/');
    for (size_t i = 0; i < record->policy->env_count; i++)
        expect(record->policy->env[i].name != NULL);
    expect(record->facts.landlock_size <= sizeof record->facts.landlock);
}

/* One that is right, for the input to be laid over. */
static void begin(struct str *bytes)
{
    struct attach_rule rule = {.access = 1, .path = (char[]){"/usr"}};
    struct attach_record record = {.facts = {.init = 2},
                                   .jail = "work",
                                   .policy = brig_policy_new(BRIG_MODE_CASUAL),
                                   .rules = &rule,
                                   .rule_count = 1};
    expect(record.policy && brig_policy_setenv(record.policy, "A", "b", NULL) == 0 &&
           brig_policy_unsetenv(record.policy, "*_TOKEN", NULL) == 0 &&
           brig_policy_workdir(record.policy, "/work", NULL) == 0);
    attach_record_write(&record, bytes);
    brig_policy_free(record.policy);
}

static void read_and_write(const void *bytes, size_t length)
{
    struct attach_record record;
    struct str again = {0};
    if (attach_record_read(bytes, length, &record, NULL) < 0)
        return;
    check(&record);
    attach_record_write(&record, &again);
    struct attach_record same;
    expect(!again.failed && again.length == length &&
           attach_record_read(again.data, again.length, &same, NULL) == 0);
    attach_record_done(&same);
    attach_record_done(&record);
    str_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {0};
    read_and_write(data, size);
    begin(&bytes);
    expect(!bytes.failed);
    /* Behind the head, whose magic nobody guesses: two bytes say where. */
    size_t at = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8) % bytes.length;
    size_t count = size < 2 ? 0 : size - 2;
    if (count > bytes.length - at)
        count = bytes.length - at;
    if (count > 0)
        memcpy(bytes.data + at, data + 2, count);
    read_and_write(bytes.data, bytes.length);
    str_done(&bytes);
    return 0;
}
