/* SPDX-License-Identifier: MIT */
/* Verbs of the command line: each is a descriptor, defined in a file of its own (cmd_<verb>.c).
 * And what comes from the tables of verbs and options: --help, completions, documentation. */
#pragma once

#include <stdbool.h>

#include "cli/report.h"

struct nearest;

/* What the program was started with; one of it, in main.c. */
struct app {
    const struct command *command; /* the verb */
    int argc;
    char **argv;
    char **envp;
    /* What `brig cp` grants to its run, of the host's: this open file, at this path in the jail. */
    const char *grant_at; /* NULL: nothing */
    int grant_fd;
    bool grant_writable;
};

/* What the words behind a verb are. */
enum command_words {
    COMMAND_WORDS_NONE,         /* nothing that could be completed */
    COMMAND_WORDS_RUN,          /* options of a run, and a command */
    COMMAND_WORDS_PATHS,        /* options of a run, and paths */
    COMMAND_WORDS_JAILS,        /* names of jails */
    COMMAND_WORDS_JAIL_COMMAND, /* the name of a jail, and a command */
    COMMAND_WORDS_MASKS,        /* -j NAME, and paths in the home directory */
    COMMAND_WORDS_JAIL_PATHS,   /* -j NAME, and paths */
};

struct command {
    const char *name;         /* the verb, recognised as the first word only */
    const char *summary;      /* one line for --help, no full stop */
    const char *usage;        /* what follows the verb, e.g. "[--json]" */
    enum command_words words; /* what that is, for completions */
    /* argv[0] is the verb (or the program, for `run` left out); what it was given follows. Returns
     * the exit status, or a negative code. */
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
extern const struct command cmd_held;
extern const struct command cmd_keep;
extern const struct command cmd_discard;
extern const struct command cmd_mask;
extern const struct command cmd_unmask;
extern const struct command cmd_init;
extern const struct command cmd_doctor;
extern const struct command cmd_help;
extern const struct command cmd_version;

/* All verbs in the order of --help; ends with NULL. */
extern const struct command *const commands[];

/* The verb of this name, or NULL. */
const struct command *command_find(const char *name);

/* The verb that a word is nearest to; see base/nearest.h. */
void command_nearest(const char *word, struct nearest *ret_nearest);

/* Fails because a verb does not know argv[index], and says how to run a program of the verb's name
 * instead. */
int command_refuse(const struct app *app, int argc, char **argv, int index, struct brig_error *err);

/* ---- What brig says about itself on stdout ---- */

int help_print(struct brig_error *err);
int help_print_command(const struct command *command, struct brig_error *err);
int help_print_version(struct brig_error *err);
/* The built-in masks and filters as directives of a configuration file (cmd_init.c). */
int defaults_print(struct brig_error *err);

/* Prints candidates for the last of these words (those behind "brig"), one a line; one that ends
 * in a blank is finished. Where a command is being typed: "_command_offset N", if it begins with
 * the Nth word, counted from "brig" as 0. Returns the exit status. */
int complete_print(int count, char *const *words);
