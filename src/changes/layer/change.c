/* SPDX-License-Identifier: MIT */
#include "changes/layer/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/compare.h"
#include "changes/layer/hidden.h"
#include "changes/layer/layer.h"
#include "changes/layer/touched.h"
#include "changes/layer/upper.h"
#include "changes/layer/walk.h"
#include "changes/operation/copy.h"
#include "changes/operation/live.h"
#include "changes/operation/operation.h"
#include "policy/startup.h"

#define HIDDEN_LINES "it has lines that are hidden from the jail, which would be lost"

struct change_walk {
    const struct layer *layer;
    const struct change_options *options;
    change_visit visit;
    void *context;
    struct base *base;
    struct touched touched;
    size_t next_path;            /* in options->paths */
    struct startup_text startup; /* of the current change */
};

/* ---- which paths ---- */

enum selection { NOT, ABOVE, SELECTED };

/* Whether a path is selected, or contains one that is. Paths are asked for in order. */
static enum selection select_path(struct change_walk *walk, const char *path)
{
    const struct change_options *options = walk->options;
    if (!options->paths)
        return SELECTED;
    for (; walk->next_path < options->path_count; walk->next_path++) {
        const char *wanted = options->paths[walk->next_path];
        if (!*wanted || path_is_beneath(wanted, path))
            return SELECTED;
        if (path_is_beneath(path, wanted))
            return ABOVE;
        if (path_compare(wanted, path) > 0)
            return NOT;
    }
    return NOT;
}

static bool is_own_git(const struct layer *layer, const char *path)
{
    return !layer_is_home(layer->name) && strcmp(path, ".git") == 0;
}

/* ---- start-up files ---- */

static bool is_startup(const struct layer *layer, const char *path)
{
    return layer->hidden && hidden_is_startup(layer->hidden, path);
}

/* Reads a file of the user as the jail sees it. */
static int read_startup(const struct layer *layer, int dir, const char *name,
                        struct startup_text *ret_text, struct str *user)
{
    size_t count;
    const struct startup_filter *filters = hidden_filters(layer->hidden, &count);
    autoclose int fd = copy_open(dir, name, false);
    if (fd < 0 || read_all(fd, STARTUP_FILE_MAX, user) < 0 || user->length > STARTUP_FILE_MAX)
        return -1;
    return startup_hide(filters, count, user->data, user->length, ret_text, NULL) < 0 ? -1 : 0;
}

/* The copy in the layer of masks has neither the extended attributes nor the group of the user's file. */
static void find_startup(struct change_walk *walk, struct change *change)
{
    autostr struct str user = {0};
    startup_text_done(&walk->startup);
    walk->startup = (struct startup_text){0};
    if (!S_ISREG(change->before.st_mode) || !is_startup(walk->layer, change->path))
        return;
    if (read_startup(walk->layer, change->lower_dir, change->name, &walk->startup, &user) < 0) {
        change->unreadable = "your file is hidden from the jail: it is too large or cannot be read";
        return;
    }
    change->startup = &walk->startup;
    if (S_ISREG(change->after.st_mode)) {
        change->after.st_uid = change->before.st_uid;
        change->after.st_gid = change->before.st_gid;
    }
}

static bool same_as_startup(const struct change *change)
{
    autostr struct str text = {0};
    const struct str *seen = &change->startup->text;
    autoclose int fd = copy_open(change->upper_dir, change->name, true);
    return (size_t)change->after.st_size == seen->length && fd >= 0 &&
           read_all(fd, seen->length, &text) == 0 && text.length == seen->length &&
           (text.length == 0 || memcmp(text.data, seen->data, text.length) == 0);
}

int change_restore_startup(const struct change *change, const struct str *jail,
                           struct str *ret_text, struct brig_error *err)
{
    size_t count;
    const struct startup_filter *filters = hidden_filters(change->layer->hidden, &count);
    autostr struct str user = {0};
    autoclose int fd = copy_open(change->lower_dir, change->name, false);
    int failed = fd < 0 ? -errno : read_all(fd, STARTUP_FILE_MAX, &user);
    if (failed < 0 || user.length > STARTUP_FILE_MAX)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot read '%s'",
                         str_shown(change->path).text);
    return startup_restore(filters, count, &user, jail, ret_text, err);
}

