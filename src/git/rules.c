/* SPDX-License-Identifier: MIT */
#include "git/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "git/config.h"
#include "git/reviewed.h"
#include "held/names.h"
#include "policy/policy.h"

#define MAKE_TRIES 16
#define ABOVE_MAX 64  /* parent directories that are checked for the top of a repository */
#define NESTED_MAX 32 /* repositories below a granted directory that get private directories */
#define AUTHOR_MOUNT "/run/brig/gitconfig"
#define AUTHOR_VARIABLE "GIT_CONFIG_SYSTEM"
#define ORIGIN "protected"
#define ORIGIN_GIT "private git directory"

/* The context of adding rules. */
struct adding {
    struct guard *guard;
    struct brig_policy *policy;
    const struct guard_options *options;
    uid_t owner;
    struct str *notes;
    bool has_author; /* git was asked who commits */
    bool made_git;   /* the working directory has a `.git` that brig created */
    /* The reviewed directory, without links, or NULL. In it nothing is protected: whatever the jail
     * writes, also a repository, reaches the directory only when it was reviewed. */
    const char *reviewed;
};

/* ---- rules ---- */

/* Marks the last grant as the guard's: it may be in brig's storage. */
static void mark_own(struct brig_policy *policy)
{
    policy->grants[policy->grant_count - 1].own = true;
}

static bool is_excepted(const struct adding *a, const char *top, const char *path)
{
    return !a->reviewed &&
           names_is_excepted(a->options->unprotect, a->options->unprotect_count, top, path);
}

/* Whether a grant lets the jail write to a directory of the host. */
static bool is_writable(const struct policy_grant *grant)
{
    return grant->access == BRIG_READ_WRITE && grant->fd < 0 && !grant->own;
}

static int protect(struct adding *a, const char *source, const char *dest, const char *path,
                   struct brig_error *err)
{
    autofree char *from = NULL;
    autofree char *to = NULL;
    if (a->reviewed)
        return 0;
    int status = str_make(&from, err, source, "/", path);
    if (status == 0)
        status = str_make(&to, err, dest, "/", path);
    return status < 0
               ? status
               : brig_policy_grant(a->policy, BRIG_PROTECT, from, to, BRIG_GRANT_OPTIONAL, err);
}

/* Protects a path and, if a symbolic link leads elsewhere and the jail could write there, the
 * target. */
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
        autofree char *to = strdup(grant->dest); /* adding rules reallocates the array */
        status = from && to
                     ? protect(a, from, to, real + strlen(from) + (strcmp(from, "/") != 0), err)
                     : brig_fail_nomem(err);
    }
    return status;
}

/* A granted bare repository: git can fetch from it and push to it, but the files that git outside
 * would execute are read-only. */
static int protect_bare(struct adding *a, int top, const char *source, const char *dest,
                        struct brig_error *err)
{
    static const char *const files[] = {"config", "hooks", "commondir", "info"};
    int status = 0;
    for (size_t i = 0; repo_has_parts(top) && i < ARRAY_LENGTH(files) && status == 0; i++)
        if (files_exists(top, files[i]))
            status = protect_everywhere(a, source, dest, files[i], err);
    return status;
}

/* Makes existing files that execute something read-only. */
static int protect_names(struct adding *a, int top, const char *source, const char *dest,
                         struct brig_error *err)
{
    struct held_set exists;
    size_t i = 0;
    int status = 0;
    if (a->reviewed)
        return 0;
    held_look_at(top, &exists);
    for (struct names_held_name at = {0}; status == 0 && names_next_held(&at); i++)
        if (at.row->held == NAMES_HELD && held_set_has(&exists, i) &&
            !is_excepted(a, source, at.path))
            status = protect_everywhere(a, source, dest, at.path, err);
    return status < 0 ? status : protect_bare(a, top, source, dest, err);
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

static bool has_grant_at(const struct brig_policy *policy, const char *dest)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (str_equal(policy->grants[i].dest, dest))
            return true;
    return false;
}

