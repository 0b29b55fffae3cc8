/* SPDX-License-Identifier: MIT */
/* Paths as text, and opening names that must not lead out. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "tap.h"

/* ---- Text --------------------------------------------------------------------------------- */

static void becomes(const char *path, unsigned flags, const char *wanted)
{
    struct brig_error err = {0};
    autofree char *got = NULL;
    if (path_normalise(path, flags, &got, &err) < 0)
        tap_diag("%s", err.message);
    tap_is_str(got, wanted, "'%s' becomes '%s'", path, wanted);
}

static void is_refused(const char *path, const char *reason)
{
    struct brig_error err = {0};
    char *got = NULL;
    tap_is_int(path_normalise(path, 0, &got, &err), BRIG_E_INVALID, "'%.40s' is refused",
               path ? path : "NULL");
    tap_has_str(err.message, reason, "because: %s", reason);
    tap_ok(!got, "and nothing is returned");
}

static void normalises(void)
{
    becomes("/", 0, "/");
    becomes("///", 0, "/");
    becomes("/.", 0, "/");
    becomes("/./a//b/./c/", 0, "/a/b/c");
    becomes("/a b\nc", 0, "/a b\nc");
    becomes("/..a/...", 0, "/..a/...");
    becomes("/a/../b/..", PATH_KEEP_DOTDOT, "/a/../b/..");
    is_refused(NULL, "empty");
    is_refused("", "empty");
    is_refused("a/b", "relative");
    is_refused("/a/../b", "'..'");
    is_refused("/..", "'..'");
}

static void keeps_to_the_limits(void)
{
    char path[PATH_LENGTH_MAX + 2];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 200 == 0 ? '/' : 'a';
    path[PATH_LENGTH_MAX] = '\0';
    becomes(path, 0, path);
    path[PATH_LENGTH_MAX] = 'a';
    path[PATH_LENGTH_MAX + 1] = '\0';
    is_refused(path, "too long");
    char name[1 + PATH_COMPONENT_MAX + 2] = "/";
    memset(name + 1, 'n', PATH_COMPONENT_MAX);
    becomes(name, 0, name);
    name[1 + PATH_COMPONENT_MAX] = 'n';
    is_refused(name, "a name of 256 bytes");
}

static void absolute_is(const char *cwd, const char *path, const char *wanted)
{
    autofree char *got = NULL;
    (void)path_make_absolute(cwd, path, &got, NULL);
    tap_is_str(got, wanted, "'%s' in '%s' is '%s'", path, cwd, wanted);
}

static void makes_absolute(void)
{
    absolute_is("/home/u", "x", "/home/u/x");
    absolute_is("/home/u", "./x/", "/home/u/x");
    absolute_is("/home/u", ".", "/home/u");
    absolute_is("/home/u", "..", "/home");
    absolute_is("/home/u", "../v", "/home/v");
    absolute_is("/home/u", ".././../../v", "/v");
    absolute_is("/home/u", "a/../b", "/home/u/a/../b");
    absolute_is("/", "x", "/x");
    absolute_is("/home/u", "/x//y", "/x/y");
    struct brig_error err = {0};
    char *got = NULL;
    tap_is_int(path_make_absolute("/home/u", "", &got, &err), BRIG_E_INVALID, "'' is refused");
}

static void compares(void)
{
    tap_ok(path_is_beneath("/a", "/a"), "a path is beneath itself");
    tap_ok(path_is_beneath("/a", "/a/b"), "a child is beneath");
    tap_ok(!path_is_beneath("/a", "/ab"), "a longer name is not");
    tap_ok(!path_is_beneath("/a/b", "/a"), "a parent is not");
    tap_ok(path_is_beneath("/", "/a") && path_is_beneath("/", "/"), "all is beneath /");
    tap_is_int(path_depth("/"), 0, "/ has no depth");
    tap_is_int(path_depth("/a"), 1, "/a has a depth of 1");
    tap_is_int(path_depth("/a/b/c"), 3, "/a/b/c has a depth of 3");
}

/* ---- Opening ------------------------------------------------------------------------------ */

typedef int (*opener)(int, const char *, int, mode_t, int *, struct brig_error *);

/* Opens and closes; 0 or the errno. */
static int try_open(opener open_it, int dir, const char *name, int flags)
{
    struct brig_error err = {0};
    autoclose int fd = -1;
    if (open_it(dir, name, flags, 0600, &fd, &err) == 0)
        return fcntl(fd, F_GETFD) == FD_CLOEXEC ? 0 : -1;
    return err.sys_errno;
}

