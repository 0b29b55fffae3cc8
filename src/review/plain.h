/* SPDX-License-Identifier: MIT */
/* The line mode. */
#pragma once

struct verbs;

/* Asks for each change on standard output and reads answers from standard input, until the end of
 * either. Returns the exit status. */
int plain_run(const struct verbs *verbs);
