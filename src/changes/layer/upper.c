/* SPDX-License-Identifier: MIT */
#include "changes/layer/upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/base.h"
#include "changes/layer/layer.h"
#include "changes/layer/names_list.h"

#define FUSE_OPAQUE UPPER_FUSE_PREFIX ".wh..opq"

/* One directory of the stack. */
struct part {
    int dir;
    mode_t mode; /* to be restored, with S_IFDIR; 0: it was not changed */
    struct names_list names;
    size_t next;
};

/* The lower directory comes last, so that it is found like one more upper directory. */
#define LOWER LAYER_STACK_MAX
#define PARTS (LAYER_STACK_MAX + 1)

struct level {
    struct part parts[PARTS];
    bool replaced; /* names in the lower directory that the upper ones do not have are entries */
    size_t path_length;
};

struct walk {
    const struct layer *layer;
    bool lower; /* look at the user's files */
    upper_visit visit;
    void *context;
    char path[PATH_LENGTH_MAX + 1];
    struct level *levels[LAYER_DEPTH_MAX];
    size_t depth;
};

static void close_part(struct part *part)
{
    if (part->dir < 0)
        return;
    if (part->mode)
        (void)fchmod(part->dir, part->mode & 07777);
    (void)close(part->dir);
    names_list_done(&part->names);
}

static void leave(struct walk *walk)
{
    struct level *level = walk->levels[--walk->depth];
    for (size_t i = 0; i < PARTS; i++)
        close_part(&level->parts[i]);
    free(level);
}

/* ---- entering ---- */

static struct level *new_level(size_t path_length)
{
    struct level *level = calloc(1, sizeof *level);
    for (size_t i = 0; level && i < PARTS; i++)
        level->parts[i].dir = -1;
    if (level)
        level->path_length = path_length;
    return level;
}

