/* SPDX-License-Identifier: MIT */
/* Takes checkpoints. */
#include "changes/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/manifest.h"
#include "base/path.h"
#include "base/place.h"
#include "base/record.h"
#include "base/sha256.h"
#include "changes/checkpoint/clones.h"
#include "changes/checkpoint/git_ignored.h"
#include "changes/checkpoint/left_out.h"
#include "changes/checkpoint/store.h"
#include "changes/layer/base.h"
#include "changes/layer/walk.h"
#include "changes/operation/copy.h"

#define MANIFEST "manifest"
#define VERSION "2"
#define READS_MAX 3 /* of a file that changes while it is read */
#define KEY_LENGTH 32
#define BLOCK_BYTES 512 /* unit of st_blocks */

/* The kernel's clock for files advances in steps of up to 10 ms: a file can change again without a new time. Some
 * filesystems count whole seconds, FAT every second one. */
#define STEP_NS ((int64_t)20 * 1000 * 1000)

struct taking {
    const struct checkpoint_place *place;
    const struct checkpoint_root *root;
    struct checkpoint_report *report;
    int all, dir; /* checkpoints, checkpoints/KEY */
    const char **masked;
    size_t masked_count;
    char key[SHA256_HEX_LENGTH + 1];
    char masks[SHA256_HEX_LENGTH + 1];  /* a hash of the masked paths */
    char states[SHA256_HEX_LENGTH + 1]; /* of the files of git that decide what is ignored */
    int64_t newest_ns;                  /* the latest ctime in the tree */
    struct left_out left_out;

    struct manifest *old;
    const struct manifest_entry *old_entry; /* of `old`; its path is NULL if there are no more */
    int64_t old_ns;                         /* when the old manifest was begun */

    struct git_ignored *ignored;
    bool asks_git;                   /* what is ignored */
    uint64_t data_bytes, hole_bytes; /* of files that were not stored yet */
    struct store store;
    struct store_writer *writer; /* NULL: not started yet */
    struct manifest_writer writing;
    struct clones clones;
    struct str cloning; /* the path of an ignored directory: its files are cloned; "": none */
};

void checkpoint_name(unsigned number, const char *part, char ret_name[CHECKPOINT_NAME_MAX])
{
    (void)snprintf(ret_name, CHECKPOINT_NAME_MAX, "%u%s", number, part);
}

/* ---- comparing ---- */

/* Whether a file could have changed after it was read without getting another time. */
static bool is_racy(const struct ident *ident, int64_t read_ns)
{
    bool seconds = ident->ctime_ns % CLOCK_SECOND_NS == 0;
    return ident->ctime_ns + (seconds ? 2 * CLOCK_SECOND_NS : STEP_NS) >= read_ns;
}

static bool same_state(const struct manifest_entry *entry, const struct stat *info)
{
    const struct ident now = ident_of(info);
    if (entry->ident.mode != now.mode || entry->uid != info->st_uid || entry->gid != info->st_gid)
        return false;
    return S_ISDIR(now.mode) ? entry->ident.mtime_ns == now.mtime_ns
                             : ident_equal(&entry->ident, &now);
}

static bool has_header(const struct taking *t, const char *name, const char *value)
{
    return strcmp(manifest_header(t->old, name), value) == 0;
}

/* Whether an entry that the old checkpoint leaves out would be left out again. */
static bool same_absence(struct taking *t, const struct manifest_entry *entry,
                         const struct stat *info)
{
    switch (entry->kind) {
    case MANIFEST_PRESENT:
    case MANIFEST_SINCE:
    case MANIFEST_LARGE: /* it may be read this time */
    case MANIFEST_HOLES:
    case MANIFEST_RESTLESS:
        return false;
    case MANIFEST_MASKED: /* the masks are the same */
    case MANIFEST_DEEP:
        return true;
    case MANIFEST_IGNORED: {
        const struct ident now = ident_of(info);
        return has_header(t, "states", t->states) && entry->ident.inode == now.inode &&
               entry->ident.mode == now.mode && entry->ident.mtime_ns == now.mtime_ns;
    }
    case MANIFEST_TYPE:
    case MANIFEST_UNREADABLE:
        return same_state(entry, info);
    }
    return false;
}

