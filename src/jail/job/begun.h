/* SPDX-License-Identifier: MIT */
/* Jails that are begun with before their policy is whole: while the caller finds out what is granted and
 * hidden, the kernel makes the namespaces, and what no grant can change is built. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct ready_set;

/* Who may have namespaces that were made ahead: asks for such a shape (see ready.h), and takes a set
 * a moment later, if there is one. */
struct job_source {
    void (*ask)(void *arg, const char *shape, size_t length);
    bool (*take)(void *arg, struct ready_set *ret_set);
    void *arg;
};

/* Begins with a jail whose command will have our own standard streams; NULL where that gains nothing or
 * cannot be. `source` may be NULL. Until it is started the policy stays where it is, and gets grants, masks, a file
 * and what the command is told, but nothing else. To be given to job_start_begun() or to
 * job_abandon(), by the same thread. */
struct brig_job *job_begin(const struct brig_policy *policy, const struct job_source *source);
void job_abandon(struct brig_job *job);

/* As brig_start(), with what was begun with, or NULL, which is the callee's from here on. */
int job_start_begun(struct brig_job *begun, const struct brig_policy *policy,
                    const struct brig_command *command, struct brig_job **ret_job,
                    struct brig_error *err);
