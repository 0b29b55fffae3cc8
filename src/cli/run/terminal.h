/* SPDX-License-Identifier: MIT */
/* Relays data between the host's terminal and the jail's pty. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include <brig/brig.h>

#define TERMINAL_INPUT_MAX 4096
#define TERMINAL_OUTPUT_MAX 16384
#define TERMINAL_POLL_MAX 3

struct terminal_buffer {
    size_t start;
    size_t length;
};

/* How the host's terminal is used.
 *
 * If standard input and output are both terminals, the host's terminal is raw all the time: every
 * key goes to the jail, including Ctrl-C, and the jail's pty does echo and line editing.
 *
 * If only one is a terminal, other programs of the pipeline share it (`brig CMD | less`), so its
 * mode is not changed: lines are relayed as they were edited outside, and brig receives the signals
 * of the keyboard and forwards them. The host's terminal only follows while a program inside has
 * changed the mode of its pty (a menu that reads /dev/tty). */
struct terminal {
    int master; /* borrowed */
    int fd;     /* the host's terminal, reopened if possible, to be non-blocking */
    bool fd_owned;
    bool full;      /* raw all the time */
    bool stdin_tty; /* standard input is a terminal */
    bool raw;       /* the host's terminal is raw now; restore `saved` */
    struct termios saved;
    bool foreground;
    bool input_resting;  /* another program has the keyboard; try again later */
    bool master_resting; /* no process has the pty open; try again later */
    bool hung_up;        /* the host's terminal hung up */
    bool suspend_typed;  /* the suspend key went to the jail; the caller clears this */
    struct terminal_buffer to_jail, to_host;
    char input[TERMINAL_INPUT_MAX];
    char output[TERMINAL_OUTPUT_MAX];
};

/* Starts relaying for the pty of a job. terminal_done() restores the host's terminal. */
void terminal_init(struct terminal *terminal, int master);
void terminal_done(struct terminal *terminal);

/* Puts the host's terminal into the required mode, if brig is in the foreground, and copies the
 * window size. Call it again when either may have changed: after a signal, a resumption, a
 * timeout. */
void terminal_enter(struct terminal *terminal);
/* Restores the host's terminal: before stopping, before printing, at the end. */
void terminal_leave(struct terminal *terminal);
/* Copies the window size to the jail's pty, whose foreground processes get SIGWINCH. */
void terminal_resize(const struct terminal *terminal);

/* Fills in fds[TERMINAL_POLL_MAX] and the timeout (-1: none) for poll(). */
void terminal_poll(const struct terminal *terminal, struct pollfd *fds, int *ret_timeout_ms);
/* Relays what is possible without blocking. */
void terminal_process(struct terminal *terminal, const struct pollfd *fds);
/* Called when the command has ended: relays the remaining output of the pty. */
void terminal_drain(struct terminal *terminal);

/* ---- A stream of the command that brig relays, because its length is limited ---- */

struct relay {
    int from;       /* -1: closed or unused */
    int to;         /* borrowed */
    bool to_file;   /* `to` is a regular file, which never blocks */
    uint64_t limit; /* the maximum number of bytes to relay */
    uint64_t seen;
    char *block;          /* allocated on first use */
    size_t start, length; /* the part of the block that is not written yet */
};

/* Creates the pipe; *ret_write is the end for the command, which the caller closes. */
int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err);
void relay_done(struct relay *relay);

/* The descriptor to poll, and the handler for it, which never blocks for long. */
struct pollfd relay_poll(const struct relay *relay);
void relay_process(struct relay *relay, short events);
/* Called when all writers have closed the pipe: writes the remaining bytes, and waits at most
 * timeout_ms (-1: no limit) for the reader. True when everything was written or time is up; false
 * as soon as `wake_fd` is readable. */
bool relay_drain(struct relay *relay, int timeout_ms, int wake_fd);
bool relay_was_cut(const struct relay *relay);