static int next_old(struct taking *t, struct brig_error *err)
{
    static const struct manifest_entry none;
    int status = t->old ? manifest_next(t->old, err) : 0;
    t->old_entry = t->old ? manifest_entry(t->old) : &none;
    return status < 0 ? status : 0;
}

static void notice_time(struct taking *t, const struct stat *info)
{
    const struct ident ident = ident_of(info);
    if (ident.ctime_ns > t->newest_ns)
        t->newest_ns = ident.ctime_ns;
}

static bool is_own_git(const struct taking *t, const struct walk *walk, const char *name)
{
    return !t->root->with_git && walk_level(walk) == 0 && strcmp(name, ".git") == 0;
}

/* Compares the current entry with the old manifest: 1 if it is the same, 0 if not, or a code. */
static int compare_entry(struct taking *t, struct walk *walk, const struct walk_entry *entry,
                         struct brig_error *err)
{
    const struct manifest_entry *old = t->old_entry;
    if (!old->path || strcmp(old->path, entry->path) != 0)
        return 0;
    if (old->kind != MANIFEST_PRESENT) {
        left_out_add(&t->left_out, old);
        return same_absence(t, old, &entry->info);
    }
    if (!same_state(old, &entry->info))
        return 0;
    if (!S_ISDIR(entry->info.st_mode)) {
        t->report->files++;
        return !is_racy(&old->ident, t->old_ns);
    }
    int status = walk_enter(walk, err);
    return status < 0 ? status : status == 0;
}

static bool has_same_headers(const struct taking *t)
{
    return has_header(t, "version", VERSION) &&
           has_header(t, "git", t->root->with_git ? "1" : "0") &&
           has_header(t, "limit", str_number(t->place->limit_bytes).text) &&
           has_header(t, "masks", t->masks);
}

