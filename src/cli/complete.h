/* SPDX-License-Identifier: MIT */
/* Completions for the shells: what could stand for the last word of a command line. */
#pragma once

/* Prints candidates for the last of these words (those behind "brig"), one a line; one that ends in a
 * blank is finished. Where a command is being typed: "_command_offset N", if it begins with the Nth
 * word, counted from "brig" as 0. Returns the exit status. */
int complete_print(int count, char *const *words);
