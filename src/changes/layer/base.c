/* SPDX-License-Identifier: MIT */
#include "changes/layer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/record.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/layer/upper.h"
#include "changes/layer/walk.h"

#define START ".start"
#define BASE ".base"

/* The header "since": the meaning of a missing record. LAYER.base: UNKNOWN. The list of a root: ABSENT, the file did not
 * exist. The start of a run in a home: its time. */
#define SINCE "since"
#define UNKNOWN (-1)
#define ABSENT 0

const char *base_conflict(const struct base_record *record, const struct stat *now)
{
    if (record->kind == BASE_SINCE)
        return now && clock_ns(now->st_ctim) > record->lower.ctime_ns && !S_ISDIR(now->st_mode)
                   ? "your file has changed since the run began"
                   : NULL;
    if (!now)
        return record->lower.mode ? "you have deleted it since" : NULL;
    if (!record->lower.mode)
        return S_ISDIR(now->st_mode) ? NULL : "you have created a file there since";
    struct ident current = ident_of(now);
    return ident_equal(&record->lower, &current) ? NULL : "your file has changed since";
}

const char *base_directory_conflict(const struct base_record *record, const struct stat *now)
{
    if (record->kind == BASE_SINCE)
        return NULL;
    if (!record->lower.mode)
        return "you have created it since";
    return record->lower.inode != now->st_ino   ? "you have replaced it since"
           : record->lower.mode != now->st_mode ? "its mode has changed since"
                                                : NULL;
}

/* ---- reading ---- */

/* One of the lists, and the last directory that the jail has deleted or replaced. From then on it has not seen the
 * user's files in it, so LAYER.base has the records of all of them: a file without one is new. */
struct list {
    struct manifest *file; /* NULL: there is none */
    int64_t since_ns;
    int64_t noted; /* a position; -1: the end */
    bool covered;
    struct manifest_entry cover; /* if covered */
    char cover_path[PATH_LENGTH_MAX + 1];
};

struct base {
    struct list base, start;
};

static void file_name(const struct layer *layer, const char *end, char ret_name[MANIFEST_NAME_MAX])
{
    (void)snprintf(ret_name, MANIFEST_NAME_MAX, "%s%s", layer->name, end);
}

/* The current record; NULL at the end. */
static const struct manifest_entry *record_of(const struct list *list)
{
    const struct manifest_entry *entry = list->file ? manifest_entry(list->file) : NULL;
    return entry && entry->path ? entry : NULL;
}

/* Adds what to do about a damaged list. */
static int fail_list(int status, struct brig_error *err)
{
    if (status != BRIG_E_SYSTEM || !err || err->sys_errno != 0)
        return status;
    return brig_advise(err, status,
                       "Conflicts are found by it. Remove it to go on without it, and look at the "
                       "changes before you apply them");
}

static int advance(struct list *list, struct brig_error *err)
{
    const struct manifest_entry *entry = record_of(list);
    /* A directory in a covered one adds nothing. */
    if (entry && entry->covers &&
        !(list->covered && path_is_beneath(list->cover_path, entry->path))) {
        list->covered = true;
        list->cover = *entry;
        (void)str_fill(list->cover_path, sizeof list->cover_path, entry->path);
    }
    int status = list->file ? manifest_next(list->file, err) : 0;
    return status < 0 ? fail_list(status, err) : 0;
}

/* Opens a list at its first record. A missing one is not an error, a damaged one is. */
static int open_file(int dir, const char *name, struct list *list, struct brig_error *err)
{
    int status = manifest_open(dir, name, &list->file, err);
    if (status == BRIG_E_NOT_FOUND && err)
        *err = (struct brig_error){0};
    if (status < 0)
        return status == BRIG_E_NOT_FOUND ? 0 : fail_list(status, err);
    list->since_ns = record_time(manifest_header(list->file, SINCE));
    return advance(list, err);
}

static int open_list(const struct layer *layer, const char *end, struct list *list,
                     struct brig_error *err)
{
    char name[MANIFEST_NAME_MAX];
    file_name(layer, end, name);
    return open_file(layer->record, name, list, err);
}

static void close_list(struct list *list)
{
    manifest_close(take_ptr(&list->file));
}

