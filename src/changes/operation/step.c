/* SPDX-License-Identifier: MIT */
/* Taking one step of an operation. */
#include "changes/operation/step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/compare.h"
#include "changes/layer/layer.h"
#include "changes/layer/upper.h"
#include "changes/operation/copy.h"
#include "changes/operation/step_directory.h"

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
    struct step_directory *at = step_enter(context, tree, false, step->path, &name, &reason);
    return at && look(at->fd, *name ? name : ".", &info) == 0 &&
           (info.st_mode & 07777) == step->mode_after;
}

bool step_is_taken(struct step_context *context, const struct step *step)
{
    struct swap swap;
    switch ((enum step_lower)step->lower) {
    case STEP_LOWER_NONE:
    case STEP_META:
    case STEP_TIME:
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
    struct step_directory *at = step_enter(context, tree, false, step->path, &name, &reason);
    return (at ? look(at->fd, *name ? name : ".", ret_now) == 0 : true) && is_same(wanted, ret_now);
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

/* Moves the user's file away. If it turns out to be another one than expected, it goes back. */
static int move_away(const struct swap *swap, int dir, const char *name, const struct step *step)
{
    struct stat info;
    int result = path_rename_new(dir, name, swap->objects, swap->to);
    if (result < 0)
        return result;
    result = look(swap->objects, swap->to, &info);
    if (result == 0 && is_same(&step->before, &info) &&
        (!S_ISDIR(info.st_mode) || tree_is_empty(swap->objects, swap->to)))
        return 0;
    (void)path_rename_new(swap->objects, swap->to, dir, name);
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
        return result < 0 ? result : path_rename_new(swap->objects, swap->from, dir, name);
    }
    int result = look(swap->objects, swap->from, &info);
    if (result == 0 && is_same(&step->before, &info) &&
        (!S_ISDIR(info.st_mode) || tree_is_empty(swap->objects, swap->from)))
        return path_rename_new(swap->objects, swap->from, swap->objects, swap->to);
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
    struct step_directory *at = step_enter(context, tree, false, step->path, &name, ret_reason);
    if (!at)
        return 1;
    result = look(at->fd, name, &now);
    at->changed = true;
    if (result < 0)
        return fail(step, -result, ret_reason, err);
    if (now.st_mode == 0 && step->other.mode && swap.at_to.st_mode) /* the second half */
        result = path_rename_new(swap.objects, swap.from, at->fd, name);
    else if (!is_same(&step->before, &now))
        result = -EEXIST;
    else if (S_ISDIR(now.st_mode) && !tree_is_empty(at->fd, name)) {
        *ret_reason = "it is not empty";
        return 1;
    } else if (step->other.mode == 0)
        result = move_away(&swap, at->fd, name, step);
    else if (now.st_mode == 0)
        result = path_rename_new(swap.objects, swap.from, at->fd, name);
    else
        result = exchange(&swap, at->fd, name, step);
    if (S_ISDIR(step->before.mode) || S_ISDIR(step->other.mode))
        step_forget_directory(&tree->lower_at, step->path);
    return result < 0 ? fail(step, -result, ret_reason, err) : 0;
}

/* ---- metadata ---- */

/* Sets the mode of a file, which must have the expected one. */
static int set_mode(int dir, const char *name, const struct step *step)
{
    struct stat info;
    autoclose int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    const struct path_proc path = path_proc(fd);
    mode_t mode = info.st_mode & 07777;
    if (S_ISLNK(info.st_mode) || (mode != step->mode_before && mode != step->mode_after))
        return -EEXIST;
    return mode != step->mode_after && chmod(path.text, step->mode_after) < 0 ? -errno : 0;
}

void step_set_time(struct step_context *context, const struct step *step)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, ident_time(step->other.mtime_ns)};
    if (step->lower != STEP_TIME || !step->other.mode)
        return;
    autoclose int fd = step_open_directory(context->trees[step->tree].lower, step->path);
    if (fd >= 0)
        (void)utimensat(AT_FDCWD, path_proc(fd).text, times, 0);
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
    if (step->lower == STEP_LOWER_NONE || step->lower == STEP_TIME)
        return 0;
    if (step->lower == STEP_SWAP)
        return take_swap(context, step, ret_reason, err);
    struct step_tree *tree = &context->trees[step->tree];
    struct step_directory *at = step_enter(context, tree, false, step->path, &name, ret_reason);
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
    (void)snprintf(ret_name, size, "%s%s", step->flags & STEP_FUSE_MARK ? UPPER_FUSE_PREFIX : "",
                   name);
}

