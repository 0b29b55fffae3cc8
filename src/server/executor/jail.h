/* SPDX-License-Identifier: MIT */
/* From a request to a jail: its policy and its command. */
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

/* What is the same for all runs of an executor; borrowed. */
struct jail_ground {
    const struct server_config *config;
    const struct credential *credential;
    const char *broker; /* a program, or NULL: the installed one */
};

/* Everything a start needs. */
struct jail {
    struct brig_policy *policy;
    const char **argv;
    int work_fd;       /* what the policy grants by number, open until the start; or -1 */
    const char *field; /* of the request, that is to blame for a failure; or NULL */
    struct arena arena;
};

/* Checks the request against the runtime, the configuration and the machine, whatever the http process has
 * checked: the first thing that may not be is named, its field too, with what is allowed. */
int executor_jail_check(const struct jail_ground *ground, const struct runtime *runtime,
                        const struct execution_request *request, const char **ret_field,
                        struct brig_error *err);
enum jail_use {
    JAIL_ONE, /* of this request */
    JAIL_LATE, /* of a request that has nothing of its own but code, input, a time limit and files to be
                  * returned: these come with job_release(), the code in its file */
    JAIL_COMMON, /* of any request, as far as most have it in common: for a template */
};

/* `host_uid` is the jail's own, as root; else (uid_t)-1. The request is NULL but for JAIL_ONE. Release with
 * executor_jail_done(), also after a failure. */
int executor_jail_make(const struct jail_ground *ground, const struct runtime *runtime,
                       const struct execution_request *request, enum jail_use use, uid_t host_uid,
                       struct jail *ret_jail, struct brig_error *err);
/* Whether a request has nothing but what can come late. */
bool executor_jail_fits_late(const struct execution_request *request);
void executor_jail_done(struct jail *jail);

/* A name as it may be asked for: "example.com", "*.example.com.", either with ":PORT"; no address, nothing
 * of the host's, no preset. Pure. */
bool executor_allow_is_plain(const char *rule);
