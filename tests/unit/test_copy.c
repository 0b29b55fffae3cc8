/* SPDX-License-Identifier: MIT */
/* Exact copies of single files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/tree.h"
#include "changes/layer/compare.h"
#include "changes/operation/copy.h"
#include "tap.h"

#define HOLE ((off_t)8 << 20)

static int place; /* the directory of the test */

static struct stat info_of(const char *name)
{
    struct stat info;
    if (fstatat(place, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        tap_bail("'%s' is missing: %s", name, strerror(errno));
    return info;
}

static int make(const char *name, const char *text)
{
    int fd = openat(place, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
        tap_bail("cannot make '%s': %s", name, strerror(errno));
    return fd;
}

static int copy(const char *from, const char *to, unsigned flags)
{
    struct stat info = info_of(from);
    struct brig_error err = {0};
    const struct copy_source source = {
        .dir = place, .name = from, .info = &info, .xattrs_dir = -1, .flags = flags};
    int status = copy_object(&source, place, to, NULL, &err);
    if (status < 0)
        tap_diag("%s", err.message);
    return status;
}

static bool same_text(const char *one, const char *other)
{
    char a[64] = "", b[64] = "";
    autoclose int left = openat(place, one, O_RDONLY | O_CLOEXEC);
    autoclose int right = openat(place, other, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(left, a, sizeof a);
    return length >= 0 && read(right, b, sizeof b) == length && memcmp(a, b, sizeof a) == 0;
}

static void copies_files(void)
{
    const struct timespec times[] = {{.tv_sec = 1000000000, .tv_nsec = 5},
                                     {.tv_sec = 1100000000, .tv_nsec = 123456789}};
    autoclose int file = make("file", "text\n");
    (void)futimens(file, times);
    tap_is_int(copy("file", "file.copy", COPY_SYNC), 0, "a file is copied");
    struct stat info = info_of("file.copy");
    tap_ok(same_text("file", "file.copy"), "with its contents");
    tap_is_int(info.st_mode, S_IFREG | 0640, "its mode");
    tap_ok(info.st_mtim.tv_sec == 1100000000 && info.st_mtim.tv_nsec == 123456789,
           "and its time, to the nanosecond");

    autoclose int hole = make("hole", "begin");
    if (pwrite(hole, "end", 3, HOLE) != 3)
        tap_bail("cannot write a file with a hole");
    tap_is_int(copy("hole", "hole.copy", 0), 0, "a file with a hole is copied");
    info = info_of("hole.copy");
    tap_is_int(info.st_size, HOLE + 3, "its size is the same");
    tap_ok((off_t)info.st_blocks * 512 < HOLE, "and the hole stays one");

    autoclose int unreadable = make("unreadable", "text");
    (void)fchmod(unreadable, 0);
    tap_is_int(copy("unreadable", "unreadable.copy", 0), 0,
               "the owner's file without permissions is copied");
    tap_is_int(info_of("unreadable").st_mode & 07777, 0, "and stays without permissions");
}

static void copies_special_files(void)
{
    if (symlinkat("else where", place, "link") < 0 || mkfifoat(place, "fifo", 0600) < 0 ||
        mkdirat(place, "directory", 0750) < 0 || fchmodat(place, "directory", 02550, 0) < 0)
        tap_bail("cannot make files: %s", strerror(errno));
    char target[32] = "";
    tap_is_int(copy("link", "link.copy", 0), 0, "a link is copied");
    tap_ok(readlinkat(place, "link.copy", target, sizeof target - 1) > 0, "as a link");
    tap_is_str(target, "else where", "to the same target");
    tap_is_int(copy("fifo", "fifo.copy", 0), 0, "a FIFO is copied");
    tap_is_int(info_of("fifo.copy").st_mode, S_IFIFO | 0600, "as a FIFO, without being opened");
    tap_is_int(copy("directory", "directory.copy", 0), 0,
               "a directory is copied without its contents");
    tap_is_int(info_of("directory.copy").st_mode, S_IFDIR | 02550, "with its mode");
    tap_is_int(copy("directory", "directory.open", COPY_WRITABLE), 0,
               "and writable for filling it");
    tap_is_int(info_of("directory.open").st_mode, S_IFDIR | 02750, "with more rights of the owner");
}

static void copies_attributes(void)
{
    char value[8] = "";
    autoclose int file = make("attributes", "");
    if (fsetxattr(file, "user.note", "yes", 3, 0) < 0) {
        tap_skip("no extended attributes here", "extended attributes are copied");
        return;
    }
    (void)fsetxattr(file, "user.overlay.opaque", "y", 1, 0);
    (void)fsetxattr(file, "user.fuseoverlayfs.opaque", "y", 1, 0);
    (void)mkdirat(place, "copies", 0700);
    autoclose int copies = openat(place, "copies", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_is_int(copy("attributes", "copies/attributes", 0), 0, "a file with attributes is copied");
    autoclose int made = openat(copies, "attributes", O_RDONLY | O_CLOEXEC);
    tap_ok(fgetxattr(made, "user.note", value, sizeof value) == 3 && memcmp(value, "yes", 3) == 0,
           "with its attributes");
    tap_ok(fgetxattr(made, "user.overlay.opaque", value, sizeof value) < 0 &&
               fgetxattr(made, "user.fuseoverlayfs.opaque", value, sizeof value) < 0,
           "but not with those of overlayfs");
    tap_ok(compare_xattrs(place, copies, "attributes") == 0, "which do not make a difference");
    (void)fsetxattr(made, "user.other", "", 0, 0);
    tap_is_int(compare_xattrs(place, copies, "attributes"), COMPARE_XATTRS, "others do");
    struct stat info = info_of("attributes");
    tap_is_int(copy_metadata(file, &info, made, 0, NULL), 0, "metadata are copied");
    tap_ok(compare_xattrs(place, copies, "attributes") == 0,
           "and attributes that the original does not have are removed");
}

static void drops_set_id_bits(void)
{
    autoclose int file = make("setuid", "");
    (void)fchmod(file, 06755);
    tap_is_int(copy("setuid", "plain", 0), 0, "a set-id file is copied");
    tap_is_int(info_of("plain").st_mode & 07777, 0755, "without the set-id bits");
    tap_is_int(copy("setuid", "risky", COPY_RISKY), 0, "with COPY_RISKY");
    tap_is_int(info_of("risky").st_mode & 07777, 06755, "they are kept");
}

static int fill(void *context, int fd, struct brig_error *err)
{
    (void)err;
    return write_all(fd, context, strlen(context)) < 0 ? BRIG_E_SYSTEM : 0;
}

static int fill_badly(void *context, int fd, struct brig_error *err)
{
    (void)fill(context, fd, err);
    return BRIG_E_SYSTEM;
}

static void fills_and_fails(void)
{
    char text[] = "filled";
    struct stat info = info_of("file");
    struct copy_source source = {
        .dir = -1, .name = "file", .info = &info, .xattrs_dir = -1, .fill = fill, .context = text};
    autoclose int wanted = make("wanted", text);
    tap_is_int(copy_object(&source, place, "filled", NULL, NULL), 0, "the caller fills a file");
    tap_ok(same_text("filled", "wanted"), "with its contents");
    tap_is_int(info_of("filled").st_mode, S_IFREG | 0640, "and the wanted mode");
    source.fill = fill_badly;
    tap_ok(copy_object(&source, place, "failed", NULL, NULL) < 0, "a failure is passed on");
    tap_ok(faccessat(place, "failed", F_OK, 0) < 0, "and leaves nothing behind");
    struct brig_error err = {0};
    info = info_of("hole");
    source = (struct copy_source){.dir = place, .name = "file", .info = &info, .xattrs_dir = -1};
    tap_ok(copy_object(&source, place, "failed", NULL, &err) < 0 && err.sys_errno == ESTALE,
           "another file than the one that was examined is not copied");
    source.name = "link";
    tap_ok(copy_object(&source, place, "failed", NULL, &err) < 0, "nor is a link followed");
}

/* A file with three megabytes of hole, a word, and a hole up to its end. */
static void make_sparse(int dir, const char *name, const char *word, bool zeros)
{
    autoclose int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    static const char zero[4096];
    if (fd < 0 || ftruncate(fd, HOLE) < 0 || (zeros && pwrite(fd, zero, sizeof zero, 0) < 0) ||
        pwrite(fd, word, strlen(word), 3 << 20) < 0)
        tap_bail("cannot make '%s': %s", name, strerror(errno));
}

static bool are_equal(int left, int right)
{
    struct stat one, other;
    return fstatat(left, "sparse", &one, 0) == 0 && fstatat(right, "sparse", &other, 0) == 0 &&
           compare_contents(left, &one, right, &other, "sparse");
}

static void compares_holes(void)
{
    if (mkdirat(place, "other", 0700) < 0)
        tap_bail("no directory can be made: %s", strerror(errno));
    autoclose int other = openat(place, "other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_sparse(place, "sparse", "word", false);
    make_sparse(other, "sparse", "word", false);
    tap_ok(are_equal(place, other), "files with holes are equal");
    make_sparse(other, "sparse", "word", true);
    tap_ok(are_equal(place, other), "a hole is equal to zeros");
    make_sparse(other, "sparse", "worm", false);
    tap_ok(!are_equal(place, other), "what is between two holes makes a difference");
    make_sparse(other, "sparse", "", false);
    tap_ok(!are_equal(place, other) && !are_equal(other, place), "also where the other has a hole");
    make_sparse(place, "sparse", "", false);
    tap_ok(are_equal(place, other), "two holes are equal");
}

int main(void)
{
    char path[] = "/var/tmp/brig-copy-XXXXXX";
    (void)umask(022);
    if (!mkdtemp(path))
        tap_bail("no directory can be made: %s", strerror(errno));
    place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    copies_files();
    copies_special_files();
    copies_attributes();
    drops_set_id_bits();
    fills_and_fails();
    compares_holes();
    (void)close(place);
    (void)tree_remove(AT_FDCWD, path, NULL);
    return tap_done();
}
