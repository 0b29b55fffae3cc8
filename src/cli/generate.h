/* SPDX-License-Identifier: MIT */
/* Text made from the tables of options and verbs, for the manual and the shells' completions. */
#pragma once

/* Prints one of "man", "conf", "bash", "zsh" and "fish" and returns the exit status. Used when brig is
 * built (tools/gen-cli-docs), not by people. */
int generate(const char *what);
