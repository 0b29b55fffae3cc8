/* SPDX-License-Identifier: MIT */
/* The chain of configuration: which files are read, in what order, and what they decide together.
 *
 * From the weakest to the strongest: what is built in, variables, the chosen .conf file with all it
 * includes, NAME.jail in the storage, the project's .brig.conf (which may only narrow), the command
 * line. Files are read before anything is applied, because they say which mode to start from.
 *
 * config.c is pure: what it asks of the system goes through struct config_world, which
 * config_files_find() makes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct conf_source;
struct identity;
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
    const char *storage; /* where jails are kept by default */
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
    char *mode_origin;   /* the file or option that chose it; NULL: the default */
    bool no_defaults;
    bool nocwd;
    char *project_text; /* what the project's file says; NULL: there is none */
};

void config_done(struct config *config);

/* The value in "NAME=VALUE" if that is the name, else NULL. Pure. */
const char *config_assigned(const char *text, const char *name);

/* Reads the chain for this command (NULL: none), after the command line was scanned. Errors in
 * files begin with "file:line: ". */
int config_read(const struct config_world *world, const struct settings_scan *scan, int argc,
                char *const *argv, struct config *config, struct brig_error *err);

/* Applies all to settings of config->mode: the built-in defaults, then the files, but for what the
 * project grants. The settings borrow from the configuration and the world from here on. */
int config_apply(const struct config *config, const struct config_world *world,
                 struct settings *settings, struct brig_error *err);

/* After the command line: makes read-only what the project's file wants to be, of what is
 * granted. */
int config_apply_project(const struct config *config, struct settings *settings,
                         struct brig_error *err);

/* Whether a mode is at least as strict as another. */
bool config_mode_narrows(enum brig_mode from, enum brig_mode to);

/* The jail's own variables, under the names of brig and of jai. */
#define CONFIG_VARIABLES 7
struct config_variable {
    const char *name, *value;
};
void config_variables(const struct settings *settings, const char *user,
                      struct config_variable ret_rows[CONFIG_VARIABLES]);

/* ---- The files: found, read and written as the user the jail is for (config_files.c) ---- */

/* The directories and hooks for config_read(). Zero-initialise; release with config_files_done. */
struct config_files {
    struct config_world world; /* borrows from the rest */
    const struct identity *identity;
    char *dir;
    char *storage;
    char *home;
    char **sources; /* what was read, absolute, each once */
    size_t source_count;
    bool named; /* the environment says where the configuration is */
};

/* Finds the directories by the environment: $BRIG_CONFIG_DIR or $JAI_CONFIG_DIR for configuration
 * and jails, else $XDG_CONFIG_HOME/brig and $XDG_DATA_HOME/brig, else those below the home
 * directory. Nothing is created. */
int config_files_find(struct config_files *files, const struct identity *identity, const char *cwd,
                      struct brig_error *err);
void config_files_done(struct config_files *files);

/* Makes NAME.jail in dir_fd, the storage, if there is none: mode 0600, in one step. It remembers
 * the mode, but for the jail "default", whose mode is casual wherever no file says otherwise. 0
 * also if there is one already. */
int config_write_jail(int dir_fd, const char *name, enum brig_mode mode, struct brig_error *err);

/* Makes a directory and its parents with mode 0700 where they are missing and opens it. */
int config_make_directory(const char *path, int *ret_fd, struct brig_error *err);

/* Says what the project's file wants if it is new or has changed since it was last said, and with
 * `remember` notes it in the storage. Failing to note it is not an error: it is said again. */
void config_show_project(const struct config *config, const char *cwd,
                         const struct identity *identity, bool remember);

/* Says once that brig does not read ~/.jai, if there is that directory and no configuration file of
 * brig's own was read. With `remember` it is noted in the storage that it was said. */
void config_show_jai(const struct config_files *files, const struct identity *identity,
                     bool remember);

/* Refuses a relative mask that was typed for a file of the working directory: it would hide nothing
 * and be believed to. */
int config_check_masks(const struct settings *settings, const struct identity *identity,
                       struct brig_error *err);
