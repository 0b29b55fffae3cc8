/* SPDX-License-Identifier: MIT */
/* The configuration chain: which files are read, in what order, and what they decide together.
 *
 * From the weakest to the strongest: built-in defaults, environment variables, the profile of the
 * command, the chosen .conf file with its includes, NAME.jail in the storage, the project's .brig.conf (which may only
 * narrow), the command line. All files are read before anything is applied, because they choose the
 * mode.
 *
 * config.c is pure: it accesses the system through struct config_world, which config_files_find()
 * fills in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/path.h"
#include "cli/settings/profile.h"

struct conf_source;
struct identity;
struct option_row;
struct settings;
struct settings_scan;

#define CONFIG_LINES_MAX 16384 /* directives in all files together */
#define CONFIG_PROJECT_FILE ".brig.conf"

/* The inputs of the chain, and its access to the system. Texts are borrowed; directories are
 * absolute. */
struct config_world {
    void *context;
    const char *cwd;
    const char *home;    /* the real home directory */
    const char *user;    /* the user name inside */
    const char *dir;     /* the configuration directory, which need not exist */
    const char *storage; /* where jails are kept by default */
    const char *project; /* the project of the working directory, or NULL */
    /* A variable of the environment, or NULL. */
    const char *(*variable)(void *context, const char *name);
    /* Whether a file can be executed; NULL: none is known. */
    bool (*is_program)(void *context, const char *path);
    /* Reads a file as conf_load() does: 1, or 0 if it is optional and does not exist. Relative
     * names are relative to dir; NULL: to the working directory. With `exact` no ".conf" is
     * added. */
    int (*load)(void *context, const char *dir, const char *name, bool exact, bool optional,
                struct conf_source *ret_source, struct brig_error *err);
    /* The project of a jail; false if it has none. */
    bool (*of_project)(void *context, const char *storage, const char *jail,
                       char project[static PATH_LENGTH_MAX + 1]);
    /* Reads the project's file: 1, or 0 if it does not exist. */
    int (*load_project)(void *context, struct conf_source *ret_source, struct brig_error *err);
};

enum config_layer {
    CONFIG_BUILT_IN,
    CONFIG_PROFILE,
    CONFIG_CONF,
    CONFIG_JAIL,
    CONFIG_PROJECT,
};

/* A directive whose form was checked. */
struct config_line {
    const struct option_row *row;
    char *value; /* NULL if the row takes none */
    char *origin;
    enum config_layer layer;
};

/* The result of reading the chain. Zero-initialise; release with config_done. */
struct config {
    struct config_line *lines;
    size_t line_count;
    char *dir;           /* the configuration's directory */
    char *storage;       /* absolute */
    char *jail;          /* the name of the jail */
    char *jail_here;     /* the jail of a run in this directory without -j */
    const char *project; /* the project that the jail belongs to, or NULL; borrowed */
    bool jail_given;     /* on the command line */
    bool jail_exists;    /* NAME.jail exists */
    enum brig_mode mode; /* the mode of this run */
    char *mode_origin;   /* the file or option that chose it; NULL: the default */
    bool no_defaults;
    bool nocwd;
    struct profile profile; /* what is known about the command */
    bool profile_typed;     /* chosen on the command line */
    char *project_text;     /* the contents of the project's file; NULL: it does not exist */
};

void config_done(struct config *config);

/* The value in "NAME=VALUE" if the name is `name`, else NULL. Pure. */
const char *config_assigned(const char *text, const char *name);

/* Reads the chain for a command (NULL: none), after the command line was scanned. Errors in files
 * begin with "file:line: ". */
int config_read(const struct config_world *world, const struct settings_scan *scan, int argc,
                char *const *argv, struct config *config, struct brig_error *err);

/* Applies the built-in defaults and then the files to settings of config->mode, except for the
 * project's grants. From here on the settings borrow from the configuration and the world. */
int config_apply(const struct config *config, const struct config_world *world,
                 struct settings *settings, struct brig_error *err);

