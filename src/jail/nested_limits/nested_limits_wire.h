/* SPDX-License-Identifier: MIT */
/* Messages between a brig process inside a jail and the jail's supervisor, on a SEQPACKET
 * socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/cgroup/cgroup.h"

#define NESTED_LIMITS_MAGIC 0x32545242U /* "BRT2" */

enum nested_limits_type {
    NESTED_LIMITS_MAKE = 1, /* create a leaf, once per connection; it lives as long */
    NESTED_LIMITS_USAGE,    /* return the usage of this connection's leaf */
    NESTED_LIMITS_JOIN,     /* move the peer into the leaf of `token`; once per leaf */
};

struct nested_limits_request {
    uint32_t magic;
    uint32_t type;
    uint64_t memory_bytes, pids, io_read_bytes, io_write_bytes;
    uint32_t cpu_percent;
    uint32_t zero;
    uint64_t token; /* NESTED_LIMITS_JOIN */
};

struct nested_limits_reply {
    int32_t error; /* an errno, or 0 */
    uint32_t missing;
    uint64_t token;            /* NESTED_LIMITS_MAKE */
    struct cgroup_usage usage; /* NESTED_LIMITS_USAGE */
};

/* How long the process inside waits for a reply: other requests may come first, see the prices in
 * nested_limits.c. */
#define NESTED_LIMITS_PATIENCE_SECONDS 20

/* Decodes a request, which comes from a jail and may be anything: false if it is malformed. Pure;
 * in nested_limits.c. */
bool nested_limits_read_request(const void *bytes, size_t length,
                                struct nested_limits_request *ret_request);

/* ---- sockets with a hostile peer ---- */

/* Socket option since 6.16: whether a UNIX socket accepts descriptors. */
#define GUARD_SO_PASSRIGHTS 83

/* Returns whether the kernel rejects descriptors in messages to this listener and its accepted
 * sockets. The child that created it has set the option. */
bool guard_refuses_rights(int listener);
/* Prepares an accepted socket for guard_receive(). */
void guard_prepare(int fd);

enum guard_what {
    GUARD_NOTHING, /* no message available */
    GUARD_MESSAGE,
    GUARD_END,    /* end of file: the socket can be closed */
    GUARD_RIGHTS, /* a message with descriptors: it is left in the queue */
};
/* Receives one message; *ret_length is the length that was sent, which may exceed `size`. */
enum guard_what guard_receive(int fd, void *buffer, size_t size, size_t *ret_length);

/* Returns the peer's pid and a pidfd for it, which the caller closes; -errno if the peer is
 * gone. */
int guard_peer(int fd, pid_t *ret_pid, int *ret_pidfd);
/* Returns whether a process has not exited yet. */
bool guard_is_alive(int pidfd);
/* Returns whether two processes are in the same cgroups, in every hierarchy. */
bool guard_are_together(pid_t one, pid_t other);

/* Closes sockets, up to GUARD_CLOSE_MAX, in whose queues a jail may have left descriptors. */
#define GUARD_CLOSE_MAX 64
void guard_close(const int *fds, size_t count);
