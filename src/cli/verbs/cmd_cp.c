/* SPDX-License-Identifier: MIT */
/* `brig cp`: copies files into a jail or out of it, whether or not the jail is running. It starts a
 * run of cp in that jail, which is granted only the host's side. For a copy into the jail, brig
 * becomes that run. For a copy out of it, the run writes to a staging directory, and brig waits and
 * then moves the allowed files to the destination. The host's side is opened once, without
 * following links that a program in a jail may have created, and the run is granted exactly the
 * opened file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "home/jails.h"

#define DEPTH_MAX 256
#define TOLD_MAX 20 /* lines about skipped files */
#define TRIES 16
#define STAGE_PREFIX ".brig-cp-"
#define STAGE_DIRECTORY "files"
/* Only the owner of a directory can set its mode, so a directory that another user renamed to the
 * name of a stage is not removed as a leftover. */
#define STAGE_MODE 01700
/* The path of the host's side inside. */
#define COPY_DIRECTORY "/run/brig-copy"
/* The exit status if something was skipped, like cp's. */
#define COPY_INCOMPLETE 1

/* ---- The stage ----
 *
 * The jail's cp writes to a stage, a directory in the destination directory that brig creates; only
 * entries that lead nowhere else are then moved to their destination. Programs in other jails, and
 * for root other users, may be able to write to the destination directory, and so to rename or
 * replace the stage. It is created and used through descriptors only, and granted by its
 * descriptor. */

#define STAGE_NAME_MAX 32

struct stage {
    int above;                 /* the destination directory, owned by the caller */
    int private;               /* the stage's directory in it, locked while in use */
    int files;                 /* the directory in `private` that the jail writes to */
    char name[STAGE_NAME_MAX]; /* of the private directory */
};

/* A symbolic link in the stage that leads to another file in the stage. */
struct link {
    char *path;            /* of the link, relative to the stage */
    char *target;          /* of the target, relative to the stage and without links */
    struct stat found;     /* the target */
    struct stat directory; /* the directory of the link */
    bool done;             /* placed, or reported as skipped */
};

/* One walk through the stage. */
struct walk {
    const struct stage *copy;
    char path[PATH_LENGTH_MAX + 1]; /* the current path, relative to the stage */
    size_t left;
    int (*visit)(struct walk *walk, int directory, const char *name, const struct stat *info,
                 struct brig_error *err);
    struct link *links;
    size_t link_count;
};

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int open_directory(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Uses the descriptor: the name may lead to another file by now, which stays unless it is an empty
 * directory. */
static int remove_private(int above, int private, const char *name, struct brig_error *err)
{
    int status = tree_empty(private, err);
    if (status == 0 && unlinkat(above, name, AT_REMOVEDIR) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s'", name);
    return status;
}

/* Creates a directory with a random name and locks it. Returns 0; 1 to try again, if the name
 * exists or another copy removed the directory as a leftover; or -errno. */
static int make_private(struct stage *copy)
{
    unsigned long long number = 0;
    struct stat info;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return -errno;
    (void)snprintf(copy->name, sizeof copy->name, STAGE_PREFIX "%012llx", number & 0xffffffffffff);
    if (mkdirat(copy->above, copy->name, STAGE_MODE) < 0)
        return errno == EEXIST ? 1 : -errno;
    autoclose int fd = open_directory(copy->above, copy->name);
    if (fd < 0)
        return errno == ENOENT ? 1 : -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &info) < 0 || info.st_nlink == 0)
        return 1;
    copy->private = take_fd(&fd);
    return 0;
}

/* Removes stages that killed copies have left in the same directory. */
static void remove_left(const struct stage *copy)
{
    struct stat mine, info;
    int listed = openat(copy->above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    if (!dir || fstat(copy->private, &mine) < 0)
        return;
    for (const struct dirent *item; (item = readdir(dir));) {
        if (!str_starts_with(item->d_name, STAGE_PREFIX))
            continue;
        autoclose int fd = open_directory(copy->above, item->d_name);
        if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == mine.st_uid &&
            (info.st_mode & (S_ISUID | 01777)) == STAGE_MODE && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)remove_private(copy->above, fd, item->d_name, NULL);
    }
}

/* Creates the stage in a directory (O_PATH is enough), and removes stages that killed copies have
 * left there. End with stage_end(). */
