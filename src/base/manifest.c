/* SPDX-License-Identifier: MIT */
/* Reads and writes manifests.
 *
 * The file is a magic word and blocks. A block is its length, a checksum of what follows, and that: in the first one the
 * headers, a record of "key value" lines; in the others whole entries; a block without bytes is the last one. Numbers are
 * in the order of this machine, as a record never leaves it. */
#include "base/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/manifest_old.h"
#include "base/path.h"
#include "base/record.h"

#define MAGIC "brigman1"
#define MAGIC_LENGTH (sizeof MAGIC - 1)
#define BLOCK_MAX ((size_t)1 << 16)
#define HEADERS_MAX 16
#define PART_NEW ".new"
#define POSITION_BITS 17 /* of a position: the place in the block */

struct block_head {
    uint64_t length, sum;
};

struct entry_head {
    uint16_t path_length; /* with a NUL */
    uint8_t kind, flags;
    uint32_t mode;
    uint64_t inode, size;
    int64_t mtime_ns, ctime_ns;
};

/* What follows an entry_head, in this order, and then the path. */
enum entry_flag {
    ENTRY_COVERS = 1 << 0,  /* nothing */
    ENTRY_OWNER = 1 << 1,   /* two numbers */
    ENTRY_APPLIED = 1 << 2, /* a struct ident */
    ENTRY_CONTENT = 1 << 3, /* a length and the bytes of a text */
    ENTRY_OBJECT = 1 << 4,  /* a length and the bytes that the text has the hexadecimal digits of */
};

#define ENTRY_MAX                                                                                  \
    (sizeof(struct entry_head) + 2 * sizeof(uint32_t) + sizeof(struct ident) + 1 +                 \
     MANIFEST_CONTENT_MAX + PATH_LENGTH_MAX + 1)
_Static_assert(ENTRY_MAX < BLOCK_MAX / 8, "a block has room for several entries");

struct manifest {
    int file;
    struct str headers;
    struct manifest_text texts[HEADERS_MAX];
    int64_t first; /* the offset of the first block with entries */
    int64_t block; /* of the current one */
    size_t length; /* of its entries */
    size_t at, next;
    bool ended;
    struct manifest_entry entry;
    unsigned char bytes[sizeof(struct block_head) + BLOCK_MAX];
};

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

struct manifest_entry manifest_entry_of(const char *path, const struct stat *info)
{
    return (struct manifest_entry){.path = path,
                                   .kind = MANIFEST_PRESENT,
                                   .has_owner = true,
                                   .uid = info->st_uid,
                                   .gid = info->st_gid,
                                   .ident = ident_of(info)};
}

/* ---- blocks ---- */

