/* SPDX-License-Identifier: MIT */
/* Messages between the executor and the program of ours in a sandbox (guest.c), over a SEQPACKET
 * socket: one request, the bytes to write in pieces, any number of replies, and the last one
 * (GUEST_DONE). Fixed structs, as one end has no libc. The executor believes no reply: whatever
 * runs in the sandbox may have written it. */
#pragma once

#include <stdint.h>

#define GUEST_VERSION 0x31747367U /* "gst1" */
#define GUEST_PATH_MAX 4096       /* with its NUL */
#define GUEST_PIECE_MAX 32768     /* bytes of a file in one message */
#define GUEST_ENTRIES_MAX 10000   /* of a list */
#define GUEST_DEPTH_MAX 64        /* of a list */
#define GUEST_WATCHES_MAX 256     /* directories of a recursive watch */

enum guest_operation {
    GUEST_READ = 1, /* replies: GUEST_DATA … */
    GUEST_WRITE,    /* `length` bytes follow in messages of their own */
    GUEST_REMOVE,   /* with everything below it */
    GUEST_LIST,     /* replies: GUEST_ENTRY … */
    GUEST_STAT,     /* one GUEST_ENTRY */
    GUEST_MOVE,     /* path to target, over what is there */
    GUEST_MAKE,     /* a directory, and those above it */
    GUEST_WATCH,    /* replies: GUEST_EVENT …, without an end */
    GUEST_OPERATIONS_
};

#define GUEST_APPEND 1U    /* GUEST_WRITE: at the end of the file */
#define GUEST_RECURSIVE 2U /* GUEST_WATCH: also directories below */

struct guest_request {
    uint32_t version, operation, flags, mode;
    uint64_t offset, length; /* of a file */
    uint64_t depth;          /* of a list: 1 is the directory alone */
    char path[GUEST_PATH_MAX], target[GUEST_PATH_MAX];
};

enum guest_reply_type { GUEST_DATA = 1, GUEST_ENTRY, GUEST_EVENT, GUEST_DONE };

enum guest_kind { GUEST_FILE, GUEST_DIRECTORY, GUEST_LINK, GUEST_OTHER };

/* Exit code of "connect": nothing listens at the port. */
#define GUEST_REFUSED 111

enum guest_change {
    GUEST_CREATED = 1,
    GUEST_WRITTEN,
    GUEST_REMOVED,
    GUEST_RENAMED, /* the old or the new name */
    GUEST_CHANGED, /* mode, owner or times */
    GUEST_LOST,    /* events were lost, or the directory itself is gone */
};

/* Before the bytes of a reply: data, the path of an entry and the target of a link, or a name. */
struct guest_reply {
    uint32_t version, type;
    int32_t error;       /* GUEST_DONE: an errno, or 0 */
    uint32_t incomplete; /* GUEST_DONE: a list that was cut off; GUEST_MAKE: 1 if it existed */
    uint64_t bytes;      /* GUEST_DONE: the size of a file */
    uint32_t kind, mode, uid, gid; /* GUEST_ENTRY; GUEST_EVENT: kind is an enum guest_change */
    uint64_t size;
    int64_t modified_ns;
    uint32_t path_length, target_length;
};
