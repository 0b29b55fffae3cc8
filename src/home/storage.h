/* SPDX-License-Identifier: MIT */
/* What a jail keeps on disk. All of it is done as the user whose jail it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include <brig/brig.h>

/* Opens the storage directory, making it and what is missing above it. It must belong to this owner.
 * An fd or a code. */
int storage_open(const char *path, uid_t owner, struct brig_error *err);

/* Opens a directory NAME.kind in the storage directory: made if it is missing (*ret_created), its
 * symbolic link followed. Refuses what belongs to somebody else. */
int storage_part(int storage, const char *name, const char *kind, bool *ret_created,
                 struct brig_error *err);

/* Opens NAME.work beside the changes directory, wherever that really is: an overlay's work
 * directory must be on the same filesystem. */
int storage_work(int changes, const char *name, struct brig_error *err);

/* Removes it again. */
int storage_remove_work(int changes, const char *name, struct brig_error *err);

/* Whether the filesystem of a directory can hold changes: whiteouts and extended attributes. */
int storage_check_upper(int changes, const char *name, struct brig_error *err);

/* How changes are laid over a home, and so what marks what was removed. */
enum storage_layers { STORAGE_KERNEL, STORAGE_FUSE };
/* Whether what is in the changes directory can be laid over by this: 0, or 1 and the reason why not. */
int storage_misfits(int changes, int work, enum storage_layers layers, const char **ret_reason);
/* Notes by what it was, in the work directory. */
void storage_mark(int work, enum storage_layers layers);

/* Moves the changes out of the way, to a name beside them that is free, and opens new ones in their
 * place. What they are called now is in *ret_name. An fd or a code. */
#define STORAGE_NAME_MAX 4096
int storage_set_aside(int changes, char ret_name[STORAGE_NAME_MAX], struct brig_error *err);

/* What the names of a jail's socket, and of a lock that is not in the storage, begin with: a storage
 * directory is told from another by its inode. */
#define STORAGE_KEY_MAX 128
int storage_key(const char *storage, const char *name, char ret_key[STORAGE_KEY_MAX],
                struct brig_error *err);

/* ---- sockets ---- */

/* Where the sockets of holders are: in a directory of their user's alone. There are several
 * places for it, as somebody else may have taken one. */

#define SOCKETS_PLACES 4

/* Opens one of the places, if it is there and the user's alone: an fd or -1. A holder may listen at
 * any of them. `storage` may be NULL. */
int sockets_open(unsigned which, uid_t uid, const char *storage);

/* Opens the first that can be had, making it: an fd or a code. */
int sockets_make(uid_t uid, const char *storage, struct brig_error *err);

/* The address of a jail's socket in such a directory, for as long as that is open. `key` is as
 * storage_key() has it. */
int sockets_address(int directory, const char *key, struct sockaddr_un *ret_address,
                    struct brig_error *err);
