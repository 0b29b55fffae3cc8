/* SPDX-License-Identifier: MIT */
/* The mounts of a holder, in its own namespaces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

struct storage_below;

/* Where the filesystem of private.h is, in the working directory of the holder. */
#define MOUNTS_PRIVATE "private"

/* Moves the calling process into new user and mount namespaces, and into a new tmpfs as its working
 * directory, in which everything else is mounted. Its root directory remains the host's. */
int mounts_begin(struct brig_error *err);

void mounts_end(void);

/* Detaches the host's mounts from the namespace, so that the host can unmount its disks. From then on only
 * directories that were kept can be mounted; others fail with BRIG_E_STATE. A second call does nothing. */
void mounts_let_go(void);
/* Whether the host's tree is still there. The kernel removes it when the last process has left the mount
 * namespace in which the holder was started; then no path can be opened except below /proc. */
bool mounts_have_host(void);
/* Whether the host's mounts could not be detached because fuse-overlayfs needs them, so that the host's disks
 * stay busy. */
bool mounts_hold_disks(void);
/* Keep the user's home and the storage directory, to mount an overlay or a private home later. */
int mounts_keep_home(int home, struct brig_error *err);
int mounts_keep_store(int store, struct brig_error *err);

/* The directories of an overlay that belong to the jail. */
struct mounts_upper {
    int changes, work;
    const struct storage_below *below; /* between the changes and the whiteouts */
};

/* Mounts the overlay of a user's home. All directories are of the host's tree, opened after mounts_begin(). The layer
 * of whiteouts must be complete. */
int mounts_overlay(int home, const struct mounts_upper *upper, const char *label,
                   struct brig_error *err);
/* The same by fuse-overlayfs, for a home with mounts below it. The work directory is beside the
 * changes; `lock` stays open for as long as the program lives. */
int mounts_fuse_overlay(int home, const struct mounts_upper *directories, const char *name,
                        int lock, struct brig_error *err);
/* Whether there is a mount below a directory in the mount namespace of `pid`, and the first one. */
bool mounts_has_below(int directory, pid_t pid, char *ret_mount, size_t size);
/* Unmounts the overlay and forgets all masks. */
void mounts_drop_overlay(void);
/* Keeps a directory of the jail's as its home. */
int mounts_private_home(int home, struct brig_error *err);
/* The same with mounts that root has sent: `home` and those of upper->below. The changes are in the mount `store`. */
int mounts_given_overlay(int home, int store, const struct mounts_upper *upper, const char *label,
                         struct brig_error *err);
int mounts_given_home(int tree, struct brig_error *err);

/* A whiteout, in the working directory of the holder: the other whiteouts are hard links to it. */
#define MOUNTS_WHITEOUT "whiteout"
/* Another one, for start-up files: see overlay_startup.h. */
#define MOUNTS_STARTUP_WHITEOUT "startup-whiteout"
/* The directory of the overlay's layer of whiteouts. */
int mounts_open_masks(void);
/* Whether fuse-overlayfs has mounted the overlay. */
bool mounts_is_fuse(void);
/* Covers a file or directory of the overlay, in all runs that have a clone of it: 0 or -errno. */
int mounts_cover(int fd, bool directory);

/* Drops the kernel's cached lookups of the overlay, by a remount that changes nothing. Otherwise later runs
 * would not see files that the host has created, replaced or removed. */
void mounts_forget(void);

enum mounts_part { MOUNTS_OVERLAY, MOUNTS_PRIVATE_HOME, MOUNTS_TMP, MOUNTS_SHM, MOUNTS_RUN };
/* The directory of a part. */
int mounts_open(enum mounts_part part);
/* Unmounts a path below it; if it is in use only `lazily`. */
bool mounts_unmount(enum mounts_part part, const char *path, bool lazily);
/* A clone of a part for a run: the fd of a detached mount. It is a slave: later mounts on the part appear in
 * the clone, but not the other way round. */
int mounts_clone(enum mounts_part part, struct brig_error *err);
