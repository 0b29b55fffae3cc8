/* SPDX-License-Identifier: MIT */
#include "guard/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/tree.h"
#include "base/write.h"
#include "guard/held.h"
#include "guard/names.h"
#include "guard/nested.h"
#include "guard/outward.h"
#include "guard/private.h"
#include "guard/transfer.h"
#include "policy/policy.h"

#define ABOVE_MAX 64 /* directories that are looked at for the top of a repository */
#define MAKE_TRIES 16
#define ROOTS_MAX 256
#define NESTED_AFTER_S 1 /* after shorter runs a large tree is not searched for new repositories */
#define NESTED_EACH                                                                                \
    1000 /* directories that are searched before every run; more only if it was never done */
#define NESTED_MAX 32 /* repositories below a granted directory that get a private directory each */
#define FETCH_END_MS 15000
#define TREES_MAX 256 /* working trees of one run: projects and their submodules */
#define RUN_PREFIX "run-"
#define KEPT_PREFIX "kept-" /* a run whose transfer has failed twice */
#define MADE "made"         /* in the directory of a tree: `.git` is to be removed */
#define KNOWN "known-"
#define ROOTS_FILE "roots"
#define REPORT_MAX 65536
#define ORIGIN "protected"
#define ORIGIN_GIT "private git directory"

/* One working tree. */
struct tree {
    int top;
    char *dest;   /* in the jail */
    int made;     /* `.git`, an empty directory, with a shared lock; or -1 */
    bool removes; /* brig made it */
    bool has_private;
    struct private_git private_git;
    int link; /* the file that is mounted on `.git`, or -1 */
};

struct guard {
    struct git git;
    char *jail;
    int storage, cache;
    int run;       /* the run's directory, or -1 */
    char name[64]; /* of it */
    int lock;
    struct tree trees[TREES_MAX];
    size_t tree_count;
    int empty[TREES_MAX]; /* directories that cover submodules without a repository */
    size_t empty_count;
    struct held_root roots[ROOTS_MAX];
    struct str known[ROOTS_MAX]; /* of each, the directories that have a `.git`: see nested.h */
    size_t root_count;
    struct held_rules rules;
    int held;
    struct timespec began;
    pid_t fetching;  /* or 0 */
    bool unfinished; /* a transfer failed: its directory stays */
};

/* What adding rules needs to know. */
struct adding {
    struct guard *guard;
    struct brig_policy *policy;
    const struct guard_options *options;
    uid_t owner;
    struct str *notes;
    bool made_git; /* the working directory has a `.git` that brig made */
};

/* ---- rules ---- */

/* Makes the last grant one of the guard's own: it may lie in brig's storage. */
static void mark_own(struct brig_policy *policy)
{
    policy->grants[policy->grant_count - 1].own = true;
}

static int protect(struct adding *a, const char *source, const char *dest, const char *path,
                   struct brig_error *err)
{
    autofree char *from = NULL;
    autofree char *to = NULL;
    if (asprintf(&from, "%s/%s", source, path) < 0)
        from = NULL;
    if (asprintf(&to, "%s/%s", dest, path) < 0)
        to = NULL;
    if (!from || !to)
        return brig_fail_nomem(err);
    return brig_policy_grant(a->policy, BRIG_PROTECT, from, to, BRIG_GRANT_OPTIONAL, err);
}

/* The same where a symbolic link leads to, if the jail could write there. */
static int protect_everywhere(struct adding *a, const char *source, const char *dest,
                              const char *path, struct brig_error *err)
{
    char whole[PATH_LENGTH_MAX + 1];
    int status = protect(a, source, dest, path, err);
    if (status < 0 || !str_fill(whole, sizeof whole, source, "/", path))
        return status;
    autofree char *real = realpath(whole, NULL);
    if (!real || strcmp(real, whole) == 0)
        return 0;
    size_t count = a->policy->grant_count;
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct policy_grant *grant = &a->policy->grants[i];
        if (grant->access != BRIG_READ_WRITE || grant->own || !grant->source ||
            !path_is_beneath(grant->source, real) || strcmp(grant->source, real) == 0)
            continue;
        autofree char *from = strdup(grant->source);
        autofree char *to = strdup(grant->dest); /* the array moves when rules are added */
        status = from && to
                     ? protect(a, from, to, real + strlen(from) + (strcmp(from, "/") != 0), err)
                     : brig_fail_nomem(err);
    }
    return status;
}

/* A bare repository that was granted: git can fetch from it and push to it, and what git outside would execute is
 * read-only. */
static int protect_bare(struct adding *a, int top, const char *source, const char *dest,
                        struct brig_error *err)
{
    static const char *const parts[] = {"HEAD", "objects", "refs"};
    static const char *const files[] = {"config", "hooks", "commondir", "info"};
    struct stat info;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (fstatat(top, parts[i], &info, AT_SYMLINK_NOFOLLOW) < 0)
            return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && status == 0; i++)
        if (fstatat(top, files[i], &info, AT_SYMLINK_NOFOLLOW) == 0)
            status = protect_everywhere(a, source, dest, files[i], err);
    return status;
}

/* Existing files that execute something are read-only. */
static int protect_names(struct adding *a, int top, const char *source, const char *dest,
                         struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < names_count && status == 0; i++) {
        const char *path = names_rows[i].path;
        struct stat info;
        if (fstatat(top, path, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            !names_is_excepted(a->options->unprotect, a->options->unprotect_count, source, path))
            status = protect_everywhere(a, source, dest, path, err);
    }
    return status < 0 ? status : protect_bare(a, top, source, dest, err);
}

/* ---- storage ---- */

