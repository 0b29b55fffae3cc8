/* SPDX-License-Identifier: MIT */
/* Where the sockets of holders are. The same for root acting for a user as for the user: not by the
 * environment. */
#include "home/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "home/giving.h"

/* Of a user that is logged in; root's, for jails with an id of their own; one that anybody can take
 * first; and one that nobody else can reach. */
static bool name_place(unsigned which, uid_t uid, const char *storage,
                       char path[PATH_LENGTH_MAX + 1])
{
    static const struct {
        const char *before, *after; /* the uid */
    } places[] = {{"/run/user/", "/brig"}, {"/run/brig-", ""}, {"/tmp/brig-", ""}};
    if (which < ARRAY_LENGTH(places))
        return str_fill(path, PATH_LENGTH_MAX + 1, places[which].before, str_number(uid).text,
                        places[which].after);
    return which < SOCKETS_PLACES && storage && *storage &&
           str_fill(path, PATH_LENGTH_MAX + 1, storage, "/.sockets");
}

static int open_place(const char *path, uid_t uid, bool wait)
{
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (wait && fd >= 0)
        (void)giving_await(fd, uid);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_uid != uid ||
        (info.st_mode & (S_IWGRP | S_IWOTH)))
        return -1;
    return take_fd(&fd);
}

int sockets_open(unsigned which, uid_t uid, const char *storage)
{
    char path[PATH_LENGTH_MAX + 1];
    return name_place(which, uid, storage, path) ? open_place(path, uid, false) : -1;
}

/* What root makes is given away by its fd: by its name it could be something else by now. */
static void make_place(const char *path, uid_t uid)
{
    if (mkdir(path, 0700) < 0 || geteuid() == uid)
        return;
    autoclose int fd = open_place(path, geteuid(), false);
    if (fd >= 0 && fchown(fd, uid, (gid_t)-1) < 0)
        (void)rmdir(path);
}

int sockets_make(uid_t uid, const char *storage, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1] = "";
    for (unsigned i = 0; i < SOCKETS_PLACES; i++) {
        if (!name_place(i, uid, storage, path))
            continue;
        int fd = open_place(path, uid, false);
        if (fd >= 0)
            return fd;
        make_place(path, uid);
        fd = open_place(path, uid, true);
        if (fd >= 0)
            return fd;
    }
    return brig_fail(err, BRIG_E_SETUP, 0,
                     "cannot use '/tmp/brig-%u' for the sockets of jails: it does not belong to "
                     "you alone. Remove it",
                     uid);
}

int sockets_address(int directory, const char *key, struct sockaddr_un *ret_address,
                    struct brig_error *err)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return str_fill(ret_address->sun_path, sizeof ret_address->sun_path, "/proc/self/fd/",
                    str_number((unsigned)directory).text, "/", key, ".sock")
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "the jail's name is too long");
}