/* An object directory and the LFS objects beside it. Worktrees have the same ones. */
static int grant_objects(struct adding *a, const struct private_git *p, size_t index,
                         struct brig_error *err)
{
    const char *dest = p->sealed.object_dests[index];
    autofree char *lfs = NULL;
    autofree char *above = strndup(dest, strlen(dest) - strlen("/objects"));
    if (has_grant_at(a->policy, dest))
        return 0;
    int status = above ? str_make(&lfs, err, above, "/lfs/objects") : brig_fail_nomem(err);
    if (status == 0)
        status = grant_own(a, BRIG_READ_ONLY, p->sealed.objects[index], dest, err);
    if (status == 0 && p->lfs[index] >= 0)
        status = grant_own(a, BRIG_READ_ONLY, p->lfs[index], lfs, err);
    return status;
}

/* Mounts the private directory on `.git` or, if that is a file, at a fixed path that a file mounted
 * on `.git` names. */
static int grant_private(struct adding *a, struct tree *tree, struct brig_error *err)
{
    const struct private_git *p = &tree->private_git;
    autofree char *dest = NULL;
    char fixed[64];
    int status = str_make(&dest, err, tree->dest, "/.git");
    if (status < 0)
        return status;
    if (p->repo.kind == REPO_FILE) {
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
        status = grant_objects(a, p, i, err);
    return status;
}

/* Go asks git for the version wherever there is a `.git`, and fails if it is empty. */
static int stop_go_from_asking_git(struct adding *a, struct brig_error *err)
{
    static const char name[] = "GOFLAGS", flag[] = "-buildvcs=false";
    const char *value = git_variable(a->options->environment, name);
    autostr struct str flags = {0};
    str_concat(&flags, value ? value : "", value ? " " : "", flag);
    return flags.failed ? brig_fail_nomem(err)
                        : brig_policy_setenv(a->policy, name, flags.data, err);
}

/* Creates an empty `.git` and takes a shared lock on it, which tells other runs that it is in use
 * and that the user did not create it. Returns an fd, or -1. Another run may remove it between the
 * two steps. */
static int make_empty(int top, bool *ret_made)
{
    for (int i = 0; i < MAKE_TRIES; i++) {
        struct stat named, opened;
        bool made = mkdirat(top, ".git", 0755) == 0;
        if (!made && errno != EEXIST)
            return -1;
        autoclose int fd = files_open_dir(top, ".git");
        *ret_made = made || (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0);
        if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &opened) == 0 &&
            fstatat(top, ".git", &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == opened.st_ino)
            return take_fd(&fd);
    }
    return -1;
}

/* Keeps the empty `.git` that another run has made, which is in use here too: whoever ends last
 * removes it. */
