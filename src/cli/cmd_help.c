/* SPDX-License-Identifier: MIT */
/* `brig help`: what --help prints, or the usage of one verb. `brig version`. */
#include "cli/command.h"

static int run_help(const struct app *app, int argc, char **argv)
{
    (void)app;
    if (argc == 1)
        return help_print();
    const struct command *command = command_find(argv[1]);
    if (!command && argc == 2 && command_suggest(argv[1]))
        return APP_FAILED;
    if (!command || argc > 2)
        return command_refuse(&cmd_help, argc, argv, command ? 2 : 1);
    return help_print_command(command);
}

const struct command cmd_help = {
    .name = "help",
    .summary = "print this help, or the usage of a command",
    .usage = "[COMMAND]",
    .run = run_help,
};

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
