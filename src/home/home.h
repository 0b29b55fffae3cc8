/* SPDX-License-Identifier: MIT */
/* Jails with a name: what they keep between runs, and what runs at the same time share.
 *
 * A jail has a home (an overlay on the user's, or a directory of its own), a /tmp, a /dev/shm and a
 * runtime directory. The first run starts a holder: a process with a user and a mount namespace in
 * which these are mounted, and which never runs jailed code. Every run asks it for clones of the
 * mounts, as fds, and moves them into its own jail. So the same upper directory is never mounted
 * twice, and what one run does to its mounts is no affair of another's (see pins.h). The holder ends some time
 * after the last run.
 *
 * On disk, in the storage directory: NAME.changes (the overlay's upper directory), NAME.work beside
 * it, NAME.home. Each may be a symbolic link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "policy/policy.h"

#define HOME_NAME_MAX 64 /* of a jail's name */

struct str;

struct home_spec {
    const char *name;
    const char *storage; /* absolute; made if it is missing */
    const char *user_home;
    uid_t uid; /* as whom the jail lives; its holder is this user, also if root starts it */
    gid_t gid;
    uid_t owner; /* whose files these are: another, if root gives a jail an id of its own */
    enum policy_home kind;
    const char *const *masks; /* relative to user_home; '*' and '?' are expanded */
    size_t mask_count;
    const char *const *shown; /* what is not hidden all the same, below something that is */
    size_t shown_count;
    const char *const *own; /* brig's own directories below user_home, relative to it */
    size_t own_count;
    const struct str *mount_points;   /* of the run, in what all runs share: see wire.h */
    uint64_t disk_bytes, disk_inodes; /* see home_limit_disk(); 0: no limit */
};

/* What a run got: detached mounts, and its place in the jail. */
struct home_mounts {
    int home, tmp, var_tmp, shm, run; /* -1: none */
    int lease;    /* the connection: the holder counts it as a run while it is open */
    int lock;     /* keeps others from mounting the same again, should the holder die */
    int in_use;   /* of a jail with an id of its own: tells its owner, who cannot ask its holder */
    bool created; /* the home is new */
    char notice[BRIG_MESSAGE_MAX]; /* what the user should know; may be empty */
    bool crowded;                  /* others run in the jail */
    int disk_errno; /* why the private directories are not limited as asked; 0: they are */
    uint64_t disk_bytes, disk_inodes; /* the least that somebody in the jail asks for */
};
#define HOME_MOUNTS_INIT                                                                           \
    (struct home_mounts)                                                                           \
    {                                                                                              \
        .home = -1, .tmp = -1, .var_tmp = -1, .shm = -1, .run = -1, .lease = -1, .lock = -1,       \
        .in_use = -1                                                                               \
    }

/* Joins the jail, starting its holder if there is none. Release with home_mounts_done when the run
 * is over. */
int home_join(const struct home_spec *spec, struct home_mounts *ret_mounts, struct brig_error *err);
void home_mounts_done(struct home_mounts *mounts);

struct home_message;
/* Takes what the holder passes on to a run (HOME_MASK) from its lease: 1 and the message, to be
 * freed, and an fd to close when it is done; 0 if there is nothing, -1 when the holder is gone. */
int home_receive_masks(int lease, struct home_message **ret_message, int *ret_done);

/* Limits what a jail writes. The private directories have been limited by home_join(), for all that
 * run in the jail: the least that one of them asks for holds, until it is over. What the home has on
 * disk is held to the same by its filesystem, if that has project quotas: set by root, and seen to
 * hold by others. What does not hold is put into words, one line, or "". */
void home_limit_disk(const struct home_spec *spec, const struct home_mounts *mounts,
                     char ret_lack[POLICY_LACK_MAX]);

/* Who is in a jail. */
struct home_state {
    bool held;    /* there is a holder, */
    pid_t holder; /* this one */
    pid_t pids[64];
    size_t pid_count;
};
int home_ask(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
             struct brig_error *err);
/* Ends the holder, and with it the jail's /tmp. If somebody is in the jail it stays: then
 * BRIG_E_STATE, and the state says who. */
int home_stop(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
              struct brig_error *err);

/* Hides more in a jail that is held, at once: in its home, and in what its runs have of the host. */
struct home_masks {
    const char *user_home;
    const char *const *paths; /* relative to it, as in a spec */
    size_t count;
};
struct home_masked {
    unsigned runs; /* so many were told, */
    bool done;     /* and all of them have done it */
};
int home_mask(const char *storage, const char *name, uid_t uid, const struct home_masks *masks,
              struct home_masked *ret_masked, struct brig_error *err);

/* The program of the holder: brig executes itself to become it. fd 3 is the socket to who started
 * it. Returns the exit status. */
#define HOME_HOLDER_NAME "brig-holder"
int home_holder_main(void);
