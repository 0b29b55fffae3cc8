/* SPDX-License-Identifier: MIT */
/* The spool of brigd 0.1: segments of records, each with a head of four numbers (magic, length,
 * CRC-32, 0) in the byte order of the machine, and a packed row: format, kind, columns. */
#include "server/history/old_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "server/history/row.h"
#include "server/history/store.h"

#define MAGIC 0x72676962u
#define RECORD_MAX ((size_t)8 << 20)
#define SEGMENT_MAX ((size_t)32 << 20) /* 0.1 began a new one after 16 MiB */
#define SUFFIX ".spool"
#define FORMAT 1
#define NO_TEXT UINT64_MAX  /* the length of a text that is NULL */
#define LAST_COLUMN "files" /* of 0.1; later columns are not in its files */

struct head {
    uint32_t magic, length, checksum, unused;
};

/* CRC-32 (IEEE 802.3). */
static uint32_t crc32(const unsigned char *bytes, size_t length)
{
    uint32_t sum = ~0u;
    for (size_t i = 0; i < length; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = (sum >> 1) ^ (0xedb88320u & (0u - (sum & 1)));
    }
    return ~sum;
}

/* ---- One row ---- */

struct reader {
    const unsigned char *at;
    size_t left;
    bool failed;
};

static const unsigned char *take(struct reader *in, uint64_t length)
{
    if (in->failed || in->left < length) {
        in->failed = true;
        return NULL;
    }
    const unsigned char *taken = in->at;
    in->at += length;
    in->left -= (size_t)length;
    return taken;
}

static uint64_t take_number(struct reader *in)
{
    uint64_t value = 0;
    const unsigned char *taken = take(in, sizeof value);
    if (taken)
        memcpy(&value, taken, sizeof value);
    return value;
}

static void read_column(struct reader *in, const struct row_column *column, struct row *row)
{
    uint64_t number = take_number(in);
    bool text = column->type == ROW_TEXT;
    if (column->type == ROW_NUMBER) {
        *(int64_t *)row_member(column, row) = (int64_t)number;
        return;
    }
    if (in->failed || (text ? number == NO_TEXT : number == 0))
        return;
    uint64_t length = text ? number : take_number(in);
    const unsigned char *bytes = take(in, length);
    if (bytes && !(text && memchr(bytes, '\0', (size_t)length)))
        row_set(row, column, bytes, (size_t)length);
}

/* Whether 0.1 wrote this column for this kind. */
static bool has_column(enum row_kind kind, const struct row_column *column)
{
    return kind == ROW_LOST ? column->part == PART_KEY : row_has_column(kind, column);
}

static bool read_row(const unsigned char *bytes, size_t length, struct row *ret_row)
{
    struct reader in = {.at = bytes, .left = length};
    uint64_t format = take_number(&in), kind = take_number(&in);
    if (in.failed || format != FORMAT || kind < ROW_BEGIN || kind > ROW_LOST)
        return false;
    row_init(ret_row, (enum row_kind)kind);
    for (size_t i = 0; i < row_column_count; i++) {
        if (has_column(ret_row->kind, &row_columns[i]))
            read_column(&in, &row_columns[i], ret_row);
        if (strcmp(row_columns[i].name, LAST_COLUMN) == 0)
            break;
    }
    bool complete = !in.failed && in.left == 0 && !ret_row->arena.failed && ret_row->id &&
                    ret_row->server && (kind == ROW_LOST || (ret_row->status && ret_row->events));
    if (!complete)
        row_done(ret_row);
    return complete;
}

/* Parses the record at the start of `bytes`: >0, how many bytes it takes, and the row, which is to be
 * released with row_done(); 0, it is not complete; negative, it is damaged. */
static long parse_record(const void *bytes, size_t length, struct row *ret_row)
{
    struct head head;
    if (length < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != MAGIC || head.length > RECORD_MAX || head.unused != 0)
        return -1;
    if (length - sizeof head < head.length)
        return 0;
    const unsigned char *content = (const unsigned char *)bytes + sizeof head;
    if (crc32(content, head.length) != head.checksum || !read_row(content, head.length, ret_row))
        return -1;
    return (long)(sizeof head + head.length);
}

/* ---- The files ---- */

static int is_segment(const struct dirent *entry)
{
    size_t digits = strspn(entry->d_name, "0123456789");
    return digits > 0 && strcmp(entry->d_name + digits, SUFFIX) == 0;
}

static int read_segment(int dir_fd, const char *name, char **ret_bytes, size_t *ret_length,
                        struct brig_error *err)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    size_t size = (size_t)info.st_size < SEGMENT_MAX ? (size_t)info.st_size : SEGMENT_MAX;
    size_t done = 0;
    autofree char *bytes = malloc(size + 1);
    if (!bytes)
        return brig_fail_nomem(err);
    while (done < size) {
        ssize_t got = read(fd, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_bytes = take_ptr(&bytes);
    *ret_length = done;
    return 0;
}

/* Stores one row, unless the database refuses it for good. */
static int store_row(struct store *store, struct row *row, struct brig_error *err)
{
    uint64_t refused = 0;
    int result = store_apply_each(store, row, 1, &refused, err);
    row_done(row);
    return result < 0 ? result : refused == 0;
}

static int import_segment(int dir_fd, const char *name, struct store *store, uint64_t *damaged,
                          struct brig_error *err)
{
    autofree char *bytes = NULL;
    char aside[PATH_COMPONENT_MAX + 1];
    size_t length = 0, at = 0;
    int count = 0, result = read_segment(dir_fd, name, &bytes, &length, err);
    while (result >= 0 && at < length) {
        struct row row;
        long used = parse_record(bytes + at, length - at, &row);
        if (used <= 0)
            break;
        at += (size_t)used;
        result = store_row(store, &row, err);
        count += result > 0;
    }
    if (result < 0)
        return result;
    *damaged += length - at;
    bool keep = at < length && str_fill(aside, sizeof aside, name, ".damaged");
    if ((keep ? renameat(dir_fd, name, dir_fd, aside) : unlinkat(dir_fd, name, 0)) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s'", str_shown(name).text);
    return count;
}

int old_spool_import(const char *directory, struct store *store, uint64_t *ret_damaged,
                     struct brig_error *err)
{
    struct dirent **names = NULL;
    int found = scandir(directory, &names, is_segment, alphasort), count = 0, result = 0;
    autoclose int dir_fd = found > 0 ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    *ret_damaged = 0;
    if (found > 0 && dir_fd < 0)
        result =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(directory).text);
    for (int i = 0; i < found; i++) {
        if (result >= 0)
            result = import_segment(dir_fd, names[i]->d_name, store, ret_damaged, err);
        count += result > 0 ? result : 0;
        free(names[i]);
    }
    free(names);
    return result < 0 ? result : count;
}
