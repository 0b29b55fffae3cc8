/* SPDX-License-Identifier: MIT */
/* What a git record says has moved, in words, and the commands that bring it back. */
#include "git/moved.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files.h"
#include "base/tree.h"
#include "git/take.h"
#include "tap.h"

#define A "1111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "2222222bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char top[64];

static void says(const char *entries, const char *what, const char *commands)
{
    autoclose int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autostr struct str text = {0};
    struct moved moved = {0};
    str_concat(&text, "version 1\nrepo /p/.git\ntree /p\ngitdir ", top, "\n", entries);
    if (files_write(dir, GIT_RECORD, text.data, text.length, NULL) < 0)
        tap_bail("cannot write");
    tap_is_int(moved_read(dir, &moved, NULL), 1, "a record is read");
    tap_is_str(moved.what.data ? moved.what.data : "", what, "what has moved");
    tap_is_str(moved.commands.data ? moved.commands.data : "", commands,
               "and how it is brought back");
    moved_done(&moved);
}

int main(void)
{
    struct moved moved;
    (void)snprintf(top, sizeof top, "/tmp/brig-moved-XXXXXX");
    if (!mkdtemp(top))
        tap_bail("cannot make a directory");
    autoclose int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_is_int(moved_read(dir, &moved, NULL), 0, "there may be none");
    if (files_write(dir, "HEAD", "ref: refs/heads/main\n", 21, NULL) < 0)
        tap_bail("cannot write");
    says("", "", "");
    says("ref refs/heads/main\nold " A "\nnew " B "\n", "moved main from 1111111 to 2222222",
         "git switch -C main 1111111");
    says("ref refs/heads/x\nold " A "\nnew " B "\n", "moved x from 1111111 to 2222222",
         "git branch -f x 1111111");
    says("ref refs/heads/x\nnew " B "\nref refs/tags/y\nold " A "\n", "made x, deleted y",
         "git branch -D x && git tag y 1111111");
    says("ref refs/heads/x$(id)\nold " A "\n", "deleted x$(id)", "git branch 'x$(id)' 1111111");
    says("ref refs/heads/x\nold " A "\nnew " A "\nhead \nold refs/heads/x\nnew refs/heads/main\n",
         "switched to main", "git switch x");
    says("head \nold " A "\nnew refs/heads/main\nindex another\nold x\nnew y\nstashes \nnew " B
         " s\n",
         "switched to main, changed the index, changed the stashes", "git switch --detach 1111111");
    says("ref refs/heads/a\nnew " A "\nref refs/heads/b\nnew " A "\nref refs/heads/c\nnew " A
         "\nref refs/heads/d\nnew " A "\n",
         "made a, made b, made c and 1 more",
         "git branch -D a && git branch -D b && git branch -D c");
    says("ref refs/heads/main\nold " A "\nnew " B "\ntree /q\nref refs/heads/x\nnew " B "\n",
         "moved main from 1111111 to 2222222, made x",
         "git -C /p switch -C main 1111111 && git -C /q branch -D x");
    (void)tree_remove(AT_FDCWD, top, NULL);
    return tap_done();
}
