/* SPDX-License-Identifier: MIT */
/* The network configuration of a jail with a door, as the bytes of netlink messages. Pure: the
 * parent writes them, the child only sends them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_range;
struct str;

/* Redirected connections arrive at this port of 198.18.0.1 and fd62:7269:6700::1. No program serves
 * anything on port 1. */
#define DOOR_REDIRECT_PORT 1

/* The subject of a message, used as its sequence number, so that an error says what failed. */
enum door_subject {
    DOOR_ABOUT_DEVICE = 1, /* loopback and its address: the door needs them */
    DOOR_ABOUT_ADDRESSES,  /* routes to addresses that no name resolved to */
    DOOR_ABOUT_IPV6,
    DOOR_ABOUT_PACKETS, /* packet sizes: the default works, too */
    DOOR_ABOUT_REDIRECT,
    DOOR_ABOUT_HOLD,   /* holding connections until the other side is connected */
    DOOR_ABOUT_TARGET, /* whether the kernel has the target NFQUEUE */
};

/* Appends the messages that bring loopback up, with the door's addresses, and route TCP to these
 * ranges to loopback. Everything else has no route and fails at once. */
void door_write_routes(struct str *bytes, const struct net_range *ranges, size_t count);

/* Appends one nf_tables batch: TCP to any address except loopback and the door's first 16 addresses
 * is redirected to DOOR_REDIRECT_PORT. */
void door_write_redirect(struct str *bytes);

/* Where the kernel can queue packets for a process, the broker decides about a connection before
 * connect() succeeds in the jail. door_write_queue() binds a netlink socket to queue 0 of the
 * network namespace, and asks whether the kernel has the target NFQUEUE of iptables.
 * door_write_hold() appends one nf_tables batch that sends the SYN of each redirected connection to
 * the queue, with that target or with the expression "queue" of nf_tables: a kernel may have either
 * one. If the broker answers NF_ACCEPT, the SYN is redirected. If it answers NF_STOP, the SYN is not
 * redirected, and a second chain resets every such connection. */
void door_write_queue(struct str *bytes);
void door_write_hold(struct str *bytes, bool target);
