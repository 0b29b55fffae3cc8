/* SPDX-License-Identifier: MIT */
/* Theory of operation: separate limits for tools that an agent starts in its jail.
 *
 * Inside a jail no namespaces and cgroups can be created. So the supervisor listens on a socket
 * that was created inside (NESTED_LIMITS_SOCKET). A brig process in the jail connects, sends the
 * limits for its tool, and gets a token: the supervisor has created a leaf beside the jail's
 * `main`, inside the group whose limits apply to all. The tool's process then connects, before its
 * exec, with the token, and the supervisor moves it into the leaf. The leaf exists as long as the
 * first connection.
 *
 * Every peer is untrusted. A request is a struct of fixed size; limits can only tighten the
 * existing ones; there are at most CGROUP_LEAF_MAX leaves. The supervisor moves only the peer
 * process, as identified by the kernel, and only out of the cgroup of the jail itself: a process
 * cannot move another one, nor leave a leaf. No descriptors are sent or accepted: see
 * nested_limits.c. Every request has a price in time, so that a jail cannot keep its supervisor
 * busy; the supervisor does not read further requests until the earlier ones are paid for. */
#pragma once

#include "jail/cgroup/cgroup.h"

#define NESTED_LIMITS_SOCKET "/run/brig-tools"

/* ---- The supervisor's side ---- */

/* Each leaf has a connection; the others are for joining. */
#define NESTED_LIMITS_PEERS_MAX (CGROUP_LEAF_MAX + 8)

struct nested_limits_peer {
    int fd;         /* -1: free */
    bool watched;   /* in the epoll set */
    bool shut;      /* never read again, and not closed before the end */
    uint64_t token; /* of the leaf, until a process has joined it; else 0 */
    struct cgroup *leaf;
};

struct nested_limits {
    int listener;
    bool listening;       /* the listener is in the epoll set */
    int epoll;            /* borrowed; -1: not watching */
    struct cgroup *group; /* borrowed */
    pid_t init;           /* the jail's first process; its cgroup is the jail's */
    bool no_rights;       /* the kernel rejects descriptors in messages to this socket */
    struct nested_limits_peer peers[NESTED_LIMITS_PEERS_MAX];
    uint64_t paid_us;   /* all requests are paid for at this time; if in the future, none is read */
    uint64_t accept_us; /* when to try to accept connections again after EMFILE, or 0 */
    uint64_t due_us;    /* when a peer that is not watched has to be watched again, or 0 */
};

/* Takes ownership of the listener. Returns NULL if memory runs out. Release with
 * nested_limits_free(). `init` must not be reaped before. */
struct nested_limits *nested_limits_new(int listener, struct cgroup *group, pid_t init);
/* Kills the remaining tools. Accepts NULL. Never blocks, whatever the jail has sent. */
void nested_limits_free(struct nested_limits *nested_limits);
/* Adds the fds to serve to an epoll set, which must outlive this; the event data is the fd. */
void nested_limits_watch(struct nested_limits *nested_limits, int epoll_fd, uint64_t now_us);
/* Serves a readable fd, the listener or a peer. Returns false if the fd is neither. */
bool nested_limits_serve(struct nested_limits *nested_limits, int fd, uint64_t now_us);
/* Returns when nested_limits_wake() is to be called next, or 0. */
uint64_t nested_limits_due_us(const struct nested_limits *nested_limits);
void nested_limits_wake(struct nested_limits *nested_limits, uint64_t now_us);

/* ---- Inside the jail; joining is in child_clone.c ---- */

struct nested_limits_lease;

/* A quick check whether there is a supervisor to ask. */
bool nested_limits_are_near(void);

/* Asks for a leaf. *ret_missing gets the bits of unavailable resources. Returns 0, or
 * BRIG_E_UNSUPPORTED if the supervisor does not answer or refuses; then nothing has changed. */
int nested_limits_lease_new(const struct cgroup_limits *limits,
                            struct nested_limits_lease **ret_lease, unsigned *ret_missing,
                            struct brig_error *err);
/* Returns the token with which one process can join the leaf. */
uint64_t nested_limits_lease_token(const struct nested_limits_lease *lease);
void nested_limits_lease_usage(struct nested_limits_lease *lease, struct cgroup_usage *ret_usage);
void nested_limits_lease_free(struct nested_limits_lease *lease); /* accepts NULL */