static int open_text(const struct str *text)
{
    autoclose int fd = memfd_create("seen", MFD_CLOEXEC);
    int failed = fd < 0 ? -errno : text->length > 0 ? write_all(fd, text->data, text->length) : 0;
    if (failed == 0 && lseek(fd, 0, SEEK_SET) < 0)
        failed = -errno;
    errno = -failed;
    return failed < 0 ? -1 : take_fd(&fd);
}

int change_open_user(const struct layer *layer, int dir, const char *name, const char *path)
{
    autostr struct str user = {0};
    struct startup_text seen = {0};
    if (!is_startup(layer, path))
        return copy_open(dir, name, false);
    int fd = read_startup(layer, dir, name, &seen, &user) < 0 ? -1 : open_text(&seen.text);
    startup_text_done(&seen);
    return fd;
}

/* ---- one change ---- */

/* An operation on one name of a file changes the time of change of all of them. */
static const char *conflict_with(struct change_walk *walk, const struct base_record *record,
                                 const struct stat *now)
{
    const char *conflict = base_conflict(record, now);
    if (!conflict || !now || !record->lower.mode || record->kind != BASE_FILE)
        return conflict;
    return touched_is_same(&walk->touched, &record->lower, now) ? NULL : conflict;
}

static int find_conflict(struct change_walk *walk, struct change *change, struct brig_error *err)
{
    const struct stat *now = change->before.st_mode ? &change->before : NULL;
    int found = base_find(walk->base, change->path, &change->base, err);
    change->has_base = found > 0;
    if (change->has_base)
        change->conflict = conflict_with(walk, &change->base, now);
    if (change->has_base && !change->conflict && now && S_ISDIR(now->st_mode) &&
        (change->kind == CHANGE_DELETED || change->kind == CHANGE_TYPE ||
         change->kind == CHANGE_METADATA))
        change->conflict = base_directory_conflict(&change->base, now);
    if (!change->has_base && now && !S_ISDIR(now->st_mode) && change->upper.mode &&
        ident_of(now).ctime_ns > change->upper.ctime_ns)
        change->conflict = "your file is newer than the jail's";
    if (!change->conflict && walk->layer->replaced)
        change->conflict = LAYER_REPLACED;
    if (!change->conflict && change->startup && change->startup->hidden > 0 &&
        !S_ISREG(change->after.st_mode))
        change->conflict = HIDDEN_LINES;
    return found < 0 ? found : 0;
}

static unsigned compare_meta(const struct change *change)
{
    const struct stat *before = &change->before, *after = &change->after;
    unsigned meta = 0;
    if (!S_ISLNK(after->st_mode) && before->st_mode != after->st_mode)
        meta |= CHANGE_MODE;
    if (before->st_uid != after->st_uid || before->st_gid != after->st_gid)
        meta |= CHANGE_OWNER;
    bool compared = !change->startup && (S_ISREG(after->st_mode) || S_ISDIR(after->st_mode));
    int xattrs = compared ? compare_xattrs(change->lower_dir, change->upper_dir, change->name) : 0;
    meta |= xattrs & COMPARE_XATTRS ? CHANGE_XATTRS : 0;
    meta |= xattrs & COMPARE_ACL ? CHANGE_ACL : 0;
    return meta;
}

static bool same_contents(const struct change_walk *walk, const struct change *change)
{
    const struct stat *before = &change->before, *after = &change->after;
    if (S_ISDIR(after->st_mode))
        return true;
    if (change->startup)
        return same_as_startup(change);
    if (!S_ISREG(after->st_mode) && !S_ISLNK(after->st_mode))
        return before->st_rdev == after->st_rdev;
    if (walk->options->quick && S_ISREG(after->st_mode) && before->st_size == after->st_size &&
        ident_of(before).mtime_ns == ident_of(after).mtime_ns)
        return true;
    return compare_contents(change->lower_dir, before, change->upper_dir, after, change->name);
}

/* Compares a file of the upper directory with the user's; false if nothing has changed. */
static bool compare(const struct change_walk *walk, struct change *change)
{
    if (!change->before.st_mode) {
        change->kind = CHANGE_ADDED;
        return true;
    }
    if ((change->before.st_mode & S_IFMT) != (change->after.st_mode & S_IFMT)) {
        change->kind = CHANGE_TYPE;
        return true;
    }
    change->meta = compare_meta(change);
    bool same = same_contents(walk, change);
    change->kind = same ? CHANGE_METADATA : CHANGE_MODIFIED;
    return !same || change->meta != 0;
}

