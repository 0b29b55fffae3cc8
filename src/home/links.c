/* SPDX-License-Identifier: MIT */
/* Where a path below a home directory really is. Names are read one by one from the directory's fd:
 * who has a home only as a mount cannot ask the kernel for its path. */
#include "home/links.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "jail/sys.h"

#define LINKS_MAX 40 /* as many as the kernel follows */

struct walk {
    const struct links_home *home;
    char done[LINKS_PATH_MAX]; /* without links, relative to the home */
    char rest[LINKS_PATH_MAX];
    int links;
    bool outside; /* `rest` is an absolute path that is not in the home */
};

/* The rest of an absolute path that lies in the home, or NULL. */
static const char *rest_inside(const char *directory, const char *path)
{
    if (!directory || !path_is_beneath(directory, path))
        return NULL;
    path += strlen(directory);
    return path + strspn(path, "/");
}

/* Puts text before what is left; false if there is no room. */
static bool put_before(struct walk *walk, const char *text)
{
    char all[LINKS_PATH_MAX];
    const char *between = *text && *walk->rest ? "/" : "";
    int length = snprintf(all, sizeof all, "%s%s%s", text, between, walk->rest);
    if (length < 0 || (size_t)length >= sizeof all)
        return false;
    memcpy(walk->rest, all, (size_t)length + 1);
    return true;
}

static bool go_up(struct walk *walk)
{
    char *slash = strrchr(walk->done, '/');
    if (slash || *walk->done) {
        *(slash ? slash : walk->done) = 0;
        return true;
    }
    const char *path = walk->home->real ? walk->home->real : walk->home->path;
    char above[LINKS_PATH_MAX];
    (void)snprintf(above, sizeof above, "%s/..", path);
    walk->outside = true;
    return put_before(walk, above);
}

static bool follow(struct walk *walk, const char *target)
{
    if (++walk->links > LINKS_MAX)
        return false;
    if (*target != '/')
        return put_before(walk, target);
    const char *inside = rest_inside(walk->home->path, target);
    if (!inside)
        inside = rest_inside(walk->home->real, target);
    walk->outside = !inside;
    walk->done[0] = 0;
    return put_before(walk, inside ? inside : target);
}

/* Takes the next name off what is left: false if that cannot go on. */
static bool step(struct walk *walk, bool last)
{
    char name[PATH_COMPONENT_MAX + 1], path[LINKS_PATH_MAX], target[LINKS_PATH_MAX];
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(start, "/");
    if (length > PATH_COMPONENT_MAX)
        return false;
    memcpy(name, start, length);
    name[length] = 0;
    const char *after = start + length + strspn(start + length, "/");
    memmove(walk->rest, after, strlen(after) + 1);
    if (length == 0 || strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0)
        return go_up(walk);
    int whole = snprintf(path, sizeof path, "%s%s%s", walk->done, *walk->done ? "/" : "", name);
    if (whole < 0 || (size_t)whole >= sizeof path)
        return false;
    ssize_t size =
        last || *walk->rest ? readlinkat(walk->home->fd, path, target, sizeof target - 1) : -1;
    if (size >= 0) {
        target[size] = 0;
        return follow(walk, target);
    }
    memcpy(walk->done, path, (size_t)whole + 1);
    return true;
}

/* Of an absolute path, without links; what is missing at its end stays. */
static bool make_real(const char *path, char ret_path[LINKS_PATH_MAX])
{
    autofree char *real = realpath(path, NULL);
    const char *name = "";
    if (!real) {
        autofree char *above = strdup(path);
        char *slash = above ? strrchr(above, '/') : NULL;
        name = strrchr(path, '/');
        if (!slash || strcmp(name, "/..") == 0)
            return false;
        *slash = 0;
        real = realpath(*above ? above : "/", NULL);
        if (real && strcmp(real, "/") == 0)
            *real = 0;
    }
    int length = real ? snprintf(ret_path, LINKS_PATH_MAX, "%s%s", real, name) : -1;
    return length > 0 && length < LINKS_PATH_MAX;
}

int links_open_plain(const struct links_home *home, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long fd = SYS(openat2, home->fd, path, &how, sizeof how);
    return fd < 0 ? -1 : (int)fd;
}

bool links_are_none(const struct links_home *home, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    long fd = SYS(openat2, home->fd, path, &how, sizeof how);
    if (fd >= 0)
        (void)close((int)fd);
    return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR;
}

enum links_found links_follow(const struct links_home *home, const char *path, bool last,
                              char ret_path[LINKS_PATH_MAX])
{
    struct walk walk = {.home = home};
    if (strlen(path) >= sizeof walk.rest)
        return LINKS_NOWHERE;
    memcpy(walk.rest, path, strlen(path) + 1);
    while (*walk.rest && !walk.outside)
        if (!step(&walk, last))
            return LINKS_NOWHERE;
    if (walk.outside) {
        char real[LINKS_PATH_MAX];
        if (!make_real(walk.rest, real))
            return LINKS_NOWHERE;
        const char *own = home->real ? home->real : home->path;
        const char *inside = rest_inside(own, real);
        if (!inside && path_is_beneath(real, own))
            return LINKS_NOWHERE;
        memcpy(ret_path, inside ? inside : real, strlen(inside ? inside : real) + 1);
        return !inside ? LINKS_OUTSIDE : *inside ? LINKS_INSIDE : LINKS_NOWHERE;
    }
    memcpy(ret_path, walk.done, sizeof walk.done);
    return walk.links == 0 ? LINKS_NONE : *walk.done ? LINKS_INSIDE : LINKS_NOWHERE;
}
