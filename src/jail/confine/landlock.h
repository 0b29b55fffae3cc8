/* SPDX-License-Identifier: MIT */
/* Landlock by table: which rights exist at which ABI, and what each kind of grant means in them. */
#pragma once

#include <brig/brig.h>

/* What a path is granted for. */
enum landlock_grant {
    LANDLOCK_GRANT_READ,   /* read, list and execute */
    LANDLOCK_GRANT_WRITE,  /* everything real work does below a directory */
    LANDLOCK_GRANT_DEVICE, /* read, write and ioctl a device node (or those in a directory) */
};

/* The kernel's struct landlock_ruleset_attr at its newest; the size passed depends on the ABI. */
struct landlock_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

/* From this ABI on connecting to a socket by path is a right of its own. */
#define LANDLOCK_ABI_UNIX_SOCKETS 9

/* The kernel's ABI, 0 where Landlock is missing or switched off. A system call, no cache. */
int landlock_abi(void);

/* How many bytes of struct landlock_attr a kernel of this ABI knows. */
size_t landlock_attr_size(int abi);

/* True if a ruleset of this attr would restrict nothing. The kernel refuses such a ruleset, so none
 * is made: the case of a nested sandbox below ABI 6. */
bool landlock_attr_is_empty(const struct landlock_attr *attr);

/* What a ruleset handles: all filesystem rights the ABI has, unless `nested` (a process restricted
 * in the filesystem by Landlock can mount nothing, so a nested sandbox would fail); abstract sockets
 * and signals scoped from ABI 6 on. What the ABI lacks is added to *unenforced where it matters
 * for the network given (abstract sockets matter only where the network is shared). The network
 * itself is left to the network namespace: a program may serve and connect on its own loopback. */
void landlock_fill_attr(int abi, enum brig_network network, bool nested, struct landlock_attr *ret,
                        struct brig_unenforced *unenforced);

/* For the rung on which Landlock stands alone, after landlock_fill_attr(): without a network
 * namespace, BRIG_NET_NONE means that no TCP (ABI 4) and no UDP (ABI 10) port can be used at all;
 * and everything Landlock at this ABI does not stop, but the namespaces would have, is listed, of UNIX
 * sockets only where the filter lets them be made. */
void landlock_stand_alone(int abi, enum brig_network network, bool unix_sockets,
                          struct landlock_attr *attr, struct brig_unenforced *unenforced);

/* The rights of a grant at an ABI; for a path that is no directory, only those a file can have.
 * Never has a bit that landlock_fill_attr() without `nested` does not handle at the same ABI. 0 for
 * an ABI of 0. */
uint64_t landlock_rights(int abi, enum landlock_grant grant, bool directory);

/* The kernel's names of the bits in a struct landlock_attr, from 0 on; NULL past the last. */
const char *landlock_fs_name(unsigned bit);
const char *landlock_net_name(unsigned bit);
const char *landlock_scope_name(unsigned bit);