static int stage_begin(int above, struct stage *ret_stage, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1] = "";
    struct stage copy = {.above = above, .private = -1, .files = -1};
    int status = 1;
    for (int i = 0; i < TRIES && status == 1; i++)
        status = make_private(&copy);
    if (status == 0) {
        if (mkdirat(copy.private, STAGE_DIRECTORY, 0700) == 0)
            copy.files = open_directory(copy.private, STAGE_DIRECTORY);
        status = copy.files < 0 ? -errno : 0;
    }
    if (status == 0) {
        remove_left(&copy);
        *ret_stage = copy;
        return 0;
    }
    if (copy.private >= 0) {
        (void)remove_private(above, copy.private, copy.name, NULL);
        (void)close(copy.private);
    }
    (void)path_of_fd(above, path);
    return brig_fail(err, BRIG_E_SYSTEM, status < 0 ? -status : EEXIST, "cannot write to '%s'",
                     str_shown(path).text);
}

/* ---- walking ---- */

__attribute__((format(printf, 2, 3))) static void leave_out(struct walk *walk, const char *format,
                                                            ...)
{
    char text[PATH_LENGTH_MAX + 256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (walk->left++ < TOLD_MAX)
        message_warning("not copied: '%s' %s", str_shown(walk->path).text, text);
}

/* Calls visit() for all entries; takes ownership of fd. */
static int walk_directory(struct walk *walk, int fd, int depth, struct brig_error *err)
{
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int failed = errno;
        if (fd >= 0)
            (void)close(fd);
        return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot read what was copied, '%s'",
                         str_shown(walk->path).text);
    }
    size_t length = strlen(walk->path);
    int status = 0;
    for (const struct dirent *item; status == 0 && (item = readdir(dir));) {
        struct stat info;
        size_t size = strlen(item->d_name);
        if (is_dots(item->d_name) ||
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (depth >= DEPTH_MAX || length + size + 2 > sizeof walk->path)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "what was copied is too deep at '%s': at most %d directories",
                             str_shown(walk->path).text, DEPTH_MAX);
        (void)snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length ? "/" : "",
                       item->d_name);
        if (S_ISDIR(info.st_mode))
            /* NOLINTNEXTLINE(misc-no-recursion): bounded */
            status = walk_directory(walk, open_directory(dirfd(dir), item->d_name), depth + 1, err);
        else
            status = walk->visit(walk, dirfd(dir), item->d_name, &info, err);
        walk->path[length] = '\0';
    }
    return status;
}

static int walk_stage(struct walk *walk, struct brig_error *err)
{
    return walk_directory(walk, open_directory(walk->copy->files, "."), 0, err);
}

/* ---- checks ---- */

static int drop(struct walk *walk, int directory, const char *name, struct brig_error *err)
{
    return unlinkat(directory, name, 0) == 0
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s' of what was copied",
                           str_shown(walk->path).text);
}

static int visit_file(struct walk *walk, int directory, const char *name, const struct stat *info,
                      struct brig_error *err)
{
    if (S_ISLNK(info->st_mode))
        return 0;
    if (!S_ISREG(info->st_mode)) {
        leave_out(walk, "is a %s",
                  S_ISFIFO(info->st_mode)   ? "fifo"
                  : S_ISSOCK(info->st_mode) ? "socket"
                                            : "device");
        return drop(walk, directory, name, err);
    }
    if (!(info->st_mode & (S_ISUID | S_ISGID)))
        return 0;
    autoclose int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, info->st_mode & 01777) == 0)
        return 0;
    leave_out(walk, "has a set-id mode");
    return drop(walk, directory, name, err);
}

/* The path of an open file, relative to the stage. */
static char *name_in_stage(const struct walk *walk, int fd)
{
    char path[PATH_LENGTH_MAX + 1], stage[PATH_LENGTH_MAX + 1];
    if (!path_of_fd(fd, path) || !path_of_fd(walk->copy->files, stage))
        return NULL;
    size_t length = strlen(stage);
    return strncmp(path, stage, length) == 0 && path[length] == '/' ? strdup(path + length + 1)
                                                                    : NULL;
}

static int add_link(struct walk *walk, struct link link, struct brig_error *err)
{
    bool room = array_grow(&walk->links, walk->link_count);
    link.path = room ? strdup(walk->path) : NULL;
    if (!link.path) {
        free(link.target);
        return brig_fail_nomem(err);
    }
    walk->links[walk->link_count++] = link;
    return 0;
}

/* A link may stay if it leads to a file that was copied with it. The kernel resolves it without
 * leaving the stage by "..", by an absolute link, or by another link on the path. */
