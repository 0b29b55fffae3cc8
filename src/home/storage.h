/* SPDX-License-Identifier: MIT */
/* The files of jails on disk. All functions act as the user who owns the jail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include <brig/brig.h>

#include "base/path.h"

/* Opens the storage directory, creating it and its missing parents. It must belong to this owner.
 * Returns an fd or a code. */
int storage_open(const char *path, uid_t owner, struct brig_error *err);

/* Opens the directory NAME.kind in the storage directory, creating it if it is missing (*ret_created).
 * Follows a symbolic link. Refuses a directory of another user. */
int storage_part(int storage, const char *name, const char *kind, bool *ret_created,
                 struct brig_error *err);

/* The changes of a jail that was forked are in several directories: its own NAME.changes, and below it
 * directories in STORAGE_FROZEN that it shares with the other jail and that nothing changes any more. NAME.below
 * lists them, topmost first, one path per line relative to the storage directory. */
#define STORAGE_FROZEN ".frozen"
#define STORAGE_BELOW "below"
#define STORAGE_BELOW_MAX 7

struct storage_below {
    int fds[STORAGE_BELOW_MAX];
    size_t count;
};

/* Opens these directories; there are none if the jail was not forked. Release with storage_below_done(). */
int storage_open_below(int storage, const char *name, struct storage_below *ret_below,
                       struct brig_error *err);
void storage_below_done(struct storage_below *below);

/* Opens NAME.work beside the target of the changes directory: overlayfs needs its work directory on
 * the same filesystem. */
int storage_work(int changes, const char *name, struct brig_error *err);

/* Removes it again. */
int storage_remove_work(int changes, const char *name, struct brig_error *err);

/* Whether the filesystem of a directory can hold changes: whiteouts and extended attributes. */
int storage_check_upper(int changes, const char *name, struct brig_error *err);

/* Which overlay mounts the changes: it decides how deleted files are marked. */
enum storage_layers { STORAGE_KERNEL, STORAGE_FUSE };
/* Whether this overlay can mount the existing changes: 0, or 1 and the reason why not. */
int storage_misfits(int changes, int work, enum storage_layers layers, const char **ret_reason);
/* Whether fuse-overlayfs has mounted the changes of this work directory. */
bool storage_is_fuse(int work);
/* Records in the work directory which overlay has mounted the changes. */
void storage_mark(int work, enum storage_layers layers);

/* Renames the changes directory to a free name beside it (ret_name), and opens a new one in its place.
 * Returns an fd or a code. */
#define STORAGE_NAME_MAX 4096
int storage_set_aside(int changes, char ret_name[STORAGE_NAME_MAX], struct brig_error *err);

/* The prefix of the names of a jail's socket, and of its lock outside the storage. It contains the inode of
 * the storage directory, because two storage directories may have jails of one name. */
#define STORAGE_KEY_MAX 128
int storage_key(const char *storage, const char *name, char ret_key[STORAGE_KEY_MAX],
                struct brig_error *err);

/* ---- sockets ---- */

/* The sockets of holders are in a directory that only their user can enter. There are several places for
 * it, because another user may have taken one. */

#define SOCKETS_PLACES 4

/* The path of one of the places; false if it cannot be used. `storage` may be NULL. */
bool sockets_name(unsigned which, uid_t uid, const char *storage, char path[PATH_LENGTH_MAX + 1]);

/* Opens one of the places, if it exists and only the user can enter it: an fd or -1. A holder may listen
 * in any of them. `storage` may be NULL. */
int sockets_open(unsigned which, uid_t uid, const char *storage);

/* Opens the first usable place, creating it: an fd or a code. */
int sockets_make(uid_t uid, const char *storage, struct brig_error *err);

/* The address of a jail's socket in such a directory, valid while the directory is open. `key` comes from
 * storage_key(). */
int sockets_address(int directory, const char *key, struct sockaddr_un *ret_address,
                    struct brig_error *err);
