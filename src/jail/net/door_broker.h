/* SPDX-License-Identifier: MIT */
/* Starting the processes of a network door, and handing them what they need. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct brig_error;
struct cgroup;

/* Descriptors for the door's processes are moved out of the way of what they find at 0 to 3. */
#define DOOR_FD_FLOOR 16

/* Both ends of a control socket. */
int door_make_control(int *ret_near, int *ret_far, struct brig_error *err);
/* One message with descriptors, which stay the caller's. */
int door_send(int control, unsigned type, int kind, int index, const int *fds, size_t count,
              struct brig_error *err);

/* Starts the program, an O_PATH fd, as the broker that has `far` as its control socket, in a group
 * unless that is NULL. A program that cannot be executed is one that ends at once. */
int door_spawn_broker(int program, int far, const struct cgroup *group, pid_t *ret_pid,
                      struct brig_error *err);
/* Starts the connector in the network namespace that `inside`, a socket, is of; as the jail's user,
 * where we are root. *ret_near is the socket it is spoken to by. */
int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, const struct cgroup *group,
                         pid_t *ret_pid, int *ret_near, struct brig_error *err);
/* Kills and reaps; 0 is nobody. */
void door_end_process(pid_t pid);
