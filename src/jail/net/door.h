/* SPDX-License-Identifier: MIT */
/* Theory of operation: the supervisor's side of a jail's network door.
 *
 * The jail's network namespace has nothing in it but loopback. Its name server, the port everything
 * is redirected to, and the proxies are sockets that the child made in there and sent out; nothing of
 * ours runs inside. The supervisor watches these sockets. When the first of them is readable, it starts
 * the broker (brig-broker, a program that decides, connects and confines itself), passes the sockets on
 * and only reads events from then on. The broker is not trusted with more: an event is data of fixed
 * size, and if the broker dies, the jail loses its network and nothing else. Everything that does not
 * need the broker is done before the command runs, so that a missing broker or a port in use is an error
 * of the start. */
#pragma once

#include <brig/brig.h>

#include "jail/plan/plan_door.h"
#include "policy/policy.h"

struct brig_policy;
struct door;

#define DOOR_SOCKET_LIST_MAX (PLAN_DOOR_LISTENERS_MAX + POLICY_PUBLISH_MAX)

struct door_socket_item {
    int fd;
    int kind;  /* enum door_socket */
    int index; /* of several of a kind */
};

/* The sockets of a door, as they come out of the jail. Zero-initialise. */
struct door_sockets {
    size_t count;
    struct door_socket_item items[DOOR_SOCKET_LIST_MAX];
};

/* Takes the fd; closes it if the list is full. */
void door_sockets_add(struct door_sockets *sockets, int kind, int index, int fd);
/* Closes them all. */
void door_sockets_done(struct door_sockets *sockets);

/* Opens the broker's program and the ports that are published. */
int door_new(const struct brig_policy *policy, struct door **ret_door, struct brig_error *err);
/* Ends the broker, if it runs, and waits for its end. Accepts NULL. */
void door_free(struct door *door);

/* Takes the sockets that came out of the jail, and what the broker has to know of the policy; it is
 * to have these ids, where we are root. `grouped`: the jail's limits are those of a group; then its
 * door gets one too, beside it. */
int door_begin(struct door *door, const struct brig_policy *policy, struct door_sockets *sockets,
               uid_t uid, gid_t gid, bool grouped, struct brig_error *err);
/* Has an epoll set report what is to be served, by its fd. */
int door_watch(struct door *door, int epoll_fd, struct brig_error *err);
/* Serves a readable fd; false if it is not the door's. Failures are added to *notices. */
bool door_serve(struct door *door, int fd, struct brig_unenforced *notices);
/* The jail is over: hears the broker out, for a moment. */
void door_conclude(struct door *door, struct brig_unenforced *notices);

/* The next event that was not taken yet; false if there is none. */
bool door_take_event(struct door *door, struct brig_net_event *ret_event);
/* Moves what was counted and the events out. */
void door_take_result(struct door *door, struct brig_net_result *ret_result);
