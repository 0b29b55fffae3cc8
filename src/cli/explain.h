/* SPDX-License-Identifier: MIT */
/* What a run would be: `brig --dry-run`, and with --plan what its jail would be made of. */
#pragma once

#include <brig/brig.h>

struct settings;
struct setup;

/* Prints the plan for a command, from this kernel's facts or those of --facts. */
int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err);

/* The policy with the jail, the scripts and the masks, as text for people or, with
 * settings->json, as one JSON object. The caller frees *ret_text. */
int settings_explain(const struct settings *settings, char **ret_text, struct brig_error *err);
