/* SPDX-License-Identifier: MIT */
/* A project's .brig.conf: it comes with what somebody else wrote, so it may only narrow. Pure. */
#pragma once

#include <brig/brig.h>

struct config_line;
struct option_row;
struct policy_grant;
struct settings;

/* Whether a directive is one that can narrow; for each that is, the functions below see to it that
 * it does. */
int project_check(const struct option_row *row, const char *value, struct brig_error *err);

/* Whether a mode is at least as strict as another. */
bool project_mode_narrows(enum brig_mode from, enum brig_mode to);

/* Applies a line that passed project_check(), but for grants and modes. */
int project_apply(struct settings *settings, const struct config_line *line,
                  struct brig_error *err);

/* Makes a part of what is granted for writing read-only. */
int project_apply_grant(struct settings *settings, const struct config_line *line,
                        struct brig_error *err);

/* The rule of a policy that decides about a path: the most specific, and of several for one place the
 * last. NULL if there is none. */
const struct policy_grant *project_rule_of(const struct brig_policy *policy, const char *path);
