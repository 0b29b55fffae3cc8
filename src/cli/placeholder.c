/* SPDX-License-Identifier: MIT */
/* Placeholders in the user's directories: made all at once, and removed at the end. */
#include "cli/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/placeholder_journal.h"

#define HOLD_TRIES 16 /* each lost to a run that ends just now */
#define LOCK_WAIT_MS 1

int placeholder_unlink_flags(enum placeholder_kind kind)
{
    return kind == PLACEHOLDER_DIRECTORY || kind == PLACEHOLDER_CLOSED ? AT_REMOVEDIR : 0;
}

void placeholders_begin(struct placeholders *placeholders, int journal_dir)
{
    *placeholders = PLACEHOLDERS_INIT;
    if (journal_dir >= 0)
        placeholders->journal = journal_open(journal_dir);
    int journal = placeholders->journal;
    if (journal >= 0 && !journal_is_empty(journal) && journal_lock(journal)) {
        journal_clean(journal);
        journal_unlock(journal);
    }
    if (journal < 0) /* then at least this run cleans up after itself */
        placeholders->journal = memfd_create("placeholders", MFD_CLOEXEC);
}

/* ---- what is wanted ---- */

/* The directory is mostly the same as the last time. */
static int find_dir(struct placeholders *placeholders, int dir_fd, const char *path,
                    size_t *ret_index, struct brig_error *err)
{
    for (size_t i = placeholders->dir_count; i > 0; i--)
        if (strcmp(placeholders->dirs[i - 1].path, path) == 0) {
            *ret_index = i - 1;
            return 0;
        }
    struct placeholder_dir *dirs =
        reallocarray(placeholders->dirs, placeholders->dir_count + 1, sizeof *dirs);
    autofree char *copy = strdup(path);
    if (dirs)
        placeholders->dirs = dirs;
    if (!dirs || !copy)
        return brig_fail_nomem(err);
    int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot hold names in '%s'", path);
    *ret_index = placeholders->dir_count++;
    dirs[*ret_index] = (struct placeholder_dir){.fd = fd, .path = take_ptr(&copy)};
    return 0;
}

static bool reserve(struct placeholders *placeholders)
{
    if (placeholders->count < placeholders->room)
        return true;
    size_t room = placeholders->room ? 2 * placeholders->room : 32;
    struct placeholder *items = reallocarray(placeholders->items, room, sizeof *items);
    if (!items)
        return false;
    placeholders->items = items;
    placeholders->room = room;
    return true;
}

int placeholders_want(struct placeholders *placeholders, int dir_fd, const char *dir_path,
                      const char *name, enum placeholder_kind kind, struct brig_error *err)
{
    if (placeholders->count >= PLACEHOLDER_MAX)
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "more than %d names have to be held for protection. Use --no-protect",
                         PLACEHOLDER_MAX);
    struct placeholder item = {.kind = kind, .lock = -1};
    int status = find_dir(placeholders, dir_fd, dir_path, &item.dir, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < placeholders->count; i++) /* two paths may begin with the same name */
        if (placeholders->items[i].dir == item.dir &&
            strcmp(placeholders->items[i].name, name) == 0)
            return 0;
    if (!reserve(placeholders) || !(item.name = strdup(name)))
        return brig_fail_nomem(err);
    placeholders->items[placeholders->count++] = item;
    /* Now, and not when they are made: memory is dear while the engine shares it with a child. */
    (void)journal_format(&placeholders->records, kind, dir_path, name);
    return 0;
}

/* ---- making ---- */

static int make(int dir_fd, const char *name, enum placeholder_kind kind)
{
    if (kind == PLACEHOLDER_DIRECTORY)
        return mkdirat(dir_fd, name, 0755);
    if (kind == PLACEHOLDER_CLOSED)
        return mkdirat(dir_fd, name, 0600);
    autoclose int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    const size_t length = kind == PLACEHOLDER_SELF ? sizeof PLACEHOLDER_SELF_TEXT - 1 : 0;
    if (fd < 0)
        return -1;
    if (length == 0 || write(fd, PLACEHOLDER_SELF_TEXT, length) == (ssize_t)length)
        return 0;
    int error = errno;
    (void)unlinkat(dir_fd, name, 0);
    errno = error;
    return -1;
}

/* Locks NAME if it is still what was opened: an fd, or -1; with ENOENT if it is gone, EWOULDBLOCK if
 * somebody is about to remove it, or keeps us from it. */
