/* SPDX-License-Identifier: MIT */
/* `brig version`: the version of the library in use. */
#include "cli/command.h"
#include "cli/help.h"

static int run_version(const struct app *app, int argc, char **argv)
{
    (void)app;
    if (argc > 1)
        return command_refuse(&cmd_version, argc, argv, 1);
    return help_print_version();
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "",
    .run = run_version,
};
