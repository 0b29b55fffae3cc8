/* SPDX-License-Identifier: MIT */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "changes/layer/jail_option.h"

/* For the handler. */
static char line[512];

static void tell(int number)
{
    ssize_t ignored = write(STDERR_FILENO, line, strlen(line));
    (void)ignored;
    (void)raise(number); /* its handler was reset: this ends the process when the handler returns */
}

void interrupt_begin(const char *jail)
{
    const struct jails_option option = jails_option(jail);
    const struct sigaction action = {.sa_handler = tell, .sa_flags = (int)SA_RESETHAND};
    (void)snprintf(line, sizeof line,
                   "\nbrig: interrupted. brig apply%s --continue completes what was begun, brig "
                   "apply%s --abort reverts it\n",
                   option.text, option.text);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void interrupt_end(void)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
}
