/* SPDX-License-Identifier: MIT */
/* The layer of whiteouts of a copy-on-write home. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "base/tree.h"
#include "home/mounts.h"
#include "home/overlay_masks.h"
#include "home/overlay_startup.h"
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

/* The layer is the directory `masks` in the working directory. */
static struct overlay_masks begin(int home)
{
    struct overlay_masks masks = OVERLAY_MASKS_INIT;
    (void)tree_remove(AT_FDCWD, "masks", NULL);
    if (mkdir("masks", 0700) < 0 || overlay_masks_begin(&masks, home, "/home/u", NULL) < 0)
        tap_bail("cannot make a layer");
    return masks;
}

static int hide(struct overlay_masks *masks, const char *path)
{
    return overlay_masks_hide(masks, path, NULL);
}

static void test_paths(int home)
{
    struct overlay_masks masks = begin(home);
    char name[NAME_MAX + 2];
    tap_ok(hide(&masks, ".later") == 0 && is_whiteout(masks.layer, ".later"),
           "a missing file is hidden");
    tap_ok(hide(&masks, ".config/a/key") == 0 && is_whiteout(masks.layer, ".config/a/key"),
           "and one in a directory");
    tap_ok(hide(&masks, "none/key") == 0 && is_missing(masks.layer, "none"),
           "but not where there is no directory");
    tap_ok(hide(&masks, "link/key") == 0 && is_missing(masks.layer, "link"), "nor below a link");
    tap_ok(hide(&masks, "file/key") == 0 && is_missing(masks.layer, "file"), "nor below a file");
    tap_ok(hide(&masks, ".later/below/it") == 0, "what is below something hidden is hidden");
    tap_ok(hide(&masks, ".later") == 0 && hide(&masks, ".config/a/key") == 0,
           "to hide it twice does no harm");
    tap_ok(hide(&masks, "../key") == 0 && hide(&masks, "/key") == 0 &&
               is_missing(masks.layer, "key"),
           "a path that leads out is ignored");
    memset(name, 'n', sizeof name - 1);
    name[NAME_MAX + 1] = '\0';
    tap_ok(hide(&masks, name) < 0, "a name can be too long");
    name[NAME_MAX] = '\0';
    tap_ok(hide(&masks, name) == 0, "by one byte");
    overlay_masks_end(&masks);
}

/* Rules and, last, one of brig's own directories. */
static void add_set(struct overlay_masks *masks)
{
    static const char texts[] =
        "/home/u\0.later\0.config/a/key\0.whole/below\0.whole\0.own/below\0.own";
    static struct home_message message;
    message.head = (struct home_request){.mask_count = 5, .own_count = 1, .length = sizeof texts};
    memcpy(message.text, texts, sizeof texts);
    tap_ok(!overlay_masks_have(masks, &message), "a set of masks is unknown");
    tap_ok(overlay_masks_add(masks, &message, NULL) == 0, "it is put into effect");
    tap_ok(overlay_masks_have(masks, &message), "and known then");
    message.head.mask_count = 6;
    tap_ok(!overlay_masks_have(masks, &message), "another one is not");
    message.head.mask_count = 7;
    tap_ok(overlay_masks_add(masks, &message, NULL) < 0, "one with fewer texts is refused");
}

static void test_set(int home)
{
    struct overlay_masks masks = begin(home);
    struct stat wanted, made;
    char value[4];
    add_set(&masks);
    int fd = masks.layer;
    tap_ok(is_whiteout(fd, ".later") && is_whiteout(fd, ".config/a/key"), "with its whiteouts");
    tap_ok(is_whiteout(fd, ".whole"), "a directory is hidden though something below it was");
    tap_ok(fstatat(home, ".config/a", &wanted, 0) == 0 && fstatat(fd, ".config/a", &made, 0) == 0 &&
               wanted.st_mode == made.st_mode && wanted.st_mtim.tv_sec == made.st_mtim.tv_sec &&
               wanted.st_mtim.tv_nsec == made.st_mtim.tv_nsec,
           "directories have the mode and times of the home's");
    autoclose int own = openat(fd, ".own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_ok(is_whiteout(fd, ".own") ||
               (fgetxattr(own, "user.overlay.opaque", value, sizeof value) == 1 && *value == 'y'),
           "brig's own is an opaque directory");
    tap_ok(is_missing(fd, ".own/below") || is_whiteout(fd, ".own"), "and an empty one");
    overlay_masks_end(&masks);
}

