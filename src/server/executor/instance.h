/* SPDX-License-Identifier: MIT */
/* Records which jails belong to which executor. Each executor has a locked file below the state
 * directory with the pids of its jails' init processes. A file without a lock belongs to a dead
 * executor; jails of it that still run are killed. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct brig_error;

struct instance {
    int dir_fd, file_fd;
    char name[64];
};

#define INSTANCE_NONE                                                                              \
    (struct instance)                                                                              \
    {                                                                                              \
        .dir_fd = -1, .file_fd = -1                                                                \
    }

int executor_instance_open(const char *state_dir, struct instance *ret_instance,
                           struct brig_error *err);
/* Removes the file, when no jail of this executor is left. */
void executor_instance_close(struct instance *instance);
/* Records the init of the jail in a slot; pid 0 clears the slot. */
void executor_instance_note(const struct instance *instance, size_t slot, pid_t pid);
/* Kills jails of dead executors, and removes their cgroups. Returns the number of processes
 * killed. */
size_t executor_instance_sweep(const struct instance *instance);
