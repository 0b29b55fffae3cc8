/* SPDX-License-Identifier: MIT */
/* brig: runs a command in a jail.
 *
 * Theory of operation: this process runs with the ids and rights of the caller, and trusts its
 * command line and environment. It builds a policy, lets libbrig start the jail, and then only
 * relays: keys and window sizes into the jail, output and the exit status out of it. It does not
 * interpret anything that comes out of the jail. When it dies, the jail dies with it. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "home/home.h"

/* If stdin, stdout or stderr is closed, the first file opened here would get its number, and the
 * jail would inherit that file as a standard stream. */
static void fill_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* A standard stream stays open. NOLINTNEXTLINE(android-cloexec-open) */
        int null = open("/dev/null", O_RDWR); /* lint: cloexec because it is one */
        if (null != fd)
            _exit(125);
    }
}

/* The options of a run, including --help, are parsed with their verb. */
static bool wants_help(int argc, char **argv)
{
    return argc == 3 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0) &&
           strcmp(argv[1], cmd_run.name) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], HOME_HOLDER_NAME) == 0)
        return home_holder_main();
    fill_standard_fds();
    (void)signal(SIGCHLD,
                 SIG_DFL); /* else the kernel keeps no exit status of git and other children */
    struct brig_error err = {0};
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    const struct app app = {
        .command = command ? command : &cmd_run, .argc = argc, .argv = argv, .envp = environ};
    if (command)
        return message_status(wants_help(argc, argv) ? help_print_command(command, &err)
                                                     : command->run(&app, argc - 1, argv + 1, &err),
                              &err);
    if (argc > 1 && strcmp(argv[1], "--complete") == 0)
        return complete_print(argc - 2, argv + 2);
    return message_status(cmd_run.run(&app, argc, argv, &err), &err);
}
