/* SPDX-License-Identifier: MIT */
/* Theory of operation: an interpreter that was started once, and is forked for each run.
 *
 * This library is preloaded into an interpreter that is started, by the command line of a run, in the
 * namespaces of a template. When the interpreter opens the file it is to run, it is as far as it can get
 * without it: there hook.c stops it, and serve.c waits for orders. For each the interpreter is forked by
 * its own rules (python.c) into a jail of its own, made by the code that makes all jails; the child
 * applies the restrictions and waits there until its jail is let go. Then it goes on as if nothing had been.
 *
 * Nothing untrusted runs in the process that waits, and it is told nothing but numbers and fds. */
#pragma once

#include <stdbool.h>

/* ---- serve.c ---- */

/* Waits for orders, for ever; returns in every child, in its jail, when that is let go. */
void serve(const char *file, const char *modules);

/* ---- python.c ---- */

/* Whether this is one. */
bool python_is_here(void);
/* Imports what is wanted and makes the rest fit to be forked. */
bool python_prepare(const char *modules);
/* Does what every run does, before any is forked: what the interpreter then finds in its caches and has adapted
 * in its code, no run has to write. */
void python_practise(const char *file);
void python_before_fork(void);
void python_after_fork(bool child);
/* In the child: runs a program of ours from its beginning to its end, so that the kernel has made the copies
 * of the pages that any program writes to when the code comes. */
void python_touch(const char *file);
/* And then: what each has for itself. */
bool python_renew(const char *file);
/* Runs the file as `python3 FILE` does, and ends. */
__attribute__((noreturn)) void python_run(const char *file);
