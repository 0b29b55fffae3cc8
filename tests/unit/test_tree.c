/* SPDX-License-Identifier: MIT */
/* Trees that a jail has written: counted and removed, whatever is in them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tree.h"
#include "tap.h"

static int make_place(char path[])
{
    if (!mkdtemp(path))
        tap_bail("no directory can be made: %s", strerror(errno));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void touch(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) < 0)
        tap_bail("%s cannot be made: %s", name, strerror(errno));
}

static bool exists(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* `levels` directories in each other, deeper than any path can name. */
static void make_deep(int dir, const char *name, int levels)
{
    int at = dup(dir);
    for (int i = 0; i < levels; i++) {
        const char *this = i == 0 ? name : "d";
        if (mkdirat(at, this, 0700) < 0)
            tap_bail("level %d cannot be made: %s", i, strerror(errno));
        int next = openat(at, this, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    touch(at, "at-the-bottom");
    (void)close(at);
}

static void removing(int place)
{
    struct brig_error err = {0};
    tap_is_int(tree_remove(place, "nothing", &err), 0, "what is not there is removed already");

    touch(place, "kept");
    tap_is_int(mkdirat(place, "tree", 0700), 0, "a tree");
    autoclose int tree = openat(place, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    touch(tree, "file");
    tap_is_int(symlinkat("../kept", tree, "link"), 0, "with a link");
    tap_is_int(symlinkat("/", tree, "root"), 0, "and one to everything");
    (void)mkfifoat(tree, "fifo", 0600);
    (void)mkdirat(tree, "shut", 0700);
    autoclose int shut = openat(tree, "shut", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    touch(shut, "inside");
    (void)fchmod(shut, 0);
    (void)fchmod(tree, 0500);
    tap_ok(tree_size(tree) > 0, "it has a size");
    tap_is_int(tree_remove(place, "tree", &err), 0,
               "is removed with links, fifos and shut directories");
    tap_ok(!exists(place, "tree"), "and gone");
    tap_ok(exists(place, "kept"), "what a link pointed to is not");

    tap_is_int(symlinkat("kept", place, "name"), 0, "a link");
    tap_is_int(tree_remove(place, "name", &err), 0, "a link itself is removed");
    tap_ok(exists(place, "kept"), "and not what it points to");

    make_deep(place, "deep", 6000);
    tap_is_int(tree_remove(place, "deep", &err), 0, "6000 levels are removed");
    tap_ok(!exists(place, "deep"), "and gone");
    tap_is_int(tree_remove(place, "kept", &err), 0, "and a file");
}

/* Mounts an overlay of two filesystems at `merged` in `place`, for this process alone. */
static bool mount_overlay(const char *place)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", place, "tmpfs", 0, NULL) == 0 && chdir(place) == 0 &&
           mkdir("upper", 0700) == 0 && mkdir("work", 0700) == 0 && mkdir("merged", 0700) == 0 &&
           mount("overlay", "merged", "overlay", 0,
                 "lowerdir=/usr/bin,upperdir=upper,workdir=work,userxattr,xino=off") == 0;
}

/* There a file has another device number than its directory. */
static void sizing_overlay(const char *place)
{
    enum { COUNTED, NOT_COUNTED, NO_OVERLAY };
    pid_t pid = fork();
    if (pid == 0) {
        if (!mount_overlay(place) || mkdir("merged/tree", 0700) < 0)
            _exit(NO_OVERLAY);
        int tree = open("merged/tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        touch(tree, "file");
        _exit(tree_size(tree) > 0 ? COUNTED : NOT_COUNTED);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (WEXITSTATUS(status) == NO_OVERLAY)
        tap_skip("only root can mount an overlay", "what is in an overlay has a size");
    else
        tap_is_int(status, COUNTED, "what is in an overlay has a size");
}

int main(void)
{
    char path[] = "/tmp/brig-test-tree.XXXXXX";
    autoclose int place = make_place(path);
    removing(place);
    sizing_overlay(path);
    tap_is_int(rmdir(path), 0, "nothing is left");
    return tap_done();
}
