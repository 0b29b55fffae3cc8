/* SPDX-License-Identifier: MIT */
/* The versions of the runtimes: each program is asked for its version once, in a sealed jail, and again
 * when its file was replaced. */
#pragma once

#include <stddef.h>

#include "server/config/runtime.h"
#include "server/executor/source.h"

struct brig_job;
struct executor;

#define VERSION_MAX 32 /* bytes, with the NUL */

struct version {
    struct runtime_program program; /* that was asked */
    char text[VERSION_MAX];         /* "3.11.2"; "": it did not say */
};

struct versions {
    struct version known[RUNTIMES_MAX]; /* indexed by runtime */
    size_t asked;                       /* the runtime that `job` asks */
    struct brig_job *job;               /* or NULL */
    struct executor_source source;
};

/* Asks the next runtime whose version is not known, if none is being asked. The answers arrive
 * through the loop. */
void executor_versions_ask(struct executor *executor);
void executor_versions_end(struct executor *executor);

/* Finds the first text like 3.11 or v5.36.0 in what a program printed; "" if there is none. Pure. */
void version_find(const char *text, char ret_version[VERSION_MAX]);
