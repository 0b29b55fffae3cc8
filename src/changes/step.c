/* SPDX-License-Identifier: MIT */
/* Taking one step of an operation. */
#include "changes/step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "changes/copy.h"
#include "changes/layer.h"

#define NANOSECONDS 1000000000
#define FD_PATH_MAX 64
#define OPAQUE_FILE ".wh..wh..opq"
#define FUSE_MARK ".wh."

static const char CHANGED[] = "it has changed meanwhile";

void step_object_name(char name[static STEP_NAME_MAX], uint32_t number, const char *end)
{
    (void)snprintf(name, STEP_NAME_MAX, "%u%s", number, end);
}

int step_objects(const struct step_context *context, const struct step_tree *tree)
{
    return tree->remote >= 0 ? tree->remote : context->objects;
}

void step_invert(struct step *step)
{
    struct ident before = step->before;
    uint32_t mode = step->mode_before;
    step->flags ^= STEP_REVERSED;
    step->before = step->other;
    step->other = before;
    step->mode_before = step->mode_after;
    step->mode_after = mode;
}

/* ---- directories ---- */

int step_open_directory(int top, const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, top, *path ? path : ".", &how, sizeof how);
}

static int open_again(int fd, int flags)
{
    char path[FD_PATH_MAX];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

static void leave_directory(struct step_directory *at, bool sync)
{
    if (at->fd >= 0 && at->changed && sync) {
        autoclose int fd = open_again(at->fd, O_RDONLY | O_DIRECTORY);
        if (fd >= 0)
            (void)fsync(fd);
    }
    close_fd(&at->fd);
    at->changed = false;
    at->path[0] = '\0';
}

static const char *const OPAQUE_XATTRS[] = {"user.overlay.opaque", "trusted.overlay.opaque",
                                            "user.fuseoverlayfs.opaque"};
#define OPAQUE_BY_FILE (1U << ARRAY_LENGTH(OPAQUE_XATTRS))

unsigned step_opaque_marks(int directory)
{
    char path[FD_PATH_MAX];
    char value[2];
    unsigned marks = 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", directory);
    for (size_t i = 0; i < ARRAY_LENGTH(OPAQUE_XATTRS); i++)
        if (getxattr(path, OPAQUE_XATTRS[i], value, sizeof value) == 1 && value[0] == 'y')
            marks |= 1U << i;
    if (faccessat(directory, OPAQUE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        marks |= OPAQUE_BY_FILE;
    return marks;
}

/* ---- directories that the jail has made inaccessible ---- */

#define OPENED "opened" /* records: struct opened_head, then the path */

struct opened_head {
    uint32_t tree, mode, length;
};

static bool remember(struct step_context *context, size_t tree, mode_t mode, const char *path)
{
    char *copy = array_grow(&context->opened, context->opened_count) ? strdup(path) : NULL;
    if (copy)
        context->opened[context->opened_count++] = (struct step_opened){tree, mode, copy};
    return copy != NULL;
}

/* Remembers the mode, in the file first. */
static bool record(struct step_context *context, size_t tree, mode_t mode, const char *path)
{
    struct opened_head head = {(uint32_t)tree, mode, (uint32_t)strlen(path)};
    autoclose int fd = openat(context->objects, OPENED,
                              O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && write_all(fd, &head, sizeof head) == 0 &&
           write_all(fd, path, head.length) == 0 && fsync(fd) == 0 &&
           remember(context, tree, mode, path);
}

int step_begin(struct step_context *context, struct brig_error *err)
{
    struct opened_head head;
    char path[PATH_LENGTH_MAX + 1];
    autoclose int fd = openat(context->objects, OPENED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    while (fd >= 0 && read(fd, &head, sizeof head) == (ssize_t)sizeof head) {
        if (head.length > PATH_LENGTH_MAX || head.tree >= context->tree_count ||
            read(fd, path, head.length) != (ssize_t)head.length)
            break; /* written in part before a kill: the mode was not changed yet */
        path[head.length] = '\0';
        if (!remember(context, head.tree, head.mode & 07777, path))
            return brig_fail_nomem(err);
    }
    return 0;
}

/* The mode of an upper directory before it was made accessible: the first record is the true one. */
static const struct step_opened *find_opened(const struct step_context *context, size_t tree,
                                             const char *path)
{
    for (size_t i = 0; i < context->opened_count; i++)
        if (context->opened[i].tree == tree && strcmp(context->opened[i].path, path) == 0)
            return &context->opened[i];
    return NULL;
}

/* Gives the owner all rights. */
static bool open_up(struct step_context *context, size_t tree, const char *path)
{
    struct stat info;
    char link[FD_PATH_MAX];
    autoclose int fd = step_open_directory(context->trees[tree].upper, path);
    if (fd < 0 || fstat(fd, &info) < 0 || (info.st_mode & S_IRWXU) == S_IRWXU)
        return fd >= 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return (find_opened(context, tree, path) ||
            record(context, tree, info.st_mode & 07777, path)) &&
           chmod(link, (info.st_mode & 07777) | S_IRWXU) == 0;
}

/* Opens up a directory and all directories above it. */
static bool open_all_up(struct step_context *context, size_t tree, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    bool open = open_up(context, tree, "");
    for (const char *end = path; *end && open;) {
        end = strchrnul(end + 1, '/');
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        open = open_up(context, tree, part);
    }
    return open;
}

/* The same for a directory in the operation, which goes back to this path. */
static void open_object(struct step_context *context, size_t tree, const char *path,
                        const char *object)
{
    struct stat info;
    if (fstatat(context->objects, object, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode) &&
        (find_opened(context, tree, path) || record(context, tree, info.st_mode & 07777, path)))
        (void)!fchmodat(context->objects, object, (info.st_mode & 07777) | S_IRWXU, 0);
}

/* Restores the modes, the innermost first. */
static void close_up(struct step_context *context)
{
    if (context->opened_count == 0)
        return;
    while (context->opened_count > 0) {
        struct step_opened *opened = &context->opened[--context->opened_count];
        autoclose int fd =
            step_open_directory(context->trees[opened->tree].upper, opened->path);
        char link[FD_PATH_MAX];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (fd >= 0)
            (void)chmod(link, opened->mode);
        free(opened->path);
    }
    free(take_ptr(&context->opened));
    (void)unlinkat(context->objects, OPENED, 0);
}

/* An entry was moved into the operation: restores its mode there. */
static void close_moved(struct step_context *context, size_t tree, const char *path,
                        const char *object)
{
    const struct step_opened *opened = find_opened(context, tree, path);
    if (opened)
        (void)!fchmodat(context->objects, object, opened->mode, 0);
}

/* Whether a directory of the upper directory, or one above it, is opaque. */
static bool is_below_opaque(int upper, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        autoclose int fd = step_open_directory(upper, part);
        if (fd < 0 || step_opaque_marks(fd) != 0)
            return fd >= 0;
    }
    return false;
}

/* Opens the directory that contains a path. Returns NULL with *ret_reason. The last component of the path is
 * *ret_name. */
static struct step_directory *enter(struct step_context *context, struct step_tree *tree, bool upper,
                                    const char *path, const char **ret_name,
                                    const char **ret_reason)
{
    struct step_directory *at = upper ? &tree->upper_at : &tree->lower_at;
    int top = upper ? tree->upper : tree->lower;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    *ret_name = slash ? slash + 1 : path;
    if (at->fd >= 0 && strlen(at->path) == length && memcmp(at->path, path, length) == 0)
        return at;
    leave_directory(at, context->sync);
    memcpy(at->path, path, length);
    at->path[length] = '\0';
    at->fd = step_open_directory(top, at->path);
    if (at->fd < 0 && errno == EACCES && upper &&
        open_all_up(context, (size_t)(tree - context->trees), at->path))
        at->fd = step_open_directory(top, at->path);
    if (at->fd < 0) {
        *ret_reason = errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                          ? "its directory does not exist"
                      : errno == EXDEV ? "another filesystem is mounted there"
                                       : strerrordesc_np(errno);
        at->path[0] = '\0';
        return NULL;
    }
    at->opaque = upper && is_below_opaque(top, at->path);
    return at;
}

/* A directory at this path was moved: descriptors of it and of directories in it are of no use any more. */
static void forget_directory(struct step_directory *at, const char *path)
{
    size_t length = strlen(path);
    if (at->fd >= 0 && strncmp(at->path, path, length) == 0 &&
        (at->path[length] == '\0' || at->path[length] == '/'))
        leave_directory(at, false);
}

void step_done(struct step_context *context)
{
    close_up(context);
    for (size_t i = 0; i < context->tree_count; i++) {
        leave_directory(&context->trees[i].lower_at, context->sync);
        leave_directory(&context->trees[i].upper_at, context->sync);
    }
}

/* Whether a directory has no entries; false if that cannot be determined. */
static bool is_empty(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (list && (item = readdir(list)))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            return false;
    return list != NULL;
}

/* ---- states ---- */

/* Times of change are not compared: renaming one of two hard links changes them for both. */
static bool is_same(const struct ident *wanted, const struct stat *now)
{
    struct ident found = ident_of(now);
    if (wanted->mode == 0 || now->st_mode == 0)
        return wanted->mode == 0 && now->st_mode == 0;
    if (S_ISDIR(wanted->mode))
        return S_ISDIR(now->st_mode) && wanted->inode == now->st_ino;
    return wanted->inode == found.inode && wanted->mode == found.mode &&
           wanted->size == found.size && wanted->mtime_ns == found.mtime_ns;
}

/* st_mode is 0 if there is nothing. */
static int look(int dir, const char *name, struct stat *ret_info)
{
    if (fstatat(dir, name, ret_info, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    memset(ret_info, 0, sizeof *ret_info);
    return errno == ENOENT ? 0 : -errno;
}

struct swap {
    int objects;
    char from[STEP_NAME_MAX], to[STEP_NAME_MAX];
    struct stat at_from, at_to;
};

/* After RENAME_EXCHANGE, before the old object got its name: gives it the name. Whichever way the exchange went, the
 * number of the inode tells. */
static int swap_name(struct swap *swap, const struct step *step)
{
    bool taken = step->before.mode && swap->at_from.st_mode && !swap->at_to.st_mode &&
                 swap->at_from.st_ino == step->before.inode;
    bool reverted = step->other.mode && swap->at_to.st_mode && !swap->at_from.st_mode &&
                    swap->at_to.st_ino == step->other.inode;
    if (!taken && !reverted)
        return 0;
    const char *from = taken ? swap->from : swap->to, *to = taken ? swap->to : swap->from;
    struct stat moved = taken ? swap->at_from : swap->at_to;
    if (renameat(swap->objects, from, swap->objects, to) < 0)
        return -errno;
    swap->at_from = taken ? (struct stat){0} : moved;
    swap->at_to = taken ? moved : (struct stat){0};
    return 0;
}

static int swap_begin(const struct step_context *context, const struct step *step,
                      struct swap *ret_swap)
{
    bool reversed = step->flags & STEP_REVERSED;
    ret_swap->objects = step_objects(context, &context->trees[step->tree]);
    step_object_name(ret_swap->from, step->number, reversed ? STEP_OLD : "");
    step_object_name(ret_swap->to, step->number, reversed ? "" : STEP_OLD);
    int result = look(ret_swap->objects, ret_swap->from, &ret_swap->at_from);
    if (result == 0)
        result = look(ret_swap->objects, ret_swap->to, &ret_swap->at_to);
    return result < 0 ? result : swap_name(ret_swap, step);
}

static bool swap_is_taken(const struct swap *swap, const struct step *step)
{
    return step->other.mode ? swap->at_from.st_mode == 0 : swap->at_to.st_mode != 0;
}

static bool is_mode_set(struct step_context *context, const struct step *step)
{
    struct step_tree *tree = &context->trees[step->tree];
    const char *name, *reason;
    struct stat info;
    struct step_directory *at = enter(context, tree, false, step->path, &name, &reason);
    return at && look(at->fd, name, &info) == 0 && (info.st_mode & 07777) == step->mode_after;
}

bool step_is_taken(struct step_context *context, const struct step *step)
{
    struct swap swap;
    switch ((enum step_lower)step->lower) {
    case STEP_LOWER_NONE:
    case STEP_META:
        return true;
    case STEP_SWAP:
        return swap_begin(context, step, &swap) == 0 && swap_is_taken(&swap, step);
    case STEP_MODE:
        return is_mode_set(context, step);
    }
    return false;
}

bool step_has_entry(const struct step_context *context, const struct step *step)
{
    char name[STEP_NAME_MAX];
    step_object_name(name, step->number, STEP_ENTRY);
    return faccessat(context->objects, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool step_state(struct step_context *context, const struct step *step, const struct ident *wanted,
                struct stat *ret_now)
{
    struct step_tree *tree = &context->trees[step->tree];
    const char *name, *reason;
    memset(ret_now, 0, sizeof *ret_now);
    struct step_directory *at = enter(context, tree, false, step->path, &name, &reason);
    return (at ? look(at->fd, name, ret_now) == 0 : true) && is_same(wanted, ret_now);
}

/* ---- exchanging ---- */

/* Errors that concern this file only; after the others, such as a full disk, the operation stops. */
static bool is_of_file(int failed)
{
    return failed == EACCES || failed == EPERM || failed == EBUSY || failed == ETXTBSY ||
           failed == EXDEV || failed == EEXIST || failed == ENOENT || failed == ENOTDIR ||
           failed == ENOTEMPTY || failed == ENAMETOOLONG;
}

static int fail(const struct step *step, int failed, const char **ret_reason,
                struct brig_error *err)
{
    *ret_reason = failed == EEXIST || failed == ENOENT || failed == ENOTEMPTY
                      ? CHANGED
                      : strerrordesc_np(failed);
    if (is_of_file(failed))
        return 1;
    return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot replace '%s'", str_shown(step->path).text);
}

static int rename_exclusive(int from, const char *old, int to, const char *name)
{
    struct stat info;
    if (renameat2(from, old, to, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) /* the filesystem does not support the flag */
        return -errno;
    if (fstatat(to, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from, old, to, name) == 0 ? 0 : -errno;
}

/* Moves the user's file away. If it turns out to be another one than expected, it goes back. */
static int move_away(const struct swap *swap, int dir, const char *name, const struct step *step)
{
    struct stat info;
    int result = rename_exclusive(dir, name, swap->objects, swap->to);
    if (result < 0)
        return result;
    result = look(swap->objects, swap->to, &info);
    if (result == 0 && is_same(&step->before, &info) &&
        (!S_ISDIR(info.st_mode) || is_empty(swap->objects, swap->to)))
        return 0;
    (void)rename_exclusive(swap->objects, swap->to, dir, name);
    return result < 0 ? result : -EEXIST;
}

/* Exchanges the two files, and likewise exchanges them back if it was another one. */
static int exchange(const struct swap *swap, int dir, const char *name, const struct step *step)
{
    struct stat info;
    if (renameat2(swap->objects, swap->from, dir, name, RENAME_EXCHANGE) < 0) {
        if (errno != EINVAL && errno != ENOSYS)
            return -errno;
        int result = move_away(swap, dir, name, step); /* the filesystem cannot exchange */
        return result < 0 ? result : rename_exclusive(swap->objects, swap->from, dir, name);
    }
    int result = look(swap->objects, swap->from, &info);
    if (result == 0 && is_same(&step->before, &info) &&
        (!S_ISDIR(info.st_mode) || is_empty(swap->objects, swap->from)))
        return rename_exclusive(swap->objects, swap->from, swap->objects, swap->to);
    (void)renameat2(swap->objects, swap->from, dir, name, RENAME_EXCHANGE);
    return result < 0 ? result : -EEXIST;
}

static int take_swap(struct step_context *context, const struct step *step, const char **ret_reason,
                     struct brig_error *err)
{
    struct step_tree *tree = &context->trees[step->tree];
    struct swap swap;
    struct stat now;
    const char *name;
    int result = swap_begin(context, step, &swap);
    if (result < 0 || swap_is_taken(&swap, step))
        return result < 0 ? fail(step, -result, ret_reason, err) : 0;
    struct step_directory *at = enter(context, tree, false, step->path, &name, ret_reason);
    if (!at)
        return 1;
    result = look(at->fd, name, &now);
    at->changed = true;
    if (result < 0)
        return fail(step, -result, ret_reason, err);
    if (now.st_mode == 0 && step->other.mode && swap.at_to.st_mode) /* the second half */
        result = rename_exclusive(swap.objects, swap.from, at->fd, name);
    else if (!is_same(&step->before, &now))
        result = -EEXIST;
    else if (S_ISDIR(now.st_mode) && !is_empty(at->fd, name)) {
        *ret_reason = "it is not empty";
        return 1;
    } else if (step->other.mode == 0)
        result = move_away(&swap, at->fd, name, step);
    else if (now.st_mode == 0)
        result = rename_exclusive(swap.objects, swap.from, at->fd, name);
    else
        result = exchange(&swap, at->fd, name, step);
    if (S_ISDIR(step->before.mode) || S_ISDIR(step->other.mode))
        forget_directory(&tree->lower_at, step->path);
    return result < 0 ? fail(step, -result, ret_reason, err) : 0;
}

/* ---- metadata ---- */

/* Sets the mode of a file, which must have the expected one. With STEP_TIMES also the time of a directory. */
static int set_mode(int dir, const char *name, const struct step *step)
{
    struct stat info;
    char path[FD_PATH_MAX];
    autoclose int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    mode_t mode = info.st_mode & 07777;
    if (S_ISLNK(info.st_mode) || (mode != step->mode_before && mode != step->mode_after))
        return -EEXIST;
    if (mode != step->mode_after && chmod(path, step->mode_after) < 0)
        return -errno;
    if (!(step->flags & STEP_TIMES) || (step->flags & STEP_REVERSED))
        return 0;
    const struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = step->mtime_ns / NANOSECONDS, .tv_nsec = step->mtime_ns % NANOSECONDS}};
    return utimensat(AT_FDCWD, path, times, 0) < 0 ? -errno : 0;
}

static int set_meta(const struct step_context *context, const struct step *step, int dir,
                    const char *name)
{
    struct stat info;
    struct brig_error error = {0};
    char from[STEP_NAME_MAX];
    step_object_name(from, step->number, step->flags & STEP_REVERSED ? STEP_OLD : "");
    autoclose int model =
        openat(context->objects, from, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (model < 0 || fd < 0 || fstat(model, &info) < 0)
        return -errno;
    return copy_metadata(model, &info, fd, COPY_RISKY, &error) < 0 ? -error.sys_errno : 0;
}

int step_take_lower(struct step_context *context, const struct step *step, const char **ret_reason,
                    struct brig_error *err)
{
    const char *name;
    if (step->lower == STEP_LOWER_NONE)
        return 0;
    if (step->lower == STEP_SWAP)
        return take_swap(context, step, ret_reason, err);
    struct step_tree *tree = &context->trees[step->tree];
    struct step_directory *at = enter(context, tree, false, step->path, &name, ret_reason);
    if (!at)
        return 1;
    if (!*name) /* the root itself */
        name = ".";
    int result = step->lower == STEP_MODE ? set_mode(at->fd, name, step)
                                          : set_meta(context, step, at->fd, name);
    return result < 0 ? fail(step, -result, ret_reason, err) : 0;
}

/* ---- the upper directory ---- */

static void entry_name(const struct step *step, const char *name, char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "%s%s", step->flags & STEP_FUSE_MARK ? FUSE_MARK : "", name);
}

static int move_entry(struct step_context *context, const struct step *step, int dir,
                      const char *name)
{
    char object[STEP_NAME_MAX];
    step_object_name(object, step->number, STEP_ENTRY);
    bool is_here = step_has_entry(context, step);
    if (is_here != (bool)(step->flags & STEP_REVERSED)) {
        if (is_here)
            close_moved(context, step->tree, step->path, object);
        return 0;
    }
    for (bool opened = false;; opened = true) {
        int result = is_here ? rename_exclusive(context->objects, object, dir, name)
                             : rename_exclusive(dir, name, context->objects, object);
        if (result == 0 && !is_here)
            close_moved(context, step->tree, step->path, object);
        if (result != -EACCES || opened)
            return result;
        /* The directory, or the entry, which is a directory too, is not writable. */
        const char *slash = strrchr(step->path, '/');
        char above[PATH_LENGTH_MAX + 1];
        (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - step->path) : 0,
                       step->path);
        (void)open_all_up(context, step->tree, above);
        if (is_here)
            open_object(context, step->tree, step->path, object);
        else
            (void)open_up(context, step->tree, step->path);
    }
}

static int take_drop(struct step_context *context, const struct step *step,
                     const struct step_directory *at, const char *name)
{
    char entry[PATH_COMPONENT_MAX + sizeof FUSE_MARK];
    if (!step_is_taken(context, step) || (at->opaque && !(step->flags & STEP_REVERSED) &&
                                          step->lower != STEP_LOWER_NONE))
        return 0;
    entry_name(step, name, entry, sizeof entry);
    int result = move_entry(context, step, at->fd, entry);
    return result == -ENOENT ? 0 : result;
}

static bool is_same_owner(const struct layer *layer, const struct stat *upper,
                          const struct stat *lower)
{
    uid_t uid = layer && upper->st_uid == layer->jail_uid ? layer->owner : upper->st_uid;
    gid_t gid = layer && upper->st_gid == layer->jail_gid ? layer->owner_gid : upper->st_gid;
    return uid == lower->st_uid && gid == lower->st_gid;
}

/* Whether an upper directory differs in nothing from the user's. */
static bool is_redundant(const struct step_context *context, const struct step_tree *tree,
                         const char *path, int upper)
{
    struct stat above, below;
    const struct step_opened *opened =
        find_opened(context, (size_t)(tree - context->trees), path);
    autoclose int lower = tree->lower < 0 ? -1 : step_open_directory(tree->lower, path);
    return lower >= 0 && step_opaque_marks(upper) == 0 && fstat(upper, &above) == 0 &&
           fstat(lower, &below) == 0 &&
           (opened ? opened->mode : above.st_mode & 07777) == (below.st_mode & 07777) &&
           is_same_owner(tree->layer, &above, &below) && copy_same_xattrs(upper, lower);
}

static int take_prune(struct step_context *context, const struct step *step,
                      const struct step_directory *at, const char *name)
{
    struct step_tree *tree = &context->trees[step->tree];
    if (!(step->flags & STEP_REVERSED) && !step_has_entry(context, step)) {
        autoclose int fd = openat(at->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !is_empty(at->fd, name) ||
            !((step->flags & STEP_FORCE) || is_redundant(context, tree, step->path, fd)))
            return 0;
    }
    int result = move_entry(context, step, at->fd, name);
    forget_directory(&tree->upper_at, step->path);
    return result == -ENOENT ? 0 : result;
}

/* The marks are kept in mode_before; inverted they are in mode_after. */
static int take_opaque(const struct step *step, int dir, const char *name)
{
    char path[FD_PATH_MAX];
    bool set = step->flags & STEP_REVERSED;
    unsigned marks = set ? step->mode_after : step->mode_before;
    autoclose int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (size_t i = 0; i < ARRAY_LENGTH(OPAQUE_XATTRS); i++) {
        if (!(marks & 1U << i))
            continue;
        if (set ? setxattr(path, OPAQUE_XATTRS[i], "y", 1, 0) < 0
                : removexattr(path, OPAQUE_XATTRS[i]) < 0 && errno != ENODATA)
            return -errno;
    }
    if (!(marks & OPAQUE_BY_FILE))
        return 0;
    if (!set)
        return unlinkat(fd, OPAQUE_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
    autoclose int file = openat(fd, OPAQUE_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file < 0 ? -errno : 0;
}

static int take_upper(struct step_context *context, const struct step *step,
                      struct step_directory *at, const char *name)
{
    int result = 0;
    switch ((enum step_upper)step->upper) {
    case STEP_UPPER_NONE:
        break;
    case STEP_DROP:
        return take_drop(context, step, at, name);
    case STEP_UPPER_META:
        result = set_meta(context, step, at->fd, name);
        break;
    case STEP_PRUNE:
        return take_prune(context, step, at, name);
    case STEP_OPAQUE:
        result = take_opaque(step, at->fd, name);
        at->opaque = is_below_opaque(context->trees[step->tree].upper, at->path);
        break;
    }
    return result == -ENOENT || result == -EEXIST ? 0 : result;
}

int step_take_upper(struct step_context *context, const struct step *step, const char **ret_reason,
                    struct brig_error *err)
{
    struct step_tree *tree = &context->trees[step->tree];
    const char *name;
    *ret_reason = NULL;
    if (step->upper == STEP_UPPER_NONE || tree->upper < 0)
        return 0;
    struct step_directory *at = enter(context, tree, true, step->path, &name, ret_reason);
    if (!at) {
        *ret_reason = NULL;
        return 1;
    }
    at->changed = true;
    int result = take_upper(context, step, at, *name ? name : ".");
    return result < 0 ? fail(step, -result, ret_reason, err) : 0;
}
