/* SPDX-License-Identifier: MIT */
/* Credentials that are added outside: --inject taken apart, and where its secrets come from. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "base/path.h"

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

/* The secret, without the end of its line. The caller wipes and frees it (policy_free_secret()).
 * With the user's rights, where root acts for one. */
int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err);

/* The value of the header: the secret in its form. The caller wipes and frees it. Pure. */
int inject_dress(const struct inject_spec *spec, const char *secret, char **ret_value,
                 struct brig_error *err);
/* Adds one credential with this value of its header to a policy. */
int inject_add_to_policy(struct brig_policy *policy, const struct inject_spec *spec,
                         const char *value, struct brig_error *err);

/* The words of a line of shell that may name files. With `whole`, quotes and backslashes are
 * removed as the shell does; without, a word also ends at a quote and at '=', ':', ',' and '@',
 * so that the file in --key=FILE and in sh -c 'cat FILE' is found. */
struct inject_words {
    const char *rest; /* the line at first */
    bool whole;
    bool inner;   /* a command has begun; false at first */
    bool program; /* the word is where the shell expects a program */
    char text[PATH_LENGTH_MAX + 1];
};
/* False at the end of the line. A word longer than a path is passed over. Pure. */
bool inject_next_word(struct inject_words *words);

/* Notes the files that a credential comes from in settings->secrets, for home_enter() to hide:
 * the one of file:; the one of ca= and those that the line of cmd: names, unless everybody on
 * the machine may read them in a directory of the system. With the rights of the user. */
int inject_note_files(struct settings *settings, const struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err);

/* All credentials that were asked for, into the policy; the files they come from, into the
 * settings. */
int inject_apply(struct settings *settings, const struct identity *identity,
                 struct brig_error *err);
