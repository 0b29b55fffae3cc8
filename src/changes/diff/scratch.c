/* SPDX-License-Identifier: MIT */
/* Creates and removes temporary repositories. */
#include "changes/diff/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"

#define PREFIX "scratch."
#define TRIES_MAX 100

/* Opens a directory of the record and locks it; -1 if another process has it locked. */
static int open_locked(int record, const char *name, int operation)
{
    autoclose int dir = files_open_dir(record, name);
    while (dir >= 0 && flock(dir, operation) < 0)
        if (errno != EINTR)
            return -1;
    return take_fd(&dir);
}

/* The directory of a running command is locked. */
static void remove_leftovers(int record)
{
    autodir DIR *list = files_list(record, ".");
    for (const struct dirent *item; list && (item = readdir(list));) {
        if (!str_starts_with(item->d_name, PREFIX))
            continue;
        autoclose int dir = open_locked(record, item->d_name, LOCK_EX | LOCK_NB);
        if (dir >= 0)
            (void)tree_remove(record, item->d_name, NULL);
    }
}

/* Creates a directory and locks it. Another command may remove it in between: then -1, as if the
 * name had been taken. */
static int make_locked(int record, const char *name)
{
    struct stat named, opened;
    if (mkdirat(record, name, 0700) < 0)
        return -1;
    autoclose int dir = open_locked(record, name, LOCK_EX);
    if (dir < 0 || fstat(dir, &opened) < 0 ||
        fstatat(record, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != opened.st_ino) {
        errno = EEXIST;
        return -1;
    }
    return take_fd(&dir);
}

int scratch_write(const struct scratch *scratch, const char *name, const void *bytes, size_t length,
                  struct brig_error *err)
{
    autoclose int fd =
        openat(scratch->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = fd < 0 ? -errno : write_all(fd, bytes, length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's record")
                      : 0;
}

/* The files that make a directory a repository. `git init` would copy the user's templates. */
static int fill(const struct scratch *scratch, struct brig_error *err)
{
    static const char *const dirs[] = {"objects", "objects/pack", "refs", "info"};
    static const struct {
        const char *name, *text;
    } files[] = {{"HEAD", "ref: refs/heads/none\n"},
                 {"config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"}};
    for (size_t i = 0; i < ARRAY_LENGTH(dirs); i++)
        if (mkdirat(scratch->dir, dirs[i], 0700) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && status == 0; i++)
        status = scratch_write(scratch, files[i].name, files[i].text, strlen(files[i].text), err);
    return status;
}

int scratch_make(int record, struct scratch *ret_scratch, struct brig_error *err)
{
    struct scratch made = {.record = record, .dir = -1};
    remove_leftovers(record);
    for (int i = 0; i < TRIES_MAX && made.dir < 0; i++) {
        (void)snprintf(made.name, sizeof made.name, PREFIX "%d.%llx", (int)getpid(),
                       (unsigned long long)clock_wall_ns());
        made.dir = make_locked(record, made.name);
        if (made.dir < 0 && errno != EEXIST)
            break;
    }
    if (made.dir < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    int status = fill(&made, err);
    if (status < 0)
        scratch_remove(&made);
    else
        *ret_scratch = made;
    return status;
}

void scratch_remove(struct scratch *scratch)
{
    if (scratch->dir < 0)
        return;
    (void)tree_remove(scratch->record, scratch->name, NULL);
    close_fd(&scratch->dir);
}