static int visit_link(struct walk *walk, int directory, const char *name, const struct stat *info,
                      struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    struct stat found, above;
    autoclose int fd = -1;
    if (!S_ISLNK(info->st_mode))
        return 0;
    int status = path_open_beneath(walk->copy->files, walk->path, O_PATH, 0, &fd, NULL);
    char *place = status == 0 ? name_in_stage(walk, fd) : NULL;
    if (place && fstat(fd, &found) == 0 && fstat(directory, &above) == 0)
        return add_link(walk, (struct link){.target = place, .found = found, .directory = above},
                        err);
    free(place);
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    leave_out(walk, "is a link to '%s', which is not part of the copy", str_shown(target).text);
    return drop(walk, directory, name, err);
}

/* Splits the path of a link into its directory, "" at the top, and its name. */
static const char *split(const char *path, char ret_directory[static PATH_LENGTH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    memcpy(ret_directory, path, length);
    ret_directory[length] = '\0';
    return slash ? slash + 1 : path;
}

/* Makes a directory of the copy writable, whatever its mode; the mode and times are restored
 * later. */
static void unlock_directory(int fd, const struct stat *info)
{
    if ((info->st_mode & 0300) != 0300)
        (void)fchmod(fd, (info->st_mode | 0300) & 07777);
}

static void lock_directory(int fd, const struct stat *info)
{
    if ((info->st_mode & 0300) != 0300)
        (void)fchmod(fd, info->st_mode & 07777);
    (void)futimens(fd, (const struct timespec[]){info->st_atim, info->st_mtim});
}

/* Moves the links out of the stage, which is placed without them. Their names are then their
 * numbers. */
static int set_links_aside(struct walk *walk, struct brig_error *err)
{
    for (size_t i = 0; i < walk->link_count; i++) {
        char above[PATH_LENGTH_MAX + 1], number[32];
        struct stat info;
        const char *name = split(walk->links[i].path, above);
        (void)snprintf(number, sizeof number, "%zu", i);
        autoclose int fd = path_open_plain(walk->copy->files, above, O_RDONLY | O_DIRECTORY);
        if (fd < 0 || fstat(fd, &info) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read what was copied, '%s'",
                             str_shown(above).text);
        unlock_directory(fd, &info);
        int moved = renameat(fd, name, walk->copy->private, number) < 0 ? errno : 0;
        lock_directory(fd, &info);
        if (moved != 0)
            return brig_fail(err, BRIG_E_SYSTEM, moved, "cannot move '%s' of what was copied",
                             str_shown(walk->links[i].path).text);
    }
    return 0;
}

static int check(struct walk *walk, struct brig_error *err)
{
    /* cp -a gives it the mode of the source. */
    (void)fchmod(walk->copy->files, 0700);
    walk->visit = visit_file;
    int status = walk_stage(walk, err);
    if (status < 0)
        return status;
    walk->visit = visit_link;
    status = walk_stage(walk, err);
    return status < 0 ? status : set_links_aside(walk, err);
}

/* ---- moving to the destination ---- */

/* Moves an entry to another directory; -EEXIST if the name exists there and may not be replaced. */
static int rename_to(int from, const char *old, int to, const char *name, bool replace)
{
    if (!replace)
        return path_rename_new(from, old, to, name);
    return renameat(from, old, to, name) == 0 ? 0 : -errno;
}

/* Moving a directory requires write permission for the directory itself. */
static int move(int from, const char *old, int to, const char *name, const struct stat *info,
                bool replace)
{
    int result = rename_to(from, old, to, name, replace);
    if (result != -EACCES || !S_ISDIR(info->st_mode))
        return result;
    autoclose int fd = open_directory(from, old);
    if (fd < 0 || fchmod(fd, (info->st_mode | 0700) & 07777) < 0)
        return -EACCES;
    result = rename_to(from, old, to, name, replace);
    (void)fchmod(fd, info->st_mode & 07777);
    return result;
}

static int place_all(struct walk *walk, int from, int to, int depth, struct brig_error *err);

/* The name exists already. Returns 1 if the entry was skipped. */
static int merge(struct walk *walk, int from, const char *old, int to, const char *name,
                 const struct stat *info, int depth, struct brig_error *err)
{
    struct stat there;
    if (fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'",
                         str_shown(walk->path).text);
    if (strcmp(name, ".git") == 0) {
        leave_out(walk, "is there already, and a repository's hooks and settings could come with "
                        "it. Copy it to another place, or remove that one first");
        return 1;
    }
    if (S_ISDIR(info->st_mode) && S_ISDIR(there.st_mode)) {
        autoclose int below = open_directory(to, name);
        int source = open_directory(from, old);
        if (below >= 0 && source >= 0)
            return place_all(walk, source, below, depth + 1, err); /* NOLINT(misc-no-recursion) */
        if (source >= 0)
            (void)close(source);
    } else if (!S_ISDIR(info->st_mode) && !S_ISDIR(there.st_mode)) {
        errno = -move(from, old, to, name, info, true);
        if (errno == 0)
            return 0;
    } else {
        errno = S_ISDIR(there.st_mode) ? EISDIR : ENOTDIR;
    }
    leave_out(walk, "cannot be put in the place of what is there: %s", strerror(errno));
    return 1;
}

/* Returns 1 if the entry was skipped. */
static int place_one(struct walk *walk, int from, const char *old, int to, const char *name,
                     int depth, struct brig_error *err)
{
    struct stat info;
    if (fstatat(from, old, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int result = move(from, old, to, name, &info, false);
    if (result == -EEXIST)
        /* NOLINTNEXTLINE(misc-no-recursion): bounded */
        return merge(walk, from, old, to, name, &info, depth, err);
    if (result < 0)
        leave_out(walk, "cannot be put into place: %s", strerror(-result));
    return result < 0;
}

/* Takes ownership of `from`. The stage was walked before, so it is not deeper than that walk
 * allows. Afterwards it contains only merged directories, which is_placed() relies on. */
static int place_all(struct walk *walk, int from, int to, int depth, struct brig_error *err)
{
    autodir DIR *dir = fdopendir(from);
    if (!dir) {
        (void)close(from);
        return brig_fail_nomem(err);
    }
    size_t length = strlen(walk->path);
    int status = 0;
    for (const struct dirent *item; status == 0 && (item = readdir(dir));) {
        if (is_dots(item->d_name))
            continue;
        (void)snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length ? "/" : "",
                       item->d_name);
        /* NOLINTNEXTLINE(misc-no-recursion): bounded */
        status = place_one(walk, dirfd(dir), item->d_name, to, item->d_name, depth, err);
        if (status == 1)
            status = tree_remove(dirfd(dir), item->d_name, err);
        walk->path[length] = '\0';
    }
    return status;
}

/* ---- links, placed last ---- */

/* Whether a file of the stage is now at the same path in the destination: it was moved there, or is
 * a directory that was merged with an existing one. No link is followed. */
static bool is_placed(const struct walk *walk, const char *path, const struct stat *file,
                      struct stat *ret_there)
{
    struct stat rest;
    autoclose int fd = path_open_plain(walk->copy->above, path, O_PATH);
    if (fd < 0 || fstat(fd, ret_there) < 0)
        return false;
    if (is_same(ret_there, file))
        return true;
    autoclose int merged = path_open_plain(walk->copy->files, path, O_PATH);
    return S_ISDIR(ret_there->st_mode) && merged >= 0 && fstat(merged, &rest) == 0 &&
           S_ISDIR(rest.st_mode) && is_same(&rest, file);
}

/* Whether a link in this directory would lead to the same file in the destination as in the stage:
 * through placed entries, and not through a link that existed before. */
static bool leads_there(const struct walk *walk, const char *above, const char *number,
                        const struct link *link)
{
    char target[PATH_LENGTH_MAX + 1];
    autostr struct str path = {0};
    struct stat found, there;
    autoclose int fd = -1;
    ssize_t length = readlinkat(walk->copy->private, number, target, sizeof target - 1);
    if (length <= 0 || !is_placed(walk, link->target, &link->found, &there))
        return false;
    target[length] = '\0';
    str_appendf(&path, "%s%s%s", above, *above ? "/" : "", target);
    return !path.failed &&
           path_open_beneath(walk->copy->above, path.data, O_PATH, 0, &fd, NULL) == 0 &&
           fstat(fd, &found) == 0 && is_same(&found, &there);
}

/* Returns 1 if it is done, 0 if a part of its path is not placed yet. */
static int place_link(struct walk *walk, size_t index, struct brig_error *err)
{
    const struct link *link = &walk->links[index];
    char above[PATH_LENGTH_MAX + 1], number[32];
    const char *name = split(link->path, above);
    struct stat there, info;
    (void)snprintf(number, sizeof number, "%zu", index);
    if (!is_placed(walk, above, &link->directory, &there) ||
        !leads_there(walk, above, number, link))
        return 0;
    autoclose int fd = path_open_plain(walk->copy->above, above, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fstat(fd, &info) < 0 || !is_same(&info, &there))
        return 0;
    bool ours = is_same(&there, &link->directory);
    (void)snprintf(walk->path, sizeof walk->path, "%s", link->path);
    if (ours)
        unlock_directory(fd, &info);
    int status = place_one(walk, walk->copy->private, number, fd, name, 0, err);
    if (ours)
        lock_directory(fd, &info);
    return status < 0 ? status : 1;
}

/* A link may lead through another link: repeat as long as one can be placed. */
static int place_links(struct walk *walk, struct brig_error *err)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < walk->link_count; i++) {
            int status = walk->links[i].done ? 0 : place_link(walk, i, err);
            if (status < 0)
                return status;
            walk->links[i].done |= status == 1;
            again = again || status == 1;
        }
    }
    for (size_t i = 0; i < walk->link_count; i++) {
        if (walk->links[i].done)
            continue;
        (void)snprintf(walk->path, sizeof walk->path, "%s", walk->links[i].path);
        leave_out(walk, "is a link to '%s', which this copy has not put there",
                  str_shown(walk->links[i].target).text);
    }
    return 0;
}

