/* SPDX-License-Identifier: MIT */
/* Paths as text, and opening names that must not lead out; the latter also without openat2(). */
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

/* What holds with and without openat2(). */
static void opens_the_same(int in, const char *how)
{
    tap_is_int(try_open(path_open_beneath, in, "sub/file", O_RDONLY), 0, "%s: a file below", how);
    tap_is_int(try_open(path_open_beneath, in, "./sub//file", O_PATH), 0, "%s: dots", how);
    tap_is_int(try_open(path_open_beneath, in, ".", O_PATH | O_DIRECTORY), 0, "%s: itself", how);
    tap_is_int(try_open(path_open_beneath, in, "sub/", O_RDONLY), 0, "%s: a slash behind", how);
    tap_is_int(try_open(path_open_beneath, in, "sub/file/", O_RDONLY), ENOTDIR,
               "%s: a slash behind a file", how);
    tap_is_int(try_open(path_open_beneath, in, "sub/new", O_CREAT | O_EXCL | O_WRONLY), 0,
               "%s: a new file", how);
    tap_is_int(unlinkat(in, "sub/new", 0), 0, "%s: which exists", how);
    tap_is_int(try_open(path_open_beneath, in, "none", O_RDONLY), ENOENT, "%s: none", how);
    tap_is_int(try_open(path_open_beneath, in, "", O_RDONLY), ENOENT, "%s: an empty name", how);
    tap_is_int(try_open(path_open_beneath, in, "../secret", O_RDONLY), EXDEV, "%s: up", how);
    tap_is_int(try_open(path_open_beneath, in, "/etc", O_RDONLY), EXDEV, "%s: absolute", how);
    tap_is_int(try_open(path_open_beneath, in, "loop", O_RDONLY), ELOOP, "%s: a loop", how);
    tap_is_int(try_open(path_open_beneath, in, "inside", O_PATH | O_NOFOLLOW), 0,
               "%s: a link itself, asked for", how);
    tap_is_int(try_open(path_open_in_root, in, "/sub/file", O_RDONLY), 0, "%s: in root", how);
    tap_is_int(try_open(path_open_in_root, in, "/", O_PATH), 0, "%s: the root", how);
    tap_ok(try_open(path_open_in_root, in, "magic/etc", O_PATH) != 0, "%s: a magic link", how);
    tap_ok(try_open(path_open_in_root, in, "up", O_PATH) != 0, "%s: a link out", how);
}

static void opens_with_openat2(int in)
{
    opens_the_same(in, "openat2");
    tap_is_int(try_open(path_open_beneath, in, "inside/file", O_RDONLY), 0, "a link inside");
    tap_is_int(try_open(path_open_beneath, in, "up", O_RDONLY), EXDEV, "a link leading out");
    tap_is_int(try_open(path_open_beneath, in, "absolute", O_PATH), EXDEV, "an absolute link");
    tap_is_int(try_open(path_open_in_root, in, "absolute/file", O_RDONLY), 0,
               "an absolute link stays in the root");
    tap_is_int(try_open(path_open_in_root, in, "../../sub/file", O_RDONLY), 0,
               "'..' stays in the root");
}

static void opens_by_walking(int in, const char *how)
{
    opens_the_same(in, how);
    tap_is_int(try_open(path_open_beneath, in, "inside/file", O_RDONLY), ELOOP,
               "%s: no link is followed on the way", how);
    tap_is_int(try_open(path_open_beneath, in, "inside", O_PATH), ELOOP, "%s: nor at the end", how);
    tap_is_int(try_open(path_open_beneath, in, "up", O_RDONLY), ELOOP, "%s: nor out", how);
    tap_is_int(try_open(path_open_beneath, in, "sub/..", O_PATH), EXDEV, "%s: no '..'", how);
    tap_is_int(try_open(path_open_in_root, in, "absolute/file", O_RDONLY), ELOOP,
               "%s: none in a root", how);
    tap_is_int(try_open(path_open_in_root, in, "../sub", O_PATH), EXDEV, "%s: no '..' there", how);
}

/* From now on openat2() fails with this errno, in this process. */
static bool forbid_openat2(unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LENGTH(filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
    if (syscall(SYS_openat2, -1, "", NULL, (size_t)0) < 0 && errno == EINVAL)
        opens_with_openat2(in);
    else
        tap_skip("this kernel has no openat2", "opening with openat2");
    /* Of several filters that answer with an errno, the newest one's counts. */
    static const struct {
        unsigned error;
        const char *name;
    } refusals[] = {{EPERM, "EPERM"}, {ENOSYS, "ENOSYS"}};
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        if (forbid_openat2(refusals[i].error))
            opens_by_walking(in, refusals[i].name);
        else
            tap_skip("no seccomp filter can be installed here", "opening without openat2");
    }
    remove_tree(top);
    (void)rmdir(name);
    return tap_done();
}
