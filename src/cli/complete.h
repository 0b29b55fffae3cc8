/* SPDX-License-Identifier: MIT */
/* Completions of the command line, for all shells: the scripts in completions/ only translate. */
#pragma once

/* Prints what can replace the last of these words, which follow "brig". A line is one of
 *   WORD[ ][TAB ABOUT]      a candidate; with the blank it is complete
 *   TAB _files N            a path, which begins after N bytes of the last word
 *   TAB _directories N      the same for a directory
 *   TAB _command_offset N   a command that begins with word N, counting "brig" as 0
 * Returns the exit status. */
int complete_print(int count, char *const *words);
