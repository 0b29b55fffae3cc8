/* SPDX-License-Identifier: MIT */
/* Relays data between the host's terminal and the jail's pty, without blocking on either, and
 * relays output up to a limit. */
#include "cli/run/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"

/* How soon to check again for changes that the kernel does not report. */
#define TERMINAL_RECHECK_MS 200
/* At the end, a terminal that accepts nothing for this long is given up. */
#define TERMINAL_STUCK_MS 2000
#define TERMINAL_END_OF_FILE '\004'

/* A separate file description can be non-blocking without affecting other users of the terminal. If
 * it cannot be opened (for example after su), the inherited one is used. */
static int open_again(int fd, bool *ret_owned)
{
    int again = open(path_proc(fd).text, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *ret_owned = again >= 0;
    return again >= 0 ? again : fd;
}

static bool in_foreground(const struct terminal *terminal)
{
    return tcgetpgrp(terminal->fd) == getpgrp();
}

/* The pty gets the settings of the host's terminal. If a program inside has changed them already,
 * its settings stay. */
static void set_up_pty(const struct terminal *terminal)
{
    struct termios pty;
    struct termios host;
    if (tcgetattr(terminal->master, &pty) < 0 || !(pty.c_lflag & ICANON) ||
        tcgetattr(terminal->fd, &host) < 0)
        return;
    bool host_is_plain = (host.c_lflag & ICANON) && (host.c_lflag & ECHO);
    if (terminal->full && host_is_plain) {
        pty = host;
    } else if (!terminal->full) {
        /* The host's terminal echoes and converts line ends already. */
        pty.c_oflag &= ~(tcflag_t)ONLCR;
        if (terminal->stdin_tty)
            pty.c_lflag &= ~(tcflag_t)ECHO;
    }
    (void)tcsetattr(terminal->master, TCSANOW, &pty);
}

void terminal_init(struct terminal *terminal, int master)
{
    int first = isatty(0) ? 0 : isatty(1) ? 1 : isatty(2) ? 2 : -1;
    terminal->fd_owned = false;
    int fd = first < 0 ? -1 : open_again(first, &terminal->fd_owned);
    *terminal = (struct terminal){
        .master = master,
        .fd = fd,
        .fd_owned = terminal->fd_owned,
        .stdin_tty = first == 0,
        .full = first == 0 && isatty(1),
        .hung_up = first < 0,
    };
    int flags = fcntl(master, F_GETFL);
    if (flags >= 0)
        (void)fcntl(master, F_SETFL, flags | O_NONBLOCK);
    set_up_pty(terminal);
    terminal_enter(terminal);
}

void terminal_done(struct terminal *terminal)
{
    terminal_leave(terminal);
    if (terminal->fd_owned)
        (void)close(terminal->fd);
    terminal->fd = -1;
    terminal->fd_owned = false;
}

static bool wants_raw(const struct terminal *terminal)
{
    struct termios pty;
    return terminal->full || (tcgetattr(terminal->master, &pty) == 0 && !(pty.c_lflag & ICANON));
}

void terminal_enter(struct terminal *terminal)
{
    terminal->input_resting = terminal->master_resting = false;
    /* A background process that changes the terminal gets SIGTTOU and stops. */
    terminal->foreground = !terminal->hung_up && in_foreground(terminal);
    if (!terminal->foreground)
        return;
    bool raw = wants_raw(terminal);
    if (!raw && terminal->raw)
        terminal_leave(terminal);
    if (raw && !terminal->raw && tcgetattr(terminal->fd, &terminal->saved) == 0) {
        struct termios wanted = terminal->saved;
        cfmakeraw(&wanted);
        terminal->raw = tcsetattr(terminal->fd, TCSADRAIN, &wanted) == 0;
    }
    terminal_resize(terminal);
}

void terminal_leave(struct terminal *terminal)
{
    if (terminal->raw && in_foreground(terminal))
        (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->saved);
    terminal->raw = false;
}

void terminal_resize(const struct terminal *terminal)
{
    struct winsize size;
    if (terminal->fd >= 0 && ioctl(terminal->fd, TIOCGWINSZ, &size) == 0)
        (void)ioctl(terminal->master, TIOCSWINSZ, &size);
}

static bool takes_input(const struct terminal *terminal)
{
    return terminal->foreground && !terminal->hung_up && !terminal->input_resting &&
           terminal->to_jail.length == 0 && (terminal->raw || terminal->stdin_tty);
}

void terminal_poll(const struct terminal *terminal, struct pollfd *fds, int *ret_timeout_ms)
{
    bool shows = terminal->to_host.length > 0 && !terminal->hung_up;
    short host = (short)((takes_input(terminal) ? POLLIN : 0) | (shows ? POLLOUT : 0));
    short jail = (short)((terminal->to_host.length == 0 ? POLLIN : 0) |
                         (terminal->to_jail.length > 0 ? POLLOUT : 0));
    /* poll() reports a hangup regardless of the requested events, and repeatedly. */
    fds[0] = (struct pollfd){.fd = terminal->hung_up ? -1 : terminal->fd, .events = host};
    fds[1] = (struct pollfd){.fd = jail && !terminal->master_resting ? terminal->master : -1,
                             .events = jail};
    fds[2] = (struct pollfd){.fd = -1};
    bool look_again = terminal->input_resting || terminal->master_resting ||
                      (!terminal->foreground && !terminal->hung_up);
    *ret_timeout_ms = look_again ? TERMINAL_RECHECK_MS : -1;
}

/* Whether another program of the pipeline reads the keyboard, as pagers do. */
static bool keyboard_is_taken(const struct terminal *terminal)
{
    struct termios host;
    return !terminal->raw && (tcgetattr(terminal->fd, &host) < 0 || !(host.c_lflag & ICANON));
}

/* Uses the suspend key of the user's terminal: the jail can set another one in its pty. */
static void note_suspend(struct terminal *terminal, size_t size)
{
    cc_t key = terminal->saved.c_cc[VSUSP];
    if (terminal->raw && key != _POSIX_VDISABLE && memchr(terminal->input, key, size))
        terminal->suspend_typed = true;
}

static void read_input(struct terminal *terminal, bool hang_up)
{
    if (keyboard_is_taken(terminal)) {
        terminal->input_resting = true;
        return;
    }
    ssize_t size = read(terminal->fd, terminal->input, sizeof(terminal->input));
    if (size > 0) {
        terminal->to_jail = (struct terminal_buffer){.length = (size_t)size};
        note_suspend(terminal, (size_t)size);
    } else if (size == 0 && !terminal->raw && !hang_up) {
        terminal->input[0] = TERMINAL_END_OF_FILE;
        terminal->to_jail = (struct terminal_buffer){.length = 1};
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        /* EIO is also returned if brig has been moved to the background meanwhile. */
        if (size == 0 || in_foreground(terminal))
            terminal->hung_up = true;
        terminal->foreground = false;
    }
}

/* False on a permanent write error. */
static bool write_some(int fd, const char *data, struct terminal_buffer *buffer)
{
    ssize_t size = write(fd, data + buffer->start, buffer->length);
    if (size > 0) {
        buffer->start += (size_t)size;
        buffer->length -= (size_t)size;
    }
    return size >= 0 || errno == EAGAIN || errno == EINTR;
}

/* False when there is nothing to read now, or at the end. */
static bool read_from_jail(struct terminal *terminal)
{
    ssize_t size = read(terminal->master, terminal->output, sizeof(terminal->output));
    if (size > 0) {
        terminal->to_host = (struct terminal_buffer){.length = (size_t)size};
        if (!terminal->full && wants_raw(terminal) != terminal->raw)
            terminal_enter(terminal);
        return true;
    }
    if (size < 0 && errno == EINTR)
        return true;
    /* EIO: no process has the pty open now, but one may open it again. */
    if (size < 0 && errno == EIO)
        terminal->master_resting = true;
    return false;
}

static void write_to_host(struct terminal *terminal)
{
    if (!write_some(terminal->fd, terminal->output, &terminal->to_host))
        terminal->hung_up = true;
}

void terminal_process(struct terminal *terminal, const struct pollfd *fds)
{
    short host = fds[0].revents;
    short jail = fds[1].revents;
    bool resting = terminal->input_resting || terminal->master_resting || !terminal->foreground;
    if (!host && !jail && resting && !terminal->hung_up)
        terminal_enter(terminal);
    if ((host & (POLLIN | POLLHUP | POLLERR)) && takes_input(terminal))
        read_input(terminal, host & POLLHUP);
    else if (host & POLLHUP)
        terminal->hung_up = true;
    if (terminal->to_jail.length > 0 &&
        !write_some(terminal->master, terminal->input, &terminal->to_jail))
        terminal->to_jail.length = 0;
    if ((jail & (POLLIN | POLLHUP | POLLERR)) && terminal->to_host.length == 0)
        (void)read_from_jail(terminal);
    if (terminal->to_host.length > 0 && !terminal->hung_up)
        write_to_host(terminal);
    if (terminal->hung_up)
        terminal->to_host.length = 0;
}

void terminal_drain(struct terminal *terminal)
{
    do {
        while (terminal->to_host.length > 0 && !terminal->hung_up) {
            struct pollfd wait = {.fd = terminal->fd, .events = POLLOUT};
            if (poll(&wait, 1, TERMINAL_STUCK_MS) == 0)
                return;
            write_to_host(terminal);
        }
        terminal->to_host.length = 0;
    } while (!terminal->hung_up && read_from_jail(terminal));
}

/* ---- Relaying a stream up to a limit; further data is read and dropped, so that the command does
 * not block ---- */

/* The usual capacity of a pipe: smaller blocks would cost more CPU time. */
#define BLOCK_BYTES 65536
/* The maximum to read at the end: more can only come from a process outside the jail that was
 * passed the pipe. */
#define DRAIN_BLOCKS 64

int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err)
{
    int pair[2];
    struct stat status;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    *relay = (struct relay){.from = pair[0],
                            .to = to,
                            .to_file = fstat(to, &status) == 0 && S_ISREG(status.st_mode),
                            .limit = limit};
    *ret_write = pair[1];
    return 0;
}

