/* SPDX-License-Identifier: MIT */
/* Merges files with git, and keeps copies of the user's files for that. */
#include "changes/diff/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/str.h"
#include "changes/diff/scratch.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "git/git.h"

#define BASES ".bases"
#define BASES_NAME_MAX (LAYER_NAME_MAX + sizeof BASES)
#define CONFLICTS_MAX 127 /* git merge-file exits with the number of conflicts, at most this */

/* Reads a text of at most MERGE_FILE_MAX bytes. Returns 1, 0 if it is binary or longer, or -errno. */
static int read_text(int fd, struct str *text)
{
    struct stat info;
    if (lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode) || (size_t)info.st_size > MERGE_FILE_MAX)
        return 0;
    int status = read_all(fd, MERGE_FILE_MAX, text);
    if (status < 0)
        return status;
    return text->length <= MERGE_FILE_MAX &&
           (text->length == 0 || !memchr(text->data, 0, text->length));
}

/* ---- merging ---- */

/* Copies a file into the repository. Returns 1, or 0 if it cannot be merged. */
static int put(const struct scratch *scratch, const char *name, int fd, struct brig_error *err)
{
    autostr struct str text = {0};
    int status = read_text(fd, &text);
    if (status < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -status, "cannot read a file to merge");
    if (status == 0)
        return 0;
    status = scratch_write(scratch, name, text.length > 0 ? text.data : "", text.length, err);
    return status < 0 ? status : 1;
}

static int merge(const struct git *git, const struct scratch *scratch,
                 enum merge_outcome *ret_outcome, int *ret_fd, struct brig_error *err)
{
    static const char *const words[] = {"merge-file", "-p",   "-L",   "yours", "-L",     "base",
                                        "-L",         "jail", "mine", "base",  "theirs", NULL};
    autostr struct str out = {0};
    int status =
        git_run(git, &(struct git_call){.words = words, .git_dir = scratch->dir, .out = &out}, err);
    if (status < 0 || out.failed)
        return status < 0 ? status : brig_fail_nomem(err);
    if (status > CONFLICTS_MAX) {
        *ret_outcome = MERGE_IMPOSSIBLE;
        return 0;
    }
    int fd = files_in_memory(out.data, out.length, err);
    if (fd < 0)
        return fd;
    *ret_outcome = status == 0 ? MERGE_CLEAN : MERGE_CONFLICTS;
    *ret_fd = fd;
    return 0;
}

int merge_files(const struct git *git, int record, int base, int mine, int theirs,
                enum merge_outcome *ret_outcome, int *ret_fd, struct brig_error *err)
{
    const struct {
        const char *name;
        int fd;
    } files[] = {{"base", base}, {"mine", mine}, {"theirs", theirs}};
    struct scratch scratch;
    int status = scratch_make(record, &scratch, err);
    if (status < 0)
        return status;
    int all = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && all == 1; i++)
        all = put(&scratch, files[i].name, files[i].fd, err);
    if (all == 1)
        status = merge(git, &scratch, ret_outcome, ret_fd, err);
    else if (all == 0)
        *ret_outcome = MERGE_IMPOSSIBLE;
    else
        status = all;
    scratch_remove(&scratch);
    return status;
}

/* ---- copies of the user's files ---- */

/* The name of a copy: the path, and the state of the user's file that the jail has read. */
static void make_key(const struct change *change, char ret_key[SHA256_HEX_LENGTH + 1])
{
    const struct ident *lower = &change->base.lower;
    char state[128];
    struct sha256 hash;
    (void)snprintf(state, sizeof state, "%d %o %ju %ju %jd %jd ", (int)change->base.kind,
                   (unsigned)lower->mode, (uintmax_t)lower->inode, (uintmax_t)lower->size,
                   (intmax_t)lower->mtime_ns, (intmax_t)lower->ctime_ns);
    sha256_begin(&hash);
    sha256_add(&hash, state, strlen(state));
    sha256_add(&hash, change->path, strlen(change->path));
    sha256_end(&hash, ret_key);
}

static void bases_name(const struct layer *layer, char ret_name[BASES_NAME_MAX])
{
    (void)str_fill(ret_name, BASES_NAME_MAX, layer->name, BASES);
}

struct key {
    char text[SHA256_HEX_LENGTH + 1];
};

