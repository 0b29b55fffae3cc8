/* SPDX-License-Identifier: MIT */
/* Start-up files in a copy-on-write home. */
#include "home/overlay_startup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "home/mounts.h"
#include "home/overlay_masks.h"
#include "policy/startup.h"

#define NEW                                                                                        \
    "startup-new" /* in the working directory of the holder, on the same tmpfs as the layer */

struct showing {
    struct overlay_masks *masks;
    struct startup_filter filters[OVERLAY_MASKS_SETS_MAX];
    size_t filter_count;
};

/* What the layer should have at a path. */
struct wanted {
    struct stat info; /* of the user's file; st_mode 0: a whiteout */
    struct str text;  /* the contents, or the target of a link */
};

static void wanted_done(struct wanted *wanted)
{
    str_done(&wanted->text);
}

/* ---- the user's file ---- */

static int read_link(int file, struct wanted *wanted, struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(file, "", target, sizeof target);
    if (length < 0 || length > PATH_LENGTH_MAX)
        wanted->info.st_mode = 0;
    else
        str_append_bytes(&wanted->text, target, (size_t)length);
    return wanted->text.failed ? brig_fail_nomem(err) : 0;
}

static int read_file(const struct showing *showing, const char *path, struct wanted *wanted,
                     struct brig_error *err)
{
    autostr struct str text = {0};
    struct startup_text seen = {0};
    autoclose int fd =
        path_open_plain(showing->masks->home.fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &wanted->info) < 0 || !S_ISREG(wanted->info.st_mode) ||
        read_all(fd, STARTUP_FILE_MAX, &text) < 0 || text.length > STARTUP_FILE_MAX) {
        wanted->info.st_mode = 0;
        return 0;
    }
    int status =
        startup_hide(showing->filters, showing->filter_count, text.data, text.length, &seen, err);
    if (status < 0)
        return status;
    wanted->text = seen.text;
    str_done(&seen.names);
    return 0;
}

/* Returns 0, 1 if this is not a file that can be shown, or a code. */
static int find_wanted(const struct showing *showing, const char *path, struct wanted *wanted,
                       struct brig_error *err)
{
    autoclose int file = path_open_plain(showing->masks->home.fd, path, O_PATH | O_NOFOLLOW);
    if (file < 0)
        return 0;
    if (fstat(file, &wanted->info) < 0)
        wanted->info.st_mode = 0;
    if (S_ISLNK(wanted->info.st_mode))
        return read_link(file, wanted, err);
    if (S_ISREG(wanted->info.st_mode))
        return read_file(showing, path, wanted, err);
    return 1;
}

/* ---- the entry in the layer ---- */

static bool is_startup_whiteout(const struct stat *info)
{
    struct stat whiteout;
    return stat(MOUNTS_STARTUP_WHITEOUT, &whiteout) == 0 && info->st_ino == whiteout.st_ino;
}

static bool same_time(struct timespec left, struct timespec right)
{
    return left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec;
}

