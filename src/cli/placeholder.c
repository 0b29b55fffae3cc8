/* SPDX-License-Identifier: MIT */
/* Placeholders in the user's directories, and the journal by which they are found again. */
#include "cli/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"

#define JOURNAL_NAME "placeholders"
#define JOURNAL_MAX (1024 * 1024)
#define JOURNAL_RECORD_MAX (PATH_LENGTH_MAX + 128)
#define JOURNAL_TRIES 200 /* of 5 ms: others have it for much less */
#define JOURNAL_WAIT_MS 5
#define HOLD_TRIES 16 /* each lost to a run that ends just now */
#define SELF_TEXT ".\n"

/* ---- the journal: records "KIND INODE PATH", each ended by a NUL ---- */

struct record {
    enum placeholder_kind kind;
    uint64_t ino; /* the number of a device need not survive a restart */
    const char *path;
};

static bool parse_record(const char *text, struct record *ret_record)
{
    char *end;
    unsigned long kind = strtoul(text, &end, 10);
    if (end != text + 1 || *end != ' ' || kind > PLACEHOLDER_CLOSED)
        return false;
    ret_record->kind = (enum placeholder_kind)kind;
    ret_record->ino = strtoull(end + 1, &end, 10);
    if (end[0] != ' ' || end[1] != '/')
        return false;
    ret_record->path = end + 1;
    return true;
}

static bool lock_journal(int fd)
{
    for (int try = 0; fd >= 0 && try < JOURNAL_TRIES; try++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        (void)poll(NULL, 0, JOURNAL_WAIT_MS);
    }
    return false;
}

/* Without a journal a crash leaves an empty directory behind, which is no reason not to run. */
static void write_record(int journal, const struct stat *info, enum placeholder_kind kind,
                         const char *dir_path, const char *name)
{
    char text[JOURNAL_RECORD_MAX];
    int length = snprintf(text, sizeof text, "%u %" PRIu64 " %s/%s", (unsigned)kind,
                          (uint64_t)info->st_ino, dir_path, name);
    struct stat end;
    if (length <= 0 || (size_t)length >= sizeof text || !lock_journal(journal))
        return;
    if (fstat(journal, &end) == 0)
        (void)!pwrite(journal, text, (size_t)length + 1, end.st_size);
    (void)flock(journal, LOCK_UN);
}

/* ---- removing ---- */

static bool is_untouched(int fd, const struct record *record)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_ino != record->ino)
        return false;
    char text[sizeof SELF_TEXT];
    switch (record->kind) {
    case PLACEHOLDER_CLOSED:
    case PLACEHOLDER_DIRECTORY: /* rmdir() itself asks whether it is empty */
        return S_ISDIR(info.st_mode);
    case PLACEHOLDER_FILE:
        return S_ISREG(info.st_mode) && info.st_size == 0;
    case PLACEHOLDER_SELF:
        return S_ISREG(info.st_mode) && pread(fd, text, sizeof text, 0) == sizeof SELF_TEXT - 1 &&
               memcmp(text, SELF_TEXT, sizeof SELF_TEXT - 1) == 0;
    }
    return false;
}

/* True if the record is to be kept: somebody holds the placeholder still. */
static bool remove_one(const struct record *record)
{
    const char *name = strrchr(record->path, '/') + 1;
    autofree char *dir_path = strndup(record->path, (size_t)(name - record->path));
    autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int dir = -1;
    if (!dir_path || root < 0)
        return true;
    if (path_open_in_root(root, dir_path, O_PATH | O_DIRECTORY, 0, &dir, NULL) < 0)
        return false;
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !is_untouched(fd, record))
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return true;
    bool directory = record->kind == PLACEHOLDER_DIRECTORY || record->kind == PLACEHOLDER_CLOSED;
    (void)unlinkat(dir, name, directory ? AT_REMOVEDIR : 0);
    return false;
}

