/* SPDX-License-Identifier: MIT */
/* What zygote.c and job_start.c share. */
#pragma once

#include "jail/job/streams.h"
#include "jail/prepare/template.h"
#include "jail/prepare/zygote.h"

struct zygote {
    struct brig_template *template;
    struct plan plan; /* what it walks for each run; of the template's memory, with its filter */
    struct spawned process;
    int socket;
    int words; /* what it writes, for when it fails */
    bool ready, gone;
    bool in_a_hurry;      /* with what is ordered now */
    unsigned shares;      /* besides its owner's */
    uint64_t answered_us; /* when it last had made a jail */
};

/* One more to be freed. */
struct zygote *zygote_share(struct zygote *zygote);

/* Orders a jail for the plan's group, with the child's end of a wire. */
int zygote_order(struct zygote *zygote, const struct plan *plan, uint32_t host_id, int wire,
                 const struct streams *streams, struct brig_error *err);
