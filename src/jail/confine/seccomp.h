/* SPDX-License-Identifier: MIT */
/* The syscall filters: tables with a reason per row, turned into BPF when brig is built. */
#pragma once

#include <linux/filter.h>

#include <brig/brig.h>

/* The filter for a profile on this architecture. Static and constant: nothing to release, nothing
 * to build at run time. `nested` leaves user namespaces and mounts to the program; it has no effect
 * on what is dangerous by itself (io_uring, bpf, modules, …). With a network of BRIG_NET_NONE the
 * profile `code` has no inet sockets. Install it last, after no_new_privs and Landlock; a filter
 * only ever answers with an errno, it never kills. docs/seccomp.md lists what is denied. */
const struct sock_fprog *seccomp_program(enum brig_seccomp profile, enum brig_network network,
                                         bool nested);

/* The same for a function in its caller's namespaces: its processes cannot leave their process
 * group, by which they are ended, nor slow down or limit others. Without a network it can make UNIX
 * sockets only if unix_sockets is true, but pairs of them that are connected to each other. */
const struct sock_fprog *seccomp_program_alone(enum brig_seccomp profile, enum brig_network network,
                                               bool unix_sockets);

/* What a filter answers to a call with these six arguments: 0 if it is allowed, else the errno. */
int seccomp_verdict(const struct sock_fprog *program, int number, const uint64_t *args);

/* The name of a system call on this architecture, or NULL; and the number of a name, or -1. */
const char *seccomp_name(int number);
int seccomp_number(const char *name);
/* The numbers of the system calls that the tables name and every architecture has, by name, for words
 * about a filter that are the same everywhere; -1 past the last. */
int seccomp_common_number(size_t index);

/* ---- Questions of a filter that has a listener (seccomp user notification) ---- */

/* Takes one question and answers it as `filter` would. The errno that was answered, with the number of
 * the call; or 0 where there was none any more. To be called when the listener is readable: the
 * kernel would wait for one. */
int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number);