/* Removes what can be removed, and keeps the records of the rest. */
static void clean(int journal)
{
    struct stat info;
    if (journal < 0 || fstat(journal, &info) < 0 || info.st_size == 0 || !lock_journal(journal))
        return;
    autofree char *text = NULL;
    ssize_t length = 0;
    if (fstat(journal, &info) == 0 && info.st_size <= JOURNAL_MAX &&
        (text = malloc((size_t)info.st_size + 1)))
        length = pread(journal, text, (size_t)info.st_size, 0);
    if (text && length >= 0) {
        text[length] = '\0';
        autostr struct str kept = {0};
        for (char *at = text; at < text + length; at += strlen(at) + 1) {
            struct record record;
            if (parse_record(at, &record) && remove_one(&record))
                str_append_bytes(&kept, at, strlen(at) + 1);
        }
        /* What is kept is never longer: if we die in between, some records are there twice. */
        if (!kept.failed && (kept.length == 0 ||
                             pwrite(journal, kept.data, kept.length, 0) == (ssize_t)kept.length))
            (void)!ftruncate(journal, (off_t)kept.length);
    }
    (void)flock(journal, LOCK_UN);
}

/* ---- holding ---- */

void placeholders_begin(struct placeholders *placeholders, int journal_dir)
{
    *placeholders = (struct placeholders){.journal = -1};
    if (journal_dir >= 0)
        placeholders->journal =
            openat(journal_dir, JOURNAL_NAME,
                   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    clean(placeholders->journal);
    if (placeholders->journal < 0) /* then at least this run cleans up after itself */
        placeholders->journal = memfd_create(JOURNAL_NAME, MFD_CLOEXEC);
}

static int make(int dir_fd, const char *name, enum placeholder_kind kind)
{
    if (kind == PLACEHOLDER_DIRECTORY)
        return mkdirat(dir_fd, name, 0755);
    if (kind == PLACEHOLDER_CLOSED)
        return mkdirat(dir_fd, name, 0600);
    autoclose int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    const size_t length = kind == PLACEHOLDER_SELF ? sizeof SELF_TEXT - 1 : 0;
    if (fd < 0)
        return -1;
    if (write(fd, SELF_TEXT, length) == (ssize_t)length)
        return 0;
    int error = errno;
    (void)unlinkat(dir_fd, name, 0);
    errno = error;
    return -1;
}

/* Locks NAME if it is still what was opened: an fd, -1 with ENOENT if it is gone, or -1. */
static int lock(int dir_fd, const char *name, struct stat *ret_info)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat now;
    if (fd < 0 || fstat(fd, ret_info) < 0)
        return -1;
    if (flock(fd, LOCK_SH) < 0) /* a filesystem without locks: held all the same */
        return take_fd(&fd);
    if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_dev != ret_info->st_dev ||
        now.st_ino != ret_info->st_ino) {
        errno = ENOENT;
        return -1;
    }
    return take_fd(&fd);
}

static bool reserve(struct placeholders *placeholders)
{
    if (placeholders->count < placeholders->room)
        return true;
    size_t room = placeholders->room ? 2 * placeholders->room : 32;
    int *locks = reallocarray(placeholders->locks, room, sizeof *locks);
    if (!locks)
        return false;
    placeholders->locks = locks;
    placeholders->room = room;
    return true;
}

int placeholders_hold(struct placeholders *placeholders, int dir_fd, const char *dir_path,
                      const char *name, enum placeholder_kind kind, struct brig_error *err)
{
    if (!reserve(placeholders))
        return brig_fail_nomem(err);
    if (placeholders->count >= PLACEHOLDER_MAX)
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "more than %d names have to be held for protection. Use --no-protect",
                         PLACEHOLDER_MAX);
    for (int try = 0; try < HOLD_TRIES; try++) {
        bool made = make(dir_fd, name, kind) == 0;
        if (!made && (errno == EROFS || errno == EACCES || errno == EPERM))
            return 0;
        if (!made && errno != EEXIST)
            break;
        struct stat info;
        int fd = lock(dir_fd, name, &info);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0) /* of somebody who lets nobody in */
            return 1;
        placeholders->locks[placeholders->count++] = fd;
        if (made)
            write_record(placeholders->journal, &info, kind, dir_path, name);
        return 1;
    }
    int failed =
        brig_fail(err, BRIG_E_SETUP, errno, "cannot hold '%s/%s' for protection", dir_path, name);
    return brig_advise(err, failed, "Use --unprotect '%s' to do without", name);
}

void placeholders_done(struct placeholders *placeholders)
{
    for (size_t i = 0; i < placeholders->count; i++)
        (void)close(placeholders->locks[i]);
    if (placeholders->count > 0)
        clean(placeholders->journal);
    if (placeholders->journal >= 0)
        (void)close(placeholders->journal);
    free(placeholders->locks);
    *placeholders = (struct placeholders){.journal = -1};
}
