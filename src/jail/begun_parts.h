/* SPDX-License-Identifier: MIT */
/* What job_begin.c and job_start.c share. */
#pragma once

#include "jail/begun.h"
#include "jail/identity.h"
#include "jail/spawn.h"
#include "jail/streams.h"

/* What was begun with, in the plan of a job. */
struct job_begun {
    struct identity identity;
    struct spawn_early early;
    struct streams streams;
};
