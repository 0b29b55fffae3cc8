/* SPDX-License-Identifier: MIT */
/* The index of a git repository, as gitformat-index(5) has it. */
#include "cli/gitindex.h"

#include <stdbool.h>
#include <string.h>

#define HEADER_SIZE 12
#define MODE_AT 24
#define HASH_AT 40
#define FLAG_EXTENDED 0x4000u
#define NAME_LENGTH_MAX 0xfffu /* in the flags: this long, or longer */
#define MODE_TYPE 0170000u
#define MODE_LINK 0160000u
#define EXTENSION_SIZE 8

static unsigned read_u32(const unsigned char *at)
{
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

int gitindex_begin(struct gitindex *index, const void *bytes, size_t length, size_t hash_size)
{
    const unsigned char *at = bytes;
    if (length < HEADER_SIZE + hash_size || memcmp(at, "DIRC", 4) != 0)
        return 0;
    index->version = read_u32(at + 4);
    index->left = read_u32(at + 8);
    index->at = at + HEADER_SIZE;
    index->end = at + length - hash_size;
    index->hash_size = hash_size;
    index->name_length = 0;
    return index->version >= 2 && index->version <= 4;
}

/* After the entries: whether all extensions are whole, and none says that there are more entries. */
static int read_extensions(struct gitindex *index)
{
    while (index->at < index->end) {
        size_t room = (size_t)(index->end - index->at);
        if (room < EXTENSION_SIZE || memcmp(index->at, "link", 4) == 0)
            return -1;
        size_t size = read_u32(index->at + 4);
        if (size > room - EXTENSION_SIZE)
            return -1;
        index->at += EXTENSION_SIZE + size;
    }
    return 0;
}

/* A number of git's own kind: seven bits a byte, each but the last with the eighth set, and one more
 * for each byte that follows. False if it is cut off, or more than a name can have. */
static bool read_number(const unsigned char **at, const unsigned char *end, size_t *ret_number)
{
    size_t number = 0;
    for (bool more = true; more; (*at)++) {
        if (*at == end || number > GITINDEX_NAME_MAX)
            return false;
        more = **at & 0x80;
        number = (number << 7) + (**at & 0x7f) + more;
    }
    *ret_number = number;
    return true;
}

/* The name of an entry in version 4: so many bytes less of the last, and then some. */
static bool read_short_name(struct gitindex *index, const unsigned char *at)
{
    size_t dropped = 0;
    if (!read_number(&at, index->end, &dropped) || dropped > index->name_length)
        return false;
    const unsigned char *nul = memchr(at, '\0', (size_t)(index->end - at));
    size_t kept = index->name_length - dropped, added = nul ? (size_t)(nul - at) : 0;
    if (!nul || kept + added > GITINDEX_NAME_MAX)
        return false;
    memcpy(index->name + kept, at, added + 1);
    index->name_length = kept + added;
    index->at = nul + 1;
    return true;
}

/* The name of an entry before version 4: all of it, with one to eight NULs. */
static bool read_whole_name(struct gitindex *index, const unsigned char *entry,
                            const unsigned char *at)
{
    const unsigned char *nul = memchr(at, '\0', (size_t)(index->end - at));
    size_t length = nul ? (size_t)(nul - at) : 0;
    size_t size = ((size_t)(at - entry) + length + 8) & ~(size_t)7;
    if (!nul || length > GITINDEX_NAME_MAX || size > (size_t)(index->end - entry))
        return false;
    index->name_length = length;
    index->at = entry + size;
    return true;
}

int gitindex_next(struct gitindex *index, const char **ret_name)
{
    for (; index->left > 0; index->left--) {
        const unsigned char *entry = index->at, *at = entry + HASH_AT + index->hash_size;
        if ((size_t)(index->end - entry) <= HASH_AT + index->hash_size + 4)
            return -1;
        unsigned flags = (unsigned)at[0] << 8 | at[1];
        at += flags & FLAG_EXTENDED ? 4 : 2;
        bool whole = index->version < 4;
        if (!(whole ? read_whole_name(index, entry, at) : read_short_name(index, at)))
            return -1;
        size_t length = index->name_length;
        unsigned said = flags & NAME_LENGTH_MAX;
        if (length == 0 || (said < NAME_LENGTH_MAX ? length != said : length < said))
            return -1;
        if ((read_u32(entry + MODE_AT) & MODE_TYPE) != MODE_LINK)
            continue;
        if (whole)
            memcpy(index->name, at, length + 1);
        index->left--;
        *ret_name = index->name;
        return 1;
    }
    return read_extensions(index);
}
