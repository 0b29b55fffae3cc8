/* SPDX-License-Identifier: MIT */
/* Credentials that the broker adds outside the jail: parses --inject and reads the secrets. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "base/path.h"

struct identity;
struct settings;

#define INJECT_WORDS_MAX 16
#define INJECT_ALSO_MAX 3

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
    INJECT_OAUTH, /* the token of the agent `where` */
    INJECT_GIVEN, /* inject_find() has filled in `secret` */
};

/* Where a preset finds the service and its secret if its variable is not set. */
enum inject_finder {
    INJECT_NOWHERE,
    INJECT_NPMRC,    /* the registry and its token in the user's ~/.npmrc */
    INJECT_PIP_CONF, /* the index and its password in the user's pip.conf, or PIP_INDEX_URL */
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
    const char *site;        /* see struct brig_inject */
    const char *git;         /* the URLs git reaches through it ("https://github.com/"), or NULL */
    enum inject_finder finder;
    /* More variables: the URL with `text` as its suffix, or only `text` if it is `fixed`. */
    struct {
        const char *name, *text;
        bool fixed;
    } also[INJECT_ALSO_MAX];
    const char *file, *content; /* a file that the program needs (struct settings_prelude) */
    const char *methods[INJECT_WORDS_MAX + 1];
    const char *paths[INJECT_WORDS_MAX + 1];
    const char *strip[INJECT_WORDS_MAX + 1];
    char *text;
    char *found;  /* owned: texts of inject_find() */
    char *secret; /* owned, wiped: with INJECT_GIVEN */
};

/* Parses a specification. A preset may stand for several: `row` counts them from 0, and 1 is
 * returned after the last. Pure. Release with inject_done(). */
int inject_parse(const char *text, size_t row, struct inject_spec *ret_spec,
                 struct brig_error *err);
void inject_done(struct inject_spec *spec);

/* The names of the presets one after the other, with what they are for; NULL at the end. */
const char *inject_preset_at(size_t index, const char **ret_about);
/* The preset that takes its secret from a variable of this name, or NULL. */
const char *inject_preset_for(const char *variable);

/* Reads the secret, without its trailing newline, with the ids of the user. The caller wipes and
 * frees it with policy_free_secret(). */
int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err);
/* The path of file:, with "~/" expanded; false if it is too long. */
bool inject_file_path(const struct inject_spec *spec, const struct identity *identity,
                      char path[static PATH_LENGTH_MAX + 1]);

/* ---- inject_find.c: credentials in the configuration of tools ---- */

/* Fills in the service and the secret of a preset from the user's configuration of the tool, which
 * is read with the ids of the user. Does nothing if the preset's variable is set, or another source
 * was given. */
int inject_find(struct inject_spec *spec, const struct identity *identity, struct brig_error *err);

/* Fills in a specification from a URL with a password: "https://USER:PASSWORD@HOST[:PORT]/PATH".
 * 1, or 0 if it has no password. `spec->suffix` is the path. Pure. */
int inject_from_url(const char *url, struct inject_spec *spec, struct brig_error *err);
/* Fills in a specification from the text of an .npmrc: 1, or 0 if it has no token for the registry.
 * `getenv` replaces ${NAME} in values. Pure. */
int inject_from_npmrc(const char *text, const char *(*variable)(const char *name),
                      struct inject_spec *spec, struct brig_error *err);
/* The value of index-url in the text of a pip.conf: 1 and the value, or 0. Pure. */
int inject_pip_index(const char *text, char **ret_url, struct brig_error *err);

/* Adds a credential for each host of a remote of the repository in the working directory whose URL
 * has a password. */
int inject_git_remotes(struct settings *settings, const struct identity *identity,
                       const char *origin, struct brig_error *err);
/* Adds one credential. Its secret is read if it was not found yet. */
int inject_apply_spec(struct settings *settings, struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err);

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
