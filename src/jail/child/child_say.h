/* SPDX-License-Identifier: MIT */
/* What the child says on its socket, and the host terminal's state it is handed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The host terminal as the kernel described it: struct termios and struct winsize as bytes. */
struct child_terminal {
    bool has_settings, has_size;
    char settings[64];
    char size[8];
};

/* By write(2), which every seccomp profile allows. Nothing to do if it fails: the parent sees the
 * end of the socket. */
void child_say(int wire, int type, int a, int b);
/* The same with an fd; 0 or -errno. */
int child_say_fd(int wire, int type, int a, int fd);

/* At most so many come with a message to the child. */
#define CHILD_GIVEN_MAX 16
/* Says it with that many fds; 0 or -errno. And waits for a message of that type: how many came with it, or
 * -errno. They are close-on-exec. */
int child_give(int wire, int type, const int *fds, size_t count);
int child_take(int wire, int type, int ret_fds[CHILD_GIVEN_MAX]);
