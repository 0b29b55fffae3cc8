/* SPDX-License-Identifier: MIT */
/* The network door in a plan: the netlink messages and the sockets for the jail's network
 * namespace. The child sends the sockets to the supervisor; door.h says which process serves
 * them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Far fewer than fit into the child's socket before the supervisor reads. */
#define PLAN_DOOR_LISTENERS_MAX 96

enum plan_listener_when {
    PLAN_LISTEN_ALWAYS,
    PLAN_LISTEN_REDIRECTED, /* if the kernel redirects */
    PLAN_LISTEN_FALLBACK,   /* if it does not */
};

struct plan_listener {
    int kind;  /* enum door_socket */
    int index; /* among several of a kind */
    enum plan_listener_when when;
    bool soft; /* IPv6, which may be missing */
    int family, type;
    unsigned char address[28]; /* a struct sockaddr_in or sockaddr_in6 */
    unsigned address_length;
};

struct plan_door {
    const void *routes, *redirect; /* netlink messages, see door_netlink.h */
    size_t routes_length, redirect_length;
    const void *queue,
        *holds[2]; /* the queue of held connections; with an expression or a target */
    size_t queue_length, holds_length[2];
    struct plan_listener *listeners;
    size_t listener_count;
};

struct brig_error;
struct brig_policy;
struct plan;

/* Fills plan->door if the policy has a network door; no lookups. */
int plan_add_door(struct plan *plan, const struct brig_policy *policy, struct brig_error *err);
