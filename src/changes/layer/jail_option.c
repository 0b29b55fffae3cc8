/* SPDX-License-Identifier: MIT */
/* How a command that is printed for the user names its jail. */
#include "changes/layer/jail_option.h"

#include <stdio.h>
#include <string.h>

static char here[128]; /* "": not known */

void jails_set_here(const char *jail)
{
    (void)snprintf(here, sizeof here, "%s", jail);
}

struct jails_option jails_option(const char *jail)
{
    struct jails_option option = {""};
    if (*jail && strcmp(jail, here) != 0)
        (void)snprintf(option.text, sizeof option.text, " -j %s", jail);
    return option;
}
