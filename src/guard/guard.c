/* SPDX-License-Identifier: MIT */
#include "guard/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/tree.h"
#include "guard/names.h"
#include "guard/rules.h"
#include "guard/run.h"

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
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &guard->began); /* as the times of files */
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
    if (!options->dry && guard->git.program)
        run_complete_all(guard, notes);
    if (!options->off)
        status = rules_add(guard, policy, options, notes, err);
    for (size_t i = 0; status < 0 && i < guard->tree_count;
         i++) /* work of an earlier run is in it */
        if (guard->trees[i].has_private && guard->trees[i].private_git.resumed)
            guard->unfinished = true;
    if (status < 0)
        guard_free(guard);
    else
        *ret_guard = guard;
    return status;
}

static void show_running(int run, struct str *notes)
{
    for (unsigned i = 0; i < TREES_MAX; i++) {
        autoclose int folder = -1;
        struct private_git p;
        if (run_open_folder(run, i, false, &folder, NULL) < 0)
            return;
        if (private_open(folder, &p, NULL) < 0)
            continue;
        str_appendf(notes, "%s: a run goes on; %s\n", str_shown(p.top_path).text,
                    private_has_changed(&p) ? "its git directory has changes"
                                            : "nothing in git has changed");
        private_done(&p);
    }
}

static void show_one(const struct guard *guard, const char *name, struct str *notes)
{
    if (str_starts_with(name, PRIVATE_PENDING))
        str_append(notes,
                   "a rebase or merge goes on; the next run in its directory continues it\n");
    autoclose int run =
        str_starts_with(name, RUN_PREFIX) || str_starts_with(name, RUN_KEPT_PREFIX)
            ? openat(guard->storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            : -1;
    autoclose int lock = run < 0 ? -1 : openat(run, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
        show_running(run, notes);
    else if (lock >= 0)
        str_append(notes, "what a run did was not transferred; brig sync tries again\n");
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
        if (show)
            show_one(guard, item->d_name, notes);
        else if (str_starts_with(item->d_name, RUN_PREFIX) ||
                 str_starts_with(item->d_name, RUN_KEPT_PREFIX))
            status = run_sync(guard, item->d_name, notes, err);
    guard_free(guard);
    return status;
}

bool guard_has_left(int storage)
{
    static const char *const prefixes[] = {RUN_PREFIX, RUN_KEPT_PREFIX, PRIVATE_PENDING};
    autoclose int fd = openat(storage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return false;
    (void)take_fd(&fd);
    for (const struct dirent *item; (item = readdir(dir));)
        for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
            if (str_starts_with(item->d_name, prefixes[i]))
                return true;
    return false;
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < guard->tree_count; i++) {
        struct tree *tree = &guard->trees[i];
        if (tree->removes)
            run_remove_made(tree->top, tree->made);
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
