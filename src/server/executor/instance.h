/* SPDX-License-Identifier: MIT */
/* Which jails are whose: each executor has a file with a lock on it below the state directory, in which the
 * first processes of its jails stand. A file that nobody has locked is of an executor that died, and what
 * of it still lives is ended. */
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
/* Ends the file: there is nothing of this executor left. */
void executor_instance_close(struct instance *instance);
/* A jail in a slot of its own, and its end (pid 0). */
void executor_instance_note(const struct instance *instance, size_t slot, pid_t pid);
/* Ends what executors that died have left, and clears away groups; how many processes. */
size_t executor_instance_sweep(const struct instance *instance);
