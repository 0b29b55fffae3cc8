/* SPDX-License-Identifier: MIT */
/* Turns a request into a jail: its policy and its command. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"

struct brig_error;
struct brig_policy;
struct credential;
struct execution_request;
struct runtime;
struct server_config;

/* Constant for all runs of an executor; borrowed. */
struct jail_ground {
    const struct server_config *config;
    const struct credential *credential;
    const char *broker; /* path of the broker, or NULL: the installed one */
};

/* Everything a start needs. */
struct jail {
    struct brig_policy *policy;
    const char **argv;
    int work_fd;       /* work_dir, or a mount, that the policy has by fd until the start; or -1 */
    const char *field; /* the request's field that caused a failure; or NULL */
    struct arena arena;
};

/* Checks the request against the runtime, the configuration and the machine, even if the http
 * process has checked it. The error names the first violation and what is allowed; *ret_field names
 * the field. */
int executor_jail_check(const struct jail_ground *ground, const struct runtime *runtime,
                        const struct execution_request *request, const char **ret_field,
                        struct brig_error *err);
enum jail_use {
    JAIL_ONE, /* for one request */
    /* For a request that arrives later and sets only code, input, time limit and files to return:
     * job_release() supplies them, the code in its file. */
    JAIL_LATE,
    JAIL_COMMON, /* the part that is common to most requests, for a template */
    JAIL_HELD,   /* a sandbox: the request has no code */
    /* For the stages of one request, whose commands are started in it. */
    JAIL_STAGED,
};

/* The program of ours in a sandbox: see guest/guest.c. */
#define JAIL_GUEST "/run/brig/guest"

/* `host_uid` is the jail's uid, as root; else (uid_t)-1. `request` is NULL for JAIL_LATE and JAIL_COMMON.
 * Release with executor_jail_done(), also after a failure. */
/* Sets the rlimits of the run stage. */
void executor_jail_rlimits(struct brig_policy *policy, const struct execution_request *request);
int executor_jail_make(const struct jail_ground *ground, const struct runtime *runtime,
                       const struct execution_request *request, enum jail_use use, uid_t host_uid,
                       struct jail *ret_jail, struct brig_error *err);
void executor_jail_done(struct jail *jail);

/* Returns whether a request may ask for this destination: "example.com", "*.example.com.", either
 * with ":PORT". Addresses, names of the host and presets are refused. Pure. */
bool executor_allow_is_plain(const char *rule);