/* Opens a directory that the jail may have made inaccessible to its owner. */
static int open_upper(int above, const char *name, mode_t *ret_mode)
{
    struct stat info;
    autoclose int fd = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return -1;
    const struct path_proc path = path_proc(fd);
    if ((info.st_mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR) &&
        faccessat(AT_FDCWD, path.text, R_OK | X_OK, AT_EACCESS) < 0 &&
        chmod(path.text, (info.st_mode & 07777) | S_IRUSR | S_IXUSR) == 0)
        *ret_mode = info.st_mode;
    return open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* In the order of enum upper_opaque. */
static const char *const OPAQUE_XATTRS[] = {"user.overlay.opaque", "trusted.overlay.opaque",
                                            "user.fuseoverlayfs.opaque"};

/* Gives the owner the rights to a directory's attributes, which its mode may refuse: to read them, or to write them, too.
 * A kill before the mode is restored would leave it, so no more is asked for than is needed. Returns the mode to restore,
 * with its type, or 0. */
static mode_t open_attributes(int directory, const char *path, bool writes)
{
    struct stat info;
    mode_t rights = S_IRUSR | (writes ? S_IWUSR : 0);
    return fstat(directory, &info) == 0 && (info.st_mode & rights) != rights &&
                   faccessat(AT_FDCWD, path, writes ? R_OK | W_OK : R_OK, AT_EACCESS) < 0 &&
                   chmod(path, (info.st_mode & 07777) | rights) == 0
               ? info.st_mode
               : 0;
}

unsigned upper_opaque_marks(const struct layer *layer, int directory)
{
    bool fuse = layer && layer->fuse;
    const struct path_proc path = path_proc(directory);
    char value[2];
    unsigned marks = 0;
    mode_t mode = open_attributes(directory, path.text, false);
    for (size_t i = 0; i < (fuse ? ARRAY_LENGTH(OPAQUE_XATTRS) : 1); i++)
        if (getxattr(path.text, OPAQUE_XATTRS[i], value, sizeof value) == 1 && value[0] == 'y')
            marks |= 1U << i;
    if (fuse && files_exists(directory, FUSE_OPAQUE))
        marks |= UPPER_OPAQUE_FILE;
    if (mode)
        (void)chmod(path.text, mode & 07777);
    return marks;
}

static int set_attributes(const char *path, unsigned marks, bool set)
{
    for (size_t i = 0; i < ARRAY_LENGTH(OPAQUE_XATTRS); i++) {
        if (!(marks & 1U << i))
            continue;
        if (set ? setxattr(path, OPAQUE_XATTRS[i], "y", 1, 0) < 0
                : removexattr(path, OPAQUE_XATTRS[i]) < 0 && errno != ENODATA)
            return -errno;
    }
    return 0;
}

int upper_set_opaque(int directory, unsigned marks, bool set)
{
    const struct path_proc path = path_proc(directory);
    mode_t mode = open_attributes(directory, path.text, true);
    int result = set_attributes(path.text, marks, set);
    if (mode)
        (void)chmod(path.text, mode & 07777);
    if (result < 0)
        return result;
    if (!(marks & UPPER_OPAQUE_FILE))
        return 0;
    if (!set)
        return unlinkat(directory, FUSE_OPAQUE, 0) < 0 && errno != ENOENT ? -errno : 0;
    autoclose int file =
        openat(directory, FUSE_OPAQUE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file < 0 ? -errno : 0;
}

static int read_names(const struct walk *walk, struct part *part, bool upper,
                      struct brig_error *err)
{
    int status = names_list_read(part->dir, &part->names, err);
    if (status == 0 && upper && walk->layer->fuse)
        names_list_strip(&part->names, UPPER_FUSE_PREFIX);
    return status;
}

/* Opens the directory `name` in the upper directories of a level, from the one that has the entry
 * down to one that hides the others. Returns whether the lower one is hidden, or a code. */
static int open_uppers(const struct walk *walk, const struct level *above, struct level *level,
                       const char *name, size_t first, struct brig_error *err)
{
    for (size_t i = first; i < walk->layer->upper_count; i++) {
        struct part *part = &level->parts[i];
        struct stat info;
        if (above->parts[i].dir < 0)
            continue;
        if (fstatat(above->parts[i].dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(info.st_mode))
            return true; /* a file or a whiteout ends the stack */
        part->dir = open_upper(above->parts[i].dir, name, &part->mode);
        if (part->dir < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s' in the jail's changes",
                             str_shown(walk->path).text);
        int status = read_names(walk, part, true, err);
        if (status < 0)
            return status;
        if (upper_opaque_marks(walk->layer, part->dir) != 0)
            return true;
    }
    return false;
}

static int open_lower(const struct walk *walk, const struct level *above, struct level *level,
                      const char *name, struct brig_error *err)
{
    struct part *part = &level->parts[LOWER];
    int dir = above->parts[LOWER].dir;
    if (!walk->lower || dir < 0)
        return 0;
    part->dir = files_open_dir(dir, name);
    if (part->dir < 0)
        return 0; /* missing, not a directory, or not readable for the jail either */
    struct brig_error error = {0};
    int status = level->replaced ? read_names(walk, part, false, &error) : 0;
    if (status < 0 && error.sys_errno == EACCES) { /* it can be read, but not searched */
        close_fd(&part->dir);
        return 0;
    }
    if (status < 0 && err)
        *err = error;
    return status;
}

/* Enters a directory. `first` is the upper directory that has the entry, or LOWER. */
static int enter(struct walk *walk, const struct level *above, const char *name, size_t first,
                 bool hides, struct brig_error *err)
{
    struct level *level = new_level(strlen(walk->path));
    if (!level)
        return brig_fail_nomem(err);
    walk->levels[walk->depth++] = level;
    int replaced = hides ? true : open_uppers(walk, above, level, name, first, err);
    if (replaced < 0)
        return replaced;
    level->replaced = replaced || above->replaced;
    return open_lower(walk, above, level, name, err);
}

static int enter_top(struct walk *walk, struct brig_error *err)
{
    const struct layer *layer = walk->layer;
    struct level *level = new_level(0);
    if (!level)
        return brig_fail_nomem(err);
    walk->levels[walk->depth++] = level;
    for (size_t i = 0; i < layer->upper_count; i++) {
        level->parts[i].dir = open_upper(layer->uppers[i], ".", &level->parts[i].mode);
        if (level->parts[i].dir < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the jail's changes");
        int status = read_names(walk, &level->parts[i], true, err);
        if (status < 0)
            return status;
    }
    if (walk->lower && layer->lower >= 0)
        level->parts[LOWER].dir = files_open_dir(layer->lower, ".");
    return 0;
}

/* ---- entries ---- */

/* Finds the next name in a level and the first part that has it, and moves all parts past it. */
static const char *next_name(struct level *level, size_t *ret_first)
{
    const char *least = NULL;
    for (size_t i = 0; i < PARTS; i++) {
        const struct part *part = &level->parts[i];
        if (part->next < part->names.count &&
            (!least || strcmp(part->names.items[part->next], least) < 0)) {
            least = part->names.items[part->next];
            *ret_first = i;
        }
    }
    for (size_t i = 0; least && i < PARTS; i++) {
        struct part *part = &level->parts[i];
        while (part->next < part->names.count && strcmp(part->names.items[part->next], least) == 0)
            part->next++;
    }
    return least;
}

static bool is_whiteout(const struct stat *info)
{
    return S_ISCHR(info->st_mode) && info->st_rdev == 0;
}

/* A deletion changes the upper directory that contains the name. A whiteout tells nothing about its time: all are
 * hard links to one file. */
static int64_t deletion_time(const struct level *level)
{
    struct stat info;
    for (size_t i = 0; i < LOWER; i++)
        if (level->parts[i].dir >= 0)
            return fstat(level->parts[i].dir, &info) == 0 ? ident_of(&info).ctime_ns : 0;
    return 0;
}

/* Fills in an entry; false if it has gone meanwhile. */
static bool look(const struct walk *walk, const struct level *level, size_t first,
                 struct upper_entry *entry)
{
    int lower = level->parts[LOWER].dir;
    entry->upper_dir = first == LOWER ? -1 : level->parts[first].dir;
    entry->lower_dir = lower;
    entry->unseen = first == LOWER;
    entry->replaced = level->replaced;
    if (lower >= 0 && fstatat(lower, entry->name, &entry->lower, AT_SYMLINK_NOFOLLOW) < 0)
        entry->lower.st_mode = 0;
    if (first == LOWER)
        return entry->lower.st_mode != 0;
    if (fstatat(entry->upper_dir, entry->name, &entry->upper, AT_SYMLINK_NOFOLLOW) == 0) {
        entry->whiteout = is_whiteout(&entry->upper);
        return true;
    }
    entry->upper.st_mode = 0;
    entry->whiteout = walk->layer->fuse && errno == ENOENT;
    return entry->whiteout;
}

static int visit_next(struct walk *walk, struct level *level, struct brig_error *err)
{
    size_t first = 0, at = level->path_length;
    struct upper_entry entry = {.name = next_name(level, &first)};
    if (!entry.name) {
        leave(walk);
        return 0;
    }
    if (walk->layer->fuse && strcmp(entry.name, ".wh..opq") == 0) /* FUSE_OPAQUE without prefix */
        return 0;
    int length =
        snprintf(walk->path + at, sizeof walk->path - at, "%s%s", at ? "/" : "", entry.name);
    bool fits = length > 0 && (size_t)length < sizeof walk->path - at;
    if (!fits)
        (void)snprintf(walk->path + at, sizeof walk->path - at, "%s", "");
    entry.path = walk->path;
    if (!look(walk, level, first, &entry))
        return 0;
    if (entry.whiteout || entry.unseen)
        entry.deleted_ns = deletion_time(level);
    bool gone = entry.whiteout || entry.unseen || !S_ISDIR(entry.upper.st_mode);
    bool directory = S_ISDIR(gone ? entry.lower.st_mode : entry.upper.st_mode);
    if (!fits)
        entry.unreadable = "its path is too long";
    else if (directory && walk->depth == LAYER_DEPTH_MAX)
        entry.unreadable = "it is in too many directories";
    int status = walk->visit(walk->context, &entry, err);
    if (status < 0 || status == UPPER_STOP)
        return status;
    if (!directory || entry.unreadable || status == UPPER_SKIP || (gone && status != UPPER_ENTER))
        return 0;
    return enter(walk, level, entry.name, first, gone, err);
}

int upper_walk(const struct layer *layer, bool lower, upper_visit visit, void *context,
               struct brig_error *err)
{
    autofree struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return brig_fail_nomem(err);
    *walk = (struct walk){.layer = layer, .lower = lower, .visit = visit, .context = context};
    int status = enter_top(walk, err);
    while (status == 0 && walk->depth > 0)
        status = visit_next(walk, walk->levels[walk->depth - 1], err);
    while (walk->depth > 0)
        leave(walk);
    return status;
}

bool upper_hides_lower(const struct layer *layer, const char *path)
{
    for (size_t i = 0; i < layer->upper_count; i++) {
        autoclose int fd = path_open_plain(layer->uppers[i], path, O_PATH | O_NOFOLLOW);
        struct stat info;
        if (fd < 0 || fstat(fd, &info) < 0)
            continue;
        if (!S_ISDIR(info.st_mode) || upper_opaque_marks(layer, fd) != 0)
            return true;
    }
    return false;
}
