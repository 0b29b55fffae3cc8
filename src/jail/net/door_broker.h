/* SPDX-License-Identifier: MIT */
/* The broker of a network door: its configuration, and starting its processes. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct brig_error;
struct brig_policy;
struct cgroup;
struct net_rules;
struct str;

/* Appends the configuration, in the form of net/broker_wire.h, and to `secrets` the secrets whose
 * number it states, each ended by a NUL. With a uid of (uid_t)-1 the broker keeps its user.
 * Pure. */
void door_write_config(const struct brig_policy *policy, uid_t uid, gid_t gid, struct str *text,
                       struct str *secrets);
/* Writes the same to sealed memfds, which the caller closes; *ret_secrets is -1 if there are
 * none. */
int door_make_files(const struct brig_policy *policy, uid_t uid, gid_t gid, int *ret_config,
                    int *ret_secrets, struct brig_error *err);
/* The same for rules; returns the memfd. */
int door_make_rules(const struct net_rules *rules, struct brig_error *err);

/* Fds for the door's processes are moved above the numbers 0 to 3 that these processes use. */
#define DOOR_FD_FLOOR 16

/* Creates a control socket; returns both ends. */
int door_make_control(int *ret_near, int *ret_far, struct brig_error *err);
/* Sends one message with fds, which stay the caller's. */
int door_send(int control, unsigned type, int kind, int index, const int *fds, size_t count,
              struct brig_error *err);

/* Starts the program, an O_PATH fd, as the broker, with `far` as its control socket, in a cgroup
 * unless that is NULL. If the program cannot be executed, the process exits at once. */
int door_spawn_broker(int program, int far, const struct cgroup *group, pid_t *ret_pid,
                      struct brig_error *err);
/* Starts the connector in the network namespace of the socket `inside`; if the caller is root, as
 * the jail's user. *ret_near is the caller's end of its control socket. */
int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, const struct cgroup *group,
                         pid_t *ret_pid, int *ret_near, struct brig_error *err);
/* Kills and reaps a process; does nothing for 0. */
void door_end_process(pid_t pid);
