/* SPDX-License-Identifier: MIT */
/* What an executor of jails and a zygote tell each other, over one SEQPACKET socket. Both are trusted. */
#pragma once

#include <stdint.h>

#include "jail/cgroup/cgroup.h"

/* In the zygote. */
#define ZYGOTE_SOCKET_FD 3
/* The file the interpreter is about to run when it becomes one, for the hook to know it by; and names of
 * modules to import before. Taken out of the environment again. */
#define ZYGOTE_FILE_VARIABLE "BRIG_ZYGOTE_FILE"
#define ZYGOTE_MODULES_VARIABLE "BRIG_ZYGOTE_MODULES"

enum zygote_type {
    /* to the zygote */
    ZYGOTE_PLAN = 1, /* the flat plan follows, in pieces; with the last comes the program of init */
    ZYGOTE_FORK,     /* a jail: fds are the wire, 0 to 2, the gate, then what the counts say */
    /* from it */
    ZYGOTE_READY, /* it has the plan and waits */
};

struct zygote_message {
    uint32_t type;
    uint32_t length; /* ZYGOTE_PLAN: of the whole plan */
    uint32_t host_uid, host_gid;
    uint8_t has_network, has_cgroup, join_count;
};

/* The wire, three streams and the gate: from it the child reads a byte before it runs anything. */
#define ZYGOTE_FDS_MIN 5
/* And a network namespace, a group, and those of v1. */
#define ZYGOTE_FDS_MAX (ZYGOTE_FDS_MIN + 1 + 1 + CGROUP_JOIN_MAX)
#define ZYGOTE_PIECE_BYTES 32768
