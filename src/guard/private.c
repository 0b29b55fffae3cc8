/* SPDX-License-Identifier: MIT */
#include "guard/private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/tree.h"
#include "guard/config.h"
#include "guard/fetch.h"
#include "guard/files.h"
#include "guard/lfs.h"

#define ABOUT_MAX 65536
#define LOG_MAX ((off_t)1 << 20) /* longer reflogs are left out */
#define CACHE_NAME_MAX 160
#define NEW "new" /* in the folder: a repository that is made for the working tree */

/* ---- copying ---- */

/* Directories of git that hold state, with the endings that are left out. Per worktree are those that git
 * keeps in the git directory of a linked worktree; the others are in the common directory. */
static const struct {
    const char *name;
    const char *except;
    bool per_worktree;
} directories[] = {
    {"refs", ".lock", false},     {"reftable", ".lock", false},    {"info", ".lock", false},
    {"hooks", ".sample", false},  {"rebase-merge", ".lock", true}, {"rebase-apply", ".lock", true},
    {"sequencer", ".lock", true},
};

enum copied {
    FOR_JAIL,
    FOR_BASE,   /* refs and index, and nothing else */
    FOR_RESUME, /* work in progress; refs are those of the repository */
};

/* Whether a file right in a git directory is copied: config is handled apart, others point elsewhere. */
static bool is_copied(const char *name, enum copied copied)
{
    static const char *const pointers[] = {"config", "config.worktree", "commondir",
                                           "gitdir", "gc.pid",          "locked"};
    static const char *const refs[] = {"packed-refs", "shallow"};
    for (size_t i = 0; i < ARRAY_LENGTH(pointers); i++)
        if (strcmp(name, pointers[i]) == 0)
            return false;
    for (size_t i = 0; i < ARRAY_LENGTH(refs); i++)
        if (strcmp(name, refs[i]) == 0)
            return copied != FOR_RESUME;
    if (copied == FOR_BASE)
        return strcmp(name, "HEAD") == 0 || strcmp(name, "index") == 0 ||
               str_starts_with(name, "sharedindex.");
    return !str_ends_with(name, ".lock");
}

static int copy_top_files(int from, int to, enum copied copied, struct brig_error *err)
{
    autoclose int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the git directory");
    (void)take_fd(&fd);
    int status = 0;
    const struct dirent *item;
    while (status >= 0 && (item = readdir(dir)))
        if ((item->d_type == DT_REG || item->d_type == DT_UNKNOWN) &&
            is_copied(item->d_name, copied))
            status = copying_file(from, item->d_name, to, item->d_name, err);
    return status < 0 ? status : 0;
}

