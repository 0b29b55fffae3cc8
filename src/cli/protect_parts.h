/* SPDX-License-Identifier: MIT */
/* What the files that protect paths share: the tables (protect_rules.c), one path
 * (protect_path.c), repositories (protect_git.c), and all of it together (protect.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"

struct policy_grant;
struct protect;
struct settings;
struct str;

/* What becomes of a name that is missing. */
enum protect_hold {
    PROTECT_HOLD_NOT,
    PROTECT_HOLD_DIRECTORY,
    PROTECT_HOLD_FILE, /* in a git directory, where nothing but git sees it, and what brig reads: a file is expected */
    PROTECT_HOLD_SELF,
    PROTECT_HOLD_CLOSED,
};

struct protect_row {
    const char *path;
    enum protect_hold hold;
};

struct protect_rows {
    const struct protect_row *rows;
    size_t count;
};

extern const struct protect_rows protect_project_rows; /* in a granted directory */
extern const struct protect_rows protect_top_rows; /* one of these is held there, see protect.c */
extern const struct protect_rows protect_git_rows; /* in a git directory */
extern const struct protect_rows protect_worktree_rows; /* in a git directory's worktrees/NAME */

/* A directory that is granted for writing. */
struct protect_root {
    int fd;
    char *path;   /* canonical */
    char *source; /* as in the grant */
    char *dest;
};

struct protect_scan {
    struct settings *settings;
    struct protect *protect;
    uid_t owner;
    struct protect_root *roots;
    size_t root_count;
    unsigned links;       /* followed so far for one path */
    unsigned empty_links; /* submodules without a repository */
};

/* What the rules so far say of a place in the jail: the most specific, of equals the last. */
const struct policy_grant *protect_rule_of(const struct brig_policy *policy, const char *dest);
/* Whether a path of the host can be written in the jail, by the rules so far. */
bool protect_can_be_written(const struct protect_scan *scan, const char *path);
/* One path and another right behind it, which begins with a slash; false if it is too long. */
bool protect_join(char ret_path[PATH_LENGTH_MAX + 1], const char *dir_path, const char *rest);
/* Protects a path wherever it can be written. */
int protect_add_rules(struct protect_scan *scan, const char *path, unsigned flags,
                      struct brig_error *err);

/* What a git directory, or the name of one, is called for --unprotect: its path from the top of the
 * granted directory on; ".git" if it is granted itself. */
const char *protect_git_name(const struct protect_scan *scan, const char *path);
/* Whether a path was taken out, by its name from the top of the project, or by its own path. */
bool protect_is_excepted(const struct protect_scan *scan, const char *name, const char *path);
/* Fails if --unprotect was given a name that means nothing. */
int protect_check_name(const char *name, struct brig_error *err);

bool protect_is_empty(int dir_fd, const char *name);
/* Adds the rules for a name, and remembers to take it up if there are any, or to share it with
 * another run that has. */
int protect_hold_name(struct protect_scan *scan, int dir_fd, const char *dir_path, const char *name,
                      enum protect_hold hold, unsigned flags, struct brig_error *err);
/* Protects the paths of a table in a directory; `prefix` is what stands before them in their names.
 * Without `hold`, those that are missing stay so. */
int protect_add_rows(struct protect_scan *scan, int dir_fd, const char *dir_path,
                     const char *prefix, const struct protect_rows *rows, bool hold,
                     struct brig_error *err);

/* Protects the path `rest` in a directory that is given by its path; `name` is what the whole is
 * called. A symbolic link is protected with what it leads to. */
int protect_add_path(struct protect_scan *scan, const char *dir_path, const char *rest,
                     const char *name, enum protect_hold hold, struct brig_error *err);

/* Protects what the settings in a git directory name in the granted directories: core.hooksPath, from
 * the top of the working tree on, and included files. */
int protect_config(struct protect_scan *scan, const char *top, const char *git_dir,
                   struct brig_error *err);

#define PROTECT_CONFIG_FILES_MAX 16 /* of one repository, with the files they include */

/* Included files that are still to be read; the paths are owned. */
struct protect_todo {
    char *paths[PROTECT_CONFIG_FILES_MAX];
    size_t count;
};
/* The part of protect_config() that reads the text of one file in `dir`: protects what its variables
 * name, and adds the files it includes. */
int protect_config_text(struct protect_scan *scan, const char *top, const char *dir,
                        const char *text, size_t length, struct protect_todo *todo,
                        struct brig_error *err);

/* Protects what brig itself goes by, as far as it is in the granted directories and not in one of
 * brig's own, which are hidden: files of the configuration, its scripts and programs. */
int protect_own(struct protect_scan *scan, struct brig_error *err);

/* Remembers what a working tree and its repository are like before the run; git_dir is empty if there
 * is none. `submodules` says whether new ones are looked for after the run. */
int protect_remember(struct protect *protect, int top_fd, const char *path, const char *git_dir,
                     bool submodules, struct brig_error *err);
/* The submodules in the index of what was remembered as number `index`: the one after `link`, or the
 * first; NULL after the last. And says that one has a repository. */
const char *protect_next_link(const struct protect *protect, size_t index, const char *link,
                              int *ret_top_fd);
void protect_has_repository(struct protect *protect, size_t index, const char *link);
/* Says so of this one, of those after it, and of whatever was remembered later. */
void protect_leave_links(struct protect *protect, size_t index, const char *link);
/* Forgets all of it; after a run, tells of what git outside would obey, and puts repositories aside
 * that the run has made where git would. */
void protect_compare(struct protect *protect, bool tell);

/* The repositories in a git directory's `modules`, each from there on and ended by a NUL. */
void protect_list_modules(int git_fd, struct str *list);

/* Protects a git directory with its submodules' and its worktrees'. */
int protect_git_dir(struct protect_scan *scan, const char *path, struct brig_error *err);
