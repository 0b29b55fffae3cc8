/* SPDX-License-Identifier: MIT */
/* Protected paths: looks at what is granted and adds the rules. */
#include "cli/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"
#include "cli/workdir.h"
#include "cli/worktree.h"
#include "policy/policy.h"

#define RULE_ORIGIN "protected"
#define REPOSITORIES_MAX 128 /* of submodules, looked at for one working directory */
#define EMPTY_LINKS_MAX 64   /* submodules without one, whose .git is held */

static void scan_done(struct protect_scan *scan)
{
    for (size_t i = 0; i < scan->root_count; i++) {
        (void)close(scan->roots[i].fd);
        free(scan->roots[i].path);
        free(scan->roots[i].source);
        free(scan->roots[i].dest);
    }
    free(scan->roots);
}

/* Whether the directory has a repository of its own, and the protection of that. */
static int protect_repository(struct protect_scan *scan, const struct protect_root *root, bool hold,
                              bool *ret_has_one, char ret_git_dir[PATH_LENGTH_MAX + 1],
                              struct brig_error *err)
{
    struct stat info;
    bool missing = fstatat(root->fd, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0;
    bool directory = !missing && S_ISDIR(info.st_mode);
    char path[PATH_LENGTH_MAX + 1];
    if (!protect_join(path, root->path, "/.git"))
        return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s/.git'", root->path);
    const char *name = protect_git_name(scan, path);
    if (missing || (directory && protect_is_empty(root->fd, ".git"))) {
        *ret_has_one = false;
        if (!hold || protect_is_excepted(scan, name, path) || !protect_can_be_written(scan, path))
            return 0;
        return protect_hold_name(scan, root->fd, root->path, ".git", PROTECT_HOLD_DIRECTORY,
                                 BRIG_GRANT_HELD, err);
    }
    *ret_has_one = true;
    bool excepted = protect_is_excepted(scan, name, path);
    if (directory && !excepted)
        memcpy(ret_git_dir, path, sizeof path);
    if (directory)
        return protect_git_dir(scan, path, err);
    if (excepted)
        return 0;
    int status = protect_add_rules(scan, path, 0, err);
    char target[PATH_LENGTH_MAX + 1] = "";
    if (S_ISLNK(info.st_mode)) {
        autoclose int fd = openat(root->fd, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || worktree_path_of(fd, target) < 0)
            target[0] = '\0';
    } else {
        struct worktree worktree;
        worktree_find(root->fd, scan->owner, &worktree);
        memcpy(target, worktree.git_dir, sizeof target);
        if (status == 0 && worktree.kind == WORKTREE_LINKED)
            status = protect_config(scan, root->path, worktree.common, err);
    }
    memcpy(ret_git_dir, target, sizeof target);
    return status == 0 && target[0] ? protect_git_dir(scan, target, err) : status;
}

static int remember(struct protect_scan *scan, const struct protect_root *root, const char *git_dir,
                    struct brig_error *err)
{
    char modules[PATH_LENGTH_MAX + 1];
    bool excepted = protect_join(modules, git_dir, "/modules") &&
                    protect_is_excepted(scan, ".git/modules", modules);
    return protect_remember(scan->protect, root->fd, root->path, git_dir, !excepted, err);
}

/* Keeps a directory from becoming a repository itself, whose settings git obeys where it finds no
 * `.git` it likes: what a repository needs is held by a directory that git cannot enter, so it is none
 * during the run either (but for root, who enters all). */
static int hold_top(struct protect_scan *scan, const struct protect_root *root,
                    struct brig_error *err)
{
    if (worktree_is_git_dir(root->fd))
        return 0;
    for (size_t i = 0; i < protect_top_rows.count; i++) {
        const struct protect_row *row = &protect_top_rows.rows[i];
        autofree char *path = NULL;
        if (asprintf(&path, "%s/%s", root->path, row->path) < 0) {
            path = NULL;
            return brig_fail_nomem(err);
        }
        struct stat info;
        bool missing = fstatat(root->fd, row->path, &info, AT_SYMLINK_NOFOLLOW) < 0;
        bool shared = !missing && S_ISDIR(info.st_mode) && !(info.st_mode & S_IXUSR) &&
                      protect_is_empty(root->fd, row->path);
        if ((missing || shared) && !protect_is_excepted(scan, row->path, path) &&
            protect_can_be_written(scan, path))
            return protect_hold_name(scan, root->fd, root->path, row->path, row->hold, 0, err);
    }
    return 0; /* all are in use: protect_compare() looks afterwards */
}

/* A submodule that the index names: its repository is protected wherever that is, and where there is
 * none, none can be made. `git status` at the top obeys it. */
static int look_at_link(struct protect_scan *scan, size_t index, int top_fd, const char *link,
                        struct brig_error *err)
{
    autoclose int fd = -1;
    struct protect_root tree = {.fd = -1};
    char path[PATH_LENGTH_MAX + 1], git_dir[PATH_LENGTH_MAX + 1] = "";
    if (path_open_beneath(top_fd, link, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0 ||
        worktree_path_of(fd, path) < 0)
        return 0;
    tree.fd = fd;
    tree.path = path;
    bool has_one = false;
    /* Where there are many without one, those that are not held are looked at after the run. */
    bool hold = scan->empty_links < EMPTY_LINKS_MAX;
    int status = protect_repository(scan, &tree, hold, &has_one, git_dir, err);
    if (status < 0 || !has_one) {
        scan->empty_links++;
        return status;
    }
    protect_has_repository(scan->protect, index, link);
    if (!git_dir[0] || !protect_can_be_written(scan, git_dir))
        return 0;
    status = protect_config(scan, path, git_dir, err);
    return status < 0 ? status : remember(scan, &tree, git_dir, err);
}

/* The submodules of what was remembered from `first` on, and theirs. */
static int look_at_links(struct protect_scan *scan, size_t first, struct brig_error *err)
{
    const struct protect *protect = scan->protect;
    int status = 0;
    for (size_t i = first; i < protect->seen_count; i++) {
        int top_fd = -1;
        for (const char *link = NULL;
             status == 0 && (link = protect_next_link(protect, i, link, &top_fd));) {
            if (protect->seen_count - first > REPOSITORIES_MAX) {
                message_warning("'%s' has more than %d submodules: '%s' and what follows is not "
                                "protected",
                                scan->settings->cwd, REPOSITORIES_MAX, link);
                protect_leave_links(scan->protect, i, link);
                return 0;
            }
            status = look_at_link(scan, i, top_fd, link, err);
        }
    }
    return status;
}

static int look_at(struct protect_scan *scan, const struct protect_root *root,
                   struct brig_error *err)
{
    bool hold = strcmp(root->source, scan->settings->cwd) == 0;
    bool project = false;
    char git_dir[PATH_LENGTH_MAX + 1] = "";
    int status = 0;
    /* One without a working tree, or granted for a worktree. An earlier run may have made it look like
     * that, so the rest is looked at all the same. */
    if (worktree_was_git_dir(root->fd))
        status = protect_git_dir(scan, root->path, err);
    if (status == 0)
        status = protect_repository(scan, root, hold, &project, git_dir, err);
    if (status == 0 && git_dir[0])
        status = protect_config(scan, root->path, git_dir, err);
    if (status == 0 && (hold || project))
        status = hold_top(scan, root, err);
    size_t first = scan->protect->seen_count;
    if (status == 0 && (hold || project))
        status = remember(scan, root, git_dir, err);
    if (status == 0 && git_dir[0])
        status = look_at_links(scan, first, err);
    if (status < 0)
        return status;
    return protect_add_rows(scan, root->fd, root->path, "", &protect_project_rows, hold || project,
                            err);
}

/* Remembers a granted directory; nothing if it is something else, or not there (yet). */
static int add_root(struct protect_scan *scan, const struct policy_grant *grant,
                    struct brig_error *err)
{
    autoclose int fd = open(grant->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[PATH_LENGTH_MAX + 1];
    if (fd < 0 || worktree_path_of(fd, path) < 0)
        return 0;
    autofree char *copy = NULL;
    autofree char *source = NULL;
    autofree char *dest = NULL;
    int status = str_copy(path, &copy, err);
    if (status < 0 || (status = str_copy(grant->source, &source, err)) < 0 ||
        (status = str_copy(grant->dest, &dest, err)) < 0)
        return status;
    struct protect_root *roots = reallocarray(scan->roots, scan->root_count + 1, sizeof *roots);
    if (!roots)
        return brig_fail_nomem(err);
    scan->roots = roots;
    scan->roots[scan->root_count++] = (struct protect_root){.fd = take_fd(&fd),
                                                            .path = take_ptr(&copy),
                                                            .source = take_ptr(&source),
                                                            .dest = take_ptr(&dest)};
    return 0;
}

/* Grants the repository that a root's `.git` file names, if that names the root back. */
static int grant_repository(struct protect_scan *scan, const struct protect_root *root,
                            const struct identity *identity, struct brig_error *err)
{
    struct worktree worktree;
    worktree_find(root->fd, scan->owner, &worktree);
    if (worktree.kind == WORKTREE_NONE)
        return 0;
    const struct policy_grant *rule = protect_rule_of(scan->settings->policy, worktree.common);
    if (worktree.kind == WORKTREE_LINKED && rule && rule->access != BRIG_READ_WRITE)
        return 0;                                 /* the user has decided */
    for (size_t i = 0; i < scan->root_count; i++) /* what is granted anyway needs no link back */
        if (worktree.git_dir[0] && path_is_beneath(scan->roots[i].path, worktree.git_dir) &&
            (worktree.kind == WORKTREE_FOREIGN ||
             path_is_beneath(scan->roots[i].path, worktree.common)))
            return 0;
    if (worktree.kind == WORKTREE_LINKED && workdir_is_precious(worktree.common, identity)) {
        worktree.kind = WORKTREE_FOREIGN;
        worktree.why = "which is a home directory or contains one";
    } else if (worktree.kind == WORKTREE_LINKED && workdir_is_foreign(worktree.common, identity) &&
               !workdir_is_foreign(root->path, identity)) {
        worktree.kind = WORKTREE_FOREIGN;
        worktree.why = "which belongs to another user";
    }
    if (worktree.kind == WORKTREE_FOREIGN) {
        message_warning("'%s/.git' names a repository%s%s, %s: it is not granted. If it is "
                        "yours, use -d",
                        root->path, worktree.git_dir[0] ? " at " : "", worktree.git_dir,
                        worktree.why);
        return 0;
    }
    int status =
        brig_policy_grant(scan->settings->policy, BRIG_READ_WRITE, worktree.common, NULL, 0, err);
    if (status < 0)
        return status;
    const struct brig_policy *policy = scan->settings->policy;
    struct policy_grant grant = policy->grants[policy->grant_count - 1];
    return add_root(scan, &grant, err);
}

static int find_roots(struct protect_scan *scan, const struct identity *identity,
                      struct brig_error *err)
{
    const struct brig_policy *policy = scan->settings->policy;
    size_t rules = policy->grant_count;
    int status = 0;
    for (size_t i = 0; i < rules && status == 0; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE && policy->grants[i].fd < 0)
            status = add_root(scan, &policy->grants[i], err);
    size_t count = scan->root_count;
    for (size_t i = 0; i < count && status == 0; i++) {
        struct protect_root root = scan->roots[i]; /* the array may move */
        status = grant_repository(scan, &root, identity, err);
    }
    return status;
}

bool protect_is_wanted(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE && policy->grants[i].fd < 0)
            return true;
    return false;
}

/* Where the rules begin now: mounts may have been put before them, and masks removed. */
static size_t find_first_rule(const struct brig_policy *policy)
{
    size_t first = 0;
    while (first < policy->grant_count && strcmp(policy->grants[first].origin, RULE_ORIGIN) != 0)
        first++;
    return first;
}

/* What nobody could make is in no danger, and its rules may be about nothing. */
static void excuse_impossible(const struct protect *protect)
{
    struct policy_grant *rules = protect->policy->grants + find_first_rule(protect->policy);
    for (size_t i = 0; i < protect->held.count; i++) {
        const struct placeholder *item = &protect->held.items[i];
        for (size_t j = 0; j < item->rule_count && item->state == PLACEHOLDER_IMPOSSIBLE; j++)
            rules[item->first_rule - protect->first_rule + j].flags |= BRIG_GRANT_OPTIONAL;
    }
}

/* Takes up the names, when the engine is about to look for them. */
static int take_up(void *arg, struct brig_error *err)
{
    struct protect *protect = arg;
    identity_enter(protect->identity);
    int status = placeholders_make(&protect->held, err);
    identity_leave(protect->identity);
    excuse_impossible(protect);
    return status;
}

/* A thread has rights of its own, and so those that we have. */
static void begin_to_take_up(void *arg)
{
    struct protect *protect = arg;
    if (geteuid() != 0)
        placeholders_make_beside(&protect->held);
}

int protect_apply(struct settings *settings, const struct identity *identity, int journal_dir,
                  struct protect *ret_protect, struct brig_error *err)
{
    *ret_protect = PROTECT_INIT;
    ret_protect->policy = settings->policy;
    ret_protect->identity = identity;
    for (size_t i = 0; i < settings->unprotect_count; i++) {
        int status = protect_check_name(settings->unprotect[i], err);
        if (status < 0)
            return status;
    }
    if (!protect_is_wanted(settings))
        return 0;
    struct brig_policy *policy = settings->policy;
    struct protect_scan scan = {.settings = settings,
                                .protect = ret_protect,
                                .owner = identity->host_uid != (uid_t)-1 ? identity->host_uid
                                                                         : geteuid()};
    int status = brig_policy_origin(policy, "git repository", err);
    if (status == 0)
        status = find_roots(&scan, identity, err);
    if (status == 0)
        status = brig_policy_origin(policy, RULE_ORIGIN, err);
    ret_protect->first_rule = policy->grant_count;
    if (status == 0 && !settings->dry_run)
        placeholders_begin(&ret_protect->held, journal_dir);
    for (size_t i = 0; i < scan.root_count && status == 0 && !settings->no_protect; i++)
        status = look_at(&scan, &scan.roots[i], err);
    if (status == 0 && !settings->no_protect)
        status = protect_own(&scan, err);
    scan_done(&scan);
    if (settings->dry_run)
        protect_compare(ret_protect, false);
    if (ret_protect->held.count > 0)
        policy->errand =
            (struct policy_errand){.begin = begin_to_take_up, .run = take_up, .arg = ret_protect};
    return status;
}

void protect_advise(const struct settings *settings, const char *program)
{
    const struct brig_policy *policy = settings->policy;
    const char *slash = strrchr(program, '/');
    if (strcmp(slash ? slash + 1 : program, "git") != 0)
        return;
    for (size_t i = 0; i < policy->grant_count; i++) {
        if (policy->grants[i].access != BRIG_PROTECT || !strstr(policy->grants[i].dest, "/.git"))
            continue;
        message_note("git's hooks and settings are protected; for git to change them, use "
                     "--unprotect .git");
        return;
    }
}

void protect_tidy(struct protect *protect)
{
    placeholders_remove(&protect->held);
    protect_compare(protect, true);
}

void protect_done(struct protect *protect)
{
    protect_tidy(protect);
    placeholders_done(&protect->held);
}
