/* SPDX-License-Identifier: MIT */
/* The layer of masks: what is hidden in it, and what is made of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tree.h"
#include "home/layer.h"
#include "tap.h"

#define MANY 3000

static int make_directory(int above, const char *name)
{
    int fd = mkdirat(above, name, 0700) == 0
                 ? openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;
    if (fd < 0)
        tap_bail("cannot make '%s'", name);
    return fd;
}

static int hide(struct layer *layer, int home, const char *path)
{
    return layer_hide(layer, home, path, LAYER_WHITEOUT);
}

static int make(const struct layer *layer, int top, const char *name, int *ret_fd)
{
    *ret_fd = make_directory(top, name);
    return layer_make(layer, *ret_fd, top, "whiteout", NULL);
}

static bool is_whiteout(int directory, const char *path)
{
    struct stat info;
    return fstatat(directory, path, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(info.st_mode) &&
           info.st_rdev == 0;
}

static bool is_missing(int directory, const char *path)
{
    return faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static void test_paths(int home)
{
    struct layer layer = {0};
    char name[NAME_MAX + 2];
    tap_ok(!layer_hides(&layer, ".ssh"), "an empty layer hides nothing");
    tap_ok(hide(&layer, home, ".later") == 1, "what is not there is hidden");
    tap_ok(hide(&layer, home, ".config/a/key") == 1, "and what is in a directory");
    tap_ok(hide(&layer, home, "none/key") == 0, "but not where there is no directory");
    tap_ok(hide(&layer, home, "link/key") == 0, "nor below a link");
    tap_ok(hide(&layer, home, "file/key") == 0, "nor below a file");
    tap_ok(layer_hides(&layer, ".later") && layer_hides(&layer, ".later/below/it"),
           "it is known what is hidden");
    tap_ok(layer_hides(&layer, "./.config//a/./key"), "however it is written");
    tap_ok(!layer_hides(&layer, ".config") && !layer_hides(&layer, ".config/a/keys") &&
               !layer_hides(&layer, ".config/a/ke") && !layer_hides(&layer, "key"),
           "and what is not");
    tap_ok(hide(&layer, home, ".") == 0 && hide(&layer, home, ".config/..") == 0,
           "no directory itself is meant by its dots");
    memset(name, 'n', sizeof name - 1);
    name[NAME_MAX + 1] = '\0';
    tap_ok(hide(&layer, home, name) == -ENAMETOOLONG, "a name can be too long");
    name[NAME_MAX] = '\0';
    tap_ok(hide(&layer, home, name) == 1, "by one byte");
    layer_done(&layer);
}

static void test_making(int home, int top)
{
    struct layer layer = {0};
    struct stat wanted, made;
    int fd;
    char value[4];
    (void)hide(&layer, home, ".later");
    (void)hide(&layer, home, ".config/a/key");
    (void)hide(&layer, home, ".whole/below");
    (void)hide(&layer, home, ".whole");
    (void)layer_hide(&layer, home, ".own", LAYER_OPAQUE);
    (void)hide(&layer, home, ".own");
    (void)hide(&layer, home, ".own/below");
    tap_ok(make(&layer, top, "made", &fd) == 0, "a layer is made");
    tap_ok(is_whiteout(fd, ".later") && is_whiteout(fd, ".config/a/key"), "with its whiteouts");
    tap_ok(is_whiteout(fd, ".whole"), "a directory is hidden though something below it was");
    tap_ok(fstatat(home, ".config/a", &wanted, 0) == 0 && fstatat(fd, ".config/a", &made, 0) == 0 &&
               wanted.st_mode == made.st_mode && wanted.st_mtim.tv_sec == made.st_mtim.tv_sec &&
               wanted.st_mtim.tv_nsec == made.st_mtim.tv_nsec,
           "directories have the mode and times of those they stand for");
    autoclose int own = openat(fd, ".own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_ok(is_whiteout(fd, ".own") ||
               (fgetxattr(own, "user.overlay.opaque", value, sizeof value) == 1 && *value == 'y'),
           "what is to be mounted on is an opaque directory");
    tap_ok(is_missing(fd, ".own/below") || is_whiteout(fd, ".own"), "and an empty one");
    tap_ok(layer_make(&layer, fd, top, "whiteout", NULL) < 0, "where something is it is not made");
    (void)close(fd);
    layer_done(&layer);
}

static void test_many(int home, int top)
{
    struct layer layer = {0};
    char name[32];
    bool hidden = true, made = true;
    int fd;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%sname-%d", i % 2 ? ".config/" : "", i);
        hidden = hidden && hide(&layer, home, name) == 1 && hide(&layer, home, name) == 1;
    }
    tap_ok(hidden && layer.count == MANY + 2, "many are hidden, and each once");
    tap_ok(make(&layer, top, "many", &fd) == 0, "and made");
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%sname-%d", i % 2 ? ".config/" : "", i);
        made = made && layer_hides(&layer, name) && is_whiteout(fd, name);
    }
    tap_ok(made && !layer_hides(&layer, "name-1"), "none is missed");
    (void)close(fd);
    layer_done(&layer);
}

static int make_home(int top)
{
    int home = make_directory(top, "home");
    (void)close(make_directory(home, ".config"));
    (void)close(make_directory(home, ".config/a"));
    (void)close(make_directory(home, ".whole"));
    (void)close(make_directory(home, ".own"));
    int file = openat(home, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
    if (file < 0 || symlinkat(".config", home, "link") < 0 ||
        fchmodat(home, ".config/a", 0750, 0) < 0 || utimensat(home, ".config/a", times, 0) < 0)
        tap_bail("cannot make a home");
    (void)close(file);
    return home;
}

int main(void)
{
    char path[] = "/tmp/brig-layer.XXXXXX";
    int top = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (top < 0 || mknodat(top, "whiteout", S_IFCHR, 0) < 0)
        tap_bail("cannot make a directory and a whiteout");
    int home = make_home(top);
    test_paths(home);
    test_making(home, top);
    test_many(home, top);
    (void)close(home);
    (void)close(top);
    tap_ok(tree_remove(AT_FDCWD, path, NULL) == 0, "all of it can be removed");
    return tap_done();
}
