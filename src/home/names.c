/* SPDX-License-Identifier: MIT */
/* The names in a directory, one bit for many: two of them may share it. */
#include "home/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* FNV-1a, up to the end of the first name. */
static unsigned place_of(const char *path)
{
    uint64_t hash = 14695981039346656037U;
    for (; *path && *path != '/'; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211U;
    return (unsigned)(hash ^ hash >> 32) % (NAMES_WORDS * 64);
}

static bool has_bit(const struct names *names, unsigned place)
{
    return names->bits[place / 64] & UINT64_C(1) << place % 64;
}

bool names_flip_case(const char *name, char *ret_name)
{
    size_t length = strlen(name), letter = 0;
    while (letter < length && !((name[letter] | 0x20) >= 'a' && (name[letter] | 0x20) <= 'z'))
        letter++;
    if (letter == length || length > NAME_MAX)
        return false;
    memcpy(ret_name, name, length + 1);
    ret_name[letter] ^= 0x20;
    return true;
}

bool names_fold(const struct names *names, int dir_fd, const char *other)
{
    struct stat info;
    return *other && !has_bit(names, place_of(other)) &&
           fstatat(dir_fd, other, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

void names_read(struct names *ret_names, int dir_fd)
{
    *ret_names = (struct names){0};
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    char other[NAME_MAX + 1] = "";
    size_t count = 0;
    if (!dir)
        return;
    for (errno = 0; (item = readdir(dir)); errno = 0) {
        unsigned place = place_of(item->d_name);
        count += strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
        ret_names->bits[place / 64] |= UINT64_C(1) << place % 64;
        if (!*other)
            (void)names_flip_case(item->d_name, other);
    }
    ret_names->known = errno == 0 && !names_fold(ret_names, dir_fd, other);
    ret_names->empty = ret_names->known && count == 0;
}

bool names_may_have(const struct names *names, const char *path)
{
    return !names->known || has_bit(names, place_of(path));
}
