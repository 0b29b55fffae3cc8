/* SPDX-License-Identifier: MIT */
/* Landlock as tables: the rights of each ABI, and the rights of each kind of grant. */
#pragma once

#include <brig/brig.h>

#include "jail/job/result.h"

/* The kind of access granted to a path. */
enum landlock_grant {
    LANDLOCK_GRANT_READ,   /* read, list and execute */
    LANDLOCK_GRANT_WRITE,  /* everything needed to work below a directory */
    LANDLOCK_GRANT_DEVICE, /* read, write and ioctl a device node (or the nodes in a directory) */
    LANDLOCK_GRANT_ROOT,   /* as for writing, but without sockets: the root of an image */
};

/* The newest version of the kernel's struct landlock_ruleset_attr; the size passed depends on the
 * ABI. */
struct landlock_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

/* From this ABI on, connecting to a UNIX socket by path is a separate right. */
#define LANDLOCK_ABI_UNIX_SOCKETS 9

/* Returns the kernel's ABI, 0 if Landlock is missing or disabled. Makes a system call each time. */
int landlock_abi(void);

/* Returns how many bytes of struct landlock_attr a kernel of this ABI knows. */
size_t landlock_attr_size(int abi);

/* Returns true if a ruleset with this attr would restrict nothing. The kernel refuses such a
 * ruleset, so none is created; this happens for a nested sandbox below ABI 6. */
bool landlock_attr_is_empty(const struct landlock_attr *attr);

/* Fills in the rights that a ruleset handles: all filesystem rights of the ABI, unless `nested` (a
 * process that Landlock restricts in the filesystem cannot mount, so a nested sandbox would fail);
 * abstract sockets and signals are scoped from ABI 6 on. Missing features of the ABI are added to
 * *unenforced if they matter for the network (abstract sockets matter only if the network is
 * shared). The network itself is left to the network namespace: a program may serve and connect on
 * loopback. */
void landlock_fill_attr(int abi, enum brig_network network, bool nested, struct landlock_attr *ret,
                        struct brig_unenforced *unenforced);

/* For the rung with Landlock but without namespaces, after landlock_fill_attr(): BRIG_NET_NONE
 * denies every TCP (ABI 4) and UDP (ABI 10) port. Everything that namespaces would stop, and
 * Landlock at this ABI does not, is added to *unenforced; UNIX sockets only if the filter allows to
 * create them, and modes, times, attributes and truncating only if the filter does not refuse them,
 * as seccomp_program_alone() does (`filtered`). */
void landlock_stand_alone(int abi, enum brig_network network, bool unix_sockets, bool filtered,
                          struct landlock_attr *attr, struct brig_unenforced *unenforced);

/* Returns the rights of a grant at an ABI; for a path that is not a directory, only the rights of
 * files. Never has a bit that landlock_fill_attr() without `nested` does not handle at the same
 * ABI. 0 for an ABI of 0. */
uint64_t landlock_rights(int abi, enum landlock_grant grant, bool directory);

/* Returns the kernel's names of the bits in a struct landlock_attr, from 0 on; NULL past the
 * last. */
const char *landlock_fs_name(unsigned bit);
const char *landlock_net_name(unsigned bit);
const char *landlock_scope_name(unsigned bit);
