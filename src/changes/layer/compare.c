/* SPDX-License-Identifier: MIT */
#include "changes/layer/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/operation/copy.h"

#define PART_BYTES 65536
#define BLOCK 512        /* unit of st_blocks */
#define XATTRS_MAX 65536 /* the limit of the kernel, for the list of names and for a value */

static bool same_link(int left_dir, int right_dir, const char *name)
{
    char left[PATH_LENGTH_MAX + 1], right[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(left_dir, name, left, sizeof left);
    return length >= 0 && readlinkat(right_dir, name, right, sizeof right) == length &&
           memcmp(left, right, (size_t)length) == 0;
}

/* Reads until the buffer is full or the file ends; -1 on failure. */
static ssize_t read_part(int fd, char *part, off_t at)
{
    size_t have = 0;
    while (have < PART_BYTES) {
        ssize_t got = pread(fd, part + have, PART_BYTES - have, at + (off_t)have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static bool has_holes(const struct stat *info)
{
    return (off_t)info->st_blocks * BLOCK < info->st_size;
}

/* Where a file has data next: at its end if there is a hole up to it. */
static off_t next_data(int fd, off_t at, off_t size)
{
    off_t data = lseek(fd, at, SEEK_DATA);
    return data >= 0 ? data : errno == ENXIO ? size : at;
}

static bool same_file(int left, int right, off_t size, bool sparse)
{
    autofree char *parts = malloc(2 * (size_t)PART_BYTES);
    for (off_t at = 0; parts; at += PART_BYTES) {
        if (sparse) { /* holes in both files are equal */
            off_t one = next_data(left, at, size), other = next_data(right, at, size);
            at = one < other ? one : other;
        }
        ssize_t length = read_part(left, parts, at);
        if (length < 0 || read_part(right, parts + PART_BYTES, at) != length ||
            memcmp(parts, parts + PART_BYTES, (size_t)length) != 0)
            return false;
        if (length < PART_BYTES)
            return true;
    }
    return false;
}

bool compare_contents(int left_dir, const struct stat *left, int right_dir,
                      const struct stat *right, const char *name)
{
    if (S_ISLNK(left->st_mode))
        return same_link(left_dir, right_dir, name);
    if (left->st_size != right->st_size)
        return false;
    autoclose int one = copy_open(left_dir, name, false);
    autoclose int other = one < 0 ? -1 : copy_open(right_dir, name, true);
    return other >= 0 && same_file(one, other, left->st_size, has_holes(left) && has_holes(right));
}

/* ---- extended attributes ---- */

/* Which attributes the left file has that the right one has not, or with another value. */
static int find_more(const char *left, const char *right, char *names, char *values)
{
    int found = 0;
    ssize_t length = llistxattr(left, names, XATTRS_MAX);
    if (length < 0 && errno != EOPNOTSUPP)
        return COMPARE_XATTRS;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        if (!copy_counts_xattr(name))
            continue;
        ssize_t one = lgetxattr(left, name, values, XATTRS_MAX);
        ssize_t other = lgetxattr(right, name, values + XATTRS_MAX, XATTRS_MAX);
        if (one != other || (one > 0 && memcmp(values, values + XATTRS_MAX, (size_t)one) != 0))
            found |= str_starts_with(name, "system.posix_acl_") ? COMPARE_ACL : COMPARE_XATTRS;
    }
    return found;
}

int compare_xattrs(int left_dir, int right_dir, const char *name)
{
    char left[PATH_LENGTH_MAX + 1], right[PATH_LENGTH_MAX + 1];
    (void)snprintf(left, sizeof left, "/proc/self/fd/%d/%s", left_dir, name);
    (void)snprintf(right, sizeof right, "/proc/self/fd/%d/%s", right_dir, name);
    char none;
    if (llistxattr(left, &none, 0) == 0 && llistxattr(right, &none, 0) == 0)
        return 0;
    autofree char *buffer = malloc(3 * (size_t)XATTRS_MAX);
    return buffer ? find_more(left, right, buffer, buffer + XATTRS_MAX) |
                        find_more(right, left, buffer, buffer + XATTRS_MAX)
                  : COMPARE_XATTRS;
}
