/* SPDX-License-Identifier: MIT */
/* Paths as text, and opening a name so that it cannot lead out of its directory. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

/* ---- Text --------------------------------------------------------------------------------- */

struct component {
    const char *text;
    size_t length;
};

/* Takes the next component at *p and advances *p past it; false at the end. */
static bool next_component(const char **p, struct component *ret_component)
{
    const char *start = *p;
    while (*start == '/')
        start++;
    *p = strchrnul(start, '/');
    size_t length = (size_t)(*p - start);
    *ret_component = (struct component){start, length};
    return length > 0;
}

static bool is_dot(struct component c)
{
    return c.length == 1 && c.text[0] == '.';
}

static bool is_dotdot(struct component c)
{
    return c.length == 2 && c.text[0] == '.' && c.text[1] == '.';
}

static int check_component(struct component c, const char *path, unsigned flags,
                           struct brig_error *err)
{
    if (is_dotdot(c) && !(flags & PATH_KEEP_DOTDOT))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "path '%s' has '..' in it: write the place it means",
                         str_shown(path).text);
    if (c.length > PATH_COMPONENT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "path '%s' has a name of %zu bytes in it: at most %d are possible",
                         str_shown(path).text, c.length, PATH_COMPONENT_MAX);
    return 0;
}

int path_normalise(const char *path, unsigned flags, char **ret_path, struct brig_error *err)
{
    if (!path || !*path)
        return brig_fail(err, BRIG_E_INVALID, 0, "empty path: an absolute path is needed");
    if (path[0] != '/')
        return brig_fail(err, BRIG_E_INVALID, 0, "path '%s' is relative: it must begin with '/'",
                         str_shown(path).text);
    autostr struct str out = {0};
    struct component c;
    for (const char *p = path; next_component(&p, &c);) {
        if (is_dot(c))
            continue;
        int rc = check_component(c, path, flags, err);
        if (rc < 0)
            return rc;
        str_append_char(&out, '/');
        str_append_bytes(&out, c.text, c.length);
        if (out.length > PATH_LENGTH_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "path '%s' is too long: %zu bytes, at most %d are possible",
                             str_shown(path).text, out.length, PATH_LENGTH_MAX);
    }
    if (out.length == 0)
        str_append_char(&out, '/');
    return str_take(&out, ret_path, err);
}

/* The length of base[0..length) without its last component. */
static size_t parent_length(const char *base, size_t length)
{
    while (length > 0 && base[length - 1] == '/')
        length--;
    while (length > 0 && base[length - 1] != '/')
        length--;
    return length;
}

int path_make_absolute(const char *cwd, const char *path, char **ret_path, struct brig_error *err)
{
    if (!path || !*path || path[0] == '/')
        return path_normalise(path, PATH_KEEP_DOTDOT, ret_path, err);
    size_t base = strlen(cwd);
    const char *rest = path;
    struct component c;
    for (const char *p = path; next_component(&p, &c) && (is_dot(c) || is_dotdot(c)); rest = p) {
        if (is_dotdot(c))
            base = parent_length(cwd, base);
    }
    autostr struct str whole = {0};
    str_append_bytes(&whole, cwd, base);
    str_append_char(&whole, '/');
    str_append(&whole, rest);
    autofree char *text = NULL;
    int rc = str_take(&whole, &text, err);
    if (rc < 0)
        return rc;
    return path_normalise(text, PATH_KEEP_DOTDOT, ret_path, err);
}

bool path_is_beneath(const char *parent, const char *child)
{
    if (parent[0] == '/' && parent[1] == '\0')
        return child[0] == '/';
    size_t length = 0; /* one pass: a run calls this some thousand times */
    while (parent[length] && parent[length] == child[length])
        length++;
    return !parent[length] && (child[length] == '/' || child[length] == '\0');
}

const char *path_below(const char *parent, const char *path)
{
    if (!path_is_beneath(parent, path))
        return NULL;
    path += strlen(parent);
    return path + (*path == '/');
}

