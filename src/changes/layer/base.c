/* SPDX-License-Identifier: MIT */
#include "changes/layer/base.h"

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
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/layer/upper.h"
#include "changes/layer/walk.h"

#define FILE_NAME_MAX 64
#define MAGIC "brigbas2"
#define START ".start"
#define BASE ".base"
#define PART_NEW ".new"

/* ---- states ---- */

struct ident ident_of(const struct stat *info)
{
    return (struct ident){.mode = info->st_mode,
                          .inode = info->st_ino,
                          .size = S_ISDIR(info->st_mode) ? 0 : (uint64_t)info->st_size,
                          .mtime_ns = clock_ns(info->st_mtim),
                          .ctime_ns = clock_ns(info->st_ctim)};
}

struct timespec ident_time(int64_t time_ns)
{
    int64_t rest = time_ns % CLOCK_SECOND_NS;
    rest += rest < 0 ? CLOCK_SECOND_NS : 0;
    return (struct timespec){.tv_sec = (time_t)((time_ns - rest) / CLOCK_SECOND_NS),
                             .tv_nsec = rest};
}

bool ident_equal(const struct ident *a, const struct ident *b)
{
    if (S_ISDIR(a->mode) && S_ISDIR(b->mode))
        return true;
    return a->mode == b->mode && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

int base_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a == '\0' ? 0 : *a == '/' ? 1 : (unsigned char)*a + 2;
    int right = *b == '\0' ? 0 : *b == '/' ? 1 : (unsigned char)*b + 2;
    return left - right;
}

int base_compare_items(const void *a, const void *b)
{
    return base_compare(*(const char *const *)a, *(const char *const *)b);
}

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

/* ---- files ---- */

/* Both files: this, then records, each followed by its path. */
struct head {
    char magic[8];
    /* The meaning of a missing record. LAYER.base: UNKNOWN. A manifest: ABSENT, the file did not
     * exist. The start of a run in a home: its time. */
    int64_t since_ns;
};
#define UNKNOWN (-1)
#define ABSENT 0

struct entry {
    uint16_t kind;   /* enum base_kind */
    uint16_t covers; /* the jail has deleted or replaced the directory: see struct cover */
    uint32_t path_length;
    struct ident lower, applied;
};

/* The last record of a directory that the jail has deleted or replaced. From then on it has not seen the user's files
 * in it, so LAYER.base has the records of all of them: a file without one is new. */
struct cover {
    bool valid;
    struct entry entry;
    char path[PATH_LENGTH_MAX + 1];
};

struct reader {
    FILE *file; /* NULL: there is none */
    int64_t since_ns;
    struct entry entry;
    bool ended;
    char path[PATH_LENGTH_MAX + 1];
    struct cover cover;
};

struct base {
    struct reader base, start;
};

static void file_name(const struct layer *layer, const char *end, char ret_name[FILE_NAME_MAX])
{
    (void)snprintf(ret_name, FILE_NAME_MAX, "%s%s", layer->name, end);
}

/* Reads the next record; at the end, or if the file is damaged, `ended` is set. */
static void advance(struct reader *reader)
{
    struct entry *entry = &reader->entry;
    struct cover *cover = &reader->cover;
    /* A directory in a covered one adds nothing. */
    if (!reader->ended && entry->covers &&
        !(cover->valid && path_is_beneath(cover->path, reader->path))) {
        cover->valid = true;
        cover->entry = *entry;
        memcpy(cover->path, reader->path, sizeof cover->path);
    }
    reader->ended = !reader->file || fread(entry, sizeof *entry, 1, reader->file) != 1 ||
                    entry->path_length > PATH_LENGTH_MAX ||
                    fread(reader->path, 1, entry->path_length, reader->file) != entry->path_length;
    reader->path[reader->ended ? 0 : entry->path_length] = '\0';
}

