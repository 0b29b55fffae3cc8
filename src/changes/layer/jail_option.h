/* SPDX-License-Identifier: MIT */
/* How a command that is printed for the user names its jail. */
#pragma once

/* Remembers which jail verbs without -j use in this directory. Called once, at the start. */
void jails_set_here(const char *jail);

/* " -j NAME", or "" for the jail of this directory:
 * "see brig status%s", jails_option(jail).text */
struct jails_option {
    char text[128];
};
struct jails_option jails_option(const char *jail);
