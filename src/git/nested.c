/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/tree.h"
#include "git/plan.h"
#include "git/run.h"
#include "held/names.h"

#define SUBMODULE_LINK ".git.brig-link"
#define NESTED_QUEUE_MAX ((size_t)32 << 20) /* bytes of paths */
#define NESTED_REPORTED_MAX 20 /* changed files that are named, each with another reason */
#define NESTED_KEPT_MAX 5      /* of one reason, of which the first that counts is named */
#define TREATED_MAX 100        /* new repositories after one run */

/* ---- finding them ---- */

enum {
    HAS_GIT = 1, /* `.git` of any type */
    HAS_HEAD = 2,
    HAS_OBJECTS = 4,
    HAS_REFS = 8,
    HAS_COMMONDIR = 16,
};

/* On a filesystem that does not tell cases apart, every spelling is the name. */
static bool is_spelling(int dir, const char *name, const char *wanted)
{
    struct stat named, info;
    return strcmp(name, wanted) == 0 ||
           (strcasecmp(name, wanted) == 0 &&
            fstatat(dir, wanted, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
            fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == info.st_ino);
}

static unsigned find_bit(int dir, const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } table[] = {{".git", HAS_GIT},
                 {"HEAD", HAS_HEAD},
                 {"objects", HAS_OBJECTS},
                 {"refs", HAS_REFS},
                 {"commondir", HAS_COMMONDIR}};
    for (size_t i = 0; i < ARRAY_LENGTH(table); i++)
        if (is_spelling(dir, name, table[i].name))
            return table[i].bit;
    return 0;
}

/* Whether git accepts the directory itself as a git directory. */
static bool is_bare(unsigned found)
{
    return found & HAS_HEAD && (found & HAS_COMMONDIR || (found & HAS_OBJECTS && found & HAS_REFS));
}

static bool is_since(const struct stat *info, struct timespec since)
{
    return info->st_ctim.tv_sec > since.tv_sec ||
           (info->st_ctim.tv_sec == since.tv_sec && info->st_ctim.tv_nsec >= since.tv_nsec);
}

/* Opens a directory. If `since` is not NULL, a directory that has become unreadable since then is
 * made readable: git needs only search permission to use it. */
static int open_any(int at, const char *name, const struct timespec *since)
{
    int fd = files_open_dir(at, name);
    struct stat info;
    if (fd >= 0 || errno != EACCES || !since)
        return fd;
    autoclose int place = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return place >= 0 && fstat(place, &info) == 0 && is_since(&info, *since) &&
                   chmod(path_proc(place).text, (info.st_mode & 07777) | 0700) == 0
               ? files_open_dir(place, ".")
               : -1;
}

/* Opens a directory below the top. What had to be made readable is added to `opened`, which may be
 * NULL. */
static int open_found(int top, const char *path, const struct timespec *since, struct str *opened)
{
    int fd = -1;
    struct brig_error err = {0};
    struct stat info;
    autoclose int above = -1;
    if (path_open_beneath(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, &err) == 0)
        return fd;
    errno = err.sys_errno;
    if (errno != EACCES ||
        path_open_beneath(top, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &above, NULL) < 0 ||
        fstat(above, &info) < 0)
        return -1;
    errno = EACCES;
    if (!since || !is_since(&info, *since) ||
        chmod(path_proc(above).text, (info.st_mode & 07777) | 0700) < 0)
        return -1;
    fd = files_open_dir(above, ".");
    if (fd >= 0 && opened) {
        str_appendf(opened, "%o ", info.st_mode & 07777);
        str_list_add(opened, path);
    }
    return fd;
}

struct search {
    int top;
    struct str queue; /* of directories: a character, see WATCH, and the path, each with a NUL */
    size_t read;      /* how much of it was read */
    struct str path, *dirs;
    const struct timespec *since; /* the start of the run; NULL before it */
    bool changes;                 /* may make directories readable */
    struct stat storage;          /* of all jails; no jail can write to it */
    size_t count;
    bool skipped; /* a directory could not be searched */
    struct nested_report *report;
};

