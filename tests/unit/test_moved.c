/* SPDX-License-Identifier: MIT */
/* What a git record says has moved, in words. */
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

static void says(const char *entries, const char *what)
{
    autoclose int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autostr struct str text = {0};
    autostr struct str moved = {0};
    str_concat(&text, "version 1\nrepo /p/.git\ntree /p\ngitdir ", top, "\n", entries);
    if (files_write(dir, GIT_RECORD, text.data, text.length, NULL) < 0)
        tap_bail("cannot write");
    tap_is_int(moved_read(dir, &moved, NULL), 1, "a record is read");
    tap_is_str(moved.data ? moved.data : "", what, "what has moved");
}

int main(void)
{
    autostr struct str moved = {0};
    (void)snprintf(top, sizeof top, "/tmp/brig-moved-XXXXXX");
    if (!mkdtemp(top))
        tap_bail("cannot make a directory");
    autoclose int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_is_int(moved_read(dir, &moved, NULL), 0, "there may be none");
    says("", "");
    says("ref refs/heads/main\nold " A "\nnew " B "\n", "moved main from 1111111 to 2222222");
    says("ref refs/heads/x\nold " A "\nnew " B "\n", "moved x from 1111111 to 2222222");
    says("ref refs/heads/x\nnew " B "\nref refs/tags/y\nold " A "\n", "made x, deleted y");
    says("ref refs/heads/x$(id)\nold " A "\n", "deleted x$(id)");
    says("ref refs/heads/x\nold " A "\nnew " A "\nhead \nold refs/heads/x\nnew refs/heads/main\n",
         "switched to main");
    says("head \nold " A "\nnew refs/heads/main\nindex another\nold x\nnew y\nstashes \nnew " B
         " s\n",
         "switched to main, changed the index, changed the stashes");
    says("ref refs/heads/a\nnew " A "\nref refs/heads/b\nnew " A "\nref refs/heads/c\nnew " A
         "\nref refs/heads/d\nnew " A "\nref refs/heads/e\nold " A "\n",
         "made a, made b, made c, deleted e and 1 more");
    says("ref refs/notes/commits\nnew " B "\n", "made refs/notes/commits");
    says("ref refs/heads/main\nold " A "\nnew " B
         "\nrepo /p/s/.git\ntree /p/s\nref refs/heads/main\nnew " B "\n",
         "moved main from 1111111 to 2222222, made main in s");
    says("ref refs/heads/main\nold " A "\nnew " B "\ntree /q\nref refs/heads/x\nnew " B "\n",
         "moved main from 1111111 to 2222222, made x");
    says("reversed 1\nref refs/heads/main\nold " A "\nnew " B "\nplaced /p\nnew x\n",
         "moved main from 2222222 to 1111111, took away the repository /p");
    (void)tree_remove(AT_FDCWD, top, NULL);
    return tap_done();
}
