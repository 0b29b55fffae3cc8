/* SPDX-License-Identifier: MIT */
/* What the tests of changes share: a layer "1" of the jail "x", whose upper directory is made by hand. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/tree.h"
#include "changes/layer/layer.h"
#include "tap.h"

/* `top` has the others in it, unless a test places the root elsewhere. */
static char top[64], root[128], storage[128], upper[192];

/* Names the directories: on a disk, because a tmpfs may have no extended attributes. */
static inline void name_trees(const char *test)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(top, sizeof top, "%.30s/brig-%.16s-%d", tmp ? tmp : "/var/tmp", test,
                   (int)getpid());
    (void)snprintf(root, sizeof root, "%s/root", top);
    (void)snprintf(storage, sizeof storage, "%s/storage", top);
    (void)snprintf(upper, sizeof upper, "%s/x.review/1.changes", storage);
}

static inline void remove_trees(void)
{
    (void)tree_remove(AT_FDCWD, top, NULL);
}

/* A new root and a new upper directory. */
static inline void begin_trees(void)
{
    char name[LAYER_NAME_MAX];
    remove_trees();
    if (mkdir(top, 0755) < 0 || mkdir(root, 0755) < 0 || mkdir(storage, 0700) < 0 ||
        layer_number(storage, "x", root, name, NULL) < 0 || strcmp(name, "1") != 0 ||
        mkdir(upper, 0755) < 0)
        tap_bail("cannot make trees in '%s': %s", top, strerror(errno));
}

static inline struct layer open_layer(void)
{
    struct layer layer;
    struct brig_error err = {0};
    if (layer_open(storage, "x", "1", root, &layer, &err) < 0)
        tap_bail("%s", err.message);
    return layer;
}

/* The path of a file in a tree. Valid until the next call but one. */
static inline const char *join(const char *place, const char *path)
{
    static char whole[2][1024];
    static int turn;
    turn = !turn;
    (void)snprintf(whole[turn], sizeof whole[turn], "%s/%s", place, path);
    return whole[turn];
}

/* Writes a file, and makes the missing directories above it. */
static inline void put_bytes(const char *place, const char *path, const char *bytes, size_t length)
{
    const char *whole = join(place, path);
    struct brig_error err = {0};
    if (path_make_directories(whole, (size_t)(strrchr(whole, '/') - whole), 0700, &err) < 0)
        tap_bail("%s", err.message);
    autoclose int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write_all(fd, bytes, length) < 0)
        tap_bail("cannot write '%s'", whole);
}

static inline void put(const char *place, const char *path, const char *text)
{
    put_bytes(place, path, text, strlen(text));
}

static inline void make_dir(const char *place, const char *path)
{
    if (mkdir(join(place, path), 0755) < 0)
        tap_bail("cannot make '%s'", path);
}

/* Marks a file in an upper directory as deleted, as overlayfs does. */
static inline void make_whiteout(const char *place, const char *path)
{
    if (mknod(join(place, path), S_IFCHR, makedev(0, 0)) < 0)
        tap_bail("cannot make the whiteout '%s'", path);
}

/* Makes a directory that hides the one below. */
static inline void make_opaque(const char *place, const char *path)
{
    make_dir(place, path);
    if (setxattr(join(place, path), "user.overlay.opaque", "y", 1, 0) < 0)
        tap_bail("cannot mark '%s'", path);
}
