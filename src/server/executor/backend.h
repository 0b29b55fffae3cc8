/* SPDX-License-Identifier: MIT */
/* Runs of an image by another program: crun, runc or runsc.
 *
 * The program is the command of an ordinary jail, in mode sealed, which may create namespaces
 * (allow-nested). The jail has the files of the run and the image's layers; a shell in a new user
 * namespace mounts the layers and executes the program, which makes a container of them. So
 * limits, streams, the end and the result are those of every jail, and an escape from the container
 * leads into the jail. */
#pragma once

#include <sys/types.h>

#include "server/config/runtime.h"

struct brig_error;
struct brig_policy;
struct jail;
struct str;

/* The directory of the bundle in the outer jail: config.json, and the layers as 0, 1, … */
#define BACKEND_FOLDER "/run/brig"

/* What the container runs. */
struct backend_run {
    const char *const *argv;
    const char *const *env;
    uint64_t stack_bytes, file_bytes; /* rlimits; 0: none */
};

/* Writes config.json of the OCI runtime specification. Pure; the caller checks out->failed. */
void backend_config(const struct backend_run *run, struct str *out);

/* Returns the command of the outer jail, ended by NULL, in the arena; NULL if memory ran out. */
const char **backend_command(const struct runtime *runtime, size_t layers, struct arena *arena);

/* How many processes and threads the program needs for itself, in addition to the run's limit. */
uint64_t backend_processes(enum runtime_backend backend);

/* Changes a complete policy and its command: what would run in the jail runs in a container in it.
 * `host_uid` is as for executor_jail_make(). */
int backend_apply(const struct runtime *runtime, const struct execution_request *request,
                  uid_t host_uid, struct jail *jail, struct brig_error *err);
