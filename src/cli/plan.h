/* SPDX-License-Identifier: MIT */
/* `brig --dry-run --plan`: what the jail of a run would be made of. */
#pragma once

#include <brig/brig.h>

struct setup;

/* Prints the plan for a command, from this kernel's facts or those of --facts. */
int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err);
