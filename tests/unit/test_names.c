/* SPDX-License-Identifier: MIT */
/* What is certainly not in a directory. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home/names.h"
#include "tap.h"

#define MANY 300

static void touch(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        tap_bail("cannot make '%s'", name);
    (void)close(fd);
}

static void clear(int dir, const char *path)
{
    char name[32];
    (void)unlinkat(dir, ".ssh", 0);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "file-%d", i);
        (void)unlinkat(dir, name, 0);
    }
    (void)rmdir(path);
}

static void test_directory(int dir)
{
    struct names names;
    names_read(&names, dir);
    tap_ok(names.known && names.empty, "an empty directory can be read");
    tap_ok(!names_may_have(&names, ".ssh"), "nothing is in it");
    tap_ok(!names_may_have(&names, ".ssh/id"), "nor below what is not");
    touch(dir, ".ssh");
    tap_ok(!names_may_have(&names, ".ssh"), "what is made later is not known");
    names_read(&names, dir);
    tap_ok(names_may_have(&names, ".ssh") && !names.empty, "what is there may be there");
    tap_ok(names_may_have(&names, ".ssh/id"), "and what is below it");
    tap_ok(!names_may_have(&names, ".ss") && !names_may_have(&names, ".sshd"),
           "but not what is called a little otherwise");
}

static void test_many(int dir)
{
    struct names names;
    char name[32];
    bool all = true;
    int missing = 0;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "file-%d", i);
        touch(dir, name);
    }
    names_read(&names, dir);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "file-%d", i);
        all = all && names_may_have(&names, name);
        (void)snprintf(name, sizeof name, "other-%d", i);
        missing += !names_may_have(&names, name);
    }
    tap_ok(all, "none of many is missed");
    tap_ok(missing > MANY * 3 / 4, "most that are not there are known not to be: %d", missing);
}

/* A directory that has a name by the other spelling too, though it was not listed. */
static void test_folding(int dir)
{
    struct names names = {.known = true};
    char other[NAME_MAX + 1];
    tap_ok(names_flip_case(".ssh", other) && strcmp(other, ".Ssh") == 0, "a letter is turned over");
    tap_ok(!names_flip_case("..", other), "where there is one");
    tap_ok(names_fold(&names, dir, ".ssh"), "what is found but was not listed betrays folding");
    names_read(&names, dir);
    tap_ok(!names_fold(&names, dir, ".ssh"), "what was listed does not");
    tap_ok(!names_fold(&names, dir, ".Ssh"), "nor what is not found");
}

int main(void)
{
    char path[] = "/tmp/brig-names.XXXXXX";
    int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0)
        tap_bail("cannot make a directory");
    test_directory(dir);
    test_many(dir);
    test_folding(dir);
    struct names names;
    names_read(&names, -1);
    tap_ok(!names.known && !names.empty && names_may_have(&names, "x"),
           "what cannot be read may have anything");
    clear(dir, path);
    (void)close(dir);
    return tap_done();
}