/* The entry of the root itself, which comes first; of a single file there is none. Returns 1, 0 or a code. */
static int find_top(struct taking *t, struct manifest_entry *ret_entry, struct stat *ret_info,
                    struct brig_error *err)
{
    if (t->root->only)
        return 0;
    if (fstat(t->root->dir, ret_info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the directory");
    notice_time(t, ret_info);
    *ret_entry = manifest_entry_of("", ret_info);
    return 1;
}

static int is_top_unchanged(struct taking *t, struct brig_error *err)
{
    struct manifest_entry top;
    struct stat info;
    int status = find_top(t, &top, &info, err);
    if (status <= 0)
        return status < 0 ? status : 1;
    const struct manifest_entry *old = t->old_entry;
    if (!old->path || *old->path || !same_state(old, &info))
        return 0;
    status = next_old(t, err);
    return status < 0 ? status : 1;
}

/* Whether the tree is as the newest manifest says: 1, 0, or a code. */
static int is_unchanged(struct taking *t, struct brig_error *err)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    if (!t->old || !has_same_headers(t))
        return 0;
    int status = is_top_unchanged(t, err);
    if (status <= 0)
        return status;
    status = walk_open(t->root->dir, t->root->only, &walk, err);
    if (status < 0)
        return status;
    bool same = true;
    while (same && (status = walk_next(walk, &entry, err)) > 0) {
        notice_time(t, &entry.info);
        if (is_own_git(t, walk, entry.name))
            continue;
        status = compare_entry(t, walk, &entry, err);
        same = status > 0;
        if (same)
            status = next_old(t, err);
        if (status < 0)
            break;
    }
    walk_close(walk);
    return status < 0 ? status : same && !t->old_entry->path;
}

/* ---- contents ---- */

static int need_writer(struct taking *t, struct brig_error *err)
{
    if (t->writer)
        return 0;
    int status = t->store.directory >= 0
                     ? 0
                     : store_open(t->place->record, t->place->git, true, &t->store, err);
    return status < 0 ? status : store_write_begin(&t->store, &t->writer, err);
}

/* Stores a regular file, and sets the state with which it was read. */
static int take_file(struct taking *t, const struct walk_entry *entry,
                     struct manifest_entry *ret_entry, struct brig_error *err)
{
    char id[STORE_ID_MAX];
    struct stat before, after;
    int status = need_writer(t, err);
    ret_entry->kind = MANIFEST_RESTLESS;
    for (int i = 0; i < READS_MAX && status >= 0; i++) {
        autoclose int fd = copy_open(entry->dir, entry->name, false);
        if (fd < 0 || fstat(fd, &before) < 0) {
            bool replaced = errno == ENOENT || errno == ESTALE; /* something else is there now */
            ret_entry->kind = replaced ? MANIFEST_RESTLESS : MANIFEST_UNREADABLE;
            return 0;
        }
        status = store_write_file(t->writer, fd, (uint64_t)before.st_size, id, err);
        if (status != 0 || fstat(fd, &after) < 0)
            continue;
        const struct ident one = ident_of(&before), other = ident_of(&after);
        if (!ident_equal(&one, &other))
            continue;
        *ret_entry = manifest_entry_of(ret_entry->path, &after);
        (void)str_fill(ret_entry->content, sizeof ret_entry->content, id);
        t->report->stored++;
        return 0;
    }
    return status < 0 ? status : 0;
}

static int take_link(struct taking *t, const struct walk_entry *entry,
                     struct manifest_entry *ret_entry, struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(entry->dir, entry->name, target, sizeof target);
    if (length < 0 || (size_t)length == sizeof target) {
        ret_entry->kind = MANIFEST_UNREADABLE;
        return 0;
    }
    t->report->stored++;
    int status = need_writer(t, err);
    return status < 0
               ? status
               : store_write_bytes(t->writer, target, (size_t)length, ret_entry->content, err);
}

static bool is_cloning(const struct taking *t, const char *path)
{
    return t->cloning.length > 0 && path_is_beneath(t->cloning.data, path);
}

static uint64_t data_of(const struct stat *info)
{
    uint64_t data = (uint64_t)info->st_blocks * BLOCK_BYTES, size = (uint64_t)info->st_size;
    return data < size ? data : size;
}

/* MANIFEST_PRESENT if a file is within the limits of what is read; then it counts. */
static enum manifest_kind judge_size(struct taking *t, const struct stat *info)
{
    uint64_t data = t->data_bytes + data_of(info);
    uint64_t holes = t->hole_bytes + (uint64_t)info->st_size - data_of(info);
    if (holes > CHECKPOINT_HOLE_BYTES)
        return MANIFEST_HOLES;
    if (t->place->most_bytes > 0 && data > t->place->most_bytes)
        return MANIFEST_LARGE;
    t->data_bytes = data;
    t->hole_bytes = holes;
    return MANIFEST_PRESENT;
}

/* Clones a file; without a clone, `absence` is why it is left out. */
static void take_clone(struct taking *t, const struct walk_entry *entry, enum manifest_kind absence,
                       struct manifest_entry *ret_entry)
{
    char content[MANIFEST_CONTENT_MAX];
    struct stat info;
    int failed = clones_take(&t->clones, entry->dir, entry->name, content, &info);
    if (failed != 0) {
        ret_entry->kind = failed == EACCES || failed == EPERM ? MANIFEST_UNREADABLE
                          : failed == ENOENT || failed == ESTALE || failed == ELOOP
                              ? MANIFEST_RESTLESS
                              : absence; /* a full disk, or another filesystem */
        return;
    }
    *ret_entry = manifest_entry_of(ret_entry->path, &info);
    memcpy(ret_entry->content, content, sizeof content);
}

static int take_content(struct taking *t, const struct walk_entry *entry,
                        struct manifest_entry *ret_entry, struct brig_error *err)
{
    const struct manifest_entry *old = t->old_entry;
    t->report->files++;
    if (old->path && strcmp(old->path, entry->path) == 0 && old->kind == MANIFEST_PRESENT &&
        same_state(old, &entry->info) && !is_racy(&old->ident, t->old_ns)) {
        memcpy(ret_entry->content, old->content, sizeof ret_entry->content);
        return 0;
    }
    if (S_ISLNK(entry->info.st_mode))
        return take_link(t, entry, ret_entry, err);
    enum manifest_kind absence =
        is_cloning(t, entry->path) ? MANIFEST_IGNORED : judge_size(t, &entry->info);
    if (absence == MANIFEST_PRESENT)
        return take_file(t, entry, ret_entry, err);
    take_clone(t, entry, absence, ret_entry);
    return 0;
}

/* ---- which entries ---- */

static bool is_masked(const struct taking *t, const struct walk_entry *entry)
{
    const struct stat *storage = &t->place->storage;
    if (entry->info.st_ino == storage->st_ino && entry->info.st_dev == storage->st_dev)
        return true;
    return t->masked_count > 0 &&
           bsearch(&entry->path, t->masked, t->masked_count, sizeof *t->masked, path_compare_items);
}

/* An ignored entry that is too large is cloned or left out. */
static int judge_ignored(struct taking *t, const struct walk_entry *entry,
                         struct manifest_entry *ret_entry, struct brig_error *err)
{
    autostr struct str sample = {0};
    uint64_t bytes = 0;
    int status = git_ignored_measure(entry->dir, entry->name, &bytes, &sample, err);
    if (status < 0 || bytes <= t->place->limit_bytes)
        return status;
    if (sample.failed)
        return brig_fail_nomem(err);
    if (clones_can(&t->clones, entry->dir, sample.data)) {
        t->cloning.length = 0;
        str_append(&t->cloning, entry->path);
        return t->cloning.failed ? brig_fail_nomem(err) : 0;
    }
    ret_entry->kind = MANIFEST_IGNORED;
    ret_entry->ident.size = bytes;
    return 0;
}

static int judge(struct taking *t, const struct walk_entry *entry, struct manifest_entry *ret_entry,
                 struct brig_error *err)
{
    mode_t mode = entry->info.st_mode;
    *ret_entry = manifest_entry_of(entry->path, &entry->info);
    if (is_masked(t, entry))
        ret_entry->kind = MANIFEST_MASKED;
    else if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
        ret_entry->kind = MANIFEST_TYPE;
    else if (!S_ISLNK(mode) && !is_cloning(t, entry->path) &&
             git_ignored_has(t->ignored, entry->path))
        return judge_ignored(t, entry, ret_entry, err);
    return 0;
}

/* Goes into a directory. In a repository, its own rules say what is ignored. */
static int enter(struct taking *t, struct walk *walk, const char *path,
                 struct manifest_entry *ret_entry, struct brig_error *err)
{
    int status = walk_enter(walk, err);
    if (status > 0) {
        ret_entry->kind = status == ELOOP ? MANIFEST_DEEP : MANIFEST_UNREADABLE;
        return 0;
    }
    if (status < 0 || !t->asks_git || is_cloning(t, path) || !walk_has(walk, ".git") ||
        !git_ignored_is_sound(walk_directory(walk), git_owner(t->place->git)))
        return status;
    return git_ignored_enter(t->ignored, walk_directory(walk), path, err);
}

static int take_entry(struct taking *t, struct walk *walk, const struct walk_entry *entry,
                      struct brig_error *err)
{
    struct manifest_entry made;
    while (t->old_entry->path && path_compare(t->old_entry->path, entry->path) < 0) {
        int status = next_old(t, err);
        if (status < 0)
            return status;
    }
    git_ignored_leave(t->ignored, entry->path);
    int status = judge(t, entry, &made, err);
    if (status == 0 && made.kind == MANIFEST_PRESENT)
        status = S_ISDIR(entry->info.st_mode) ? enter(t, walk, entry->path, &made, err)
                                              : take_content(t, entry, &made, err);
    if (made.kind != MANIFEST_PRESENT) {
        made.content[0] = '\0';
        left_out_add(&t->left_out, &made);
    }
    return status < 0 ? status : manifest_write(&t->writing, &made, err);
}

static int take_tree(struct taking *t, struct brig_error *err)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    struct manifest_entry top;
    struct stat info;
    int status = next_old(t, err);
    if (status == 0)
        status = find_top(t, &top, &info, err);
    if (status > 0)
        status = manifest_write(&t->writing, &top, err);
    if (status == 0 && !t->root->only)
        status = git_ignored_can_ask(t->root->dir, err);
    t->asks_git = status > 0;
    if (status > 0)
        status = git_ignored_enter(t->ignored, t->root->dir, "", err);
    if (status == 0)
        status = walk_open(t->root->dir, t->root->only, &walk, err);
    while (status >= 0 && (status = walk_next(walk, &entry, err)) > 0) {
        notice_time(t, &entry.info);
        if (!is_own_git(t, walk, entry.name))
            status = take_entry(t, walk, &entry, err);
    }
    walk_close(walk);
    return status;
}

