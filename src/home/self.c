/* SPDX-License-Identifier: MIT */
#include "home/self.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "jail/sys.h"

void self_execute(int program, int socket, const char *name)
{
    char *const argv[] = {(char *)(uintptr_t)name, NULL};
    char *const envp[] = {NULL};
    int moved = fcntl(program, F_DUPFD_CLOEXEC, 10);
    if (moved >= 0 && (socket == 3 ? fcntl(3, F_SETFD, 0) : dup2(socket, 3)) >= 0) {
        (void)SYS(close_range, 4, 9, 0);
        (void)SYS(close_range, 4, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
        (void)SYS(execveat, moved, "", argv, envp, AT_EMPTY_PATH);
    }
    _exit(1);
}
