/* SPDX-License-Identifier: MIT */
/* What a brig inside a jail and the jail's supervisor say to each other, on a SEQPACKET socket. */
#pragma once

#include "jail/cgroup.h"

#define TOOLS_MAGIC 0x31545242U /* "BRT1" */

enum tools_type {
    TOOLS_MAKE = 1, /* a leaf with these limits; once a connection */
    TOOLS_USAGE,    /* what it used */
};

struct tools_request {
    uint32_t magic;
    uint32_t type;
    uint64_t memory_bytes, pids, io_read_bytes, io_write_bytes;
    uint32_t cpu_percent;
    uint32_t zero;
};

struct tools_reply {
    int32_t error; /* an errno, or 0 */
    uint32_t missing;
    struct cgroup_usage usage; /* TOOLS_USAGE */
};
