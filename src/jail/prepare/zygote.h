/* SPDX-License-Identifier: MIT */
/* A zygote: an interpreter that is forked for each run, into a separate jail. This is the side of
 * the process that starts it; src/zygote/zygote.h describes the inside. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct streams;
struct zygote;

struct zygote_config {
    const struct brig_policy *policy; /* for every run; copied */
    const char *const *argv;          /* the interpreter and its script, the late file */
    const char *file;                 /* the late file's path as the interpreter opens it */
    const char *modules;              /* to import in advance, separated by spaces; or NULL */
    int library;                      /* fd of brig-zygote.so, borrowed */
    /* As root: ids of which each run takes one, plus the last one for the zygote; else 0. */
    uint32_t first_id, id_count;
};

/* Starts a zygote. It can be forked only after it reported that it is ready. */
int zygote_new(const struct zygote_config *config, struct zygote **ret_zygote,
               struct brig_error *err);
/* Readable when the zygote sent a message or exited. */
int zygote_fd(const struct zygote *zygote);
/* Handles the zygote's messages; BRIG_E_STATE once it exited. */
int zygote_process(struct zygote *zygote, struct brig_error *err);
bool zygote_is_ready(const struct zygote *zygote);

const struct brig_policy *zygote_policy(const struct zygote *zygote);

/* For job_start(): orders a jail for a job, with this host id if root's zygote has a range of them.
 * The jail is built asynchronously, and brig_job_process() handles its messages; when it is
 * complete, job_is_waiting() returns true. */
int zygote_start(struct zygote *zygote, uint32_t host_id, struct brig_job *job,
                 const struct streams *streams, struct brig_error *err);

/* Jails that the zygote has made keep running. */
void zygote_free(struct zygote *zygote);
