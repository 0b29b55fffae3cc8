/* SPDX-License-Identifier: MIT */
/* What brig says about itself on stdout: --help and --version. */
#pragma once

struct command;

/* Each prints and returns the exit status. */
int help_print(void);
int help_print_command(const struct command *command);
int help_print_version(void);

/* One row's "-d, --dir PATH" into a buffer of this size. */
#define HELP_NAMES_MAX 96
struct option_row;
void help_option_names(const struct option_row *row, char names[static HELP_NAMES_MAX]);
