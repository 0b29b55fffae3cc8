/* SPDX-License-Identifier: MIT */
#include "changes/layer/fork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/layer.h"
#include "changes/layer/upper.h"
#include "changes/layer/walk.h"
#include "changes/operation/copy.h"
#include "changes/operation/step.h"
#include "home/storage.h"

#define PART_MAX 160
#define FLAT ".flat"
#define PART_NEW ".new"

static int fail_writing(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the storage directory");
}

/* ---- copying a tree ---- */

/* A directory that gets its metadata when it has been filled. */
struct filled {
    char *path;
    struct stat info;
};

struct copying {
    const struct layer *layer; /* NULL: not an upper directory */
    int to;
    struct filled *filled;
    size_t count;
};

/* Opens the directory of the copy that gets the file. */
static int open_parent(const struct copying *copying, const char *path)
{
    char above[PATH_LENGTH_MAX + 1];
    const char *slash = strrchr(path, '/');
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    return step_open_directory(copying->to, above);
}

static int copy_one(struct copying *copying, int dir, const char *name, const char *path,
                    const struct stat *info, struct brig_error *err)
{
    autoclose int to = open_parent(copying, path);
    if (to < 0)
        return fail_writing(err);
    const struct copy_source source = {.dir = dir,
                                       .name = name,
                                       .info = info,
                                       .xattrs_dir = -1,
                                       .flags = COPY_RISKY | COPY_WRITABLE};
    int status = copy_object(&source, to, name, NULL, err);
    if (status < 0 || !S_ISDIR(info->st_mode))
        return status;
    char *copy = array_grow(&copying->filled, copying->count) ? strdup(path) : NULL;
    if (!copy)
        return brig_fail_nomem(err);
    copying->filled[copying->count++] = (struct filled){.path = copy, .info = *info};
    return 0;
}

/* Sets the modes and times of directories, the innermost first. */
static void finish_directories(struct copying *copying)
{
    while (copying->count > 0) {
        struct filled *filled = &copying->filled[--copying->count];
        autoclose int fd = step_open_directory(copying->to, filled->path);
        const struct path_proc path = path_proc(fd);
        const struct timespec times[] = {filled->info.st_atim, filled->info.st_mtim};
        if (fd >= 0) {
            (void)utimensat(AT_FDCWD, path.text, times, 0);
            (void)chmod(path.text, filled->info.st_mode & 07777);
        }
        free(filled->path);
    }
    free(copying->filled);
    copying->filled = NULL;
}

static int copy_file(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    if (S_ISSOCK(entry->info.st_mode))
        return 0;
    /* A directory that cannot be read would not be entered. */
    bool directory = S_ISDIR(entry->info.st_mode);
    autoclose int fd =
        directory ? openat(entry->dir, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                  : -1;
    int failed = errno;
    if (directory && (fd < 0 || faccessat(fd, ".", X_OK, AT_EACCESS) < 0))
        return brig_fail(err, BRIG_E_SYSTEM, fd < 0 ? failed : errno,
                         "'%s' of the jail cannot be copied. Make it readable, or remove it",
                         str_shown(entry->path).text);
    return copy_one(context, entry->dir, entry->name, entry->path, &entry->info, err);
}

/* Copies everything in a directory into another, which is empty. */
static int copy_tree(int from, int to, struct brig_error *err)
{
    struct copying copying = {.to = to};
    int status = tree_walk(from, "", copy_file, &copying, err);
    finish_directories(&copying);
    return status;
}

/* ---- copying an upper directory ---- */

static int mark_opaque(const struct copying *copying, const char *path, struct brig_error *err)
{
    autoclose int dir = step_open_directory(copying->to, path);
    unsigned mark = copying->layer->fuse ? UPPER_OPAQUE_FUSE : UPPER_OPAQUE_USER;
    int result = dir < 0 ? -errno : upper_set_opaque(dir, mark, true);
    if (result == 0)
        return 0;
    errno = -result;
    return fail_writing(err);
}

static int make_whiteout(const struct copying *copying, const struct upper_entry *entry,
                         struct brig_error *err)
{
    char name[NAME_MAX + 8];
    autoclose int to = open_parent(copying, entry->path);
    bool as_file = copying->layer->fuse && !entry->upper.st_mode;
    (void)snprintf(name, sizeof name, "%s%s", as_file ? UPPER_FUSE_PREFIX : "", entry->name);
    mode_t mode = as_file ? S_IFREG | S_IRUSR : S_IFCHR;
    return to >= 0 && mknodat(to, name, mode, makedev(0, 0)) == 0 ? 0 : fail_writing(err);
}

static int copy_entry(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    struct copying *copying = context;
    if (entry->unreadable)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' cannot be copied: %s",
                         str_shown(entry->path).text, entry->unreadable);
    if (entry->whiteout)
        return make_whiteout(copying, entry, err);
    if (S_ISSOCK(entry->upper.st_mode))
        return 0;
    int status = copy_one(copying, entry->upper_dir, entry->name, entry->path, &entry->upper, err);
    if (status == 0 && S_ISDIR(entry->upper.st_mode) &&
        upper_hides_lower(copying->layer, entry->path))
        status = mark_opaque(copying, entry->path, err);
    return status;
}

