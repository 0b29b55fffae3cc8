/* SPDX-License-Identifier: MIT */
/* What a brig inside a jail and the jail's supervisor say to each other, on a SEQPACKET socket. */
#pragma once

#include "jail/limits/cgroup.h"

#define TOOLS_MAGIC 0x32545242U /* "BRT2" */

enum tools_type {
    TOOLS_MAKE = 1, /* a leaf with these limits; once a connection, which is its life */
    TOOLS_USAGE,    /* what was used in the leaf of this connection */
    TOOLS_JOIN, /* move who has connected into the leaf that `token` was given for; once a leaf */
};

struct tools_request {
    uint32_t magic;
    uint32_t type;
    uint64_t memory_bytes, pids, io_read_bytes, io_write_bytes;
    uint32_t cpu_percent;
    uint32_t zero;
    uint64_t token; /* TOOLS_JOIN */
};

struct tools_reply {
    int32_t error; /* an errno, or 0 */
    uint32_t missing;
    uint64_t token;            /* TOOLS_MAKE */
    struct cgroup_usage usage; /* TOOLS_USAGE */
};

/* How long the side inside waits for an answer: others may have asked before, see the rations in
 * tools.c. */
#define TOOLS_PATIENCE_SECONDS 20

/* Takes a request apart, which comes from a jail and may be anything: false if it is none. Pure; in
 * tools.c. */
bool tools_read_request(const void *bytes, size_t length, struct tools_request *ret_request);
