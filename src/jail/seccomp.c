/* SPDX-License-Identifier: MIT */
/* Picks the filter for a policy out of those made by tools/gen-seccomp. */

#include "seccomp.h"

#include "seccomp_filters.h"

const struct sock_fprog *seccomp_program(enum brig_seccomp profile, enum brig_network network,
                                         bool nested)
{
    /* What is not plainly asked for gets the narrower filter. */
    bool inet = network == BRIG_NET_HOST || network == BRIG_NET_ALLOW || network == BRIG_NET_OPEN;
    return &seccomp_programs[profile != BRIG_SECCOMP_DEV][inet][nested];
}
