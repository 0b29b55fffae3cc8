/* SPDX-License-Identifier: MIT */
#include "guard/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/tree.h"
#include "guard/files.h"
#include "guard/names.h"
#include "guard/transfer.h"

#define KNOWN "known-"
#define ROOTS_FILE "roots"
#define RULES_FILE "rules"
#define FETCH_END_MS 15000
#define REPORT_MAX 65536

/* ---- the storage ---- */

int run_open(struct guard *guard, struct brig_error *err)
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

int run_open_folder(int run, unsigned number, bool make, int *ret_fd, struct brig_error *err)
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

/* Removes the empty `.git` that brig made. Not while another run holds its lock: that run has a mount on it, which
 * the kernel would detach. */
void run_remove_made(int top, int made)
{
    if (flock(made, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(top, ".git", AT_REMOVEDIR); /* fails if it is not empty */
}

/* Waits until no other process transfers for this run: the fd of the lock, or -1 if it cannot be had. */
static int lock_transfer(int run)
{
    autoclose int fd = openat(run, "transfer", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return -1;
    return take_fd(&fd);
}

/* Texts that are each ended by a NUL. */
static int write_list(int dir, const char *name, const struct str *list, struct brig_error *err)
{
    return list->failed ? brig_fail_nomem(err)
                        : files_write(dir, name, list->data, list->length, err);
}

/* False if there is no such file. */
static bool read_list(int dir, const char *name, struct str *list)
{
    return files_read(dir, name, list) && (list->length == 0 || !list->data[list->length - 1]);
}

/* What is held back: "hold" or "report", and the names that are not. */
static int write_rules(const struct guard *guard, struct brig_error *err)
{
    autostr struct str text = {0};
    str_append(&text, guard->rules.report_only ? "report" : "hold");
    str_append_bytes(&text, "", 1);
    for (size_t i = 0; i < guard->rules.unprotect_count; i++)
        str_append_bytes(&text, guard->rules.unprotect[i], strlen(guard->rules.unprotect[i]) + 1);
    return write_list(guard->run, RULES_FILE, &text, err);
}

/* Without the file, as after a crash while the run was prepared, everything is held back. */
static int read_rules(struct guard *guard, int run, struct brig_error *err)
{
    struct str *text = &guard->rules_text;
    size_t count = 0;
    guard->rules = (struct held_rules){0};
    if (!read_list(run, RULES_FILE, text) || !text->data)
        return 0;
    guard->rule_names = calloc(text->length, sizeof *guard->rule_names);
    if (!guard->rule_names)
        return brig_fail_nomem(err);
    const char *at = text->data + strlen(text->data) + 1;
    for (; at < text->data + text->length; at += strlen(at) + 1)
        guard->rule_names[count++] = at;
    guard->rules = (struct held_rules){.unprotect = guard->rule_names,
                                       .unprotect_count = count,
                                       .report_only = strcmp(text->data, "report") == 0};
    return 0;
}

/* What was in the granted directories, for the process that completes this run: "PATH\0BITS DEV INO\0" each. */
int run_write_roots(struct guard *guard, struct brig_error *err)
{
    autostr struct str text = {0};
    int status = guard->root_count > 0 && guard->storage >= 0 ? run_open(guard, err) : 0;
    if (status < 0 || guard->run < 0)
        return status;
    for (size_t i = 0; i < guard->root_count; i++) {
        str_append_bytes(&text, guard->roots[i].path, strlen(guard->roots[i].path) + 1);
        struct stat info = {0};
        (void)fstat(guard->roots[i].top, &info);
        str_appendf(&text, "%jx %jx %jx", (uintmax_t)guard->roots[i].existed,
                    (uintmax_t)info.st_dev, (uintmax_t)info.st_ino);
        str_append_bytes(&text, "", 1);
    }
    for (size_t i = 0; i < guard->root_count && status == 0; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, KNOWN "%zu", i);
        if (guard->known[i].length > 0)
            status = write_list(guard->run, name, &guard->known[i], err);
    }
    if (status == 0)
        status = write_rules(guard, err);
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
        char *rest = NULL;
        struct stat info;
        uint64_t existed = strtoumax(bits, &rest, 16);
        uintmax_t dev = strtoumax(rest, &rest, 16), ino = strtoumax(rest, &rest, 16);
        /* Another jail may have put another directory in its place. */
        if (top >= 0 && fstat(top, &info) == 0 && info.st_dev == dev && info.st_ino == ino &&
            held_look(top, at, root, NULL) == 0) {
            (void)read_list(run, name, &guard->known[guard->root_count]);
            root->existed = existed;
            guard->root_count++;
        }
        at = bits + strlen(bits) + 1;
    }
}

/* ---- the end of a run ---- */

/* The part of the directory's name that no other run has. */
static const char *id_of(const struct guard *guard)
{
    const char *dash = strchr(guard->name, '-');
    return dash ? dash + 1 : "";
}

static int transfer_tree(struct guard *guard, struct private_git *p, struct str *notes,
                         struct brig_error *err)
{
    struct transfer_report report = {0};
    char space[TRANSFER_SPACE_MAX];
    transfer_name_space(guard->jail, id_of(guard), p->number, space);
    int status = p->kind != REPO_NONE ? 1
                 : guard->running     ? 0
                                      : private_recreate(&guard->git, p, err);
    if (status > 0)
        status = transfer_finish(&guard->git, p, space,
                                 (guard->running ? TRANSFER_RUNNING : 0) |
                                     (guard->unsearched ? TRANSFER_UNSEARCHED : 0),
                                 &report, err);
    if (status >= 0 && !guard->running)
        status = private_place(p, err);
    if (status >= 0 && !guard->running)
        status = nested_worktrees(&guard->git, p, notes, err);
    if (status >= 0 && report.pending && !guard->running)
        status = private_keep(p, guard->storage, err);
    if (status >= 0 && !guard->running)
        private_close(p);
    /* Of several repositories, or of an earlier run, which may have been elsewhere, each is named. */
    bool named = guard->tree_count > 1 || guard->earlier;
    if (report.summary.length > 0)
        str_concat(notes, "git: ", named ? str_shown(p->top_path).text : "", named ? ": " : "",
                   report.summary.data, "\n");
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

/* Whether a run may write to the real git directories in it. */
static bool is_excepted(const struct guard *guard, size_t index)
{
    return names_is_excepted(guard->rules.unprotect, guard->rules.unprotect_count,
                             guard->roots[index].path, ".git");
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
    char space[TRANSFER_SPACE_MAX];
    struct str files[ROOTS_MAX] = {0};
    struct nested all[ROOTS_MAX];
    size_t outer_count = 0;
    bool failed = false;
    bool searches = guard->run >= 0 && guard->git.program;
    transfer_name_space(guard->jail, id_of(guard), 0, space);
    for (size_t i = 0; i < guard->tree_count; i++)
        if (guard->trees[i].has_private)
            outers[outer_count++] = &guard->trees[i].private_git;
    for (size_t i = 0; i < guard->root_count; i++) {
        struct brig_error err = {0};
        all[i] = (struct nested){&guard->git,
                                 guard->storage,
                                 space,
                                 guard->roots[i].top,
                                 guard->roots[i].path,
                                 &guard->known[i],
                                 guard->began,
                                 guard->run,
                                 outers,
                                 outer_count,
                                 notes};
        if (!searches || is_inside_another(guard, i) || is_excepted(guard, i))
            continue;
        int treated = nested_treat(&all[i], &files[i], &err);
        if (treated < 0)
            note_failure(notes, &err, &failed);
        guard->unsearched |= treated > 0;
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
    if (!git_become(&guard->git.user))
        _exit(1);
    if (guard->lock >= 0) /* the next run need not wait for more than the transfer */
        (void)close(guard->lock);
    if (guard->run >= 0)
        (void)lock_transfer(guard->run); /* until this process ends */
    autostr struct str held = {0};
    bool failed = transfer_all(guard, &notes);
    for (size_t i = 0; i < guard->root_count; i++) /* whatever became of git */
        if (held_take(&guard->roots[i], guard->held, &guard->rules, &held) < 0)
            failed = true;
    (void)write_all(out, held.data, held.length); /* first: what is too long is cut */
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

/* Whether a repository is new, or may be. */
static bool has_new_repository(const struct guard *guard)
{
    for (size_t i = 0; i < guard->root_count && guard->run >= 0; i++) {
        autostr struct str dirs = {0};
        if (is_inside_another(guard, i) || is_excepted(guard, i))
            continue;
        if (nested_find(guard->roots[i].top, guard->storage, &guard->began, false, &dirs, NULL) !=
            0)
            return true;
        for (const char *at = dirs.data; at && at < dirs.data + dirs.length; at += strlen(at) + 1)
            if (!nested_is_known(guard->roots[i].top, at, &guard->known[i]))
                return true;
    }
    return false;
}

int run_finish(struct guard *guard, struct str *notes, struct brig_error *err)
{
    autoclose int out = memfd_create("guard-report", MFD_CLOEXEC);
    pid_t pid = out < 0 ? -1 : fork();
    if (pid == 0)
        finish_in_child(guard, out);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the transfer of git's changes");
    guard->unfinished = git_wait(pid) != 0;
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
    (void)git_wait(guard->fetching);
    guard->fetching = 0;
}

int guard_finish(struct guard *guard, struct str *notes, struct brig_error *err)
{
    end_fetch(guard);
    if (!has_changes(guard) && !has_git_changes(guard) && !has_new_repository(guard))
        return 0;
    return run_finish(guard, notes, err);
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
    if (!git_become(&guard->git.user))
        _exit(1);
    (void)lock_transfer(guard->run); /* until this process ends */
    for (size_t i = 0; i < guard->tree_count; i++) {
        const struct private_git *p = &guard->trees[i].private_git;
        char space[TRANSFER_SPACE_MAX];
        transfer_name_space(guard->jail, id_of(guard), p->number, space);
        if (guard->trees[i].has_private && p->kind != REPO_NONE)
            (void)transfer_fetch(&guard->git, p, space, NULL);
    }
    _exit(0);
}

/* ---- runs that were interrupted ---- */

/* The guard of another run, from its directory. */
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
                           .began = info.st_mtim, /* nothing is ever written to it */
                           .jail = guard->jail,
                           .storage = guard->storage,
                           .run = run,
                           .lock = lock,
                           .running = running,
                           .earlier = true,
                           .cache = guard->cache,
                           .held = guard->held};
    (void)snprintf(left->name, sizeof left->name, "%s", name);
    *ret_left = left;
    int read = read_rules(left, run, err);
    if (read < 0)
        return read;
    for (unsigned i = 0; i < TREES_MAX; i++) {
        autoclose int folder = -1;
        struct tree *tree = &left->trees[left->tree_count];
        if (run_open_folder(run, i, false, &folder, NULL) < 0)
            break;
        if (!private_is_open(folder))
            continue;
        *tree = (struct tree){.top = -1, .made = -1, .link = -1};
        int status = private_open(folder, &tree->private_git, err);
        if (status < 0)
            return status;
        tree->has_private = true;
        left->tree_count++;
    }
    if (!running) /* then nothing is searched, and nothing is held back */
        read_roots(left, run);
    return 0;
}

static void unload(struct guard *left)
{
    for (size_t i = 0; i < left->root_count; i++) {
        held_root_done(&left->roots[i]);
        str_done(&left->known[i]);
    }
    for (size_t i = 0; i < left->tree_count; i++) {
        struct private_git *p = &left->trees[i].private_git;
        bool makes = !left->running && p->kind == REPO_NONE &&
                     faccessat(p->folder, MADE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        autoclose int made =
            makes ? openat(p->top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (made >= 0)
            run_remove_made(p->top, made);
        private_done(p);
    }
    str_done(&left->rules_text);
    free(left->rule_names);
    free(left);
}

/* A transfer has failed again, as where the project is gone: only brig sync tries it once more. */
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

static int complete(struct guard *guard, const char *name, bool now, struct str *notes,
                    struct brig_error *err)
{
    autoclose int run =
        openat(guard->storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int lock = run < 0 ? -1 : openat(run, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool running = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0;
    struct guard *left = NULL;
    if (lock < 0 || (running && !now))
        return 0;
    int status = load(guard, name, run, lock, running, &left, err);
    if (status == 0)
        status = run_finish(left, notes, err);
    bool failed = status < 0 || (left && left->unfinished);
    if (left)
        unload(left);
    if (running)
        return status;
    return failed ? put_aside(guard, name, status, notes, err)
                  : tree_remove(guard->storage, name, err);
}

int run_sync(struct guard *guard, const char *name, struct str *notes, struct brig_error *err)
{
    return complete(guard, name, true, notes, err);
}

void run_complete_all(struct guard *guard, struct str *notes)
{
    autoclose int fd =
        guard->storage < 0 ? -1 : openat(guard->storage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    if (!dir)
        return;
    (void)take_fd(&fd);
    while ((item = readdir(dir))) {
        struct brig_error err = {0};
        if (str_starts_with(item->d_name, RUN_PREFIX) &&
            complete(guard, item->d_name, false, notes, &err) < 0)
            str_appendf(notes, "git: the changes of an interrupted run are kept: %s\n",
                        err.message);
    }
}
