/* SPDX-License-Identifier: MIT */
/* Theory of operation: tools bounded apart from the agent that starts them.
 *
 * Inside a jail there are no namespaces and no cgroups to be had. So its supervisor listens on a
 * socket that was made inside (TOOLS_SOCKET). A brig in there connects, says which limits its tool
 * shall have, and gets the files into which the tool's process writes itself: a leaf beside the
 * jail's own, inside the group whose limits hold for all. The leaf lives as long as the connection.
 *
 * Whoever connects is untrusted. A request is a struct of fixed size; limits can only tighten what
 * holds anyway; there are at most CGROUP_LEAF_MAX leaves, and making them is rationed. What is
 * handed out are files that can be written to and nothing else: a directory would lead to the rest
 * of the hierarchy. */
#pragma once

#include "jail/cgroup.h"

#define TOOLS_SOCKET "/run/brig-tools"
#define TOOLS_FDS_MAX (CGROUP_JOIN_MAX + 1)

/* ---- The supervisor's side: tools.c ---- */

#define TOOLS_PEERS_MAX CGROUP_LEAF_MAX

struct tools_peer {
    int fd; /* -1: free */
    struct cgroup *leaf;
};

struct tools {
    int listener;         /* -1: there is none */
    struct cgroup *group; /* borrowed */
    struct tools_peer peers[TOOLS_PEERS_MAX];
    uint64_t ration_us; /* when the next leaf may be made */
};

/* NULL without memory. Takes the listener; release with tools_free(). */
struct tools *tools_new(int listener, struct cgroup *group);
void tools_free(struct tools *tools); /* accepts NULL */
/* Serves an fd of ours that is readable: the listener or a peer. Returns an fd to be watched from
 * now on, or -1. What is closed here vanishes from an epoll set by itself. False if it is none of
 * ours. */
bool tools_serve(struct tools *tools, int fd, uint64_t now_us, int *ret_new_fd);

/* ---- The side inside: tools_lease.c ---- */

struct tools_lease;

/* Whether there is a supervisor to ask, at first sight. */
bool tools_are_near(void);

/* Asks for a leaf. *ret_missing: bits that cannot be had. 0, or BRIG_E_UNSUPPORTED: nobody answers,
 * or with a refusal; then nothing is touched. */
int tools_lease_new(const struct cgroup_limits *limits, struct tools_lease **ret_lease,
                    unsigned *ret_missing, struct brig_error *err);
/* The files a process writes "0" into; borrowed. */
size_t tools_lease_join_fds(const struct tools_lease *lease, int fds[TOOLS_FDS_MAX]);
void tools_lease_usage(struct tools_lease *lease, struct cgroup_usage *ret_usage);
void tools_lease_free(struct tools_lease *lease); /* accepts NULL */
