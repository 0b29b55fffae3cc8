/* SPDX-License-Identifier: MIT */
/* Theory of operation: tools bounded apart from the agent that starts them.
 *
 * Inside a jail there are no namespaces and no cgroups to be had. So its supervisor listens on a
 * socket that was made inside (TOOLS_SOCKET). A brig in there connects, says which limits its tool
 * shall have, and gets a token: there is a leaf beside the jail's own now, inside the group whose
 * limits hold for all. The tool's process connects in turn, before its exec, with the token, and the
 * supervisor moves it into the leaf. The leaf lives as long as the first connection.
 *
 * Whoever connects is untrusted. A request is a struct of fixed size; limits can only tighten what
 * holds anyway; there are at most CGROUP_LEAF_MAX leaves. Who is moved is who has connected, by the
 * kernel's word, and only from where the jail itself lives: nobody can move another, nor leave a
 * leaf. No descriptors are handed out, and none are taken: see nested_limits.c. Everything asked for
 * has a price in time, so that a jail cannot keep its supervisor busy; who cannot pay is not heard
 * until he can. */
#pragma once

#include "jail/cgroup/cgroup.h"

#define NESTED_LIMITS_SOCKET "/run/brig-tools"

/* ---- The supervisor's side ---- */

/* Each leaf has a connection, and some are needed to join them. */
#define NESTED_LIMITS_PEERS_MAX (CGROUP_LEAF_MAX + 8)

struct nested_limits_peer {
    int fd;         /* -1: free */
    bool watched;   /* it is in the epoll set */
    bool shut;      /* never to be read from again, nor closed before the end */
    uint64_t token; /* the leaf's, until somebody has joined it; else 0 */
    struct cgroup *leaf;
};

struct nested_limits {
    int listener;
    bool listening;       /* it is in the epoll set */
    int epoll;            /* borrowed; -1: nothing is watched */
    struct cgroup *group; /* borrowed */
    pid_t init;           /* the jail's first process, which is where the jail is */
    bool no_rights;       /* the kernel keeps descriptors out of messages to us */
    struct nested_limits_peer peers[NESTED_LIMITS_PEERS_MAX];
    uint64_t paid_us;   /* until when everything is paid for; in the future: nobody is heard */
    uint64_t accept_us; /* when there may be descriptors for connections again, or 0 */
    uint64_t due_us;    /* when somebody who is not watched now has to be, or 0 */
};

/* NULL without memory. Takes the listener; release with tools_free(). `init` must not be reaped
 * before. */
struct nested_limits *nested_limits_new(int listener, struct cgroup *group, pid_t init);
/* What is left of the tools is killed. Accepts NULL. Never blocks, whatever the jail has sent. */
void nested_limits_free(struct nested_limits *nested_limits);
/* Has an epoll set report what is to be served, by its fd. The set must live as long. */
void nested_limits_watch(struct nested_limits *nested_limits, int epoll_fd, uint64_t now_us);
/* Serves an fd that is readable: the listener or a peer. False if it is none of ours. */
bool nested_limits_serve(struct nested_limits *nested_limits, int fd, uint64_t now_us);
/* When tools_wake() wants to be called next, or 0. */
uint64_t nested_limits_due_us(const struct nested_limits *nested_limits);
void nested_limits_wake(struct nested_limits *nested_limits, uint64_t now_us);

/* ---- The side inside; joining is in child_clone.c ---- */

struct nested_limits_lease;

/* Whether there is a supervisor to ask, at first sight. */
bool nested_limits_are_near(void);

/* Asks for a leaf. *ret_missing: bits that cannot be had. 0, or BRIG_E_UNSUPPORTED: nobody answers,
 * or with a refusal; then nothing is touched. */
int nested_limits_lease_new(const struct cgroup_limits *limits,
                            struct nested_limits_lease **ret_lease, unsigned *ret_missing,
                            struct brig_error *err);
/* What one process can join it by. */
uint64_t nested_limits_lease_token(const struct nested_limits_lease *lease);
void nested_limits_lease_usage(struct nested_limits_lease *lease, struct cgroup_usage *ret_usage);
void nested_limits_lease_free(struct nested_limits_lease *lease); /* accepts NULL */
