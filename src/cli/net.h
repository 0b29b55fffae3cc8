/* SPDX-License-Identifier: MIT */
/* The network of a run: combines all rules, and reads the settings that come from the system. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"
#include "policy/policy.h"

struct identity;
struct settings;

/* Finds the broker program that a run would use. False if it is not at any known place. */
bool net_find_broker(char *path, size_t size);

/* Determines the kind of network, the broker, the host's proxy and the credentials. Secrets are
 * read unless this is a dry run. */
int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);

/* Parses "http://[USER[:PASSWORD]@]HOST[:PORT][/]"; false if the URL has another form. Pure. The
 * caller frees both; *ret_secret is the value of Proxy-Authorization, or NULL. */
bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret);

/* Splits the text of NO_PROXY into host names, terminated by NULL, and returns their count.
 * Addresses are dropped, because a connection to an address is never sent to the proxy. Pure. */
size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1]);

/* ---- Network events, as they happen: into a log, on stderr, and into a list of rules that would
 * allow the blocked destinations ---- */

/* Further destinations are only counted. */
#define NET_WATCH_BLOCKED_MAX 64
#define NET_WATCH_LEARNT_MAX 4096

/* A destination that was reached, for --net learn. */
struct net_learnt {
    char *name; /* or an address */
    unsigned port;
};

struct net_watch {
    int log; /* the log file; -1: none */
    bool log_owned;
    bool log_failed;
    uint64_t log_bytes;
    int rules_fd; /* where the learnt rules are written; -1: nowhere */
    bool shown;   /* stderr is read by a person */
    bool learn;
    bool implied;                         /* open, and no option said so */
    const struct net_rules *rules;        /* the policy's; NULL: none */
    char *blocked[NET_WATCH_BLOCKED_MAX]; /* lines that were shown, or wait for the end */
    size_t blocked_count, blocked_shown;
    size_t blocked_more; /* how many exceeded the maximum */
    struct net_learnt *learnt;
    size_t learnt_count;
};

#define NET_WATCH_INIT ((struct net_watch){.log = -1, .rules_fd = -1})

/* Opens the log with the ids of the user. Release with net_watch_done(). */
int net_watch_init(struct net_watch *watch, const struct settings *settings,
                   const struct identity *identity, struct brig_error *err);
void net_watch_done(struct net_watch *watch);

/* Handles one event. With `now` a line may be printed at once; else it waits for
 * net_watch_show(). */
void net_watch_event(struct net_watch *watch, const struct brig_net_event *event, bool now);
/* Prints the waiting lines. */
void net_watch_show(struct net_watch *watch);
/* Called at the end of the run: prints what was learnt. */
void net_watch_conclude(struct net_watch *watch);

/* Formats the line for an event that was denied or failed; "" if there is nothing to report. With
 * `implied` the network is open, and no option said so. Pure. */
#define NET_LINE_MAX 1024
void net_watch_line(const struct brig_net_event *event, bool implied, char line[NET_LINE_MAX]);
/* Appends the directives that allow the learnt destinations, sorted. Pure. */
void net_watch_rules(const struct net_watch *watch, struct str *out);

/* ---- Package registry mirrors that the user has configured, for @npm+mirrors and similar presets
 * ---- */

#define MIRRORS_RULE_MAX 320 /* "HOST:PORT" */

/* Allows the mirrors that the policy asks for, and prints them. The jail gets their addresses as
 * variables of the tools. */
int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* Finds the next http or https URL in a text of `length` bytes from *at on, writes it as a rule
 * "HOST:PORT" and advances *at past it. False if there is none. Pure. */
bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX]);
/* Appends the text without passwords in its URLs, after a blank if `out` is not empty. Pure. */
void mirrors_clean(const char *text, size_t length, struct str *out);
/* Whether a line "KEY = VALUE" of a configuration file sets one of the keys (terminated by NULL);
 * *ret_value is then the offset of the value. The key "registry" also matches "@scope:registry".
 * Pure. */
bool mirrors_is_key(const char *line, size_t length, const char *const *keys, size_t *ret_value);
