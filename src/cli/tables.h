/* SPDX-License-Identifier: MIT */
/* The tables of options and verbs, for tools/gen-cli-docs. */
#pragma once

/* Prints them as JSON and returns the exit status. Used when brig is built, not by people. */
int tables_print(void);
