/* SPDX-License-Identifier: MIT */
/* What the files of the escape probe share: the shape of an attempt, its
 * arguments, its answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How an attempt ended, as the program's exit status. The harness believes what
 * it sees on the host rather than this wherever there is something to be seen.
 */
enum answer {
    THROUGH = 0,   /* it did what it must not be able to do in a jail */
    REFUSED = 1,   /* something stopped it */
    MISUSED = 2,   /* an argument is missing, or the attempt's own set-up failed */
    UNSAFE = 3,    /* a wall that keeps the attempt itself harmless is missing: not
                  tried */
    NOT_HERE = 77, /* this kernel or this processor has no such thing */
};

struct attempt {
    const char *name; /* NULL ends a table */
    int (*run)(void);
};

extern const struct attempt attempts_exec[], attempts_files[], attempts_grants[], attempts_ids[],
    attempts_inherited[], attempts_init[], attempts_ipc[], attempts_kernel[], attempts_limits[],
    attempts_mounts[], attempts_outlive[], attempts_processes[], attempts_procfs[],
    attempts_sockets[], attempts_streams[], attempts_terminal[], attempts_helpers[];

/* The value of KEY in `attempt NAME KEY=VALUE…`; ends the program if it was not
 * given. */
const char *arg(const char *key);
bool has_arg(const char *key);
long arg_number(const char *key);
/* "<value of key>/<name>", in one of a few buffers used in turn. */
const char *arg_path(const char *key, const char *name);

/* A line on standard output, written at once. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For calls whose success is the breach: says errno, answers THROUGH if result
 * >= 0. */
int judge(const char *what, long result);
/* For calls given arguments that cannot work, so that nothing happens where
 * they are allowed: an errno that only comes after the permission check means
 * THROUGH. */
int judge_reached(const char *what, long result);
/* THROUGH if anything of the file could be read, which is printed for the
 * harness to find. */
int judge_read(const char *path);
int judge_read_fd(const char *what, int fd);
/* THROUGH if it can be opened for reading, for writing. Nothing is read or written. */
int judge_readable(const char *path);
int judge_writable(const char *path);

/* Whether the process is in another pid (or user) namespace than the host's,
 * whose inode the harness gives: before anything that would hurt the host if
 * the wall were missing. */
bool in_own_pidns(void);
bool in_own_userns(void);

/* Prints "ready" and waits for a byte, or the end, of standard input. */
void wait_for_harness(void);
/* Sleeps that long. */
void pause_ms(long ms);
long now_ms(void);

/* THROUGH if one of the paths (NULL ends them) passes the test; NOT_HERE on the allowed side if none
 * exists. */
int open_any(const char *const paths[], int (*test)(const char *));
