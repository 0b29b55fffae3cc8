/* SPDX-License-Identifier: MIT */
/* The file that both sides of a call share. */
#include "call/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int memory_fail_inside(int sys_errno, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_UNSUPPORTED, sys_errno,
                     "a call cannot be made inside this call or jail, whose syscall filter refuses "
                     "what it needs. Make it outside, or give the outer one namespaces and "
                     "BRIG_SECCOMP_DEV");
}

int memory_file(const char *name, uint64_t bytes, struct brig_error *err)
{
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (made < 0 && errno == EINVAL) /* kernels before 6.3 */
        made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0 && (errno == ENOSYS || errno == EPERM))
        return memory_fail_inside(errno, err);
    autoclose int fd = made;
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a file of %llu bytes in memory",
                         (unsigned long long)bytes);
    return take_fd(&fd);
}

int memory_open(uint64_t limit, struct brig_error *err)
{
    uint64_t room = limit > BRIG_CALL_TEXT_MAX ? limit : BRIG_CALL_TEXT_MAX;
    return memory_file("brig-call", MEMORY_HEAD_BYTES + room, err);
}

/* Reads exactly `length` bytes; false on failure. */
static bool read_all(int fd, void *buffer, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = pread(fd, (char *)buffer + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

int memory_read_head(int fd, struct memory_head *ret_head)
{
    return read_all(fd, ret_head, sizeof *ret_head, 0) ? 0 : BRIG_E_SYSTEM;
}

void memory_failure_done(struct memory_failure *failure)
{
    for (size_t i = 0; i < MEMORY_TEXTS; i++)
        free(failure->texts[i]);
    *failure = (struct memory_failure){0};
}

/* Returns the length of all texts; 0 if the lengths are not plausible. */
static size_t total_length(const struct memory_head *head)
{
    uint64_t total = 0;
    for (size_t i = 0; i < MEMORY_TEXTS; i++)
        total += head->text_lengths[i];
    return total <= BRIG_CALL_TEXT_MAX ? (size_t)total : 0;
}

/* The child may have written any number; out of range means unknown. */
static enum brig_call_access known_access(int32_t access)
{
    bool known = access >= BRIG_CALL_ACCESS_UNKNOWN && access <= BRIG_CALL_ACCESS_BIND;
    return known ? (enum brig_call_access)access : BRIG_CALL_ACCESS_UNKNOWN;
}

int memory_parse_failure(const struct memory_head *head, const char *bytes, size_t length,
                         struct memory_failure *ret, struct brig_error *err)
{
    struct memory_failure failure = {
        .sys_errno = head->sys_errno > 0 && head->sys_errno < 4096 ? head->sys_errno : 0,
        .access = known_access(head->access),
        .out_of_memory = head->out_of_memory != 0,
    };
    size_t total = total_length(head), at = 0;
    for (size_t i = 0; i < MEMORY_TEXTS && total > 0 && total <= length; i++) {
        size_t size = head->text_lengths[i];
        if (size == 0)
            continue;
        failure.texts[i] = malloc(size + 1);
        if (!failure.texts[i]) {
            memory_failure_done(&failure);
            return brig_fail_nomem(err);
        }
        memcpy(failure.texts[i], bytes + at, size);
        failure.texts[i][size] = 0;
        at += size;
    }
    *ret = failure;
    return 0;
}

int memory_take_failure(int fd, const struct memory_head *head, struct memory_failure *ret,
                        struct brig_error *err)
{
    size_t total = total_length(head);
    autofree char *bytes = malloc(total + 1);
    if (!bytes)
        return brig_fail_nomem(err);
    if (!read_all(fd, bytes, total, MEMORY_HEAD_BYTES))
        total = 0;
    return memory_parse_failure(head, bytes, total, ret, err);
}

static int copy_value(int fd, size_t length, void **ret_value, struct brig_error *err)
{
    autofree char *value = malloc(length + 1); /* one for a NUL */
    if (!value)
        return brig_fail_nomem(err);
    if (!read_all(fd, value, length, MEMORY_HEAD_BYTES))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the value");
    value[length] = 0;
    *ret_value = take_ptr(&value);
    return 0;
}

int memory_take_value(int fd, size_t length, void **ret_value, size_t *ret_mapped,
                      struct brig_error *err)
{
    *ret_mapped = 0;
    /* Seal the file against writing. This fails while a process has it mapped writable: a killed
     * process that is not gone yet, or one that received the fd from the function. Copy the value
     * then. */
    if (length <= MEMORY_SMALL_BYTES || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return copy_value(fd, length, ret_value, err);
    void *value = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, MEMORY_HEAD_BYTES);
    if (value == MAP_FAILED)
        return brig_fail(err, BRIG_E_NOMEM, errno, "cannot map a value of %zu bytes", length);
    *ret_value = value;
    *ret_mapped = length;
    return 0;
}