static int reopen_old(struct taking *t, struct brig_error *err)
{
    manifest_close(take_ptr(&t->old));
    t->old_ns = 0;
    int status = manifest_open(t->dir, MANIFEST, &t->old, err);
    if (status == BRIG_E_NOT_FOUND && err)
        *err = (struct brig_error){0};
    if (status < 0)
        return status == BRIG_E_NOT_FOUND ? 0 : status;
    t->old_ns = record_time(manifest_header(t->old, "time"));
    return 0;
}

static int take_all(struct taking *t, struct brig_error *err)
{
    const struct str_number now = str_number((uint64_t)clock_wall_ns());
    const struct str_number limit = str_number(t->place->limit_bytes);
    struct place place = {0};
    int known = place_of(t->root->dir, &place, err);
    if (known < 0)
        return known;
    const struct place_text text = place_text(&place);
    const struct manifest_text headers[] = {{"version", VERSION},
                                            {"root", t->root->path},
                                            {PLACE_KEY, text.text},
                                            {"only", t->root->only ? t->root->only : ""},
                                            {"git", t->root->with_git ? "1" : "0"},
                                            {"limit", limit.text},
                                            {"masks", t->masks},
                                            {"states", t->states},
                                            {"time", now.text},
                                            {NULL, NULL}};
    t->report->files = 0;
    left_out_done(&t->left_out);
    int status = reopen_old(t, err);
    t->ignored = git_ignored_new(t->place->git);
    if (status == 0 && !t->ignored)
        status = brig_fail_nomem(err);
    if (status == 0)
        status = manifest_create(t->dir, MANIFEST, headers, &t->writing, err);
    if (status == 0)
        status = take_tree(t, err);
    if (status == 0)
        status = clones_sync(&t->clones, err);
    if (status == 0 && t->writer)
        status = store_write_end(take_ptr(&t->writer), err);
    return status < 0 ? status : manifest_finish(&t->writing, true, err);
}