/* Goes to a path: 1 if the list has a record of it, which it then stands at, 0, or a code. */
static int seek(struct list *list, const char *path, struct brig_error *err)
{
    const struct manifest_entry *entry;
    while ((entry = record_of(list))) {
        int order = path_compare(entry->path, path);
        if (order >= 0)
            return order == 0;
        int status = advance(list, err);
        if (status < 0)
            return status;
    }
    return 0;
}

int base_open(const struct layer *layer, struct base **ret_base, struct brig_error *err)
{
    struct base *base = calloc(1, sizeof *base);
    if (!base)
        return brig_fail_nomem(err);
    int status = open_list(layer, BASE, &base->base, err);
    if (status == 0)
        status = open_list(layer, START, &base->start, err);
    if (status < 0)
        base_close(base);
    else
        *ret_base = base;
    return status;
}

void base_close(struct base *base)
{
    if (!base)
        return;
    close_list(&base->base);
    close_list(&base->start);
    free(base);
}

static void note(struct list *list)
{
    list->noted = record_of(list) ? manifest_tell(list->file) : -1;
}

static int go_back(struct list *list, struct brig_error *err)
{
    if (list->noted < 0) /* at the end */
        return 0;
    int status = manifest_seek(list->file, list->noted, err);
    return status < 0 ? fail_list(status, err) : advance(list, err);
}

void base_note(struct base *base)
{
    note(&base->base);
    note(&base->start);
}

int base_return(struct base *base, struct brig_error *err)
{
    int status = go_back(&base->base, err);
    return status < 0 ? status : go_back(&base->start, err);
}

static void take_record(const struct list *list, struct base_record *ret_record)
{
    const struct manifest_entry *entry = record_of(list);
    *ret_record =
        (struct base_record){.path = entry->path,
                             .kind = entry->kind == MANIFEST_SINCE ? BASE_SINCE : BASE_FILE,
                             .lower = entry->ident,
                             .applied = entry->applied};
}

int base_find(struct base *base, const char *path, struct base_record *ret_record,
              struct brig_error *err)
{
    int found = seek(&base->base, path, err);
    if (found > 0)
        take_record(&base->base, ret_record);
    if (found != 0)
        return found;
    const struct list *list = &base->base;
    if (list->covered && path_is_beneath(list->cover_path, path)) {
        *ret_record = (struct base_record){.path = path, .kind = BASE_FILE};
        if (list->cover.kind == MANIFEST_SINCE)
            *ret_record =
                (struct base_record){.path = path, .kind = BASE_SINCE, .lower = list->cover.ident};
        return 1;
    }
    if (!base->start.file)
        return 0;
    *ret_record = (struct base_record){.path = path, .kind = BASE_FILE};
    if (base->start.since_ns != ABSENT) {
        *ret_record = (struct base_record){
            .path = path, .kind = BASE_SINCE, .lower = {.ctime_ns = base->start.since_ns}};
        return 1;
    }
    found = seek(&base->start, path, err);
    if (found > 0)
        take_record(&base->start, ret_record);
    return found < 0 ? found : 1;
}

/* ---- writing ---- */

static int fail_writing(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
}

static int create_file(int dir, const char *name, int64_t since_ns, struct manifest_writer *writer,
                       struct brig_error *err)
{
    char since[32];
    (void)snprintf(since, sizeof since, "%" PRId64, since_ns);
    const struct manifest_text headers[] = {{SINCE, since}, {NULL, NULL}};
    return manifest_create(dir, name, headers, writer, err);
}

static int create_list(const struct layer *layer, const char *end, int64_t since_ns,
                       struct manifest_writer *writer, struct brig_error *err)
{
    char name[MANIFEST_NAME_MAX];
    file_name(layer, end, name);
    return create_file(layer->record, name, since_ns, writer, err);
}

/* ---- changing records ---- */

static int compare_changes(const void *left, const void *right)
{
    const struct base_change *a = left, *b = right;
    int order = path_compare(a->path, b->path);
    return order != 0 ? order : (int)a->how - (int)b->how;
}

void base_sort(struct base_change *changes, size_t count)
{
    qsort(changes, count, sizeof *changes, compare_changes);
}

/* LAYER.base, the records that an operation has removed, and the changes, which are read beside each other. */
struct updating {
    struct list old, removed;
    const struct base_change *changes;
    size_t count;
    bool put_back;
    struct manifest_writer base;
    struct manifest_writer
        keeping;           /* what is removed now, with what the operation has removed already */
    const char *forgotten; /* the last path of which everything below goes, */
    const char *returned;  /* or comes back */
};

