/* SPDX-License-Identifier: MIT */
/* Messages between the process that starts jails and a zygote, over one SEQPACKET socket. Both ends
 * are trusted. */
#pragma once

#include <stdint.h>

#include "jail/cgroup/cgroup.h"

/* The socket's fd in the zygote. */
#define ZYGOTE_SOCKET_FD 3
/* The file that the interpreter is about to run when the hook turns it into a zygote, and the
 * modules to import first. The hook removes both from the environment. */
#define ZYGOTE_FILE_VARIABLE "BRIG_ZYGOTE_FILE"
#define ZYGOTE_MODULES_VARIABLE "BRIG_ZYGOTE_MODULES"

enum zygote_type {
    /* to the zygote */
    ZYGOTE_PLAN = 1, /* the flat plan follows in pieces; the last piece carries init's program */
    ZYGOTE_FORK,     /* make a jail; fds: the wire, 0 to 2, the gate, then as counted */
    /* from the zygote */
    ZYGOTE_READY, /* the zygote has the plan and waits */
};

struct zygote_message {
    uint32_t type;
    uint32_t length; /* ZYGOTE_PLAN: length of the whole plan */
    uint32_t host_uid, host_gid;
    uint8_t has_network, has_cgroup, join_count;
};

/* The wire, three streams, and the gate, from which the child reads a byte before it runs
 * anything. */
#define ZYGOTE_FDS_MIN 5
/* In addition a network namespace, a v2 cgroup, and the v1 cgroups. */
#define ZYGOTE_FDS_MAX (ZYGOTE_FDS_MIN + 1 + 1 + CGROUP_JOIN_MAX)
#define ZYGOTE_PIECE_BYTES 32768
