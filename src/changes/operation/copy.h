/* SPDX-License-Identifier: MIT */
/* Exact copies of single files: contents with holes, mode, owner, times, extended attributes and ACLs. The
 * attributes that overlayfs keeps for itself are never copied. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include <brig/brig.h>

enum copy_flag {
    COPY_RISKY = 1 << 0,    /* also set-user-id, set-group-id (of files) and capabilities */
    COPY_SYNC = 1 << 1,     /* make the copy durable (fsync) */
    COPY_WRITABLE = 1 << 2, /* a directory: with all rights of the owner, for filling it */
};

/* Writes the contents of a regular file to fd. */
typedef int (*copy_fill)(void *context, int fd, struct brig_error *err);

struct copy_source {
    int dir; /* the directory that contains the original, and its name; -1: `fill` gives the contents */
    const char *name;
    const struct stat *info; /* of the copy: type, mode, owner, times, and device number */
    int xattrs_dir;          /* where extended attributes come from, -1: they are the original's */
    const char *xattrs_name;
    copy_fill fill; /* NULL: the contents are the original's */
    void *context;
    const char *target; /* of a link; NULL: the original's */
    unsigned flags;     /* enum copy_flag */
};

/* Makes a copy: a regular file, a link, a FIFO, a device, or a directory without its contents. The name must be
 * free. The owner is kept as far as the caller may. *ret_info, which may be NULL, gets the state of the copy.
 * Fails with errno ESTALE in *err if the original changes meanwhile or is another file than `info` describes. After
 * a failure there is no copy. */
int copy_object(const struct copy_source *source, int to_dir, const char *to_name,
                struct stat *ret_info, struct brig_error *err);

/* Copies mode, owner, times and extended attributes to an open file (O_PATH is enough) from another; attributes
 * that the original does not have are removed. `info` is what mode, owner and times become. */
int copy_metadata(int from, const struct stat *info, int to, unsigned flags,
                  struct brig_error *err);

/* Opens a regular file for reading without following a link; ESTALE for another type. If the
 * mode of a jail's file does not let the caller read it, the mode is changed while it is opened; nothing is done to a
 * file of the user. -1 with errno. */
int copy_open(int dir, const char *name, bool of_jail);

/* Whether an attribute belongs to a file's changes: it is copied, and a jail can set it. Not those of overlayfs, and
 * not the labels of security modules: a new file gets the label of its place. */
bool copy_counts_xattr(const char *name);
