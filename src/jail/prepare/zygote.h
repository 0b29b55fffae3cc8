/* SPDX-License-Identifier: MIT */
/* An interpreter that is forked for each run, into a jail of its own: the side of who starts it. What
 * happens in it is told in src/zygote/zygote.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct zygote;

struct zygote_config {
    const struct brig_policy *policy; /* of every run; copied */
    const char *const *argv;          /* the interpreter and what it is to run: the late file */
    const char *file;                 /* that file, as the interpreter opens it */
    const char *modules;              /* to import before, separated by spaces; or NULL */
    int library;                      /* fd of brig-zygote.so, borrowed */
    /* As root: ids of which each run takes one, and one more for the zygote, the last; else 0. */
    uint32_t first_id, id_count;
};

/* Starts one. Nothing can be forked until it says that it is ready. */
int zygote_new(const struct zygote_config *config, struct zygote **ret_zygote,
               struct brig_error *err);
/* Readable when it has something to say, or is gone. */
int zygote_fd(const struct zygote *zygote);
/* Hears it out; BRIG_E_STATE once it is gone. */
int zygote_process(struct zygote *zygote, struct brig_error *err);
bool zygote_is_ready(const struct zygote *zygote);
pid_t zygote_pid(const struct zygote *zygote); /* of who looks after it */

/* A held job in a jail of the zygote's policy. Its building goes on by itself, heard of by
 * brig_job_process(); job_is_waiting() says when it is done, and job_release() may come before that.
 * Of the command only stdio counts. `host_id` is one of the ids, as root; else it is ignored. */
int zygote_start(struct zygote *zygote, uint32_t host_id, const struct brig_command *command,
                 struct brig_job **ret_job, struct brig_error *err);

/* The same for one that is to be released at once. */
int zygote_start_now(struct zygote *zygote, uint32_t host_id, const struct brig_command *command,
                     struct brig_job **ret_job, struct brig_error *err);

/* Jails that it has made go on. */
void zygote_free(struct zygote *zygote);
