/* SPDX-License-Identifier: MIT */
/* Network events, as they happen: into a log, on stderr, and into a list of rules that would allow the
 * blocked destinations. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"
#include "policy/policy.h"

struct identity;
struct settings;

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