/* What is looked for in a directory, apart from repositories. */
enum watch {
    WATCH_NAMES = 'n', /* changed files of the table of names */
    WATCH_ALL = 'a',   /* every changed file: the directory is in the table */
    WATCH_MOVED = 'm', /* also unchanged files of the table: the directory may have got its name */
    WATCH_NOTHING = '-', /* an installed package, or the directory was reported already */
};

/* Opens a directory for the search; NULL on failure. */
static DIR *open_searched(struct search *s, const char *path)
{
    const struct timespec *since = s->changes ? s->since : NULL;
    struct stat info;
    autoclose int fd = open_found(s->top, path, since, s->report ? &s->report->opened : NULL);
    if (strlen(path) > PATH_LENGTH_MAX - NAME_MAX - 1) {
        /* A link may lead to it, so a directory that a run made this deep is made inaccessible. */
        s->skipped |= !since || fd < 0 || fstat(fd, &info) < 0 || !is_since(&info, *since) ||
                      fchmod(fd, 0) < 0;
        return NULL;
    }
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir)
        (void)take_fd(&fd);
    else if (errno != ENOENT) /* if no run has touched it, the user made it so */
        s->skipped |= errno != EACCES || !s->since ||
                      fstatat(s->top, path, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
                      is_since(&info, *s->since);
    return dir;
}

static bool is_searched(const struct search *s, int at, const struct dirent *item)
{
    struct stat info;
    if (item->d_type != DT_DIR && item->d_type != DT_UNKNOWN)
        return false;
    if (item->d_type == DT_DIR && item->d_ino != s->storage.st_ino)
        return true;
    return fstatat(at, item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode) &&
           (info.st_ino != s->storage.st_ino || info.st_dev != s->storage.st_dev);
}

/* At the top these are protected, and new ones are held back. */
static bool is_held_name(const char *path)
{
    for (struct names_held_name at = {0}; names_next_held(&at);)
        if (strcmp(at.path, path) == 0)
            return true;
    return false;
}

/* Many files of one reason hide no other. */
static void report_change(struct nested_report *report, const char *path, const char *reason)
{
    size_t same = 0, kept = 0;
    report->count++;
    for (const char *at = NULL; (at = str_list_next(&report->changed, at)); kept++) {
        at = str_list_next(&report->changed, at);
        same += strcmp(at, reason) == 0;
    }
    if (same < NESTED_KEPT_MAX && kept < NESTED_KEPT_MAX * NESTED_REPORTED_MAX) {
        str_list_add(&report->changed, path);
        str_list_add(&report->changed, reason);
    }
}

/* An entry that is no name of the table. A directory that is part of one may have been renamed to it: a rename changes its time
 * and that of the directory above. A link to one has all of its files. */
static enum watch watch_other(struct search *s, int dir, const char *name, enum watch watch)
{
    struct names_mark mark;
    struct stat info, above;
    if (names_is_package(s->path.data))
        return WATCH_NOTHING;
    if (watch == WATCH_MOVED || !names_judge(s->path.data, NULL, 0, S_IFLNK, &mark) ||
        is_held_name(s->path.data) || fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !is_since(&info, *s->since))
        return watch;
    if (S_ISLNK(info.st_mode))
        report_change(s->report, s->path.data, mark.reason);
    bool moved = S_ISDIR(info.st_mode) && fstat(dir, &above) == 0 && is_since(&above, *s->since);
    return moved ? WATCH_MOVED : watch;
}

/* Reports an entry, s->path, if it is one that something outside executes and was created or changed
 * since the run began. Returns what is looked for below it. */