static const char *path_of(const struct list *list)
{
    const struct manifest_entry *entry = record_of(list);
    return entry ? entry->path : NULL;
}

/* The least of some paths, each of which may be NULL. */
static const char *least_path(const struct updating *updating)
{
    const char *paths[] = {path_of(&updating->old), path_of(&updating->removed),
                           updating->count > 0 ? updating->changes[0].path : NULL};
    const char *least = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
        if (paths[i] && (!least || path_compare(paths[i], least) < 0))
            least = paths[i];
    return least;
}

/* The record of a list, if it is at this path. */
static const struct manifest_entry *record_at(const struct list *list, const char *path)
{
    const struct manifest_entry *entry = record_of(list);
    return entry && strcmp(entry->path, path) == 0 ? entry : NULL;
}

/* The record that a change makes; false if there is none. */
static bool make_record(const struct base_change *change, const struct manifest_entry *old,
                        const struct manifest_entry *removed, struct manifest_entry *ret_entry)
{
    const struct base_record *record = &change->record;
    bool puts_back = change->how == BASE_PUT_BACK || change->how == BASE_PUT_BACK_AS;
    const struct manifest_entry *known = puts_back && removed ? removed : old;
    if (change->how == BASE_PUT_BACK && removed) {
        *ret_entry = *removed;
        return true;
    }
    *ret_entry = (struct manifest_entry){.path = change->path,
                                         .kind = record->kind == BASE_SINCE ? MANIFEST_SINCE
                                                                            : MANIFEST_PRESENT,
                                         .covers = known && known->covers,
                                         .ident = record->lower,
                                         .applied = record->applied};
    /* What is taken back is not applied any more, unless it was before the operation. */
    if (change->how == BASE_PUT_BACK_AS && known && (removed || !known->applied.mode))
        ret_entry->applied = known->applied;
    /* An operation of an earlier version has kept no records: without one, each file in there is a conflict. */
    if (change->how == BASE_PUT_BACK && !known)
        ret_entry->covers = S_ISDIR(record->lower.mode);
    return change->how != BASE_FORGET && (change->how != BASE_PUT_BACK || record->path);
}

/* Writes the record of a path that is changed. */
static int write_change(struct updating *updating, const struct base_change *change,
                        const struct manifest_entry *old, const struct manifest_entry *removed,
                        struct brig_error *err)
{
    struct manifest_entry made;
    if (change->how == BASE_FORGET)
        updating->forgotten = change->path;
    if (!make_record(change, old, removed, &made))
        return 0;
    if (updating->put_back && made.covers)
        updating->returned = change->path;
    return manifest_write(&updating->base, &made, err);
}

/* Writes the record of the least path, and goes on. */
static int update_path(struct updating *updating, const char *path, struct brig_error *err)
{
    const struct manifest_entry *old = record_at(&updating->old, path),
                                *removed = record_at(&updating->removed, path);
    const struct base_change *change = NULL;
    int status = 0;
    for (; updating->count > 0 && strcmp(updating->changes->path, path) == 0; updating->count--)
        change = updating->changes++;
    bool goes = updating->forgotten && path_is_beneath(updating->forgotten, path);
    if (change)
        status = write_change(updating, change, old, removed, err);
    else if (old && !goes)
        status = manifest_write(&updating->base, old, err);
    else if (removed && updating->returned && path_is_beneath(updating->returned, path))
        status = manifest_write(&updating->base, removed, err);
    if (status == 0 && updating->keeping.block && (removed || (old && (change || goes))))
        status = manifest_write(&updating->keeping, removed ? removed : old, err);
    if (status == 0 && old)
        status = advance(&updating->old, err);
    return status == 0 && removed ? advance(&updating->removed, err) : status;
}

static int write_changed(struct updating *updating, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    const char *least;
    int status = 0;
    while (status == 0 && (least = least_path(updating))) {
        (void)str_fill(path, sizeof path, least);
        status = update_path(updating, path, err);
    }
    /* What is removed is on disk before it is. */
    if (status == 0 && updating->keeping.count > 0)
        status = manifest_finish(&updating->keeping, true, err);
    return status < 0 ? status : manifest_finish(&updating->base, true, err);
}

