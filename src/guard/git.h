/* SPDX-License-Identifier: MIT */
/* Runs git: outside the jail on the user's repository, or in a sealed jail on a directory that an
 * untrusted program has written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/str.h"

#define GIT_OBJECT_DIRS_MAX 16 /* of one repository, with its alternates */

/* The user whose files are read and written: git runs with these ids. -1: with the caller's. */
struct git_user {
    uid_t uid;
    gid_t gid;
};

/* The git program and the user who runs it. */
struct git {
    char *program; /* absolute, owned; NULL: git is not installed */
    struct git_user user;
    const char *const
        *environment; /* of the caller, borrowed; a few variables of it are passed on */
};

/* Finds git in the directories of the environment's PATH. Directories that the policy lets a jail write
 * to are skipped. Release with git_done(). */
int git_find(struct git *git, const char *const *environment, const struct brig_policy *policy,
             struct git_user user, struct brig_error *err);
void git_done(struct git *git);

/* The user whose repositories git works on. */
uid_t git_owner(const struct git *git);

/* Gives this process the ids of the user; false if that fails. */
bool git_become(const struct git_user *user);

/* The value of a variable in an environment; NULL if it has none. */
const char *git_variable(const char *const *environment, const char *name);

/* Waits for a child: its exit status, 128 and a signal, or -1. */
int git_wait(pid_t pid);

/* One call of git outside the jail. Hooks, file system monitors, garbage collection and all transports are
 * switched off, and no GIT_* variable of the caller is passed on. */
struct git_call {
    const char *const *words; /* after "git"; ended by NULL */
    int dir;                  /* where git finds the repository, an fd; or 0, and: */
    int git_dir;              /* the git directory, an fd, whatever its name is by now */
    const char *objects;      /* GIT_OBJECT_DIRECTORY, or NULL */
    const char *index;        /* GIT_INDEX_FILE, or NULL */
    const struct str *input;  /* for standard input, or NULL */
    int input_fd;             /* standard input instead of `input`, or 0 */
    struct str *out;          /* standard output, or NULL */
    /* Instead of `out`, for lists of any length: is given each text that ends with a NUL; if it returns false, git
     * is ended, and the call fails. */
    bool (*each)(void *data, const char *text, size_t length);
    void *data;
    struct str *says; /* standard error, or NULL */
};

/* The exit status of git, or a negative code if it could not be run or wrote too much. */
int git_run(const struct git *git, const struct git_call *call, struct brig_error *err);

/* For `each` of `git ls-files -s -z` and `git ls-tree -r -z`: appends the paths of submodules to a struct str, each ended by a
 * NUL. */
bool git_keep_link(void *paths, const char *text, size_t length);

/* A directory that a jail has written, and the object directories its alternates name. */
struct git_sealed {
    int dir;                          /* mounted read-write at GIT_SEALED_DIR */
    int objects[GIT_OBJECT_DIRS_MAX]; /* mounted read-only */
    char *object_dests[GIT_OBJECT_DIRS_MAX];
    size_t object_count;
};
#define GIT_SEALED_DIR "/git"

/* Runs a shell script in a sealed jail that sees /usr and these directories, and captures its output;
 * its exit status or a negative code. */
int git_run_sealed(const struct git *git, const struct git_sealed *sealed, const char *script,
                   struct str *out, struct brig_error *err);

/* Packs what is reachable from `revisions`, the input of `git pack-objects --revs`, in such a jail and writes
 * the pack to `output`, nothing if it would be empty; the exit status of git or a negative code. */
int git_pack_sealed(const struct git *git, const struct git_sealed *sealed,
                    const struct str *revisions, int output, struct brig_error *err);