static enum watch watch_entry(struct search *s, int dir, const char *name, enum watch watch)
{
    static const char below[] = "in a directory that programs outside execute";
    struct names_mark mark = {.reason = below};
    struct stat info;
    bool names = watch == WATCH_NAMES || watch == WATCH_MOVED;
    if (!s->report || watch == WATCH_NOTHING)
        return WATCH_NOTHING;
    if (names && !names_judge_end(s->path.data, &mark))
        return watch_other(s, dir, name, watch);
    if (is_held_name(s->path.data) || fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return WATCH_NOTHING;
    if (!is_since(&info, *s->since) && watch != WATCH_MOVED)
        return WATCH_ALL;
    if (names || !S_ISDIR(info.st_mode)) {
        report_change(s->report, s->path.data, mark.reason);
        return WATCH_NOTHING;
    }
    return WATCH_ALL;
}

/* Searches one directory, and adds its subdirectories to the queue. False if there are too many. */
static bool search_one(struct search *s, const char *at, enum watch watch)
{
    autodir DIR *dir = open_searched(s, *at ? at : ".");
    unsigned found = 0;
    s->path.length = 0;
    str_append(&s->path, at);
    size_t length = s->path.length;
    if (!dir)
        return true;
    for (const struct dirent *item; (item = files_next(dir));) {
        unsigned bit = find_bit(dirfd(dir), item->d_name);
        found |= bit;
        if (bit == HAS_GIT)
            continue;
        str_concat(&s->path, length > 0 ? "/" : "", item->d_name);
        if (s->path.failed)
            return false;
        enum watch below = bit ? watch : watch_entry(s, dirfd(dir), item->d_name, watch);
        if (is_searched(s, dirfd(dir), item)) {
            if (++s->count > NESTED_DIRS_MAX || s->queue.length - s->read > NESTED_QUEUE_MAX)
                return false;
            str_append_char(&s->queue, (char)below);
            str_list_add(&s->queue, s->path.data);
        }
        s->path.length = length;
        s->path.data[length] = '\0';
    }
    if (length > 0 && found & HAS_GIT)
        str_list_add(s->dirs, s->path.data);
    if (length > 0 && is_bare(found)) {
        str_concat(s->dirs, s->path.data, "/");
        str_append_bytes(s->dirs, "", 1);
    }
    return true;
}

/* Directories that a prompt or an editor reaches first come first: all of a depth before those
 * below them. */
static bool search(struct search *s)
{
    char at[PATH_LENGTH_MAX + 1];
    bool fits = search_one(s, "", WATCH_NAMES);
    while (fits && !s->queue.failed && s->read < s->queue.length) {
        const char *next = s->queue.data + s->read;
        enum watch watch = (enum watch)next[0];
        s->read += strlen(next) + 1;
        fits = !str_fill(at, sizeof at, next + 1) || search_one(s, at, watch);
        str_drop_done(&s->queue, &s->read);
    }
    return fits;
}

/* What is inside of another comes before it. */
static void reverse(struct str *list)
{
    struct str turned = {0};
    for (size_t end = list->length; end > 0;) {
        size_t start = end - 1;
        while (start > 0 && list->data[start - 1])
            start--;
        str_append_bytes(&turned, list->data + start, end - start);
        end = start;
    }
    turned.failed = turned.failed || list->failed;
    str_done(list);
    *list = turned;
}

int nested_find(int top, int storage, const struct timespec *since, bool changes,
                struct str *ret_dirs, struct nested_report *report, struct brig_error *err)
{
    struct search s = {
        .top = top, .dirs = ret_dirs, .since = since, .changes = changes, .report = report};
    if (storage >= 0)
        (void)fstatat(storage, "..", &s.storage, 0);
    bool ended = search(&s);
    reverse(ret_dirs);
    bool failed = s.path.failed || s.queue.failed || ret_dirs->failed;
    str_done(&s.path);
    str_done(&s.queue);
    return failed ? brig_fail_nomem(err) : !ended ? 2 : s.skipped;
}

void nested_identify(int top, const char *path, struct str *list)
{
    char git[PATH_LENGTH_MAX + 1], id[FILES_ID_MAX];
    autoclose int fd = -1;
    if (!str_fill(git, sizeof git, path, str_ends_with(path, "/") ? "." : "/.git") ||
        path_open_beneath(top, git, O_PATH | O_NOFOLLOW, 0, &fd, NULL) < 0 ||
        !files_identify(fd, "", id))
        return;
    str_concat(list, id, " ", path);
    str_append_bytes(list, "", 1);
}

bool nested_is_known(int top, const char *path, const struct str *list)
{
    autostr struct str one = {0};
    nested_identify(top, path, &one);
    return one.length > 0 && !one.failed && str_list_has(list, one.data);
}

/* Whether an entry was created, moved here or changed after the start of the run. */
static bool is_new(int dir, const char *name, struct timespec since, mode_t *ret_mode)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret_mode = info.st_mode;
    return is_since(&info, since);
}

