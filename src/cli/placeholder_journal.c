/* SPDX-License-Identifier: MIT */
/* The journal of placeholders: records "KIND INODE PATH", each ended by a NUL, and an empty one after the
 * last. What follows that is old: the file is not made shorter, which costs more than to write it. */
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
#define PREFIX "0 00000000000000000000 /" /* kind, inode, and how a path begins */
#define INODE_AT 2
#define INODE_DIGITS 20

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

size_t journal_format(struct str *text, enum placeholder_kind kind, const char *dir_path,
                      const char *name)
{
    char prefix[] = PREFIX;
    size_t at = text->length;
    prefix[0] = (char)('0' + (int)kind);
    str_append_bytes(text, prefix, sizeof prefix - 2);
    str_append(text, dir_path);
    str_append_char(text, '/');
    str_append_bytes(text, name, strlen(name) + 1);
    return at;
}

void journal_settle(char *record, enum placeholder_kind kind, uint64_t ino)
{
    record[0] = (char)(ino == 0 ? '-' : '0' + (int)kind);
    for (size_t i = INODE_DIGITS; i > 0; i--, ino /= 10)
        record[INODE_AT + i - 1] = (char)('0' + ino % 10);
}

bool journal_parse(const char *text, struct journal_record *ret_record)
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

bool journal_is_empty(int journal)
{
    char first = '\0';
    return pread(journal, &first, 1, 0) <= 0 || first == '\0';
}

char *journal_read(int journal, size_t *ret_length)
{
    struct stat info;
    if (fstat(journal, &info) < 0 || info.st_size > JOURNAL_MAX)
        return NULL;
    autofree char *text = calloc(1, (size_t)info.st_size + 2); /* an end, if there is none */
    if (!text || pread(journal, text, (size_t)info.st_size, 0) < 0)
        return NULL;
    size_t length = 0;
    while (text[length])
        length += strlen(text + length) + 1;
    *ret_length = length;
    return take_ptr(&text);
}

void journal_rewrite(int journal, const struct str *text, off_t at)
{
    if (!text->failed)
        (void)!pwrite(journal, text->data, text->length, at);
}

off_t journal_find_end(int journal)
{
    char part[4096], before = '\0';
    off_t at = 0;
    ssize_t length;
    while ((length = pread(journal, part, sizeof part, at)) > 0 && at < JOURNAL_MAX)
        for (ssize_t i = 0; i < length; i++, at++) {
            if (part[i] == '\0' && before == '\0')
                return at;
            before = part[i];
        }
    return length == 0 && before == '\0' ? at : -1;
}

off_t journal_append(int journal, const struct str *text)
{
    off_t at = journal_find_end(journal);
    if (at < 0 || text->failed ||
        pwrite(journal, text->data, text->length, at) != (ssize_t)text->length)
        return -1;
    return at;
}

bool journal_ends(int journal, off_t at)
{
    char next = '\0';
    return pread(journal, &next, 1, at) <= 0 || next == '\0';
}

void journal_forget(int journal)
{
    (void)!pwrite(journal, "", 1, 0);
}

/* ---- removing ---- */

bool journal_is_untouched(int fd, const struct stat *info, enum placeholder_kind kind)
{
    char text[sizeof PLACEHOLDER_SELF_TEXT];
    const size_t length = sizeof PLACEHOLDER_SELF_TEXT - 1;
    switch (kind) {
    case PLACEHOLDER_CLOSED:
    case PLACEHOLDER_DIRECTORY: /* rmdir() itself asks whether it is empty */
        return S_ISDIR(info->st_mode);
    case PLACEHOLDER_FILE:
        return S_ISREG(info->st_mode) && info->st_size == 0;
    case PLACEHOLDER_SELF: /* if we died while we made it, it is empty */
        return S_ISREG(info->st_mode) &&
               (info->st_size == 0 || (pread(fd, text, sizeof text, 0) == (ssize_t)length &&
                                       memcmp(text, PLACEHOLDER_SELF_TEXT, length) == 0));
    }
    return false;
}

/* True if the record is to be kept: somebody holds the placeholder still. */
static bool remove_one(const struct journal_record *record)
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
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 ||
        (record->ino != 0 && (uint64_t)info.st_ino != record->ino) ||
        !journal_is_untouched(fd, &info, record->kind))
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return true;
    (void)unlinkat(dir, name, placeholder_unlink_flags(record->kind));
    return false;
}

void journal_clean(int journal)
{
    size_t length = 0;
    autofree char *text = journal_read(journal, &length);
    autostr struct str kept = {0};
    for (const char *at = text; text && at < text + length; at += strlen(at) + 1) {
        struct journal_record record;
        if (journal_parse(at, &record) && remove_one(&record))
            str_append_bytes(&kept, at, strlen(at) + 1);
    }
    /* What is kept is never longer: if we die in between, some records are there twice. */
    str_append_char(&kept, '\0');
    if (text)
        journal_rewrite(journal, &kept, 0);
}
