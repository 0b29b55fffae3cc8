/* SPDX-License-Identifier: MIT */
/* What the kernel is told about the network of a jail with a door, as the bytes of netlink messages.
 * Pure: the parent writes them, the child only sends them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_range;
struct str;

/* Where what is redirected ends up: 198.18.0.1 and fd62:7269:6700::1. No program that serves anything
 * listens on port 1. */
#define DOOR_REDIRECT_PORT 1

/* What a message is about, as its sequence number, so that an error tells what failed. */
enum door_subject {
    DOOR_ABOUT_DEVICE = 1, /* loopback and its address: nothing works without */
    DOOR_ABOUT_ADDRESSES,  /* the way to addresses that are no name's */
    DOOR_ABOUT_IPV6,
    DOOR_ABOUT_PACKETS, /* how large they are: what it is without works, too */
    DOOR_ABOUT_REDIRECT,
};

/* Loopback up, the door's addresses on it, and routes for TCP to these ranges, which all end on
 * loopback as well. Everything else has no route and fails at once. Appends to `bytes`. */
void door_write_routes(struct str *bytes, const struct net_range *ranges, size_t count);

/* One batch for nf_tables: TCP to whatever is neither loopback nor one of the door's own first 16
 * addresses goes to DOOR_REDIRECT_PORT. */
void door_write_redirect(struct str *bytes);