static void share_empty(struct guard *guard, int top)
{
    struct stat named, opened;
    autoclose int fd = files_open_dir(top, ".git");
    if (fd < 0 || !files_is_mount_point(fd) || guard->shared_count == TREES_MAX)
        return;
    int copy = fcntl(top, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return;
    if (flock(fd, LOCK_SH) < 0 || fstat(fd, &opened) < 0 ||
        fstatat(top, ".git", &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != opened.st_ino) {
        (void)close(copy);
        return;
    }
    guard->shared[guard->shared_count].top = copy;
    guard->shared[guard->shared_count++].made = take_fd(&fd);
}

/* The mount point of a missing `.git` is created in the copy of the directory. */
static int make_reviewed(struct adding *a, struct tree *tree, struct repo *repo,
                         struct brig_error *err)
{
    bool empty = repo->kind == REPO_NONE;
    tree->reviewed = true;
    a->made_git = a->made_git || empty;
    int status = empty ? stop_go_from_asking_git(a, err) : 0;
    if (status == 0)
        status = reviewed_open(a->guard, a->reviewed, tree, repo, a->notes, err);
    return status < 0 ? status : grant_private(a, tree, err);
}

static int make_private(struct adding *a, struct tree *tree, struct repo *repo,
                        struct brig_error *err)
{
    struct guard *guard = a->guard;
    autoclose int folder = -1;
    unsigned number = (unsigned)(tree - guard->trees);
    if (a->reviewed)
        return make_reviewed(a, tree, repo, err);
    int status = run_open(guard, err);
    if (status == 0)
        status = files_make_dir(guard->run, str_number(number).text, &folder, err);
    if (status < 0)
        return status;
    if (repo->kind == REPO_NONE) {
        tree->made = make_empty(tree->top, &tree->removes);
        if (tree->made < 0)
            return 0; /* then the jail cannot create it either */
        if (tree->removes && mkdirat(folder, RUN_MADE, 0700) < 0)
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

static int add_tree(struct adding *a, int top, const char *source, const char *dest, bool may_make,
                    struct brig_error *err);
static int add_root(struct adding *a, int top, const char *source, struct brig_error *err);

static bool has_tree_at(const struct guard *guard, const char *dest)
{
    for (size_t i = 0; i < guard->tree_count; i++)
        if (str_equal(guard->trees[i].dest, dest))
            return true;
    return false;
}

/* Whether one of the first grants is for exactly this directory. */
static bool is_granted(const struct brig_policy *policy, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE && policy->grants[i].fd < 0 &&
            str_equal(policy->grants[i].source, path))
            return true;
    return false;
}

/* In a view of the host the system's configuration is another file, which includes the host's. */
static int grant_author(struct adding *a, const struct str *config, struct brig_error *err)
{
    struct guard *guard = a->guard;
    autostr struct str text = {0};
    str_concat(&text, "[include]\n\tpath = /etc/gitconfig\n", config->data);
    if (text.failed)
        return brig_fail_nomem(err);
    int status = run_open(guard, err);
    if (status == 0)
        status = files_write(guard->run, "gitconfig", text.data, text.length, err);
    if (status < 0)
        return status;
    guard->author = openat(guard->run, "gitconfig", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (guard->author < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the jail's gitconfig");
    status = grant_own(a, BRIG_READ_ONLY, guard->author, AUTHOR_MOUNT, err);
    return status < 0 ? status : brig_policy_setenv(a->policy, AUTHOR_VARIABLE, AUTHOR_MOUNT, err);
}

/* Whether the user's own configuration is not visible: the home is empty. */
static bool lacks_author(const struct adding *a)
{
    const struct brig_policy *policy = a->policy;
    return policy->view == BRIG_VIEW_SYSTEM ||
           (policy->view == BRIG_VIEW_HOST &&
            policy_mode_row(policy->mode)->home == POLICY_HOME_PRIVATE && a->guard->storage >= 0 &&
            !git_variable(a->options->environment, AUTHOR_VARIABLE));
}

/* Lets git know who commits, in the configuration that all others override. The first directory
 * with a repository decides. */
static int add_author(struct adding *a, const char *source, const struct repo *repo,
                      struct brig_error *err)
{
    autostr struct str config = {0};
    if (a->has_author || !a->guard->git.program || a->options->dry || !lacks_author(a))
        return 0;
    int status = outward_find(&a->guard->git, a->guard->cache, source, repo, NULL, &config, err);
    if (status == 0 && config.length > 0)
        status = a->policy->view == BRIG_VIEW_HOST
                     ? grant_author(a, &config, err)
                     : policy_text(a->policy, config.data, &a->policy->gitconfig, err);
    a->has_author = true;
    return status;
}

/* Files in the tree that the configuration of git outside names are read-only. A missing one is an
 * error, because the jail could create it and git outside would obey it. */
static int protect_outward(struct adding *a, int top, const char *source, const char *dest,
                           const struct repo *repo, struct brig_error *err)
{
    autostr struct str paths = {0};
    size_t length = strlen(source);
    int status = outward_find(&a->guard->git, a->guard->cache, source, repo, &paths, NULL, err);
    if (status == 0)
        status = add_author(a, source, repo, err);
    for (const char *path = NULL; status == 0 && (path = str_list_next(&paths, path));) {
        if (!path_is_beneath(source, path) || path[length] != '/' ||
            str_starts_with(path + length, "/.git/"))
            continue;
        if (files_exists(top, path + length + 1))
            status = protect_everywhere(a, source, dest, path + length + 1, err);
        else if (is_granted(a->policy, a->policy->grant_count,
                            source)) /* otherwise another run may have written it */
            status =
                brig_fail(err, BRIG_E_INVALID, 0,
                          "your git configuration names '%s', which does not exist and which the "
                          "command could create. Create it, or remove the setting",
                          str_shown(path).text);
    }
    return status;
}

/* A submodule that is not initialised: an empty private directory is mounted on it. `git status` in
 * the superproject would obey a repository created in the real directory. */
static int cover_link(struct adding *a, const char *dest, struct brig_error *err)
{
    struct guard *guard = a->guard;
    char name[32];
    int fd = -1;
    int status = run_open(guard, err);
    if (status == 0 && guard->empty_count == TREES_MAX)
        status = brig_fail(
            err, BRIG_E_INVALID, 0,
            "there are more than %d submodules without a repository. Use --unprotect .git to "
            "run without private git directories",
            TREES_MAX);
    (void)snprintf(name, sizeof name, "empty-%zu", guard->empty_count);
    if (status == 0)
        status = files_make_dir(guard->run, name, &fd, err);
    if (status < 0)
        return status;
    guard->empty[guard->empty_count++] = fd;
    return grant_own(a, BRIG_READ_WRITE, fd, dest, err);
}

/* Adds submodules, each of which is a repository. */
static int add_links(struct adding *a, int top, const char *source, const char *dest,
                     const struct repo *repo, struct brig_error *err)
{
    autostr struct str links = {0};
    bool reviewed = a->reviewed != NULL;
    int status = private_list_links(&a->guard->git, a->guard->cache, repo, &links, err);
    for (const char *link = NULL; status >= 0 && (link = str_list_next(&links, link));) {
        autoclose int fd = -1;
        char from[PATH_LENGTH_MAX + 1], to[PATH_LENGTH_MAX + 1];
        /* Git creates this directory too. If the jail created it, git outside would look for a
         * repository in it. */
        if ((!reviewed && files_make_path(top, link) < 0) ||
            path_open_beneath(top, link, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0)
            continue;
        if (!str_fill(from, sizeof from, source, "/", link) ||
            !str_fill(to, sizeof to, dest, "/", link))
            return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "the path of the submodule '%s'",
                             str_shown(link).text);
        if (!files_exists(fd, ".git")) {
            status = reviewed ? 0 : cover_link(a, to, err);
            continue;
        }
        status = add_tree(a, fd, from, to, false, err);
        if (status >= 0 && !reviewed && has_tree_at(a->guard, to))
            status = add_root(a, fd, from, err);
    }
    return status < 0 ? status : 0;
}

/* Linked worktrees of the repository in the same directory: their `.git` files also lead to private
 * directories. */
static int add_worktrees(struct adding *a, int top, const char *source, const char *dest,
                         const struct repo *repo, struct brig_error *err)
{
    size_t length = strlen(source);
    autodir DIR *dir = files_list(repo->common, "worktrees");
    int status = 0;
    if (!dir || repo->kind != REPO_DIRECTORY)
        return 0;
    for (const struct dirent *item; status >= 0 && (item = files_next(dir));) {
        char path[REPO_POINTER_MAX], to[PATH_LENGTH_MAX + 1];
        autoclose int entry = files_open_dir(dirfd(dir), item->d_name);
        if (entry < 0 || !repo_read_path(entry, "gitdir", a->owner, path))
            continue;
        char *slash = strrchr(path, '/');
        if (!slash || slash == path || !path_is_beneath(source, path))
            continue;
        *slash = '\0';
        autoclose int tree = -1;
        if (strlen(path) > length && str_fill(to, sizeof to, dest, path + length) &&
            path_open_beneath(top, path + length + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &tree,
                              NULL) == 0)
            status = add_tree(a, tree, path, to, false, err);
    }
    return status < 0 ? status : 0;
}

/* For a policy that is only printed: adds a rule for the directory that a run would create. */
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
    struct guard *guard = a->guard;
    if (guard->tree_count < TREES_MAX) {
        struct tree *tree = &guard->trees[guard->tree_count++];
        *tree = TREE_INIT;
        status = str_copy(dest, &tree->dest, err);
    }
    return status < 0 ? status : brig_policy_origin(a->policy, ORIGIN, err);
}

/* Adds a working tree; `top` is its fd and `source` its path. Returns 1 if git in the jail cannot
 * write to the real git directory, 0 if there is none. */
static int add_tree(struct adding *a, int top, const char *source, const char *dest, bool may_make,
                    struct brig_error *err)
{
    struct guard *guard = a->guard;
    struct repo repo = REPO_INIT;
    if (has_tree_at(guard, dest))
        return 1; /* it was found before as a submodule or worktree */
    int status = repo_find(top, a->owner, &repo, err);
    if (status < 0)
        return status;
    struct stat info;
    bool own = (fstat(top, &info) == 0 && info.st_uid == a->owner) || a->reviewed;
    bool excepted = is_excepted(a, source, ".git");
    bool covered = repo.kind != REPO_NONE && !excepted;
    bool can = guard->storage >= 0 && guard->git.program && !a->options->dry;
    if (repo.kind == REPO_FOREIGN) {
        str_appendf(a->notes, "git does not work in '%s': .git is or names a repository %s\n",
                    str_shown(source).text, repo.why);
        status = excepted ? 0 : protect_everywhere(a, source, dest, ".git", err);
    } else if (excepted) {
        status = 0;
    } else if (repo.kind == REPO_NONE && !(may_make && own)) {
        /* The jail must not fill an empty one. */
        if (!a->options->dry)
            share_empty(guard, top);
        bool empty = files_exists(top, ".git");
        status = empty ? protect(a, source, dest, ".git", err) : 0;
        if (status == 0)
            status = protect_names(a, top, source, dest, err);
        repo_done(&repo);
        return status < 0 ? status : empty;
    } else if (a->options->dry && guard->git.program) {
        status = repo.kind == REPO_NONE ? 0 : foresee(a, source, dest, err);
    } else if (!can) {
        if (repo.kind != REPO_NONE && !guard->git.program && guard->storage >= 0)
            str_appendf(
                a->notes, "git is not installed here, so '%s/.git' %s\n", str_shown(source).text,
                a->reviewed ? "is a copy that stays in the jail" : "is read-only in the jail");
        status = repo.kind == REPO_NONE ? 0 : protect(a, source, dest, ".git", err);
    } else if (guard->tree_count == TREES_MAX) {
        status =
            brig_fail(err, BRIG_E_INVALID, 0,
                      "there are more than %d repositories in '%s'. Use --unprotect .git to run "
                      "without private git directories",
                      TREES_MAX, str_shown(source).text);
    } else {
        struct tree *tree = &guard->trees[guard->tree_count++];
        *tree = TREE_INIT;
        tree->top = fcntl(top, F_DUPFD_CLOEXEC, 3);
        status = tree->top < 0
                     ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor")
                     : str_copy(dest, &tree->dest, err);
        if (status == 0)
            status = make_private(a, tree, &repo, err);
        const struct repo *found = covered ? &tree->private_git.repo : NULL;
        if (status == 0 && found)
            status = add_links(a, tree->top, source, dest, found, err);
        if (status == 0 && found)
            status = add_worktrees(a, top, source, dest, found, err);
        if (status == 0 && found && !a->reviewed)
            status = protect_outward(a, tree->top, source, dest, found, err);
    }
    if (status == 0)
        status = protect_names(a, top, source, dest, err);
    repo_done(&repo);
    return status < 0 ? status : covered;
}

/* The top of the repository that contains a directory, for the caller to free; NULL if there is
 * none. The search ends at directories of other users. */
static int find_top(int from, uid_t owner, char **ret_path, struct brig_error *err)
{
    autoclose int at = files_open_dir(from, "..");
    for (int depth = 0; at >= 0 && depth < ABOVE_MAX; depth++) {
        struct stat info;
        if (fstat(at, &info) < 0 || info.st_uid != owner)
            return 0;
        if (files_exists(at, ".git"))
            return repo_path_of(at, ret_path, err);
        int above = files_open_dir(at, "..");
        (void)close(at);
        at = above;
    }
    return 0;
}

/* In a subdirectory of a repository, git finds the git directory above: it gets a private one too,
 * and the other files are visible, but read-only. */
static int add_repository_above(struct adding *a, const char *source, const char *dest,
                                struct brig_error *err)
{
    const struct guard_options *options = a->options;
    autoclose int top = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *path = NULL;
    if (top < 0 || !options->may_show || strcmp(source, dest) != 0 ||
        is_excepted(a, source, ".git") || (files_exists(top, ".git") && !a->made_git))
        return 0;
    int status = find_top(top, a->owner, &path, err);
    if (status < 0 || !path || !options->may_show(options->may_show_arg, path))
        return status;
    for (size_t i = 0; i < a->policy->grant_count; i++)
        if (a->policy->grants[i].access != BRIG_MASK &&
            path_is_beneath(a->policy->grants[i].dest, path) &&
            strcmp(a->policy->grants[i].dest, "/") != 0)
            return 0; /* granted, and handled already */
    status = brig_policy_grant(a->policy, BRIG_READ_ONLY, path, NULL, 0, err);
    autoclose int above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (status == 0 && above >= 0)
        status = add_tree(a, above, path, path, false, err);
    if (status >= 0 && a->reviewed) /* the copy is on another filesystem */
        status = brig_policy_setenv(a->policy, "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1", err);
    return status < 0 ? status : 0;
}

/* ---- repositories below a granted directory ---- */

/* Each gets a private git directory, or is read-only if there are many. Bare repositories are
 * read-only. */
static int add_nested(struct adding *a, const char *source, const char *dest,
                      struct brig_error *err)
{
    struct guard *guard = a->guard;
    struct root *root = guard->root_count == 0 ? NULL : &guard->roots[guard->root_count - 1];
    if (a->options->dry || !root || strcmp(root->held.path, source) != 0 ||
        is_excepted(a, source, ".git"))
        return 0;
    int top = root->held.top;
    struct str *known = &root->known; /* the ones the jail cannot write to */
    autostr struct str found = {0};
    int status = nested_find(top, guard->storage, NULL, false, &found, NULL, err);
    size_t count = 0;
    if (status > 1)
        str_appendf(a->notes,
                    "git: not all directories in '%s' could be searched: repositories in the "
                    "others are not "
                    "protected\n",
                    str_shown(source).text);
    for (const char *at = NULL; status >= 0 && (at = str_list_next(&found, at));) {
        char from[PATH_LENGTH_MAX + 1], to[PATH_LENGTH_MAX + 1];
        autoclose int dir = -1;
        if (str_ends_with(at, "/")) {
            (void)snprintf(from, sizeof from, "%.*s", (int)strlen(at) - 1, at);
            status =
                is_excepted(a, source, from) ? 0 : protect_everywhere(a, source, dest, from, err);
            nested_identify(top, at, known);
            continue;
        }
        if (!str_fill(from, sizeof from, source, "/", at) ||
            !str_fill(to, sizeof to, dest, "/", at) ||
            path_open_beneath(top, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) < 0)
            continue;
        bool granted = is_granted(a->policy, a->policy->grant_count, from);
        bool many = ++count > NESTED_MAX || guard->tree_count == TREES_MAX;
        status = granted || has_tree_at(guard, to) ? 1
                 : many                            ? protect_everywhere(a, from, to, ".git", err)
                                                   : add_tree(a, dir, from, to, false, err);
        if (status > 0 || (status == 0 && many))
            nested_identify(top, at, known);
    }
    return status < 0 ? status : known->failed ? brig_fail_nomem(err) : 0;
}

/* Records the contents of a granted directory, after `.git` was created if necessary. */
static int add_root(struct adding *a, int top, const char *source, struct brig_error *err)
{
    struct guard *guard = a->guard;
    if (a->options->dry)
        return 0;
    if (guard->root_count == ROOTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "more than %d directories and submodules can be written", ROOTS_MAX);
    int status = held_look(top, source, &guard->roots[guard->root_count].held, err);
    guard->root_count += status == 0;
    return status;
}

/* Opens a grant if it is a directory: 1, or 0 if it is a file or does not exist. If it was granted
 * by descriptor, it must still be at its path. From here on the rules are for this directory, and
 * the jail does not start with another one. */
static int open_granted(struct policy_grant *grant, int *ret_fd, struct brig_error *err)
{
    struct stat info;
    autoclose int fd = open(grant->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return brig_fail(err, BRIG_E_INVALID, EACCES,
                         "'%s' cannot be read, so that what executes something in it cannot be "
                         "protected. Change its mode, or use --no-protect",
                         str_shown(grant->source).text);
    if (grant->checked &&
        (stat(grant->source, &info) < 0 || info.st_dev != grant->dev || info.st_ino != grant->ino ||
         (fd >= 0 && (fstat(fd, &info) < 0 || info.st_ino != grant->ino))))
        return brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' changed while it was being granted [%s]",
                         str_shown(grant->source).text, grant->origin);
    if (fd < 0)
        return 0;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'",
                         str_shown(grant->source).text);
    grant->checked = true;
    grant->dev = info.st_dev;
    grant->ino = info.st_ino;
    *ret_fd = take_fd(&fd);
    return 1;
}

/* Mounts the private git directory of a tree at another path where the tree is visible; a tree
 * without one gets a read-only `.git` there. */
static int add_view(struct adding *a, int top, const char *source, const char *dest,
                    struct brig_error *err)
{
    char git[PATH_LENGTH_MAX + 1];
    if (!files_exists(top, ".git") || has_tree_at(a->guard, dest) ||
        !str_fill(git, sizeof git, dest, "/.git") || is_excepted(a, source, ".git"))
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

/* A granted directory may be visible twice, through a grant of a parent directory or of the same
 * directory. */
static int add_views(struct adding *a, size_t index, size_t count, struct brig_error *err)
{
    const struct policy_grant *grant = &a->policy->grants[index];
    if (!is_writable(grant) || grant->review || a->options->off)
        return 0;
    autofree char *source = strdup(grant->source);
    autofree char *first = strdup(grant->dest); /* adding rules reallocates the array */
    autoclose int top = source ? open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int status = source && first ? 0 : brig_fail_nomem(err);
    for (size_t i = 0; i < count && status == 0 && top >= 0; i++) {
        const struct policy_grant *other = &a->policy->grants[i];
        char dest[PATH_LENGTH_MAX + 1];
        if (i == index || !is_writable(other) || !path_is_beneath(other->source, source) ||
            (strcmp(other->source, source) == 0 && i < index) ||
            !str_fill(dest, sizeof dest, other->dest, source + strlen(other->source)) ||
            str_equal(dest, first))
            continue;
        if (a->options->dry) {
            status = add_tree(a, top, source, dest, false, err);
            continue;
        }
        status = protect_names(a, top, source, dest, err);
        if (status == 0)
            status = add_view(a, top, source, dest, err);
    }
    return status;
}

int rules_add(struct guard *guard, struct brig_policy *policy, const struct guard_options *options,
              struct str *notes, struct brig_error *err)
{
    struct adding adding = {.guard = guard,
                            .policy = policy,
                            .options = options,
                            .owner = git_owner(&guard->git),
                            .notes = notes};
    struct adding *a = &adding;
    size_t count = policy->grant_count; /* without the ones added here */
    int status = brig_policy_origin(policy, ORIGIN, err);
    for (size_t i = 0; i < count && status == 0; i++) {
        struct policy_grant *grant = &policy->grants[i];
        char real[PATH_LENGTH_MAX + 1];
        bool review = grant->review && path_resolve(grant->source, real);
        if (!is_writable(grant) || (options->off && !review))
            continue;
        a->reviewed = review ? real : NULL;
        autofree char *source = NULL;
        autofree char *dest = NULL; /* adding rules reallocates the array */
        status = str_copy(grant->source, &source, err);
        if (status == 0)
            status = str_copy(grant->dest, &dest, err);
        autoclose int top = -1;
        if (status == 0)
            status = open_granted(grant, &top, err);
        if (status <= 0 || !source || !dest)
            continue;
        bool workdir = a->options->workdir && strcmp(source, a->options->workdir) == 0;
        if (!is_granted(policy, i, source))
            status = add_tree(a, top, source, dest, workdir || review, err);
        if (status >= 0 && workdir)
            status = add_repository_above(a, source, dest, err);
        if (status >= 0 && review)
            status = 0;
        else if (status >= 0)
            status = add_root(a, top, source, err);
        if (status == 0 && !review)
            status = add_nested(a, source, dest, err);
    }
    a->reviewed = NULL;
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_views(a, i, count, err);
    return status == 0 && count > 0 ? add_author(a, "/", NULL, err) : status;
}
