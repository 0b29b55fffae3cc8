/* SPDX-License-Identifier: MIT */
/* Theory of operation: the supervisor's side of a jail's network door.
 *
 * The jail's network namespace has only a loopback interface. Its name server, the port to which
 * all connections are redirected, and the proxies are sockets that the child created in the
 * namespace and sent to the supervisor; no process of brig runs inside. The supervisor watches
 * these sockets. When the first becomes readable, it starts the broker (brig-broker, a program that
 * decides, connects and confines itself), passes the sockets on and from then on only reads events.
 * The broker is not trusted beyond that: an event is a struct of fixed size, and if the broker
 * dies, the jail loses its network and nothing else. Everything that does not need the broker is
 * done before the command runs, so that a missing broker or a port in use is a start error. */
#pragma once

#include <brig/brig.h>

#include "jail/job/result.h"
#include "jail/plan/plan_door.h"
#include "policy/policy.h"

struct brig_policy;
struct door;

#define DOOR_SOCKET_LIST_MAX (PLAN_DOOR_LISTENERS_MAX + POLICY_PUBLISH_MAX)

struct door_socket_item {
    int fd;
    int kind;  /* enum door_socket */
    int index; /* among several of a kind */
};

/* The sockets of a door, as received from the child. Zero-initialise. */
struct door_sockets {
    size_t count;
    struct door_socket_item items[DOOR_SOCKET_LIST_MAX];
};

/* Takes ownership of the fd; closes it if the list is full. */
void door_sockets_add(struct door_sockets *sockets, int kind, int index, int fd);
/* Closes all sockets. */
void door_sockets_done(struct door_sockets *sockets);

/* Opens the broker's program and the published ports. */
int door_new(const struct brig_policy *policy, struct door **ret_door, struct brig_error *err);
/* Kills the broker, if it runs, and reaps it. Accepts NULL. */
void door_free(struct door *door);

/* Takes the sockets received from the jail, and prepares the broker's configuration; if the caller
 * is root, the broker gets these ids. `grouped`: the jail's limits are set by a cgroup; the door
 * then gets a cgroup beside it. */
int door_begin(struct door *door, const struct brig_policy *policy, struct door_sockets *sockets,
               uid_t uid, gid_t gid, bool grouped, struct brig_error *err);
/* Adds the fds to serve to an epoll set; the event data is the fd. */
int door_watch(struct door *door, int epoll_fd, struct brig_error *err);
/* Serves a readable fd; false if it is not the door's. Failures are added to *notices. */
bool door_serve(struct door *door, int fd, struct brig_unenforced *notices);
/* Adds a rule to those of a running broker whose policy is to ask: "allow RULE" or "deny RULE". */
int door_add_rule(struct door *door, const char *line, struct brig_error *err);
/* Replaces the rules of a running broker. */
int door_set_rules(struct door *door, const struct net_rules *rules, struct brig_error *err);
/* Called when the jail is over: reads the broker's last events, with a short timeout. */
void door_conclude(struct door *door, struct brig_unenforced *notices);

/* Returns the next event that was not taken yet; false if there is none. */
bool door_take_event(struct door *door, struct brig_net_event *ret_event);
/* Moves the counters and events out. */
void door_take_result(struct door *door, struct brig_net_result *ret_result);
