/* SPDX-License-Identifier: MIT */
/* Credentials, in memory that is locked, left out of core dumps, and wiped. */
#include "net/broker_secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "net/broker_wire.h"

static int map(struct secrets *secrets, size_t size, struct brig_error *err)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return brig_fail_nomem(err);
    secrets->memory = memory;
    secrets->size = size;
    (void)madvise(memory, size, MADV_DONTDUMP);
    if (mlock(memory, size) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot lock %zu bytes of memory for credentials; raise RLIMIT_MEMLOCK",
                         size);
    return 0;
}

static int fill(struct secrets *secrets, int fd, struct brig_error *err)
{
    for (size_t at = 0; at < secrets->size;) {
        ssize_t got = pread(fd, secrets->memory + at, secrets->size - at, (off_t)at);
        if (got <= 0)
            return brig_fail(err, BRIG_E_SYSTEM, got < 0 ? errno : EIO, "cannot read credentials");
        at += (size_t)got;
    }
    return 0;
}

static bool is_header_value(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static int split(struct secrets *secrets, struct brig_error *err)
{
    const char *end = secrets->memory + secrets->size;
    for (const char *at = secrets->memory; at < end; at += strlen(at) + 1) {
        if (!memchr(at, 0, (size_t)(end - at)) || secrets->count == SECRETS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "the credentials are not as they should be");
        if (!is_header_value(at))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "credential %zu is empty or has control characters in it",
                             secrets->count);
        secrets->texts[secrets->count++] = at;
    }
    return 0;
}

int secrets_read(struct secrets *secrets, int fd, struct brig_error *err)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read credentials");
    if (found.st_size == 0)
        return 0;
    if (found.st_size > DOOR_SECRETS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %u bytes of credentials",
                         DOOR_SECRETS_MAX);
    int status = map(secrets, (size_t)found.st_size, err);
    if (status == 0)
        status = fill(secrets, fd, err);
    return status < 0 ? status : split(secrets, err);
}

void secrets_done(struct secrets *secrets)
{
    if (!secrets->memory)
        return;
    explicit_bzero(secrets->memory, secrets->size);
    (void)munmap(secrets->memory, secrets->size);
    *secrets = (struct secrets){0};
}

int secrets_make_lines(struct secrets *lines, const struct secrets *secrets,
                       const struct secrets_line *rows, size_t count, struct brig_error *err)
{
    size_t size = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        size += strlen(rows[i].name) + strlen(": ") + strlen(secrets->texts[rows[i].secret]) + 1;
    int status = count > 0 ? map(lines, size, err) : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        lines->texts[lines->count++] = lines->memory + at;
        at += (size_t)snprintf(lines->memory + at, size - at, "%s: %s", rows[i].name,
                               secrets->texts[rows[i].secret]) +
              1;
    }
    return status;
}
