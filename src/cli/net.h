/* SPDX-License-Identifier: MIT */
/* The network of a run: what follows from all rules together, and what only the system can tell. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"
#include "policy/policy.h"

struct identity;
struct settings;

/* Where the broker is that a run would use. False if there is none at any place we know. */
bool net_find_broker(char *path, size_t size);

/* Settles which network it is, where the broker is, which proxy the host uses, and the credentials;
 * their secrets are read unless it is a dry run. */
int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);

/* Takes "http://[USER[:PASSWORD]@]HOST[:PORT][/]" apart; false if it is none. Pure. The caller
 * frees both; *ret_secret is what goes into Proxy-Authorization, or NULL. */
bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret);

/* Cuts the text of NO_PROXY into its host names, ended by NULL, and returns their count.
 * Addresses are left out: a connection to an address is never sent to the proxy. Pure. */
size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1]);

/* ---- What went through the network door, as it happens: into a log, on stderr, and into a list of
 * what would have to be allowed ---- */

/* More destinations than these are only counted. */
#define NET_WATCH_BLOCKED_MAX 64
#define NET_WATCH_LEARNT_MAX 4096

/* A destination that was reached, for --net learn. */
struct net_learnt {
    char *name; /* or an address */
    unsigned port;
};

struct net_watch {
    int log; /* -1: none */
    bool log_owned;
    bool log_failed;
    uint64_t log_bytes;
    bool shown; /* to people */
    bool learn;
    char *blocked[NET_WATCH_BLOCKED_MAX]; /* lines that were shown, or wait for the end */
    size_t blocked_count, blocked_shown;
    size_t blocked_more; /* beyond the maximum */
    struct net_learnt *learnt;
    size_t learnt_count;
};

#define NET_WATCH_INIT ((struct net_watch){.log = -1})

/* Opens the log, with the user's rights. Release with net_watch_done(). */
int net_watch_init(struct net_watch *watch, const struct settings *settings,
                   const struct identity *identity, struct brig_error *err);
void net_watch_done(struct net_watch *watch);

/* One event. With `now` a line may be shown at once; else it waits for net_watch_show(). */
void net_watch_event(struct net_watch *watch, const struct brig_net_event *event, bool now);
/* Shows what waits. */
void net_watch_show(struct net_watch *watch);
/* The end of the run: what was learnt. */
void net_watch_conclude(struct net_watch *watch);

/* For an event that says no: the line, or "" if there is nothing to say. Pure. */
#define NET_LINE_MAX 1024
void net_watch_line(const struct brig_net_event *event, char line[NET_LINE_MAX]);
/* The directives that allow what was learnt, sorted. Pure. */
void net_watch_rules(const struct net_watch *watch, struct str *out);

/* ---- Mirrors of package registries that the user has configured, for @npm+mirrors and its kind ---- */

#define MIRRORS_RULE_MAX 320 /* "HOST:PORT" */

/* Allows those that the policy asks for, and says which. */
int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* The next URL of http or https in a text of `length` bytes, from *at on: as a rule "HOST:PORT", and *at
 * behind it. False if there is none. Pure. */
bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX]);
/* Whether a line of a configuration file, "KEY = VALUE", sets one of these keys (ended by NULL); then
 * *ret_value is where its value begins. For "registry", also "@scope:registry". Pure. */
bool mirrors_is_key(const char *line, size_t length, const char *const *keys, size_t *ret_value);