static int move_entry(struct step_context *context, const struct step *step, int dir,
                      const char *name)
{
    char object[STEP_NAME_MAX];
    step_object_name(object, step->number, STEP_ENTRY);
    bool is_here = step_has_entry(context, step);
    if (is_here != (bool)(step->flags & STEP_REVERSED)) {
        if (is_here)
            step_close_moved(context, step->tree, step->path, object);
        return 0;
    }
    for (bool opened = false;; opened = true) {
        int result = is_here ? path_rename_new(context->objects, object, dir, name)
                             : path_rename_new(dir, name, context->objects, object);
        if (result == 0 && !is_here)
            step_close_moved(context, step->tree, step->path, object);
        if (result != -EACCES || opened)
            return result;
        /* The directory, or the entry, which is a directory too, is not writable. */
        const char *slash = strrchr(step->path, '/');
        char above[PATH_LENGTH_MAX + 1];
        (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - step->path) : 0,
                       step->path);
        (void)step_open_all_up(context, step->tree, above);
        if (is_here)
            step_open_object(context, step->tree, step->path, object);
        else
            (void)step_open_up(context, step->tree, step->path);
    }
}

/* Whether a run has written the entry anew since the operation was interrupted: that is another change. */
static bool is_newer(const struct step_context *context, const struct step *step, int dir,
                     const char *entry)
{
    struct stat now;
    return !(step->flags & (STEP_REVERSED | STEP_FUSE_MARK)) && !step_has_entry(context, step) &&
           look(dir, entry, &now) == 0 && now.st_mode && !is_same(&step->entry, &now);
}

static int take_drop(struct step_context *context, const struct step *step,
                     const struct step_directory *at, const char *name)
{
    char entry[PATH_COMPONENT_MAX + sizeof UPPER_FUSE_PREFIX];
    if ((step->flags & (STEP_APPLIED | STEP_REVERSED)) == STEP_APPLIED ||
        !step_is_taken(context, step) ||
        (at->opaque && !(step->flags & STEP_REVERSED) && step->lower != STEP_LOWER_NONE))
        return 0;
    entry_name(step, name, entry, sizeof entry);
    if (is_newer(context, step, at->fd, entry))
        return 0;
    int result = move_entry(context, step, at->fd, entry);
    /* The user's file is back; what the jail has made of its own one since stays. */
    bool newer = result == -EEXIST && (step->flags & STEP_REVERSED) && step->lower;
    return result == -ENOENT || newer ? 0 : result;
}

static bool is_same_owner(const struct layer *layer, const struct stat *upper,
                          const struct stat *lower)
{
    uid_t uid = layer && upper->st_uid == layer->jail_uid ? layer->owner : upper->st_uid;
    gid_t gid = layer && upper->st_gid == layer->jail_gid ? layer->owner_gid : upper->st_gid;
    return uid == lower->st_uid && gid == lower->st_gid;
}

/* Whether an upper directory differs in nothing from the user's, as far as that can be looked at: the operation may have
 * taken all rights from a directory above it. */
