/* SPDX-License-Identifier: MIT */
/* Theory of operation: the supervisor's side of a jail's network door.
 *
 * The jail's network namespace has nothing in it but loopback. Its name server, the port everything
 * is redirected to, and the proxies are sockets that the child made in there and sent out; nothing of
 * ours runs inside. They are watched here. When the first of them can be read, the broker is started
 * (brig-broker, a program of its own that decides, connects and confines itself), gets them, and is
 * only listened to from then on: it tells what it let through and what not. It is not trusted with
 * more than that: an event is data of fixed size, and a broker that dies leaves the jail without a
 * network and nothing else. What can be done without it is done before the command runs, so that a
 * missing broker or a port in use is an error of the start. */
#pragma once

#include <brig/brig.h>

#include "jail/net/door_sockets.h"

struct brig_policy;
struct door;

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
/* Serves an fd that is readable; false if it is none of ours. What went wrong is in *notices. */
bool door_serve(struct door *door, int fd, struct brig_unenforced *notices);
/* The jail is over: hears the broker out, for a moment. */
void door_conclude(struct door *door, struct brig_unenforced *notices);

/* The next event that was not taken yet; false if there is none. */
bool door_take_event(struct door *door, struct brig_net_event *ret_event);
/* Moves what was counted and the events out. */
void door_take_result(struct door *door, struct brig_net_result *ret_result);
