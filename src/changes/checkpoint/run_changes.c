/* SPDX-License-Identifier: MIT */
/* Records what a run has changed, and reads it back. */
#include "changes/checkpoint/run_changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/place.h"
#include "base/record.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/clones.h"
#include "changes/checkpoint/left_out.h"
#include "changes/layer/walk.h"

/* ---- comparing ---- */

struct comparing {
    struct manifest *before;
    const struct manifest_entry *entry; /* of `before`; path NULL: no more */
    bool with_git;
    int64_t taken_ns; /* when the checkpoint was begun */
    struct manifest_writer writing;
    struct run_changes_count *count;
};

static int next_before(struct comparing *c, struct brig_error *err)
{
    int status = manifest_next(c->before, err);
    c->entry = manifest_entry(c->before);
    return status < 0 ? status : 0;
}

/* Whether an entry has the same type, mode and owner. */
static bool has_same_mode(const struct manifest_entry *was, const struct manifest_entry *now)
{
    return was->ident.mode == now->ident.mode && was->uid == now->uid && was->gid == now->gid;
}

static bool is_time(const struct manifest_entry *was, const struct manifest_entry *now)
{
    return S_ISDIR(was->ident.mode) && has_same_mode(was, now);
}

static int record(struct comparing *c, const struct manifest_entry *before,
                  const struct manifest_entry *after, struct brig_error *err)
{
    const struct manifest_entry none = {.path = (before ? before : after)->path,
                                        .kind = MANIFEST_PRESENT};
    if (!before || !after || !is_time(before, after))
        *(!before ? &c->count->added : !after ? &c->count->deleted : &c->count->modified) += 1;
    int status = manifest_write(&c->writing, before ? before : &none, err);
    return status < 0 ? status : manifest_write(&c->writing, after ? after : &none, err);
}

/* Whether a file has the state of the manifest. On a filesystem that counts whole seconds, a file that was young when
 * it was read may have changed without a new time. */
static bool is_same(const struct comparing *c, const struct manifest_entry *now)
{
    const struct ident *was = &c->entry->ident;
    if (!has_same_mode(c->entry, now))
        return false;
    if (S_ISDIR(was->mode))
        return was->mtime_ns == now->ident.mtime_ns;
    bool young =
        was->ctime_ns % CLOCK_SECOND_NS == 0 && was->ctime_ns + 2 * CLOCK_SECOND_NS >= c->taken_ns;
    return !young && ident_equal(was, &now->ident);
}

/* Whether something that the checkpoint left out has changed. What is in a directory is not known, only whether it is
 * the same one; the size of an ignored one is that of all its files. */
static bool is_lost(const struct manifest_entry *was, const struct manifest_entry *now)
{
    if (was->kind == MANIFEST_MASKED || (now && was->kind == MANIFEST_RESTLESS))
        return false;
    if (!now || was->ident.mode != now->ident.mode || was->ident.inode != now->ident.inode)
        return true;
    return !S_ISDIR(was->ident.mode) && was->ident.mtime_ns != now->ident.mtime_ns;
}

static int record_lost(struct comparing *c, const struct manifest_entry *now,
                       struct brig_error *err)
{
    const struct manifest_entry none = {.path = c->entry->path, .kind = MANIFEST_PRESENT};
    if (!is_lost(c->entry, now))
        return 0;
    int status = manifest_write(&c->writing, c->entry, err);
    return status < 0 ? status : manifest_write(&c->writing, now ? now : &none, err);
}

/* Paths of the manifest that the walk has passed do not exist any more. */
static int pass_deleted(struct comparing *c, const char *path, struct brig_error *err)
{
    int status = 0;
    while (status == 0 && c->entry->path && (!path || path_compare(c->entry->path, path) < 0)) {
        status = c->entry->kind == MANIFEST_PRESENT ? record(c, c->entry, NULL, err)
                                                    : record_lost(c, NULL, err);
        if (status == 0)
            status = next_before(c, err);
    }
    return status;
}

static int compare_entry(struct comparing *c, struct walk *walk, const struct walk_entry *entry,
                         struct brig_error *err)
{
    const struct manifest_entry now = manifest_entry_of(entry->path, &entry->info);
    int status = pass_deleted(c, entry->path, err);
    if (status < 0)
        return status;
    bool known = c->entry->path && strcmp(c->entry->path, entry->path) == 0;
    if (known && c->entry->kind != MANIFEST_PRESENT) {
        status = record_lost(c, &now, err);
        return status < 0 ? status : next_before(c, err);
    }
    if (!known)
        status = record(c, NULL, &now, err);
    else if (!is_same(c, &now))
        status = record(c, c->entry, &now, err);
    if (status == 0 && known)
        status = next_before(c, err);
    if (status == 0 && S_ISDIR(entry->info.st_mode)) {
        /* The run may have made a directory unreadable: the user owns it. */
        status = walk_enter(walk, err);
        if (status > 0)
            status = 0;
    }
    return status;
}