static int open_run(struct guard *guard, struct brig_error *err)
{
    uint64_t number = 0;
    if (guard->run >= 0)
        return 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(guard->name, sizeof guard->name, RUN_PREFIX "%016jx", (uintmax_t)number);
    /* Under another name first: without its lock it would be taken for one that was left behind. */
    char hidden[80];
    (void)snprintf(hidden, sizeof hidden, "new-%s", guard->name);
    if (mkdirat(guard->storage, hidden, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot create a directory in the jail's storage");
    autoclose int run = openat(guard->storage, hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int lock =
        run < 0 ? -1 : openat(run, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 ||
        renameat(guard->storage, hidden, guard->storage, guard->name) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot lock a directory in the jail's storage");
    guard->run = take_fd(&run);
    guard->lock = take_fd(&lock);
    return 0;
}

static int open_folder(int run, unsigned number, bool make, int *ret_fd, struct brig_error *err)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", number);
    if (make && mkdirat(run, name, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot create a directory in the jail's storage");
    *ret_fd = openat(run, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno,
                                   "cannot open a directory in the jail's storage")
                       : 0;
}

/* Texts that are each ended by a NUL, in a file of the storage. */
static int write_list(int dir, const char *name, const struct str *list, struct brig_error *err)
{
    autoclose int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = list->failed ? -ENOMEM : fd < 0 ? -errno : write_all(fd, list->data, list->length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's storage")
                      : 0;
}

/* False if there is no such file. */
static bool read_list(int dir, const char *name, struct str *ret_list)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size > (off_t)STR_LENGTH_MAX / 2)
        return false;
    str_done(ret_list);
    *ret_list = (struct str){0};
    char *to = info.st_size > 0 ? str_extend(ret_list, (size_t)info.st_size) : NULL;
    return info.st_size == 0 || (to && pread(fd, to, (size_t)info.st_size, 0) == info.st_size &&
                                 to[info.st_size - 1] == '\0');
}

/* The file in the cache with the repositories below a directory. */
static void name_nested(int top, char ret_name[64])
{
    struct stat info = {0};
    (void)fstat(top, &info);
    (void)snprintf(ret_name, 64, "nested-%jx-%jx", (uintmax_t)info.st_dev, (uintmax_t)info.st_ino);
}

/* ---- a working tree ---- */

static int grant_own(struct adding *a, enum brig_access access, int fd, const char *dest,
                     struct brig_error *err)
{
    int status = brig_policy_origin(a->policy, ORIGIN_GIT, err);
    if (status == 0)
        status = policy_grant_fd(a->policy, access, fd, dest, err);
    if (status < 0)
        return status;
    mark_own(a->policy);
    return brig_policy_origin(a->policy, ORIGIN, err);
}

/* Mounts the private directory on `.git`, or, where that is a file, at a fixed path that a file mounted on
 * `.git` names. */
static int grant_private(struct adding *a, struct tree *tree, struct brig_error *err)
{
    const struct private_git *p = &tree->private_git;
    autofree char *dest = NULL;
    char fixed[64];
    if (asprintf(&dest, "%s/.git", tree->dest) < 0) {
        dest = NULL;
        return brig_fail_nomem(err);
    }
    int status = 0;
    if (p->kind == REPO_FILE) {
        (void)snprintf(fixed, sizeof fixed, PRIVATE_MOUNTS "/%u", p->number);
        tree->link = openat(p->folder, "link", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        status = tree->link < 0
                     ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the jail's '.git' file")
                     : grant_own(a, BRIG_READ_ONLY, tree->link, dest, err);
        if (status == 0)
            status = grant_own(a, BRIG_READ_WRITE, p->sealed.dir, fixed, err);
    } else {
        status = grant_own(a, BRIG_READ_WRITE, p->sealed.dir, dest, err);
    }
    for (size_t i = 0; i < p->sealed.object_count && status == 0; i++)
        status = grant_own(a, BRIG_READ_ONLY, p->sealed.objects[i], p->sealed.object_dests[i], err);
    return status;
}

/* Go asks git about the version wherever there is a `.git`, and fails if it is empty. */
static int stop_go_from_asking_git(struct adding *a, struct brig_error *err)
{
    static const char name[] = "GOFLAGS", flag[] = "-buildvcs=false";
    const char *const *environment = a->options->environment;
    autostr struct str flags = {0};
    for (size_t i = 0; environment && environment[i]; i++)
        if (strncmp(environment[i], name, sizeof name - 1) == 0 &&
            environment[i][sizeof name - 1] == '=')
            str_concat(&flags, environment[i] + sizeof name, " ");
    str_append(&flags, flag);
    return flags.failed ? brig_fail_nomem(err)
                        : brig_policy_setenv(a->policy, name, flags.data, err);
}

/* Makes an empty `.git` and takes a shared lock on it, by which other runs know that it is in use and that the
 * user did not make it; an fd or -1. Another run may remove it between both. */
static int make_empty(int top, bool *ret_made)
{
    for (int i = 0; i < MAKE_TRIES; i++) {
        struct stat named, opened;
        bool made = mkdirat(top, ".git", 0755) == 0;
        if (!made && errno != EEXIST)
            return -1;
        autoclose int fd = openat(top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        *ret_made = made || (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0);
        if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &opened) == 0 &&
            fstatat(top, ".git", &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == opened.st_ino)
            return take_fd(&fd);
    }
    return -1;
}

static int make_private(struct adding *a, struct tree *tree, const struct repo *repo,
                        struct brig_error *err)
{
    struct guard *guard = a->guard;
    autoclose int folder = -1;
    unsigned number = (unsigned)(tree - guard->trees);
    int status = open_run(guard, err);
    if (status == 0)
        status = open_folder(guard->run, number, true, &folder, err);
    if (status < 0)
        return status;
    if (repo->kind == REPO_NONE) {
        tree->made = make_empty(tree->top, &tree->removes);
        if (tree->made < 0)
            return 0; /* it cannot be made in the jail either */
        if (tree->removes && mkdirat(folder, MADE, 0700) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's storage");
        a->made_git = true;
        status = stop_go_from_asking_git(a, err);
        if (status < 0)
            return status;
    }
    status = private_build(&guard->git, folder, guard->storage, guard->cache, number, tree->top,
                           repo, &tree->private_git, a->notes, err);
    if (status < 0)
        return status;
    tree->has_private = true;
    return grant_private(a, tree, err);
}

static int add_tree(struct adding *a, const char *source, const char *dest, bool may_make,
                    struct brig_error *err);
static int add_root(struct adding *a, const char *source, struct brig_error *err);

/* Whether a directory is granted by itself. */
static bool is_granted(const struct brig_policy *policy, const char *path)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE && policy->grants[i].fd < 0 &&
            str_equal(policy->grants[i].source, path))
            return true;
    return false;
}

/* Files in the tree that the configuration of git outside names: they are read-only, and one that is missing
 * could be created by the jail and would be obeyed. */
static int protect_outward(struct adding *a, int top, const char *source, const char *dest,
                           const struct repo *repo, struct brig_error *err)
{
    autostr struct str paths = {0};
    size_t length = strlen(source);
    int status =
        outward_find(&a->guard->git, a->guard->cache, top, source, repo->git_path, &paths, err);
    for (const char *path = paths.data; status == 0 && path && path < paths.data + paths.length;
         path += strlen(path) + 1) {
        struct stat info;
        if (!path_is_beneath(source, path) || path[length] != '/' ||
            str_starts_with(path + length, "/.git/"))
            continue;
        if (fstatat(top, path + length + 1, &info, AT_SYMLINK_NOFOLLOW) == 0)
            status = protect(a, source, dest, path + length + 1, err);
        else if (is_granted(a->policy, source)) /* else it may be that another run has written it */
            status =
                brig_fail(err, BRIG_E_INVALID, 0,
                          "your git configuration names '%s', which does not exist and which the "
                          "command could create. Create it, or remove the setting",
                          str_shown(path).text);
    }
    return status;
}

/* A submodule that is not initialised: an empty directory of the jail's own is mounted on it. A repository made in
 * the real one would be obeyed by `git status` in the directory above. */
static int cover_link(struct adding *a, const char *dest, struct brig_error *err)
{
    struct guard *guard = a->guard;
    char name[32];
    int status = open_run(guard, err);
    if (status < 0 || guard->empty_count == TREES_MAX)
        return status;
    (void)snprintf(name, sizeof name, "empty-%zu", guard->empty_count);
    if (mkdirat(guard->run, name, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot create a directory in the jail's storage");
    int fd = openat(guard->run, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot open a directory in the jail's storage");
    guard->empty[guard->empty_count++] = fd;
    return grant_own(a, BRIG_READ_WRITE, fd, dest, err);
}

/* Submodules: each is a repository of its own. */
static int add_links(struct adding *a, int top, const char *source, const char *dest,
                     const struct repo *repo, struct brig_error *err)
{
    autostr struct str links = {0};
    int status = private_list_links(&a->guard->git, a->guard->cache, top, repo, &links, err);
    for (const char *link = links.data; status == 0 && link && link < links.data + links.length;
         link += strlen(link) + 1) {
        autoclose int fd = -1;
        autofree char *from = NULL;
        autofree char *to = NULL;
        if (path_open_beneath(top, link, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0)
            continue;
        if (asprintf(&from, "%s/%s", source, link) < 0)
            from = NULL;
        if (asprintf(&to, "%s/%s", dest, link) < 0)
            to = NULL;
        if (!from || !to)
            return brig_fail_nomem(err);
        struct stat info;
        if (fstatat(fd, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0) {
            status = cover_link(a, to, err);
            continue;
        }
        status = add_tree(a, from, to, false, err);
        if (status == 0)
            status = add_root(a, from, err);
    }
    return status;
}

/* Linked worktrees of the repository that lie in the same directory: their `.git` files lead to the private
 * directories of the jail as well. */
static int add_worktrees(struct adding *a, const char *source, const char *dest,
                         const struct repo *repo, struct brig_error *err)
{
    size_t length = strlen(source);
    autoclose int fd =
        openat(repo->common, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    int status = 0;
    if (!dir || repo->kind != REPO_DIRECTORY)
        return 0;
    (void)take_fd(&fd);
    while (status == 0 && (item = readdir(dir))) {
        char path[REPO_POINTER_MAX], to[PATH_LENGTH_MAX + 1];
        autoclose int entry =
            openat(dirfd(dir), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (item->d_name[0] == '.' || entry < 0 || !repo_read_path(entry, "gitdir", a->owner, path))
            continue;
        char *slash = strrchr(path, '/');
        if (!slash || slash == path || !path_is_beneath(source, path))
            continue;
        *slash = '\0';
        if (strlen(path) > length && str_fill(to, sizeof to, dest, path + length))
            status = add_tree(a, path, to, false, err);
    }
    return status;
}

/* For a policy that is only printed: a rule for the directory that a run would make. */
static int foresee(struct adding *a, const char *source, const char *dest, struct brig_error *err)
{
    char from[PATH_LENGTH_MAX + 1], to[PATH_LENGTH_MAX + 1];
    if (!str_fill(from, sizeof from, source, "/.git") || !str_fill(to, sizeof to, dest, "/.git"))
        return 0;
    int status = brig_policy_origin(a->policy, ORIGIN_GIT, err);
    if (status == 0)
        status = brig_policy_grant(a->policy, BRIG_READ_WRITE, from, to, 0, err);
    if (status < 0)
        return status;
    mark_own(a->policy);
    return brig_policy_origin(a->policy, ORIGIN, err);
}

static int add_tree(struct adding *a, const char *source, const char *dest, bool may_make,
                    struct brig_error *err)
{
    struct guard *guard = a->guard;
    autoclose int top = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct repo repo = REPO_INIT;
    if (top < 0 && errno == EACCES)
        return brig_fail(err, BRIG_E_INVALID, EACCES,
                         "'%s' cannot be read, so that what executes something in it cannot be "
                         "protected. Change its mode, or use --no-protect",
                         str_shown(source).text);
    if (top < 0)
        return 0; /* a file, or nothing yet */
    for (size_t i = 0; i < guard->tree_count; i++)
        if (str_equal(guard->trees[i].dest, dest))
            return 0; /* as a submodule or worktree that was found before */
    int status = repo_find(top, a->owner, &repo, err);
    if (status < 0)
        return status;
    struct stat info;
    bool own = fstat(top, &info) == 0 && info.st_uid == a->owner;
    bool excepted =
        names_is_excepted(a->options->unprotect, a->options->unprotect_count, source, ".git");
    bool can = guard->storage >= 0 && guard->git.program && !a->options->dry;
    if (repo.kind == REPO_FOREIGN) {
        str_appendf(a->notes, "git does not work in '%s': .git is or names a repository %s\n",
                    str_shown(source).text, repo.why);
        status = excepted ? 0 : protect_everywhere(a, source, dest, ".git", err);
    } else if (excepted || (repo.kind == REPO_NONE && !(may_make && own))) {
        status = 0;
    } else if (a->options->dry && guard->git.program) {
        status = repo.kind == REPO_NONE ? 0 : foresee(a, source, dest, err);
    } else if (!can) {
        if (repo.kind != REPO_NONE && !guard->git.program && guard->storage >= 0)
            str_appendf(a->notes,
                        "git is not installed here, so '%s/.git' is read-only in the jail\n",
                        str_shown(source).text);
        status = repo.kind == REPO_NONE ? 0 : protect(a, source, dest, ".git", err);
    } else if (guard->tree_count == TREES_MAX) {
        status =
            brig_fail(err, BRIG_E_INVALID, 0,
                      "there are more than %d repositories in '%s'. Use --unprotect .git to run "
                      "without private git directories",
                      TREES_MAX, str_shown(source).text);
    } else {
        struct tree *tree = &guard->trees[guard->tree_count++];
        *tree = (struct tree){.top = take_fd(&top), .made = -1, .link = -1};
        status = str_copy(dest, &tree->dest, err);
        if (status == 0)
            status = make_private(a, tree, &repo, err);
        if (status == 0 && repo.kind != REPO_NONE)
            status = add_links(a, tree->top, source, dest, &repo, err);
        if (status == 0 && repo.kind != REPO_NONE)
            status = add_worktrees(a, source, dest, &repo, err);
        if (status == 0 && repo.kind != REPO_NONE)
            status = protect_outward(a, tree->top, source, dest, &repo, err);
        if (status == 0)
            status = protect_names(a, tree->top, source, dest, err);
    }
    if (status == 0 && top >= 0)
        status = protect_names(a, top, source, dest, err);
    repo_done(&repo);
    return status;
}

/* The top of the repository that a directory is in, for the caller to free; NULL if it is in none. Directories
 * of other users end the search. */
static int find_top(int from, uid_t owner, char **ret_path, struct brig_error *err)
{
    autoclose int at = openat(from, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; at >= 0 && depth < ABOVE_MAX; depth++) {
        struct stat info;
        if (fstat(at, &info) < 0 || info.st_uid != owner)
            return 0;
        if (fstatat(at, ".git", &info, AT_SYMLINK_NOFOLLOW) == 0)
            return repo_path_of(at, ret_path, err);
        int above = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = above;
    }
    return 0;
}

/* In a subdirectory of a repository git finds the repository's own directory above: it is private too, and the
 * other files are visible, but read-only. */
static int add_repository_above(struct adding *a, const char *source, const char *dest,
                                struct brig_error *err)
{
    const struct guard_options *options = a->options;
    autoclose int top = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *path = NULL;
    struct stat info;
    if (top < 0 || !options->may_show || strcmp(source, dest) != 0 ||
        names_is_excepted(options->unprotect, options->unprotect_count, source, ".git") ||
        (fstatat(top, ".git", &info, AT_SYMLINK_NOFOLLOW) == 0 && !a->made_git))
        return 0;
    int status = find_top(top, a->owner, &path, err);
    if (status < 0 || !path || !options->may_show(options->may_show_arg, path))
        return status;
    for (size_t i = 0; i < a->policy->grant_count; i++)
        if (a->policy->grants[i].access != BRIG_MASK &&
            path_is_beneath(a->policy->grants[i].dest, path) &&
            strcmp(a->policy->grants[i].dest, "/") != 0)
            return 0; /* it is granted, and has been looked at */
    status = brig_policy_grant(a->policy, BRIG_READ_ONLY, path, NULL, 0, err);
    return status < 0 ? status : add_tree(a, path, path, false, err);
}

static bool has_tree_at(const struct guard *guard, const char *dest)
{
    for (size_t i = 0; i < guard->tree_count; i++)
        if (str_equal(guard->trees[i].dest, dest))
            return true;
    return false;
}

/* ---- repositories below a granted directory ---- */

/* Searches it: all of it if it is small or was never searched, else what the last search found is used. */
static int find_nested(struct guard *guard, int top, struct str *ret_dirs, struct brig_error *err)
{
    char name[64];
    name_nested(top, name);
    int status = nested_find(top, NESTED_EACH, ret_dirs, err);
    if (status <= 0)
        return status;
    if (guard->cache >= 0 && read_list(guard->cache, name, ret_dirs))
        return 0;
    str_done(ret_dirs);
    *ret_dirs = (struct str){0};
    status = nested_find(top, NESTED_DIRS_MAX, ret_dirs, err);
    return status < 0         ? status
           : guard->cache < 0 ? 0
                              : write_list(guard->cache, name, ret_dirs, err);
}

/* Each gets a private git directory, or a read-only one if there are many. */
static int add_nested(struct adding *a, const char *source, const char *dest,
                      struct brig_error *err)
{
    struct guard *guard = a->guard;
    if (a->options->dry || guard->root_count == 0 ||
        strcmp(guard->roots[guard->root_count - 1].path, source) != 0 ||
        names_is_excepted(a->options->unprotect, a->options->unprotect_count, source, ".git"))
        return 0;
    struct str *known = &guard->known[guard->root_count - 1];
    int status = find_nested(guard, guard->roots[guard->root_count - 1].top, known, err);
    size_t count = 0;
    for (const char *at = known->data; status == 0 && at && at < known->data + known->length;
         at += strlen(at) + 1) {
        char from[PATH_LENGTH_MAX + 1], to[PATH_LENGTH_MAX + 1];
        if (!str_fill(from, sizeof from, source, "/", at) ||
            !str_fill(to, sizeof to, dest, "/", at) || has_tree_at(guard, to) ||
            is_granted(a->policy, from))
            continue;
        status = ++count <= NESTED_MAX && guard->tree_count < TREES_MAX
                     ? add_tree(a, from, to, false, err)
                     : protect_everywhere(a, from, to, ".git", err);
    }
    return status;
}

/* Remembers what is in a granted directory, once `.git` is there if it is to be. */
static int add_root(struct adding *a, const char *source, struct brig_error *err)
{
    struct guard *guard = a->guard;
    autoclose int top = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || guard->root_count == ROOTS_MAX || a->options->dry)
        return 0;
    int status = held_look(top, source, &guard->roots[guard->root_count], err);
    guard->root_count += status == 0;
    return status;
}

/* ---- a process with the owner's ids ---- */

static bool become(const struct git_user *user)
{
    if (user->uid == (uid_t)-1 || geteuid() == user->uid)
        return true;
    return setgroups(0, NULL) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
           setresuid(user->uid, user->uid, user->uid) == 0 &&
           prctl(PR_SET_DUMPABLE, 1) == 0; /* else /proc/self belongs to root, with the id maps */
}

static bool was_long(const struct guard *guard)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - guard->began.tv_sec > NESTED_AFTER_S;
}

static int transfer_tree(struct guard *guard, struct private_git *p, struct str *notes,
                         struct brig_error *err)
{
    struct transfer_report report = {0};
    int status = p->kind == REPO_NONE ? private_recreate(&guard->git, p, err) : 1;
    if (status > 0)
        status = transfer_finish(&guard->git, p, guard->jail, &report, err);
    if (status >= 0)
        status = nested_worktrees(&guard->git, p, notes, err);
    if (status >= 0 && report.pending)
        status = private_keep(p, guard->storage, err);
    if (report.summary.length > 0)
        str_concat(notes, "git: ", report.summary.data, "\n");
    if (report.notes.length > 0)
        str_append(notes, report.notes.data);
    str_done(&report.summary);
    str_done(&report.notes);
    return status;
}

/* Whether another granted directory, which is searched, contains this one. */
static bool is_inside_another(const struct guard *guard, size_t index)
{
    for (size_t i = 0; i < guard->root_count; i++)
        if (i != index && path_is_beneath(guard->roots[i].path, guard->roots[index].path) &&
            (i < index || strcmp(guard->roots[i].path, guard->roots[index].path) != 0))
            return true;
    return false;
}

static void note_failure(struct str *notes, const struct brig_error *err, bool *failed)
{
    str_appendf(notes, "git: %s. It is tried again by the next run, or by brig sync\n",
                err->message);
    *failed = true;
}

/* New repositories come first: a branch with a gitlink must not arrive before them. Then submodules, which come after
 * the tree they are in. */
static bool transfer_all(struct guard *guard, struct str *notes)
{
    const struct private_git *outers[TREES_MAX];
    struct str files[ROOTS_MAX] = {0};
    struct nested all[ROOTS_MAX];
    size_t outer_count = 0;
    bool failed = false;
    bool searches = guard->run >= 0 && guard->git.program;
    for (size_t i = 0; i < guard->tree_count; i++)
        if (guard->trees[i].has_private)
            outers[outer_count++] = &guard->trees[i].private_git;
    for (size_t i = 0; i < guard->root_count; i++) {
        struct brig_error err = {0};
        all[i] = (struct nested){
            &guard->git,      guard->jail,  guard->roots[i].top, guard->roots[i].path,
            &guard->known[i], guard->began, guard->run,          outers,
            outer_count,      notes};
        autostr struct str dirs = {0};
        char name[64];
        if (!searches || is_inside_another(guard, i))
            continue;
        if (nested_treat(&all[i], &files[i], &dirs, &err) < 0)
            note_failure(notes, &err, &failed);
        name_nested(guard->roots[i].top, name);
        if (guard->cache >= 0)
            (void)write_list(guard->cache, name, &dirs, NULL);
    }
    bool untreated = failed; /* git must not follow a gitlink into what a jail has made */
    for (size_t i = guard->tree_count; i-- > 0 && !untreated;) {
        struct brig_error err = {0};
        if (guard->trees[i].has_private &&
            transfer_tree(guard, &guard->trees[i].private_git, notes, &err) < 0)
            note_failure(notes, &err, &failed);
    }
    for (size_t i = 0; i < guard->root_count; i++) {
        struct brig_error err = {0};
        if (nested_check(&all[i], &files[i], geteuid(), &err) < 0)
            note_failure(notes, &err, &failed);
        str_done(&files[i]);
    }
    return failed;
}

/* Runs in a child process: all working trees of a run. Lines go to a memfd. */
static __attribute__((noreturn)) void finish_in_child(struct guard *guard, int out)
{
    autostr struct str notes = {0};
    if (!become(&guard->git.user))
        _exit(1);
    bool failed = transfer_all(guard, &notes);
    for (size_t i = 0; i < guard->root_count; i++) { /* whatever became of git */
        struct brig_error err = {0};
        if (held_take(&guard->roots[i], guard->held, &guard->rules, &notes, &err) < 0)
            str_appendf(&notes, "%s\n", err.message);
    }
    (void)write_all(out, notes.data, notes.length);
    _exit(failed ? 1 : 0);
}

/* Whether there is anything to do when the run is over. */
static bool has_changes(const struct guard *guard)
{
    for (size_t i = 0; i < guard->root_count; i++)
        if (held_has_new(&guard->roots[i]))
            return true;
    return false;
}

static bool has_git_changes(const struct guard *guard)
{
    for (size_t i = 0; i < guard->tree_count; i++)
        if (guard->trees[i].has_private && private_has_changed(&guard->trees[i].private_git))
            return true;
    return false;
}

/* Whether a repository is new, in a tree that is not too large to be searched after every run. */
static bool has_new_repository(const struct guard *guard)
{
    for (size_t i = 0; i < guard->root_count && guard->run >= 0; i++) {
        autostr struct str dirs = {0};
        if (is_inside_another(guard, i) ||
            nested_find(guard->roots[i].top, NESTED_EACH, &dirs, NULL) < 0)
            continue;
        for (const char *at = dirs.data; at && at < dirs.data + dirs.length; at += strlen(at) + 1)
            if (!nested_has(&guard->known[i], at))
                return true;
    }
    return false;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int finish(struct guard *guard, struct str *notes, struct brig_error *err)
{
    autoclose int out = memfd_create("guard-report", MFD_CLOEXEC);
    pid_t pid = out < 0 ? -1 : fork();
    if (pid == 0)
        finish_in_child(guard, out);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the transfer of git's changes");
    guard->unfinished = wait_for(pid) != 0;
    autofree char *text = malloc(REPORT_MAX + 1);
    ssize_t length = text ? pread(out, text, REPORT_MAX, 0) : 0;
    if (length > 0)
        str_append_bytes(notes, text, (size_t)length);
    return 0;
}

/* The run may have kept git from reading its directory: the fetch is not waited for without a limit. */
static void end_fetch(struct guard *guard)
{
    if (guard->fetching <= 0)
        return;
    autoclose int fd = (int)syscall(SYS_pidfd_open, guard->fetching, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd >= 0 && poll(&ended, 1, FETCH_END_MS) == 0)
        (void)kill(guard->fetching, SIGKILL);
    (void)wait_for(guard->fetching);
    guard->fetching = 0;
}

int guard_finish(struct guard *guard, struct str *notes, struct brig_error *err)
{
    end_fetch(guard);
    if (!has_changes(guard) && !has_git_changes(guard) && !was_long(guard) &&
        !has_new_repository(guard))
        return 0;
    return finish(guard, notes, err);
}

void guard_fetch(struct guard *guard)
{
    if (guard->fetching > 0) {
        int status;
        if (waitpid(guard->fetching, &status, WNOHANG) == 0)
            return;
        guard->fetching = 0;
    }
    bool changed = false;
    for (size_t i = 0; i < guard->tree_count; i++)
        if (guard->trees[i].has_private && private_is_to_fetch(&guard->trees[i].private_git))
            changed = true;
    if (!changed)
        return;
    guard->fetching = fork();
    if (guard->fetching != 0)
        return;
    (void)close(guard->lock); /* if we are killed, the next run need not wait for this process */
    for (size_t i = 0; i < guard->tree_count && become(&guard->git.user); i++)
        if (guard->trees[i].has_private && guard->trees[i].private_git.kind != REPO_NONE)
            (void)transfer_fetch(&guard->git, &guard->trees[i].private_git, guard->jail, NULL);
    _exit(0);
}
/* ---- the whole ---- */

/* Removes the empty `.git` that brig made. Not while another run holds its lock: that run has a mount on it, which
 * the kernel would detach. */
static void remove_made(int top, int made)
{
    if (flock(made, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(top, ".git", AT_REMOVEDIR); /* fails if it is not empty */
}

/* What was in the granted directories, for who completes this run: "PATH\0BITS\0" each. */
static int write_roots(struct guard *guard, struct brig_error *err)
{
    autostr struct str text = {0};
    int status = guard->root_count > 0 && guard->storage >= 0 ? open_run(guard, err) : 0;
    if (status < 0 || guard->run < 0)
        return status;
    for (size_t i = 0; i < guard->root_count; i++) {
        str_append_bytes(&text, guard->roots[i].path, strlen(guard->roots[i].path) + 1);
        str_appendf(&text, "%jx", (uintmax_t)guard->roots[i].existed);
        str_append_bytes(&text, "", 1);
    }
    for (size_t i = 0; i < guard->root_count && status == 0; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, KNOWN "%zu", i);
        if (guard->known[i].length > 0)
            status = write_list(guard->run, name, &guard->known[i], err);
    }
    return status < 0 ? status : write_list(guard->run, ROOTS_FILE, &text, err);
}

static void read_roots(struct guard *guard, int run)
{
    autostr struct str text = {0};
    size_t index = 0;
    (void)read_list(run, ROOTS_FILE, &text);
    for (const char *at = text.data;
         at && at < text.data + text.length && guard->root_count < ROOTS_MAX; index++) {
        char name[32];
        const char *bits = at + strlen(at) + 1;
        autoclose int top = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct held_root *root = &guard->roots[guard->root_count];
        if (bits >= text.data + text.length)
            break;
        (void)snprintf(name, sizeof name, KNOWN "%zu", index);
        if (top >= 0 && held_look(top, at, root, NULL) == 0) {
            (void)read_list(run, name, &guard->known[guard->root_count]);
            root->existed = strtoumax(bits, NULL, 16);
            guard->root_count++;
        }
        at = bits + strlen(bits) + 1;
    }
}

/* Completes the transfer of a run that was killed. 0 also if it cannot be done: the directory stays. */
static int complete_one(struct guard *guard, const char *name, struct str *notes,
                        struct brig_error *err)
{
    autoclose int run =
        openat(guard->storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int lock = run < 0 ? -1 : openat(run, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return 0;
    struct guard *left = calloc(1, sizeof *left);
    struct stat info;
    if (!left || fstat(lock, &info) < 0) {
        free(left);
        return brig_fail_nomem(err);
    }
    *left = (struct guard){.git = guard->git,
                           .began = info.st_mtim, /* nothing is ever written to it */
                           .jail = guard->jail,
                           .storage = guard->storage,
                           .run = run,
                           .cache = -1,
                           .held = guard->held,
                           .rules = guard->rules};
    int status = 0;
    for (unsigned i = 0; i < TREES_MAX && status == 0; i++) {
        autoclose int folder = -1;
        struct tree *tree = &left->trees[left->tree_count];
        if (open_folder(run, i, false, &folder, NULL) < 0)
            break;
        *tree = (struct tree){.top = -1, .made = -1, .link = -1};
        status = private_open(folder, &tree->private_git, err);
        tree->has_private = status == 0;
        left->tree_count += status == 0;
    }
    if (status == 0) {
        read_roots(left, run);
        status = finish(left, notes, err);
    }
    for (size_t i = 0; i < left->root_count; i++) {
        held_root_done(&left->roots[i]);
        str_done(&left->known[i]);
    }
    for (size_t i = 0; i < left->tree_count; i++) {
        struct private_git *p = &left->trees[i].private_git;
        autoclose int made =
            p->kind == REPO_NONE && faccessat(p->folder, MADE, F_OK, AT_SYMLINK_NOFOLLOW) == 0
                ? openat(p->top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                : -1;
        if (made >= 0)
            remove_made(p->top, made);
        private_done(p);
    }
    bool failed = status < 0 || left->unfinished;
    free(left);
    if (!failed)
        return tree_remove(guard->storage, name, err);
    /* It would fail each time, as where the project is gone. */
    char kept[80];
    (void)snprintf(kept, sizeof kept, KEPT_PREFIX "%s", name + strlen(RUN_PREFIX));
    autofree char *path = NULL;
    if (renameat(guard->storage, name, guard->storage, kept) == 0 &&
        repo_path_of(guard->storage, &path, NULL) == 0)
        str_appendf(notes,
                    "git: what an interrupted run did could not be transferred. It is kept in "
                    "%s/%s; delete that if you do not need it\n",
                    str_shown(path).text, kept);
    return status;
}

static int complete_all(struct guard *guard, struct str *notes, struct brig_error *err)
{
    autoclose int fd =
        guard->storage < 0 ? -1 : openat(guard->storage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    if (!dir)
        return 0;
    (void)take_fd(&fd);
    while ((item = readdir(dir))) {
        struct brig_error local = {0};
        if (str_starts_with(item->d_name, RUN_PREFIX) &&
            complete_one(guard, item->d_name, notes, &local) < 0)
            str_appendf(notes, "git: the changes of an interrupted run are kept: %s\n",
                        local.message);
    }
    (void)err;
    return 0;
}

/* Whether what was granted by descriptor is still at its path. */
static int check_same(const struct policy_grant *grant, struct brig_error *err)
{
    struct stat info;
    if (!grant->checked ||
        (stat(grant->source, &info) == 0 && info.st_dev == grant->dev && info.st_ino == grant->ino))
        return 0;
    return brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' changed while it was being granted [%s]",
                     str_shown(grant->source).text, grant->origin);
}

/* Whether an earlier grant is for the same directory. */
static bool is_granted_before(const struct brig_policy *policy, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE && policy->grants[i].fd < 0 &&
            str_equal(policy->grants[i].source, policy->grants[index].source))
            return true;
    return false;
}

/* Mounts the private git directory of a tree at another place where the tree is visible; a tree without one has a
 * read-only `.git` there. */
static int add_view(struct adding *a, int top, const char *source, const char *dest,
                    struct brig_error *err)
{
    struct stat info;
    char git[PATH_LENGTH_MAX + 1];
    if (fstatat(top, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || has_tree_at(a->guard, dest) ||
        !str_fill(git, sizeof git, dest, "/.git") ||
        names_is_excepted(a->options->unprotect, a->options->unprotect_count, source, ".git"))
        return 0;
    for (size_t i = 0; i < a->guard->tree_count; i++) {
        const struct tree *tree = &a->guard->trees[i];
        if (tree->has_private && str_equal(tree->private_git.top_path, source))
            return tree->link >= 0
                       ? grant_own(a, BRIG_READ_ONLY, tree->link, git, err)
                       : grant_own(a, BRIG_READ_WRITE, tree->private_git.sealed.dir, git, err);
    }
    return protect_everywhere(a, source, dest, ".git", err);
}

/* A granted directory may be visible a second time, through a grant of a directory above it, or of the same. */
static int add_views(struct adding *a, size_t index, size_t count, struct brig_error *err)
{
    const struct policy_grant *grant = &a->policy->grants[index];
    if (grant->access != BRIG_READ_WRITE || grant->fd >= 0 || grant->own)
        return 0;
    autofree char *source = strdup(grant->source);
    autofree char *first = strdup(grant->dest); /* the array moves when rules are added */
    autoclose int top = source ? open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int status = source && first ? 0 : brig_fail_nomem(err);
    for (size_t i = 0; i < count && status == 0 && top >= 0; i++) {
        const struct policy_grant *other = &a->policy->grants[i];
        char dest[PATH_LENGTH_MAX + 1];
        if (i == index || other->access != BRIG_READ_WRITE || other->fd >= 0 || other->own ||
            !path_is_beneath(other->source, source) ||
            (strcmp(other->source, source) == 0 && i < index) ||
            !str_fill(dest, sizeof dest, other->dest, source + strlen(other->source)) ||
            str_equal(dest, first))
            continue;
        status = protect_names(a, top, source, dest, err);
        if (status == 0)
            status = add_view(a, top, source, dest, err);
    }
    return status;
}

static int begin(struct adding *a, struct brig_error *err)
{
    struct brig_policy *policy = a->policy;
    size_t count = policy->grant_count; /* not those that are added here */
    int status = brig_policy_origin(policy, ORIGIN, err);
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access != BRIG_READ_WRITE || grant->fd >= 0 || grant->own)
            continue;
        autofree char *source = NULL;
        autofree char *dest = NULL; /* the array moves when rules are added */
        status = str_copy(grant->source, &source, err);
        if (status == 0)
            status = str_copy(grant->dest, &dest, err);
        if (status == 0)
            status = check_same(grant, err);
        bool workdir =
            status == 0 && a->options->workdir && strcmp(source, a->options->workdir) == 0;
        if (status == 0 && !is_granted_before(policy, i))
            status = add_tree(a, source, dest, workdir, err);
        if (status == 0 && workdir)
            status = add_repository_above(a, source, dest, err);
        if (status == 0)
            status = add_root(a, source, err);
        if (status == 0)
            status = add_nested(a, source, dest, err);
    }
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_views(a, i, count, err);
    return status < 0 ? status : write_roots(a->guard, err);
}

static int new_guard(const struct guard_options *options, const struct brig_policy *policy,
                     struct guard **ret_guard, struct brig_error *err)
{
    struct guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return brig_fail_nomem(err);
    guard->cache = guard->run = guard->lock = -1;
    guard->storage = options->storage >= 0 ? fcntl(options->storage, F_DUPFD_CLOEXEC, 3) : -1;
    guard->held = options->held >= 0 ? fcntl(options->held, F_DUPFD_CLOEXEC, 3) : -1;
    guard->rules =
        (struct held_rules){options->unprotect, options->unprotect_count, options->report_only};
    (void)clock_gettime(CLOCK_REALTIME, &guard->began);
    int status = str_copy(options->jail, &guard->jail, err);
    if (status == 0)
        status = git_find(&guard->git, options->environment, policy, options->user, err);
    if (status == 0 && guard->storage >= 0) {
        (void)mkdirat(guard->storage, "cache", 0700);
        guard->cache =
            openat(guard->storage, "cache", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (status < 0)
        guard_free(guard);
    else
        *ret_guard = guard;
    return status;
}

int guard_begin(struct brig_policy *policy, const struct guard_options *options,
                struct guard **ret_guard, struct str *notes, struct brig_error *err)
{
    for (size_t i = 0; i < options->unprotect_count; i++) {
        int status = names_check(options->unprotect[i], err);
        if (status < 0)
            return status;
    }
    struct guard *guard = NULL;
    int status = new_guard(options, policy, &guard, err);
    if (status < 0)
        return status;
    struct adding adding = {.guard = guard,
                            .policy = policy,
                            .options = options,
                            .owner = options->user.uid != (uid_t)-1 ? options->user.uid : geteuid(),
                            .notes = notes};
    if (!options->dry && guard->git.program)
        status = complete_all(guard, notes, err);
    if (status == 0 && !options->off)
        status = begin(&adding, err);
    if (status < 0)
        guard_free(guard);
    else
        *ret_guard = guard;
    return status;
}

/* A run that goes on: its commits are fetched, and nothing is moved. */
static int fetch_running(struct guard *guard, int run, bool show, struct str *notes,
                         struct brig_error *err)
{
    int status = 0;
    for (unsigned i = 0; i < TREES_MAX && status == 0; i++) {
        autoclose int folder = -1;
        struct private_git p;
        if (open_folder(run, i, false, &folder, NULL) < 0)
            break;
        status = private_open(folder, &p, err);
        if (status < 0)
            continue;
        bool changed = private_has_changed(&p);
        if (show)
            str_appendf(notes, "%s: a run goes on; %s\n", str_shown(p.top_path).text,
                        changed ? "its git directory has changes" : "nothing in git has changed");
        else if (changed && p.kind != REPO_NONE)
            status = transfer_fetch(&guard->git, &p, guard->jail, err);
        private_done(&p);
    }
    return status;
}

static int sync_one(struct guard *guard, const char *name, bool show, struct str *notes,
                    struct brig_error *err)
{
    if (show && str_starts_with(name, PRIVATE_PENDING))
        str_append(notes,
                   "a rebase or merge goes on; the next run in its directory continues it\n");
    if (!str_starts_with(name, RUN_PREFIX))
        return 0;
    autoclose int run =
        openat(guard->storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int lock = run < 0 ? -1 : openat(run, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0)
        return 0;
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return fetch_running(guard, run, show, notes, err);
    if (show)
        str_append(notes, "a run was interrupted; brig sync completes it\n");
    (void)close(take_fd(&lock));
    return show ? 0 : complete_one(guard, name, notes, err);
}

int guard_sync(const struct guard_options *options, bool show, struct str *notes,
               struct brig_error *err)
{
    struct guard *guard = NULL;
    int status = new_guard(options, NULL, &guard, err);
    if (status < 0)
        return status;
    if (!guard->git.program)
        status = brig_fail(err, BRIG_E_SETUP, 0, "git is not installed");
    autoclose int fd = openat(guard->storage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    if (dir)
        (void)take_fd(&fd);
    while (status == 0 && dir && (item = readdir(dir)))
        status = sync_one(guard, item->d_name, show, notes, err);
    guard_free(guard);
    return status;
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < guard->tree_count; i++) {
        struct tree *tree = &guard->trees[i];
        if (tree->removes)
            remove_made(tree->top, tree->made);
        if (tree->made >= 0)
            (void)close(tree->made);
        if (tree->has_private)
            private_done(&tree->private_git);
        if (tree->link >= 0)
            (void)close(tree->link);
        (void)close(tree->top);
        free(tree->dest);
    }
    for (size_t i = 0; i < guard->root_count; i++) {
        held_root_done(&guard->roots[i]);
        str_done(&guard->known[i]);
    }
    for (size_t i = 0; i < guard->empty_count; i++)
        (void)close(guard->empty[i]);
    if (guard->run >= 0 && !guard->unfinished)
        (void)tree_remove(guard->storage, guard->name, NULL);
    const int fds[] = {guard->storage, guard->cache, guard->run, guard->lock, guard->held};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    git_done(&guard->git);
    free(guard->jail);
    free(guard);
}
