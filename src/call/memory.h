/* SPDX-License-Identifier: MIT */
/* Theory of operation: the file that both sides of a call share.
 *
 * The value travels in a memfd that both processes have open. The first page is a head; the value
 * or the texts of a failure follow. The size is set and sealed before the fork, so that the child
 * cannot make the caller's reads fail. The file is as large as the largest permitted value, and
 * uses memory only for pages that were written. The function can write to all of it at any time, so
 * the caller believes only what it says about the function itself, and reads it only after the
 * child is dead.
 *
 * Whether the child was confined is recorded elsewhere: see child_status.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <brig/call.h>

#include "jail/sys.h"

/* Offset of the value or the texts. */
#define MEMORY_HEAD_BYTES 4096
/* Mapped by the child from the start; a larger value gets a mapping when it is returned. */
#define MEMORY_SMALL_BYTES 65536
/* Limit on a value where the caller sets none. */
#define MEMORY_VALUE_MAX (UINT64_C(1) << 40)

enum memory_state {
    MEMORY_NOTHING,
    MEMORY_RETURNED,
    MEMORY_FAILED,
    MEMORY_TOO_LARGE, /* the value exceeds its limit */
    MEMORY_NO_ROOM,   /* the value could not be mapped */
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
    uint32_t left;  /* 1 once the child has called brig_call_leave() */
    uint64_t length;
    int32_t sys_errno;
    int32_t access;
    int32_t out_of_memory;
    uint32_t text_lengths[MEMORY_TEXTS]; /* the texts are adjacent, without NULs */
};

/* A failure as the function reported it, in allocated strings. */
struct memory_failure {
    char *texts[MEMORY_TEXTS]; /* NULL: not reported */
    int sys_errno;
    enum brig_call_access access;
    bool out_of_memory;
};
void memory_failure_done(struct memory_failure *failure);

/* Fails because the jail around this process does not allow a call. */
int memory_fail_inside(int sys_errno, struct brig_error *err);
/* Makes a memfd whose size is sealed. Returns an fd that the caller owns. */
int memory_file(const char *name, uint64_t bytes, struct brig_error *err);
/* Makes the shared file for values of up to `limit` bytes. */
int memory_open(uint64_t limit, struct brig_error *err);

/* Maps the beginning of the file by a direct system call. Returns 0 or -errno. */
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
/* Copies the texts out. Lengths that do not add up are not an error: the texts are then left
 * NULL. */
int memory_take_failure(int fd, const struct memory_head *head, struct memory_failure *ret,
                        struct brig_error *err);
/* Parses the texts from `length` bytes that follow the head. Pure. */
int memory_parse_failure(const struct memory_head *head, const char *bytes, size_t length,
                         struct memory_failure *ret, struct brig_error *err);
/* Takes the value out. *ret_mapped is the size of its mapping, or 0 if it is on the heap. `length`
 * must not exceed the limit that the file was made for. */
int memory_take_value(int fd, size_t length, void **ret_value, size_t *ret_mapped,
                      struct brig_error *err);
