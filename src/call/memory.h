/* SPDX-License-Identifier: MIT */
/* Theory of operation: what the two sides of a call share.
 *
 * The value travels in a file without a name that both have open: its first page is a head, the
 * value or the texts of a failure follow. Its size is set and sealed before the fork, so that
 * nothing the child does can make the caller's reads fail; it is as large as a value may be, and
 * takes the memory that was written. All of it is the function's to write, at any time, and is
 * believed nothing but what it says about the function itself. The caller only looks once the
 * child is dead.
 *
 * That the child was confined is told elsewhere: see gate.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <brig/call.h>

#include "jail/sys.h"

/* Where value and texts begin: behind the head. */
#define MEMORY_HEAD_BYTES 4096
/* What the child maps from the start; larger values are mapped when there is one. */
#define MEMORY_SMALL_BYTES 65536
/* Where nothing limits a value. */
#define MEMORY_VALUE_MAX (UINT64_C(1) << 40)

enum memory_state {
    MEMORY_NOTHING,
    MEMORY_RETURNED,
    MEMORY_FAILED,
    MEMORY_TOO_LARGE, /* the value, for its limit */
    MEMORY_NO_ROOM,   /* it could not be mapped */
};

enum memory_text {
    MEMORY_CLASS,
    MEMORY_MESSAGE,
    MEMORY_BACKTRACE,
    MEMORY_PATH,
    MEMORY_ADDRESS,
    MEMORY_SYSCALL,
    MEMORY_TEXTS
};

struct memory_head {
    uint32_t state; /* enum memory_state */
    uint32_t left;  /* it came to brig_call_leave() */
    uint64_t length;
    int32_t sys_errno;
    int32_t access;
    int32_t out_of_memory;
    uint32_t text_lengths[MEMORY_TEXTS]; /* one behind the other, no NULs between */
};

/* A failure as it was told, in strings of its own. */
struct memory_failure {
    char *texts[MEMORY_TEXTS]; /* NULL: not told */
    int sys_errno;
    enum brig_call_access access;
    bool out_of_memory;
};
void memory_failure_done(struct memory_failure *failure);

/* A file without a name of a size that nobody can change. Returns an fd of the caller's. */
int memory_file(const char *name, uint64_t bytes, struct brig_error *err);
/* The same for values of up to `limit` bytes. */
int memory_open(uint64_t limit, struct brig_error *err);

/* Maps the beginning of such a file, by a system call made right here. 0 or -errno. */
static inline int memory_map(int fd, size_t bytes, void **ret_memory)
{
    long result = SYS(mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (result < 0 && result > -4096)
        return (int)result;
    *ret_memory = (void *)result;
    return 0;
}

/* Reads the head. Nothing in it is checked. */
int memory_read_head(int fd, struct memory_head *ret_head);
/* Takes the texts out. Lengths that do not add up are no failure: then there are no texts. */
int memory_take_failure(int fd, const struct memory_head *head, struct memory_failure *ret,
                        struct brig_error *err);
/* The same from bytes: `length` of them behind the head. */
int memory_parse_failure(const struct memory_head *head, const char *bytes, size_t length,
                         struct memory_failure *ret, struct brig_error *err);
/* Takes the value out: *ret_mapped is the size of its mapping, or 0 if it is on the heap. `length` is
 * at most the limit the file was made for. */
int memory_take_value(int fd, size_t length, void **ret_value, size_t *ret_mapped,
                      struct brig_error *err);
