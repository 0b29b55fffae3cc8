/* SPDX-License-Identifier: MIT */
/* The spool: a directory of numbered segments, from `first`, which is read, to `last`, which is
 * written. */
#include "server/history/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/execution.h"
#include "server/history/directory.h"

#define SEGMENT_SUFFIX ".spool"
#define SEGMENT_NAME_MAX 40
#define READ_BYTES (SPOOL_RECORD_MAX + SPOOL_HEAD_BYTES)

struct spool {
    int directory, lock;
    uint64_t first, last;
    size_t read_at; /* in the first */
    int writing;    /* the last */
    size_t written; /* its length */
    bool torn;      /* half a record could not be cut away: the next one goes into a new segment */
    uint64_t waiting_bytes, waiting_records, damaged_bytes;
    char server_id[SPOOL_SERVER_ID_LENGTH + 1];
};

/* ---- Segments ---- */

static void segment_name(uint64_t number, char name[SEGMENT_NAME_MAX])
{
    (void)snprintf(name, SEGMENT_NAME_MAX, "%020" PRIu64 SEGMENT_SUFFIX, number);
}

/* 0 if the name is not that of a segment. */
static uint64_t segment_number(const char *name)
{
    char *end = NULL;
    if (strlen(name) != 20 + strlen(SEGMENT_SUFFIX) || name[0] < '0' || name[0] > '9')
        return 0;
    uint64_t number = strtoull(name, &end, 10);
    return strcmp(end, SEGMENT_SUFFIX) == 0 ? number : 0;
}

static int open_segment(const struct spool *spool, uint64_t number, int flags)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(number, name);
    return openat(spool->directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void remove_segment(const struct spool *spool, uint64_t number)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(number, name);
    (void)unlinkat(spool->directory, name, 0);
}

/* For people to look at: what is behind the damage cannot be told apart. */
static void put_aside(const struct spool *spool, uint64_t number)
{
    char name[SEGMENT_NAME_MAX], aside[2 * SEGMENT_NAME_MAX];
    segment_name(number, name);
    (void)snprintf(aside, sizeof aside, "%s.damaged", name);
    (void)renameat(spool->directory, name, spool->directory, aside);
}

