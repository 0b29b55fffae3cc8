/* SPDX-License-Identifier: MIT */
/* The credential of agents: taken from brigd's environment, and kept out of the environment of
 * every jail. */
#pragma once

#include <stdbool.h>

struct arena;
struct brig_error;
struct brig_policy;
struct server_config;

enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_API_KEY, CREDENTIAL_OAUTH };

struct credential {
    enum credential_kind kind;
    char *value; /* on the heap; wiped when freed */
};

/* Moves ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN out of the executor's environment. */
int executor_credential_take(struct credential *ret_credential, struct brig_error *err);
void executor_credential_done(struct credential *credential);

/* Lets an agent use the credential: through the broker, which adds it to requests outside the jail,
 * or as a file that a wrapper reads and removes before it starts the agent. *argv is replaced by
 * the wrapper's command line, in the arena. */
int executor_credential_lend(const struct credential *credential,
                             const struct server_config *config, struct brig_policy *policy,
                             const char ***argv, struct arena *arena, struct brig_error *err);
