/* SPDX-License-Identifier: MIT */
/* Credentials that the broker adds outside the jail: parses --inject and reads the secrets. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "base/path.h"

struct identity;
struct settings;

#define INJECT_WORDS_MAX 16

/* The form of the secret in its header. */
enum inject_form {
    INJECT_PLAIN,
    INJECT_BEARER, /* "Bearer SECRET" */
    INJECT_BASIC,  /* "Basic " and base64 of USER:SECRET */
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
    const char *user; /* for INJECT_BASIC */
    enum inject_source source;
    const char *where;       /* the variable, path, descriptor number or shell command */
    const char *placeholder; /* a variable that gets a placeholder for the secret, or NULL */
    const char *git;         /* the URLs git reaches through it ("https://github.com/"), or NULL */
    const char *methods[INJECT_WORDS_MAX + 1];
    const char *paths[INJECT_WORDS_MAX + 1];
    const char *strip[INJECT_WORDS_MAX + 1];
    char *text;
};

/* Parses a specification. Pure. Release with inject_done(). */
int inject_parse(const char *text, struct inject_spec *ret_spec, struct brig_error *err);
void inject_done(struct inject_spec *spec);

/* The preset that takes its secret from a variable of this name, or NULL. */
const char *inject_preset_for(const char *variable);

/* Reads the secret, without its trailing newline, with the ids of the user. The caller wipes and
 * frees it with policy_free_secret(). */
int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err);

/* Builds the value of the header from the secret and its form. The caller wipes and frees it.
 * Pure. */
int inject_dress(const struct inject_spec *spec, const char *secret, char **ret_value,
                 struct brig_error *err);
/* Adds one credential, with this header value, to a policy. */
int inject_add_to_policy(struct brig_policy *policy, const struct inject_spec *spec,
                         const char *value, struct brig_error *err);

/* Iterates over the words of a shell command that may name files. With `whole`, quotes and
 * backslashes are removed as the shell does. Without, a word also ends at a quote and at '=', ':',
 * ',' and '@', so that the file in --key=FILE and in sh -c 'cat FILE' is found. */
struct inject_words {
    const char *rest; /* initially the whole command */
    bool whole;
    bool inner;   /* a nested command has begun; initially false */
    bool program; /* the word is where the shell expects a program name */
    char text[PATH_LENGTH_MAX + 1];
};
/* False at the end of the line. Words longer than a path are skipped. Pure. */
bool inject_next_word(struct inject_words *words);

/* Adds the files that a credential comes from to settings->secrets, for home_enter() to hide: the
 * file of file:, and the files of ca= and of the command of cmd:, unless they are world-readable in
 * a system directory. Uses the ids of the user. */
int inject_note_files(struct settings *settings, const struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err);

/* Adds all requested credentials to the policy, and their files to the settings. */
int inject_apply(struct settings *settings, const struct identity *identity,
                 struct brig_error *err);