/* The ids that a file will have outside. */
static void map_owner(const struct layer *layer, struct stat *info)
{
    if (info->st_uid == layer->jail_uid)
        info->st_uid = layer->owner;
    if (info->st_gid == layer->jail_gid)
        info->st_gid = layer->owner_gid;
}

static struct change make_change(const struct change_walk *walk, const struct upper_entry *entry)
{
    struct change change = {.layer = walk->layer,
                            .path = entry->path,
                            .name = entry->name,
                            .lower_dir = entry->lower_dir,
                            .upper_dir = entry->upper_dir,
                            .before = entry->lower,
                            .whiteout = entry->whiteout,
                            .deleted_ns = entry->deleted_ns,
                            .upper = ident_of(&entry->upper),
                            .unreadable = entry->unreadable};
    if (!entry->whiteout && !entry->unseen) {
        change.after = entry->upper;
        map_owner(walk->layer, &change.after);
    }
    return change;
}

/* ---- deleted directories ---- */

static int find_hidden(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    (void)err;
    return layer_hides(context, entry->path) ? TREE_STOP : 0;
}

struct measure {
    struct change_walk *walk;
    struct change *change;
};

static int measure_file(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    const struct measure *measure = context;
    struct change *change = measure->change;
    struct base_record record;
    int found = 0;
    if (layer_hides(measure->walk->layer, entry->path))
        return TREE_STOP;
    if (!S_ISDIR(entry->info.st_mode)) {
        change->files++;
        change->bytes += (uint64_t)entry->info.st_size;
    }
    if (!change->conflict)
        found = base_find(measure->walk->base, entry->path, &record, err);
    if (found > 0 &&
        (conflict_with(measure->walk, &record, &entry->info) ||
         (S_ISDIR(entry->info.st_mode) && base_directory_conflict(&record, &entry->info))))
        change->conflict = "a file in it has changed since";
    if (!change->conflict && S_ISREG(entry->info.st_mode) &&
        is_startup(measure->walk->layer, entry->path))
        change->conflict = "a file in it is a start-up file, of which lines may be hidden";
    return found < 0 ? found : 0;
}

/* Examines a deleted directory. Returns 1 if something in it is hidden. */
static int measure_directory(struct change_walk *walk, struct change *change,
                             struct brig_error *err)
{
    autoclose int dir = files_open_dir(change->lower_dir, change->name);
    if (dir < 0) {
        change->unreadable = "your directory cannot be read";
        return 0;
    }
    if (walk->options->expand &&
        change->kind == CHANGE_DELETED) /* each file is a change of its own */
        return tree_walk(dir, change->path, find_hidden, (void *)(uintptr_t)walk->layer, err);
    return tree_walk(dir, change->path, measure_file, &(struct measure){walk, change}, err);
}

static int visit_deleted(struct change_walk *walk, struct change *change, bool selected,
                         struct brig_error *err)
{
    bool directory = S_ISDIR(change->before.st_mode);
    if (!change->before.st_mode && walk->options->same && change->whiteout)
        return walk->visit(walk->context, change, err);
    if (!change->before.st_mode || walk->options->same)
        return UPPER_SKIP; /* you have deleted it too */
    change->kind = CHANGE_DELETED;
    if (!selected)
        return directory ? UPPER_ENTER : UPPER_SKIP;
    int status = find_conflict(walk, change, err);
    if (status < 0)
        return status;
    int hidden = directory && !change->unreadable ? measure_directory(walk, change, err) : 0;
    if (hidden != 0)
        return hidden < 0 ? hidden : UPPER_ENTER;
    status = walk->visit(walk->context, change, err);
    return status != 0 ? status : directory && walk->options->expand ? UPPER_ENTER : UPPER_SKIP;
}

/* A file in place of a directory deletes everything in it: not if something in it is hidden. */
static int check_replaced(struct change_walk *walk, struct change *change, struct brig_error *err)
{
    if (change->kind != CHANGE_TYPE || !S_ISDIR(change->before.st_mode))
        return 0;
    base_note(walk->base);
    int hidden = measure_directory(walk, change, err);
    if (hidden > 0)
        change->unreadable = "your directory of this name contains files that are hidden";
    return hidden < 0 ? hidden : base_return(walk->base, err);
}

/* ---- the walk ---- */

