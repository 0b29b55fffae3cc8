/* SPDX-License-Identifier: MIT */
/* Profiles of agents and tools: what brig knows about a program, as data.
 *
 * A profile is a file of profiles/ in the syntax of brig.conf(5), part of this program. It contains
 * directives, which are applied like those of a .conf file and are weaker than those, and facts,
 * which the words below name. A .conf file may contain facts too, and so change or add to those of
 * the profile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct conf_source;
struct str;

#define PROFILE_NAME_MAX 32
#define PROFILE_VARIABLE_MAX 128
#define PROFILE_NONE "none" /* the value of --profile that means no profile */

/* Rows: id, word, whether each line adds a value (else it replaces the value), what it says. */
#define PROFILE_WORDS(X)                                                                           \
    X(ABOUT, "about", false, "what the program is")                                                \
    X(KIND, "kind", false, "agent or tool")                                                        \
    X(COMMANDS, "commands", true, "names of the program, if not that of the profile")              \
    X(TESTED, "tested", false, "the version that was tested, or no")                               \
    X(STATE, "state", true, "where it keeps its state, relative to the home directory")            \
    X(HOST_API, "host-api", true, "hosts that it needs to work")                                   \
    X(HOST_LOGIN, "host-login", true, "hosts that it needs to log in")                             \
    X(HOST_UPDATE, "host-update", true, "hosts that it updates itself from")                       \
    X(HOST_TELEMETRY, "host-telemetry", true, "hosts that it reports to")                          \
    X(KEY, "key", true, "a variable with a credential, its preset, where the placeholder goes")    \
    X(ARGUMENTS, "arguments", true, "arguments to add; not if they use a variable that is unset")  \
    X(UNLESS, "unless", true, "arguments of the user that make these unnecessary")                 \
    X(LOGIN, "login", false, "the command that logs in")                                           \
    X(LOGIN_FILE, "login-file", false, "the file that it writes, relative to the home directory")  \
    X(LOGIN_PORT, "login-port", true, "the port that a browser calls back")                        \
    X(OAUTH, "oauth", false, "how its tokens are refreshed")                                       \
    X(SANDBOX, "sandbox", false, "what happens to its own sandbox")                                \
    X(NOTE, "note", true, "a remark for the user")

enum profile_word {
#define PROFILE_WORD_ID(id, ...) PROFILE_##id,
    PROFILE_WORDS(PROFILE_WORD_ID)
#undef PROFILE_WORD_ID
        PROFILE_WORD_COUNT_
};

/* The facts about the program of a run. Zero-initialise; release with profile_done. */
struct profile {
    char name[PROFILE_NAME_MAX]; /* "": there is no profile */
    struct profile_fact {
        enum profile_word word;
        char *value;
    } * facts;
    size_t count;
};
void profile_done(struct profile *profile);

/* The word of a directive, or -1. */
int profile_word(const char *name);
/* Adds a value, or replaces the value if the word has only one; an empty one removes all earlier
 * values. */
int profile_add(struct profile *profile, enum profile_word word, const char *value,
                struct brig_error *err);

/* The value of a word that has only one; NULL: none. */
const char *profile_get(const struct profile *profile, enum profile_word word);
/* The values of a word one after the other, from *at = 0 on; NULL at the end. */
const char *profile_next(const struct profile *profile, enum profile_word word, size_t *at);
/* The same, split into words at blanks. *at and *offset begin at 0. */
bool profile_next_word(const struct profile *profile, enum profile_word word, size_t *at,
                       size_t *offset, char *buffer, size_t size);

/* The words of a value of PROFILE_KEY: a variable, the preset of --inject for it, and the variable
 * that gets the placeholder instead. Absent ones are "". */
struct profile_key {
    char name[PROFILE_VARIABLE_MAX], preset[64], placeholder[PROFILE_VARIABLE_MAX];
};
bool profile_next_key(const struct profile *profile, size_t *at, struct profile_key *ret_key);
/* Whether the placeholder for a variable goes into another, and into which. */
bool profile_placeholder(const struct profile *profile, const char *variable,
                         char ret_name[static PROFILE_VARIABLE_MAX]);

/* ---- The profiles that are part of brig ---- */

struct profile_text {
    const char *name;
    const char *text;
};
const struct profile_text *profile_texts(size_t *ret_count);
/* Adds where all of them keep their state, and caches, to a list of paths in the home directory: changes there are no
 * news. */
int profile_list_state(struct str *list, struct brig_error *err);
/* The profile of this name, or for this command; NULL: none. */
const struct profile_text *profile_find(const char *name);
const struct profile_text *profile_of_command(const char *command);
/* Adds the facts in a file of the user, if it exists; its includes are not read. */
int profile_read_file(const char *path, struct profile *profile, struct brig_error *err);
/* The text of a profile as if it came from a file: 1. */
int profile_load(const struct profile_text *text, struct conf_source *ret_source,
                 struct brig_error *err);
/* The facts of a profile alone. */
int profile_read(const struct profile_text *text, struct profile *ret_profile,
                 struct brig_error *err);
