/* SPDX-License-Identifier: MIT */
/* Walks a tree in order. */
#include "changes/layer/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/layer/names_list.h"

/* One directory of the path to the current entry. */
struct level {
    int fd;
    struct names_list names;
    size_t next;
    size_t path_length; /* of the directory's own path */
};

struct walk {
    struct level *levels;
    size_t level_count;
    struct str path;
    const char *name; /* of the current entry, in the level above */
    const char *only;
    bool is_directory; /* the current entry */
    bool tolerant;     /* leaves out what cannot be examined, and paths that are too long */
};

static void level_done(struct level *level)
{
    own_close(&level->fd);
    names_list_done(&level->names);
}

/* Takes over the descriptor of a directory. */
static int push(struct walk *walk, int fd, struct brig_error *err)
{
    struct level level = {.fd = fd, .path_length = walk->path.length};
    int status = names_list_read(fd, &level.names, err);
    if (status == 0 && !array_grow(&walk->levels, walk->level_count))
        status = brig_fail_nomem(err);
    if (status == 0)
        walk->levels[walk->level_count++] = level;
    else
        level_done(&level);
    return status;
}

int walk_open(int root, const char *only, struct walk **ret_walk, struct brig_error *err)
{
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return brig_fail_nomem(err);
    walk->only = only;
    int fd = files_open_dir(root, ".");
    int status = fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the directory")
                        : push(walk, fd, err);
    if (status < 0) {
        walk_close(walk);
        return status;
    }
    *ret_walk = walk;
    return 0;
}

void walk_close(struct walk *walk)
{
    if (!walk)
        return;
    while (walk->level_count > 0)
        level_done(&walk->levels[--walk->level_count]);
    free(walk->levels);
    str_done(&walk->path);
    free(walk);
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry, struct brig_error *err)
{
    while (walk->level_count > 0) {
        struct level *level = &walk->levels[walk->level_count - 1];
        if (level->next == level->names.count) {
            level_done(level);
            walk->level_count--;
            continue;
        }
        struct stat info;
        walk->name = level->names.items[level->next++];
        if (walk->only && walk->level_count == 1 && strcmp(walk->name, walk->only) != 0)
            continue;
        if (fstatat(level->fd, walk->name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT || walk->tolerant)
                continue;
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'",
                             str_shown(walk->name).text);
        }
        walk->path.length = level->path_length;
        str_concat(&walk->path, level->path_length > 0 ? "/" : "", walk->name);
        if (walk->path.failed)
            return brig_fail_nomem(err);
        if (walk->tolerant && walk->path.length > PATH_LENGTH_MAX)
            continue;
        walk->is_directory = S_ISDIR(info.st_mode);
        *ret_entry = (struct walk_entry){
            .dir = level->fd, .name = walk->name, .path = walk->path.data, .info = info};
        return 1;
    }
    return 0;
}

int walk_enter(struct walk *walk, struct brig_error *err)
{
    if (!walk->is_directory)
        return ENOTDIR;
    if (walk->level_count >= WALK_DEPTH_MAX)
        return ELOOP;
    int fd = files_open_dir(walk->levels[walk->level_count - 1].fd, walk->name);
    struct brig_error error = {0};
    int status = fd < 0 ? errno : push(walk, fd, &error);
    if (status < 0 && error.sys_errno == EACCES) /* it can be read, but not searched */
        return EACCES;
    if (status < 0 && err)
        *err = error;
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool walk_has(const struct walk *walk, const char *name)
{
    const struct names_list *names = &walk->levels[walk->level_count - 1].names;
    return names->count > 0 &&
           bsearch(&name, names->items, names->count, sizeof *names->items, compare_names);
}

int walk_directory(const struct walk *walk)
{
    return walk->levels[walk->level_count - 1].fd;
}

size_t walk_level(const struct walk *walk)
{
    return walk->level_count > 0 ? walk->level_count - 1 : 0;
}

static int visit_all(struct walk *walk, dev_t device, tree_visit visit, void *context,
                     struct brig_error *err)
{
    struct walk_entry entry;
    int status;
    while ((status = walk_next(walk, &entry, err)) > 0) {
        status = visit(context, &entry, err);
        if (status != 0 && status != TREE_SKIP)
            return status;
        bool enters = status == 0 && S_ISDIR(entry.info.st_mode) && entry.info.st_dev == device &&
                      walk->level_count < LAYER_DEPTH_MAX;
        if (enters && (status = walk_enter(walk, err)) < 0)
            return status;
    }
    return status;
}

int tree_walk(int directory, const char *above, tree_visit visit, void *context,
              struct brig_error *err)
{
    struct stat top;
    struct walk *walk = NULL;
    if (fstat(directory, &top) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the directory");
    int status = walk_open(directory, NULL, &walk, err);
    if (status < 0)
        return status;
    walk->tolerant = true;
    str_append(&walk->path, above);
    walk->levels[0].path_length = walk->path.length;
    status = visit_all(walk, top.st_dev, visit, context, err);
    walk_close(walk);
    return status;
}