bool path_leads_above(const char *path, const char *target)
{
    size_t depth = 0;
    bool named = false;
    for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
        depth++;
    for (const char *at = target; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            if (depth == 0 || named)
                return true;
            depth--;
        } else if (length > 0 && !(length == 1 && at[0] == '.')) {
            named = true;
        }
        at += length + strspn(at + length, "/");
    }
    return false;
}

size_t path_depth(const char *path)
{
    size_t depth = 0;
    struct component c;
    for (const char *p = path; next_component(&p, &c);)
        depth++;
    return depth;
}

int path_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a == '\0' ? 0 : *a == '/' ? 1 : (unsigned char)*a + 2;
    int right = *b == '\0' ? 0 : *b == '/' ? 1 : (unsigned char)*b + 2;
    return left - right;
}

int path_compare_items(const void *a, const void *b)
{
    return path_compare(*(const char *const *)a, *(const char *const *)b);
}

/* ---- Opening ------------------------------------------------------------------------------ */

/* How often a lookup is repeated that raced with a rename (EAGAIN). */
#define OPEN_TRIES_MAX 64

static bool creates(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int open_resolved(int dir_fd, const char *name, int flags, mode_t mode, uint64_t resolve,
                         int *ret_fd, struct brig_error *err)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = creates(flags) ? mode & 07777 : 0,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;
    for (int try = 0; try < OPEN_TRIES_MAX; try++) {
        fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(name).text);
    *ret_fd = (int)fd;
    return 0;
}

int path_open_beneath(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err)
{
    return open_resolved(dir_fd, name, flags, mode, RESOLVE_BENEATH, ret_fd, err);
}

int path_open_in_root(int root_fd, const char *path, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err)
{
    return open_resolved(root_fd, path, flags, mode, RESOLVE_IN_ROOT, ret_fd, err);
}

int path_open_plain(int dir_fd, const char *path, int flags)
{
    const struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, dir_fd, *path ? path : ".", &how, sizeof how);
}

int path_rename_new(int from_fd, const char *old, int to_fd, const char *name)
{
    struct stat info;
    if (renameat2(from_fd, old, to_fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) /* the filesystem does not support the flag */
        return -errno;
    if (fstatat(to_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from_fd, old, to_fd, name) == 0 ? 0 : -errno;
}

bool path_of_fd(int fd, char *ret_path)
{
    ssize_t length = readlink(path_proc(fd).text, ret_path, PATH_LENGTH_MAX + 1);
    if (length <= 0 || length > PATH_LENGTH_MAX || ret_path[0] != '/')
        return false;
    ret_path[length] = '\0';
    return true;
}

bool path_resolve(const char *path, char *ret_path)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 && path_of_fd(fd, ret_path);
}

struct path_proc path_proc(int fd)
{
    struct path_proc path;
    (void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
    return path;
}

int path_make_directories(const char *path, size_t length, mode_t mode, struct brig_error *err)
{
    char part[PATH_LENGTH_MAX + 1];
    if (length > PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "'%s'", str_shown(path).text);
    for (size_t i = 1; i <= length; i++) {
        if (i < length && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot create the directory '%s'",
                             str_shown(part).text);
    }
    return 0;
}

bool path_next_program(const char **list, const char *name, char *ret_path)
{
    while (*list && **list) {
        size_t length = strcspn(*list, ":");
        int written = snprintf(ret_path, PATH_LENGTH_MAX + 1, "%.*s/%s", length ? (int)length : 1,
                               length ? *list : ".", name);
        *list += length + ((*list)[length] == ':');
        if (written > 0 && written <= PATH_LENGTH_MAX)
            return true;
    }
    return false;
}

bool path_find_program(const char *const *places, const char *installed, char *ret_path,
                       size_t size)
{
    char program[PATH_LENGTH_MAX + 1];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        slash[1] = '\0';
    for (; slash && *places; places++) {
        (void)str_fill(ret_path, size, program, *places);
        if (access(ret_path, X_OK) == 0)
            return true;
    }
    (void)str_fill(ret_path, size, installed);
    return access(ret_path, X_OK) == 0;
}
