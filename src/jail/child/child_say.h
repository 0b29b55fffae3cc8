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
