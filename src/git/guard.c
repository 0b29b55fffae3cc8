/* SPDX-License-Identifier: MIT */
#include "git/guard.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/path.h"
#include "base/process.h"
#include "base/tree.h"
#include "git/plan.h"
#include "git/range.h"
#include "git/reviewed.h"
#include "git/run.h"
#include "git/take.h"
#include "held/names.h"

#define FETCH_END_MS 15000
#define REPORT_MAX 65536

/* ---- the storage ---- */

int run_open(struct guard *guard, struct brig_error *err)
{
    if (guard->run >= 0)
        return 0;
    int status = files_random_name(RUN_PREFIX, guard->name, sizeof guard->name, err);
    if (status < 0)
        return status;
    /* Created under another name: without its lock it would look like the directory of a killed
     * run. */
    char hidden[80];
    (void)snprintf(hidden, sizeof hidden, "new-%s", guard->name);
    if (mkdirat(guard->storage, hidden, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot create a directory in the jail's storage");
    autoclose int run = files_open_dir(guard->storage, hidden);
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

/* Opens the directory of a working tree in the run's; -1 with errno. */
static int run_open_folder(int run, size_t number)
{
    return files_open_dir(run, str_number(number).text);
}

void run_name_space(const struct guard *guard, unsigned number, char ret_space[TRANSFER_SPACE_MAX])
{
    enum { RUN_LENGTH = 8, LEFT = 32 };
    const char *run = strchr(guard->name, '-');
    size_t used = (size_t)snprintf(ret_space, TRANSFER_SPACE_MAX, "refs/brig/");
    for (const char *c = guard->jail; *c && used < TRANSFER_SPACE_MAX - LEFT; c++)
        ret_space[used++] = isalnum((unsigned char)*c) || *c == '-' ? *c : '_';
    used += (size_t)snprintf(ret_space + used, LEFT, "/%.*s", RUN_LENGTH, run ? run + 1 : "");
    if (number > 0)
        (void)snprintf(ret_space + used, TRANSFER_SPACE_MAX - used, "-%u", number);
}

/* Removes the empty `.git` that brig created, unless another run holds a lock on it: that run has a
 * mount on it, which the kernel would detach. */
static void remove_made(int top, int made)
{
    if (flock(made, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(top, ".git", AT_REMOVEDIR); /* fails if it is not empty */
}

/* Waits until no other process transfers for this run. Returns the fd of the lock, or -1 on
 * failure. */
static int lock_transfer(int run)
{
    autoclose int fd = openat(run, "transfer", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return -1;
    return take_fd(&fd);
}

/* Writes to the lock file what a process needs to complete this run: "hold" or "report", the names
 * that are not held back, and an empty text; then for each granted directory its path, its
 * identity, its initial entries, the known repositories, and an empty text. */
static int describe(struct guard *guard, struct brig_error *err)
{
    autostr struct str text = {0};
    int status = guard->root_count > 0 && guard->storage >= 0 ? run_open(guard, err) : 0;
    if (status < 0 || guard->run < 0)
        return status;
    str_list_add(&text, guard->rules.report_only ? "report" : "hold");
    for (size_t i = 0; i < guard->rules.unprotect_count; i++)
        str_list_add(&text, guard->rules.unprotect[i]);
    str_list_add(&text, "");
    for (size_t i = 0; i < guard->root_count; i++) {
        const struct root *root = &guard->roots[i];
        char id[FILES_ID_MAX] = "";
        (void)files_identify(root->held.top, "", id);
        str_list_add(&text, root->held.path);
        str_list_add(&text, id);
        held_set_write(&root->held.existed, &text);
        str_append_bytes(&text, "", 1);
        str_append_bytes(&text, root->known.data, root->known.length);
        str_list_add(&text, "");
    }
    int failed = text.failed ? -ENOMEM : write_all(guard->lock, text.data, text.length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's storage")
                      : 0;
}

/* Opens the directory of a run and takes its lock: 1, 0 if the run is active, -1 if there is no
 * such run. */
static int open_run(int storage, const char *name, int *ret_run, int *ret_lock)
{
    if (!str_starts_with(name, RUN_PREFIX) && !str_starts_with(name, RUN_KEPT_PREFIX))
        return -1;
    *ret_run = files_open_dir(storage, name);
    *ret_lock = *ret_run < 0 ? -1 : openat(*ret_run, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    return *ret_lock < 0 ? -1 : flock(*ret_lock, LOCK_EX | LOCK_NB) == 0;
}

/* Takes what an active run has made out of what existed when this run began. */
static void disown_made_by(struct guard *guard, int storage, const char *name)
{
    autostr struct str text = {0};
    autoclose int run = -1, lock = -1;
    if (open_run(storage, name, &run, &lock) != 0 || !files_read(run, "lock", &text))
        return;
    const char *at = str_list_next(&text, NULL);
    if (!at || strcmp(at, "hold") != 0)
        return; /* nothing of it is held back */
    while ((at = str_list_next(&text, at)) && *at)
        ;
    while (at && (at = str_list_next(&text, at))) {
        const char *id = str_list_next(&text, at);
        const char *existed = id ? str_list_next(&text, id) : NULL;
        for (size_t i = 0; existed && i < guard->root_count; i++) {
            struct held_root *root = &guard->roots[i].held;
            char now[FILES_ID_MAX];
            if (files_identify(root->top, "", now) && strcmp(now, id) == 0)
                held_set_keep(&root->existed, existed);
        }
        for (at = existed; at && (at = str_list_next(&text, at)) && *at;)
            ;
    }
}

/* What an active run of any jail has made is not the user's, although it exists when this run begins. */
static void disown_made(struct guard *guard)
{
    autoclose int all = guard->storage < 0 ? -1 : files_open_dir(guard->storage, "..");
    autodir DIR *jails = all < 0 || guard->root_count == 0 ? NULL : files_list(all, ".");
    for (const struct dirent *jail; jails && (jail = files_next(jails));) {
        autoclose int storage =
            str_ends_with(jail->d_name, GUARD_PART) ? files_open_dir(all, jail->d_name) : -1;
        autodir DIR *runs = storage < 0 ? NULL : files_list(storage, ".");
        for (const struct dirent *run; runs && (run = files_next(runs));)
            disown_made_by(guard, storage, run->d_name);
    }
}

/* Reads one granted directory; returns the last text that was read. */
static const char *read_root(struct guard *guard, const char *path)
{
    const char *id = str_list_next(&guard->text, path);
    const char *existed = id ? str_list_next(&guard->text, id) : NULL, *at = existed;
    struct root *root = &guard->roots[guard->root_count];
    char now[FILES_ID_MAX];
    autoclose int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Another jail may have replaced the directory. */
    bool same = existed && guard->root_count < ROOTS_MAX && files_identify(top, "", now) &&
                strcmp(now, id) == 0 && held_look(top, path, &root->held, NULL) == 0;
    while (at && (at = str_list_next(&guard->text, at)) && *at)
        if (same)
            str_list_add(&root->known, at);
    if (same) {
        held_set_read(existed, &root->held.existed);
        guard->root_count++;
    }
    return at;
}

/* Reads the text of describe(). If it is missing, as after a crash before the start of the run,
 * everything is held back. */
static int read_description(struct guard *guard, struct brig_error *err)
{
    size_t count = 0;
    if (!files_read(guard->run, "lock", &guard->text) || guard->text.length == 0)
        return 0;
    guard->rule_names = calloc(guard->text.length, sizeof *guard->rule_names);
    if (!guard->rule_names)
        return brig_fail_nomem(err);
    const char *at = str_list_next(&guard->text, NULL);
    bool report = strcmp(at, "report") == 0;
    while ((at = str_list_next(&guard->text, at)) && *at)
        guard->rule_names[count++] = at;
    guard->rules = (struct held_rules){guard->rule_names, count, report};
    while (!guard->running && at && (at = str_list_next(&guard->text, at)))
        at = read_root(guard, at); /* while the run is active, nothing is searched or held back */
    return 0;
}

/* ---- the end of a run ---- */

int run_open_record(int run, int *ret_record, struct brig_error *err)
{
    return files_make_dir(run, RUN_RECORD, ret_record, err);
}

/* What comes after git's part: a new repository gets its place, and an unfinished rebase is kept. */
static int settle_tree(struct guard *guard, const struct plan_part *part, struct private_git *p,
                       struct str *notes, struct brig_error *err)
{
    if (guard->running)
        return 0;
    int status = part->made ? private_find_placed(p, err) : 0;
    if (status >= 0)
        status = nested_worktrees(&guard->git, p, notes, err);
    if (status >= 0 && part->report.pending)
        status = private_keep(p, guard->storage, err);
    if (status >= 0)
        private_close(p);
    return status;
}

void run_say(const char *where, const struct str *lines, struct str *notes)
{
    static const char from[] = "git: ";
    for (const char *line = lines->data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        size_t cut = where && str_starts_with(line, from) ? strlen(from) : 0;
        if (cut > 0)
            str_concat(notes, from, str_shown(where).text, ": ");
        str_append_bytes(notes, line + cut, (size_t)(end + 1 - line) - cut);
    }
}

void run_tell(const char *where, const struct plan_report *report, struct str *notes)
{
    autostr struct str lines = {0};
    if (report->summary.length > 0)
        str_concat(&lines, "git: ", report->summary.data, "\n");
    str_append(&lines, report->notes.length > 0 ? report->notes.data : "");
    run_say(where, &lines, notes);
}

/* If there are several repositories, or the run is an earlier one, which may have been elsewhere, each is named. */
static const char *name_of_tree(const struct guard *guard, const struct private_git *p)
{
    return guard->tree_count > 1 || guard->earlier ? p->top_path : NULL;
}

/* Whether a granted directory is searched for repositories: not if the run may write to their git
 * directories, or if another granted directory that is searched contains it. */
static bool is_searched(const struct guard *guard, const struct root *root)
{
    for (const struct root *other = guard->roots; other < guard->roots + guard->root_count; other++)
        if (other != root && path_is_beneath(other->held.path, root->held.path) &&
            (other < root || strcmp(other->held.path, root->held.path) != 0))
            return false;
    return guard->run >= 0 &&
           !names_is_excepted(guard->rules.unprotect, guard->rules.unprotect_count, root->held.path,
                              ".git");
}

static void note_failure(struct str *notes, const struct brig_error *err, bool *failed)
{
    str_appendf(notes, "git: %s. It is tried again by the next run, or by brig sync\n",
                err->message);
    *failed = true;
}

/* One working tree as a part of the hand-over; false if there is nothing to hand over, or it failed. */
static bool begin_part(struct guard *guard, struct tree *tree, struct plan_part *part,
                       struct str *folder, struct str *notes, bool *failed)
{
    struct private_git *p = &tree->private_git;
    struct brig_error err = {0};
    int status = 1;
    if (!tree->has_private)
        return false;
    if (tree->reviewed) {
        autostr struct str says = {0};
        status = reviewed_fetch(guard, tree, &says, &err);
        run_say(name_of_tree(guard, p), &says, notes);
    } else if (p->repo.kind == REPO_NONE)
        status = guard->running ? 0 : private_recreate(&guard->git, p, &err);
    if (status < 0)
        note_failure(notes, &err, failed);
    if (status == 0 && !tree->reviewed && !guard->running)
        private_close(p); /* it is no repository */
    if (status <= 0)
        return false;
    str_concat(folder, guard->name, "/", str_number(p->number).text);
    *part = (struct plan_part){.p = p,
                               .folder = folder->data,
                               .made = private_is_made(p),
                               .flags = (guard->running ? PLAN_RUNNING : 0) |
                                        (guard->unsearched ? PLAN_UNSEARCHED : 0)};
    run_name_space(guard, p->number, part->space);
    return true;
}

#define TOLD_MAX 16 /* stashes that are judged only to tell about them */

/* A run without review takes everything: its files are in the project already. What a commit has that something would execute
 * unasked is named, as a checkout writes it; only the files themselves are held back. The refs of a repository are judged
 * together, so that many of them hide none. */
struct telling {
    struct str *notes;
    struct git_item item; /* of a ref of this working tree */
    struct str news;      /* the objects of its refs */
    size_t stashes;
};

static void tell_range(struct telling *telling, const struct git_item *item)
{
    static const enum names_class told[] = {NAMES_UNASKED, NAMES_NOT_JUDGED};
    struct range range;
    if (range_judge(item, &range, NULL) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(told); i++) {
        const struct range_mark *mark = &range.first[told[i]];
        if (!mark->reason)
            continue;
        str_append(telling->notes,
                   told[i] == NAMES_UNASKED
                       ? "git: something executes a file of this commit when it is checked out: "
                       : "git: not all that is committed here was judged: ");
        range_append_mark(telling->notes, mark);
        str_append_char(telling->notes, '\n');
    }
    range_done(&range);
}

static int tell_item(void *data, const struct git_item *item, struct str *reason,
                     struct brig_error *err)
{
    struct telling *telling = data;
    struct git_item alone = *item;
    (void)reason;
    (void)err;
    alone.others = &(struct str){0};
    if (item->kind == GIT_ITEM_REF && item->new) {
        telling->item = *item;
        str_list_add(&telling->news, item->new);
    } else if (item->kind == GIT_ITEM_WORKTREE) {
        tell_range(telling, &alone);
    } else if (item->kind == GIT_ITEM_STASH && item->new && telling->stashes++ < TOLD_MAX) {
        tell_range(telling, item);
    }
    return 1;
}

static void tell_end(void *data)
{
    struct telling *telling = data;
    struct git_item *item = &telling->item;
    item->old = NULL;
    item->new = str_list_next(&telling->news, NULL);
    item->others = &telling->news;
    if (item->new)
        tell_range(telling, item);
    if (telling->stashes > TOLD_MAX)
        str_appendf(telling->notes, "git: %zu more stashes were not judged\n",
                    telling->stashes - TOLD_MAX);
    telling->stashes = 0;
    str_done(&telling->news);
    telling->news = (struct str){0};
}

/* Submodules come before the tree they are in. */
static void transfer_trees(struct guard *guard, struct str *notes, bool *failed)
{
    struct brig_error err = {0};
    autoclose int record = -1;
    size_t count = 0;
    struct private_git *gits[TREES_MAX];
    autofree struct plan_part *parts = calloc(guard->tree_count + 1, sizeof *parts);
    autofree struct str *folders = calloc(guard->tree_count + 1, sizeof *folders);
    int status = parts && folders ? 0 : brig_fail_nomem(&err);
    for (size_t i = guard->tree_count; i-- > 0 && status == 0;) {
        gits[count] = &guard->trees[i].private_git;
        count += begin_part(guard, &guard->trees[i], &parts[count], &folders[count], notes, failed);
    }
    if (status == 0 && count > 0 && guard->into < 0)
        status = run_open_record(guard->run, &record, &err);
    struct telling telling = {.notes = notes};
    const struct git_chooser teller = {tell_item, &telling, tell_end};
    const struct plan_options options = {.git = &guard->git,
                                         .chooser = guard->chooser ? guard->chooser : &teller,
                                         .storage = guard->storage,
                                         .into = guard->into >= 0 ? guard->into : record};
    if (status == 0 && count > 0)
        status = plan_hand_over(&options, parts, count, &err);
    if (status < 0)
        note_failure(notes, &err, failed);
    for (size_t i = 0; i < count; i++) {
        if (status == 0 && parts[i].status == 0)
            parts[i].status = settle_tree(guard, &parts[i], gits[i], notes, &parts[i].err);
        if (status == 0)
            run_tell(name_of_tree(guard, gits[i]), &parts[i].report, notes);
        if (status == 0 && parts[i].status < 0)
            note_failure(notes, &parts[i].err, failed);
        plan_report_done(&parts[i].report);
        str_done(&folders[i]);
    }
}

/* New repositories come first: a branch with a gitlink must not arrive before them. Then the trees,
 * submodules after the tree they are in. */
static bool transfer_all(struct guard *guard, bool trees, struct str *notes)
{
    struct str files[ROOTS_MAX] = {0};
    struct nested_report reports[ROOTS_MAX] = {0};
    bool failed = false;
    for (size_t i = 0; i < guard->root_count; i++) {
        struct brig_error err = {0};
        if (!guard->git.program || !is_searched(guard, &guard->roots[i]))
            continue;
        int treated = nested_treat(guard, &guard->roots[i], &files[i], &reports[i], notes, &err);
        if (treated < 0)
            note_failure(notes, &err, &failed);
        guard->unsearched |= treated > 0;
        trees = trees || reports[i].has_new;
    }
    if (trees && !failed) /* git must not follow a gitlink into a directory of a jail */
        transfer_trees(guard, notes, &failed);
    nested_tell(guard, reports, notes);
    for (size_t i = 0; i < guard->root_count; i++) {
        struct brig_error err = {0};
        if (nested_check(guard, &guard->roots[i], &files[i], notes, &err) < 0)
            note_failure(notes, &err, &failed);
        nested_restore(&guard->roots[i], &reports[i]);
        str_done(&reports[i].changed);
        str_done(&reports[i].opened);
        str_done(&files[i]);
    }
    return failed;
}

/* Runs in a child process and transfers all working trees of a run. Messages go to a memfd. */
static __attribute__((noreturn)) void finish_in_child(struct guard *guard, bool trees, int out)
{
    autostr struct str notes = {0};
    if (!git_become(&guard->git.user))
        _exit(1);
    if (guard->lock >= 0) /* the next run need wait for the transfer only */
        (void)close(guard->lock);
    if (guard->run >= 0)
        (void)lock_transfer(guard->run); /* until this process ends */
    autostr struct str held = {0};
    bool failed = transfer_all(guard, trees, &notes);
    for (size_t i = 0; i < guard->root_count; i++) /* also if git failed */
        if (held_take(&guard->roots[i].held, &guard->keeper, &guard->rules, &held) < 0)
            failed = true;
    (void)write_all(out, held.data, held.length); /* first: the end of long output is cut off */
    (void)write_all(out, notes.data, notes.length);
    _exit(failed ? 1 : 0);
}

static bool has_changed_trees(const struct guard *guard)
{
    for (size_t i = 0; i < guard->tree_count; i++) {
        const struct tree *tree = &guard->trees[i];
        if (tree->has_private &&
            (tree->reviewed ? reviewed_has_changed(tree) : private_has_changed(&tree->private_git)))
            return true;
    }
    return false;
}

/* Whether there is anything to be searched or held back at the end of the run. */
static bool has_roots(const struct guard *guard)
{
    for (size_t i = 0; i < guard->root_count; i++)
        if (held_has_new(&guard->roots[i].held) ||
            (guard->git.program && is_searched(guard, &guard->roots[i])))
            return true;
    return false;
}

/* Transfers the changes of a run, those of its trees if `trees`; guard->unfinished is set if that
 * failed. */
static int guard_hand_over(struct guard *guard, bool trees, struct str *notes,
                           struct brig_error *err)
{
    autoclose int out = memfd_create("guard-report", MFD_CLOEXEC);
    pid_t pid = out < 0 ? -1 : fork();
    if (pid == 0)
        finish_in_child(guard, trees, out);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the transfer of git's changes");
    guard->unfinished = process_wait(pid) != 0;
    autofree char *text = malloc(REPORT_MAX + 1);
    ssize_t length = text ? pread(out, text, REPORT_MAX, 0) : 0;
    if (length > 0)
        str_append_bytes(notes, text, (size_t)length);
    return 0;
}

/* The run may keep git from reading its directory, so the wait for the fetch has a limit. */
static void end_fetch(struct guard *guard)
{
    if (guard->fetching <= 0)
        return;
    autoclose int fd = (int)syscall(SYS_pidfd_open, guard->fetching, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd >= 0 && poll(&ended, 1, FETCH_END_MS) == 0)
        (void)kill(guard->fetching, SIGKILL);
    (void)process_wait(guard->fetching);
    guard->fetching = 0;
}

int guard_finish(struct guard *guard, int into, bool *ret_failed, struct str *notes,
                 struct brig_error *err)
{
    end_fetch(guard);
    guard->into = into;
    bool trees = guard->earlier || has_changed_trees(guard);
    int status = trees || has_roots(guard) ? guard_hand_over(guard, trees, notes, err) : 0;
    *ret_failed = status < 0 || guard->unfinished;
    return status;
}

static void fetch_now(const struct guard *guard, const struct private_git *p, const char *space)
{
    __attribute__((cleanup(fetch_done))) struct transfer t = {
        .git = &guard->git, .p = p, .space = space};
    if (private_has_changed(p))
        (void)fetch_all(&t, NULL);
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
    (void)close(guard->lock); /* if we are killed, the next run must not wait for this process */
    if (!git_become(&guard->git.user))
        _exit(1);
    (void)lock_transfer(guard->run); /* until this process ends */
    for (size_t i = 0; i < guard->tree_count; i++) {
        const struct tree *tree = &guard->trees[i];
        const struct private_git *p = &tree->private_git;
        char space[TRANSFER_SPACE_MAX];
        run_name_space(guard, p->number, space);
        if (tree->has_private && p->repo.kind != REPO_NONE)
            fetch_now(guard, p, tree->reviewed ? tree->space : space);
    }
    _exit(0);
}

/* ---- runs that were interrupted ---- */

/* Initialises a guard for an interrupted run, with its lock; free *ret_left with unload(). */
static int load(const struct guard *guard, const char *name, int run, int lock, bool running,
                struct guard **ret_left, struct brig_error *err)
{
    struct guard *left = calloc(1, sizeof *left);
    struct stat info;
    if (!left || fstat(lock, &info) < 0) {
        free(left);
        return brig_fail_nomem(err);
    }
    *left = (struct guard){.git = guard->git,
                           .began = info.st_mtim, /* written just before the start of the run */
                           .jail = guard->jail,
                           .storage = guard->storage,
                           .run = run,
                           .lock = lock,
                           .running = running,
                           .earlier = true,
                           .cache = guard->cache,
                           .into = -1,
                           .keeper = guard->keeper,
                           .author = -1,
                           .chooser = guard->chooser};
    (void)snprintf(left->name, sizeof left->name, "%s", name);
    *ret_left = left;
    int status = read_description(left, err);
    for (size_t i = 0; i < TREES_MAX && status == 0; i++) {
        autoclose int folder = run_open_folder(run, i);
        struct tree *tree = &left->trees[left->tree_count];
        if (folder < 0)
            break;
        if (!private_is_open(folder))
            continue;
        *tree = TREE_INIT;
        status = private_open(&guard->git, folder, (unsigned)i, &tree->private_git, err);
        tree->has_private = status == 0;
        left->tree_count += status == 0;
    }
    return status;
}

static void done_roots(struct guard *guard)
{
    for (size_t i = 0; i < guard->root_count; i++) {
        held_root_done(&guard->roots[i].held);
        str_done(&guard->roots[i].known);
    }
}

static void unload(struct guard *left)
{
    done_roots(left);
    for (size_t i = 0; i < left->tree_count; i++) {
        struct private_git *p = &left->trees[i].private_git;
        bool makes =
            !left->running && p->repo.kind == REPO_NONE && files_exists(p->folder, RUN_MADE);
        autoclose int made = makes ? files_open_dir(p->top, ".git") : -1;
        if (made >= 0)
            remove_made(p->top, made);
        private_done(p);
    }
    str_done(&left->text);
    free(left->rule_names);
    free(left);
}

/* A transfer has failed again, for example because the project was removed: from now on only brig
 * sync retries it. */
static int put_aside(const struct guard *guard, const char *name, int status, struct str *notes,
                     const struct brig_error *err)
{
    char kept[80];
    autofree char *path = NULL;
    (void)snprintf(kept, sizeof kept, RUN_KEPT_PREFIX "%s", strchr(name, '-') + 1);
    if (renameat(guard->storage, name, guard->storage, kept) < 0 ||
        repo_path_of(guard->storage, &path, NULL) < 0)
        return status;
    str_appendf(notes,
                "git: what an earlier run did could not be transferred%s%s. It is kept in %s/%s: "
                "remove the cause and use brig sync, or delete it\n",
                status < 0 ? ": " : "", status < 0 ? err->message : "", str_shown(path).text, kept);
    return 0;
}

/* What is done with the directories of runs. */
struct visiting {
    const struct guard_options *options;
    const struct guard_left *left;
    struct guard *guard; /* made when it is needed */
    struct str *notes;
};

/* Whether a run could write to one of the directories, or to something in one. */
static bool is_there(int run, const struct str *directories)
{
    autostr struct str text = {0};
    bool found = !directories || !files_read(run, "lock", &text);
    for (const char *at = NULL; !found && (at = str_list_next(&text, at));)
        for (const char *here = NULL; *at == '/' && (here = str_list_next(directories, here));)
            found = found || path_is_beneath(at, here) || path_is_beneath(here, at);
    return found;
}

/* The visit of an opened run, of which everything is known. */
static int visit_left(struct visiting *visiting, const char *name, int run, int lock, bool active,
                      struct brig_error *err)
{
    char entry[64];
    struct guard *left = NULL;
    int status = visiting->guard ? 0 : guard_new(visiting->options, NULL, &visiting->guard, err);
    if (status < 0)
        return status;
    if (!visiting->guard->git.program)
        return active ? brig_fail(err, BRIG_E_SETUP, 0, "git is not installed") : 0;
    (void)snprintf(entry, sizeof entry, RUN_PREFIX "%s", strchr(name, '-') + 1);
    status = load(visiting->guard, name, run, lock, active, &left, err);
    if (status == 0)
        status = visiting->left->visit(visiting->left->context, left, entry, active,
                                       visiting->notes, err);
    bool failed = status < 0 || (left && left->unfinished);
    if (left)
        unload(left);
    if (active)
        return status;
    return failed ? put_aside(visiting->guard, name, status, visiting->notes, err)
                  : tree_remove(visiting->guard->storage, name, err);
}

static int visit_named(struct visiting *visiting, const char *name, struct brig_error *err)
{
    autoclose int run = -1;
    autoclose int lock = -1;
    unsigned which = visiting->left->which;
    bool kept = str_starts_with(name, RUN_KEPT_PREFIX);
    int over = kept && !(which & GUARD_KEPT)
                   ? -1
                   : open_run(visiting->options->storage, name, &run, &lock);
    if (over < 0 || (over == 0 && !(which & GUARD_ACTIVE)) ||
        !is_there(run, visiting->left->directories))
        return 0;
    return visit_left(visiting, name, run, lock, over == 0, err);
}

int guard_each_left(const struct guard_options *options, const struct guard_left *left,
                    struct str *notes, struct brig_error *err)
{
    struct visiting visiting = {options, left, NULL, notes};
    autodir DIR *dir = files_list(options->storage, ".");
    int status = 0;
    for (const struct dirent *item; status == 0 && dir && (item = files_next(dir));) {
        struct brig_error why = {0};
        if (visit_named(&visiting, item->d_name, &why) == 0)
            continue;
        if (left->which & GUARD_ACTIVE) /* asked for */
            status = brig_fail(err, why.code, why.sys_errno, "%s", why.message);
        else
            str_appendf(notes, "git: the changes of an interrupted run are kept: %s\n",
                        why.message);
    }
    guard_free(visiting.guard);
    return status;
}

static void show_running(const struct guard *guard, int run, struct str *notes)
{
    for (size_t i = 0; i < TREES_MAX; i++) {
        autoclose int folder = run_open_folder(run, i);
        struct private_git p;
        if (folder < 0)
            return;
        if (private_open(&guard->git, folder, (unsigned)i, &p, NULL) < 0)
            continue;
        str_appendf(notes, "%s: a run goes on; %s\n", str_shown(p.top_path).text,
                    private_has_changed(&p) ? "its git directory has changes"
                                            : "nothing in git has changed");
        private_done(&p);
    }
}

static void show_one(const struct guard *guard, const char *option, const char *name,
                     struct str *notes)
{
    autoclose int run = -1;
    autoclose int lock = -1;
    int over = open_run(guard->storage, name, &run, &lock);
    if (str_starts_with(name, REVIEWED_PREFIX))
        reviewed_show(guard->storage, name, option, notes);
    else if (str_starts_with(name, PRIVATE_PENDING))
        str_append(notes,
                   "a rebase or merge goes on; the next run in its directory continues it\n");
    else if (over == 0)
        show_running(guard, run, notes);
    else if (over > 0)
        str_append(notes, "what a run did was not transferred; brig sync tries again\n");
}

bool guard_has_runs(int storage)
{
    autodir DIR *dir = files_list(storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));)
        if (str_starts_with(item->d_name, RUN_PREFIX) ||
            str_starts_with(item->d_name, RUN_KEPT_PREFIX))
            return true;
    return false;
}

void guard_tell_pending(int storage, const char *path, const char *option, struct str *notes)
{
    autofree char *at = strdup(path);
    autoclose int kept = -1;
    while (at && *at == '/' && kept < 0) {
        autoclose int top = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
        kept = top < 0 ? -1 : private_open_kept(storage, top);
        if (kept < 0)
            *strrchr(at, '/') = '\0';
    }
    if (kept < 0)
        return;
    const char *what = side_goes_on(kept), *end = "git reset -q";
    what = what ? what : "merge"; /* of which only files with conflicts are left */
    if (strcmp(what, "rebase") ==
        0) /* the index is that of the rebase: --abort alone would refuse */
        end = "sh -c 'git reset -q ORIG_HEAD && git rebase --abort'";
    else if (strcmp(what, "bisect") == 0)
        end = "git bisect reset";
    str_concat(notes, "git: a ", what, " in ", str_shown(at).text,
               " still goes on in the jail. To end it: brig", option, " ", end, "\n");
}

bool guard_has_left(int storage)
{
    static const char *const prefixes[] = {RUN_PREFIX, RUN_KEPT_PREFIX, PRIVATE_PENDING};
    autodir DIR *dir = files_list(storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
            if (str_starts_with(item->d_name, prefixes[i]))
                return true;
        if (str_starts_with(item->d_name, REVIEWED_PREFIX) && reviewed_waits(storage, item->d_name))
            return true;
    }
    return false;
}

/* ---- the guard ---- */

int guard_new(const struct guard_options *options, const struct brig_policy *policy,
              struct guard **ret_guard, struct brig_error *err)
{
    struct guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return brig_fail_nomem(err);
    guard->cache = guard->run = guard->lock = guard->author = guard->into = -1;
    guard->chooser = options->chooser;
    guard->storage = options->storage >= 0 ? fcntl(options->storage, F_DUPFD_CLOEXEC, 3) : -1;
    guard->keeper = options->keeper;
    if (guard->keeper.hold)
        guard->keeper.record = fcntl(options->keeper.record, F_DUPFD_CLOEXEC, 3);
    guard->rules =
        (struct held_rules){options->unprotect, options->unprotect_count, options->report_only};
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &guard->began); /* the clock of file times */
    int status = str_copy(options->jail, &guard->jail, err);
    if (status == 0)
        status = str_copy(options->option ? options->option : "", &guard->option, err);
    if (status == 0)
        status = git_find(&guard->git, options->environment, policy, options->user, err);
    if (status == 0 && guard->storage >= 0)
        (void)files_make_dir(guard->storage, "cache", &guard->cache, NULL);
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
    int status = guard_new(options, policy, &guard, err);
    if (status < 0)
        return status;
    if (!options->off || options->review)
        status = rules_add(guard, policy, options, notes, err);
    if (status == 0 && !options->dry)
        disown_made(guard);
    if (status == 0)
        status = describe(guard, err);
    for (size_t i = 0; status < 0 && i < guard->tree_count;
         i++) /* it contains work of an earlier run */
        if (guard->trees[i].has_private && guard->trees[i].private_git.resumed)
            guard->unfinished = true;
    if (status < 0)
        guard_free(guard);
    else
        *ret_guard = guard;
    return status;
}

void guard_show_left(const struct guard_options *options, struct str *notes)
{
    const struct guard guard = {.storage = options->storage, .git = {.user = options->user}};
    autodir DIR *dir = files_list(options->storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));)
        show_one(&guard, options->option ? options->option : "", item->d_name, notes);
}

const char *guard_name(const struct guard *guard)
{
    return guard && guard->run >= 0 ? guard->name : NULL;
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < guard->tree_count; i++) {
        struct tree *tree = &guard->trees[i];
        if (tree->removes)
            remove_made(tree->top, tree->made);
        if (tree->reviewed && tree->has_private)
            reviewed_release(guard, tree);
        if (tree->made >= 0)
            (void)close(tree->made);
        if (tree->has_private)
            private_done(&tree->private_git);
        if (tree->link >= 0)
            (void)close(tree->link);
        (void)close(tree->top);
        free(tree->dest);
    }
    for (size_t i = 0; i < guard->shared_count; i++) {
        remove_made(guard->shared[i].top, guard->shared[i].made);
        (void)close(guard->shared[i].made);
        (void)close(guard->shared[i].top);
    }
    done_roots(guard);
    for (size_t i = 0; i < guard->empty_count; i++)
        (void)close(guard->empty[i]);
    if (guard->run >= 0 && !guard->unfinished)
        (void)tree_remove(guard->storage, guard->name, NULL);
    const int fds[] = {guard->storage, guard->cache,
                       guard->run,     guard->lock,
                       guard->author,  guard->keeper.hold ? guard->keeper.record : -1};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    git_done(&guard->git);
    free(guard->jail);
    free(guard->option);
    free(guard);
}