static bool is_redundant(const struct step_context *context, const struct step_tree *tree,
                         const char *path, int upper)
{
    struct stat above, below;
    const struct step_opened *opened =
        step_find_opened(context, (size_t)(tree - context->trees), path);
    autoclose int lower = tree->lower < 0 ? -1 : step_open_directory(tree->lower, path);
    if (tree->lower >= 0 && lower < 0 && errno == EACCES)
        return upper_opaque_marks(tree->layer, upper) == 0;
    return lower >= 0 && upper_opaque_marks(tree->layer, upper) == 0 && fstat(upper, &above) == 0 &&
           fstat(lower, &below) == 0 &&
           (opened ? opened->mode : above.st_mode & 07777) == (below.st_mode & 07777) &&
           is_same_owner(tree->layer, &above, &below) && compare_xattrs(upper, lower, ".") == 0;
}

static int take_prune(struct step_context *context, const struct step *step,
                      const struct step_directory *at, const char *name)
{
    struct step_tree *tree = &context->trees[step->tree];
    if (!(step->flags & STEP_REVERSED) && !step_has_entry(context, step)) {
        autoclose int fd = openat(at->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !tree_is_empty(at->fd, name) ||
            !((step->flags & STEP_FORCE) || is_redundant(context, tree, step->path, fd)))
            return 0;
    }
    int result = move_entry(context, step, at->fd, name);
    step_forget_directory(&tree->upper_at, step->path);
    bool made_anew = result == -EEXIST && (step->flags & STEP_REVERSED);
    return result == -ENOENT || made_anew ? 0 : result;
}

/* The marks are kept in mode_before; inverted they are in mode_after. */
static int take_opaque(const struct step *step, int dir, const char *name)
{
    bool set = step->flags & STEP_REVERSED;
    autoclose int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return upper_set_opaque(fd, set ? step->mode_after : step->mode_before, set);
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
        at->opaque = step_is_below_opaque(&context->trees[step->tree], at->path);
        break;
    }
    return result == -ENOENT || result == -EEXIST ? 0 : result;
}

/* Makes one directory of the upper directory as the user's is, for an entry that comes back to it. */
static bool make_upper_directory(const struct step_tree *tree, const char *path)
{
    struct stat info;
    char above[PATH_LENGTH_MAX + 1];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    autoclose int dir = step_open_directory(tree->upper, above);
    autoclose int lower = step_open_directory(tree->lower, path);
    if (dir < 0 || lower < 0 || fstat(lower, &info) < 0 || mkdirat(dir, name, 0700) < 0)
        return false;
    if (tree->layer && info.st_uid == tree->layer->owner)
        info.st_uid = tree->layer->jail_uid;
    if (tree->layer && info.st_gid == tree->layer->owner_gid)
        info.st_gid = tree->layer->jail_gid;
    autoclose int made = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made >= 0 && copy_metadata(lower, &info, made, 0, NULL) == 0;
}

/* Another operation has removed directories above the path from the upper directory, when nothing was in them. */
static bool make_upper_directories(const struct step_tree *tree, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        autoclose int fd = step_open_directory(tree->upper, part);
        if (fd < 0 && (errno != ENOENT || !make_upper_directory(tree, part)))
            return false;
    }
    return true;
}

int step_take_upper(struct step_context *context, const struct step *step, const char **ret_reason,
                    struct brig_error *err)
{
    struct step_tree *tree = &context->trees[step->tree];
    const char *name;
    *ret_reason = NULL;
    if (step->upper == STEP_UPPER_NONE || tree->upper < 0)
        return 0;
    bool comes_back =
        step->upper == STEP_DROP && (step->flags & STEP_REVERSED) && step_has_entry(context, step);
    struct step_directory *at = step_enter(context, tree, true, step->path, &name, ret_reason);
    if (!at && comes_back && make_upper_directories(tree, step->path))
        at = step_enter(context, tree, true, step->path, &name, ret_reason);
    if (!at) {
        *ret_reason = comes_back ? "its directory in the jail is gone" : NULL;
        return 1;
    }
    at->changed = true;
    int result = take_upper(context, step, at, *name ? name : ".");
    return result < 0 ? fail(step, -result, ret_reason, err) : 0;
}
