/* SPDX-License-Identifier: MIT */
/* Where the sockets of holders are: in a directory of their user's alone. There are several places for
 * it, as somebody else may have taken one. */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <brig/brig.h>

#define SOCKETS_PLACES 4

/* Opens one of the places, if it is there and the user's alone: an fd or -1. A holder may listen at
 * any of them. `storage` may be NULL. */
int sockets_open(unsigned which, uid_t uid, const char *storage);

/* Opens the first that can be had, making it: an fd or a code. */
int sockets_make(uid_t uid, const char *storage, struct brig_error *err);

/* The address of a jail's socket in such a directory, for as long as that is open. `key` is as
 * storage_key() has it. */
int sockets_address(int directory, const char *key, struct sockaddr_un *ret_address,
                    struct brig_error *err);