int base_update(const struct layer *layer, const struct base_change *changes, size_t count,
                const struct base_kept *kept, struct brig_error *err)
{
    bool keeps = kept && kept->dir >= 0;
    struct updating updating = {
        .changes = changes, .count = count, .put_back = keeps && kept->put_back};
    int status = open_list(layer, BASE, &updating.old, err);
    if (status == 0 && keeps)
        status = open_file(kept->dir, kept->name, &updating.removed, err);
    if (status == 0)
        status = create_list(layer, BASE, UNKNOWN, &updating.base, err);
    if (status == 0 && keeps && !kept->put_back)
        status = create_file(kept->dir, kept->name, UNKNOWN, &updating.keeping, err);
    if (status == 0)
        status = write_changed(&updating, err);
    manifest_abandon(&updating.keeping);
    manifest_abandon(&updating.base);
    close_list(&updating.old);
    close_list(&updating.removed);
    return status;
}

/* ---- the list of a root ---- */

static int write_file(void *context, const struct walk_entry *found, struct brig_error *err)
{
    const struct manifest_entry entry = {
        .path = found->path, .kind = MANIFEST_PRESENT, .ident = ident_of(&found->info)};
    int status = manifest_write(context, &entry, err);
    return status == 0 && strcmp(found->path, ".git") == 0 ? TREE_SKIP : status;
}

/* ---- runs ---- */

struct merging {
    const struct layer *layer;
    struct base *base;
    struct manifest_writer *writer;
    size_t left;
    int64_t now_ns;
    char cover[PATH_LENGTH_MAX +
               1]; /* a directory that the jail has deleted or replaced; "": none */
    bool covered;  /* an earlier run did that: LAYER.start has files that the jail has not seen */
};

/* Goes to the first record in `cover` that comes before `end`; NULL if there is none. */
static int find_covered(struct merging *merging, struct list *list, const char *end,
                        const struct manifest_entry **ret_entry, struct brig_error *err)
{
    const struct manifest_entry *entry;
    int status = 0;
    while (status == 0 && (entry = record_of(list)) &&
           path_compare(entry->path, merging->cover) <= 0)
        status = advance(list, err);
    entry = record_of(list);
    bool in = entry && path_is_beneath(merging->cover, entry->path) &&
              (!end || path_compare(entry->path, end) < 0);
    *ret_entry = in ? entry : NULL;
    return status;
}

/* Copies the records of the user's files in `cover` that come before `end`, or all of them (NULL). A path that both lists
 * have is copied from LAYER.base. */
static int copy_covered(struct merging *merging, const char *end, struct brig_error *err)
{
    struct list *base = &merging->base->base, *start = &merging->base->start;
    const struct manifest_entry *one = NULL, *other = NULL;
    while (*merging->cover) {
        int status = find_covered(merging, base, end, &one, err);
        if (status == 0 && !merging->covered)
            status = find_covered(merging, start, end, &other, err);
        if (status < 0 || (!one && !other))
            return status;
        int order = !one ? 1 : !other ? -1 : path_compare(one->path, other->path);
        status = manifest_write(merging->writer, order <= 0 ? one : other, err);
        if (status == 0 && order >= 0)
            status = advance(start, err);
        if (status == 0 && order <= 0)
            status = advance(base, err);
        if (status < 0)
            return status;
    }
    return 0;
}

/* A directory or file of the user disappears behind what the jail has put there. */
static void begin_cover(struct merging *merging, const char *path)
{
    const struct manifest_entry *old = record_of(&merging->base->base);
    (void)str_fill(merging->cover, sizeof merging->cover, path);
    merging->covered = old && strcmp(old->path, path) == 0 && old->covers;
}

