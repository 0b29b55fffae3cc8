/* SPDX-License-Identifier: MIT */
/* The directories in which the steps of an operation are taken. */
#include "changes/operation/step_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "changes/layer/upper.h"

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
    return open(path_proc(fd).text, flags | O_CLOEXEC);
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

/* ---- directories that the jail has made inaccessible ---- */

#define OPENED "opened" /* records: struct opened_head, then the path */

struct opened_head {
    uint32_t tree, mode, length;
};

static int compare_opened(const void *left, const void *right)
{
    const struct step_opened *a = left, *b = right;
    return a->tree != b->tree ? (a->tree < b->tree ? -1 : 1) : strcmp(a->path, b->path);
}

static void opened_free(struct step_opened *opened)
{
    free(opened->path);
    free(opened);
}

/* If there are several records of a directory, the first is the true one. */
static bool remember(struct step_context *context, size_t tree, mode_t mode, const char *path)
{
    struct step_opened *opened = malloc(sizeof *opened);
    if (!opened)
        return false;
    *opened = (struct step_opened){tree, mode, strdup(path)};
    struct step_opened **found = opened->path && array_grow(&context->opened, context->opened_count)
                                     ? tsearch(opened, &context->opened_index, compare_opened)
                                     : NULL;
    if (found && *found == opened)
        context->opened[context->opened_count++] = opened;
    else
        opened_free(opened);
    return found != NULL;
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

/* The mode of an upper directory before it was made accessible. */
const struct step_opened *step_find_opened(const struct step_context *context, size_t tree,
                                           const char *path)
{
    const struct step_opened wanted = {.tree = tree, .path = (char *)(uintptr_t)path};
    struct step_opened *const *found = tfind(&wanted, &context->opened_index, compare_opened);
    return found ? *found : NULL;
}

/* Gives the owner all rights. */
bool step_open_up(struct step_context *context, size_t tree, const char *path)
{
    struct stat info;
    autoclose int fd = step_open_directory(context->trees[tree].upper, path);
    if (fd < 0 || fstat(fd, &info) < 0 || (info.st_mode & S_IRWXU) == S_IRWXU)
        return fd >= 0;
    return (step_find_opened(context, tree, path) ||
            record(context, tree, info.st_mode & 07777, path)) &&
           chmod(path_proc(fd).text, (info.st_mode & 07777) | S_IRWXU) == 0;
}

/* Opens up a directory and all directories above it. */
bool step_open_all_up(struct step_context *context, size_t tree, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    bool open = step_open_up(context, tree, "");
    for (const char *end = path; *end && open;) {
        end = strchrnul(end + 1, '/');
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        open = step_open_up(context, tree, part);
    }
    return open;
}

/* The same for a directory in the operation, which goes back to this path. */
void step_open_object(struct step_context *context, size_t tree, const char *path,
                      const char *object)
{
    struct stat info;
    if (fstatat(context->objects, object, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode) &&
        (step_find_opened(context, tree, path) ||
         record(context, tree, info.st_mode & 07777, path)))
        (void)!fchmodat(context->objects, object, (info.st_mode & 07777) | S_IRWXU,
                        AT_SYMLINK_NOFOLLOW);
}

/* Restores the modes, the innermost first. */
static void close_up(struct step_context *context)
{
    if (context->opened_count == 0)
        return;
    while (context->opened_count > 0) {
        struct step_opened *opened = context->opened[--context->opened_count];
        autoclose int fd = step_open_directory(context->trees[opened->tree].upper, opened->path);
        if (fd >= 0)
            (void)chmod(path_proc(fd).text, opened->mode);
        (void)tdelete(opened, &context->opened_index, compare_opened);
        opened_free(opened);
    }
    free(take_ptr(&context->opened));
    (void)unlinkat(context->objects, OPENED, 0);
}

/* An entry was moved into the operation: restores its mode there. */
void step_close_moved(struct step_context *context, size_t tree, const char *path,
                      const char *object)
{
    const struct step_opened *opened = step_find_opened(context, tree, path);
    if (opened)
        (void)!fchmodat(context->objects, object, opened->mode, AT_SYMLINK_NOFOLLOW);
}

/* Whether a directory of the upper directory, or one above it, is opaque. */
bool step_is_below_opaque(const struct step_tree *tree, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        autoclose int fd = step_open_directory(tree->upper, part);
        if (fd < 0 || upper_opaque_marks(tree->layer, fd) != 0)
            return fd >= 0;
    }
    return false;
}

/* Opens the directory that contains a path. Returns NULL with *ret_reason. The last component of the path is
 * *ret_name. */
struct step_directory *step_enter(struct step_context *context, struct step_tree *tree, bool upper,
                                  const char *path, const char **ret_name, const char **ret_reason)
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
        step_open_all_up(context, (size_t)(tree - context->trees), at->path))
        at->fd = step_open_directory(top, at->path);
    if (at->fd < 0) {
        *ret_reason = errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                          ? "its directory does not exist"
                      : errno == EXDEV ? "another filesystem is mounted there"
                                       : strerrordesc_np(errno);
        at->path[0] = '\0';
        return NULL;
    }
    at->opaque = upper && step_is_below_opaque(tree, at->path);
    return at;
}

/* A directory at this path was moved: forgets descriptors of it and of directories in it. */
void step_forget_directory(struct step_directory *at, const char *path)
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
