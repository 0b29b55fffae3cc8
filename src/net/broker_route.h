/* SPDX-License-Identifier: MIT */
/* Where an address leads from this machine. A public address may still be the machine's own, or a
 * neighbour's: with IPv6 that is the usual case, and a jail is easily told it by a server outside. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

struct brig_error;

enum route_kind {
    ROUTE_FAR,  /* through a gateway, or a way on which everything goes; or there is none at all */
    ROUTE_OWN,  /* this machine */
    ROUTE_NEAR, /* a network this machine is connected to, without a gateway in between */
};

/* A socket to ask with, to be made before confine(). */
int route_open(int *ret_fd, struct brig_error *err);

/* Asks the kernel; what cannot be asked is near, and so refused. */
enum route_kind route_find(int fd, const struct net_address *address);

const char *route_text(enum route_kind kind); /* "this machine's own", … */
