/* SPDX-License-Identifier: MIT */
/* What the builders of a policy share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct brig_error;
struct brig_policy;
struct json;
struct policy_grant;
struct policy_inject;
struct policy_net;
struct str;

/* Releases what a grant owns. */
void policy_grant_done(struct policy_grant *grant);

/* Puts *value into *field, frees what was there and leaves *value empty. */
void policy_replace(char **field, char **value);

/* Refuses a value that is none of an enumeration; choices says which there are. */
int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices);

/* path_normalise() with a message that begins with what the path is of. */
int policy_path(const char *what, const char *path, unsigned flags, char **ret_path,
                struct brig_error *err);

/* A copy of a list of texts that NULL ends, and no longer than `max`; NULL stays NULL. */
int policy_copy_words(const char *const *words, size_t max, const char *what, char ***ret_words,
                      struct brig_error *err);
void policy_free_words(char **words); /* accepts NULL */

/* Private directories and files; what is copied to is empty before. In policy_private.c. */
void policy_private_done(struct brig_policy *policy);
int policy_private_copy(const struct brig_policy *from, struct brig_policy *to);

/* The network in words and as JSON, without its secrets. In explain_net.c. */
void policy_explain_net(struct str *out, const struct policy_net *net);
void policy_explain_net_json(struct json *j, const struct policy_net *net);

/* What a credential owns; the copy is empty before. */
void policy_inject_done(struct policy_inject *inject);
int policy_inject_copy(const struct policy_inject *from, struct policy_inject *to);

/* A range of user ids. */
struct policy_range {
    uint32_t first, count;
};
/* The range set aside for jails in the text of /etc/subuid: its first usable line for "brig". Without
 * one, or without a file (NULL), the built-in range. In strangers.c. */
struct policy_range policy_find_range(FILE *file);
