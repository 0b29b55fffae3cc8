/* SPDX-License-Identifier: MIT */
#include "unpack/tar.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* The fields of a header block: offset and length. */
enum {
    NAME = 0,
    NAME_BYTES = 100,
    MODE = 100,
    MODE_BYTES = 8,
    SIZE = 124,
    SIZE_BYTES = 12,
    MTIME = 136,
    MTIME_BYTES = 12,
    CHECKSUM = 148,
    CHECKSUM_BYTES = 8,
    TYPE = 156,
    LINK = 157,
    LINK_BYTES = 100,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155,
};

#define SIZE_LIMIT (UINT64_C(1) << 50)
#define MTIME_LIMIT (UINT64_C(1) << 40)
#define SKIP_BYTES 16384

/* What entries before a file say about it. */
struct extra {
    bool has_name, has_link, has_size, has_mtime;
    uint64_t size, mtime;
    bool sparse;
};

static int bad(struct brig_error *err, const char *what)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "not a valid tar archive: %s", what);
}

/* ---- bytes ---- */

static int read_whole(struct tar *tar, void *buffer, size_t length, struct brig_error *err)
{
    int got = tar->input.read(tar->input.context, buffer, length, err);
    if (got >= 0 && (size_t)got < length)
        return got == 0 && length == TAR_BLOCK ? 0 : bad(err, "it ends early");
    return got;
}

int tar_read(struct tar *tar, void *buffer, size_t length, struct brig_error *err)
{
    if (tar->left == 0)
        return 0;
    if (length > tar->left)
        length = (size_t)tar->left;
    int got = tar->input.read(tar->input.context, buffer, length, err);
    if (got >= 0 && (size_t)got < length)
        return bad(err, "a file in it ends early");
    if (got > 0)
        tar->left -= (uint64_t)got;
    return got;
}

/* Skips to the next header. */
static int skip_rest(struct tar *tar, struct brig_error *err)
{
    char buffer[SKIP_BYTES];
    int got = 1;
    while (tar->left > 0 && got > 0)
        got = tar_read(tar, buffer, sizeof buffer, err);
    if (got < 0)
        return got;
    unsigned padding = tar->padding;
    tar->padding = 0;
    got = padding > 0 ? tar->input.read(tar->input.context, buffer, padding, err) : 0;
    return got < 0 ? got : 0; /* some writers leave the last padding out */
}

/* ---- fields ---- */

/* An octal number, or with the first bit set one in base 256. */
static bool read_number(const unsigned char *field, size_t length, uint64_t limit,
                        uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        if (field[0] != 0x80)
            return false; /* negative, or too large for any limit */
        for (i = 1; i < length; i++) {
            if (value > limit)
                return false;
            value = value << 8 | field[i];
        }
        *ret_value = value;
        return value <= limit;
    }
    while (i < length && field[i] == ' ')
        i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value > limit)
            return false;
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    if (i < length && field[i] != ' ' && field[i] != '\0')
        return false;
    *ret_value = value;
    return value <= limit;
}

/* The sum of all bytes, with the field of the sum itself as blanks. */
static bool has_checksum(const unsigned char *block)
{
    uint64_t wanted, sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_BYTES ? ' ' : block[i];
    return read_number(block + CHECKSUM, CHECKSUM_BYTES, UINT32_MAX, &wanted) && wanted == sum;
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

static size_t copy_field(char *to, const unsigned char *field, size_t length)
{
    size_t used = strnlen((const char *)field, length);
    memcpy(to, field, used);
    to[used] = '\0';
    return used;
}

static void copy_name(const unsigned char *block, char ret_name[TAR_NAME_MAX + 1])
{
    size_t used = 0;
    if (memcmp(block + MAGIC, "ustar\0", 6) == 0) /* GNU's has a blank there, and no prefix */
        used = copy_field(ret_name, block + PREFIX, PREFIX_BYTES);
    if (used > 0)
        ret_name[used++] = '/';
    (void)copy_field(ret_name + used, block + NAME, NAME_BYTES);
}

/* ---- pax headers ---- */

static int set_text(char to[TAR_NAME_MAX + 1], const char *value, size_t length,
                    struct brig_error *err)
{
    if (length == 0 || length > TAR_NAME_MAX || memchr(value, '\0', length))
        return bad(err, "a name is empty, too long or has a NUL in it");
    memcpy(to, value, length);
    to[length] = '\0';
    return 0;
}

/* Decimal digits; a fraction after them is ignored. */
static bool read_decimal(const char *value, size_t length, uint64_t limit, uint64_t *ret_value)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < length && value[i] >= '0' && value[i] <= '9'; i++) {
        number = number * 10 + (uint64_t)(value[i] - '0');
        if (number > limit)
            return false;
    }
    *ret_value = number;
    return i > 0 && (i == length || value[i] == '.');
}