static void write_home(int home, const char *path, const char *text)
{
    autoclose int fd = openat(home, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, text, strlen(text)) < 0 || fchmod(fd, 0640) < 0)
        tap_bail("cannot write '%s'", path);
}

static bool has_text(int directory, const char *path, const char *wanted)
{
    autostr struct str text = {0};
    autoclose int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && read_all(fd, 4096, &text) == 0 && str_equal(text.data, wanted);
}

#define MARKER ": # brig: hidden line 1, which sets A_TOKEN\n"

static void test_startup(int home)
{
    static const char texts[] = "/home/u\0.profile\0-*_TOKEN\0+MY_TOKEN";
    static struct home_message message;
    struct overlay_masks masks = begin(home);
    struct stat info;
    message.head =
        (struct home_request){.mask_count = 1, .filter_count = 2, .length = sizeof texts};
    memcpy(message.text, texts, sizeof texts);
    write_home(home, ".bashrc", "A_TOKEN=x\nMY_TOKEN=x\n");
    write_home(home, ".profile", "A_TOKEN=x\n");
    write_home(home, "target", "A_TOKEN=x\n");
    tap_ok(symlinkat("target", home, ".zshrc") == 0 &&
               overlay_masks_add(&masks, &message, NULL) == 0,
           "a set with filters is put into effect");
    int fd = masks.layer;
    tap_ok(has_text(fd, ".bashrc", MARKER "MY_TOKEN=x\n"), "a start-up file lacks hidden lines");
    tap_ok(fstatat(fd, ".bashrc", &info, 0) == 0 && (info.st_mode & 0777) == 0640,
           "and has its mode");
    tap_ok(is_whiteout(fd, ".profile"), "a mask goes first");
    tap_ok(is_whiteout(fd, ".kshrc"), "there is a whiteout for a missing one");
    tap_ok(readlinkat(fd, ".zshrc", message.text, 1) == 1 && has_text(fd, "target", MARKER),
           "a link is a link, and its target lacks hidden lines");
    write_home(home, ".bashrc", "new\nA_TOKEN=y\n");
    write_home(home, ".kshrc", "new\n");
    tap_ok(overlay_startup_show(&masks, NULL) == 0 && has_text(fd, ".bashrc", "new\n" MARKER) &&
               has_text(fd, ".kshrc", "new\n"),
           "changed and new files are shown the next time");
    tap_ok(unlinkat(home, ".bashrc", 0) == 0 && overlay_startup_show(&masks, NULL) == 0 &&
               is_whiteout(fd, ".bashrc") && is_whiteout(fd, ".profile"),
           "and removed ones are gone");
    overlay_masks_end(&masks);
}

static void test_many(int home)
{
    struct overlay_masks masks = begin(home);
    char name[32];
    bool hidden = true;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%sname-%d", i % 2 ? ".config/" : "", i);
        hidden = hidden && hide(&masks, name) == 0 && is_whiteout(masks.layer, name);
    }
    tap_ok(hidden, "many are hidden");
    overlay_masks_end(&masks);
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
    if (top < 0 || fchdir(top) < 0 || mknodat(top, MOUNTS_WHITEOUT, S_IFCHR, 0) < 0 ||
        mknodat(top, MOUNTS_STARTUP_WHITEOUT, S_IFCHR, 0) < 0)
        tap_bail("cannot make a directory and a whiteout");
    int home = make_home(top);
    test_paths(home);
    test_set(home);
    test_startup(home);
    test_many(home);
    (void)close(home);
    (void)close(top);
    tap_ok(tree_remove(AT_FDCWD, path, NULL) == 0, "all of it can be removed");
    return tap_done();
}
