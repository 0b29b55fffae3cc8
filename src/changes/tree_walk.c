/* SPDX-License-Identifier: MIT */
#include "changes/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "changes/layer.h"
#include "changes/names_list.h"

struct level {
    int dir;
    struct names_list names;
    size_t next, path_length;
};

struct walk {
    tree_visit visit;
    void *context;
    dev_t device;
    char path[PATH_LENGTH_MAX + 1];
    struct level levels[LAYER_DEPTH_MAX];
    size_t depth;
};

static void leave(struct walk *walk)
{
    struct level *level = &walk->levels[--walk->depth];
    names_list_done(&level->names);
    (void)close(level->dir);
}

/* Takes over the fd. */
static int enter(struct walk *walk, int dir, struct brig_error *err)
{
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.dir = dir, .path_length = strlen(walk->path)};
    return names_list_read(dir, &level->names, err);
}

static int visit_next(struct walk *walk, struct level *level, struct brig_error *err)
{
    const char *name = level->names.items[level->next++];
    size_t at = level->path_length;
    struct tree_entry entry = {.path = walk->path, .name = name, .dir = level->dir};
    int length = snprintf(walk->path + at, sizeof walk->path - at, "%s%s", at ? "/" : "", name);
    if (length < 0 || (size_t)length >= sizeof walk->path - at ||
        fstatat(level->dir, name, &entry.info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int status = walk->visit(walk->context, &entry, err);
    if (status != 0)
        return status == TREE_SKIP ? 0 : status;
    if (!S_ISDIR(entry.info.st_mode) || entry.info.st_dev != walk->device ||
        walk->depth == LAYER_DEPTH_MAX)
        return 0;
    int dir = openat(level->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? 0 : enter(walk, dir, err);
}

int tree_walk(int directory, const char *above, tree_visit visit, void *context,
              struct brig_error *err)
{
    struct stat info;
    autofree struct walk *walk = calloc(1, sizeof *walk);
    autoclose int top = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!walk)
        return brig_fail_nomem(err);
    if (top < 0 || fstat(top, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open a directory");
    walk->visit = visit;
    walk->context = context;
    walk->device = info.st_dev;
    (void)snprintf(walk->path, sizeof walk->path, "%s", above);
    int status = enter(walk, take_fd(&top), err);
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (status != 0 || level->next == level->names.count)
            leave(walk);
        else
            status = visit_next(walk, level, err);
    }
    return status;
}