static int lock(int dir_fd, const char *name, uint64_t *ret_ino)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info, now;
    if (fd < 0 || fstat(fd, &info) < 0)
        return -1;
    *ret_ino = info.st_ino;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0) /* a filesystem without locks: held all the same */
        return errno == EWOULDBLOCK ? -1 : take_fd(&fd);
    if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_dev != info.st_dev ||
        now.st_ino != info.st_ino) {
        errno = ENOENT;
        return -1;
    }
    return take_fd(&fd);
}

static bool is_hopeless(int error)
{
    return error == EROFS || error == EACCES || error == EPERM;
}

/* Makes one, or finds it made. */
static int settle(struct placeholder_dir *dir, struct placeholder *item, struct brig_error *err)
{
    item->state = PLACEHOLDER_IMPOSSIBLE;
    for (int try = 0; try < HOLD_TRIES; try++) {
        bool made = !dir->closed && make(dir->fd, item->name, item->kind) == 0;
        if (!made && (dir->closed || is_hopeless(errno))) {
            struct stat info; /* what is there all the same is protected as it is */
            dir->closed = true;
            if (fstatat(dir->fd, item->name, &info, AT_SYMLINK_NOFOLLOW) == 0)
                item->state = PLACEHOLDER_FOUND;
            return 0;
        }
        if (!made && errno != EEXIST)
            break;
        item->lock = lock(dir->fd, item->name, &item->ino);
        if (item->lock < 0 && (errno == ENOENT || errno == EWOULDBLOCK)) {
            if (errno == EWOULDBLOCK)
                (void)poll(NULL, 0, LOCK_WAIT_MS);
            continue;
        }
        item->state = made ? PLACEHOLDER_MADE : PLACEHOLDER_FOUND; /* if unlocked: of somebody */
        return 0;                                                  /* who lets nobody in */
    }
    int failed = brig_fail(err, BRIG_E_SETUP, errno, "cannot hold '%s/%s' for protection",
                           dir->path, item->name);
    return brig_advise(err, failed, "Use --unprotect '%s' to do without", item->name);
}

/* What is there already is somebody's, and no record may say that it is ours: if we die before they are
 * settled, the next run goes by them, and the user may well have an empty directory of that name. */
