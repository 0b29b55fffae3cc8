/* SPDX-License-Identifier: MIT */
/* What the child and the jail's init tell the supervisor, and what it tells them: fixed-size
 * messages over one SEQPACKET socketpair. Both ends are ours; nothing untrusted ever holds it. */
#pragma once

#include <stdint.h>

enum wire_type {
    /* child or init → supervisor */
    WIRE_FAILED = 1, /* a = step, b = errno: set-up failed, nothing of the command ran */
    WIRE_SOFT,       /* a = step, b = errno: a step that may fail did */
    WIRE_PID,        /* a = pid of the jail's first process, where another process made it */
    WIRE_TERMINAL,   /* the pty's master comes with it */
    WIRE_KEPT,       /* a private directory of the jail's comes with it */
    WIRE_LATE,       /* a file of the jail's that is to be filled comes with it */
    WIRE_TOOLS,      /* the socket for tools comes with it */
    WIRE_DOOR,       /* a socket of the door comes with it; a = kind << 8 | index */
    WIRE_DENIALS,    /* the listener of the syscall filter comes with it */
    WIRE_STARTED,    /* init runs */
    WIRE_STOPPED,    /* a = signal that stopped the command */
    WIRE_STUCK,      /* the command ended, but something of it does not die */
    WIRE_ENDED,      /* a = wait status of the command, or -1 if it was killed; what all used */
    /* supervisor → init */
    WIRE_SIGNAL,  /* a = signal for the command's process group */
    WIRE_KILL,    /* end everything at once */
    WIRE_GO,      /* to the child: the id maps are written */
    WIRE_NETWORK, /* to a maker: one more network namespace; it answers with the same and an fd */
};

struct wire_message {
    int32_t type;
    int32_t a, b;
    uint32_t peak_kb; /* WIRE_ENDED */
    uint64_t user_us, sys_us;
};

/* The fd the socket has in init, and how init is called: argv[1] is the command's pid, argv[2] is
 * "n" where the jail has a pid namespace, "s" where init must be a subreaper instead, "h" for the
 * holder of a template, which only waits for the end of its socket, "m" for the maker of network
 * namespaces, "M" for one that also brings their loopback up. */
#define WIRE_INIT_FD 3
/* Where a command waits for init, it is let go by a byte written here. */
#define WIRE_GATE_FD 4
