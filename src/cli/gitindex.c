/* SPDX-License-Identifier: MIT */
/* The index of a git repository, as gitformat-index(5) has it. */
#include "cli/gitindex.h"

#include <string.h>

#define HEADER_SIZE 12
#define ENTRY_SIZE 62 /* before the name */
#define MODE_AT 24
#define FLAGS_AT 60
#define FLAG_EXTENDED 0x4000u
#define NAME_LENGTH_MAX 0xfffu /* in the flags: this long, or longer */
#define MODE_TYPE 0170000u
#define MODE_LINK 0160000u
#define EXTENSION_SIZE 8
#define HASH_SIZE 20

static unsigned read_u32(const unsigned char *at)
{
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

int gitindex_begin(struct gitindex *index, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    if (length < HEADER_SIZE + HASH_SIZE || memcmp(at, "DIRC", 4) != 0)
        return 0;
    unsigned version = read_u32(at + 4);
    if (version != 2 && version != 3)
        return 0;
    *index = (struct gitindex){
        .at = at + HEADER_SIZE, .end = at + length - HASH_SIZE, .left = read_u32(at + 8)};
    return 1;
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

int gitindex_next(struct gitindex *index, const char **ret_name)
{
    for (; index->left > 0; index->left--) {
        const unsigned char *entry = index->at;
        size_t room = (size_t)(index->end - entry);
        if (room <= ENTRY_SIZE)
            return -1;
        unsigned flags = (unsigned)entry[FLAGS_AT] << 8 | entry[FLAGS_AT + 1];
        size_t name_at = ENTRY_SIZE + (flags & FLAG_EXTENDED ? 2 : 0);
        if (room <= name_at)
            return -1;
        const unsigned char *nul = memchr(entry + name_at, '\0', room - name_at);
        size_t length = nul ? (size_t)(nul - entry) - name_at : 0;
        unsigned said = flags & NAME_LENGTH_MAX;
        if (length == 0 || (said < NAME_LENGTH_MAX ? length != said : length < said))
            return -1;
        size_t size = (name_at + length + 8) & ~(size_t)7; /* with one to eight NULs */
        if (size > room)
            return -1;
        index->at += size;
        if ((read_u32(entry + MODE_AT) & MODE_TYPE) != MODE_LINK)
            continue;
        index->left--;
        *ret_name = (const char *)entry + name_at;
        return 1;
    }
    return read_extensions(index);
}