/* ---- the whole ---- */

/* Sorts the masked paths, and hashes them. */
static int find_masks(struct taking *t, struct brig_error *err)
{
    struct sha256 hash;
    const struct str *list = t->root->masked;
    for (const char *at = NULL; list && (at = str_list_next(list, at));) {
        if (!array_grow(&t->masked, t->masked_count))
            return brig_fail_nomem(err);
        t->masked[t->masked_count++] = at;
    }
    if (t->masked_count > 1)
        qsort(t->masked, t->masked_count, sizeof *t->masked, path_compare_items);
    sha256_begin(&hash);
    for (size_t i = 0; i < t->masked_count; i++)
        sha256_add(&hash, t->masked[i], strlen(t->masked[i]) + 1);
    sha256_end(&hash, t->masks);
    return 0;
}

static int open_directories(struct taking *t, struct brig_error *err)
{
    const char *only = t->root->only;
    autofree char *path = NULL;
    int status = str_make(&path, err, t->root->path, only ? "/" : "", only ? only : "");
    if (status < 0)
        return status;
    sha256_hex(path, strlen(path), t->key);
    t->key[KEY_LENGTH] = '\0';
    status = files_make_dir(t->place->record, CHECKPOINT_DIRECTORY, &t->all, err);
    return status < 0 ? status : files_make_dir(t->all, t->key, &t->dir, err);
}