/* The reflogs of HEAD, not for the base, and of the stash: the others would have to be looked for ref by ref. */
static int copy_logs(int git_dir, int common, int to, bool base, struct brig_error *err)
{
    const struct {
        int from;
        const char *path, *name;
    } logs[] = {{git_dir, "logs", "HEAD"}, {common, "logs/refs", "stash"}};
    int status = 0;
    for (size_t i = base ? 1 : 0; i < ARRAY_LENGTH(logs) && status >= 0; i++) {
        struct stat info;
        autoclose int from =
            openat(logs[i].from, logs[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0 || fstatat(from, logs[i].name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            info.st_size > LOG_MAX)
            continue;
        (void)mkdirat(to, "logs", 0755);
        if (mkdirat(to, logs[i].path, 0755) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s'", logs[i].path);
        autoclose int made = openat(to, logs[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        status = made < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", logs[i].path)
                          : copying_file(from, logs[i].name, made, logs[i].name, err);
    }
    return status < 0 ? status : 0;
}

/* Copies the state of a repository, all but objects and config. For the base the parts that only the jail
 * needs are left out. */
static int copy_state(const struct repo *repo, int to, bool base, struct brig_error *err)
{
    bool linked = repo->kind == REPO_FILE && strcmp(repo->git_path, repo->common_path) != 0;
    int status = linked ? copy_top_files(repo->common, to, base ? FOR_BASE : FOR_JAIL, err) : 0;
    if (status == 0)
        status = copy_top_files(repo->git_dir, to, base ? FOR_BASE : FOR_JAIL, err);
    for (size_t i = 0; i < ARRAY_LENGTH(directories) && status >= 0; i++) {
        if (base && strcmp(directories[i].name, "refs") != 0 &&
            strcmp(directories[i].name, "reftable") != 0)
            continue;
        int from = directories[i].per_worktree ? repo->git_dir : repo->common;
        status = copying_tree(from, directories[i].name, to, directories[i].name,
                              directories[i].except, err);
    }
    if (status >= 0 && linked) /* refs/bisect and the like */
        status = copying_tree(repo->git_dir, "refs", to, "refs", ".lock", err);
    if (status >= 0)
        status = copy_logs(repo->git_dir, repo->common, to, base, err);
    return status < 0 ? status : 0;
}

/* ---- objects ---- */

static int make_directory(int at, const char *name, int *ret_fd, struct brig_error *err)
{
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s' in the jail's storage",
                         name);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s' in the jail's storage", name);
    *ret_fd = fd;
    return 0;
}

/* An empty object directory whose alternates are the real ones, at their fixed paths in the jail. */
static int make_objects(const struct git_sealed *sealed, struct brig_error *err)
{
    autoclose int objects = -1;
    autoclose int info = -1;
    autoclose int pack = -1;
    autostr struct str text = {0};
    for (size_t i = 0; i < sealed->object_count; i++)
        str_concat(&text, sealed->object_dests[i], "\n");
    int status = make_directory(sealed->dir, "objects", &objects, err);
    if (status == 0)
        status = make_directory(objects, "info", &info, err);
    if (status == 0)
        status = make_directory(objects, "pack", &pack, err);
    if (status < 0 || text.failed)
        return status < 0 ? status : brig_fail_nomem(err);
    return text.length > 0 ? files_write(info, "alternates", text.data, text.length, err) : 0;
}

/* Where the jail sees an object directory. LFS objects are beside it. */
static int name_objects(unsigned number, size_t i, char **ret_path, struct brig_error *err)
{
    if (asprintf(ret_path, PRIVATE_MOUNTS "/%u.%zu/objects", number, i) < 0) {
        *ret_path = NULL;
        return brig_fail_nomem(err);
    }
    return 0;
}

static int find_objects(const struct repo *repo, struct private_git *p, struct brig_error *err)
{
    struct git_sealed *sealed = &p->sealed;
    int status = repo_objects(repo, sealed->objects, &sealed->object_count, err);
    for (size_t i = 0; i < sealed->object_count; i++)
        p->lfs[i] = lfs_open_beside(sealed->objects[i]);
    for (size_t i = 0; i < sealed->object_count && status == 0; i++)
        status = name_objects(p->number, i, &sealed->object_dests[i], err);
    return status;
}

/* ---- caching what git says about a file ---- */

/* The name under which an answer about a file is kept; false if the file is missing. It contains
 * everything that changes when the file does. */
static bool cache_name(int dir, const char *file, const char *kind, char ret_name[CACHE_NAME_MAX])
{
    struct stat info;
    if (fstatat(dir, file, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    (void)snprintf(ret_name, CACHE_NAME_MAX, "%s-%jx-%jx-%jx-%jx.%lx-%jx.%lx", kind,
                   (uintmax_t)info.st_dev, (uintmax_t)info.st_ino, (uintmax_t)info.st_size,
                   (uintmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                   (uintmax_t)info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    return true;
}

/* Removes answers about earlier states of the same file: the name up to the third dash is the file. */
static void forget_older(int cache, const char *name)
{
    const char *end = strchr(strchr(strchr(name, '-') + 1, '-') + 1, '-') + 1;
    autoclose int fd = openat(cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    if (!dir)
        return;
    (void)take_fd(&fd);
    while ((item = readdir(dir)))
        if (strncmp(item->d_name, name, (size_t)(end - name)) == 0)
            (void)unlinkat(cache, item->d_name, 0);
}

static void write_cached(int cache, const char *name, const struct str *text)
{
    if (cache < 0 || text->failed)
        return;
    forget_older(cache, name);
    (void)files_write(cache, name, text->data, text->length, NULL);
}

int private_list_links(const struct git *git, int cache, const struct repo *repo,
                       struct str *ret_links, struct brig_error *err)
{
    static const char *const words[] = {"ls-files", "-s", "-z", NULL};
    autostr struct str says = {0};
    char name[CACHE_NAME_MAX];
    if (!cache_name(repo->git_dir, "index", "links", name) || files_read(cache, name, ret_links))
        return 0;
    int status = git_run(git,
                         &(struct git_call){.words = words,
                                            .git_dir = repo->git_dir,
                                            .each = git_keep_link,
                                            .data = ret_links,
                                            .says = &says},
                         err);
    for (size_t i = 0; i < says.length; i++)
        if (isspace((unsigned char)says.data[i]))
            says.data[i] = ' ';
    if (status != 0)
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SETUP, 0, "git cannot read the index of '%s': %s",
                                      repo->git_path, str_shown(says.data ? says.data : "").text);
    write_cached(cache, name, ret_links);
    return 0;
}

/* The config for the jail, without credentials: "REMOVED…\0" and the text of the file. */
static int find_config(const struct git *git, int cache, int folder, int dir, const char *file,
                       struct str *ret_text, struct str *notes, struct brig_error *err)
{
    char name[CACHE_NAME_MAX];
    autostr struct str answer = {0};
    if (!cache_name(dir, file, "config", name))
        return 0;
    if (!files_read(cache, name, &answer)) {
        int status = config_sanitise(git, dir, file, folder, &answer, err);
        if (status < 0)
            return status;
        write_cached(cache, name, &answer);
    }
    size_t said = strnlen(answer.data ? answer.data : "", answer.length);
    str_append_bytes(notes, answer.data, said);
    if (said < answer.length)
        str_append_bytes(ret_text, answer.data + said + 1, answer.length - said - 1);
    return ret_text->failed ? brig_fail_nomem(err) : 0;
}

/* ---- about ---- */

static int write_about(const struct private_git *p, struct brig_error *err)
{
    autostr struct str text = {0};
    str_appendf(&text, "%u%c%d%c%jx%c%jx%c%jx%c%jx%c%" PRIx64, p->number, 0, (int)p->kind, 0,
                (uintmax_t)p->top_dev, 0, (uintmax_t)p->top_ino, 0, (uintmax_t)p->git_dev, 0,
                (uintmax_t)p->git_ino, 0, p->signature);
    const char *const paths[] = {p->top_path, p->git_path ? p->git_path : "",
                                 p->common_path ? p->common_path : ""};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        str_append_bytes(&text, "", 1);
        str_append(&text, paths[i]);
    }
    str_append_bytes(&text, "", 1);
    for (size_t i = 0; i < p->sealed.object_count; i++) {
        autofree char *path = NULL;
        int status = repo_path_of(p->sealed.objects[i], &path, err);
        if (status < 0)
            return status;
        str_append_bytes(&text, path, strlen(path) + 1);
    }
    return text.failed ? brig_fail_nomem(err)
                       : files_write(p->folder, "about", text.data, text.length, err);
}

/* The next text of `about`; NULL at its end. */
static const char *next_text(const char **at, const char *end)
{
    const char *text = *at;
    if (text >= end)
        return NULL;
    *at = text + strlen(text) + 1;
    return text;
}

static int open_checked(const char *path, dev_t dev, ino_t ino, int *ret_fd, struct brig_error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_dev != dev || info.st_ino != ino)
        return brig_fail(err, BRIG_E_SETUP, fd < 0 ? errno : ESTALE,
                         "'%s' is not the directory it was", str_shown(path).text);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int read_about(struct private_git *p, const char *text, const char *end,
                      struct brig_error *err)
{
    uintmax_t numbers[7] = {0};
    const char *at = text, *word;
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        numbers[i] = (word = next_text(&at, end)) ? strtoumax(word, NULL, i < 2 ? 10 : 16) : 0;
    const char *top = next_text(&at, end), *git = next_text(&at, end),
               *common = next_text(&at, end);
    if (!top || !git || !common)
        return brig_fail(err, BRIG_E_SETUP, 0, "an interrupted transfer has no 'about' file");
    p->number = (unsigned)numbers[0];
    p->kind = (enum repo_kind)numbers[1];
    p->top_dev = (dev_t)numbers[2];
    p->top_ino = (ino_t)numbers[3];
    p->git_dev = (dev_t)numbers[4];
    p->git_ino = (ino_t)numbers[5];
    p->signature = numbers[6];
    int status = str_copy(top, &p->top_path, err);
    if (status == 0 && *git)
        status = str_copy(git, &p->git_path, err);
    if (status == 0 && *common)
        status = str_copy(common, &p->common_path, err);
    if (status == 0)
        status = open_checked(p->top_path, p->top_dev, p->top_ino, &p->top, err);
    if (status == 0 && p->git_path)
        status = open_checked(p->git_path, p->git_dev, p->git_ino, &p->git, err);
    while (status == 0 && p->sealed.object_count < REPO_OBJECTS_MAX &&
           (word = next_text(&at, end))) {
        size_t i = p->sealed.object_count;
        int fd = open(word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s'", str_shown(word).text);
        p->sealed.objects[i] = fd;
        p->lfs[i] = -1; /* only for the jail */
        p->sealed.object_count++;
        status = name_objects(p->number, i, &p->sealed.object_dests[i], err);
    }
    return status;
}

/* ---- changes ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_file(uint64_t hash, int dir, const char *name)
{
    struct stat info = {0};
    (void)fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW);
    hash = mix(hash, &info.st_ino, sizeof info.st_ino);
    hash = mix(hash, &info.st_size, sizeof info.st_size);
    return mix(hash, &info.st_ctim, sizeof info.st_ctim);
}

/* Names, inodes and times of all directories below one: git replaces a ref by renaming a new file, so a
 * changed ref is a new inode, also if the clock has not moved on. Bounded in depth. */
static uint64_t mix_tree(uint64_t hash, int dir, const char *name)
{
    enum { DEPTH = 64 };
    DIR *levels[DEPTH];
    size_t depth = 0;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !(levels[0] = fdopendir(fd))) {
        if (fd >= 0)
            (void)close(fd);
        return mix(hash, "none", 4);
    }
    depth = 1;
    while (depth > 0) {
        const struct dirent *item = readdir(levels[depth - 1]);
        if (!item) {
            (void)closedir(levels[--depth]);
            continue;
        }
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        hash = mix(hash, item->d_name, strlen(item->d_name) + 1);
        hash = mix(hash, &item->d_ino, sizeof item->d_ino);
        hash = mix_file(hash, dirfd(levels[depth - 1]), item->d_name);
        if (item->d_type != DT_DIR || depth == DEPTH)
            continue;
        fd = openat(dirfd(levels[depth - 1]), item->d_name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && (levels[depth] = fdopendir(fd)))
            depth++;
        else if (fd >= 0)
            (void)close(fd);
    }
    return hash;
}

static uint64_t sign(int dir)
{
    static const char *const files[] = {"HEAD", "index", "packed-refs", "config", "shallow"};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        hash = mix_file(hash, dir, files[i]);
    return mix_tree(mix_tree(hash, dir, "refs"), dir, "reftable");
}

bool private_has_changed(const struct private_git *private_git)
{
    return sign(private_git->sealed.dir) != private_git->signature;
}

bool private_is_to_fetch(struct private_git *private_git)
{
    uint64_t now = sign(private_git->sealed.dir);
    if (now == private_git->signature || now == private_git->fetched)
        return false;
    private_git->fetched = now;
    return true;
}

/* ---- work in progress ---- */

#define KEPT_NAME_MAX 64

static void kept_name(const struct private_git *p, char ret_name[KEPT_NAME_MAX])
{
    (void)snprintf(ret_name, KEPT_NAME_MAX, PRIVATE_PENDING "%jx-%jx", (uintmax_t)p->top_dev,
                   (uintmax_t)p->top_ino);
}

int private_keep(const struct private_git *p, int storage, struct brig_error *err)
{
    char name[KEPT_NAME_MAX];
    kept_name(p, name);
    int status = tree_remove(storage, name, err);
    if (status == 0 && renameat(p->folder, "private", storage, name) < 0)
        status =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot keep the jail's private git directory");
    return status;
}

/* HEAD, index, objects and the state of a rebase or merge; refs are those of the repository. Only regular
 * files are copied: the jail may have left anything there. 1 if there was something. */
static int resume(const struct private_git *p, int storage, struct brig_error *err)
{
    static const char *const trees[] = {"objects", "rebase-merge", "rebase-apply", "sequencer"};
    char name[KEPT_NAME_MAX];
    kept_name(p, name);
    autoclose int kept =
        storage < 0 ? -1 : openat(storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (kept < 0)
        return 0;
    int status = copy_top_files(kept, p->sealed.dir, FOR_RESUME, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(trees) && status >= 0; i++)
        status = copying_tree(kept, trees[i], p->sealed.dir, trees[i], "alternates", NULL);
    if (status < 0) { /* the jail may have made it so, and the next run would fail like this one */
        char aside[KEPT_NAME_MAX + 8];
        (void)snprintf(aside, sizeof aside, "bad-%s", name);
        status = tree_remove(storage, aside, err);
        if (status == 0 && renameat(storage, name, storage, aside) < 0)
            status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", name);
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SETUP, 0,
                                      "the rebase or merge that an earlier run has left cannot be "
                                      "continued. It is put aside as '%s': start the command again",
                                      aside);
    }
    status = tree_remove(storage, name, err);
    return status < 0 ? status : 1;
}

/* ---- the whole ---- */

static int fill(const struct git *git, int cache, const struct repo *repo, struct private_git *p,
                struct str *notes, struct brig_error *err)
{
    static const char *const configs[] = {"config", "config.worktree"};
    int status = find_objects(repo, p, err);
    if (status == 0)
        status = copy_state(repo, p->sealed.dir, false, err);
    if (status == 0)
        status = copy_state(repo, p->base, true, err);
    if (status == 0)
        status = make_objects(&p->sealed, err);
    for (size_t i = 0; i < ARRAY_LENGTH(configs) && status == 0; i++) {
        autostr struct str config = {0};
        int from = i == 0 ? repo->common : repo->git_dir;
        status = find_config(git, cache, p->folder, from, configs[i], &config, notes, err);
        if (status == 0 && (i == 0 || config.length > 0))
            status = files_write(p->sealed.dir, configs[i], config.data, config.length, err);
        if (status == 0 && i == 0)
            status = files_write(p->base, configs[i], config.data, config.length, err);
    }
    return status;
}

static int identify(struct private_git *p, const struct repo *repo, struct brig_error *err)
{
    struct stat info;
    if (fstat(p->top, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the working tree");
    p->top_dev = info.st_dev;
    p->top_ino = info.st_ino;
    if (repo->kind == REPO_NONE)
        return repo_path_of(p->top, &p->top_path, err);
    if (fstat(repo->git_dir, &info) < 0 || (p->git = fcntl(repo->git_dir, F_DUPFD_CLOEXEC, 3)) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the git directory");
    p->git_dev = info.st_dev;
    p->git_ino = info.st_ino;
    int status = str_copy(repo->git_path, &p->git_path, err);
    if (status == 0)
        status = str_copy(repo->common_path, &p->common_path, err);
    return status < 0 ? status : repo_path_of(p->top, &p->top_path, err);
}

int private_build(const struct git *git, int folder, int storage, int cache, unsigned number,
                  int top, const struct repo *repo, struct private_git *ret_private,
                  struct str *notes, struct brig_error *err)
{
    struct private_git p = {.number = number,
                            .kind = repo->kind,
                            .folder = fcntl(folder, F_DUPFD_CLOEXEC, 3),
                            .base = -1,
                            .git = -1,
                            .top = fcntl(top, F_DUPFD_CLOEXEC, 3),
                            .sealed = {.dir = -1}};
    int status = p.folder < 0 || p.top < 0
                     ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor")
                     : identify(&p, repo, err);
    if (status == 0)
        status = make_directory(folder, "private", &p.sealed.dir, err);
    if (status == 0)
        status = make_directory(folder, "base", &p.base, err);
    if (status == 0 && repo->kind != REPO_NONE)
        status = fill(git, cache, repo, &p, notes, err);
    int resumed = 0;
    if (status == 0) /* from here on another run can complete it */
        status = write_about(&p, err);
    if (status == 0 && repo->kind != REPO_NONE)
        status = (resumed = resume(&p, storage, err)) < 0 ? resumed : 0;
    if (status == 0 && repo->kind == REPO_FILE) {
        char link[128];
        int length = snprintf(link, sizeof link, "gitdir: " PRIVATE_MOUNTS "/%u\n", number);
        status = files_write(folder, "link", link, (size_t)length, err);
    }
    p.resumed = resumed > 0;
    /* What was resumed has to be kept again, also if this run does nothing. */
    p.signature = status == 0 && resumed == 0 ? sign(p.sealed.dir) : 0;
    if (status == 0)
        status = write_about(&p, err);
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

/* The object format and the branch of a repository that a jail has made, both checked. */
static int ask_format(const struct git *git, const struct private_git *p, char ret_format[16],
                      char ret_branch[256], struct brig_error *err)
{
    /* A submodule's config names its working tree, which is not visible here. */
    static const char script[] =
        "git config --file " GIT_SEALED_DIR "/config --unset-all core.worktree\n"
        "git rev-parse --show-object-format && git symbolic-ref -q HEAD";
    autostr struct str text = {0};
    int status = git_run_sealed(git, &p->sealed, script, &text, err);
    if (status != 0)
        return status < 0 ? status : 0;
    char *rest = text.data;
    const char *format = strsep(&rest, "\n"), *head = rest ? strsep(&rest, "\n") : NULL;
    bool known = strcmp(format, "sha1") == 0 || strcmp(format, "sha256") == 0;
    (void)snprintf(ret_format, 16, "%s", known ? format : "sha1");
    bool safe = head && refs_is_safe(head) && str_starts_with(head, "refs/heads/");
    (void)snprintf(ret_branch, 256, "%s", safe ? head + strlen("refs/heads/") : "main");
    return 1;
}

/* A fresh repository in the storage, where no jail can write. */
static int init(const struct git *git, const struct private_git *p, const char *format,
                const char *branch, int *ret_dir, struct brig_error *err)
{
    char format_word[64], branch_word[300];
    (void)snprintf(format_word, sizeof format_word, "--object-format=%s", format);
    (void)snprintf(branch_word, sizeof branch_word, "--initial-branch=%s", branch);
    const char *const words[] = {"init", "-q", format_word, branch_word, NULL};
    int status = make_directory(p->folder, NEW, ret_dir, err);
    if (status == 0)
        status = git_run(git, &(struct git_call){.words = words, .dir = *ret_dir}, err);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_SETUP, 0, "git init failed for '%s'",
                                   str_shown(p->top_path).text);
}

int private_recreate(const struct git *git, struct private_git *p, struct brig_error *err)
{
    char format[16], branch[256];
    autoclose int dir = -1;
    struct repo repo = REPO_INIT;
    if (faccessat(p->sealed.dir, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int status = ask_format(git, p, format, branch, err);
    if (status <= 0)
        return status;
    status = init(git, p, format, branch, &dir, err);
    if (status == 0)
        status = repo_find(dir, geteuid(), &repo, err);
    if (status == 0 && repo.kind != REPO_DIRECTORY)
        status = brig_fail(err, BRIG_E_SETUP, 0, "git init made no repository for '%s'",
                           str_shown(p->top_path).text);
    if (status == 0)
        status = copy_state(&repo, p->base, true, err);
    if (status == 0)
        status = copying_file(repo.common, "config", p->base, "config", err);
    if (status >= 0) {
        free(p->top_path);
        p->top_path = NULL;
        status = identify(p, &repo, err);
    }
    if (status == 0) {
        p->kind = REPO_DIRECTORY;
        status = write_about(p, err); /* a later run goes on from here */
    }
    repo_done(&repo);
    return status < 0 ? status : 1;
}

/* Moves what is in a directory into another, HEAD last: without it git does not take the other for a repository. */
static int move_content(int from, int to, struct brig_error *err)
{
    autoclose int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the new repository");
    (void)take_fd(&fd);
    int status = 0;
    while (status >= 0) {
        item = readdir(dir);
        const char *name = item ? item->d_name : "HEAD";
        if (item &&
            (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "HEAD") == 0))
            continue;
        if (renameat(from, name, to, name) < 0) { /* on another filesystem, say */
            status = copying_file(from, name, to, name, err);
            if (status == 0)
                status = copying_tree(from, name, to, name, NULL, err);
        }
        if (!item)
            break;
    }
    return status < 0 ? status : 0;
}

int private_place(struct private_git *p, struct brig_error *err)
{
    autoclose int dir = openat(p->folder, NEW "/.git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct repo repo = REPO_INIT;
    if (dir < 0)
        return 0;
    (void)mkdirat(p->top, ".git", 0777);
    autoclose int to = openat(p->top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0 || !repo_is_empty(to))
        return brig_fail(err, BRIG_E_SETUP, to < 0 ? errno : 0,
                         "a repository that the run made cannot be put into '%s', where '.git' is "
                         "not an empty directory",
                         str_shown(p->top_path).text);
    int status = move_content(dir, to, err);
    if (status == 0)
        status = tree_remove(p->folder, NEW, err);
    if (status == 0)
        status = repo_find(p->top, geteuid(), &repo, err);
    if (status == 0 && repo.kind == REPO_DIRECTORY) {
        (void)close(p->git);
        p->git = -1;
        free(p->git_path);
        free(p->common_path);
        free(p->top_path);
        p->git_path = p->common_path = p->top_path = NULL;
        status = identify(p, &repo, err);
    }
    repo_done(&repo);
    return status;
}

int private_wrap(int folder, int dir, int top, struct private_git *ret_private,
                 struct brig_error *err)
{
    struct private_git p = {.kind = REPO_NONE,
                            .folder = fcntl(folder, F_DUPFD_CLOEXEC, 3),
                            .base = -1,
                            .git = -1,
                            .top = fcntl(top, F_DUPFD_CLOEXEC, 3),
                            .sealed = {.dir = fcntl(dir, F_DUPFD_CLOEXEC, 3)}};
    int status = p.folder < 0 || p.top < 0 || p.sealed.dir < 0
                     ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor")
                     : identify(&p, &REPO_INIT, err);
    if (status == 0)
        status = make_directory(folder, "base", &p.base, err);
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

int private_open(int folder, struct private_git *ret_private, struct brig_error *err)
{
    struct private_git p = {.folder = fcntl(folder, F_DUPFD_CLOEXEC, 3),
                            .base = -1,
                            .top = -1,
                            .git = -1,
                            .sealed = {.dir = -1}};
    autofree char *text = malloc(ABOUT_MAX + 1);
    autoclose int fd = openat(folder, "about", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int status = text ? 0 : brig_fail_nomem(err);
    ssize_t length = fd < 0 || !text ? 0 : pread(fd, text, ABOUT_MAX, 0);
    if (status == 0) {
        text[length > 0 ? length : 0] = '\0';
        status = read_about(&p, text, text + (length > 0 ? length : 0), err);
    }
    p.sealed.dir = openat(folder, "private", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    p.base = openat(folder, "base", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (status == 0 && (p.sealed.dir < 0 || p.base < 0))
        status =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open a directory in the jail's storage");
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

void private_close(const struct private_git *p)
{
    (void)unlinkat(p->folder, "about", 0);
}

bool private_is_open(int folder)
{
    return faccessat(folder, "about", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void private_done(struct private_git *p)
{
    const int fds[] = {p->folder, p->top, p->sealed.dir, p->base, p->git};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    for (size_t i = 0; i < p->sealed.object_count; i++) {
        (void)close(p->sealed.objects[i]);
        if (p->lfs[i] >= 0)
            (void)close(p->lfs[i]);
        free(p->sealed.object_dests[i]);
    }
    free(p->top_path);
    free(p->git_path);
    free(p->common_path);
    *p =
        (struct private_git){.folder = -1, .base = -1, .top = -1, .git = -1, .sealed = {.dir = -1}};
}