/* The root itself has the first entry; of a single file, and in lists of earlier versions, there is none. */
static int compare_top(struct comparing *c, int root, struct brig_error *err)
{
    struct stat info;
    if (!c->entry->path || *c->entry->path)
        return 0;
    if (fstat(root, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the directory");
    const struct manifest_entry now = manifest_entry_of("", &info);
    int status = is_same(c, &now) ? 0 : record(c, c->entry, &now, err);
    return status < 0 ? status : next_before(c, err);
}

static int compare_tree(struct comparing *c, int root, const char *only, struct brig_error *err)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    int status = next_before(c, err);
    if (status == 0)
        status = compare_top(c, root, err);
    if (status == 0)
        status = walk_open(root, only, &walk, err);
    while (status >= 0 && (status = walk_next(walk, &entry, err)) > 0) {
        if (!c->with_git && walk_level(walk) == 0 && strcmp(entry.name, ".git") == 0)
            continue;
        status = compare_entry(c, walk, &entry, err);
    }
    walk_close(walk);
    return status < 0 ? status : pass_deleted(c, NULL, err);
}

/* ---- recording ---- */

static uint64_t total(const struct run_changes_count *count)
{
    return count->added + count->modified + count->deleted;
}

static bool has_part(int run, unsigned number, const char *part)
{
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name(number, part, name);
    return files_exists(run, name);
}

unsigned run_changes_roots(int run)
{
    unsigned count = 0;
    while (count < CHECKPOINT_ROOTS_MAX &&
           (has_part(run, count, CHECKPOINT_AFTER) || has_part(run, count, CHECKPOINT_BEFORE)))
        count++;
    return count;
}

bool run_changes_pending(int run)
{
    unsigned count = run_changes_roots(run);
    for (unsigned i = 0; i < count; i++)
        if (!has_part(run, i, CHECKPOINT_AFTER))
            return true;
    return false;
}

int run_changes_open_root(const struct manifest *list, struct brig_error *err)
{
    struct place place = {0};
    (void)place_read(manifest_header(list, PLACE_KEY), &place);
    return place_open(manifest_header(list, "root"), &place, err);
}

/* The root, or -1, and the notes say so, if it does not exist any more or is another directory. */
static int open_root(const struct manifest *list, struct str *notes)
{
    struct brig_error why = {0};
    int root = run_changes_open_root(list, &why);
    if (root < 0 && notes)
        str_concat(notes, "cannot tell what the run has changed: ", why.message, "\n");
    return root;
}

static int record_root(int run, unsigned number, struct run_changes_count *count, struct str *notes,
                       struct brig_error *err)
{
    char before[CHECKPOINT_NAME_MAX], after[CHECKPOINT_NAME_MAX];
    checkpoint_name(number, CHECKPOINT_BEFORE, before);
    checkpoint_name(number, CHECKPOINT_AFTER, after);
    struct comparing c = {.count = count};
    uint64_t before_count = total(count);
    int status = manifest_open(run, before, &c.before, err);
    if (status < 0)
        return status;
    const char *only = manifest_header(c.before, "only");
    c.with_git = strcmp(manifest_header(c.before, "git"), "1") == 0;
    c.taken_ns = record_time(manifest_header(c.before, "time"));
    const struct manifest_text headers[] = {{"version", "2"},
                                            {"root", manifest_header(c.before, "root")},
                                            {PLACE_KEY, manifest_header(c.before, PLACE_KEY)},
                                            {NULL, NULL}};
    autoclose int root = open_root(c.before, notes);
    status = manifest_create(run, after, headers, &c.writing, err);
    if (status == 0 && root >= 0)
        status = compare_tree(&c, root, *only ? only : NULL, err);
    if (status == 0)
        status = manifest_finish(&c.writing, total(count) > before_count, err);
    manifest_abandon(&c.writing);
    manifest_close(c.before);
    return status;
}

static int count_root(int run, unsigned number, struct run_changes_count *count,
                      struct brig_error *err)
{
    struct manifest *changes = NULL;
    struct run_change change;
    int status = run_changes_open(run, number, &changes, err);
    while (status >= 0 && (status = run_changes_next(changes, &change, err)) > 0)
        *(change.before.ident.mode == 0  ? &count->added
          : change.after.ident.mode == 0 ? &count->deleted
                                         : &count->modified) += !change.is_time;
    manifest_close(changes);
    return status;
}

/* Counts what cannot be restored, and names it. */
static int tell_lost(int run, unsigned number, struct run_changes_count *count, struct str *notes,
                     struct brig_error *err)
{
    struct manifest *changes = NULL;
    struct run_change change;
    autostr struct str names = {0};
    uint64_t lost = 0;
    int status = run_changes_open(run, number, &changes, err);
    while (status >= 0 && (status = run_changes_next_lost(changes, &change, err)) > 0) {
        if (++lost > LEFT_OUT_SHOWN)
            continue;
        str_append(&names, lost > 1 ? ", " : "");
        str_append_shown(&names, change.before.path, strlen(change.before.path), "");
        str_append(&names, change.after.ident.mode ? " (changed)" : " (deleted)");
    }
    if (lost > LEFT_OUT_SHOWN)
        str_concat(&names, " and ", str_number(lost - LEFT_OUT_SHOWN).text, " more");
    if (lost > 0 && notes)
        str_concat(notes,
                   "not in the checkpoint, so brig undo cannot "
                   "restore it: ",
                   names.data, "\n");
    count->lost += lost;
    manifest_close(changes);
    return status;
}

/* Removes a list of each root. Backwards, as a kill must not leave a gap. */
static void forget(int run, const char *part, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(i, part, name);
        (void)unlinkat(run, name, 0);
    }
}

