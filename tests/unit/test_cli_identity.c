/* SPDX-License-Identifier: MIT */
/* Finding a user in the text of a passwd file. */
#include <string.h>

#include "cli/identity.h"
#include "tap.h"

/* The program's parts are in no library. */
#include "cli/identity.c" /* NOLINT(bugprone-suspicious-include) */

static const char *find(const char *text, uid_t uid)
{
    static char line[IDENTITY_LINE_MAX];
    struct identity_entry entry;
    return identity_find_entry(text, strlen(text), uid, line, &entry) ? entry.name : NULL;
}

int main(void)
{
    static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                                 "# a comment\n"
                                 "+\n"
                                 "broken:x:7\n"
                                 "bad:x:8:gid::/:/bin/sh\n"
                                 "10:x:11:12:10:/home/ten:/bin/ten\n"
                                 "ann:x:1000:1001:Ann,,,:/home/ann:/bin/zsh\n"
                                 "twin:x:1000:1:second:/x:/y\n"
                                 "last:x:5:6::/home/last:";
    tap_is_str(find(passwd, 0), "root", "the first line is found");
    tap_is_str(find(passwd, 1000), "ann", "of two lines for an id the first counts");
    tap_is_str(find(passwd, 5), "last", "a last line without newline and shell is found");
    tap_is_str(find(passwd, 11), "10", "a name that is a number is no id");
    tap_is_str(find(passwd, 10), NULL, "nor is a number elsewhere in the line");
    tap_is_str(find(passwd, 7), NULL, "a line with too few fields is passed over");
    tap_is_str(find(passwd, 8), NULL, "and one whose group is no number");
    tap_is_str(find(passwd, 100), NULL, "part of an id is not the id");
    tap_is_str(find("", 0), NULL, "an empty file has nobody");

    char line[IDENTITY_LINE_MAX];
    struct identity_entry entry;
    tap_ok(identity_find_entry(passwd, strlen(passwd), 1000, line, &entry) && entry.gid == 1001 &&
               strcmp(entry.home, "/home/ann") == 0 && strcmp(entry.shell, "/bin/zsh") == 0,
           "the other fields are taken from the same line");

    char wide[IDENTITY_LINE_MAX + 64];
    memset(wide, 'n', sizeof(wide));
    (void)snprintf(wide + IDENTITY_LINE_MAX, 64, ":x:3:3::/:/bin/sh\nok:x:3:4::/:/bin/sh\n");
    tap_is_str(find(wide, 3), "ok", "a line longer than the limit is passed over");

    tap_ok(home_is_usable("/home/ann") && home_is_usable("/var/lib/x"), "ordinary homes are used");
    tap_ok(!home_is_usable("/") && !home_is_usable("/usr/sbin") && !home_is_usable("/bin") &&
               !home_is_usable("") && !home_is_usable("relative") && !home_is_usable("/a/../usr"),
           "a home where programs live is not");
    tap_ok(shell_is_usable("/bin/zsh") && !shell_is_usable("/usr/sbin/nologin") &&
               !shell_is_usable("/bin/false") && !shell_is_usable(""),
           "shells that are none are not used");
    return tap_done();
}
