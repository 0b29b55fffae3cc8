/* SPDX-License-Identifier: MIT */
/* What brig says about itself, on stdout: --help, brig help TOPIC, --version. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct brig_error;
struct command;

#define HELP_OPTION_MAX 96 /* what docs/help says about an option of a verb */

int help_print(struct brig_error *err);
/* The usage of a verb and, if docs/help has one, its text. */
int help_print_command(const struct command *command, struct brig_error *err);
/* With `verbose`, also how it was built, and with which libraries. */
int help_print_version(bool verbose, struct brig_error *err);

/* The topics of brig help one after the other: subjects, then verbs. NULL at the end. */
const char *help_topic_at(size_t index, const char **ret_about);
/* What the text of a verb says about one of its options; "" if it says nothing. */
void help_option(const char *verb, const char *option, size_t length,
                 char ret_about[static HELP_OPTION_MAX]);