/* Copies all upper directories of a layer into one, which is empty. */
static int copy_upper(const struct layer *layer, int to, struct brig_error *err)
{
    struct copying copying = {.layer = layer, .to = to};
    int status = upper_walk(layer, false, copy_entry, &copying, err);
    finish_directories(&copying);
    return status;
}

/* ---- directories of the storage ---- */

/* The directory that contains the upper directory of a layer: the storage directory, or NAME.review. */
static int open_place(int storage, const char *jail, const struct layer *layer, bool make,
                      struct brig_error *err)
{
    char part[PART_MAX];
    bool home = layer_is_home(layer->name);
    (void)snprintf(part, sizeof part, home ? "." : "%s" LAYER_REVIEW_PART, jail);
    if (make && !home && mkdirat(storage, part, 0700) < 0 && errno != EEXIST)
        return fail_writing(err);
    int fd = openat(storage, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", part) : fd;
}

/* The name of a layer's files in its place. */
static const char *stem(const struct layer *layer, const char *jail)
{
    return layer_is_home(layer->name) ? jail : layer->name;
}

/* Makes an empty upper directory with the owner and mode of another. */
static int make_upper(int place, const char *name, int like, struct brig_error *err)
{
    struct stat info;
    if (mkdirat(place, name, 0700) < 0)
        return fail_writing(err);
    autoclose int fd = files_open_dir(place, name);
    if (fd < 0 || fstat(like, &info) < 0 ||
        (info.st_uid != geteuid() && fchown(fd, info.st_uid, info.st_gid) < 0) ||
        fchmod(fd, info.st_mode & 07777) < 0)
        return fail_writing(err);
    return take_fd(&fd);
}

/* ---- flattening ---- */

int fork_flatten(struct layer *layer, struct brig_error *err)
{
    char changes[PART_MAX], flat[PART_MAX], below[PART_MAX];
    if (layer->upper_count < 2)
        return 0;
    autoclose int storage = openat(layer->record, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int place = open_place(storage, layer->jail, layer, false, err);
    if (place < 0)
        return place;
    const char *name = stem(layer, layer->jail);
    (void)snprintf(changes, sizeof changes, "%s.changes", name);
    (void)snprintf(flat, sizeof flat, "%s.changes" FLAT, name);
    (void)snprintf(below, sizeof below, "%s." STORAGE_BELOW, name);
    int status = tree_remove(place, flat, err); /* of a command that was killed */
    autoclose int to = status < 0 ? status : make_upper(place, flat, layer->uppers[0], err);
    status = to < 0 ? to : copy_upper(layer, to, err);
    if (status == 0 && renameat2(place, flat, place, changes, RENAME_EXCHANGE) < 0)
        status = fail_writing(err);
    if (status < 0)
        return status;
    /* A kill here does no harm: the copy has everything that lies below, and hides it. */
    if (unlinkat(place, below, 0) < 0)
        return fail_writing(err);
    for (size_t i = 0; i < layer->upper_count; i++)
        (void)close(layer->uppers[i]);
    layer->uppers[0] = take_fd(&to);
    layer->upper_count = 1;
    return tree_remove(place, flat, err);
}

/* ---- freezing ---- */

/* Makes .frozen/NUMBER, an empty directory, and returns its number. */
static int make_frozen(int storage, int like, unsigned long *ret_number, struct brig_error *err)
{
    char name[PART_MAX];
    if (mkdirat(storage, STORAGE_FROZEN, 0700) < 0 && errno != EEXIST)
        return fail_writing(err);
    for (unsigned long number = 1;; number++) {
        struct stat info;
        (void)snprintf(name, sizeof name, STORAGE_FROZEN "/%lu", number);
        if (fstatat(storage, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        int fd = make_upper(storage, name, like, err);
        if (fd < 0)
            return fd;
        (void)close(fd);
        *ret_number = number;
        return 0;
    }
}

static int write_file(int place, const char *name, const char *text, struct brig_error *err)
{
    autoclose int fd =
        openat(place, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_writing(err);
    int failed = write_all(fd, text, strlen(text));
    if (failed == 0 && fsync(fd) < 0)
        failed = -errno;
    errno = -failed;
    return failed < 0 ? fail_writing(err) : 0;
}

/* Freezes the upper directory of a reviewed directory, if there is anything in it. The list of what lies below is
 * left in `ret_below`. */
static int freeze(int storage, int place, const struct layer *layer, struct str *ret_below,
                  struct brig_error *err)
{
    char changes[PART_MAX], below[PART_MAX], fresh[PART_MAX], frozen[PART_MAX];
    unsigned long number;
    (void)snprintf(changes, sizeof changes, "%s.changes", layer->name);
    (void)snprintf(below, sizeof below, "%s." STORAGE_BELOW, layer->name);
    (void)snprintf(fresh, sizeof fresh, "%s." STORAGE_BELOW PART_NEW, layer->name);
    if (tree_is_empty(layer->uppers[0], ".")) {
        (void)files_read(place, below, ret_below);
        return 0;
    }
    int status = make_frozen(storage, layer->uppers[0], &number, err);
    if (status < 0)
        return status;
    (void)snprintf(frozen, sizeof frozen, STORAGE_FROZEN "/%lu", number);
    str_appendf(ret_below, "../%s\n", frozen);
    (void)files_read(place, below, ret_below);
    status =
        ret_below->failed ? brig_fail_nomem(err) : write_file(place, fresh, ret_below->data, err);
    /* storage_open_below() completes this after a kill between the two. */
    if (status == 0 && (renameat2(place, changes, storage, frozen, RENAME_EXCHANGE) < 0 ||
                        renameat(place, fresh, place, below) < 0))
        status = fail_writing(err);
    return status;
}

/* ---- the new jail ---- */

/* Copies what is recorded about a layer: what its changes are based on, and what was hidden from its runs. */
static int copy_record(const struct layer *layer, int record, struct brig_error *err)
{
    static const char *const parts[] = {".base", ".bases", ".hidden"};
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status >= 0; i++) {
        char name[PART_MAX];
        (void)snprintf(name, sizeof name, "%s%s", layer->name, parts[i]);
        status = copying_file(layer->record, name, record, name, err);
        if (status == 0)
            status = copying_tree(layer->record, name, record, name, NULL, err);
    }
    return status < 0 ? status : 0;
}

static int fork_layer(int storage, const struct layer *layer, const char *to, bool frozen,
                      struct brig_error *err)
{
    char changes[PART_MAX], name[PART_MAX];
    autostr struct str below = {0};
    autoclose int from_place = open_place(storage, layer->jail, layer, false, err);
    autoclose int place = from_place < 0 ? from_place : open_place(storage, to, layer, true, err);
    if (place < 0)
        return place;
    (void)snprintf(changes, sizeof changes, "%s.changes", stem(layer, to));
    autoclose int upper = make_upper(place, changes, layer->uppers[0], err);
    if (upper < 0)
        return upper;
    if (!layer_is_home(layer->name)) {
        (void)snprintf(name, sizeof name, "%s.root", layer->name);
        int status = copying_file(from_place, name, place, name, err);
        if (status < 0)
            return status;
    }
    if (!frozen)
        return copy_upper(layer, upper, err);
    int status = freeze(storage, from_place, layer, &below, err);
    if (status < 0 || below.length == 0)
        return status;
    (void)snprintf(name, sizeof name, "%s." STORAGE_BELOW, layer->name);
    return write_file(place, name, below.data, err);
}

/* Copies NAME.PART of a jail, a file or a directory, if it exists. */
static int copy_part(int storage, const char *from, const char *to, const char *part,
                     struct brig_error *err)
{
    char old[PART_MAX], new[PART_MAX];
    struct stat info;
    (void)snprintf(old, sizeof old, "%s%s", from, part);
    (void)snprintf(new, sizeof new, "%s%s", to, part);
    if (fstatat(storage, old, &info, 0) < 0)
        return 0;
    if (!S_ISDIR(info.st_mode)) {
        const struct copy_source source = {
            .dir = storage, .name = old, .info = &info, .xattrs_dir = -1};
        return copy_object(&source, storage, new, NULL, err);
    }
    autoclose int dir = openat(storage, old, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int copy = dir < 0 ? fail_writing(err) : make_upper(storage, new, dir, err);
    return copy < 0 ? copy : copy_tree(dir, copy, err);
}

static int fork_parts(int storage, const char *from, const char *to, struct brig_error *err)
{
    static const char *const parts[] = {".home", ".git", ".jail"};
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == 0; i++)
        status = copy_part(storage, from, to, parts[i], err);
    return status;
}

int fork_jail(const char *storage, const struct layers *layers, const char *from, const char *to,
              struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !path_resolve(storage, real))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", storage);
    autoclose int record = record_open(storage, to, err);
    int status = record < 0 ? record : 0;
    for (size_t i = 0; i < layers->count && status == 0; i++) {
        const struct layer *layer = &layers->items[i];
        bool frozen = !layer_is_home(layer->name) && !path_is_beneath(layer->root, real) &&
                      layer->upper_count <= STORAGE_BELOW_MAX;
        status = fork_layer(dir, layer, to, frozen, err);
        if (status == 0)
            status = copy_record(layer, record, err);
    }
    return status < 0 ? status : fork_parts(dir, from, to, err);
}

/* ---- collecting ---- */

/* Appends the directories that the NAME.below files in a directory name. */
static void find_used(int place, struct str *used)
{
    autodir DIR *dir = files_list(place, ".");
    for (const struct dirent *item; dir && (item = readdir(dir));)
        if (str_ends_with(item->d_name, "." STORAGE_BELOW) ||
            str_ends_with(item->d_name, "." STORAGE_BELOW PART_NEW))
            (void)files_read(place, item->d_name, used);
}

static void find_all_used(int storage, struct str *used)
{
    autodir DIR *dir = files_list(storage, ".");
    find_used(storage, used);
    for (const struct dirent *item; dir && (item = readdir(dir));) {
        autoclose int review = str_ends_with(item->d_name, LAYER_REVIEW_PART)
                                   ? files_open_dir(storage, item->d_name)
                                   : -1;
        if (review >= 0)
            find_used(review, used);
    }
}

int fork_collect(const char *storage, bool dry, struct brig_error *err)
{
    autostr struct str used = {0};
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *frozen = dir < 0 ? NULL : files_list(dir, STORAGE_FROZEN);
    if (!frozen)
        return 0;
    find_all_used(dir, &used);
    int count = 0, status = used.failed ? brig_fail_nomem(err) : 0;
    for (const struct dirent *item; status == 0 && (item = readdir(frozen));) {
        char line[PART_MAX];
        (void)snprintf(line, sizeof line, STORAGE_FROZEN "/%s\n", item->d_name);
        if (item->d_name[0] == '.' || (used.data && strstr(used.data, line)))
            continue;
        count++;
        status = dry ? 0 : tree_remove(dirfd(frozen), item->d_name, err);
    }
    return status < 0 ? status : count;
}
