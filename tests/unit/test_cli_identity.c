/* SPDX-License-Identifier: MIT */
/* Which homes and shells of the passwd file are used. */
#include "cli/identity.h"
#include "tap.h"

int main(void)
{
    tap_ok(identity_can_use_home("/home/ann") && identity_can_use_home("/var/lib/x"),
           "ordinary homes are used");
    tap_ok(!identity_can_use_home("/") && !identity_can_use_home("/usr/sbin") &&
               !identity_can_use_home("/bin") && !identity_can_use_home("") &&
               !identity_can_use_home("relative") && !identity_can_use_home("/a/../usr"),
           "a home where programs live is not");
    tap_ok(identity_can_use_shell("/bin/zsh") && !identity_can_use_shell("/usr/sbin/nologin") &&
               !identity_can_use_shell("/bin/false") && !identity_can_use_shell(""),
           "shells that are none are not used");
    return tap_done();
}
