/* SPDX-License-Identifier: MIT */
/* Getting at the terminal brig was started from. The harness gives brig a
 * terminal as standard error alone, and looks afterwards whether something was
 * typed into it or its settings changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "attempt.h"

#define INJECTED "escaped\n"

static int inject(int fd, unsigned long request)
{
    long result = 0;
    for (const char *at = INJECTED; *at && result >= 0; at++)
        result = syscall(SYS_ioctl, fd, request, at);
    return judge("TIOCSTI", result);
}

static int tiocsti(void)
{
    return inject(STDERR_FILENO, TIOCSTI);
}

/* The kernel looks at 32 bits of the request, the register has 64. */
static int tiocsti_high_bits(void)
{
    return inject(STDERR_FILENO, 0xdead00000000UL | TIOCSTI);
}

/* Changes the interrupt character to Ctrl-A; the harness looks for that. */
static int change_settings(int fd)
{
    struct termios settings;
    if (tcgetattr(fd, &settings) < 0)
        return judge("tcgetattr", -1);
    settings.c_cc[VINTR] = 1;
    return judge("tcsetattr", tcsetattr(fd, TCSANOW, &settings));
}

static int terminal_settings(void)
{
    return change_settings(STDERR_FILENO);
}

static int terminal_reopen(void)
{
    int fd = open("/proc/self/fd/2", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return judge("open /proc/self/fd/2", -1);
    (void)inject(fd, TIOCSTI);
    return change_settings(fd);
}

static int terminal_dev_stderr(void)
{
    int fd = open("/dev/stderr", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? judge("/dev/stderr", -1) : change_settings(fd);
}

static int terminal_dev_tty(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    return fd < 0 ? judge("/dev/tty", -1) : change_settings(fd);
}

/* By the name it has on the host. */
static int terminal_by_name(void)
{
    int fd = open(arg("terminal"), O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return judge(arg("terminal"), -1);
    (void)inject(fd, TIOCSTI);
    return change_settings(fd);
}

/* Taking it as controlling terminal. */
static int terminal_steal(void)
{
    (void)setsid();
    (void)judge("TIOCSCTTY", ioctl(STDERR_FILENO, TIOCSCTTY, 1));
    (void)inject(STDERR_FILENO, TIOCSTI);
    return change_settings(STDERR_FILENO);
}

/* Only virtual consoles know it, and there it would paste: the allowed side is not tried. */
static int terminal_linux(void)
{
    char request[] = {3, 0}; /* paste the selection */
    return has_arg("twin") ? NOT_HERE
                           : judge("TIOCLINUX", ioctl(STDERR_FILENO, TIOCLINUX, request));
}

/* Would take the console's output away from the host: the allowed side is not tried. */
static int terminal_console(void)
{
    return has_arg("twin") ? NOT_HERE : judge("TIOCCONS", ioctl(STDERR_FILENO, TIOCCONS, 0));
}

static int terminal_line_discipline(void)
{
    int discipline = N_TTY; /* the one it has */
    return judge("TIOCSETD", ioctl(STDERR_FILENO, TIOCSETD, &discipline));
}

const struct attempt attempts_terminal[] = {
    {"tiocsti", tiocsti},
    {"tiocsti-high-bits", tiocsti_high_bits},
    {"terminal-settings", terminal_settings},
    {"terminal-reopen", terminal_reopen},
    {"terminal-dev-stderr", terminal_dev_stderr},
    {"terminal-dev-tty", terminal_dev_tty},
    {"terminal-by-name", terminal_by_name},
    {"terminal-steal", terminal_steal},
    {"tioclinux", terminal_linux},
    {"tioccons", terminal_console},
    {"line-discipline", terminal_line_discipline},
    {NULL, NULL},
};
