/* SPDX-License-Identifier: MIT */
/* What the builders of a policy share. */
#pragma once

struct brig_error;
struct policy_grant;

/* Releases what a grant owns. */
void policy_grant_done(struct policy_grant *grant);

/* Puts *value into *field, frees what was there and leaves *value empty. */
void policy_replace(char **field, char **value);

/* Refuses a value that is none of an enumeration; choices says which there are. */
int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices);

/* path_normalise() with a message that begins with what the path is of. */
int policy_path(const char *what, const char *path, unsigned flags, char **ret_path,
                struct brig_error *err);
