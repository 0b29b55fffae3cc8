/* SPDX-License-Identifier: MIT */
#include "changes/show/renames.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/layer/walk.h"

#define BLOCK_BYTES 65536
#define TRIES_MAX 16 /* deleted files of the same size that one added file is compared with */

void renames_done(struct renames *renames)
{
    for (size_t i = 0; i < renames->count; i++)
        free(renames->files[i].path);
    for (size_t i = 0; i < renames->directory_count; i++)
        free(renames->directories[i]);
    free(renames->files);
    free(renames->directories);
    *renames = (struct renames){0};
}

static bool has_room(struct renames *renames, const char *path)
{
    renames->path_bytes += strlen(path);
    return renames->path_bytes <= RENAMES_PATH_BYTES_MAX;
}

static int add_directory(struct renames *renames, const char *path, struct brig_error *err)
{
    if (renames->directory_count == RENAMES_DIRECTORIES_MAX || !has_room(renames, path))
        return 0;
    if (!array_grow(&renames->directories, renames->directory_count))
        return brig_fail_nomem(err);
    int status = str_copy(path, &renames->directories[renames->directory_count], err);
    renames->directory_count += status == 0;
    return status;
}

static int add_file(struct renames *renames, const char *path, const struct stat *info,
                    struct brig_error *err)
{
    if (!S_ISREG(info->st_mode) || info->st_size == 0 || renames->count == RENAMES_MAX ||
        !has_room(renames, path))
        return 0;
    if (!array_grow(&renames->files, renames->count))
        return brig_fail_nomem(err);
    struct rename *file = &renames->files[renames->count];
    *file = (struct rename){.size = (uint64_t)info->st_size, .mtime_ns = ident_of(info).mtime_ns};
    int status = str_copy(path, &file->path, err);
    renames->count += status == 0;
    return status;
}

int renames_add(struct renames *renames, const struct change *change, struct brig_error *err)
{
    if (change->kind == CHANGE_ADDED && S_ISREG(change->after.st_mode))
        renames->added = true;
    if (change->kind != CHANGE_DELETED)
        return 0;
    return S_ISDIR(change->before.st_mode) ? add_directory(renames, change->path, err)
                                           : add_file(renames, change->path, &change->before, err);
}

static int add_deleted_file(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    struct renames *renames = context;
    if (renames->count == RENAMES_MAX || renames->path_bytes > RENAMES_PATH_BYTES_MAX)
        return TREE_STOP;
    return add_file(renames, entry->path, &entry->info, err);
}

static int compare_sizes(const void *left, const void *right)
{
    const struct rename *a = left, *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return strcmp(a->path, b->path);
}

int renames_prepare(struct renames *renames, const struct layer *layer, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; renames->added && i < renames->directory_count && status == 0; i++) {
        int dir = -1; /* nothing in it is hidden, or it would not be a deleted directory */
        if (path_open_beneath(layer->lower, renames->directories[i], O_RDONLY | O_DIRECTORY, 0,
                              &dir, NULL) == 0)
            status = tree_walk(dir, renames->directories[i], add_deleted_file, renames, err);
        own_close(&dir);
    }
    if (renames->count > 0)
        qsort(renames->files, renames->count, sizeof *renames->files, compare_sizes);
    return status < 0 ? status : 0;
}

/* ---- comparing ---- */

static int open_file(int dir, const char *path, struct stat *ret_info)
{
    int fd = -1;
    if (path_open_beneath(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, &fd, NULL) <
        0)
        return -1;
    if (fstat(fd, ret_info) == 0 && S_ISREG(ret_info->st_mode))
        return fd;
    (void)close(fd);
    return -1;
}

/* Opens an added file, in the upper directory in which the walk has found it. */
static int open_added(const struct layer *layer, const struct inventory_item *item,
                      struct stat *ret_info)
{
    for (size_t i = 0; i < layer->upper_count; i++) {
        int fd = open_file(layer->uppers[i], item->path, ret_info);
        if (fd >= 0 && ret_info->st_ino == item->inode)
            return fd;
        own_close(&fd);
    }
    return -1;
}

static bool is_same(struct renames *renames, int left, int right)
{
    char one[BLOCK_BYTES], other[BLOCK_BYTES];
    for (off_t at = 0; renames->compared <= RENAMES_BYTES_MAX;) {
        ssize_t got = pread(left, one, sizeof one, at);
        if (got < 0 || pread(right, other, sizeof other, at) != got)
            return false;
        if (got == 0)
            return true;
        if (memcmp(one, other, (size_t)got) != 0)
            return false;
        at += got;
        renames->compared += (uint64_t)got;
    }
    return false;
}

/* The index of the first deleted file of this size. */
static size_t find_size(const struct renames *renames, uint64_t size)
{
    size_t low = 0, high = renames->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (renames->files[middle].size < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The beginning of a file, filled up with zeros. */
static bool read_head(int fd, char head[static RENAMES_HEAD_BYTES])
{
    memset(head, 0, RENAMES_HEAD_BYTES);
    return pread(fd, head, RENAMES_HEAD_BYTES, 0) >= 0;
}

/* Whether a deleted file has the contents of an added one. */
static bool has_contents(struct renames *renames, const struct layer *layer, struct rename *file,
                         int added, const char head[static RENAMES_HEAD_BYTES])
{
    struct stat info;
    if (file->known && memcmp(file->head, head, RENAMES_HEAD_BYTES) != 0)
        return false;
    autoclose int fd = open_file(layer->lower, file->path, &info);
    if (fd < 0 || !read_head(fd, file->head))
        return false;
    file->known = true;
    return memcmp(file->head, head, RENAMES_HEAD_BYTES) == 0 && is_same(renames, fd, added);
}

/* Compares an open file with deleted files of its size: those with its time, which programs that move
 * a file keep, or the others. */
static struct rename *find_same(struct renames *renames, const struct layer *layer, int added,
                                const struct stat *info, bool same_time)
{
    uint64_t size = (uint64_t)info->st_size;
    char head[RENAMES_HEAD_BYTES];
    size_t tries = 0;
    if (!read_head(added, head))
        return NULL;
    for (size_t i = find_size(renames, size); i < renames->count && tries < TRIES_MAX; i++) {
        struct rename *file = &renames->files[i];
        if (file->size != size)
            break;
        if (file->used || (file->mtime_ns == ident_of(info).mtime_ns) != same_time)
            continue;
        tries++;
        if (has_contents(renames, layer, file, added, head))
            return file;
    }
    return NULL;
}

const char *renames_find(struct renames *renames, const struct layer *layer,
                         const struct inventory_item *item)
{
    struct stat info;
    if (!S_ISREG(item->mode_after) || item->size_after == 0 || layer->lower < 0)
        return NULL;
    size_t first = find_size(renames, item->size_after);
    if (first == renames->count || renames->files[first].size != item->size_after)
        return NULL;
    autoclose int fd = open_added(layer, item, &info);
    if (fd < 0)
        return NULL;
    struct rename *found = find_same(renames, layer, fd, &info, true);
    if (!found)
        found = find_same(renames, layer, fd, &info, false);
    if (!found)
        return NULL;
    found->used = true;
    return found->path;
}