/* Called after the command line was applied: makes those grants read-only that the project's file
 * wants read-only. */
int config_apply_project(const struct config *config, struct settings *settings,
                         struct brig_error *err);

/* ---- A project's file, which may only narrow (config_project.c) ---- */

/* Refuses a directive that cannot narrow at all; the functions below ensure that one does. */
int config_project_check(const struct option_row *row, const char *value, struct brig_error *err);
/* Whether mode `to` is at least as strict as mode `from`. */
bool config_mode_narrows(enum brig_mode from, enum brig_mode to);
/* Applies a line, except for grants and modes. A limit must become lower. */
int config_project_apply(struct settings *settings, const struct config_line *line,
                         struct brig_error *err);
/* Makes a part of a writable grant read-only. */
int config_project_grant(struct settings *settings, const struct config_line *line,
                         struct brig_error *err);

/* The environment variables of brig, with their names in jai. */
#define CONFIG_VARIABLES 7
struct config_variable {
    const char *name, *value;
};
void config_variables(const struct settings *settings, const char *user,
                      struct config_variable ret_rows[CONFIG_VARIABLES]);

/* ---- The files: found, read and written with the ids of the jail's user (config_files.c) ---- */

/* The directories and the hooks of config_read(). Zero-initialise; release with
 * config_files_done. */
struct config_files {
    struct config_world world; /* borrows from the other members */
    const struct identity *identity;
    char *dir;
    char *storage;
    char *home;
    char *project;  /* NULL: none */
    char **sources; /* the files that were read: absolute, without duplicates */
    size_t source_count;
    bool named; /* an environment variable names the configuration directory */
};

/* Finds the directories from the environment: $BRIG_CONFIG_DIR or $JAI_CONFIG_DIR for configuration
 * and jails, else $XDG_CONFIG_HOME/brig and $XDG_DATA_HOME/brig, else their defaults below the home
 * directory. Creates nothing. */
int config_files_find(struct config_files *files, const struct identity *identity, const char *cwd,
                      struct brig_error *err);
void config_files_done(struct config_files *files);

/* Creates NAME.jail in dir_fd, the storage, atomically and with mode 0600, unless it exists. The
 * file records the mode, except for the jail "default" and, with `of_project`, that of a project:
 * their mode is casual unless a .conf file says otherwise. */
int config_write_jail(int dir_fd, const char *name, enum brig_mode mode, bool of_project,
                      struct brig_error *err);

/* Opens a directory, and creates it and its missing parents with mode 0700. */
int config_make_directory(const char *path, int *ret_fd, struct brig_error *err);

/* Prints what the project's file wants if the file is new or has changed since it was last shown.
 * With `remember` this is recorded in the storage; if that fails, it is shown again next time. */
void config_show_project(const struct config *config, const char *cwd,
                         const struct identity *identity, bool remember);

/* Whether nothing has run in this directory yet that asked this; it is recorded now. */
bool config_is_new_project(const struct config *config, const char *cwd,
                           const struct identity *identity);

/* Prints once that brig does not read ~/.jai, if that directory exists and no configuration file of
 * brig was read. With `remember` this is recorded in the storage. */
void config_show_jai(const struct config_files *files, const struct identity *identity,
                     bool remember);

/* Whether a profile was not used in this project yet, or has changed since. With `remember` this is recorded in the
 * storage. */
bool config_is_new_profile(const char *storage, const char *cwd, const char *name, const char *text,
                           const struct identity *identity, bool remember);

/* Records that a jail "default" was made by this version, so that nothing is printed about it. */
void config_note_default_jail(const char *storage);

/* Prints once, to users who have a jail "default" of an earlier version, that projects now have jails
 * of their own. */
void config_show_own_jails(const struct config *config, const struct identity *identity);

/* Refuses a relative mask that names a file in the working directory: masks are relative to the
 * home directory, so it would hide nothing. */
int config_check_masks(const struct settings *settings, const struct identity *identity,
                       struct brig_error *err);
