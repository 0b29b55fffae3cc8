/* SPDX-License-Identifier: MIT */
/* Theory of operation: an interpreter that is started once, and forked for each run.
 *
 * This library is preloaded into an interpreter that is started, with the command line of a run, in
 * the namespaces of a template. When the interpreter opens the script, it has done all
 * initialisation that does not depend on the script: there hook.c stops it, and serve.c waits for
 * orders. For each order the interpreter is forked by its own API (python.c) into a new jail, which
 * is made by the same code as all jails. The child applies the restrictions and waits until its
 * jail is released. Then it continues as if it had just been started.
 *
 * No untrusted code runs in the waiting process, and it receives only numbers and fds. */
#pragma once

#include <stdbool.h>

/* ---- serve.c ---- */

/* Waits for orders forever. Returns in each child, inside its jail, when the jail is released. */
void serve(const char *file, const char *modules);

/* ---- python.c ---- */

/* Returns whether the process is a CPython interpreter. */
bool python_is_here(void);
/* Imports `modules`, and prepares the interpreter to be forked. */
bool python_prepare(const char *modules);
/* Runs a sample program several times before the first fork, so that caches are filled and code is
 * specialised in pages that all children share. */
void python_practise(const char *file);
void python_before_fork(void);
void python_after_fork(bool child);
/* In the child: runs a small program from start to end, so that the pages which every program
 * writes are copied before the code arrives. */
void python_touch(const char *file);
/* In the child, after python_touch(): renews the state that each process needs for itself. */
bool python_renew(const char *file);
/* Runs the file as `python3 FILE` does, and exits. */
__attribute__((noreturn)) void python_run(const char *file);
