/* SPDX-License-Identifier: MIT */
/* What went through the network door, as it happens: into a log, on stderr for who sits there, and
 * into a list of what would have to be allowed. */
#pragma once

#include <brig/brig.h>

#include "base/str.h"

struct identity;
struct settings;

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
    size_t learnt_count, learnt_room;
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