/* All of it from `at` on, as far as there is room. */
static ssize_t read_from(int fd, size_t at, char *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, buffer + done, size - done, (off_t)(at + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

/* Counts the records of a segment up to where they are whole, which is what it returns; negative if it
 * cannot be read. */
static ssize_t count_records(int fd, char *buffer, uint64_t *records)
{
    size_t at = 0;
    for (;;) {
        ssize_t got = read_from(fd, at, buffer, READ_BYTES);
        if (got < 0)
            return -1;
        size_t used = 0;
        for (;;) {
            struct spool_record record;
            long taken = spool_record_parse(buffer + used, (size_t)got - used, &record);
            if (taken <= 0)
                break;
            used += (size_t)taken;
            ++*records;
        }
        if (used == 0)
            return (ssize_t)at;
        at += used;
    }
}

/* What is torn off at the end of the last one is cut away, so that the next record can be found;
 * damage in an earlier one is met when it is read. */
static int count_segment(struct spool *spool, uint64_t number, char *buffer, struct brig_error *err)
{
    struct stat info;
    autoclose int fd = open_segment(spool, number, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? 0 : brig_fail(err, BRIG_E_SYSTEM, errno, "a file of the spool");
    ssize_t whole = count_records(fd, buffer, &spool->waiting_records);
    if (whole < 0 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "read the spool");
    size_t torn = (size_t)info.st_size - (size_t)whole;
    if (torn > 0 && number == spool->last) {
        if (ftruncate(fd, whole) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cut the spool");
        spool->damaged_bytes += torn;
        torn = 0;
    }
    spool->waiting_bytes += (size_t)whole + torn;
    return 0;
}

/* ---- Opening ---- */

static int lock_directory(struct spool *spool, const char *path, struct brig_error *err)
{
    spool->lock = openat(spool->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s/lock'", str_shown(path).text);
    if (flock(spool->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return brig_fail(err, BRIG_E_STATE, 0,
                     "the spool '%s' is in use by another brigd. Give this one its own "
                     "database.spool_dir",
                     str_shown(path).text);
}

static int read_server_id(struct spool *spool, struct brig_error *err)
{
    autoclose int fd =
        openat(spool->directory, "server-id", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'server-id' of the spool");
    ssize_t got = read_from(fd, 0, spool->server_id, SPOOL_SERVER_ID_LENGTH);
    spool->server_id[SPOOL_SERVER_ID_LENGTH] = '\0';
    if (got == SPOOL_SERVER_ID_LENGTH && execution_id_is_valid(spool->server_id))
        return 0;
    execution_id_make(spool->server_id);
    if (pwrite(fd, spool->server_id, SPOOL_SERVER_ID_LENGTH, 0) != SPOOL_SERVER_ID_LENGTH)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'server-id' of the spool");
    return 0;
}

static int find_segments(struct spool *spool, struct brig_error *err)
{
    int copy = openat(spool->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "list the spool");
    for (struct dirent *entry; (entry = readdir(directory));) {
        uint64_t number = segment_number(entry->d_name);
        if (number == 0)
            continue;
        if (spool->first == 0 || number < spool->first)
            spool->first = number;
        if (number > spool->last)
            spool->last = number;
    }
    if (spool->first == 0)
        spool->first = spool->last = 1;
    return 0;
}

static int open_last(struct spool *spool, struct brig_error *err)
{
    struct stat info;
    spool->writing = open_segment(spool, spool->last, O_RDWR | O_CREAT | O_APPEND);
    if (spool->writing < 0 || fstat(spool->writing, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "a file of the spool");
    spool->written = (size_t)info.st_size;
    return 0;
}

static int fill(struct spool *spool, const char *path, struct brig_error *err)
{
    int result = directory_open(path, &spool->directory, err);
    if (result == 0)
        result = lock_directory(spool, path, err);
    if (result == 0)
        result = read_server_id(spool, err);
    if (result == 0)
        result = find_segments(spool, err);
    if (result < 0)
        return result;
    autofree char *buffer = malloc(READ_BYTES);
    if (!buffer)
        return brig_fail_nomem(err);
    for (uint64_t i = spool->first; i <= spool->last && result == 0; i++)
        result = count_segment(spool, i, buffer, err);
    return result < 0 ? result : open_last(spool, err);
}

int spool_open(const char *directory, struct spool **ret_spool, struct brig_error *err)
{
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return brig_fail_nomem(err);
    spool->directory = spool->lock = spool->writing = -1;
    int result = fill(spool, directory, err);
    if (result < 0) {
        spool_free(spool);
        return result;
    }
    *ret_spool = spool;
    return 0;
}

void spool_free(struct spool *spool)
{
    if (!spool)
        return;
    int fds[] = {spool->writing, spool->lock, spool->directory};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        own_close(&fds[i]);
    free(spool);
}

const char *spool_server_id(const struct spool *spool)
{
    return spool->server_id;
}

uint64_t spool_waiting_bytes(const struct spool *spool)
{
    return spool->waiting_bytes;
}

uint64_t spool_waiting_records(const struct spool *spool)
{
    return spool->waiting_records;
}

uint64_t spool_damaged_bytes(const struct spool *spool)
{
    return spool->damaged_bytes;
}

/* ---- Writing ---- */

static int begin_segment(struct spool *spool, struct brig_error *err)
{
    autoclose int fd = open_segment(spool, spool->last + 1, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "a new file of the spool");
    (void)close(spool->writing);
    spool->writing = take_fd(&fd);
    spool->written = 0;
    spool->torn = false;
    spool->last++;
    return 0;
}

int spool_append(struct spool *spool, const void *bytes, size_t length, struct brig_error *err)
{
    unsigned char head[SPOOL_HEAD_BYTES];
    if (length > SPOOL_RECORD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a row of %zu bytes is too long", length);
    bool full = spool->written >= SPOOL_SEGMENT_BYTES || spool->torn;
    int result = full ? begin_segment(spool, err) : 0;
    if (result < 0)
        return result;
    spool_record_head(bytes, length, head);
    struct iovec parts[2] = {{.iov_base = head, .iov_len = sizeof head},
                             {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length}};
    ssize_t done;
    do
        done = writev(spool->writing, parts, 2);
    while (done < 0 && errno == EINTR);
    if (done == (ssize_t)(sizeof head + length)) {
        spool->written += (size_t)done;
        spool->waiting_bytes += (size_t)done;
        spool->waiting_records++;
        return 0;
    }
    int error = done < 0 ? errno : ENOSPC;
    spool->torn = done > 0 && ftruncate(spool->writing, (off_t)spool->written) < 0;
    return brig_fail(err, BRIG_E_SYSTEM, error, "append to the spool");
}

/* ---- Reading ---- */

void spool_batch_done(struct spool_batch *batch)
{
    free(batch->buffer);
    *batch = (struct spool_batch){0};
}

/* Goes on to the next segment; the one before is empty of what anybody wants. */
static void leave_segment(struct spool *spool, bool damaged)
{
    if (damaged)
        put_aside(spool, spool->first);
    else
        remove_segment(spool, spool->first);
    spool->first++;
    spool->read_at = 0;
}

static size_t fill_batch(struct spool_batch *batch, size_t got)
{
    size_t used = 0;
    while (batch->count < SPOOL_BATCH_MAX) {
        struct spool_record *record = &batch->records[batch->count];
        long taken = spool_record_parse(batch->buffer + used, got - used, record);
        if (taken <= 0)
            break;
        used += (size_t)taken;
        batch->count++;
    }
    return used;
}

/* Where nothing can be read though bytes are there, they are damaged: what is left of the segment is
 * skipped. In the segment being written to, a new one is begun first. */
static int skip_damage(struct spool *spool, size_t bytes, struct brig_error *err)
{
    int result = spool->first == spool->last ? begin_segment(spool, err) : 0;
    if (result < 0)
        return result;
    spool->damaged_bytes += bytes;
    spool->waiting_bytes -= bytes < spool->waiting_bytes ? bytes : spool->waiting_bytes;
    leave_segment(spool, true);
    return 0;
}

/* 1 if the batch has something, or there is nothing; 0 to look at the next segment. */
static int read_segment(struct spool *spool, struct spool_batch *batch, struct brig_error *err)
{
    struct stat info = {0};
    autoclose int fd = open_segment(spool, spool->first, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read_from(fd, spool->read_at, batch->buffer, READ_BYTES);
    if ((fd < 0 && errno != ENOENT) || got < 0 || (fd >= 0 && fstat(fd, &info) < 0))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "read the spool");
    size_t used = fill_batch(batch, (size_t)got);
    if (used > 0) {
        batch->segment = spool->first;
        batch->end = spool->read_at + used;
        return 1;
    }
    if (got > 0)
        return skip_damage(spool, (size_t)info.st_size - spool->read_at, err);
    if (spool->first == spool->last)
        return 1;
    leave_segment(spool, false);
    return 0;
}

int spool_read(struct spool *spool, struct spool_batch *ret_batch, struct brig_error *err)
{
    struct spool_batch batch = {.buffer = malloc(READ_BYTES)};
    if (!batch.buffer)
        return brig_fail_nomem(err);
    int result = 0;
    while (result == 0)
        result = read_segment(spool, &batch, err);
    if (result < 0) {
        spool_batch_done(&batch);
        return result;
    }
    if (batch.count == 0) {
        spool->waiting_records = 0; /* also those that damage took along */
        spool_batch_done(&batch);
    }
    *ret_batch = batch;
    return 0;
}

/* When all is in the database the file becomes small again. */
static int shrink(struct spool *spool, struct brig_error *err)
{
    if (ftruncate(spool->writing, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cut the spool");
    spool->written = spool->read_at = 0;
    spool->waiting_bytes = spool->waiting_records = 0;
    return 0;
}

int spool_release(struct spool *spool, const struct spool_batch *batch, struct brig_error *err)
{
    if (batch->count == 0)
        return 0;
    size_t bytes = batch->end - spool->read_at;
    spool->waiting_bytes -= bytes < spool->waiting_bytes ? bytes : spool->waiting_bytes;
    spool->waiting_records -=
        batch->count < spool->waiting_records ? batch->count : spool->waiting_records;
    spool->read_at = batch->end;
    if (spool->first == spool->last && spool->read_at == spool->written)
        return shrink(spool, err);
    return 0;
}
