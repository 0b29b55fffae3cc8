/* SPDX-License-Identifier: MIT */
/* What job_begin.c and job_start.c share. */
#pragma once

#include "jail/confine/identity.h"
#include "jail/job/begun.h"
#include "jail/job/spawn.h"
#include "jail/job/streams.h"

/* What was begun with, in the plan of a job. */
struct job_begun {
    struct identity identity;
    struct spawn_early early;
    struct streams streams;
};
