/* SPDX-License-Identifier: MIT */
/* The chain of configuration: which files are read, in what order, and what they decide together.
 *
 * From the weakest to the strongest: what is built in, variables, the chosen .conf file with all it
 * includes, NAME.jail in the storage, the project's .brig.conf (which may only narrow), the command
 * line. Files are read before anything is applied, because they say which mode to start from.
 *
 * This part is pure: what it asks of the system goes through struct config_world, which
 * config_files.h makes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct conf_source;
struct option_row;
struct settings;
struct settings_scan;

#define CONFIG_LINES_MAX 16384 /* directives of all files together */
#define CONFIG_PROJECT_FILE ".brig.conf"

/* What the chain has to know and to ask. Texts are borrowed; directories are absolute. */
struct config_world {
    void *context;
    const char *cwd;
    const char *home;    /* the real home directory */
    const char *user;    /* the name inside */
    const char *dir;     /* the configuration's, which need not exist */
    const char *storage; /* where jails are kept unless somebody says otherwise */
    /* A variable of the environment, or NULL. */
    const char *(*variable)(void *context, const char *name);
    /* Reads a file as conf_load() does: 1, or 0 if it is optional and there is none. Relative names
     * begin at dir; NULL: at the working directory. With `exact` no ".conf" is added. */
    int (*load)(void *context, const char *dir, const char *name, bool exact, bool optional,
                struct conf_source *ret_source, struct brig_error *err);
    /* Reads the project's file: 1, or 0 if there is none. */
    int (*project)(void *context, struct conf_source *ret_source, struct brig_error *err);
};

enum config_layer {
    CONFIG_BUILT_IN,
    CONFIG_CONF,
    CONFIG_JAIL,
    CONFIG_PROJECT,
};

/* A directive, checked for its form. */
struct config_line {
    const struct option_row *row;
    char *value; /* NULL if the row takes none */
    char *origin;
    enum config_layer layer;
};

/* What was read and decided. Zero-initialise; release with config_done. */
struct config {
    struct config_line *lines;
    size_t line_count;
    char *dir;           /* the configuration's directory */
    char *storage;       /* absolute */
    char *jail;          /* its name */
    bool jail_given;     /* on the command line */
    bool jail_exists;    /* there is a NAME.jail */
    enum brig_mode mode; /* of this run */
    char *mode_origin;   /* who said so; NULL: nobody */
    bool no_defaults;
    bool nocwd;
    char *project_text; /* what the project's file says; NULL: there is none */
    size_t project_length;
};

void config_done(struct config *config);

/* The value in "NAME=VALUE" if that is the name, else NULL. Pure. */
const char *config_assigned(const char *text, const char *name);

/* Reads the chain for this command (NULL: none), after the command line was scanned. Errors in files
 * begin with "file:line: ". */
int config_read(const struct config_world *world, const struct settings_scan *scan, int argc,
                char *const *argv, struct config *config, struct brig_error *err);

/* Applies all to settings of config->mode: the built-in defaults, then the files, but for what the
 * project grants. The settings borrow from the configuration and the world from here on. */
int config_apply(const struct config *config, const struct config_world *world,
                 struct settings *settings, struct brig_error *err);

/* After the command line: makes read-only what the project's file wants to be, of what is granted. */
int config_apply_project(const struct config *config, struct settings *settings,
                         struct brig_error *err);
