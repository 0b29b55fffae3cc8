/* SPDX-License-Identifier: MIT */
/* The runs that go on: which of them is meant by a jail's name, or by a pid. */
#pragma once

#include "cli/jails.h"
#include "jail/attach/attach.h"

/* Every run of ours in a jail. */
#define RUNS_FOUND_MAX 64

struct runs {
    struct attach items[RUNS_FOUND_MAX]; /* the newest first */
    size_t count;
};
void runs_done(struct runs *runs);

/* Those of a jail: as its holder knows them, or where none has it, as in sealed runs, all that have
 * its name. Only those whose supervisor is of our own user. */
int runs_find(const struct jails_place *place, const char *jail, struct runs *ret_runs,
              struct brig_error *err);
