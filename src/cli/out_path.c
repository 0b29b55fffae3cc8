/* SPDX-License-Identifier: MIT */
/* Resolves paths component by component, and writes the files at their end. */
#include "cli/out_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/remedy.h"
#include "policy/policy.h"

#define LINKS_MAX 40 /* the limit of the kernel */
#define RESULT_MODE 0644
#define LOG_MODE 0600

/* The state of resolving a path. */
struct walk {
    int at;                            /* the current component, O_PATH */
    int above;                         /* the directory that contains it, or -1 */
    char name[PATH_COMPONENT_MAX + 1]; /* the name of the current component */
    char rest[PATH_LENGTH_MAX + 1];    /* the remaining path */
    char link[PATH_LENGTH_MAX + 1];    /* the link that was refused, or "" */
    const struct brig_policy *policy;  /* or NULL */
    const struct identity *identity;
};

/* Whether the jail can create entries in this directory. */
static bool is_writable_inside(int dir_fd, const struct brig_policy *policy)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!path_of_fd(dir_fd, path))
        return true; /* unknown */
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access != BRIG_READ_WRITE || !grant->source)
            continue;
        char real[PATH_LENGTH_MAX + 1];
        if (path_is_beneath(path_resolve(grant->source, real) ? real : grant->source, path))
            return true;
    }
    return false;
}

static bool is_same(const struct stat *info, const char *path)
{
    struct stat other;
    return path && stat(path, &other) == 0 && info->st_dev == other.st_dev &&
           info->st_ino == other.st_ino;
}

/* See out_path.h. */
static bool may_follow(const struct walk *walk, const struct stat *link)
{
    struct stat directory;
    const struct identity *identity = walk->identity;
    uid_t user = identity_uid(identity);
    if (fstat(walk->at, &directory) < 0 ||
        (walk->policy && is_writable_inside(walk->at, walk->policy)))
        return false;
    return is_same(&directory, "/") || is_same(&directory, identity->host_home) ||
           (user != 0 && link->st_uid == 0 && directory.st_uid == 0);
}

