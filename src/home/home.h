/* SPDX-License-Identifier: MIT */
/* Named jails: the files they keep between runs, and the mounts that concurrent runs share.
 *
 * A jail has a home (an overlay on the user's, or a directory of its own), a /tmp, a /dev/shm and a
 * runtime directory. The first run starts a holder: a process that mounts these in its own user and
 * mount namespaces and never runs jailed code. Every run asks it for clones of the mounts, as fds, and
 * moves them into its own jail. So an upper directory is never mounted twice, and a run cannot change
 * the mounts of another (see pins.h). The holder ends some time after the last run.
 *
 * On disk, in the storage directory: NAME.changes (the overlay's upper directory), NAME.work beside
 * it, NAME.home. Each may be a symbolic link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/place.h"
#include "policy/policy.h"

#define HOME_NAME_MAX 64 /* of a jail's name */

struct str;

struct home_spec {
    const char *name;
    const char *storage; /* absolute; created if it is missing */
    const char *user_home;
    struct place place; /* of user_home: the run gets this directory and no other; may be unknown */
    uid_t uid;          /* of the jail and its holder, also if root starts it */
    gid_t gid;
    uid_t owner; /* of the storage; differs from uid if root gives the jail an isolated uid */
    enum policy_home kind;
    const char *const *masks; /* relative to user_home; '*' and '?' are expanded */
    size_t mask_count;
    const char *const *shown; /* exceptions: paths below a mask that stay visible */
    size_t shown_count;
    const char *const *own; /* brig's own directories below user_home, relative to it */
    size_t own_count;
    const char *const *filters; /* of the environment: for start-up files, see startup.h */
    size_t filter_count;
    const struct str *mount_points;   /* of the run, in what all runs share: see wire.h */
    uint64_t disk_bytes, disk_inodes; /* see home_limit_disk(); 0: no limit */
};

/* What the holder gave to a run: detached mounts, and descriptors that say that the run is there. */
struct home_mounts {
    int home, tmp, var_tmp, shm, run; /* -1: none */
    int lease;    /* the connection: while it is open, the holder counts it as a run */
    int lock;     /* prevents a second mount of the same changes if the holder dies */
    int in_use;   /* a lock for owners who cannot ask the holder, because it has an isolated uid */
    bool created; /* the home is new */
    char notice[BRIG_MESSAGE_MAX]; /* a message for the user; may be empty */
    bool crowded;                  /* there are other runs in the jail */
    int disk_errno; /* why the private directories could not be limited; 0: they are */
    uint64_t disk_bytes, disk_inodes; /* the smallest limit of all runs in the jail */
};
#define HOME_MOUNTS_INIT                                                                           \
    (struct home_mounts)                                                                           \
    {                                                                                              \
        .home = -1, .tmp = -1, .var_tmp = -1, .shm = -1, .run = -1, .lease = -1, .lock = -1,       \
        .in_use = -1                                                                               \
    }

/* Joins the jail, starting its holder if there is none. Fails with BRIG_E_STATE if other runs have another directory that
 * was at the path of the home before. Release with home_mounts_done() at the end of the run. */
int home_join(const struct home_spec *spec, struct home_mounts *ret_mounts, struct brig_error *err);
void home_mounts_done(struct home_mounts *mounts);

struct home_message;
/* Reads a message of the holder (HOME_MASK) from the lease: 1, the message (freed by the caller) and an
 * fd to close when the masks are in place; 0 if there is none; -1 if the holder has ended. */
int home_receive_masks(int lease, struct home_message **ret_message, int *ret_done);

/* Limits the disk space of a jail. home_join() has limited the private directories for all runs in the
 * jail to the smallest limit of any of them. The files on disk are limited by a project quota, if the
 * filesystem supports them: root sets it, other users only check it. ret_lack gets one line about
 * what is not limited, or "". */
void home_limit_disk(const struct home_spec *spec, const struct home_mounts *mounts,
                     char ret_lack[POLICY_LACK_MAX]);

/* The processes of a jail. */
struct home_state {
    bool held; /* there is a holder */
    pid_t holder;
    pid_t pids[64]; /* of the brig processes that run something in it */
    size_t pid_count;
};
int home_ask(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
             struct brig_error *err);
/* Ends the holder, and with it the jail's /tmp. Fails with BRIG_E_STATE if there are runs in the jail;
 * the state lists them. */
int home_stop(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
              struct brig_error *err);

/* Hides more paths in a running jail: in its home, and in the granted directories of its runs. */
struct home_masks {
    const char *user_home;
    const char *const *paths; /* relative to user_home, as in a spec */
    size_t count;
};
struct home_masked {
    unsigned runs; /* that were told */
    bool done;     /* all of them have hidden the paths */
};
int home_mask(const char *storage, const char *name, uid_t uid, const struct home_masks *masks,
              struct home_masked *ret_masked, struct brig_error *err);

/* The main function of the holder: brig executes itself to become it. fd 3 is the socket to the process
 * that started it. Returns the exit status. */
#define HOME_HOLDER_NAME "brig-holder"
int home_holder_main(void);
