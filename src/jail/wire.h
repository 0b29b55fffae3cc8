/* SPDX-License-Identifier: MIT */
/* Messages between the supervisor and the child or the jail's init: fixed-size structs over one
 * SEQPACKET socketpair. Both ends are trusted; no untrusted process ever holds one. */
#pragma once

#include <stdint.h>

enum wire_type {
    /* child or init → supervisor */
    WIRE_FAILED = 1, /* a = step, b = errno: set-up failed, the command did not run */
    WIRE_SOFT,       /* a = step, b = errno: an optional step failed */
    WIRE_PID,        /* a = pid of the jail's first process, if an intermediate cloned it */
    WIRE_TERMINAL,   /* carries the master of the pty */
    WIRE_KEPT,       /* carries the kept private directory */
    WIRE_LATE,       /* carries the late file, to be filled */
    WIRE_TOOLS,      /* carries the listening socket for tools */
    WIRE_DOOR,       /* carries a socket of the network door; a = kind << 8 | index */
    WIRE_DENIALS,    /* carries the listener of the syscall filter */
    WIRE_STARTED,    /* init runs */
    WIRE_STOPPED,    /* a = signal that stopped the command */
    WIRE_STUCK,      /* the command ended, but one of its processes does not die */
    WIRE_ENDED,      /* a = wait status of the command, or -1 if it was killed; resource usage */
    /* supervisor → init */
    WIRE_SIGNAL,  /* a = signal for the command's process group */
    WIRE_KILL,    /* kill every process at once */
    WIRE_GO,      /* to the child: the id maps are written */
    WIRE_NETWORK, /* to a maker: make one more network namespace; the reply carries its fd */
};

struct wire_message {
    int32_t type;
    int32_t a, b;
    uint32_t peak_kb; /* in WIRE_ENDED */
    uint64_t user_us, sys_us;
};

/* The socket's fd in init, and the arguments of init: argv[1] is the command's pid, argv[2] is "n"
 * if the jail has a pid namespace, "s" if init has to be a subreaper instead, "h" for the holder of
 * a template, which only waits for the end of its socket, "m" for the maker of network namespaces,
 * "M" for a maker that also brings up their loopback interface. */
#define WIRE_INIT_FD 3
/* If the command waits for init, init writes a byte to this fd to let it start. */
#define WIRE_GATE_FD 4
