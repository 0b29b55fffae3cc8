/* SPDX-License-Identifier: MIT */
/* Finding a user or a group in the text of the system's files, and through getent. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/users.h"
#include "tap.h"

static const char *find(const char *text, uid_t uid)
{
    static char line[USERS_LINE_MAX];
    struct users_user entry;
    return users_find_in_text(text, strlen(text), uid, line, &entry) ? entry.name : NULL;
}

static void test_users(void)
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

    char line[USERS_LINE_MAX];
    struct users_user entry;
    tap_ok(users_find_in_text(passwd, strlen(passwd), 1000, line, &entry) && entry.gid == 1001 &&
               strcmp(entry.home, "/home/ann") == 0 && strcmp(entry.shell, "/bin/zsh") == 0,
           "the other fields are taken from the same line");
    char mine[] = "/mine";
    entry = (struct users_user){.home = mine};
    tap_ok(!users_find_in_text(passwd, strlen(passwd), 4321, line, &entry) &&
               strcmp(entry.home, "/mine") == 0,
           "of a user who is not there nothing is taken from other lines");

    char wide[USERS_LINE_MAX + 64];
    memset(wide, 'n', sizeof(wide));
    (void)snprintf(wide + USERS_LINE_MAX, 64, ":x:3:3::/:/bin/sh\nok:x:3:4::/:/bin/sh\n");
    tap_is_str(find(wide, 3), "ok", "a line longer than the limit is passed over");
}

static void test_each(void)
{
    static const char passwd[] = "root:x:0:0::/root:/bin/sh\n"
                                 "broken:x:1\n"
                                 "\n"
                                 "ann:x:1000:1001::/home/ann:/bin/zsh";
    const char *rest = passwd;
    size_t length = strlen(passwd);
    char line[USERS_LINE_MAX];
    struct users_user user;
    tap_ok(users_next_in_text(&rest, &length, line, &user) && strcmp(user.home, "/root") == 0,
           "the first user comes first");
    tap_ok(users_next_in_text(&rest, &length, line, &user) && strcmp(user.home, "/home/ann") == 0,
           "broken lines are passed over, and the last needs no newline");
    tap_ok(!users_next_in_text(&rest, &length, line, &user), "then there are no more");
}

static bool has_uid(const struct users_user *user, void *arg)
{
    return user->uid == *(const uid_t *)arg;
}

static void test_groups(void)
{
    static const char group[] = "root:x:0:\n"
                                "5:x:6:\n"
                                ":x:7:\n"
                                "broken:x\n"
                                "many:x:8:a,b,c";
    char name[USERS_LINE_MAX] = "";
    tap_ok(users_group_in_text(group, strlen(group), 8, name) && strcmp(name, "many") == 0,
           "a group with members is found");
    tap_ok(users_group_in_text(group, strlen(group), 6, name) && strcmp(name, "5") == 0,
           "a group may be called by a number");
    tap_ok(!users_group_in_text(group, strlen(group), 5, name), "which is not its id");
    tap_ok(!users_group_in_text(group, strlen(group), 7, name), "a group without a name is none");
}

/* A uid that nobody has is asked of getent, which says so; none of it takes long or is left. */
static void test_system(void)
{
    char line[USERS_LINE_MAX];
    char name[USERS_LINE_MAX];
    struct users_user user;
    tap_ok(users_find(0, line, &user) && strcmp(user.name, "root") == 0, "root has a name");
    tap_ok(users_group(0, name) && strcmp(name, "root") == 0, "and so has its group");
    tap_ok(!users_find(4294901234U, line, &user), "nobody has a uid out of the way");
    tap_ok(!users_group(4294901234U, name), "nor such a group");
    uid_t wanted = 0;
    tap_ok(users_any(has_uid, &wanted), "root is in the file of users");
    wanted = 4294901234U;
    tap_ok(!users_any(has_uid, &wanted), "such a uid is not");
}

/* What getent answers is read: it knows of root as well. */
static void test_getent(void)
{
    char text[4096];
    char line[USERS_LINE_MAX];
    struct users_user user;
    size_t size = users_ask_getent("passwd", 0, text, sizeof text);
    tap_ok(users_find_in_text(text, size, 0, line, &user) && strcmp(user.home, "/root") == 0,
           "getent's answer is a line of a passwd file");
    size = users_ask_getent("group", 0, text, 4);
    tap_is_int((long)size, 4, "and is cut at the limit");
}

int main(void)
{
    test_users();
    test_each();
    test_groups();
    test_system();
    test_getent();
    return tap_done();
}
