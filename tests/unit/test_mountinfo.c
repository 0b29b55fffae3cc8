/* SPDX-License-Identifier: MIT */
/* The table of mounts: what is read of it. */
#include "base/mountinfo.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

int main(void)
{
    char table[] = "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"
                   "not a line\n"
                   "23 22 0:21 /a\\040b /mnt/c\\134d\\011 rw shared:1 master:2 - tmpfs none rw\n"
                   "24 22 x:1 / /wrong rw - tmpfs none rw\n"
                   "25 22 0:22 net:[4026531840] /run/netns/x rw - nsfs nsfs rw\n"
                   "26 22 0:23 /odd\\9 /last rw";
    char *rest = table;
    struct mountinfo mount;
    tap_ok(mountinfo_next(&rest, &mount), "there is a first mount");
    tap_ok(mount.device_major == 254 && mount.device_minor == 1, "with its device");
    tap_is_str(mount.root, "/", "what of it is shown");
    tap_is_str(mount.point, "/", "and where");
    tap_is_str(mount.type, "ext4", "and the type of its filesystem");
    tap_ok(!mount.follows, "a mount that has no master follows none");
    tap_ok(mountinfo_next(&rest, &mount), "lines that are none are passed over");
    tap_ok(mount.follows, "a mount that has a master follows it");
    tap_is_str(mount.root, "/a b", "blanks are escaped in a root");
    tap_is_str(mount.point, "/mnt/c\\d\t", "backslashes and others in a mount point");
    tap_is_str(mount.type, "tmpfs", "any number of fields is before the type");
    tap_ok(mountinfo_next(&rest, &mount), "so are those without a device or a directory");
    tap_is_str(mount.root, "/odd\\9", "what is no escape stays");
    tap_is_str(mount.point, "/last", "the last line needs no end");
    tap_is_str(mount.type, "", "nor a type");
    tap_ok(!mountinfo_next(&rest, &mount), "then there are no more");
    char empty[] = "";
    rest = empty;
    tap_ok(!mountinfo_next(&rest, &mount), "an empty table has none");
    char stacked[] = "10 1 0:1 / / rw - ext4 x rw\n"
                     "11 10 0:2 / /home/u rw - overlay x rw\n"
                     "12 11 0:3 / /home/u/a/key rw - tmpfs x rw\n"
                     "13 11 0:1 /a /home/u/a rw - ext4 x rw\n"
                     "14 13 0:4 / /home/u/a/b rw - tmpfs x rw\n"
                     "15 14 0:5 / /home/u/a/b rw - proc x rw\n";
    struct mountinfo_table home = {.mounts = calloc(8, sizeof *home.mounts)};
    for (rest = stacked; home.mounts && mountinfo_next(&rest, &home.mounts[home.count]);)
        home.count++;
    tap_is_str(mountinfo_at(&home, "/home/u/a/key")->point, "/home/u/a",
               "what is mounted below another mount is not met");
    tap_is_int(mountinfo_at(&home, "/home/u/a/b")->id, 15, "of two at one place the upper one");
    tap_is_int(mountinfo_at(&home, "/home/u/a/b/c/d")->id, 15, "also below it");
    tap_is_int(mountinfo_at(&home, "/home/user")->id, 10, "names are compared as a whole");
    free(home.mounts);
    struct mountinfo_table own, none = {0};
    tap_ok(!mountinfo_at(&none, "/"), "in an empty table there is nothing");
    tap_is_int(mountinfo_read(0, &own), 0, "our own table is read");
    bool found = false;
    for (size_t i = 0; i < own.count; i++)
        found = found || (strcmp(own.mounts[i].point, "/proc") == 0 &&
                          strcmp(own.mounts[i].type, "proc") == 0);
    tap_ok(found, "and has /proc in it");
    mountinfo_done(&own);
    tap_ok(mountinfo_read(-1, &none) < 0, "that of nobody is not");
    return tap_done();
}
