/* SPDX-License-Identifier: MIT */
/* The files of a sandbox as a stream. Directories, regular files and symbolic links; anything else is
 * left out. Both ends run in a sandbox with its rights, so neither trusts the other with more. */
#include "server/guest/guest_copy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/fcntl.h>
#include <linux/stat.h>
#include <linux/time_types.h>

#include "jail/sys.h"

#define PATH_MAX_BYTES 4096
#define QUEUE_BYTES (1 << 20)
#define PIECE_BYTES 32768
#define DIRENT_NAME 19 /* offset of the name in a directory entry */
#define ERR_EINTR 4
#define ERR_EEXIST 17
#define VERSION 0x31796263U /* "cby1" */

enum kind { COPY_FILE = 1, COPY_DIRECTORY, COPY_LINK, COPY_END };

/* Before the path, and then the content of a file or the target of a link: `size` bytes. */
struct entry {
    uint32_t version, kind, mode, path_length;
    uint64_t size;
    int64_t modified_s, modified_ns;
};

static char queue[QUEUE_BYTES]; /* directories that are still to be sent, each with its NUL */
static size_t queue_first, queue_end;
static char name_of[PATH_MAX_BYTES], above[PATH_MAX_BYTES];
static char names[PIECE_BYTES], bytes[PIECE_BYTES];

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

static void copy(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((volatile char *)to)[i] = from[i];
}

/* ---- sending ---- */