static void leave_out_found(struct placeholders *placeholders)
{
    const struct str *records = &placeholders->records;
    size_t at = 0;
    for (size_t i = placeholders->settled; i < placeholders->count && !records->failed; i++) {
        const struct placeholder *item = &placeholders->items[i];
        struct stat info;
        if (fstatat(placeholders->dirs[item->dir].fd, item->name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            journal_settle(records->data + at, item->kind, 0);
        at += strlen(records->data + at) + 1;
    }
}

/* Makes them, and fills their inodes in. */
static int settle_all(struct placeholders *placeholders, struct brig_error *err)
{
    const struct str *records = &placeholders->records;
    size_t at = 0;
    int status = 0;
    for (; placeholders->settled < placeholders->count && status == 0; placeholders->settled++) {
        struct placeholder *item = &placeholders->items[placeholders->settled];
        status = settle(&placeholders->dirs[item->dir], item, err);
        if (records->failed)
            continue;
        journal_settle(records->data + at, item->kind,
                       item->state == PLACEHOLDER_MADE ? item->ino : 0);
        at += strlen(records->data + at) + 1;
    }
    return status;
}

void placeholders_announce(struct placeholders *placeholders)
{
    struct str *records = &placeholders->records;
    str_append_char(records, '\0'); /* the last */
    placeholders->announced = journal_lock(placeholders->journal);
    leave_out_found(placeholders);
    placeholders->records_at =
        placeholders->announced ? journal_append(placeholders->journal, records) : -1;
}

/* Writes down what has become of it. */
static void conclude(struct placeholders *placeholders)
{
    struct str *records = &placeholders->records;
    if (placeholders->records_at >= 0) {
        journal_rewrite(placeholders->journal, records, placeholders->records_at);
        placeholders->records_end = placeholders->records_at + (off_t)records->length - 1;
    }
    if (placeholders->announced)
        journal_unlock(placeholders->journal);
    placeholders->announced = false;
    records->length = 0;
}

static bool are_settled(const struct placeholders *placeholders)
{
    return placeholders->settled == placeholders->count || placeholders->failure.code < 0;
}

/* System calls and nothing else: memory is the main thread's alone, whose malloc knows of no other. */
static void *settle_beside(void *arg)
{
    struct placeholders *placeholders = arg;
    (void)settle_all(placeholders, &placeholders->failure);
    return NULL;
}

void placeholders_make_beside(struct placeholders *placeholders)
{
    sigset_t all, before;
    if (are_settled(placeholders) || placeholders->making || sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return;
    placeholders_announce(placeholders);
    (void)sigfillset(&all); /* signals are the others' */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    placeholders->making =
        pthread_create(&placeholders->maker, NULL, settle_beside, placeholders) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!placeholders->making) {
        (void)settle_beside(placeholders);
        conclude(placeholders);
    }
}

static void wait_for_maker(struct placeholders *placeholders)
{
    if (!placeholders->making)
        return;
    (void)pthread_join(placeholders->maker, NULL);
    placeholders->making = false;
    conclude(placeholders);
}

int placeholders_make(struct placeholders *placeholders, struct brig_error *err)
{
    wait_for_maker(placeholders);
    if (!are_settled(placeholders)) {
        placeholders_announce(placeholders);
        (void)settle_all(placeholders, &placeholders->failure);
        conclude(placeholders);
    }
    if (placeholders->failure.code < 0 && err)
        *err = placeholders->failure;
    return placeholders->failure.code;
}

/* ---- removing ---- */

/* Removes one that we made. False if others have to be asked, through the journal. If it is on the
 * device, it stays open. */
static bool remove_made(struct placeholders *placeholders, struct placeholder *item, dev_t device)
{
    struct stat now;
    int dir = placeholders->dirs[item->dir].fd;
    if (item->state == PLACEHOLDER_IMPOSSIBLE)
        return true;
    if (item->state != PLACEHOLDER_MADE || item->lock < 0 ||
        (flock(item->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK))
        return false;
    if (fstatat(dir, item->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        (uint64_t)now.st_ino == item->ino && journal_is_untouched(item->lock, &now, item->kind) &&
        unlinkat(dir, item->name, placeholder_unlink_flags(item->kind)) == 0 &&
        now.st_dev == device && placeholders->removed)
        placeholders->removed[placeholders->removed_count++] = take_fd(&item->lock);
    return true;
}

static void release(struct placeholders *placeholders)
{
    for (size_t i = 0; i < placeholders->count; i++) {
        own_close(&placeholders->items[i].lock);
        free(placeholders->items[i].name);
    }
    for (size_t i = 0; i < placeholders->dir_count; i++) {
        (void)close(placeholders->dirs[i].fd);
        free(placeholders->dirs[i].path);
    }
    free(placeholders->items);
    free(placeholders->dirs);
    str_done(&placeholders->records);
}

static bool remove_all(struct placeholders *placeholders)
{
    struct stat info;
    dev_t device = fstat(placeholders->journal, &info) == 0 ? info.st_dev : 0;
    bool all = true;
    free(placeholders->removed);
    placeholders->removed = calloc(placeholders->settled, sizeof *placeholders->removed);
    for (size_t i = 0; i < placeholders->settled; i++)
        all &= remove_made(placeholders, &placeholders->items[i], device);
    return all;
}

void placeholders_remove(struct placeholders *placeholders)
{
    wait_for_maker(placeholders);
    bool locked = placeholders->settled > 0 && journal_lock(placeholders->journal);
    bool all = locked && remove_all(placeholders);
    release(placeholders);
    if (locked && all && placeholders->records_at == 0 &&
        journal_ends(placeholders->journal, placeholders->records_end))
        journal_forget(placeholders->journal);
    else if (locked)
        journal_clean(placeholders->journal);
    if (placeholders->journal >= 0)
        (void)close(placeholders->journal); /* and unlock it */
    struct placeholders rest = PLACEHOLDERS_INIT;
    rest.removed = placeholders->removed;
    rest.removed_count = placeholders->removed_count;
    *placeholders = rest;
}

void placeholders_let_go(struct placeholders *placeholders)
{
    for (size_t i = 0; i < placeholders->removed_count; i++)
        (void)close(placeholders->removed[i]);
    placeholders->removed_count = 0;
}

void placeholders_done(struct placeholders *placeholders)
{
    placeholders_remove(placeholders);
    placeholders_let_go(placeholders);
    free(placeholders->removed);
    *placeholders = PLACEHOLDERS_INIT;
}
