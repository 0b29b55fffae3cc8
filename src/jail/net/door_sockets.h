/* SPDX-License-Identifier: MIT */
/* The sockets of a network door, as they come out of the jail. */
#pragma once

#include <stddef.h>

#include "jail/plan/plan_door.h"
#include "policy/policy_net.h"

#define DOOR_SOCKET_LIST_MAX (PLAN_DOOR_LISTENERS_MAX + POLICY_PUBLISH_MAX)

struct door_socket_item {
    int fd;
    int kind;  /* enum door_socket */
    int index; /* of several of a kind */
};

/* Zero-initialise. */
struct door_sockets {
    size_t count;
    struct door_socket_item items[DOOR_SOCKET_LIST_MAX];
};

/* Takes the fd; closes it if it is one too many. */
void door_sockets_add(struct door_sockets *sockets, int kind, int index, int fd);
/* Closes them all. */
void door_sockets_done(struct door_sockets *sockets);