/* If `place`, moves the contents of the stage to the directory above it. Existing directories are
 * merged, files replaced. Some entries are skipped, reported and counted in *ret_left: symbolic
 * links that do not lead to another file of this copy, FIFOs, sockets and devices, entries deeper
 * than any path can be, and entries that would change an existing .git. Set-id bits are cleared.
 * Removes the stage. */
static int stage_end(struct stage *copy, bool place, size_t *ret_left, struct brig_error *err)
{
    autoclose int private = take_fd(&copy->private);
    autoclose int stage = take_fd(&copy->files);
    const struct stage used = {.above = copy->above, .private = private, .files = stage};
    struct walk walk = {.copy = &used};
    int status = place ? check(&walk, err) : 0;
    if (status == 0 && place)
        status = place_all(&walk, open_directory(stage, "."), copy->above, 0, err);
    if (status == 0)
        status = place_links(&walk, err);
    if (walk.left > TOLD_MAX)
        message_warning("not copied: %zu more", walk.left - TOLD_MAX);
    *ret_left = walk.left;
    for (size_t i = 0; i < walk.link_count; i++) {
        free(walk.links[i].path);
        free(walk.links[i].target);
    }
    free(walk.links);
    int removed = remove_private(copy->above, private, copy->name, status < 0 ? NULL : err);
    return status < 0 ? status : removed;
}

