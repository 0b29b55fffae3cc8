/* SPDX-License-Identifier: MIT */
/* Credentials that are added outside: --inject taken apart, and where its secrets come from. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

#define INJECT_WORDS_MAX 16

/* How the secret stands in its header. */
enum inject_form {
    INJECT_PLAIN,
    INJECT_BEARER, /* "Bearer SECRET" */
    INJECT_BASIC,  /* "Basic " and USER:SECRET in base64 */
};

enum inject_source {
    INJECT_ENV,
    INJECT_FILE,
    INJECT_FD,
    INJECT_COMMAND,
};

/* "NAME HEADER=[FORM:]SOURCE:WHERE [WORD...]" or "@PRESET [[FORM:]SOURCE:WHERE]". Texts point into
 * `text`, which is owned, or are constant. */
struct inject_spec {
    const char *name, *header, *upstream, *variable, *suffix, *ca;
    enum inject_form form;
    const char *user; /* INJECT_BASIC */
    enum inject_source source;
    const char *where;       /* the variable, path, number or line of shell */
    const char *placeholder; /* a variable that gets a word in place of the secret, or NULL */
    const char *git;         /* what git is to reach through it ("https://github.com/"), or NULL */
    const char *methods[INJECT_WORDS_MAX + 1];
    const char *paths[INJECT_WORDS_MAX + 1];
    const char *strip[INJECT_WORDS_MAX + 1];
    char *text;
};

/* Pure. Release with inject_done(). */
int inject_parse(const char *text, struct inject_spec *ret_spec, struct brig_error *err);
void inject_done(struct inject_spec *spec);

/* The secret, without the end of its line. The caller wipes and frees it (policy_free_secret()). With
 * the user's rights, where root acts for one. */
int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err);

/* The value of the header: the secret in its form. The caller wipes and frees it. Pure. */
int inject_dress(const struct inject_spec *spec, const char *secret, char **ret_value,
                 struct brig_error *err);
/* Adds one credential with this value of its header to a policy. */
int inject_add_to_policy(struct brig_policy *policy, const struct inject_spec *spec,
                         const char *value, struct brig_error *err);

/* All credentials that were asked for, into the policy. */
int inject_apply(struct settings *settings, const struct identity *identity,
                 struct brig_error *err);
