/* SPDX-License-Identifier: MIT */
/* Reads and writes manifests.
 *
 * A manifest is a list of texts, each terminated by a NUL: "NAME=VALUE" for each header, an empty text, a text for
 * each entry, and an empty text. The fields of an entry are separated by blanks, numbers are hexadecimal and the path
 * comes last. */
#include "changes/checkpoint/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

#define HEADERS_MAX 16
#define BUFFER_BYTES ((size_t)1 << 18)

struct manifest_reader {
    FILE *file;
    struct str headers;
    char *text; /* the current text */
    size_t capacity;
    bool ended;
};

static int damaged(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, 0, "a list of files in brig's storage is damaged");
}

/* Reads the next text without its NUL: its length, or -1. */
static ssize_t read_text(struct manifest_reader *reader)
{
    ssize_t length = getdelim(&reader->text, &reader->capacity, '\0', reader->file);
    return length > 0 && reader->text[length - 1] == '\0' ? length - 1 : -1;
}

static int read_headers(struct manifest_reader *reader, struct brig_error *err)
{
    for (int i = 0; i <= HEADERS_MAX; i++) {
        ssize_t length = read_text(reader);
        if (length < 0)
            break;
        if (length == 0)
            return 0;
        str_list_add(&reader->headers, reader->text);
        if (reader->headers.failed)
            return brig_fail_nomem(err);
    }
    return damaged(err);
}

int manifest_open(int dir, const char *name, struct manifest_reader **ret_reader,
                  struct brig_error *err)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, errno == ENOENT ? BRIG_E_NOT_FOUND : BRIG_E_SYSTEM, errno,
                         "cannot open '%s' in brig's storage", name);
    struct manifest_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return brig_fail_nomem(err);
    reader->file = fdopen(fd, "r");
    if (reader->file)
        (void)take_fd(&fd);
    int status = reader->file ? 0 : brig_fail_nomem(err);
    if (status == 0) {
        (void)setvbuf(reader->file, NULL, _IOFBF, BUFFER_BYTES);
        status = read_headers(reader, err);
    }
    if (status < 0) {
        manifest_close(reader);
        return status;
    }
    *ret_reader = reader;
    return 0;
}

void manifest_close(struct manifest_reader *reader)
{
    if (!reader)
        return;
    own_fclose(&reader->file);
    str_done(&reader->headers);
    free(reader->text);
    free(reader);
}

const char *manifest_header(const struct manifest_reader *reader, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = NULL; (at = str_list_next(&reader->headers, at));)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return "";
}

/* Reads a hexadecimal number and the blank after it. A negative one has a minus sign. */
static bool read_number(const char **at, uint64_t *ret_number)
{
    const char *c = *at;
    bool negative = *c == '-';
    uint64_t number = 0;
    int digits = 0;
    for (c += negative; *c && *c != ' ' && digits <= 16; c++, digits++) {
        unsigned digit = *c >= 'a' ? (unsigned)(*c - 'a') + 10 : (unsigned)(*c - '0');
        if (digit > 15)
            return false;
        number = number << 4 | digit;
    }
    if (*c != ' ' || digits == 0 || digits > 16)
        return false;
    *at = c + 1;
    *ret_number = negative ? -number : number;
    return true;
}

static bool parse(const char *text, struct manifest_entry *entry)
{
    uint64_t numbers[7];
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        if (!read_number(&text, &numbers[i]))
            return false;
    size_t length = strcspn(text, " ");
    if (length < 1 || length > MANIFEST_CONTENT_MAX || text[length] != ' ')
        return false;
    entry->ident = (struct ident){.mode = (uint32_t)numbers[0],
                                  .inode = numbers[1],
                                  .size = numbers[2],
                                  .mtime_ns = (int64_t)numbers[3],
                                  .ctime_ns = (int64_t)numbers[4]};
    entry->uid = (uid_t)numbers[5];
    entry->gid = (gid_t)numbers[6];
    entry->absence = (enum manifest_absence)text[0];
    memcpy(entry->content, text + 1, length - 1);
    entry->content[length - 1] = '\0';
    entry->path = text + length + 1;
    return true;
}

int manifest_next(struct manifest_reader *reader, struct manifest_entry *ret_entry,
                  struct brig_error *err)
{
    ret_entry->path = NULL;
    ssize_t length = reader->ended ? 0 : read_text(reader);
    if (length < 0)
        return damaged(err);
    reader->ended = length == 0;
    if (reader->ended)
        return 0;
    return parse(reader->text, ret_entry) ? 1 : damaged(err);
}

int64_t manifest_tell(const struct manifest_reader *reader)
{
    return ftello(reader->file);
}

int manifest_seek(struct manifest_reader *reader, int64_t position, struct brig_error *err)
{
    reader->ended = false;
    return position >= 0 && fseeko(reader->file, position, SEEK_SET) == 0 ? 0 : damaged(err);
}

/* ---- writing ---- */

static int cannot_write(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write in brig's storage");
}

int manifest_create(int dir, const char *name, const struct manifest_text *headers,
                    struct manifest_writer *ret_writer, struct brig_error *err)
{
    autoclose int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!file)
        return cannot_write(err);
    (void)take_fd(&fd);
    (void)setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
    for (size_t i = 0; headers[i].name; i++)
        (void)fprintf(file, "%s=%s%c", headers[i].name, headers[i].value, '\0');
    (void)putc('\0', file);
    *ret_writer = (struct manifest_writer){.file = file};
    return 0;
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

int manifest_write(struct manifest_writer *writer, const struct manifest_entry *entry,
                   struct brig_error *err)
{
    const struct ident *ident = &entry->ident;
    int written = fprintf(
        writer->file, "%x %" PRIx64 " %" PRIx64 " %s%" PRIx64 " %s%" PRIx64 " %x %x %c%s %s%c",
        ident->mode, ident->inode, ident->size, ident->mtime_ns < 0 ? "-" : "",
        magnitude(ident->mtime_ns), ident->ctime_ns < 0 ? "-" : "", magnitude(ident->ctime_ns),
        entry->uid, entry->gid, (char)entry->absence, entry->content, entry->path, '\0');
    return written < 0 ? cannot_write(err) : 0;
}

int manifest_finish(struct manifest_writer *writer, bool sync, struct brig_error *err)
{
    (void)putc('\0', writer->file);
    bool written = fflush(writer->file) == 0 && (!sync || fsync(fileno(writer->file)) == 0);
    int status = written ? 0 : cannot_write(err);
    if (fclose(take_ptr(&writer->file)) != 0 && status == 0)
        status = cannot_write(err);
    return status;
}

void manifest_abandon(struct manifest_writer *writer)
{
    own_fclose(&writer->file);
    writer->file = NULL;
}

struct manifest_entry manifest_entry_of(const char *path, const struct stat *info)
{
    return (struct manifest_entry){.path = path,
                                   .ident = ident_of(info),
                                   .uid = info->st_uid,
                                   .gid = info->st_gid,
                                   .absence = MANIFEST_PRESENT};
}
