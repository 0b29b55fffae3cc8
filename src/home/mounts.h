/* SPDX-License-Identifier: MIT */
/* What a holder keeps mounted, in its own namespaces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

/* Where the filesystem of private.h is, in the working directory of the holder. */
#define MOUNTS_PRIVATE "private"

/* Whoever calls this gets a user and a mount namespace of its own, with a private filesystem in
 * memory in which the rest is mounted and which is its working directory. Its root directory stays the
 * host's. */
int mounts_begin(struct brig_error *err);

void mounts_end(void);

/* Detaches the host's mounts, of which the new namespace has a copy: from then on only the directories
 * that were kept can be mounted. Others fail with BRIG_E_STATE. Does nothing the second time. */
void mounts_let_go(void);
/* Whether the host's tree is there. It is gone after every process has left the mount namespace that the
 * holder was started in; then paths lead nowhere, but to /proc. */
bool mounts_have_host(void);
/* Whether the copy could not be detached, because fuse-overlayfs needs the copy, and an unmounted disk would stay
 * busy. */
bool mounts_hold_disks(void);
/* Keeps a home, and a directory with changes and homes of jails, to mount an overlay or a private home
 * later. */
int mounts_keep_home(int home, struct brig_error *err);
int mounts_keep_store(int store, struct brig_error *err);

/* Mounts the overlay of a user's home: `home` and `changes` and `work` are directories of the host's
 * tree, opened after mounts_begin(). The layer of whiteouts is complete. */
int mounts_overlay(int home, int changes, int work, const char *label, struct brig_error *err);
/* The same by fuse-overlayfs, for a home with mounts below it. The work directory is beside the
 * changes; `lock` stays open for as long as the program lives. */
int mounts_fuse_overlay(int home, int changes, const char *name, int lock, struct brig_error *err);
/* Whether something is mounted below a directory, as a process outside sees it, and what is the first. */
bool mounts_has_below(int directory, pid_t pid, char *ret_mount, size_t size);
/* Unmounts the overlay and forgets all masks. */
void mounts_drop_overlay(void);
/* Keeps a directory of the jail's as its home. */
int mounts_private_home(int home, struct brig_error *err);
/* The same with what root gave: detached mounts, and directories on the second of them. */
int mounts_given_overlay(int lower, int store, int changes, int work, const char *label,
                         struct brig_error *err);
int mounts_given_home(int tree, struct brig_error *err);

/* A whiteout, in the working directory of the holder: all others are further names of it. */
#define MOUNTS_WHITEOUT "whiteout"
/* The directory of the overlay's layer of whiteouts. */
int mounts_open_masks(void);
/* Whether fuse-overlayfs has mounted the overlay. */
bool mounts_is_fuse(void);
/* Covers a file or directory of the overlay, in all runs that have a clone of it: 0 or -errno. */
int mounts_cover(int fd, bool directory);

/* Has the kernel look again for what it has seen in the overlay, and nobody uses now: what the host
 * has made, replaced or removed meanwhile would stay as it was. A remount does that, which changes
 * nothing. */
void mounts_forget(void);

enum mounts_part { MOUNTS_OVERLAY, MOUNTS_PRIVATE_HOME, MOUNTS_TMP, MOUNTS_SHM, MOUNTS_RUN };
/* The directory of a part. */
int mounts_open(enum mounts_part part);
/* Unmounts a path below it; if it is in use only `lazily`. */
bool mounts_unmount(enum mounts_part part, const char *path, bool lazily);
/* A clone of a part for a run: the fd of a detached mount. What is mounted on the part later is mounted in
 * the clone as well; nothing comes back. */
int mounts_clone(enum mounts_part part, struct brig_error *err);
