/* SPDX-License-Identifier: MIT */
/* The broker of a network door: what it is told of the policy, and starting its processes. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct brig_error;
struct brig_policy;
struct cgroup;
struct str;

/* Appends the configuration, in the form of net/broker_wire.h, and to `secrets` the texts it counts, each
 * ended by a NUL. With a uid of (uid_t)-1 the broker keeps its user. Pure. */
void door_write_config(const struct brig_policy *policy, uid_t uid, gid_t gid, struct str *text,
                       struct str *secrets);
/* The same as sealed files in memory, which the caller closes; *ret_secrets is -1 if there are none. */
int door_make_files(const struct brig_policy *policy, uid_t uid, gid_t gid, int *ret_config,
                    int *ret_secrets, struct brig_error *err);

/* Descriptors for the door's processes are moved above those they find at 0 to 3. */
#define DOOR_FD_FLOOR 16

/* Both ends of a control socket. */
int door_make_control(int *ret_near, int *ret_far, struct brig_error *err);
/* One message with descriptors, which stay the caller's. */
int door_send(int control, unsigned type, int kind, int index, const int *fds, size_t count,
              struct brig_error *err);

/* Starts the program, an O_PATH fd, as the broker with `far` as its control socket, in a group unless
 * that is NULL. A program that cannot be executed is noticed as one that ends at once. */
int door_spawn_broker(int program, int far, const struct cgroup *group, pid_t *ret_pid,
                      struct brig_error *err);
/* Starts the connector in the network namespace of `inside`, a socket; if we are root, as the jail's
 * user. *ret_near is our end of its control socket. */
int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, const struct cgroup *group,
                         pid_t *ret_pid, int *ret_near, struct brig_error *err);
/* Kills and reaps; 0 is no process. */
void door_end_process(pid_t pid);
