/* SPDX-License-Identifier: MIT */
/* Zip archives in memory; the layout is that of PKWARE's APPNOTE.TXT, 4.3. */
#include "server/zip.h"

#include <string.h>
#include <zlib.h>

#define END_SIGNATURE 0x06054b50
#define END_BYTES 22
#define COMMENT_MAX 65535
#define ENTRY_SIGNATURE 0x02014b50
#define ENTRY_BYTES 46
#define FILE_SIGNATURE 0x04034b50
#define FILE_BYTES 30
#define FLAG_ENCRYPTED 1
#define METHOD_STORED 0
#define METHOD_DEFLATED 8
#define SIZE_ZIP64 0xffffffff

static uint32_t get16(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const unsigned char *at)
{
    return get16(at) | get16(at + 2) << 16;
}

/* The end of the directory is the last of its kind, before a comment. */
static const unsigned char *find_end(const unsigned char *bytes, size_t length)
{
    size_t most = length > END_BYTES + COMMENT_MAX ? END_BYTES + COMMENT_MAX : length;
    for (size_t back = END_BYTES; back <= most; back++) {
        const unsigned char *at = bytes + length - back;
        if (get32(at) == END_SIGNATURE && get16(at + 20) <= back - END_BYTES)
            return at;
    }
    return NULL;
}

bool zip_open(const void *bytes, size_t length, struct zip_reader *ret_zip)
{
    const unsigned char *end = length >= END_BYTES ? find_end(bytes, length) : NULL;
    if (!end)
        return false;
    size_t size = get32(end + 12), offset = get32(end + 16);
    size_t before = (size_t)(end - (const unsigned char *)bytes);
    if (get16(end + 4) != 0 || offset > before || size > before - offset)
        return false;
    *ret_zip = (struct zip_reader){
        .bytes = bytes, .length = length, .at = offset, .left = get16(end + 10)};
    return true;
}

/* Sets entry->data from the header in front of the file. */
static bool find_data(const struct zip_reader *zip, size_t offset, struct zip_entry *entry)
{
    if (offset > zip->length || zip->length - offset < FILE_BYTES)
        return false;
    const unsigned char *file = zip->bytes + offset;
    size_t head = FILE_BYTES + (size_t)get16(file + 26) + get16(file + 28);
    size_t rest = zip->length - offset;
    if (get32(file) != FILE_SIGNATURE || head > rest || entry->packed > rest - head)
        return false;
    entry->data = file + head;
    return true;
}

int zip_next(struct zip_reader *zip, struct zip_entry *ret_entry)
{
    if (zip->left == 0)
        return 0;
    if (zip->at > zip->length || zip->length - zip->at < ENTRY_BYTES)
        return -1;
    const unsigned char *at = zip->bytes + zip->at;
    size_t rest = zip->length - zip->at;
    uint32_t flags = get16(at + 8), method = get16(at + 10);
    struct zip_entry entry = {
        .name = (const char *)at + ENTRY_BYTES,
        .name_length = get16(at + 28),
        .deflated = method == METHOD_DEFLATED,
        .checksum = get32(at + 16),
        .packed = get32(at + 20),
        .size = get32(at + 24),
    };
    size_t whole = ENTRY_BYTES + entry.name_length + get16(at + 30) + get16(at + 32);
    if (get32(at) != ENTRY_SIGNATURE || whole > rest || flags & FLAG_ENCRYPTED ||
        (method != METHOD_STORED && method != METHOD_DEFLATED) || entry.size == SIZE_ZIP64 ||
        entry.packed == SIZE_ZIP64 || (!entry.deflated && entry.packed != entry.size) ||
        !find_data(zip, get32(at + 42), &entry))
        return -1;
    zip->at += whole;
    zip->left--;
    *ret_entry = entry;
    return 1;
}

static bool inflate_whole(const struct zip_entry *entry, unsigned char *out)
{
    unsigned char nothing = 0;
    z_stream stream = {
        .next_in = (unsigned char *)(uintptr_t)entry->data, /* is not written */
        .avail_in = (unsigned)entry->packed,
        .next_out = entry->size ? out : &nothing,
        .avail_out = (unsigned)entry->size,
    };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) /* without a header of zlib */
        return false;
    int result = inflate(&stream, Z_FINISH);
    bool whole = result == Z_STREAM_END && stream.total_out == entry->size;
    (void)inflateEnd(&stream);
    return whole;
}

bool zip_extract(const struct zip_entry *entry, void *out)
{
    if (entry->deflated && !inflate_whole(entry, out))
        return false;
    if (!entry->deflated && entry->size > 0)
        memcpy(out, entry->data, entry->size);
    return crc32(0, entry->size ? out : (const unsigned char *)"", (unsigned)entry->size) ==
           entry->checksum;
}