void run_changes_forget(int run)
{
    unsigned count = run_changes_roots(run);
    forget(run, CHECKPOINT_AFTER, count);
    forget(run, CHECKPOINT_BEFORE, count);
}

int run_changes_record(int run, struct run_changes_count *ret_count, struct str *notes,
                       struct brig_error *err)
{
    *ret_count = (struct run_changes_count){0};
    unsigned count = run_changes_roots(run);
    int status = 0;
    for (unsigned i = 0; i < count && status == 0; i++)
        status = has_part(run, i, CHECKPOINT_AFTER) ? count_root(run, i, ret_count, err)
                                                    : record_root(run, i, ret_count, notes, err);
    for (unsigned i = 0; i < count && status == 0; i++)
        status = tell_lost(run, i, ret_count, notes, err);
    if (status < 0)
        return status;
    /* The whole list is that of the root. A run that has changed nothing needs no checkpoint; if this is killed, it is
     * recorded again. */
    if (total(ret_count) + ret_count->lost == 0)
        forget(run, CHECKPOINT_AFTER, count);
    forget(run, CHECKPOINT_BEFORE, count);
    return 0;
}

/* ---- reading ---- */

int run_changes_open(int run, unsigned number, struct manifest **ret_changes,
                     struct brig_error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name(number, CHECKPOINT_AFTER, name);
    return manifest_open(run, name, ret_changes, err);
}

static int next_pair(struct manifest *changes, struct run_change *ret_change,
                     struct brig_error *err)
{
    int status = manifest_next(changes, err);
    if (status <= 0)
        return status;
    ret_change->position = manifest_tell(changes);
    ret_change->before = *manifest_entry(changes);
    status = manifest_next(changes, err);
    if (status <= 0)
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_STATE, 0,
                                      "a list of files in brig's storage is incomplete");
    ret_change->after = *manifest_entry(changes);
    ret_change->before.path = ret_change->after.path; /* the same text */
    ret_change->is_time = is_time(&ret_change->before, &ret_change->after);
    return 1;
}

static int next_of(struct manifest *changes, bool lost, struct run_change *ret_change,
                   struct brig_error *err)
{
    int status;
    do
        status = next_pair(changes, ret_change, err);
    while (status > 0 && (ret_change->before.kind != MANIFEST_PRESENT) != lost);
    return status;
}

int run_changes_next(struct manifest *changes, struct run_change *ret_change,
                     struct brig_error *err)
{
    return next_of(changes, false, ret_change, err);
}

int run_changes_next_lost(struct manifest *changes, struct run_change *ret_change,
                          struct brig_error *err)
{
    return next_of(changes, true, ret_change, err);
}

const char *run_change_loss(const struct run_change *change)
{
    return change->after.ident.mode ? "it has changed, and the checkpoint left it out"
                                    : "it was deleted, and the checkpoint left it out";
}

/* ---- contents ---- */

void run_contents_init(struct run_contents *contents, int record, const struct git *git)
{
    *contents = (struct run_contents){.record = record, .git = git, .store = {.directory = -1}};
}

void run_contents_done(struct run_contents *contents)
{
    store_read_end(take_ptr(&contents->reader));
    store_done(&contents->store);
}

static int need_reader(struct run_contents *contents, struct brig_error *err)
{
    if (contents->reader)
        return 0;
    int status = contents->store.directory >= 0
                     ? 0
                     : store_open(contents->record, contents->git, false, &contents->store, err);
    return status < 0 ? status : store_read_begin(&contents->store, &contents->reader, err);
}

int run_contents_write(struct run_contents *contents, const char *content, int to,
                       struct brig_error *err)
{
    if (content[0] == '@')
        return clones_write(contents->record, content, to, err);
    int status = need_reader(contents, err);
    return status < 0 ? status : store_read_file(contents->reader, content, to, err);
}

int run_contents_target(struct run_contents *contents, const char *content, struct str *target,
                        struct brig_error *err)
{
    int status = need_reader(contents, err);
    return status < 0 ? status
                      : store_read_text(contents->reader, content, PATH_LENGTH_MAX, target, err);
}
