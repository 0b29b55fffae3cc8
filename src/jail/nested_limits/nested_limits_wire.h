/* SPDX-License-Identifier: MIT */
/* What a brig inside a jail and the jail's supervisor say to each other, on a SEQPACKET socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/cgroup/cgroup.h"

#define NESTED_LIMITS_MAGIC 0x32545242U /* "BRT2" */

enum nested_limits_type {
    NESTED_LIMITS_MAKE = 1, /* a leaf with these limits; once a connection, which is its life */
    NESTED_LIMITS_USAGE,    /* what was used in the leaf of this connection */
    NESTED_LIMITS_JOIN, /* move who has connected into the leaf that `token` was given for; once a leaf */
};

struct nested_limits_request {
    uint32_t magic;
    uint32_t type;
    uint64_t memory_bytes, pids, io_read_bytes, io_write_bytes;
    uint32_t cpu_percent;
    uint32_t zero;
    uint64_t token; /* TOOLS_JOIN */
};

struct nested_limits_reply {
    int32_t error; /* an errno, or 0 */
    uint32_t missing;
    uint64_t token;            /* TOOLS_MAKE */
    struct cgroup_usage usage; /* TOOLS_USAGE */
};

/* How long the side inside waits for an answer: others may have asked before, see the rations in
 * nested_limits.c. */
#define NESTED_LIMITS_PATIENCE_SECONDS 20

/* Takes a request apart, which comes from a jail and may be anything: false if it is none. Pure; in
 * nested_limits.c. */
bool nested_limits_read_request(const void *bytes, size_t length,
                                struct nested_limits_request *ret_request);

/* ---- nested limits guard ---- */

/* A socket with a hostile jail at its other end: what it sends, who it is, and letting go of it. */

/* Since 6.16: whether a UNIX socket takes descriptors. */
#define GUARD_SO_PASSRIGHTS 83

/* Whether the kernel keeps descriptors out of messages to this listener and whom it accepts. The
 * builder has asked for it. */
bool guard_refuses_rights(int listener);
/* Prepares an accepted socket for guard_receive(). */
void guard_prepare(int fd);

enum guard_what {
    GUARD_NOTHING, /* there is nothing to read now */
    GUARD_MESSAGE,
    GUARD_END,    /* nor will there ever be: the socket can be closed */
    GUARD_RIGHTS, /* a message with descriptors: it is left where it is */
};
/* Receives one message; *ret_length is that of what was sent, which may be more than `size`. */
enum guard_what guard_receive(int fd, void *buffer, size_t size, size_t *ret_length);

/* Who has connected: its pid, and a pidfd of it, the caller's to close. -errno where that is gone. */
int guard_peer(int fd, pid_t *ret_pid, int *ret_pidfd);
/* Whether a process has not ended yet. */
bool guard_is_alive(int pidfd);
/* Whether two processes are in the same groups, in every hierarchy. */
bool guard_are_together(pid_t one, pid_t other);

/* Closes sockets in whose queues a jail may have left descriptors, up to GUARD_CLOSE_MAX. */
#define GUARD_CLOSE_MAX 64
void guard_close(const int *fds, size_t count);
