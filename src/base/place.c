/* SPDX-License-Identifier: MIT */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"

int place_of(int fd, struct place *ret_place, struct brig_error *err)
{
    struct statx info;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_SYNC_AS_STAT, STATX_BASIC_STATS | STATX_BTIME,
              &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at a directory");
    bool born = info.stx_mask & STATX_BTIME;
    *ret_place = (struct place){
        .inode = info.stx_ino,
        .device = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor,
        .birth_ns = born ? info.stx_btime.tv_sec * CLOCK_SECOND_NS + info.stx_btime.tv_nsec : 0};
    return 0;
}

bool place_equal(const struct place *a, const struct place *b)
{
    if (a->inode == 0 || b->inode == 0)
        return true;
    if (a->inode != b->inode)
        return false;
    return a->birth_ns && b->birth_ns ? a->birth_ns == b->birth_ns : a->device == b->device;
}

struct place_text place_text(const struct place *place)
{
    struct place_text value = {""};
    if (place->inode)
        (void)snprintf(value.text, sizeof value.text, "%" PRIx64 "-%" PRIx64 "-%" PRIx64,
                       place->inode, place->device, (uint64_t)place->birth_ns);
    return value;
}

void place_add(struct str *record, const struct place *place)
{
    if (place->inode)
        str_concat(record, PLACE_KEY " ", place_text(place).text, "\n");
}

bool place_read(const char *value, struct place *ret_place)
{
    uint64_t inode, device, birth;
    int used = 0;
    if (sscanf(value, "%" SCNx64 "-%" SCNx64 "-%" SCNx64 "%n", &inode, &device, &birth, &used) !=
            3 ||
        value[used])
        return false;
    *ret_place = (struct place){.inode = inode, .device = device, .birth_ns = (int64_t)birth};
    return true;
}

int place_open(const char *path, const struct place *place, struct brig_error *err)
{
    struct place now;
    autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd = path_open_plain(root, path + strspn(path, "/"), O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ELOOP)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "'%s' is reached through a link now, so it may be another directory",
                         str_shown(path).text);
    if (fd < 0)
        return brig_fail(err, errno == ENOENT ? BRIG_E_NOT_FOUND : BRIG_E_SYSTEM, errno,
                         "cannot open '%s'", str_shown(path).text);
    int status = place_of(fd, &now, err);
    if (status < 0)
        return status;
    return place_equal(place, &now)
               ? take_fd(&fd)
               : brig_fail(err, BRIG_E_STATE, 0, "'%s' is not the directory that it was",
                           str_shown(path).text);
}