static int fail_damaged(int record, const char *name, struct brig_error *err)
{
    char dir[PATH_LENGTH_MAX + 1];
    return brig_fail(err, BRIG_E_STATE, 0,
                     "the list '%s/%s', by which conflicts are found, is damaged. Remove it to go "
                     "on without it, and look at the changes before you apply them",
                     path_of_fd(record, dir) ? str_shown(dir).text : "", name);
}

/* A missing file is not an error, a damaged one is. */
static int open_reader(int record, const char *name, struct reader *reader, struct brig_error *err)
{
    struct head head;
    *reader = (struct reader){.ended = true};
    int fd = openat(record, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", name);
    reader->file = fdopen(fd, "re");
    if (!reader->file) {
        (void)close(fd);
        return brig_fail_nomem(err);
    }
    if (fread(&head, sizeof head, 1, reader->file) != 1 ||
        memcmp(head.magic, MAGIC, sizeof head.magic) != 0)
        return fail_damaged(record, name, err);
    reader->since_ns = head.since_ns;
    advance(reader);
    return 0;
}

static void close_reader(struct reader *reader)
{
    if (reader->file)
        (void)fclose(reader->file);
    reader->file = NULL;
}

/* Whether the reader has a record of the path, which it then stands at. */
static bool seek(struct reader *reader, const char *path)
{
    while (!reader->ended && base_compare(reader->path, path) < 0)
        advance(reader);
    return !reader->ended && strcmp(reader->path, path) == 0;
}

int base_open(const struct layer *layer, struct base **ret_base, struct brig_error *err)
{
    char name[FILE_NAME_MAX];
    struct base *base = calloc(1, sizeof *base);
    if (!base)
        return brig_fail_nomem(err);
    file_name(layer, BASE, name);
    int status = open_reader(layer->record, name, &base->base, err);
    file_name(layer, START, name);
    if (status == 0)
        status = open_reader(layer->record, name, &base->start, err);
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
    close_reader(&base->base);
    close_reader(&base->start);
    free(base);
}

static void take_record(const struct reader *reader, struct base_record *ret_record)
{
    *ret_record = (struct base_record){.path = reader->path,
                                       .kind = reader->entry.kind,
                                       .lower = reader->entry.lower,
                                       .applied = reader->entry.applied};
}

bool base_find(struct base *base, const char *path, struct base_record *ret_record)
{
    if (seek(&base->base, path)) {
        take_record(&base->base, ret_record);
        return true;
    }
    const struct cover *cover = &base->base.cover;
    if (cover->valid && path_is_beneath(cover->path, path)) {
        bool since = cover->entry.kind == BASE_SINCE;
        *ret_record = (struct base_record){.path = path, .kind = cover->entry.kind};
        if (since)
            ret_record->lower = cover->entry.lower;
        return true;
    }
    if (!base->start.file)
        return false;
    if (base->start.since_ns != ABSENT)
        *ret_record = (struct base_record){
            .path = path, .kind = BASE_SINCE, .lower = {.ctime_ns = base->start.since_ns}};
    else if (seek(&base->start, path))
        take_record(&base->start, ret_record);
    else
        *ret_record = (struct base_record){.path = path, .kind = BASE_FILE};
    return true;
}

/* ---- writing ---- */

struct writer {
    FILE *file;
    const struct layer *layer;
    const char *end; /* START or BASE */
    size_t count;
};

static void writer_done(struct writer *writer)
{
    char name[FILE_NAME_MAX + sizeof PART_NEW];
    if (!writer->file)
        return;
    (void)fclose(writer->file);
    (void)snprintf(name, sizeof name, "%s%s" PART_NEW, writer->layer->name, writer->end);
    (void)unlinkat(writer->layer->record, name, 0);
}

static int fail_writing(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
}

static int open_writer(const struct layer *layer, const char *end, int64_t since_ns,
                       struct writer *writer, struct brig_error *err)
{
    char name[FILE_NAME_MAX + sizeof PART_NEW];
    struct head head = {.magic = MAGIC, .since_ns = since_ns};
    *writer = (struct writer){.layer = layer, .end = end};
    (void)snprintf(name, sizeof name, "%s%s" PART_NEW, layer->name, end);
    int fd =
        openat(layer->record, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    writer->file = fd < 0 ? NULL : fdopen(fd, "we");
    if (!writer->file || fwrite(&head, sizeof head, 1, writer->file) != 1) {
        if (fd >= 0 && !writer->file)
            (void)close(fd);
        return fail_writing(err);
    }
    return 0;
}

static int write_entry(struct writer *writer, struct entry *entry, const char *path,
                       struct brig_error *err)
{
    entry->path_length = (uint32_t)strlen(path);
    writer->count++;
    return fwrite(entry, sizeof *entry, 1, writer->file) == 1 &&
                   fwrite(path, 1, entry->path_length, writer->file) == entry->path_length
               ? 0
               : fail_writing(err);
}

/* Puts the file in place of the old one. */
static int finish(struct writer *writer, bool durable, struct brig_error *err)
{
    char from[FILE_NAME_MAX + sizeof PART_NEW], to[FILE_NAME_MAX];
    (void)snprintf(from, sizeof from, "%s%s" PART_NEW, writer->layer->name, writer->end);
    file_name(writer->layer, writer->end, to);
    int record = writer->layer->record;
    bool written = fflush(writer->file) == 0 && (!durable || fsync(fileno(writer->file)) == 0) &&
                   renameat(record, from, record, to) == 0;
    int failed = errno;
    (void)fclose(take_ptr(&writer->file));
    errno = failed;
    return written ? 0 : fail_writing(err);
}

#define autowriter __attribute__((cleanup(writer_done)))

/* `old` is the record that it replaces, or NULL. When the deletion of a directory comes back by an undo, the files in it
 * are moved back one by one, which changes their ctime: the time of the undo takes the place of their records. */
static struct entry make_entry(const struct base_record *record, const struct entry *old)
{
    struct entry entry = {.kind = (uint16_t)record->kind,
                          .covers = old ? old->covers : 0,
                          .lower = record->lower,
                          .applied = record->applied};
    if (!S_ISDIR(record->lower.mode) || (old && !old->covers))
        return entry;
    entry.kind = BASE_SINCE;
    entry.covers = 1;
    entry.lower.ctime_ns = clock_files_ns();
    return entry;
}

int base_update(const struct layer *layer, const struct base_change *changes, size_t count,
                struct brig_error *err)
{
    char name[FILE_NAME_MAX];
    struct reader old;
    autowriter struct writer writer = {0};
    file_name(layer, BASE, name);
    int status = open_reader(layer->record, name, &old, err);
    if (status == 0)
        status = open_writer(layer, BASE, UNKNOWN, &writer, err);
    size_t i = 0;
    const char *forgotten = NULL;
    while (status == 0 && (!old.ended || i < count)) {
        int order = old.ended ? 1 : i == count ? -1 : base_compare(old.path, changes[i].path);
        if (order < 0) {
            if (!forgotten || !path_is_beneath(forgotten, old.path))
                status = write_entry(&writer, &old.entry, old.path, err);
        } else if (changes[i].forget) {
            forgotten = changes[i].path;
        } else {
            struct entry entry = make_entry(&changes[i].record, order == 0 ? &old.entry : NULL);
            forgotten = entry.covers && S_ISDIR(entry.lower.mode) ? changes[i].path : forgotten;
            status = write_entry(&writer, &entry, changes[i].path, err);
        }
        i += order >= 0;
        if (order <= 0)
            advance(&old);
    }
    close_reader(&old);
    return status < 0 ? status : finish(&writer, true, err);
}

/* ---- the manifest ---- */

static int write_file(void *context, const struct walk_entry *found, struct brig_error *err)
{
    struct entry entry = {.kind = BASE_FILE, .lower = ident_of(&found->info)};
    int status = write_entry(context, &entry, found->path, err);
    return status == 0 && strcmp(found->path, ".git") == 0 ? TREE_SKIP : status;
}

/* ---- runs ---- */

struct merging {
    const struct layer *layer;
    struct base *base;
    struct writer *writer;
    size_t left;
    int64_t now_ns;
    char cover[PATH_LENGTH_MAX +
               1]; /* a directory that the jail has deleted or replaced; "": none */
    bool covered;  /* an earlier run did that: LAYER.start has files that the jail has not seen */
};

/* Copies the records of the user's files in `cover` that come before `end`, or all of them (NULL). */
static int copy_covered(struct merging *merging, const char *end, struct brig_error *err)
{
    struct reader *readers[] = {&merging->base->base, &merging->base->start};
    int status = 0;
    while (status == 0 && *merging->cover) {
        struct reader *next = NULL;
        for (size_t i = 0; i < (merging->covered ? 1 : ARRAY_LENGTH(readers)); i++) {
            while (!readers[i]->ended && base_compare(readers[i]->path, merging->cover) <= 0)
                advance(readers[i]);
            if (!readers[i]->ended && path_is_beneath(merging->cover, readers[i]->path) &&
                (!end || base_compare(readers[i]->path, end) < 0) &&
                (!next || base_compare(readers[i]->path, next->path) < 0))
                next = readers[i];
        }
        if (!next)
            return 0;
        if (next == readers[0] && !readers[1]->ended && strcmp(readers[1]->path, next->path) == 0)
            advance(readers[1]);
        status = write_entry(merging->writer, &next->entry, next->path, err);
        advance(next);
    }
    return status;
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
    bool known = base_find(merging->base, found->path, &record);
    if (covers && !*merging->cover) {
        const struct reader *old = &merging->base->base;
        (void)str_fill(merging->cover, sizeof merging->cover, found->path);
        merging->covered = !old->ended && strcmp(old->path, found->path) == 0 && old->entry.covers;
    }
    if (!known)
        return 0;
    struct entry entry = {
        .kind = record.kind, .covers = covers, .lower = record.lower, .applied = record.applied};
    if (!entry.applied.mode && !(found->whiteout && entry.applied.ctime_ns))
        entry.applied.ctime_ns = found->whiteout ? merging->now_ns : 0;
    return write_entry(merging->writer, &entry, found->path, err);
}

/* Rewrites LAYER.base with exactly the paths that are in the upper directory, or in a directory that the jail has
 * deleted or replaced, and removes LAYER.start. */
static int merge(const struct layer *layer, size_t max, struct brig_error *err)
{
    char name[FILE_NAME_MAX];
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    struct merging merging = {.layer = layer, .left = max, .now_ns = clock_ns(now)};
    autowriter struct writer writer = {0};
    int status = base_open(layer, &merging.base, err);
    if (status == 0)
        status = open_writer(layer, BASE, UNKNOWN, &writer, err);
    merging.writer = &writer;
    if (status == 0)
        status = upper_walk(layer, false, merge_entry, &merging, err);
    if (status == 0)
        status = copy_covered(&merging, NULL, err);
    base_close(merging.base);
    if (status != 0)
        return status == UPPER_STOP ? 0 : status;
    status = finish(&writer, writer.count > 0, err);
    file_name(layer, START, name);
    if (status == 0)
        (void)unlinkat(layer->record, name, 0);
    return status;
}

static int open_start(int record, const char *layer_name)
{
    char name[FILE_NAME_MAX];
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
    autowriter struct writer writer = {0};
    bool home = layer_is_home(layer->name);
    int status = open_writer(layer, START, home ? clock_files_ns() : ABSENT, &writer, err);
    if (status == 0 && !home)
        status = tree_walk(layer->lower, "", write_file, &writer, err);
    return status < 0 ? status : finish(&writer, false, err);
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
    char name[FILE_NAME_MAX];
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