/* Whether a part of a git directory that git obeys has changed. */
static bool has_new_part(int git_dir, struct timespec since)
{
    static const char *const parts[] = {
        "HEAD", "config", "config.worktree", "hooks", "commondir", "objects", "refs"};
    mode_t mode;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (is_new(git_dir, parts[i], since, &mode))
            return true;
    return false;
}

/* Reads a small file that a jail has written; false if it is not a regular file. */
static bool read_text(int dir, const char *name, char text[REPO_POINTER_MAX])
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return false;
    ssize_t length = read(fd, text, REPO_POINTER_MAX - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* ---- recreating them ---- */

/* A granted directory after a run. */
struct nested {
    const struct guard *guard;
    const struct root *root;
    struct str *notes;
};

/* Creates a repository in `dir` from the untrusted git directory `old`, even if its commits cannot
 * be fetched. Returns 1, or 0 if `old` is not a repository. */
static int recreate(const struct nested *nested, int dir, int old, int folder,
                    struct brig_error *err)
{
    struct private_git p;
    int status = private_wrap(folder, old, dir, &p, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < nested->guard->tree_count && status == 0; i++) {
        const struct tree *tree = &nested->guard->trees[i];
        const char *dest = tree->dest ? tree->dest : tree->private_git.top_path;
        if (tree->has_private && dest)
            status = private_borrow(&p, &tree->private_git, dest, err);
    }
    if (status < 0) {
        private_done(&p);
        return status;
    }
    struct plan_part part = {.p = &p};
    struct brig_error failure = {0};
    const struct plan_options options = {.git = &nested->guard->git};
    run_name_space(nested->guard, 0, part.space);
    status = private_recreate(&nested->guard->git, &p, err);
    int finished = status > 0 ? plan_complete(&options, &part, &failure) : 0;
    if (status > 0 && private_place(&p, finished < 0 ? NULL : &failure) < 0)
        finished = finished < 0 ? finished : BRIG_E_SYSTEM;
    if (finished < 0) {
        status = finished;
        if (err)
            *err = failure;
    }
    if (part.report.notes.length > 0)
        str_append(nested->notes, part.report.notes.data);
    plan_report_done(&part.report);
    private_done(&p);
    return status;
}

static void note_anew(const struct nested *nested, const char *path)
{
    str_appendf(nested->notes,
                "git: the new repository '%s' was made anew, without its config and hooks\n",
                str_shown(path).text);
}

/* Gives the owner write permission for a directory, which a jail may have removed. */
static void make_writable(int dir)
{
    struct stat info;
    if (fstat(dir, &info) == 0 && (info.st_mode & 0700) != 0700)
        (void)fchmod(dir, (info.st_mode & 07777) | 0700);
}

/* Without HEAD, git does not accept a directory as a repository. The jail may have made HEAD.jail:
 * renameat() fails if it is a directory, and does nothing but succeeds if it is a hard link to HEAD. */
static bool hide_head(int git_dir)
{
    char name[48] = "HEAD.jail";
    if (files_exists(git_dir, name) && files_random_name("HEAD.jail-", name, sizeof name, NULL) < 0)
        return false;
    return (renameat(git_dir, "HEAD", git_dir, name) == 0 || errno == ENOENT) &&
           !files_exists(git_dir, "HEAD");
}

/* Renames the git directory, creates a new one and deletes the old one. If not everything in it
 * could be fetched, it keeps its new name and loses HEAD, so that git outside does not accept it as
 * a repository. */
static int make_anew(const struct nested *nested, int dir, const char *path, int folder,
                     struct brig_error *err)
{
    char aside[48];
    int status = files_random_name(".git.brig-", aside, sizeof aside, err);
    if (status < 0)
        return status;
    make_writable(dir);
    if (renameat2(dir, ".git", dir, aside, RENAME_NOREPLACE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
    autoclose int old = open_any(dir, aside, &nested->guard->began);
    if (old < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", aside);
    status = recreate(nested, dir, old, folder, err);
    if (status < 0 || (status == 0 && files_exists(old, "HEAD"))) {
        if (!hide_head(old))
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s/HEAD'", aside);
        str_appendf(nested->notes,
                    "git: the new repository '%s' could not be made anew%s%s. What was its git "
                    "directory is now '%s', with HEAD.jail instead of HEAD\n",
                    str_shown(path).text, status < 0 ? ": " : "",
                    status < 0 && err ? err->message : "", aside);
        return 0;
    }
    if (status == 0) { /* not a repository, but `git init` would make it one */
        if (unlinkat(dir, aside, AT_REMOVEDIR) == 0)
            return 0;
        (void)fchmod(old, 0);
        str_appendf(nested->notes, "git: '%s/.git' is not a repository, and is now '%s'\n",
                    str_shown(path).text, aside);
        return 0;
    }
    note_anew(nested, path);
    return tree_remove(dir, aside, err);
}

/* Handles a `.git` file that leads to a submodule's directory in a private git directory; the path
 * in the file is looked up only there. Returns 1, or 0 if there is none. */
static int make_submodule(const struct nested *nested, int dir, const char *path, int folder,
                          struct brig_error *err)
{
    char text[REPO_POINTER_MAX];
    const char *modules = read_text(dir, ".git", text) ? strstr(text, "/modules/") : NULL;
    for (size_t i = 0; modules && i < nested->guard->tree_count; i++) {
        const struct tree *tree = &nested->guard->trees[i];
        autoclose int old = -1;
        if (!tree->has_private ||
            path_open_beneath(tree->private_git.sealed.dir, modules + 1,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &old, NULL) < 0)
            continue;
        /* Renamed until it is done, so that it is found again after a failure. */
        if (renameat(dir, ".git", dir, SUBMODULE_LINK) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
        int status = recreate(nested, dir, old, folder, err);
        if (status < 0 && renameat2(dir, SUBMODULE_LINK, dir, ".git", RENAME_NOREPLACE) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
        (void)unlinkat(dir, SUBMODULE_LINK, 0);
        if (status > 0)
            note_anew(nested, path);
        return status < 0 ? status : 1;
    }
    return 0;
}

static int remove_pointer(const struct nested *nested, int dir, const char *path,
                          struct brig_error *err)
{
    if (unlinkat(dir, ".git", 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s/.git'", path);
    str_appendf(nested->notes,
                "git: '%s/.git' led to a repository of the jail's own and was removed\n",
                str_shown(path).text);
    return 0;
}

static int treat_bare(const struct nested *nested, const char *path, struct brig_error *err)
{
    char text[PATH_LENGTH_MAX + 1];
    (void)snprintf(text, sizeof text, "%.*s", (int)strlen(path) - 1, path);
    autoclose int dir = open_found(nested->root->held.top, text, &nested->guard->began, NULL);
    struct stat info;
    if (dir < 0)
        return 0;
    if (fstat(dir, &info) == 0 && is_since(&info, nested->guard->began))
        make_writable(dir);
    if (!has_new_part(dir, nested->guard->began))
        return 0;
    if (!hide_head(dir))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s/HEAD'",
                         str_shown(text).text);
    str_appendf(
        nested->notes,
        "git: '%s' is a new bare repository, whose config and hooks git would obey. Its HEAD "
        "was renamed to HEAD.jail\n",
        str_shown(text).text);
    return 0;
}

static int treat(const struct nested *nested, const char *path, int folder, struct str *files,
                 struct brig_error *err)
{
    autoclose int dir = open_found(nested->root->held.top, path, &nested->guard->began, NULL);
    mode_t mode = 0;
    if (dir < 0)
        return errno == ENOENT
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(path).text);
    bool new = is_new(dir, ".git", nested->guard->began, &mode);
    autoclose int git = files_open_dir(dir, ".git");
    if (!new && (git < 0 || !has_new_part(git, nested->guard->began)))
        return 0;
    if (git >= 0 && files_is_mount_point(git))
        return 0;
    if (!S_ISDIR(mode) && !S_ISREG(mode)) /* a link, or a type that git does not read */
        return remove_pointer(nested, dir, path, err);
    int status = S_ISDIR(mode) ? make_anew(nested, dir, path, folder, err)
                               : make_submodule(nested, dir, path, folder, err);
    if (status < 0)
        return brig_wrap(err, status, "the new repository '%s'", str_shown(path).text);
    if (status == 0 && S_ISREG(mode))
        str_list_add(files, path);
    return 0;
}

/* Creates a temporary directory in the storage for it. */
static int treat_in(const struct nested *nested, const char *path, size_t *count, struct str *files,
                    struct brig_error *err)
{
    char name[32];
    autoclose int own = -1;
    (void)snprintf(name, sizeof name, "nested-%zu", *count);
    int status = files_make_dir(nested->guard->run, name, &own, err);
    if (status == 0)
        status = treat(nested, path, own, files, err);
    if (own >= 0 && files_exists(own, "base"))
        ++*count;
    return status;
}

/* Renames HEAD, so that git does not accept it as a repository, or removes a pointer file. */
static bool disarm(const struct nested *nested, const char *path)
{
    autoclose int dir = open_found(nested->root->held.top, path, &nested->guard->began, NULL);
    if (str_ends_with(path, "/")) /* it is bare */
        return dir >= 0 && hide_head(dir);
    autoclose int git = dir < 0 ? -1 : open_any(dir, ".git", &nested->guard->began);
    if (git < 0)
        return dir >= 0 && (unlinkat(dir, ".git", 0) == 0 || errno == ENOENT);
    return hide_head(git);
}

int nested_treat(const struct guard *guard, const struct root *root, struct str *ret_files,
                 struct nested_report *report, struct str *notes, struct brig_error *err)
{
    const struct nested *const nested = &(struct nested){guard, root, notes};
    autostr struct str dirs = {0};
    int status = nested_find(nested->root->held.top, nested->guard->storage, &nested->guard->began,
                             true, &dirs, report, err);
    bool incomplete = status > 0;
    if (incomplete)
        str_appendf(nested->notes,
                    "git: '%s' has more than %d directories, or some that cannot be read: not all "
                    "were searched for new repositories, and for files that programs outside "
                    "execute\n",
                    str_shown(nested->root->held.path).text, NESTED_DIRS_MAX);
    size_t count = 0;
    bool failed = false;
    for (const char *at = NULL; status >= 0 && (at = str_list_next(&dirs, at));) {
        if (nested_is_known(nested->root->held.top, at, &nested->root->known))
            continue;
        struct brig_error failure = {0};
        report->has_new = true;
        int treated = str_ends_with(at, "/") ? treat_bare(nested, at, &failure)
                      : count < TREATED_MAX
                          ? treat_in(nested, at, &count, ret_files, &failure)
                          : brig_fail(&failure, BRIG_E_INVALID, 0,
                                      "there are more than %d new repositories", TREATED_MAX);
        if (treated >= 0)
            continue;
        /* The others are still handled; this one is disarmed. */
        bool disarmed = disarm(nested, at);
        str_appendf(nested->notes, "git: the new repository '%s': %s%s\n", str_shown(at).text,
                    failure.message, disarmed ? ". Its HEAD was renamed to HEAD.jail" : "");
        failed = failed || !disarmed;
    }
    if (status >= 0 && failed)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "not every new repository in '%s' could be treated",
                         str_shown(nested->root->held.path).text);
    return status < 0 ? status : incomplete;
}

/* Whether this is a worktree of one of the initial repositories of the run. */
static bool is_worktree(const struct nested *nested, const struct repo *repo)
{
    for (size_t i = 0; i < nested->guard->tree_count; i++)
        if (repo->kind == REPO_FILE && nested->guard->trees[i].has_private &&
            str_equal(nested->guard->trees[i].private_git.repo.common_path, repo->common_path))
            return true;
    return false;
}

int nested_check(const struct guard *guard, const struct root *root, const struct str *files,
                 struct str *notes, struct brig_error *err)
{
    const struct nested *const nested = &(struct nested){guard, root, notes};
    int status = 0;
    for (const char *at = NULL; (at = str_list_next(files, at));) {
        autoclose int dir = -1;
        struct repo repo = REPO_INIT;
        struct stat info;
        if (path_open_beneath(nested->root->held.top, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                              &dir, NULL) < 0 ||
            fstatat(dir, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(info.st_mode))
            continue;
        if (repo_find(dir, git_owner(&guard->git), &repo, NULL) < 0 || !is_worktree(nested, &repo))
            status = remove_pointer(nested, dir, at, err) < 0 ? BRIG_E_SYSTEM : status;
        repo_done(&repo);
    }
    return status;
}

/* ---- what a run has changed ---- */

void nested_restore(const struct root *root, struct nested_report *report)
{
    reverse(&report->opened);
    for (const char *at = NULL; (at = str_list_next(&report->opened, at));) {
        char *path;
        mode_t mode = (mode_t)strtoul(at, &path, 8);
        autoclose int dir = -1;
        if (*path == ' ' &&
            path_open_beneath(root->held.top, path + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &dir,
                              NULL) == 0)
            (void)chmod(path_proc(dir).text, mode);
    }
}

/* Whether a path is one that is held back from the top of another granted directory. */
static bool is_held_elsewhere(const struct guard *guard, const char *path)
{
    for (size_t i = 0; i < guard->root_count; i++) {
        const char *below = path_below(guard->roots[i].held.path, path);
        if (below && is_held_name(below))
            return true;
    }
    return false;
}

void nested_tell(const struct guard *guard, const struct nested_report *reports, struct str *notes)
{
    size_t count = 0, named = 0;
    char cwd[PATH_LENGTH_MAX + 1], path[PATH_LENGTH_MAX + 1];
    autostr struct str reasons = {0};
    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    for (size_t i = 0; i < guard->root_count; i++) {
        const char *root = guard->roots[i].held.path, *reason;
        count += reports[i].count;
        for (const char *at = NULL; (at = str_list_next(&reports[i].changed, at)); at = reason) {
            reason = str_list_next(&reports[i].changed, at);
            if (!str_fill(path, sizeof path, root, "/", at))
                continue;
            if (is_held_elsewhere(guard, path)) {
                count--;
                continue;
            }
            if (named == NESTED_REPORTED_MAX || str_list_has(&reasons, reason))
                continue;
            str_list_add(&reasons, reason);
            str_appendf(notes, "%s%s (%s)",
                        named++ > 0 ? ", " : "new or changed, and executed outside: ",
                        str_shown(strcmp(root, cwd) == 0 ? at : path).text, reason);
        }
    }
    if (named > 0 && count > named)
        str_appendf(notes, " and %zu more; git status lists new and changed files", count - named);
    if (named > 0)
        str_append(notes, "\n");
}

/* ---- worktrees ---- */

#define WORKTREES_MAX 64

/* Creates a worktree in the storage, moves its `.git` file into the directory and lets git repair
 * the links. The index is then that of the branch, and the files are unchanged. */
static int adopt(const struct git *git, const struct private_git *outer, int dir, const char *path,
                 const char *branch, struct brig_error *err)
{
    static const char name[] = "worktree";
    autofree char *folder = NULL;
    char made[PATH_LENGTH_MAX + 1], whole[PATH_LENGTH_MAX + 1];
    int status = tree_remove(outer->folder, name, err);
    if (status == 0)
        status = repo_path_of(outer->folder, &folder, err);
    if (status < 0)
        return status;
    if (!str_fill(made, sizeof made, folder, "/", name) ||
        !str_fill(whole, sizeof whole, outer->top_path, "/", path))
        return 1;
    const char *const add[] = {"worktree", "add", "-q", "--no-checkout", "--", made, branch, NULL};
    const char *const repair[] = {"worktree", "repair", whole, NULL};
    static const char *const fill[] = {"read-tree", "HEAD", NULL};
    struct repo repo = REPO_INIT;
    struct git_call call = {.words = add, .git_dir = outer->repo.git_dir};
    status = git_run(git, &call, err);
    if (status != 0)
        return status;
    autoclose int from = files_open_dir(outer->folder, name);
    if (unlinkat(dir, ".git", 0) < 0 || from < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot replace '%s/.git'",
                         str_shown(path).text);
    status = copying_file(from, ".git", dir, ".git", err);
    if (status > 0)
        status = tree_remove(outer->folder, name, err);
    call.words = repair;
    if (status == 0)
        status = git_run(git, &call, err);
    if (status == 0)
        status = repo_find(dir, geteuid(), &repo, err);
    if (status == 0 && repo.kind == REPO_FILE &&
        str_equal(repo.common_path, outer->repo.common_path))
        status = git_run(git, &(struct git_call){.words = fill, .git_dir = repo.git_dir}, err);
    repo_done(&repo);
    return status;
}

/* Handles one entry of `worktrees` in the private directory; every file in it is untrusted. */
static int treat_worktree(const struct git *git, const struct private_git *outer, int entry,
                          struct str *notes, struct brig_error *err)
{
    char back[REPO_POINTER_MAX], head[REPO_POINTER_MAX];
    size_t length = strlen(outer->top_path);
    autoclose int dir = -1;
    struct stat info;
    if (!read_text(entry, "gitdir", back) || !read_text(entry, "HEAD", head) ||
        !path_is_beneath(outer->top_path, back) || strlen(back) < length + sizeof "/x/.git" - 1 ||
        strcmp(back + strlen(back) - 5, "/.git") != 0)
        return 0;
    back[strlen(back) - 5] = '\0';
    const char *path = back + length + 1;
    if (path_open_beneath(outer->top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) <
            0 ||
        fstatat(dir, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
        return 0;
    static const char prefix[] = "ref: ";
    bool branch = strncmp(head, prefix, 5) == 0 && refs_is_safe(head + 5) &&
                  str_starts_with(head + 5, "refs/heads/");
    int status = branch ? adopt(git, outer, dir, path, head + 5 + strlen("refs/heads/"), err) : 1;
    if (status == 0)
        str_appendf(notes, "git: the worktree '%s' was added\n", str_shown(path).text);
    if (status <= 0)
        return status;
    (void)unlinkat(dir, ".git", 0);
    str_appendf(notes,
                "git: '%s' was a worktree in the jail; its files are here, but no worktree\n",
                str_shown(path).text);
    return 0;
}

int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err)
{
    autodir DIR *dir = outer->repo.git_dir < 0 ? NULL : files_list(outer->sealed.dir, "worktrees");
    const struct dirent *item;
    int status = 0;
    for (int i = 0; status >= 0 && i < WORKTREES_MAX && dir && (item = files_next(dir)); i++) {
        autoclose int entry = files_open_dir(dirfd(dir), item->d_name);
        if (entry >= 0)
            status = treat_worktree(git, outer, entry, notes, err);
    }
    return status;
}