static int visit(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    struct change_walk *walk = context;
    enum selection selection = select_path(walk, entry->path);
    if (selection == NOT || is_own_git(walk->layer, entry->path) ||
        layer_hides(walk->layer, entry->path))
        return UPPER_SKIP;
    if (walk->options->same && entry->replaced)
        return 0; /* without the copy the file would be gone there */
    struct change change = make_change(walk, entry);
    find_startup(walk, &change);
    if (entry->whiteout || entry->unseen)
        return visit_deleted(walk, &change, selection == SELECTED, err);
    if (selection != SELECTED)
        return 0;
    bool changed = compare(walk, &change);
    int status = find_conflict(walk, &change, err);
    if (status < 0)
        return status;
    if (walk->options->same)
        return !changed && !S_ISDIR(change.after.st_mode) && !change.conflict && !change.unreadable
                   ? walk->visit(walk->context, &change, err)
                   : 0;
    if (S_ISSOCK(change.after.st_mode))
        change.unreadable = "a socket is not applied";
    if (!changed || (change.has_base && change.base.applied.mode && !S_ISDIR(change.upper.mode) &&
                     ident_equal(&change.base.applied, &change.upper)))
        return 0;
    status = check_replaced(walk, &change, err);
    if (status == 0)
        status = walk->visit(walk->context, &change, err);
    return status != 0 ? status : walk->options->expand_replaced ? UPPER_ENTER : 0;
}

int changes_walk(const struct layer *layer, const struct change_options *options,
                 change_visit change_visitor, void *context, struct brig_error *err)
{
    struct change_walk walk = {.layer = layer,
                               .options = options,
                               .visit = change_visitor,
                               .context = context,
                               .touched.record = layer->record};
    int status = base_open(layer, &walk.base, err);
    if (status == 0)
        status = upper_walk(layer, true, visit, &walk, err);
    base_close(walk.base);
    touched_done(&walk.touched);
    startup_text_done(&walk.startup);
    return status;
}

/* ---- copies that are no changes ---- */

struct tidying {
    const struct layer *layer;
    struct live *live; /* NULL: not listed yet */
    struct base_change *items;
    size_t count;
};

static int tidy_file(void *context, const struct change *change, struct brig_error *err)
{
    struct tidying *tidying = context;
    char name[PATH_COMPONENT_MAX + sizeof UPPER_FUSE_PREFIX];
    bool mark = change->whiteout && !change->upper.mode;
    (void)snprintf(name, sizeof name, "%s%s", mark ? UPPER_FUSE_PREFIX : "", change->name);
    int status = tidying->live ? 0 : live_list(tidying->layer, &tidying->live, err);
    if (status < 0)
        return status;
    if (!live_take(tidying->live, change, name) && unlinkat(change->upper_dir, name, 0) < 0)
        return 0; /* in a directory that the jail has made read-only */
    char *path = array_grow(&tidying->items, tidying->count) ? strdup(change->path) : NULL;
    if (!path)
        return brig_fail_nomem(err);
    tidying->items[tidying->count++] = (struct base_change){.path = path, .how = BASE_FORGET};
    return 0;
}

int changes_tidy(const struct layer *layer, struct brig_error *err)
{
    static const struct change_options same = {.same = true};
    struct tidying tidying = {.layer = layer};
    /* The steps of an interrupted operation are told by what is in both trees. */
    if (layer->upper_count != 1 || layer->lower < 0 || operation_interrupted(layer->record))
        return 0;
    int status = changes_walk(layer, &same, change_stop, NULL, err);
    if (status != CHANGE_STOP)
        return status;
    status = layer_unmount(layer, err);
    if (status == 0)
        status = changes_walk(layer, &same, tidy_file, &tidying, err);
    if (tidying.count > 0 && status == 0)
        status = base_update(layer, tidying.items, tidying.count, NULL, err);
    for (size_t i = 0; i < tidying.count; i++)
        free(tidying.items[i].path);
    free(tidying.items);
    live_free(tidying.live);
    return status;
}

struct change_place change_place_after(const struct change *change)
{
    return change->copy_name ? (struct change_place){change->copy_dir, change->copy_name}
                             : (struct change_place){change->upper_dir, change->name};
}

int change_open_after(const struct change *change)
{
    const struct change_place place = change_place_after(change);
    return copy_open(place.dir, place.name, true);
}

int change_open_before(const struct change *change)
{
    return change->startup ? open_text(&change->startup->text)
                           : copy_open(change->lower_dir, change->name, false);
}

int change_stop(void *context, const struct change *change, struct brig_error *err)
{
    (void)context;
    (void)change;
    (void)err;
    return CHANGE_STOP;
}
