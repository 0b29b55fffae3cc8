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

/* The ids with which git runs, those of the owner of the files. -1: the caller's. */
struct git_user {
    uid_t uid;
    gid_t gid;
};
#define GIT_USER_SELF ((struct git_user){(uid_t)-1, (gid_t)-1})

/* The git program and the user who runs it. */
struct git {
    char *program; /* absolute, owned; NULL: git is not installed */
    char *path;    /* owned: "PATH=" and the list of outside_path(), for git's own programs */
    struct git_user user;
    const char *const
        *environment; /* of the caller, borrowed; a few of its variables are passed on */
};

/* Finds git in the environment's PATH, except where a jail may have put one: see outside_path(). Release with git_done(). */
int git_find(struct git *git, const char *const *environment, const struct brig_policy *policy,
             struct git_user user, struct brig_error *err);
/* The same for the caller itself, by its environment, without a jail. */
int git_find_own(struct git *git, struct brig_error *err);
void git_done(struct git *git);

/* The uid of the user whose repositories git works on. */
uid_t git_owner(const struct git *git);

/* Changes to the ids of the user; false on failure. */
bool git_become(const struct git_user *user);

/* The value of a variable in an environment, or NULL. */
const char *git_variable(const char *const *environment, const char *name);

/* One call of git outside the jail. Hooks, filesystem monitors, garbage collection and all
 * transports are disabled, and no GIT_* variable of the caller is passed on. */
struct git_call {
    const char *const *words; /* after "git"; terminated by NULL */
    int dir;                  /* the directory in which git runs, an fd; or 0, and: */
    int git_dir;              /* the git directory, an fd, which stays valid after a rename */
    const char *objects;      /* GIT_OBJECT_DIRECTORY, or NULL */
    const char *index;        /* GIT_INDEX_FILE, or NULL */
    const struct str *input;  /* for standard input, or NULL */
    int input_fd;             /* standard input instead of `input`, or 0 */
    struct str *out;          /* standard output, or NULL */
    /* Instead of `out`, for lists of any length: called for each NUL-terminated text; if it returns
     * false, git is killed and the call fails. */
    bool (*each)(void *data, const char *text, size_t length);
    void *data;
    struct str *says; /* standard error, or NULL */
    /* Git runs for the user at the terminal: the environment is passed on, for the pager and for
     * diff tools, but of the GIT_* variables only those that choose them or the global
     * configuration. No working tree is set. */
    bool for_user;
    bool fetches;      /* for the user as well, and transports may be used */
    bool own_settings; /* without the configuration of the user and the system */
    bool
        bulk; /* one answer to all of the input: git keeps memory and flushes its output at the end */
};

/* Returns the exit status of git, or a negative code if it could not be run or wrote too much. */
int git_run(const struct git *git, const struct git_call *call, struct brig_error *err);

/* Starts git with these standard input, output and error, and does not wait for it; `input`, `out`
 * and the like of the call are not used. Returns the process id, for process_wait(), or a negative
 * code. */
pid_t git_start(const struct git *git, const struct git_call *call, const int fds[3],
                struct brig_error *err);

/* A git that reads requests and answers them, or only reads. */
struct git_talk {
    pid_t pid;   /* 0: none, or it has ended */
    int channel; /* a socket, its standard input and output */
    int says;    /* a file in memory, its standard error */
};

/* Starts git, with the words of the call. End it with git_talk_end(). */
int git_talk_begin(const struct git *git, const struct git_call *call, struct git_talk *ret_talk,
                   struct brig_error *err);
/* Sends a request; 0 or -errno. There is no signal if git has ended. */
int git_talk_send(const struct git_talk *talk, const void *bytes, size_t length);
/* Ends the requests and waits for git, or kills it: its exit status. The beginning of its standard
 * error is appended to `says`, which may be NULL. Does nothing if there is none. */
int git_talk_end(struct git_talk *talk, bool kills, struct str *says);

/* A callback for `each` with `git ls-files -s -z` and `git ls-tree -r -z`: appends the paths of
 * submodules to a struct str, each terminated by a NUL. */
bool git_keep_link(void *paths, const char *text, size_t length);

/* A directory that a jail has written, and the object directories that its alternates name. */
struct git_sealed {
    int dir;                          /* mounted read-write at GIT_SEALED_DIR */
    int objects[GIT_OBJECT_DIRS_MAX]; /* mounted read-only */
    char *object_dests[GIT_OBJECT_DIRS_MAX];
    size_t object_count;
};
#define GIT_SEALED_DIR "/git"

/* Runs a shell script in a sealed jail that sees only /usr and these directories, and captures its
 * output; returns its exit status or a negative code. */
int git_run_sealed(const struct git *git, const struct git_sealed *sealed, const char *script,
                   struct str *out, struct brig_error *err);

/* Packs the objects reachable from `revisions`, the input of `git pack-objects --revs`, in such a
 * jail and writes the pack to `output`, or nothing if it would be empty; returns the exit status of
 * git or a negative code. */
int git_pack_sealed(const struct git *git, const struct git_sealed *sealed,
                    const struct str *revisions, int output, struct brig_error *err);