/* Copies or makes the record of a path in the upper directory. */
static int merge_entry(void *context, const struct upper_entry *found, struct brig_error *err)
{
    struct merging *merging = context;
    struct base_record record;
    if (merging->left-- == 0)
        return UPPER_STOP;
    int status = copy_covered(merging, found->path, err);
    if (status < 0)
        return status;
    if (*merging->cover && !path_is_beneath(merging->cover, found->path))
        merging->cover[0] = '\0';
    bool covers = !S_ISDIR(found->upper.st_mode) || upper_hides_lower(merging->layer, found->path);
    int known = base_find(merging->base, found->path, &record, err);
    if (known < 0)
        return known;
    if (covers && !*merging->cover)
        begin_cover(merging, found->path);
    if (!known)
        return 0;
    struct manifest_entry entry = {.path = found->path,
                                   .kind = record.kind == BASE_SINCE ? MANIFEST_SINCE
                                                                     : MANIFEST_PRESENT,
                                   .covers = covers,
                                   .ident = record.lower,
                                   .applied = record.applied};
    if (!entry.applied.mode && !(found->whiteout && entry.applied.ctime_ns))
        entry.applied.ctime_ns = found->whiteout ? merging->now_ns : 0;
    return manifest_write(merging->writer, &entry, err);
}

/* Rewrites LAYER.base with exactly the paths that are in the upper directory, or in a directory that the jail has
 * deleted or replaced, and removes LAYER.start. */
static int merge(const struct layer *layer, size_t max, struct brig_error *err)
{
    char name[MANIFEST_NAME_MAX];
    struct merging merging = {.layer = layer, .left = max, .now_ns = clock_files_ns()};
    automanifest struct manifest_writer writer = {0};
    int status = base_open(layer, &merging.base, err);
    if (status == 0)
        status = create_list(layer, BASE, UNKNOWN, &writer, err);
    merging.writer = &writer;
    if (status == 0)
        status = upper_walk(layer, false, merge_entry, &merging, err);
    if (status == 0)
        status = copy_covered(&merging, NULL, err);
    base_close(merging.base);
    if (status != 0)
        return status == UPPER_STOP ? 0 : status;
    status = manifest_finish(&writer, true, err);
    file_name(layer, START, name);
    if (status == 0)
        (void)unlinkat(layer->record, name, 0);
    return status;
}

static int open_start(int record, const char *layer_name)
{
    char name[MANIFEST_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s" START, layer_name);
    return openat(record, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

bool base_has_run(int record, const char *layer_name)
{
    autoclose int start = open_start(record, layer_name);
    return start >= 0 && flock(start, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static int write_start(const struct layer *layer, struct brig_error *err)
{
    automanifest struct manifest_writer writer = {0};
    bool home = layer_is_home(layer->name);
    int status = create_list(layer, START, home ? clock_files_ns() : ABSENT, &writer, err);
    if (status == 0 && !home)
        status = tree_walk(layer->lower, "", write_file, &writer, err);
    return status < 0 ? status : manifest_finish(&writer, false, err);
}

int base_begin(const struct layer *layer, struct brig_error *err)
{
    int status = 0;
    autoclose int start = open_start(layer->record, layer->name);
    bool alone = start < 0 || flock(start, LOCK_EX | LOCK_NB) == 0;
    bool home = layer_is_home(layer->name);
    /* An earlier run was killed, or has left this. The time of an earlier run in a home is still
     * right for this one, if not exact; walking a large home would delay its start. */
    if (alone && start >= 0 && !home)
        status = merge(layer, SIZE_MAX, err);
    if (status == 0 && alone && (start < 0 || !home)) {
        status = write_start(layer, err);
        close_fd(&start);
        start = open_start(layer->record, layer->name);
    }
    if (status < 0)
        return status;
    return start >= 0 && flock(start, LOCK_SH | LOCK_NB) == 0 ? take_fd(&start) : fail_writing(err);
}

int base_settle(const struct layer *layer, struct brig_error *err)
{
    autoclose int start = open_start(layer->record, layer->name);
    return start >= 0 && flock(start, LOCK_EX | LOCK_NB) == 0 ? merge(layer, SIZE_MAX, err) : 0;
}

int base_end(const struct layer *layer, int run, size_t max, struct brig_error *err)
{
    autoclose int start = run;
    /* The conversion of a lock is not atomic: but a new run needs the lock of the record. */
    return flock(start, LOCK_EX | LOCK_NB) == 0 ? merge(layer, max, err) : 0;
}

int base_cancel(const struct layer *layer, int run)
{
    char name[MANIFEST_NAME_MAX];
    autoclose int start = run;
    file_name(layer, START, name);
    if (flock(start, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(layer->record, name, 0);
    return 0;
}

bool base_has_start(const struct layer *layer)
{
    autoclose int start = open_start(layer->record, layer->name);
    return start >= 0;
}
