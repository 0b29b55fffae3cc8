/* SPDX-License-Identifier: MIT */
/* The credential of agents: from brigd's environment, kept out of every jail's. */
#pragma once

#include <stdbool.h>

struct arena;
struct brig_error;
struct brig_policy;
struct server_config;

enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_API_KEY, CREDENTIAL_OAUTH };

struct credential {
    enum credential_kind kind;
    char *value; /* the heap's; cleared when it is let go */
};

/* Takes ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN out of our own environment. */
int executor_credential_take(struct credential *ret_credential, struct brig_error *err);
void executor_credential_done(struct credential *credential);

/* Gives an agent the use of it: through the door, which adds it to requests outside, or as a file that a
 * wrapper reads and removes before the agent begins. *argv is replaced by the wrapper's, in the arena. */
int executor_credential_lend(const struct credential *credential,
                             const struct server_config *config, struct brig_policy *policy,
                             const char ***argv, struct arena *arena, struct brig_error *err);
