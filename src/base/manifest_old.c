/* SPDX-License-Identifier: MIT */
/* Converts the lists of files of brig 0.1 and 0.2.
 *
 * There were two forms. LAYER.base and LAYER.start were "brigbas2", a time, and records of numbers, each with its path.
 * The lists of checkpoints were texts, each ended by a NUL: "NAME=VALUE" for each header, an empty text, one for each
 * entry with its fields in hexadecimal digits, and an empty text. */
#include "base/manifest_old.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/manifest.h"
#include "base/path.h"

#define MAGIC_BASE "brigbas2"
#define MAGIC_TEXT "version="
#define MAGIC_LENGTH 8
#define HEADERS_MAX 16

/* ---- records of numbers ---- */

struct base_entry {
    uint16_t kind; /* 0: the state of the file; 1: unknown since a time */
    uint16_t covers;
    uint32_t path_length;
    struct ident lower, applied;
};

static int convert_base(FILE *file, struct manifest_writer *writer, struct brig_error *err)
{
    struct base_entry old;
    char path[PATH_LENGTH_MAX + 1];
    int64_t since_ns;
    if (fread(&since_ns, sizeof since_ns, 1, file) != 1)
        return manifest_fail_damaged(fileno(file), err);
    char since[32];
    (void)snprintf(since, sizeof since, "%" PRId64, since_ns);
    const struct manifest_text headers[] = {{"since", since}, {NULL, NULL}};
    int status = manifest_create_copy(headers, writer, err);
    while (status == 0 && fread(&old, sizeof old, 1, file) == 1) {
        if (old.path_length > PATH_LENGTH_MAX ||
            fread(path, 1, old.path_length, file) != old.path_length)
            return manifest_fail_damaged(fileno(file), err);
        path[old.path_length] = '\0';
        const struct manifest_entry entry = {.path = path,
                                             .kind = old.kind ? MANIFEST_SINCE : MANIFEST_PRESENT,
                                             .covers = old.covers,
                                             .ident = old.lower,
                                             .applied = old.applied};
        status = manifest_write(writer, &entry, err);
    }
    return status;
}

/* ---- texts ---- */

/* Reads a hexadecimal number and the blank after it. A negative one has a minus sign. */
static bool read_number(char **at, uint64_t *ret_number)
{
    char *end;
    bool negative = **at == '-';
    errno = 0;
    uint64_t number = strtoull(*at + negative, &end, 16);
    if (end == *at + negative || *end != ' ' || errno != 0)
        return false;
    *at = end + 1;
    *ret_number = negative ? -number : number;
    return true;
}

static bool parse_entry(char *text, struct manifest_entry *ret_entry)
{
    uint64_t numbers[7];
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        if (!read_number(&text, &numbers[i]))
            return false;
    size_t length = strcspn(text, " ");
    if (length < 1 || length > MANIFEST_CONTENT_MAX || text[length] != ' ')
        return false;
    *ret_entry = (struct manifest_entry){.path = text + length + 1,
                                         .kind = (enum manifest_kind)text[0],
                                         .has_owner = true,
                                         .uid = (uid_t)numbers[5],
                                         .gid = (gid_t)numbers[6],
                                         .ident = {.mode = (uint32_t)numbers[0],
                                                   .inode = numbers[1],
                                                   .size = numbers[2],
                                                   .mtime_ns = (int64_t)numbers[3],
                                                   .ctime_ns = (int64_t)numbers[4]}};
    memcpy(ret_entry->content, text + 1, length - 1);
    return true;
}

struct text {
    FILE *file;
    char *data;
    size_t capacity;
};

/* Reads the next text: its length, or -1. */
static ssize_t read_text(struct text *text)
{
    ssize_t length = getdelim(&text->data, &text->capacity, '\0', text->file);
    return length > 0 && text->data[length - 1] == '\0' ? length - 1 : -1;
}

static int convert_headers(struct text *text, struct manifest_writer *writer,
                           struct brig_error *err)
{
    autostr struct str list = {0};
    struct manifest_text headers[HEADERS_MAX + 1] = {0};
    size_t count = 0;
    ssize_t length;
    while ((length = read_text(text)) > 0)
        str_list_add(&list, text->data);
    if (length < 0 || list.failed)
        return length < 0 ? manifest_fail_damaged(fileno(text->file), err) : brig_fail_nomem(err);
    for (char *at = list.data; at && at < list.data + list.length && count < HEADERS_MAX;) {
        char *next = at + strlen(at) + 1, *value = strchr(at, '=');
        if (!value)
            return manifest_fail_damaged(fileno(text->file), err);
        *value = '\0';
        headers[count++] = (struct manifest_text){at, value + 1};
        at = next;
    }
    return manifest_create_copy(headers, writer, err);
}

static int convert_text(struct text *text, struct manifest_writer *writer, struct brig_error *err)
{
    struct manifest_entry entry;
    ssize_t length = -1;
    int status = fseeko(text->file, 0, SEEK_SET) < 0
                     ? manifest_fail_damaged(fileno(text->file), err)
                     : convert_headers(text, writer, err);
    while (status == 0 && (length = read_text(text)) > 0)
        status = parse_entry(text->data, &entry) ? manifest_write(writer, &entry, err)
                                                 : manifest_fail_damaged(fileno(text->file), err);
    return status == 0 && length < 0 ? manifest_fail_damaged(fileno(text->file), err) : status;
}

int manifest_old_convert(int file, const char *magic, int *ret_file, struct brig_error *err)
{
    automanifest struct manifest_writer writer = {0};
    struct text text = {0};
    autoclose int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    autofile FILE *stream =
        own < 0 || lseek(own, MAGIC_LENGTH, SEEK_SET) < 0 ? NULL : fdopen(own, "r");
    if (!stream)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read a list in brig's storage");
    (void)take_fd(&own);
    text.file = stream;
    int status = -1;
    if (memcmp(magic, MAGIC_BASE, MAGIC_LENGTH) == 0)
        status = convert_base(stream, &writer, err);
    else if (memcmp(magic, MAGIC_TEXT, MAGIC_LENGTH) == 0)
        status = convert_text(&text, &writer, err);
    else
        status = manifest_fail_damaged(file, err);
    free(text.data);
    return status < 0 ? status : manifest_finish_copy(&writer, ret_file, err);
}
