/* SPDX-License-Identifier: MIT */
/* Relays between the host's terminal and the jail's own pty. */
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
 * Where standard input and output are both terminals the host's is raw all the time: every key
 * goes to the jail, Ctrl-C included, and the jail's pty does echo and line editing.
 *
 * Where only one is, other programs of the pipeline share the terminal (`brig CMD | less`), so
 * it is left as it is: lines are relayed as they were edited outside, signals from the keyboard
 * come to brig, which forwards them. Only while a program inside has put its pty into a mode of
 * its own (a menu that reads /dev/tty) does the host's follow. */
struct terminal {
    int master; /* borrowed */
    int fd;     /* the host's terminal, opened anew where possible so as to be non-blocking */
    bool fd_owned;
    bool full;      /* raw all the time */
    bool stdin_tty; /* standard input is a terminal */
    bool raw;       /* the host's terminal is raw now, `saved` is to be restored */
    struct termios saved;
    bool foreground;
    bool input_resting;  /* another program has the keyboard; look again later */
    bool master_resting; /* no process has the pty open; look again later */
    bool hung_up;        /* the host's terminal is gone */
    bool suspend_typed;  /* the key that stops programs went to the jail; the caller's to clear */
    struct terminal_buffer to_jail, to_host;
    char input[TERMINAL_INPUT_MAX];
    char output[TERMINAL_OUTPUT_MAX];
};

/* Takes up a job's pty. terminal_done() restores the host's terminal. */
void terminal_init(struct terminal *terminal, int master);
void terminal_done(struct terminal *terminal);

/* Puts the host's terminal into the mode wanted, if brig is in the foreground, and copies the size.
 * Also for when that may have changed: a signal, a resumption, a time-out. */
void terminal_enter(struct terminal *terminal);
/* Restores the host's terminal: before stopping, before printing, before the end. */
void terminal_leave(struct terminal *terminal);
/* Copies the window's size to the jail's pty, whose foreground processes get SIGWINCH. */
void terminal_resize(const struct terminal *terminal);

/* What to wait for, into fds[TERMINAL_POLL_MAX], and how long at most (-1: for ever). */
void terminal_poll(const struct terminal *terminal, struct pollfd *fds, int *ret_timeout_ms);
/* Moves what can be moved without blocking. */
void terminal_process(struct terminal *terminal, const struct pollfd *fds);
/* Once the command is over: shows what is still in the pty. */
void terminal_drain(struct terminal *terminal);

/* ---- A stream of the command that passes through brig, because it is to be cut somewhere ---- */

struct relay {
    int from;       /* -1: at its end, or there is none */
    int to;         /* borrowed */
    bool to_file;   /* which takes any amount at a time */
    uint64_t limit; /* bytes that are passed on */
    uint64_t seen;
    char *block;          /* made when first needed */
    size_t start, length; /* of what is in it and has still to be passed on */
};

/* Makes the pipe; *ret_write is the command's end, the caller's to close. */
int relay_open(struct relay *relay, int to, uint64_t limit, int *ret_write, struct brig_error *err);
void relay_done(struct relay *relay);

/* What to wait for, and what to do when that is there; never blocks for long. */
struct pollfd relay_poll(const struct relay *relay);
void relay_process(struct relay *relay, short events);
/* When every writer is gone: passes on what is left, waiting for at most so long (-1: for ever)
 * for whoever takes it. True once that is done, or time is up; false as soon as `wake_fd` is
 * readable. */
bool relay_drain(struct relay *relay, int timeout_ms, int wake_fd);
bool relay_was_cut(const struct relay *relay);
