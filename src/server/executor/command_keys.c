/* SPDX-License-Identifier: MIT */
/* Idempotency keys of commands. They live as long as the sandbox, and are in memory as it is: what
 * ends the one ends the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "server/executor/executor.h"

#define KEYS_MAX 1024 /* of one sandbox; older ones are forgotten */

struct command_key {
    struct command_key *next;
    uint64_t number; /* of the command */
    char key[EXECUTION_IDEMPOTENCY_MAX + 1];
    char body_sha256[SHA256_HEX_LENGTH + 1];
};

bool executor_key_find(struct sandbox *sandbox, const struct sandbox_request *request,
                       struct caller caller, uint64_t *ret_number)
{
    const struct command_key *found = request->idempotency_key ? sandbox->keys : NULL;
    while (found && strcmp(found->key, request->idempotency_key) != 0)
        found = found->next;
    if (!found)
        return false;
    const struct command *command = sandbox->commands;
    while (command && command->number != found->number)
        command = command->next;
    *ret_number = 0;
    if (!request->body_sha256 || strcmp(found->body_sha256, request->body_sha256) != 0)
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_KEY_USED, "",
                                "this Idempotency-Key was used for another request");
    else if (!command)
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_CONFLICT, "",
                                "the command %llu of this Idempotency-Key has ended, and its "
                                "result is not kept any more",
                                (unsigned long long)found->number);
    else
        *ret_number = found->number;
    return true;
}

static void drop_after(struct command_key **at)
{
    for (struct command_key *next; *at; *at = next) {
        next = (*at)->next;
        free(*at);
    }
}

void executor_key_add(struct sandbox *sandbox, const struct command *command)
{
    const struct sandbox_request *request = &command->request;
    struct command_key *key = request->idempotency_key ? calloc(1, sizeof *key) : NULL;
    size_t count = 0;
    if (!key)
        return;
    key->number = command->number;
    (void)snprintf(key->key, sizeof key->key, "%s", request->idempotency_key);
    (void)snprintf(key->body_sha256, sizeof key->body_sha256, "%s",
                   request->body_sha256 ? request->body_sha256 : "");
    key->next = sandbox->keys;
    sandbox->keys = key;
    for (struct command_key **at = &sandbox->keys; *at; at = &(*at)->next)
        if (count++ == KEYS_MAX) {
            drop_after(at);
            return;
        }
}

void executor_keys_free(struct sandbox *sandbox)
{
    drop_after(&sandbox->keys);
}
