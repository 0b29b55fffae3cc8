/* SPDX-License-Identifier: MIT */
/* Keeps mount points of runs from being removed or renamed, by mounting them on themselves. */
#include "home/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "jail/sys.h"

#define TRIES 16                       /* a run may replace the name meanwhile */
#define PROPAGATION_PRIVATE (1U << 18) /* MS_PRIVATE */
#define PROPAGATION_SHARED (1U << 20)  /* MS_SHARED */

static const struct pins_item *find(const struct pins *pins, enum mounts_part part,
                                    const char *path)
{
    for (size_t i = 0; i < pins->count; i++)
        if (pins->items[i].part == part && strcmp(pins->items[i].path, path) == 0)
            return &pins->items[i];
    return NULL;
}

/* Takes ownership of a path. */
static int remember(struct pins *pins, enum mounts_part part, char *path)
{
    if (path && pins->count == pins->room) {
        size_t room = pins->room ? 2 * pins->room : 16;
        struct pins_item *items =
            room > PINS_MAX ? NULL : reallocarray(pins->items, room, sizeof *items);
        pins->items = items ? items : pins->items;
        pins->room = items ? room : pins->room;
    }
    if (!path || pins->count == pins->room) {
        free(path);
        return -ENOMEM;
    }
    pins->items[pins->count++] = (struct pins_item){part, path};
    return 0;
}

/* ---- one name ---- */

static bool is_mounted(int fd)
{
    struct statx info;
    return SYS(statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &info) >= 0 &&
           info.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int check_kind(int fd, bool directory)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    if (S_ISLNK(info.st_mode))
        return -ELOOP;
    return S_ISDIR(info.st_mode) == directory ? 0 : directory ? -ENOTDIR : -EISDIR;
}

static int make_name(int above, const char *name, bool directory)
{
    int made = directory ? mkdirat(above, name, 0755) : mknodat(above, name, S_IFREG | 0644, 0);
    return made == 0 || errno == EEXIST ? 0 : -errno;
}

/* Mounts a directory on itself, recursively, to keep the masks below it. The clone is made private
 * first: as a peer of the original it would get later mounts twice. */
static int mount_on_itself(int fd)
{
    struct mount_attr apart = {.propagation = PROPAGATION_PRIVATE};
    struct mount_attr shared = {.propagation = PROPAGATION_SHARED};
    long tree =
        SYS(open_tree, fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autoclose int owned = (int)tree;
    long result = tree;
    if (result >= 0)
        result = SYS(mount_setattr, owned, "", AT_EMPTY_PATH | AT_RECURSIVE, &apart, sizeof apart);
    if (result >= 0)
        result = SYS(mount_setattr, owned, "", AT_EMPTY_PATH, &shared, sizeof shared);
    if (result >= 0)
        result =
            SYS(move_mount, owned, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    return (int)result;
}

/* Opens a name as a mount. A run can rename it until it is mounted, so it is looked up again
 * afterwards. An existing mount is a pin or a mask. */
static int hold_name(int above, const char *name, bool directory, bool *ret_mounted)
{
    int result = 0;
    for (int i = 0; i < TRIES && (result >= 0 || result == -ENOENT); i++) {
        autoclose int fd = openat(above, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return -errno;
        result = fd < 0 ? make_name(above, name, directory) : check_kind(fd, directory);
        if (fd < 0 || result < 0)
            continue;
        if (is_mounted(fd))
            return take_fd(&fd);
        result = mount_on_itself(fd);
        *ret_mounted = result >= 0;
    }
    return result < 0 ? result : -EBUSY;
}

/* ---- paths ---- */

static int hold(struct pins *pins, enum mounts_part part, const char *path, bool directory)
{
    autoclose int at = mounts_open(part);
    for (const char *end = path; at >= 0 && *end; end += *end == '/') {
        const char *start = end;
        char name[NAME_MAX + 1];
        bool mounted = false;
        end += strcspn(end, "/");
        if ((size_t)(end - start) > NAME_MAX)
            return -ENAMETOOLONG;
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
        int next = hold_name(at, name, *end || directory, &mounted);
        int result = mounted ? remember(pins, part, strndup(path, (size_t)(end - path))) : 0;
        if (next < 0 || result < 0)
            return next < 0 ? next : result;
        (void)close(at);
        at = next;
    }
    return at < 0 ? -errno : 0;
}

int pins_add(struct pins *pins, enum mounts_part part, const char *path, bool directory,
             struct brig_error *err)
{
    if (find(pins, part, path))
        return 0;
    int result = hold(pins, part, path, directory);
    if (result == 0)
        return 0;
    (void)brig_fail(err, BRIG_E_SETUP, -result, "cannot mount at '%s' in the jail's home or /tmp",
                    path);
    return brig_advise(err, BRIG_E_SETUP,
                       "An earlier run may have put something else in its place");
}

bool pins_drop(struct pins *pins, pins_needed needed, const void *context, bool force)
{
    bool forced = false;
    for (size_t i = pins->count; i-- > 0;) {
        const struct pins_item *item = &pins->items[i];
        if (needed && needed(context, item))
            continue;
        bool dropped = mounts_unmount(item->part, item->path, false);
        if (!dropped && force) {
            (void)mounts_unmount(item->part, item->path, true);
            forced = dropped = true;
        }
        if (!dropped)
            continue;
        free(item->path);
        memmove(&pins->items[i], &pins->items[i + 1], (--pins->count - i) * sizeof *pins->items);
    }
    return forced;
}

void pins_forget(struct pins *pins, enum mounts_part part)
{
    size_t kept = 0;
    for (size_t i = 0; i < pins->count; i++)
        if (pins->items[i].part == part)
            free(pins->items[i].path);
        else
            pins->items[kept++] = pins->items[i];
    pins->count = kept;
}
