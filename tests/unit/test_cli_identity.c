/* SPDX-License-Identifier: MIT */
/* Which homes and shells of the passwd file are used. */
#include "cli/identity.h"
#include "tap.h"

/* The program's parts are in no library. */
#include "cli/identity.c" /* NOLINT(bugprone-suspicious-include) */

int main(void)
{
    tap_ok(home_is_usable("/home/ann") && home_is_usable("/var/lib/x"), "ordinary homes are used");
    tap_ok(!home_is_usable("/") && !home_is_usable("/usr/sbin") && !home_is_usable("/bin") &&
               !home_is_usable("") && !home_is_usable("relative") && !home_is_usable("/a/../usr"),
           "a home where programs live is not");
    tap_ok(shell_is_usable("/bin/zsh") && !shell_is_usable("/usr/sbin/nologin") &&
               !shell_is_usable("/bin/false") && !shell_is_usable(""),
           "shells that are none are not used");
    return tap_done();
}
