/* SPDX-License-Identifier: MIT */
/* The preparer: makes namespaces for the next run when the holder says so. It runs as the user, where the
 * run was that has started it, with an empty environment, and nothing of a jail ever runs in it. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "home/holder_parts.h"
#include "home/ready.h"

int home_preparer_main(void)
{
    static char shape[READY_SHAPE_MAX];
    const int holder = 3;
    (void)setsid();
    holder_settle_down(HOME_PREPARER_NAME);
    (void)signal(SIGCHLD, SIG_DFL); /* whatever our caller did with it */
    ssize_t length;
    while ((length = recv(holder, shape, sizeof shape, 0)) > 0) {
        struct ready_set set = READY_SET_NONE;
        bool made = ready_make(shape, (size_t)length, &set);
        bool told = ready_send(holder, made ? &set : NULL, false);
        ready_set_done(&set);
        if (!told)
            return 1;
    }
    return 0;
}