/* Finds damage by a disk or a killed process; it is no protection against forgery. */
static uint64_t checksum(const unsigned char *bytes, size_t length, int64_t offset)
{
    uint64_t sum = (uint64_t)offset ^ length, word;
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    word = 0;
    memcpy(&word, bytes, length);
    return (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

int manifest_fail_damaged(int file, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    return brig_fail(err, BRIG_E_SYSTEM, 0, "the list of files '%s' is damaged",
                     path_of_fd(file, path) ? str_shown(path).text : "");
}

/* Reads as much as there is, at most `length`. */
static ssize_t read_at(int file, void *bytes, size_t length, int64_t offset)
{
    size_t have = 0;
    while (have < length) {
        ssize_t got = pread(file, (char *)bytes + have, length - have, offset + (off_t)have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : (ssize_t)have;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static int read_block(struct manifest *manifest, int64_t offset, struct brig_error *err)
{
    struct block_head head;
    ssize_t got = read_at(manifest->file, manifest->bytes, sizeof manifest->bytes, offset);
    if (got < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read a list in brig's storage");
    if ((size_t)got < sizeof head)
        return manifest_fail_damaged(manifest->file, err);
    memcpy(&head, manifest->bytes, sizeof head);
    if (head.length > (size_t)got - sizeof head ||
        checksum(manifest->bytes + sizeof head, head.length, offset) != head.sum)
        return manifest_fail_damaged(manifest->file, err);
    manifest->block = offset;
    manifest->length = head.length;
    manifest->at = manifest->next = 0;
    return 0;
}

static int64_t offset_after(const struct manifest *manifest)
{
    return manifest->block + (int64_t)(sizeof(struct block_head) + manifest->length);
}

/* ---- opening ---- */

static int read_headers(struct manifest *manifest, struct brig_error *err)
{
    struct record_place place = {0};
    const char *key, *value;
    size_t count = 0;
    int status = read_block(manifest, MAGIC_LENGTH, err);
    if (status < 0)
        return status;
    str_append_bytes(&manifest->headers, (const char *)manifest->bytes + sizeof(struct block_head),
                     manifest->length);
    if (manifest->headers.failed)
        return brig_fail_nomem(err);
    while (count < HEADERS_MAX && record_next(&manifest->headers, &place, &key, &value))
        manifest->texts[count++] = (struct manifest_text){key, value};
    manifest->first = offset_after(manifest);
    return place.damaged ? manifest_fail_damaged(manifest->file, err)
                         : manifest_seek(manifest, 0, err);
}

/* Opens the file; of an earlier version, a copy of it. */
static int open_file(int dir, const char *name, int *ret_file, struct brig_error *err)
{
    char magic[MAGIC_LENGTH];
    autoclose int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return brig_fail(err, errno == ENOENT ? BRIG_E_NOT_FOUND : BRIG_E_SYSTEM, errno,
                         "cannot open '%s' in brig's storage", name);
    if (read_at(file, magic, sizeof magic, 0) != sizeof magic)
        return manifest_fail_damaged(file, err);
    if (memcmp(magic, MAGIC, sizeof magic) != 0)
        return manifest_old_convert(file, magic, ret_file, err);
    *ret_file = take_fd(&file);
    return 0;
}

int manifest_open(int dir, const char *name, struct manifest **ret_manifest, struct brig_error *err)
{
    autoclose int file = -1;
    int status = open_file(dir, name, &file, err);
    if (status < 0)
        return status;
    struct manifest *manifest = malloc(sizeof *manifest);
    if (!manifest)
        return brig_fail_nomem(err);
    memset(manifest, 0, offsetof(struct manifest, bytes));
    manifest->file = take_fd(&file);
    status = read_headers(manifest, err);
    if (status < 0)
        manifest_close(manifest);
    else
        *ret_manifest = manifest;
    return status;
}

void manifest_close(struct manifest *manifest)
{
    if (!manifest)
        return;
    own_close(&manifest->file);
    str_done(&manifest->headers);
    free(manifest);
}

const char *manifest_header(const struct manifest *manifest, const char *name)
{
    for (size_t i = 0; i < HEADERS_MAX && manifest->texts[i].name; i++)
        if (strcmp(manifest->texts[i].name, name) == 0)
            return manifest->texts[i].value;
    return "";
}

/* ---- reading ---- */

/* The next `length` bytes of an entry, or NULL if the block has not as many. */
static const unsigned char *take_bytes(struct manifest *manifest, size_t length)
{
    if (length > manifest->length - manifest->next)
        return NULL;
    const unsigned char *bytes = manifest->bytes + sizeof(struct block_head) + manifest->next;
    manifest->next += length;
    return bytes;
}

static bool take_value(struct manifest *manifest, void *value, size_t size)
{
    const unsigned char *bytes = take_bytes(manifest, size);
    if (bytes)
        memcpy(value, bytes, size);
    return bytes;
}

static bool read_content(struct manifest *manifest, bool is_object)
{
    static const char digits[] = "0123456789abcdef";
    char *content = manifest->entry.content;
    const unsigned char *length = take_bytes(manifest, 1);
    const unsigned char *bytes = length ? take_bytes(manifest, *length) : NULL;
    if (!bytes || (size_t)*length * (is_object ? 2 : 1) >= MANIFEST_CONTENT_MAX)
        return false;
    for (size_t i = 0; is_object && i < *length; i++) {
        *content++ = digits[bytes[i] >> 4];
        *content++ = digits[bytes[i] & 15];
    }
    if (!is_object) {
        memcpy(content, bytes, *length);
        content += *length;
    }
    *content = '\0';
    return true;
}

static bool read_entry(struct manifest *manifest)
{
    struct entry_head head;
    struct manifest_entry *entry = &manifest->entry;
    uint32_t owner[2] = {0, 0};
    if (!take_value(manifest, &head, sizeof head))
        return false;
    entry->kind = (enum manifest_kind)head.kind;
    entry->covers = head.flags & ENTRY_COVERS;
    entry->has_owner = head.flags & ENTRY_OWNER;
    entry->ident = (struct ident){.mode = head.mode,
                                  .inode = head.inode,
                                  .size = head.size,
                                  .mtime_ns = head.mtime_ns,
                                  .ctime_ns = head.ctime_ns};
    entry->applied = (struct ident){0};
    entry->content[0] = '\0';
    if ((entry->has_owner && !take_value(manifest, owner, sizeof owner)) ||
        ((head.flags & ENTRY_APPLIED) &&
         !take_value(manifest, &entry->applied, sizeof entry->applied)) ||
        ((head.flags & (ENTRY_CONTENT | ENTRY_OBJECT)) &&
         !read_content(manifest, head.flags & ENTRY_OBJECT)))
        return false;
    entry->uid = owner[0];
    entry->gid = owner[1];
    const unsigned char *path = take_bytes(manifest, head.path_length);
    if (!path || head.path_length < 1 || path[head.path_length - 1] != '\0')
        return false;
    entry->path = (const char *)path;
    return true;
}

int manifest_next(struct manifest *manifest, struct brig_error *err)
{
    manifest->entry.path = NULL;
    if (manifest->ended)
        return 0;
    if (manifest->next == manifest->length) {
        int status = read_block(manifest, offset_after(manifest), err);
        if (status < 0)
            return status;
        manifest->ended = manifest->length == 0;
        if (manifest->ended)
            return 0;
    }
    manifest->at = manifest->next;
    if (read_entry(manifest))
        return 1;
    manifest->entry.path = NULL;
    return manifest_fail_damaged(manifest->file, err);
}

const struct manifest_entry *manifest_entry(const struct manifest *manifest)
{
    return &manifest->entry;
}

int manifest_find(struct manifest *manifest, const char *path, struct brig_error *err)
{
    int status = 1;
    if (!manifest->entry.path)
        status = manifest_next(manifest, err);
    while (status > 0) {
        int order = path_compare(manifest->entry.path, path);
        if (order >= 0)
            return order == 0;
        status = manifest_next(manifest, err);
    }
    return status;
}

int64_t manifest_tell(const struct manifest *manifest)
{
    return manifest->block << POSITION_BITS | (int64_t)manifest->at;
}

/* Position 0 is before the first entry. */
int manifest_seek(struct manifest *manifest, int64_t position, struct brig_error *err)
{
    int64_t block = position >> POSITION_BITS;
    size_t at = (size_t)position & (((size_t)1 << POSITION_BITS) - 1);
    manifest->ended = false;
    manifest->entry.path = NULL;
    if (position == 0) {
        manifest->block = manifest->first - (int64_t)sizeof(struct block_head);
        manifest->length = manifest->at = manifest->next = 0;
        return 0;
    }
    int status = block == manifest->block ? 0 : read_block(manifest, block, err);
    if (status < 0 || at >= manifest->length)
        return status < 0 ? status : manifest_fail_damaged(manifest->file, err);
    manifest->next = at;
    return 0;
}

/* ---- writing ---- */

static int fail_writing(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write in brig's storage");
}

/* Writes the block, also an empty one. */
static int flush(struct manifest_writer *writer, struct brig_error *err)
{
    struct block_head head = {.length = writer->used};
    unsigned char *bytes = writer->block + sizeof head;
    head.sum = checksum(bytes, writer->used, writer->offset);
    memcpy(writer->block, &head, sizeof head);
    int failed = write_all(writer->file, writer->block, sizeof head + writer->used);
    errno = -failed;
    writer->offset += (int64_t)(sizeof head + writer->used);
    writer->used = 0;
    return failed < 0 ? fail_writing(err) : 0;
}

/* Writes the beginning of a manifest to an open file. */
static int manifest_begin(struct manifest_writer *writer, const struct manifest_text *headers,
                          struct brig_error *err)
{
    autostr struct str text = {0};
    for (size_t i = 0; headers[i].name; i++)
        record_add(&text, headers[i].name, headers[i].value);
    writer->block = malloc(sizeof(struct block_head) + BLOCK_MAX);
    if (!writer->block)
        close_fd(&writer->file);
    if (!writer->block || text.failed)
        return brig_fail_nomem(err);
    if (text.length > BLOCK_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the headers of a list are too long");
    int failed = write_all(writer->file, MAGIC, MAGIC_LENGTH);
    errno = -failed;
    writer->offset = MAGIC_LENGTH;
    if (text.length > 0)
        memcpy(writer->block + sizeof(struct block_head), text.data, text.length);
    writer->used = text.length;
    return failed < 0 ? fail_writing(err) : flush(writer, err);
}

int manifest_create(int dir, const char *name, const struct manifest_text *headers,
                    struct manifest_writer *ret_writer, struct brig_error *err)
{
    char part[MANIFEST_NAME_MAX + sizeof PART_NEW];
    struct manifest_writer writer = {.dir = dir};
    (void)str_fill(part, sizeof part, name, PART_NEW);
    if (!str_fill(writer.name, sizeof writer.name, name))
        return brig_fail(err, BRIG_E_INVALID, 0, "the name '%s' of a list is too long", name);
    writer.file = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (writer.file < 0)
        return fail_writing(err);
    int status = manifest_begin(&writer, headers, err);
    if (status < 0)
        manifest_abandon(&writer);
    else
        *ret_writer = writer;
    return status;
}

int manifest_create_copy(const struct manifest_text *headers, struct manifest_writer *ret_writer,
                         struct brig_error *err)
{
    struct manifest_writer writer = {.dir = -1, .file = memfd_create("manifest", MFD_CLOEXEC)};
    if (writer.file < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory");
    int status = manifest_begin(&writer, headers, err);
    if (status < 0)
        manifest_abandon(&writer);
    else
        *ret_writer = writer;
    return status;
}

int manifest_finish_copy(struct manifest_writer *writer, int *ret_file, struct brig_error *err)
{
    int status = writer->used > 0 ? flush(writer, err) : 0;
    if (status == 0)
        status = flush(writer, err);
    if (status < 0)
        return status;
    *ret_file = take_fd(&writer->file);
    free(take_ptr(&writer->block));
    return 0;
}

static void put_bytes(struct manifest_writer *writer, const void *bytes, size_t length)
{
    memcpy(writer->block + sizeof(struct block_head) + writer->used, bytes, length);
    writer->used += length;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of which a text has the digits: their number, or 0. */
static size_t read_object(const char *text, unsigned char *ret_bytes)
{
    size_t count = 0;
    for (; text[0] && text[1]; text += 2, count++) {
        int high = digit_of(text[0]), low = digit_of(text[1]);
        if (high < 0 || low < 0)
            return 0;
        ret_bytes[count] = (unsigned char)(high << 4 | low);
    }
    return *text ? 0 : count;
}

static bool is_zero(const struct ident *ident)
{
    return ident->mode == 0 && ident->inode == 0 && ident->size == 0 && ident->mtime_ns == 0 &&
           ident->ctime_ns == 0;
}

/* The flags of an entry; the bytes of its object, if the content is one. */
static unsigned find_flags(const struct manifest_entry *entry, unsigned char *ret_object,
                           size_t *ret_length)
{
    unsigned flags = entry->covers ? ENTRY_COVERS : 0;
    flags |= entry->has_owner ? ENTRY_OWNER : 0;
    flags |= is_zero(&entry->applied) ? 0 : ENTRY_APPLIED;
    if (!entry->content[0])
        return flags;
    *ret_length = read_object(entry->content, ret_object);
    return flags | (*ret_length > 0 ? ENTRY_OBJECT : ENTRY_CONTENT);
}

int manifest_write(struct manifest_writer *writer, const struct manifest_entry *entry,
                   struct brig_error *err)
{
    unsigned char object[MANIFEST_CONTENT_MAX];
    size_t length = 0, path_length = strlen(entry->path) + 1;
    const struct ident *ident = &entry->ident;
    unsigned flags = find_flags(entry, object, &length);
    const struct entry_head head = {.path_length = (uint16_t)path_length,
                                    .kind = (uint8_t)entry->kind,
                                    .flags = (uint8_t)flags,
                                    .mode = ident->mode,
                                    .inode = ident->inode,
                                    .size = ident->size,
                                    .mtime_ns = ident->mtime_ns,
                                    .ctime_ns = ident->ctime_ns};
    if (path_length > PATH_LENGTH_MAX + 1)
        return brig_fail(err, BRIG_E_INVALID, 0, "a path is too long for a list of files");
    if (writer->used + ENTRY_MAX > BLOCK_MAX) {
        int status = flush(writer, err);
        if (status < 0)
            return status;
    }
    put_bytes(writer, &head, sizeof head);
    if (flags & ENTRY_OWNER)
        put_bytes(writer, (const uint32_t[]){entry->uid, entry->gid}, 2 * sizeof(uint32_t));
    if (flags & ENTRY_APPLIED)
        put_bytes(writer, &entry->applied, sizeof entry->applied);
    if (flags & ENTRY_CONTENT)
        length = strlen(entry->content);
    if (length > 0) {
        put_bytes(writer, &(unsigned char){(unsigned char)length}, 1);
        put_bytes(writer, flags & ENTRY_OBJECT ? object : (const void *)entry->content, length);
    }
    put_bytes(writer, entry->path, path_length);
    writer->count++;
    return 0;
}

int manifest_finish(struct manifest_writer *writer, bool durable, struct brig_error *err)
{
    char part[MANIFEST_NAME_MAX + sizeof PART_NEW];
    (void)str_fill(part, sizeof part, writer->name, PART_NEW);
    int status = writer->used > 0 ? flush(writer, err) : 0;
    if (status == 0)
        status = flush(writer, err);
    if (status == 0 && ((durable && fsync(writer->file) < 0) ||
                        renameat(writer->dir, part, writer->dir, writer->name) < 0))
        status = fail_writing(err);
    if (status < 0)
        return status;
    close_fd(&writer->file);
    free(take_ptr(&writer->block));
    return 0;
}

void manifest_abandon(struct manifest_writer *writer)
{
    char part[MANIFEST_NAME_MAX + sizeof PART_NEW];
    if (!writer->block)
        return; /* not begun, or finished */
    free(take_ptr(&writer->block));
    close_fd(&writer->file);
    if (!writer->name[0])
        return; /* a copy in memory */
    (void)str_fill(part, sizeof part, writer->name, PART_NEW);
    (void)unlinkat(writer->dir, part, 0);
}
