/* SPDX-License-Identifier: MIT */
/* The syscall filters: tables with a reason per row, compiled to BPF at build time. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

#include <brig/brig.h>

/* Returns the filter of a profile on this architecture. It is static and constant: nothing to
 * release, nothing built at run time. `nested` leaves user namespaces and mounts to the program,
 * but still denies calls that are dangerous in themselves (io_uring, bpf, modules, …). With
 * BRIG_NET_NONE the profile `code` has no inet sockets. Install the filter last, after no_new_privs
 * and Landlock; it only returns an errno, it never kills. docs/seccomp.md lists the denied
 * calls. */
const struct sock_fprog *seccomp_program(enum brig_seccomp profile, enum brig_network network,
                                         bool nested);

/* The same for a function in its caller's namespaces: its processes cannot leave their process
 * group, which is how they are killed, nor slow down or limit other processes. It can create UNIX
 * sockets only if unix_sockets is true, but always connected pairs of them. */
const struct sock_fprog *seccomp_program_alone(enum brig_seccomp profile, enum brig_network network,
                                               bool unix_sockets);

/* Evaluates a filter for a call with these six arguments: 0 if it is allowed, else the errno. */
int seccomp_verdict(const struct sock_fprog *program, int number, const uint64_t *args);

/* Returns the name of a system call on this architecture, or NULL; and the number of a name, or
 * -1. */
const char *seccomp_name(int number);
int seccomp_number(const char *name);
/* Returns the numbers of the system calls that the tables name and every architecture has, sorted
 * by name, so that a description of a filter is the same everywhere; -1 past the last. */
int seccomp_common_number(size_t index);

/* ---- seccomp user notification ---- */

/* A notification: a system call that waits for its answer. */
struct notice {
    uint64_t id;
    pid_t pid; /* of the thread, as the receiver sees it */
    int number;
    uint64_t args[6];
    int verdict; /* the errno that `filter` refuses it with; 0: the filter allows it */
};
/* Receives a notification; false if it was withdrawn. Call it when the listener is readable;
 * otherwise it blocks. */
bool notice_receive(int listener, const struct sock_fprog *filter, struct notice *ret);
/* Refuses the call as the filter would, or lets it go on. False if it was withdrawn meanwhile. */
bool notice_reply(int listener, const struct notice *notice);
/* Receives one notification and answers it as `filter` would. Returns the errno it answered with,
 * and the number of the call; or 0 if the notification was withdrawn. Call it when the listener is
 * readable; otherwise it blocks. */
int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number);