static bool is_key(const char *key, size_t length, const char *wanted)
{
    return strlen(wanted) == length && memcmp(key, wanted, length) == 0;
}

static int take_record(struct tar_entry *entry, struct extra *extra, const char *key,
                       size_t key_length, const char *value, size_t length, struct brig_error *err)
{
    if (is_key(key, key_length, "path")) {
        extra->has_name = true;
        return set_text(entry->name, value, length, err);
    }
    if (is_key(key, key_length, "linkpath")) {
        extra->has_link = true;
        return set_text(entry->link, value, length, err);
    }
    if (is_key(key, key_length, "size")) {
        extra->has_size = true;
        return read_decimal(value, length, SIZE_LIMIT, &extra->size) ? 0 : bad(err, "a bad size");
    }
    if (is_key(key, key_length, "mtime"))
        extra->has_mtime = read_decimal(value, length, MTIME_LIMIT, &extra->mtime);
    if (key_length > 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        extra->sparse = true;
    return 0;
}

/* Records are "LENGTH KEY=VALUE\n", where the length is that of the whole record. */
static int take_pax(struct tar_entry *entry, struct extra *extra, const char *text, size_t length,
                    struct brig_error *err)
{
    while (length > 0) {
        size_t digits = 0;
        uint64_t size = 0;
        while (digits < length && digits < 6 && text[digits] >= '0' && text[digits] <= '9')
            size = size * 10 + (uint64_t)(text[digits++] - '0');
        if (digits == 0 || digits >= length || text[digits] != ' ' || size > length ||
            size < digits + 4 || text[size - 1] != '\n')
            return bad(err, "a bad pax header");
        const char *key = text + digits + 1;
        size_t rest = (size_t)size - digits - 2; /* without the newline */
        const char *equals = memchr(key, '=', rest);
        if (!equals)
            return bad(err, "a bad pax header");
        size_t key_length = (size_t)(equals - key);
        int result =
            take_record(entry, extra, key, key_length, equals + 1, rest - key_length - 1, err);
        if (result < 0)
            return result;
        text += size;
        length -= (size_t)size;
    }
    return 0;
}

/* Reads the contents of an entry that is about the next one. */
static int take_extra(struct tar *tar, char kind, struct tar_entry *entry, struct extra *extra,
                      struct brig_error *err)
{
    char text[TAR_EXTRA_MAX];
    if (tar->left > sizeof text)
        return bad(err, "a header is too long");
    size_t length = (size_t)tar->left;
    int got = tar_read(tar, text, length, err);
    if (got < 0)
        return got;
    if (kind == 'x')
        return take_pax(entry, extra, text, length, err);
    length = strnlen(text, length);
    if (kind == 'L') {
        extra->has_name = true;
        return set_text(entry->name, text, length, err);
    }
    if (kind == 'K') {
        extra->has_link = true;
        return set_text(entry->link, text, length, err);
    }
    return 0; /* 'g': defaults for the whole archive, of which none concerns us */
}

/* ---- entries ---- */

static int find_type(char kind, enum tar_type *ret_type, struct brig_error *err)
{
    static const struct {
        char kind;
        enum tar_type type;
    } types[] = {{'0', TAR_FILE},      {'\0', TAR_FILE},   {'7', TAR_FILE},
                 {'1', TAR_HARD_LINK}, {'2', TAR_SYMLINK}, {'5', TAR_DIRECTORY},
                 {'3', TAR_SPECIAL},   {'4', TAR_SPECIAL}, {'6', TAR_SPECIAL}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].kind == kind) {
            *ret_type = types[i].type;
            return 0;
        }
    return brig_fail(err, BRIG_E_INVALID, 0, "tar entries of type 0x%02x are not supported",
                     (unsigned char)kind);
}