/* ---- The verb ---- */

/* The jail's side of a copy: "JAIL:PATH". */
struct side {
    char jail[HOME_NAME_MAX + 1];
    const char *path;
};

/* True if the word names a jail. A path with a slash before the colon does not. */
static bool split_side(const char *word, struct side *ret_side)
{
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : 0;
    if (length == 0 || length > HOME_NAME_MAX || memchr(word, '/', length))
        return false;
    memcpy(ret_side->jail, word, length);
    ret_side->jail[length] = 0;
    ret_side->path = colon + 1;
    return true;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* `brig run … cp …`: the system's cp, not one in the jail's home, without the caller's environment
 * and configuration. `app` has the grant and the environment. Returns its exit status, or a
 * negative code. */
static int execute(const struct side *side, const char *home, struct app app, const char *from,
                   const char *to, struct brig_error *err)
{
    const char *program = access("/usr/bin/cp", X_OK) == 0 ? "/usr/bin/cp" : "/bin/cp";
    const char *const argv[] = {
        "run",        "-j",
        side->jail,   "-D",
        "--workdir",  home ? home : "/",
        "--command",  "",
        "--unsetenv", "*",
        "--setenv",   "LC_ALL=C",
        "--setenv",   "PATH=/usr/bin:/bin",
        "--",         program,
        "-a",         "--",
        from,         to,
        NULL,
    };
    app.argv = (char **)(uintptr_t)argv;
    app.argc = (int)ARRAY_LENGTH(argv) - 1;
    return cmd_run.run(&app, app.argc, app.argv, err);
}

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* Waits for the run, and forwards signals that were sent to this process only: signals from the
 * terminal reach the run, too. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
    for (;;) {
        siginfo_t info;
        int status;
        int signal = sigwaitinfo(signals, &info);
        if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
            (void)kill(pid, signal);
        if (signal != SIGCHLD || waitpid(pid, &status, WNOHANG) != pid)
            continue;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* Runs cp in the jail, which writes to the granted directory; returns its exit status, or a
 * negative code. */
static int run(const struct side *side, const char *home, const struct app *app, const char *to,
               struct brig_error *err)
{
    sigset_t signals, before;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < ARRAY_LENGTH(forwarded); i++)
        (void)sigaddset(&signals, forwarded[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    pid_t pid = fork();
    if (pid == 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(message_status(execute(side, home, *app, side->path, to, err), err));
    }
    int status = pid < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "fork") : wait_for(pid, &signals);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* Another user who owns the directory, or a parent of it, could replace files that root writes
 * there. */
static int refuse_foreign(int directory, const struct identity *identity, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!path_of_fd(directory, path))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out where to copy to");
    if (!workdir_is_foreign(path, identity))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "you are root, and '%s' belongs to another user or is in a directory of one. "
                     "Copy to a directory of root's, such as /root, and move it from there",
                     str_shown(path).text);
}

/* Returns the exit status, or a negative code. */
static int copy_out(const struct side *side, const struct identity *identity,
                    const struct out_path *target, char **envp, struct brig_error *err)
{
    struct stage stage;
    int status = refuse_foreign(target->dir_fd, identity, err);
    if (status < 0)
        return status;
    identity_enter(identity);
    status = stage_begin(target->dir_fd, &stage, err);
    identity_leave(identity);
    if (status < 0)
        return status;
    autofree char *inside = NULL;
    const struct app app = {
        .envp = envp, .grant_at = COPY_DIRECTORY, .grant_fd = stage.files, .grant_writable = true};
    status = str_make(&inside, err, COPY_DIRECTORY "/", target->name);
    if (status == 0)
        status = run(side, identity->host_home, &app, inside, err);
    /* cp exits with 1 if it could not copy everything. */
    size_t left = 0;
    identity_enter(identity);
    int ended = stage_end(&stage, status == 0 || status == 1, &left, status < 0 ? NULL : err);
    identity_leave(identity);
    if (status < 0 || ended < 0)
        return status < 0 ? status : ended;
    return status == 0 && left > 0 ? COPY_INCOMPLETE : status;
}

/* Returns the exit status, or a negative code. */
static int copy_in(const struct side *side, const struct identity *identity, const char *host,
                   const struct out_path *source, char **envp, struct brig_error *err)
{
    autofree char *inside = NULL;
    if (source->fd < 0)
        return brig_fail(err, BRIG_E_INVALID, ENOENT, "cannot copy '%s'", str_shown(host).text);
    int status = str_make(&inside, err, COPY_DIRECTORY "/", last_name(host));
    if (status < 0)
        return status;
    const struct app app = {.envp = envp, .grant_at = inside, .grant_fd = source->fd};
    return execute(side, identity->host_home, app, inside, *side->path ? side->path : ".", err);
}

/* Returns the exit status, or a negative code. */
static int copy(const char *from, const char *to, char **envp, struct brig_error *err)
{
    struct side side;
    bool inwards = split_side(to, &side);
    struct side other;
    if (inwards == split_side(from, &other))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cp needs one side in a jail: brig cp SRC JAIL:PATH, or brig cp JAIL:PATH "
                         "DEST");
    if (!inwards)
        side = other;
    struct jails_place place;
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_check(&place, cmd_cp.name, side.jail, err);
    if (status < 0)
        return status;
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *host = NULL;
    if (!getcwd(cwd, sizeof cwd))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out the working directory");
    if ((status = path_make_absolute(cwd, inwards ? from : to, &host, err)) < 0)
        return status;
    struct out_path found = OUT_PATH_INIT;
    identity_enter(&place.identity);
    status = out_path_find(host, &place.identity, &found, err);
    identity_leave(&place.identity);
    if (status == 0)
        status = inwards ? copy_in(&side, &place.identity, host, &found, envp, err)
                         : copy_out(&side, &place.identity, &found, envp, err);
    out_path_done(&found);
    return status;
}

static int run_cp(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    if (argc != 3)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cp needs two names: brig cp SRC JAIL:PATH, or brig cp JAIL:PATH DEST");
    return copy(argv[1], argv[2], app->envp, err);
}

const struct command cmd_cp = {
    .name = "cp",
    .summary = "copy files into a jail or out of it",
    .usage = "SRC JAIL:PATH | JAIL:PATH DEST",
    .words = COMMAND_WORDS_COPY,
    .run = run_cp,
};