/* Inserts the target of a link before the remaining path. */
static int put_target(struct walk *walk, int link_fd, size_t used)
{
    char target[PATH_LENGTH_MAX + 1], left[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(link_fd, "", target, sizeof target - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    (void)snprintf(left, sizeof left, "%s", walk->rest + used);
    int made = snprintf(walk->rest, sizeof walk->rest, "%s/%s", target, left);
    return made > PATH_LENGTH_MAX ? -ENAMETOOLONG : 0;
}

/* Records the path of a link, for the message. */
static int refuse_link(struct walk *walk, const char *name)
{
    char path[PATH_LENGTH_MAX + 1];
    autostr struct str text = {0};
    str_appendf(&text, "%s/%s", path_of_fd(walk->at, path) ? path : "", name);
    (void)snprintf(walk->link, sizeof walk->link, "%s", text.failed ? name : text.data);
    return -EPERM;
}

/* Resolves the next component: 0, 1 if it was a link, or -errno, which is -EPERM for a link that a
 * jail may have created. */
static int step(struct walk *walk)
{
    char name[PATH_COMPONENT_MAX + 1];
    size_t length = strcspn(walk->rest, "/");
    if (length > PATH_COMPONENT_MAX)
        return -ENAMETOOLONG;
    memcpy(name, walk->rest, length);
    name[length] = '\0';
    autoclose int fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    if (S_ISLNK(info.st_mode)) {
        int status =
            may_follow(walk, &info) ? put_target(walk, fd, length) : refuse_link(walk, name);
        return status < 0 ? status : 1;
    }
    own_close(&walk->above);
    walk->above = walk->at;
    walk->at = take_fd(&fd);
    memcpy(walk->name, name, length + 1);
    memmove(walk->rest, walk->rest + length, strlen(walk->rest + length) + 1);
    return 0;
}

/* Resolves the whole path; an absolute path or link target starts at the root. If a component is
 * missing, `rest` begins with it. */
static int walk_path(struct walk *walk)
{
    char *rest = walk->rest;
    walk->at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int links = 0, status = 1; links <= LINKS_MAX; links += status) {
        if (status == 1 && rest[0] == '/') {
            (void)close(walk->at);
            walk->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        memmove(rest, rest + strspn(rest, "/"), strlen(rest + strspn(rest, "/")) + 1);
        if (walk->at < 0)
            return -errno;
        if (rest[0] == '\0')
            return 0;
        status = step(walk);
        if (status < 0)
            return status;
    }
    return -ELOOP;
}

static void walk_done(struct walk *walk)
{
    own_close(&walk->at);
    own_close(&walk->above);
}

static int fail(const struct walk *walk, const char *verb, const char *path, int status,
                struct brig_error *err)
{
    if (!walk->link[0])
        return brig_fail(err, BRIG_E_INVALID, -status, "cannot %s '%s'", verb,
                         str_shown(path).text);
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' leads through the symbolic link '%s', which a program in a jail may "
                     "have made. If you trust it, name the path that it leads to",
                     str_shown(path).text, str_shown(walk->link).text);
}

/* Opens the directory of `path` (O_PATH) and points *ret_name at the last component, which is
 * not looked at. A link in a directory that the policy lets the jail write to is never followed.
 * The kernel's magic links in /proc are followed as their text says. Refuses a path that does
 * not name a file. */
static int out_path_open(const char *path, const struct brig_policy *policy,
                         const struct identity *identity, const char **ret_name, int *ret_dir_fd,
                         struct brig_error *err)
{
    struct walk walk = {.at = -1, .above = -1, .policy = policy, .identity = identity};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = (size_t)(name - path);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strlen(name) > PATH_COMPONENT_MAX || length > PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not name a file", str_shown(path).text);
    memcpy(walk.rest, path, length);
    int status = walk_path(&walk);
    if (status == 0) {
        *ret_name = name;
        *ret_dir_fd = take_fd(&walk.at);
    }
    walk_done(&walk);
    return status < 0 ? fail(&walk, "write", path, status, err) : 0;
}

int out_path_find(const char *path, const struct identity *identity, struct out_path *ret_found,
                  struct brig_error *err)
{
    struct walk walk = {.at = -1, .above = -1, .identity = identity};
    struct out_path found = OUT_PATH_INIT;
    struct stat info;
    int made = snprintf(walk.rest, sizeof walk.rest, "%s", path);
    int status = made > PATH_LENGTH_MAX ? -ENAMETOOLONG : walk_path(&walk);
    if (status == -ENOENT && walk.rest[0] && !strchr(walk.rest, '/')) {
        found.dir_fd = take_fd(&walk.at);
        memcpy(found.name, walk.rest, strlen(walk.rest) + 1);
    } else if (status == 0 && fstat(walk.at, &info) == 0) {
        bool directory = S_ISDIR(info.st_mode);
        found.fd = take_fd(&walk.at);
        found.dir_fd = directory ? fcntl(found.fd, F_DUPFD_CLOEXEC, 0) : take_fd(&walk.above);
        (void)snprintf(found.name, sizeof found.name, "%s", directory ? "" : walk.name);
    }
    walk_done(&walk);
    if (found.dir_fd < 0)
        return fail(&walk, "open", path, status < 0 ? status : -errno, err);
    *ret_found = found;
    return 0;
}

void out_path_done(struct out_path *found)
{
    own_close(&found->fd);
    own_close(&found->dir_fd);
}

/* ---- Files that brig writes ---- */

bool out_file_is_given(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}

int out_file_number(const char *where, const char *option, int *ret_fd, struct brig_error *err)
{
    const char *digits = str_starts_with(where, "fd:") ? where + strlen("fd:") : where;
    uint64_t number = 0;
    if (digits == where && where[strspn(where, "0123456789")] != '\0')
        return 0;
    int status = parse_uint(digits, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return brig_wrap(err, status, "%s", option);
    int flags = fcntl((int)number, F_GETFL);
    if (flags < 0 || !out_file_is_given((int)number))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s: file descriptor %s is not open; for a file write './%s'", option,
                         digits, digits);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: file descriptor %s is open for reading only",
                         option, digits);
    *ret_fd = (int)number;
    return 1;
}

/* Opens the file `path`, which is written in place: by its name in a directory, or with -1 by a
 * path in /dev, where links such as /dev/stdout belong to the system. Without O_NONBLOCK, opening a
 * FIFO would block until it has a reader, maybe for ever; later writes block as they should. */