static void make_tree(int top)
{
    if (mkdirat(top, "in", 0700) < 0 || mkdirat(top, "in/sub", 0700) < 0 ||
        symlinkat("sub", top, "in/inside") < 0 || symlinkat("../secret", top, "in/up") < 0 ||
        symlinkat("/sub", top, "in/absolute") < 0 || symlinkat("loop", top, "in/loop") < 0 ||
        symlinkat("/proc/self/root", top, "in/magic") < 0)
        tap_bail("cannot make the tree: %s", strerror(errno));
    autoclose int secret = openat(top, "secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    autoclose int file = openat(top, "in/sub/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (secret < 0 || file < 0)
        tap_bail("cannot make the files: %s", strerror(errno));
}

static void remove_tree(int top)
{
    static const char *const names[] = {"in/sub/new",  "in/sub/file", "in/inside", "in/up",
                                        "in/absolute", "in/loop",     "in/magic",  "secret"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        (void)unlinkat(top, names[i], 0);
    (void)unlinkat(top, "in/sub", AT_REMOVEDIR);
    (void)unlinkat(top, "in", AT_REMOVEDIR);
}

static void opens(int in)
{
    tap_is_int(try_open(path_open_beneath, in, "sub/file", O_RDONLY), 0, "a file below");
    tap_is_int(try_open(path_open_beneath, in, "./sub//file", O_PATH), 0, "dots");
    tap_is_int(try_open(path_open_beneath, in, ".", O_PATH | O_DIRECTORY), 0, "itself");
    tap_is_int(try_open(path_open_beneath, in, "sub/", O_RDONLY), 0, "a slash behind");
    tap_is_int(try_open(path_open_beneath, in, "sub/file/", O_RDONLY), ENOTDIR,
               "a slash behind a file");
    tap_is_int(try_open(path_open_beneath, in, "sub/new", O_CREAT | O_EXCL | O_WRONLY), 0,
               "a new file");
    tap_is_int(unlinkat(in, "sub/new", 0), 0, "which exists");
    tap_is_int(try_open(path_open_beneath, in, "none", O_RDONLY), ENOENT, "none");
    tap_is_int(try_open(path_open_beneath, in, "", O_RDONLY), ENOENT, "an empty name");
    tap_is_int(try_open(path_open_beneath, in, "../secret", O_RDONLY), EXDEV, "up");
    tap_is_int(try_open(path_open_beneath, in, "/etc", O_RDONLY), EXDEV, "absolute");
    tap_is_int(try_open(path_open_beneath, in, "loop", O_RDONLY), ELOOP, "a loop");
    tap_is_int(try_open(path_open_beneath, in, "inside", O_PATH | O_NOFOLLOW), 0,
               "a link itself, asked for");
    tap_is_int(try_open(path_open_in_root, in, "/sub/file", O_RDONLY), 0, "in root");
    tap_is_int(try_open(path_open_in_root, in, "/", O_PATH), 0, "the root");
    tap_ok(try_open(path_open_in_root, in, "magic/etc", O_PATH) != 0, "a magic link");
    tap_ok(try_open(path_open_in_root, in, "up", O_PATH) != 0, "a link out");
}

static void opens_links(int in)
{
    tap_is_int(try_open(path_open_beneath, in, "inside/file", O_RDONLY), 0, "a link inside");
    tap_is_int(try_open(path_open_beneath, in, "up", O_RDONLY), EXDEV, "a link leading out");
    tap_is_int(try_open(path_open_beneath, in, "absolute", O_PATH), EXDEV, "an absolute link");
    tap_is_int(try_open(path_open_in_root, in, "absolute/file", O_RDONLY), 0,
               "an absolute link stays in the root");
    tap_is_int(try_open(path_open_in_root, in, "../../sub/file", O_RDONLY), 0,
               "'..' stays in the root");
}

static int try_plain(int in, const char *path, int flags)
{
    autoclose int fd = path_open_plain(in, path, flags);
    return fd < 0 ? errno : 0;
}

static void opens_plain(int in)
{
    tap_is_int(try_plain(in, "sub/file", O_RDONLY), 0, "a path without links");
    tap_is_int(try_plain(in, "", O_PATH), 0, "the directory itself");
    tap_is_int(try_plain(in, "inside/file", O_RDONLY), ELOOP, "a link on the path");
    tap_is_int(try_plain(in, "inside", O_PATH), ELOOP, "a link at its end");
    tap_is_int(try_plain(in, "inside", O_PATH | O_NOFOLLOW), 0, "the link itself, asked for");
    tap_is_int(try_plain(in, "../secret", O_RDONLY), EXDEV, "up");
}

static void renames(int in)
{
    tap_is_int(path_rename_new(in, "sub/file", in, "inside"), -EEXIST, "a name that is taken");
    tap_is_int(path_rename_new(in, "sub/file", in, "sub/new"), 0, "a name that is free");
    tap_is_int(path_rename_new(in, "sub/file", in, "sub/other"), -ENOENT, "which was the file");
    tap_is_int(path_rename_new(in, "sub/new", in, "sub/file"), 0, "and back");
}

static void next_is(const char **list, const char *wanted)
{
    char path[PATH_LENGTH_MAX + 1] = "";
    bool more = path_next_program(list, "x", path);
    tap_is_str(more ? path : NULL, wanted, "next: %s", wanted ? wanted : "none");
}

static void searches(void)
{
    const char *list = "/bin::b:/usr/bin";
    next_is(&list, "/bin/x");
    next_is(&list, "./x");
    next_is(&list, "b/x");
    next_is(&list, "/usr/bin/x");
    next_is(&list, NULL);
    list = NULL;
    next_is(&list, NULL);
    char longest[PATH_LENGTH_MAX + 8];
    memset(longest, 'd', sizeof longest);
    memcpy(longest + PATH_LENGTH_MAX - 2, ":/a:", 4);
    memcpy(longest + PATH_LENGTH_MAX + 2, "/b", 3);
    longest[0] = '/';
    list = longest;
    char path[PATH_LENGTH_MAX + 1];
    tap_ok(path_next_program(&list, "x", path) && strlen(path) == PATH_LENGTH_MAX,
           "the longest path");
    list = longest;
    tap_ok(path_next_program(&list, "xy", path), "a longer one is skipped");
    tap_is_str(path, "/a/xy", "for the next");
}

int main(void)
{
    normalises();
    keeps_to_the_limits();
    makes_absolute();
    compares();

    char name[] = "/tmp/test_path.XXXXXX";
    if (!mkdtemp(name))
        tap_bail("cannot make a directory: %s", strerror(errno));
    autoclose int top = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    make_tree(top);
    autoclose int in = openat(top, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
    opens(in);
    opens_links(in);
    opens_plain(in);
    renames(in);
    searches();
    remove_tree(top);
    (void)rmdir(name);
    return tap_done();
}
