/* SPDX-License-Identifier: MIT */
/* The journal of placeholders: records "KIND INODE PATH", each ended by a NUL. */
#include "cli/placeholder_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/path.h"
#include "base/str.h"

#define JOURNAL_NAME "placeholders"
#define JOURNAL_MAX (1024 * 1024)
#define JOURNAL_TRIES 200 /* of 5 ms: others have it for much less */
#define JOURNAL_WAIT_MS 5
#define PREFIX_LENGTH 23 /* kind, blank, inode, blank */

struct record {
    enum placeholder_kind kind;
    uint64_t ino; /* or 0; the number of a device need not survive a restart */
    const char *path;
};

int journal_open(int dir_fd)
{
    return openat(dir_fd, JOURNAL_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                  0600);
}

bool journal_lock(int journal)
{
    for (int try = 0; journal >= 0 && try < JOURNAL_TRIES; try++) {
        if (flock(journal, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        (void)poll(NULL, 0, JOURNAL_WAIT_MS);
    }
    return false;
}

void journal_unlock(int journal)
{
    (void)flock(journal, LOCK_UN);
}

/* ---- records ---- */

static void append_record(struct str *text, const char *prefix, const char *dir_path,
                          const char *name)
{
    str_append(text, prefix);
    str_append(text, dir_path);
    str_append_char(text, '/');
    str_append_bytes(text, name, strlen(name) + 1);
}

void journal_format(struct str *text, enum placeholder_kind kind, uint64_t ino,
                    const char *dir_path, const char *name)
{
    char prefix[PREFIX_LENGTH + 1];
    (void)snprintf(prefix, sizeof prefix, "%u %020" PRIu64 " ", (unsigned)kind & 7, ino);
    append_record(text, prefix, dir_path, name);
}

void journal_format_none(struct str *text, const char *dir_path, const char *name)
{
    append_record(text, "- -------------------- ", dir_path, name);
}

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

off_t journal_append(int journal, const struct str *text)
{
    struct stat info;
    if (text->failed || fstat(journal, &info) < 0 ||
        pwrite(journal, text->data, text->length, info.st_size) != (ssize_t)text->length)
        return -1;
    return info.st_size;
}

/* ---- removing ---- */

bool journal_is_untouched(int fd, enum placeholder_kind kind)
{
    struct stat info;
    char text[sizeof PLACEHOLDER_SELF_TEXT];
    const size_t length = sizeof PLACEHOLDER_SELF_TEXT - 1;
    if (fstat(fd, &info) < 0)
        return false;
    switch (kind) {
    case PLACEHOLDER_CLOSED:
    case PLACEHOLDER_DIRECTORY: /* rmdir() itself asks whether it is empty */
        return S_ISDIR(info.st_mode);
    case PLACEHOLDER_FILE:
        return S_ISREG(info.st_mode) && info.st_size == 0;
    case PLACEHOLDER_SELF: /* if we died while we made it, it is empty */
        return S_ISREG(info.st_mode) &&
               (info.st_size == 0 || (pread(fd, text, sizeof text, 0) == (ssize_t)length &&
                                      memcmp(text, PLACEHOLDER_SELF_TEXT, length) == 0));
    }
    return false;
}

static bool has_inode(int fd, uint64_t ino)
{
    struct stat info;
    return ino == 0 || (fstat(fd, &info) == 0 && (uint64_t)info.st_ino == ino);
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
    if (fd < 0 || !has_inode(fd, record->ino) || !journal_is_untouched(fd, record->kind))
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return true;
    (void)unlinkat(dir, name, placeholder_unlink_flags(record->kind));
    return false;
}

void journal_clean(int journal)
{
    struct stat info;
    if (fstat(journal, &info) < 0 || info.st_size == 0 || info.st_size > JOURNAL_MAX)
        return;
    autofree char *text = malloc((size_t)info.st_size + 1);
    ssize_t length = text ? pread(journal, text, (size_t)info.st_size, 0) : -1;
    if (length < 0)
        return;
    text[length] = '\0';
    autostr struct str kept = {0};
    for (char *at = text; at < text + length; at += strlen(at) + 1) {
        struct record record;
        if (parse_record(at, &record) && remove_one(&record))
            str_append_bytes(&kept, at, strlen(at) + 1);
    }
    /* What is kept is never longer: if we die in between, some records are there twice. */
    if (!kept.failed &&
        (kept.length == 0 || pwrite(journal, kept.data, kept.length, 0) == (ssize_t)kept.length))
        (void)!ftruncate(journal, (off_t)kept.length);
}