/* Waits until the clock for files has passed the newest change: each later one has another time. */
static void await_clock(const struct taking *t)
{
    for (int64_t left;
         (left = t->newest_ns + STEP_NS / 2 - clock_wall_ns()) > 0 && left <= STEP_NS;)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = left}, NULL);
}

static int give_to_run(const struct taking *t, int run, unsigned number, struct brig_error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name(number, CHECKPOINT_BEFORE, name);
    return linkat(t->dir, MANIFEST, run, name, 0) == 0
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write in brig's storage");
}

int checkpoint_lock(int all, bool wait, struct brig_error *err)
{
    autoclose int lock = openat(all, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
        if (errno != EINTR)
            close_fd(&lock);
    return lock < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the checkpoints")
                    : take_fd(&lock);
}

/* A manifest is worthless without the objects that it names. */
static void drop_lost(const struct taking *t)
{
    if (!files_exists(t->place->record, STORE_DIRECTORY))
        (void)unlinkat(t->dir, MANIFEST, 0);
}

static int take(struct taking *t, int run, unsigned number, struct brig_error *err)
{
    int status = open_directories(t, err);
    if (status < 0)
        return status;
    clones_init(&t->clones, t->all);
    autoclose int lock = checkpoint_lock(t->all, true, err);
    if (lock < 0)
        return lock;
    drop_lost(t);
    status = find_masks(t, err);
    if (status == 0)
        status = reopen_old(t, err);
    if (status < 0)
        return status;
    git_ignored_states(t->root->dir, git_owner(t->place->git), t->states);
    if (t->old)
        status = next_old(t, err);
    if (status == 0)
        status = is_unchanged(t, err);
    t->report->unchanged = status > 0;
    if (status == 0)
        status = take_all(t, err);
    if (status >= 0)
        status = run >= 0 ? give_to_run(t, run, number, err) : 0;
    if (status == 0)
        await_clock(t);
    return status;
}

int checkpoint_take(const struct checkpoint_place *place, const struct checkpoint_root *root,
                    int run, unsigned number, struct checkpoint_report *report,
                    struct brig_error *err)
{
    struct taking t = {.place = place,
                       .root = root,
                       .report = report,
                       .all = -1,
                       .dir = -1,
                       .store = {.directory = -1},
                       .clones = {.directory = -1}};
    *report = (struct checkpoint_report){0};
    int status = place->git->program ? take(&t, run, number, err)
                                     : brig_fail(err, BRIG_E_NOT_FOUND, 0, "git is not installed");
    if (status == 0)
        left_out_tell(&t.left_out, place->most_bytes, &report->left_out);
    store_write_abandon(t.writer);
    manifest_abandon(&t.writing);
    manifest_close(t.old);
    git_ignored_free(t.ignored);
    left_out_done(&t.left_out);
    str_done(&t.cloning);
    free(t.masked);
    store_done(&t.store);
    clones_done(&t.clones);
    own_close(&t.dir);
    own_close(&t.all);
    return status < 0 ? brig_wrap(err, status, "cannot take a checkpoint of '%s'",
                                  str_shown(root->path).text)
                      : 0;
}