void relay_done(struct relay *relay)
{
    if (relay->from >= 0)
        (void)close(relay->from);
    free(relay->block);
    relay->from = -1;
    relay->block = NULL;
    relay->length = 0;
}

/* Past the limit, output is dropped: the reader need not be ready. */
struct pollfd relay_poll(const struct relay *relay)
{
    if (relay->from >= 0 && relay->length > 0)
        return (struct pollfd){.fd = relay->to, .events = POLLOUT};
    return (struct pollfd){.fd = relay->from, .events = POLLIN};
}

/* Reads the next data, and keeps the part within the limit. False if there was none. */
static bool fill(struct relay *relay)
{
    if (!relay->block)
        relay->block = malloc(BLOCK_BYTES);
    ssize_t length = relay->block ? read(relay->from, relay->block, BLOCK_BYTES) : 0;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length <= 0) {
        relay_done(relay);
        return false;
    }
    uint64_t left = relay->limit > relay->seen ? relay->limit - relay->seen : 0;
    relay->seen += (uint64_t)length;
    relay->start = 0;
    relay->length = (uint64_t)length < left ? (size_t)length : (size_t)left;
    return true;
}

/* Writes what is possible without blocking: a pipe that is ready accepts PIPE_BUF bytes. */
static void pass_on(struct relay *relay)
{
    struct pollfd ready = {.fd = relay->to, .events = POLLOUT};
    while (relay->length > 0 && (relay->to_file || poll(&ready, 1, 0) > 0)) {
        size_t most = relay->to_file || relay->length < PIPE_BUF ? relay->length : PIPE_BUF;
        ssize_t written = write(relay->to, relay->block + relay->start, most);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0) { /* the reader closed it: the command gets SIGPIPE */
            relay_done(relay);
            return;
        }
        relay->start += (size_t)written;
        relay->length -= (size_t)written;
    }
}

void relay_process(struct relay *relay, short events)
{
    if (relay->from < 0 || events == 0)
        return;
    if (relay->length == 0)
        (void)fill(relay);
    pass_on(relay);
}

bool relay_drain(struct relay *relay, int timeout_ms, int wake_fd)
{
    int64_t end_ms = (int64_t)clock_now_ms() + timeout_ms;
    for (int blocks = 0; relay->from >= 0;) {
        if (relay->length == 0 && (blocks++ == DRAIN_BLOCKS || !fill(relay)))
            return true;
        pass_on(relay);
        if (relay->from < 0 || relay->length == 0)
            continue;
        int64_t left_ms = timeout_ms < 0 ? -1 : end_ms - (int64_t)clock_now_ms();
        struct pollfd fds[] = {{.fd = relay->to, .events = POLLOUT},
                               {.fd = wake_fd, .events = POLLIN}};
        if (timeout_ms >= 0 && left_ms <= 0)
            return true;
        if (poll(fds, 2, (int)left_ms) < 0 && errno != EINTR)
            return true;
        if (fds[1].revents)
            return false;
    }
    return true;
}

bool relay_was_cut(const struct relay *relay)
{
    return relay->seen > relay->limit;
}
