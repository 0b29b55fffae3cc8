/* SPDX-License-Identifier: MIT */
/* What a brig inside a jail and the jail's supervisor say to each other, on a SEQPACKET socket. */
#pragma once

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
 * tools.c. */
#define NESTED_LIMITS_PATIENCE_SECONDS 20

/* Takes a request apart, which comes from a jail and may be anything: false if it is none. Pure; in
 * tools.c. */
bool nested_limits_read_request(const void *bytes, size_t length,
                                struct nested_limits_request *ret_request);
