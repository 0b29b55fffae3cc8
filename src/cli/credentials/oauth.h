/* SPDX-License-Identifier: MIT */
/* OAuth tokens of agents, which brig keeps outside every jail and refreshes during a run. brig-token
 * (src/token) does the work; this module starts it and hands new tokens to the broker. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include <brig/brig.h>

struct identity;
struct oauth;
struct settings;

#define OAUTH_MAX 4 /* agents whose tokens a run uses */

/* The directory of an agent's credential in the storage; false if it is too long. */
bool oauth_directory(const char *storage, const char *agent, char *path, size_t size);
/* Whether the store has a credential of the agent. */
bool oauth_is_kept(const struct settings *settings, const char *agent);
/* Stores the credential that a log-in of the agent has written to the file `input`, with the ids of the
 * user. The directory must exist. */
int oauth_keep(const struct settings *settings, const struct identity *identity, const char *agent,
               int input, struct brig_error *err);

/* Takes the token of an agent for the credential that is added to the policy next: refreshed if it
 * expires soon. *ret_account is the account or NULL, for free(). */
int oauth_take(struct settings *settings, const struct identity *identity, const char *agent,
               char **ret_secret, char **ret_account, struct brig_error *err);
/* Makes the credential that was added last a live one: later tokens replace its secret. */
int oauth_make_live(struct settings *settings, struct brig_error *err);
void oauth_free(struct oauth *oauth);

/* ---- During the run; oauth may be NULL ---- */

/* Fills in OAUTH_MAX entries, and reduces the timeout to the next refresh. */
void oauth_poll(struct oauth *oauth, struct pollfd *fds, int *timeout_ms);
/* Starts refreshes that are due, without waiting for them, and takes results. */
void oauth_process(struct oauth *oauth, const struct pollfd *fds);
/* A request to a service was answered with 401: its token is refreshed, once. */
void oauth_event(struct oauth *oauth, const struct brig_net_event *event);