/* Fills in the entry from its block, where nothing before it did. */
static int fill_entry(struct tar *tar, const unsigned char *block, const struct extra *extra,
                      struct tar_entry *entry, struct brig_error *err)
{
    uint64_t mode, mtime;
    int result = find_type((char)block[TYPE], &entry->type, err);
    if (result < 0)
        return result;
    if (extra->sparse)
        return brig_fail(err, BRIG_E_INVALID, 0, "sparse files in tar archives are not supported");
    if (!extra->has_name)
        copy_name(block, entry->name);
    if (!extra->has_link)
        (void)copy_field(entry->link, block + LINK, LINK_BYTES);
    if (!read_number(block + MODE, MODE_BYTES, UINT32_MAX, &mode))
        return bad(err, "a bad mode");
    if (!read_number(block + MTIME, MTIME_BYTES, MTIME_LIMIT, &mtime))
        mtime = 0; /* before 1970 */
    entry->mode = (unsigned)mode;
    entry->mtime = (int64_t)(extra->has_mtime ? extra->mtime : mtime);
    if (!entry->name[0])
        return bad(err, "a file without a name");
    if (entry->type == TAR_FILE && block[TYPE] == '\0' &&
        entry->name[strlen(entry->name) - 1] == '/')
        entry->type = TAR_DIRECTORY;                       /* before ustar */
    entry->size = entry->type == TAR_FILE ? tar->left : 0; /* other contents are skipped */
    return 1;
}

/* gzip, zstd or xz, by the first bytes. */
static bool is_compressed(const unsigned char block[TAR_BLOCK])
{
    return memcmp(block, "\x1f\x8b", 2) == 0 || memcmp(block, "\x28\xb5\x2f\xfd", 4) == 0 ||
           memcmp(block, "\3757zXZ", 5) == 0;
}

static int read_header(struct tar *tar, unsigned char block[TAR_BLOCK], const struct extra *extra,
                       struct brig_error *err)
{
    uint64_t size;
    int got = read_whole(tar, block, TAR_BLOCK, err);
    if (got < 0)
        return got;
    if (got == 0 || is_zero(block)) {
        tar->ended = true;
        return 0;
    }
    if (!has_checksum(block) && is_compressed(block))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "it is compressed; decompress it first, for example with gunzip");
    if (!has_checksum(block))
        return bad(err, "a header has a wrong checksum");
    if (!read_number(block + SIZE, SIZE_BYTES, SIZE_LIMIT, &size))
        return bad(err, "a bad size");
    bool about_next = strchr("xgLK", block[TYPE]) && block[TYPE];
    if (extra->has_size && !about_next)
        size = extra->size;
    tar->left = size;
    tar->padding = (unsigned)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
    return about_next ? 2 : 1;
}

int tar_next(struct tar *tar, struct tar_entry *ret_entry, struct brig_error *err)
{
    unsigned char block[TAR_BLOCK];
    struct extra extra = {0};
    ret_entry->name[0] = ret_entry->link[0] = '\0';
    for (int i = 0; i <= TAR_CHAIN_MAX; i++) {
        int result = tar->ended ? 0 : skip_rest(tar, err);
        if (result < 0 || tar->ended)
            return result;
        result = read_header(tar, block, &extra, err);
        if (result <= 0)
            return result;
        if (result == 1)
            return fill_entry(tar, block, &extra, ret_entry, err);
        result = take_extra(tar, (char)block[TYPE], ret_entry, &extra, err);
        if (result < 0)
            return result;
    }
    return bad(err, "too many headers for one file");
}
