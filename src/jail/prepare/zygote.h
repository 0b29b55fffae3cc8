/* SPDX-License-Identifier: MIT */
/* An interpreter that is forked for each run, into a jail of its own: the side of who starts it. What
 * happens in it is told in src/zygote/zygote.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct streams;
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

const struct brig_policy *zygote_policy(const struct zygote *zygote);

/* For job_start(): orders a jail for a job, as this host id where root's zygote has a range of them.
 * Its building goes on by itself and is heard of by brig_job_process(); when it is done,
 * job_is_waiting(). */
int zygote_start(struct zygote *zygote, uint32_t host_id, struct brig_job *job,
                 const struct streams *streams, struct brig_error *err);

/* Jails that it has made go on. */
void zygote_free(struct zygote *zygote);
