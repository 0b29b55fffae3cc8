/* SPDX-License-Identifier: MIT */
#include "home/giving.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Who makes it gives it away with his next calls but one. */
#define PATIENCE_MS 200

bool giving_await(int fd, uid_t uid)
{
    struct stat info;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; fstat(fd, &info) == 0; i++) {
        if (info.st_uid == uid)
            return true;
        if (geteuid() != 0 || info.st_uid != 0 || i == PATIENCE_MS)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}
