/* SPDX-License-Identifier: MIT */
/* The verbs of the command line. Each is a descriptor in a file of its own (cmd_<verb>.c). Help,
 * completions and documentation are generated from them. */
#pragma once

#include <stdbool.h>

#include "cli/report.h"

struct nearest;

/* The program's state at its start; main.c has the only instance. */
struct app {
    const struct command *command; /* the verb */
    int argc;
    char **argv;
    char **envp;
    /* A host file that `brig cp` grants to its run: the open file, and its path in the jail. */
    const char *grant_at; /* NULL: nothing */
    int grant_fd;
    bool grant_writable;
};

/* The kind of words that follow a verb and its options; `usage` has the options. */
enum command_words {
    COMMAND_WORDS_NONE,         /* nothing that could be completed */
    COMMAND_WORDS_RUN,          /* options of a run, and a command */
    COMMAND_WORDS_PATHS,        /* options of a run, and paths */
    COMMAND_WORDS_JAILS,        /* names of jails */
    COMMAND_WORDS_JAIL_COMMAND, /* the name of a jail, and a command */
    COMMAND_WORDS_MASKS,        /* paths in the home directory */
    COMMAND_WORDS_FILES,        /* paths */
    COMMAND_WORDS_COPY,         /* paths, and JAIL:PATH */
    COMMAND_WORDS_IMAGES,       /* load, list … and an archive or the name of an image */
    COMMAND_WORDS_PROFILES,     /* the name of a profile */
    COMMAND_WORDS_AGENTS,       /* the name of a profile that can log in */
    COMMAND_WORDS_TOPICS,       /* a subject of brig help */
};

struct command {
    const char *name;         /* the verb, recognised as the first word only */
    const char *summary;      /* one line for --help, no full stop */
    const char *usage;        /* what follows the verb, e.g. "[--json]" */
    enum command_words words; /* the kind of these words, for completions */
    /* argv[0] is the verb (or the program, if `run` is implied); the arguments follow. Returns the
     * exit status, or a negative code. */
    int (*run)(const struct app *app, int argc, char **argv, struct brig_error *err);
};

extern const struct command cmd_run;
extern const struct command cmd_explain;
extern const struct command cmd_why;
extern const struct command cmd_list;
extern const struct command cmd_enter;
extern const struct command cmd_stop;
extern const struct command cmd_rm;
extern const struct command cmd_cp;
extern const struct command cmd_sync;
extern const struct command cmd_status;
extern const struct command cmd_review;
extern const struct command cmd_mcp;
extern const struct command cmd_mcp_wrap;
extern const struct command cmd_held;
extern const struct command cmd_keep;
extern const struct command cmd_discard;
extern const struct command cmd_apply;
extern const struct command cmd_undo;
extern const struct command cmd_log;
extern const struct command cmd_diff;
extern const struct command cmd_mask;
extern const struct command cmd_unmask;
extern const struct command cmd_fork;
extern const struct command cmd_login;
extern const struct command cmd_logout;
extern const struct command cmd_gc;
extern const struct command cmd_image;
extern const struct command cmd_allow;
extern const struct command cmd_init;
extern const struct command cmd_import;
extern const struct command cmd_profiles;
extern const struct command cmd_doctor;
extern const struct command cmd_setup;
extern const struct command cmd_help;
extern const struct command cmd_version;

/* All verbs in the order of --help, terminated by NULL. */
extern const struct command *const commands[];

/* The verb of this name, or NULL. */
const struct command *command_find(const char *name);

/* Finds the verb that a word is nearest to; see base/nearest.h. */
void command_nearest(const char *word, struct nearest *ret_nearest);

/* Fails because a verb does not accept argv[index], and explains how to run a program that has the
 * name of the verb. */
int command_refuse(const struct app *app, int argc, char **argv, int index, struct brig_error *err);

/* Prints the built-in masks and filters as directives of a configuration file (cmd_init.c). */
int defaults_print(struct brig_error *err);