static int open_in_place(int dir_fd, const char *name, const char *path, const char *option,
                         int flags, struct brig_error *err)
{
    flags |= O_WRONLY | O_NOCTTY | (dir_fd < 0 ? 0 : O_NOFOLLOW);
    autoclose int fd =
        openat(dir_fd < 0 ? AT_FDCWD : dir_fd, name, flags | O_NONBLOCK | O_CLOEXEC, LOG_MODE);
    if (fd < 0 && errno == ENXIO)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: no process reads from the pipe '%s'", option,
                         str_shown(path).text);
    if (fd < 0 || fcntl(fd, F_SETFL, flags & (O_WRONLY | O_APPEND)) < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "%s: cannot write '%s'", option,
                         str_shown(path).text);
    return take_fd(&fd);
}

int out_file_append(const char *where, const char *option, const struct brig_policy *policy,
                    const struct identity *identity, struct brig_error *err)
{
    const char *name = where;
    autoclose int dir_fd = -1;
    int status = str_starts_with(where, "/dev/")
                     ? 0
                     : out_path_open(where, policy, identity, &name, &dir_fd, err);
    return status < 0 ? brig_wrap(err, status, "%s", option)
                      : open_in_place(dir_fd, name, where, option, O_APPEND | O_CREAT, err);
}

/* A device or a pipe is written to, not replaced. */
static int open_special(struct result_file *file, const char *path, struct brig_error *err)
{
    int fd =
        open_in_place(file->dir_fd, file->dir_fd < 0 ? path : file->name, path, "--result", 0, err);
    if (fd < 0)
        return fd;
    file->fd = fd;
    file->owned = true;
    own_close(&file->dir_fd);
    file->dir_fd = -1;
    return 0;
}

/* A regular file is replaced, and so is a symbolic link, which a jail may have created. */
static int open_path(const char *path, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *file,
                     struct brig_error *err)
{
    struct stat there;
    if (str_starts_with(path, "/dev/") && stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return open_special(file, path, err);
    const char *name = NULL;
    int status = out_path_open(path, policy, identity, &name, &file->dir_fd, err);
    if (status < 0)
        return brig_wrap(err, status, "--result");
    (void)str_fill(file->name, sizeof file->name, name);
    if (fstatat(file->dir_fd, file->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
        return open_special(file, path, err);
    if (faccessat(file->dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "--result: cannot write '%s'",
                         str_shown(path).text);
    return 0;
}

int result_file_open(const char *where, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *ret_file,
                     struct brig_error *err)
{
    struct result_file file = {.fd = -1, .dir_fd = -1};
    int status = out_file_number(where, "--result", &file.fd, err);
    if (status == 0)
        status = open_path(where, policy, identity, &file, err);
    if (status < 0) {
        result_file_done(&file);
        return status;
    }
    *ret_file = file;
    return 0;
}

/* If the filesystem cannot rename without replacing, a hard link is used. */
static int publish(int dir_fd, const char *from, const char *to, bool replace)
{
    if (renameat2(dir_fd, from, dir_fd, to, replace ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? linkat(dir_fd, from, dir_fd, to, 0) : -1;
}

int out_file_write(int dir_fd, const char *name, const char *text, mode_t mode, bool replace,
                   struct brig_error *err)
{
    unsigned long long random = 0;
    char temporary[64]; /* a name that no other process can have prepared */
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "no random numbers");
    (void)snprintf(temporary, sizeof temporary, ".brig-new-%016llx", random);
    autoclose int fd =
        openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    int failed = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (failed == 0 && publish(dir_fd, temporary, name, replace) < 0)
        failed = -errno;
    if (fd >= 0)
        (void)unlinkat(dir_fd, temporary, 0);
    if (failed == 0)
        return 1;
    return failed == -EEXIST && !replace
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s'", str_shown(name).text);
}

int result_file_write(const struct result_file *file, const struct brig_result *result,
                      struct brig_error *err)
{
    autofree char *json = NULL;
    autostr struct str words = {0};
    int status = brig_result_json(result, &json, err);
    if (status < 0)
        return status;
    str_append(&words, json);
    remedy_translate(&words);
    if (words.failed)
        return brig_fail_nomem(err);
    if (file->dir_fd >= 0) {
        status = out_file_write(file->dir_fd, file->name, words.data, RESULT_MODE, true, err);
        return status < 0 ? brig_wrap(err, status, "--result") : 0;
    }
    int failed = write_all(file->fd, words.data, words.length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "--result: cannot write") : 0;
}

void result_file_done(struct result_file *file)
{
    if (file->owned)
        own_close(&file->fd);
    own_close(&file->dir_fd);
    *file = (struct result_file){.fd = -1, .dir_fd = -1};
}
