/* SPDX-License-Identifier: MIT */
/* Where configuration lives and what of it is read and written, as the user the jail is for. */
#pragma once

#include <brig/brig.h>

#include "cli/config.h"

struct identity;

/* The directories and hooks for config_read(). Zero-initialise; release with config_files_done. */
struct config_files {
    struct config_world world; /* borrows from the rest */
    const struct identity *identity;
    char *dir;
    char *storage;
    char *home;
    char **sources; /* what was read, absolute, each once */
    size_t source_count;
    bool dir_missing;
    bool named; /* the environment says where the configuration is */
};

/* Finds the directories by the environment: $BRIG_CONFIG_DIR or $JAI_CONFIG_DIR for configuration
 * and jails, else $XDG_CONFIG_HOME/brig and $XDG_DATA_HOME/brig, else those below the home
 * directory. Nothing is created. */
int config_files_find(struct config_files *files, const struct identity *identity, const char *cwd,
                      struct brig_error *err);
void config_files_done(struct config_files *files);

/* Makes NAME.jail in dir_fd, the storage, if there is none: mode 0600, in one step. It remembers the
 * mode, but for the jail "default", whose mode is casual wherever no file says otherwise. 0 also if
 * there is one already. */
int config_write_jail(int dir_fd, const char *name, enum brig_mode mode, struct brig_error *err);

/* Writes a file of mode 0600 in one step, if there is none of the name: 1, or 0 if there is. */
int config_write_new(int dir_fd, const char *name, const char *text, struct brig_error *err);

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
