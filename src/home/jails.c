/* SPDX-License-Identifier: MIT */
/* The jails in a storage directory. */
#include "home/jails.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "home/storage.h"

#define JAILS_MAX 4096

/* The parts of a jail. Runs without a jail of their own have the last three as well, so these alone
 * do not make a jail. */
static const char *const parts[] = {"jail",   "changes", "home", "work", "lock",
                                    "review", "record",  "git",  "held", "project"};
#define PARTS_OF_JAIL 7

int jails_check_name(const char *name, struct brig_error *err)
{
    if (!*name || *name == '.' || strchr(name, '/') || strlen(name) > HOME_NAME_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be the name of a jail: it is a plain name of at most %d "
                         "bytes, without a slash and without a dot at its beginning",
                         str_shown(name).text, HOME_NAME_MAX);
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' cannot be the name of a jail: it has control characters",
                             str_shown(name).text);
    return 0;
}

/* The length of the jail's name in a file name, or 0. */
static size_t name_length(const char *file)
{
    const char *dot = strrchr(file, '.');
    for (size_t i = 0; dot && i < PARTS_OF_JAIL; i++)
        if (strcmp(dot + 1, parts[i]) == 0 && dot > file && *file != '.' &&
            (size_t)(dot - file) <= HOME_NAME_MAX)
            return (size_t)(dot - file);
    return 0;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

typedef char jail_name[HOME_NAME_MAX + 1];

static size_t find_names(int storage, jail_name *names)
{
    int fd = openat(storage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t count = 0;
    const struct dirent *item;
    while (dir && count < JAILS_MAX && (item = readdir(dir))) {
        size_t length = name_length(item->d_name);
        if (length == 0)
            continue;
        memcpy(names[count], item->d_name, length);
        names[count++][length] = 0;
    }
    qsort(names, count, sizeof *names, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            memmove(names[kept++], names[i], sizeof names[i]);
    return kept;
}

/* Opens a directory with the ids of the jail's owner, who may have made the storage or a part a
 * link to anywhere. Directories that the owner may not read are neither listed nor counted. */
static int open_as(uid_t uid, int above, const char *path)
{
    bool other = geteuid() == 0 && uid != 0;
    if (other)
        (void)setfsuid(uid);
    int fd = openat(above, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = errno;
    if (other)
        (void)setfsuid(geteuid());
    errno = failed;
    return fd;
}

static uint64_t size_of_part(int storage, const char *name, const char *part, uid_t uid)
{
    char file[HOME_NAME_MAX + 16];
    (void)snprintf(file, sizeof file, "%s.%s", name, part);
    autoclose int fd = open_as(uid, storage, file);
    bool other = fd >= 0 && geteuid() == 0 && uid != 0;
    if (other)
        (void)setfsuid(uid);
    uint64_t size = fd < 0 ? 0 : tree_size(fd);
    if (other)
        (void)setfsuid(geteuid());
    return size;
}

/* ---- holders ---- */

/* Adds the processes of another holder of the same jail. */
static void add_state(struct home_state *state, const struct home_state *other)
{
    state->held = state->held || other->held;
    state->holder = state->holder ? state->holder : other->holder;
    for (size_t i = 0; i < other->pid_count; i++) {
        bool known = false;
        for (size_t j = 0; j < state->pid_count; j++)
            known = known || state->pids[j] == other->pids[i];
        if (!known && state->pid_count < ARRAY_LENGTH(state->pids))
            state->pids[state->pid_count++] = other->pids[i];
    }
}

typedef int (*holder_request)(const char *storage, const char *name, uid_t uid,
                              struct home_state *ret_state, struct brig_error *err);

/* Asks the holders of the reviewed directories: NAME.review is a storage directory of its own. */
static int ask_reviewed(holder_request request, const char *storage, const char *name, uid_t uid,
                        struct home_state *state, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!str_fill(path, sizeof path, storage, "/", name, ".review"))
        return 0;
    autodir DIR *dir = opendir(path);
    int status = 0;
    for (const struct dirent *item; dir && status == 0 && (item = readdir(dir));) {
        struct home_state one = {0};
        char number[HOME_NAME_MAX + 1];
        const char *end = strrchr(item->d_name, '.');
        if (!end || strcmp(end, ".root") != 0 || end - item->d_name > HOME_NAME_MAX)
            continue;
        (void)snprintf(number, sizeof number, "%.*s", (int)(end - item->d_name), item->d_name);
        struct brig_error why = {0};
        status = request(path, number, uid, &one, &why);
        add_state(state, &one);
        if (status == BRIG_E_STATE && one.pid_count > 0)
            status = brig_fail(err, status, 0, "the jail '%s' is in use by process %d%s", name,
                               one.pids[0], one.pid_count > 1 ? " and others" : "");
        else if (status < 0)
            status = brig_fail(err, status, 0, "%s", why.message);
    }
    return status;
}

int jails_ask(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
              struct brig_error *err)
{
    int status = home_ask(storage, name, uid, ret_state, err);
    return status < 0 ? status : ask_reviewed(home_ask, storage, name, uid, ret_state, err);
}

int jails_stop(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
               struct brig_error *err)
{
    int status = home_stop(storage, name, uid, ret_state, err);
    return status < 0 ? status : ask_reviewed(home_stop, storage, name, uid, ret_state, err);
}

static int look_at(int storage, const char *path, const char *name, uid_t uid, bool sizes,
                   struct jail_info *ret_jail, struct brig_error *err)
{
    struct jail_info jail = {0};
    (void)snprintf(jail.name, sizeof jail.name, "%s", name);
    if (sizes) {
        jail.changes = size_of_part(storage, name, "changes", uid) +
                       size_of_part(storage, name, "review", uid);
        jail.home = size_of_part(storage, name, "home", uid);
    }
    int status = jails_ask(path, name, uid, &jail.state, err);
    *ret_jail = jail;
    return status;
}

int jails_each(const char *storage, uid_t uid, bool sizes, jails_visit visit, void *context,
               struct brig_error *err)
{
    autoclose int fd = open_as(sizes ? uid : geteuid(), AT_FDCWD, storage);
    if (fd < 0)
        return errno == ENOENT ? 0
                               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", storage);
    autofree jail_name *names = calloc(JAILS_MAX, sizeof *names);
    if (!names)
        return brig_fail_nomem(err);
    size_t count = find_names(fd, names);
    int status = 0;
    for (size_t i = 0; i < count && status >= 0; i++) {
        struct jail_info jail;
        status = look_at(fd, storage, names[i], uid, sizes, &jail, err);
        if (status >= 0)
            status = visit(context, &jail, err);
    }
    return status;
}

int jails_find(const char *storage, const char *name, uid_t uid, struct jail_info *ret_jail,
               struct brig_error *err)
{
    autoclose int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    for (size_t i = 0; fd >= 0 && i < ARRAY_LENGTH(parts); i++) {
        char file[HOME_NAME_MAX + 16];
        struct stat info;
        (void)snprintf(file, sizeof file, "%s.%s", name, parts[i]);
        found = found || fstatat(fd, file, &info, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (!found)
        return 0;
    int status = look_at(fd, storage, name, uid, true, ret_jail, err);
    return status < 0 ? status : 1;
}

/* ---- removing a jail ---- */

static int remove_part(int storage, const char *name, const char *part, struct brig_error *err)
{
    char file[HOME_NAME_MAX + 16];
    struct stat info;
    (void)snprintf(file, sizeof file, "%s.%s", name, part);
    if (fstatat(storage, file, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    autoclose int target =
        S_ISLNK(info.st_mode) ? openat(storage, file, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (target >= 0) {
        int status = strcmp(part, "changes") == 0 ? storage_remove_work(target, name, err) : 0;
        if (status == 0)
            status = tree_empty(target, err);
        if (status < 0)
            return status;
    }
    return tree_remove(storage, file, err);
}

/* Refuses if a run of root in an isolated jail is active: its holder answers only root. */
static int refuse_if_used(int storage, const char *name, struct brig_error *err)
{
    char file[HOME_NAME_MAX + 16];
    (void)snprintf(file, sizeof file, "%s.home", name);
    autoclose int home = openat(storage, file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home < 0 || flock(home, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the home of '%s' is in use by a run that root has started. End that first: "
                     "sudo brig stop %s",
                     name, name);
}

int jails_unuse(const char *storage, const char *name, uid_t uid, struct brig_error *err)
{
    struct home_state state;
    int status = jails_stop(storage, name, uid, &state, err);
    if (status < 0)
        return status;
    autoclose int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", storage)
                  : refuse_if_used(fd, name, err);
}

int jails_remove(const char *storage, const char *name, uid_t uid, struct brig_error *err)
{
    int status = jails_unuse(storage, name, uid, err);
    autoclose int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == 0; i++)
        status = remove_part(fd, name, parts[i], err);
    return status;
}