static bool write_to(long fd, const void *from, size_t length)
{
    const char *at = from;
    while (length > 0) {
        long done = SYS(write, fd, at, length);
        if (done == -ERR_EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        length -= (size_t)done;
    }
    return true;
}

static bool put(const void *from, size_t length)
{
    return write_to(1, from, length);
}

/* Exactly `size` bytes: what the file had when it was opened, or zeros if it became shorter. */
static bool send_content(long fd, uint64_t size)
{
    while (size > 0) {
        size_t most = size < sizeof bytes ? (size_t)size : sizeof bytes;
        long got = SYS(read, fd, bytes, most);
        if (got == -ERR_EINTR)
            continue;
        for (size_t i = got > 0 ? (size_t)got : 0; got <= 0 && i < most; i++)
            ((volatile char *)bytes)[i] = 0;
        if (!put(bytes, got > 0 ? (size_t)got : most))
            return false;
        size -= got > 0 ? (uint64_t)got : most;
    }
    return true;
}

static bool send_file(struct entry *entry)
{
    struct statx info;
    long fd = SYS(openat, AT_FDCWD, name_of, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0)
        return true; /* it is gone, or may not be read */
    bool good = true;
    if (SYS(statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) == 0 &&
        (info.stx_mode & 0170000) == 0100000) {
        entry->size = info.stx_size;
        good = put(entry, sizeof *entry) && put(name_of, entry->path_length) &&
               send_content(fd, entry->size);
    }
    (void)SYS(close, fd);
    return good;
}

static bool push(void)
{
    size_t length = length_of(name_of) + 1;
    if (length > sizeof queue - queue_end && queue_first > 0) {
        copy(queue, queue + queue_first, queue_end - queue_first);
        queue_end -= queue_first;
        queue_first = 0;
    }
    if (length > sizeof queue - queue_end)
        return false;
    copy(queue + queue_end, name_of, length);
    queue_end += length;
    return true;
}

/* Sends what is at name_of. */
static bool send_one(void)
{
    struct statx info;
    if (SYS(statx, AT_FDCWD, name_of, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info) < 0)
        return true;
    struct entry entry = {.version = VERSION,
                          .mode = info.stx_mode & 07777,
                          .path_length = (uint32_t)length_of(name_of),
                          .modified_s = info.stx_mtime.tv_sec,
                          .modified_ns = info.stx_mtime.tv_nsec};
    unsigned type = info.stx_mode & 0170000;
    if (type == 0100000) {
        entry.kind = COPY_FILE;
        return send_file(&entry);
    }
    if (type == 0040000) {
        entry.kind = COPY_DIRECTORY;
        return put(&entry, sizeof entry) && put(name_of, entry.path_length) && push();
    }
    long target =
        type == 0120000 ? SYS(readlinkat, AT_FDCWD, name_of, bytes, PATH_MAX_BYTES - 1) : -1;
    if (target <= 0)
        return true;
    entry.kind = COPY_LINK;
    entry.size = (uint64_t)target;
    return put(&entry, sizeof entry) && put(name_of, entry.path_length) &&
           put(bytes, (size_t)target);
}

/* Sends what is in the directory `above`. */
static bool send_directory(void)
{
    long fd = SYS(openat, AT_FDCWD, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    long got = 0;
    bool good = true;
    size_t used = length_of(above);
    while (good && fd >= 0 && (got = SYS(getdents64, fd, names, sizeof names)) > 0)
        for (long at = 0; good && at < got;) {
            const char *name = names + at + DIRENT_NAME;
            size_t length = length_of(name);
            at += *(const unsigned short *)(const void *)(names + at + 16);
            bool dots = name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
            if (dots)
                continue;
            good = used + length + 2 <= sizeof name_of;
            if (!good)
                break;
            copy(name_of, above, used);
            name_of[used] = '/';
            copy(name_of + used + 1, name, length + 1);
            good = send_one();
        }
    if (fd >= 0)
        (void)SYS(close, fd);
    return good;
}

int guest_send(const char *const *directories)
{
    const struct entry end = {.version = VERSION, .kind = COPY_END};
    for (; *directories; directories++) {
        if (length_of(*directories) >= sizeof name_of)
            return 1;
        copy(name_of, *directories, length_of(*directories) + 1);
        if (!push())
            return 1;
    }
    while (queue_first < queue_end) {
        size_t length = length_of(queue + queue_first) + 1;
        copy(above, queue + queue_first, length);
        queue_first += length;
        if (!send_directory())
            return 1;
    }
    return put(&end, sizeof end) ? 0 : 1;
}

/* ---- receiving ---- */

static bool get(void *to, size_t length)
{
    char *at = to;
    while (length > 0) {
        long done = SYS(read, 0, at, length);
        if (done == -ERR_EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        length -= (size_t)done;
    }
    return true;
}

static bool receive_file(const struct entry *entry)
{
    long fd =
        SYS(openat, AT_FDCWD, name_of, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0;
    for (uint64_t left = entry->size; good && left > 0;) {
        size_t most = left < sizeof bytes ? (size_t)left : sizeof bytes;
        good = get(bytes, most) && write_to(fd, bytes, most);
        left -= most;
    }
    const struct __kernel_timespec times[2] = {{entry->modified_s, entry->modified_ns},
                                               {entry->modified_s, entry->modified_ns}};
    if (good) {
        (void)SYS(fchmod, fd, entry->mode);
        (void)SYS(utimensat, fd, 0, times, 0);
    }
    if (fd >= 0)
        (void)SYS(close, fd);
    return good;
}

int guest_receive(void)
{
    struct entry entry;
    while (get(&entry, sizeof entry) && entry.version == VERSION && entry.kind != COPY_END) {
        bool good = entry.path_length > 0 && entry.path_length < sizeof name_of &&
                    get(name_of, entry.path_length);
        if (!good)
            return 1;
        name_of[entry.path_length] = 0;
        if (entry.kind == COPY_FILE) {
            good = receive_file(&entry);
        } else if (entry.kind == COPY_DIRECTORY) {
            long made = SYS(mkdirat, AT_FDCWD, name_of, entry.mode | 0700);
            good = made == 0 || made == -ERR_EEXIST;
        } else if (entry.kind == COPY_LINK && entry.size < PATH_MAX_BYTES) {
            good = get(bytes, (size_t)entry.size);
            bytes[entry.size] = 0;
            good = good && SYS(symlinkat, bytes, AT_FDCWD, name_of) == 0;
        } else {
            good = false;
        }
        if (!good)
            return 1;
    }
    return entry.version == VERSION && entry.kind == COPY_END ? 0 : 1;
}