struct saving {
    int dir; /* LAYER.bases, or -1 until there is something to save */
    const struct layer *layer;
    struct key *keys; /* of copies to keep */
    size_t count, bytes;
};

static bool is_modified_text(const struct change *change)
{
    return change->kind == CHANGE_MODIFIED && change->has_base && !change->unreadable &&
           S_ISREG(change->before.st_mode) && S_ISREG(change->after.st_mode) &&
           (size_t)change->after.st_size <= MERGE_FILE_MAX;
}

static void open_bases(struct saving *saving)
{
    char name[BASES_NAME_MAX];
    if (saving->dir >= 0)
        return;
    bases_name(saving->layer, name);
    (void)mkdirat(saving->layer->record, name, 0700);
    saving->dir = files_open_dir(saving->layer->record, name);
}

/* Copies the user's file, if it has not changed since the base was recorded. Returns its size, or -1. */
static ssize_t save(struct saving *saving, const struct change *change, const char *key)
{
    struct stat info;
    autostr struct str text = {0};
    const struct ident before = ident_of(&change->before);
    autoclose int fd = change->conflict ? -1 : change_open_before(change);
    if (fd < 0 || read_text(fd, &text) != 1 || fstat(fd, &info) < 0)
        return -1;
    const struct ident now = ident_of(&info);
    if (!ident_equal(&now, &before))
        return -1;
    return files_write(saving->dir, key, text.data, text.length, NULL) == 0 ? (ssize_t)text.length
                                                                            : -1;
}

static int save_change(void *context, const struct change *change, struct brig_error *err)
{
    struct saving *saving = context;
    struct stat info;
    if (!is_modified_text(change))
        return 0;
    if (saving->count == MERGE_BASES_MAX)
        return CHANGE_STOP;
    open_bases(saving);
    if (saving->dir < 0 || !array_grow(&saving->keys, saving->count))
        return saving->dir < 0
                   ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record")
                   : brig_fail_nomem(err);
    char *key = saving->keys[saving->count].text;
    make_key(change, key);
    bool exists = fstatat(saving->dir, key, &info, AT_SYMLINK_NOFOLLOW) == 0;
    size_t size = (size_t)(exists ? info.st_size : change->before.st_size);
    if (size > MERGE_FILE_MAX || saving->bytes + size > MERGE_BASES_BYTES)
        return 0;
    ssize_t saved = exists ? info.st_size : save(saving, change, key);
    if (saved < 0)
        return 0;
    saving->bytes += (size_t)saved;
    saving->count++;
    return 0;
}

static int compare_keys(const void *left, const void *right)
{
    return strcmp(((const struct key *)left)->text, ((const struct key *)right)->text);
}

/* Removes the copies that are not in the list. */
static void remove_others(struct saving *saving)
{
    autodir DIR *list = saving->dir < 0 ? NULL : files_list(saving->dir, ".");
    if (saving->count > 0)
        qsort(saving->keys, saving->count, sizeof *saving->keys, compare_keys);
    for (const struct dirent *item; list && (item = files_next(list));) {
        struct key key;
        bool kept = str_fill(key.text, sizeof key.text, item->d_name) && saving->count > 0 &&
                    bsearch(&key, saving->keys, saving->count, sizeof key, compare_keys);
        if (!kept)
            (void)unlinkat(saving->dir, item->d_name, 0);
    }
}

int merge_save_bases(const struct layer *layer, struct brig_error *err)
{
    char name[BASES_NAME_MAX];
    bases_name(layer, name);
    struct saving saving = {.layer = layer, .dir = files_open_dir(layer->record, name)};
    int status =
        changes_walk(layer, &(struct change_options){.quick = true}, save_change, &saving, err);
    if (status >= 0)
        remove_others(&saving);
    free(saving.keys);
    own_close(&saving.dir);
    return status < 0 ? status : 0;
}

int merge_open_base(const struct change *change)
{
    char key[SHA256_HEX_LENGTH + 1], name[BASES_NAME_MAX];
    struct stat info;
    if (!change->has_base)
        return -1;
    make_key(change, key);
    bases_name(change->layer, name);
    autoclose int dir = files_open_dir(change->layer->record, name);
    autoclose int fd = dir < 0 ? -1 : openat(dir, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return -1;
    bool damaged =
        change->base.kind == BASE_FILE && (uint64_t)info.st_size != change->base.lower.size;
    return damaged ? -1 : take_fd(&fd);
}