/* Whether the entry is what is wanted. */
static bool is_current(int layer, const char *path, const struct stat *entry,
                       const struct wanted *wanted)
{
    autostr struct str text = {0};
    if (!wanted->info.st_mode)
        return is_startup_whiteout(entry);
    if ((entry->st_mode & S_IFMT) != (wanted->info.st_mode & S_IFMT) ||
        (size_t)entry->st_size != wanted->text.length)
        return false;
    if (S_ISLNK(entry->st_mode)) {
        char target[PATH_LENGTH_MAX + 1];
        ssize_t length = readlinkat(layer, path, target, sizeof target);
        return length == (ssize_t)wanted->text.length &&
               memcmp(target, wanted->text.data, (size_t)length) == 0;
    }
    autoclose int fd = openat(layer, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return entry->st_mode == wanted->info.st_mode &&
           same_time(entry->st_mtim, wanted->info.st_mtim) && fd >= 0 &&
           read_all(fd, STARTUP_FILE_MAX * 2, &text) == 0 && text.length == wanted->text.length &&
           (text.length == 0 || memcmp(text.data, wanted->text.data, text.length) == 0);
}

static int write_file(const struct wanted *wanted)
{
    autoclose int fd = open(NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = fd < 0                    ? -errno
                 : wanted->text.length > 0 ? write_all(fd, wanted->text.data, wanted->text.length)
                                           : 0;
    if (failed == 0 && fchmod(fd, wanted->info.st_mode & 0777) < 0)
        failed = -errno;
    return failed;
}

/* Makes the entry beside the layer and moves it there, so that a run sees either the old or the new one. */
static int place(int layer, const char *path, const struct wanted *wanted)
{
    int failed = 0;
    (void)unlink(NEW);
    if (!wanted->info.st_mode)
        failed = link(MOUNTS_STARTUP_WHITEOUT, NEW) < 0 ? -errno : 0;
    else if (S_ISLNK(wanted->info.st_mode))
        failed = symlink(wanted->text.data, NEW) < 0 ? -errno : 0;
    else
        failed = write_file(wanted);
    const struct timespec times[] = {wanted->info.st_atim, wanted->info.st_mtim};
    if (failed == 0 && wanted->info.st_mode)
        (void)utimensat(AT_FDCWD, NEW, times, AT_SYMLINK_NOFOLLOW);
    if (failed == 0 && renameat(AT_FDCWD, NEW, layer, path) < 0)
        failed = -errno;
    (void)unlink(NEW);
    return failed;
}

/* The layer has no entry: one is made before the overlay is mounted. Later the file may have been seen already, and
 * is hidden. */
static int add_entry(const struct showing *showing, const struct mask_path *path,
                     const struct wanted *wanted, struct brig_error *err)
{
    struct overlay_masks *masks = showing->masks;
    struct stat entry;
    if (masks->changes >= 0) {
        int status = overlay_masks_hide_path(masks, path, err);
        if (fstatat(masks->layer, path->path, &entry, AT_SYMLINK_NOFOLLOW) == 0)
            masks->covered = true; /* for a single run, the overlay is mounted again */
        return status;
    }
    int made = overlay_masks_make_parents(masks, path->path);
    if (made > 0)
        made = place(masks->layer, path->path, wanted);
    if (made < 0 && made != -ENOTDIR) /* a parent is hidden already */
        return brig_fail(err, BRIG_E_SETUP, -made, "cannot hide lines of '%s'", path->path);
    overlay_masks_settle_parents(masks, path->path);
    return 0;
}

static int show_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct showing *showing = context;
    struct overlay_masks *masks = showing->masks;
    __attribute__((cleanup(wanted_done))) struct wanted wanted = {0};
    struct stat entry;
    if (path->outside)
        return 0;
    bool exists = fstatat(masks->layer, path->path, &entry, AT_SYMLINK_NOFOLLOW) == 0;
    bool ours =
        exists && (S_ISREG(entry.st_mode) || S_ISLNK(entry.st_mode) || is_startup_whiteout(&entry));
    if (exists && (!ours || (masks->changes >= 0 && mounts_is_fuse())))
        return 0;
    int status = find_wanted(showing, path->path, &wanted, err);
    if (status != 0)
        return status < 0 ? status : 0;
    if (!exists)
        return add_entry(showing, path, &wanted, err);
    if (is_current(masks->layer, path->path, &entry, &wanted))
        return 0;
    int failed = place(masks->layer, path->path, &wanted);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SETUP, -failed, "cannot hide lines of '%s'", path->path);
    overlay_masks_settle_parents(masks, path->path);
    return 0;
}

int overlay_startup_show(struct overlay_masks *masks, struct brig_error *err)
{
    struct showing showing = {.masks = masks};
    for (size_t i = 0; i < masks->set_count; i++)
        if (masks->sets[i].filter.count > 0)
            showing.filters[showing.filter_count++] = masks->sets[i].filter;
    const struct mask_rules rules = {.hidden = (const char **)(uintptr_t)startup_names,
                                     .hidden_count = startup_name_count};
    const struct mask_visitor visitor = {show_path, &showing, &masks->watch};
    return showing.filter_count == 0 ? 0 : mask_each(&masks->home, &rules, &visitor, err);
}
