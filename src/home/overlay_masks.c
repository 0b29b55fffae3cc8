/* SPDX-License-Identifier: MIT */
/* The masks of a copy-on-write home. */
#include "home/overlay_masks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/tree.h"
#include "home/fuse.h"
#include "home/mounts.h"
#include "home/overlay_startup.h"

#define REFRESH_MS 2000

/* ---- the layer of whiteouts ---- */

/* If a directory is in two layers, the mode and times of the upper one are visible: copy those of
 * the home. */
static void copy_times(const struct overlay_masks *masks, const char *path, size_t length)
{
    char directory[PATH_LENGTH_MAX + 1];
    struct stat info;
    (void)snprintf(directory, sizeof directory, "%.*s", (int)length, path);
    if (fstatat(masks->home.fd, directory, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    const struct timespec times[] = {info.st_atim, info.st_mtim};
    (void)utimensat(masks->layer, directory, times, AT_SYMLINK_NOFOLLOW);
}

int overlay_masks_make_parents(const struct overlay_masks *masks, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char above[PATH_LENGTH_MAX + 1];
        struct stat info;
        (void)snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
        if (fstatat(masks->home.fd, above, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(info.st_mode))
            return 0;
        if (mkdirat(masks->layer, above, 0700) == 0
                ? fchmodat(masks->layer, above, info.st_mode & 07777, 0) < 0
                : errno != EEXIST)
            return errno == ENOTDIR ? 0 : -errno;
    }
    return 1;
}

void overlay_masks_settle_parents(const struct overlay_masks *masks, const char *path)
{
    for (const char *slash = strrchr(path, '/'); slash;
         slash = memrchr(path, '/', (size_t)(slash - path)))
        copy_times(masks, path, (size_t)(slash - path));
}

/* Creates an empty opaque directory as a mount point that hides the home's. Before Linux 6.6 the
 * attribute has no effect in a lower layer, so a whiteout is used. */
static int make_opaque(int layer, const char *path)
{
    if (mkdirat(layer, path, 0755) < 0)
        return -errno;
    autoclose int fd = openat(layer, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0)
        return 0;
    (void)unlinkat(layer, path, AT_REMOVEDIR);
    return linkat(AT_FDCWD, MOUNTS_WHITEOUT, layer, path, 0) < 0 ? -errno : 0;
}

/* In a mounted overlay a new whiteout does not affect names that were looked up before. To tell
 * these whiteouts apart, they are not hard links to MOUNTS_WHITEOUT as the others are. */
static int make_entry(const struct overlay_masks *masks, const char *path, bool own)
{
    if (own)
        return make_opaque(masks->layer, path);
    int made = masks->changes >= 0 ? mknodat(masks->layer, path, S_IFCHR, makedev(0, 0))
                                   : linkat(AT_FDCWD, MOUNTS_WHITEOUT, masks->layer, path, 0);
    return made < 0 ? -errno : 0;
}

/* Whether a path or one of its parents was hidden before the overlay was mounted. */
static bool was_hidden(const struct overlay_masks *masks, const char *path)
{
    struct stat first, info;
    bool hidden = false;
    for (size_t length = strcspn(path, "/"); !hidden;
         length += 1 + strcspn(path + length + 1, "/")) {
        char above[PATH_LENGTH_MAX + 1];
        (void)snprintf(above, sizeof above, "%.*s", (int)length, path);
        hidden = fstatat(masks->layer, above, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                 stat(MOUNTS_WHITEOUT, &first) == 0 && info.st_ino == first.st_ino;
        if (!path[length])
            break;
    }
    return hidden;
}

/* Replaces a directory that was created as a parent of a hidden path; but not in a mounted
 * overlay. */
static int replace_directory(const struct overlay_masks *masks, const char *path, bool own)
{
    struct stat info;
    if (masks->changes >= 0 || fstatat(masks->layer, path, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISDIR(info.st_mode))
        return 0;
    (void)tree_remove(masks->layer, path, NULL);
    return make_entry(masks, path, own);
}

static int hide_in_layer(const struct overlay_masks *masks, const char *path, bool own,
                         struct brig_error *err)
{
    int result = make_entry(masks, path, own);
    if (result == -ENOENT) {
        result = overlay_masks_make_parents(masks, path);
        if (result == 0)
            return 0; /* missing in the home: it is watched */
        result = result > 0 ? make_entry(masks, path, own) : result;
    }
    if (result == -EEXIST)
        result = replace_directory(masks, path, own);
    if (result == -ENOTDIR)
        return 0; /* a parent is hidden already */
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot hide '%s'", path);
    overlay_masks_settle_parents(masks, path);
    return 0;
}

int overlay_masks_hide(struct overlay_masks *masks, const char *path, struct brig_error *err)
{
    return mask_is_path(path) ? hide_in_layer(masks, path, false, err) : 0;
}

/* ---- covers on the mounted overlay ---- */

static int open_directory(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whether a run has changed a file of the home: then the upper directory has a copy. */
static bool has_copy(const struct overlay_masks *masks, const char *path)
{
    autoclose int fd = path_open_plain(masks->changes, path, O_PATH | O_NOFOLLOW);
    const char *mark = mounts_is_fuse() ? "user.fuseoverlayfs.origin" : "user.overlay.origin";
    return fd >= 0 && getxattr(path_proc(fd).text, mark, NULL, 0) >= 0;
}

/* Only the marks of the mounted kind of overlay count: a run could create those of the other
 * kind. */
static bool is_opaque(int directory)
{
    char value[4];
    if (mounts_is_fuse())
        return faccessat(directory, FUSE_OPAQUE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    return fgetxattr(directory, "user.overlay.opaque", value, sizeof value) > 0 && value[0] == 'y';
}

/* Whether everything visible at a path was created by a run, and nothing of the home shows
 * through. */
static bool is_of_run(int changes, const char *path)
{
    autoclose int above = open_directory(changes, ".");
    for (const char *rest = path; above >= 0 && *rest;) {
        char name[PATH_COMPONENT_MAX + 1];
        size_t length = strcspn(rest, "/");
        struct stat info;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, rest);
        if (is_opaque(above))
            return true;
        if (fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            return false;
        if (!S_ISDIR(info.st_mode))
            return true;
        int next = open_directory(above, name);
        (void)close(above);
        above = next;
        rest += length + (rest[length] == '/');
    }
    return above >= 0 && is_opaque(above);
}

/* Covers a path in all runs that have a clone of the overlay, if it is visible and belongs to the
 * home or is a copy of its file. */
static int cover(struct overlay_masks *masks, const char *path, struct brig_error *err)
{
    bool copied = has_copy(masks, path);
    autoclose int real = copied ? -1 : path_open_plain(masks->home.fd, path, O_PATH | O_NOFOLLOW);
    if (real < 0 && !copied)
        return 0;
    autoclose int overlay = mounts_open(MOUNTS_OVERLAY);
    autoclose int seen = overlay < 0 ? -1 : path_open_plain(overlay, path, O_PATH | O_NOFOLLOW);
    struct stat info;
    struct statfs system, covered;
    if (seen < 0 || fstat(seen, &info) < 0)
        return 0; /* hidden already */
    if (fstatfs(overlay, &system) < 0 || fstatfs(seen, &covered) < 0 ||
        system.f_type != covered.f_type ||
        (!copied && (was_hidden(masks, path) || is_of_run(masks->changes, path))))
        return 0; /* covered already, or created by a run */
    int result = mounts_cover(seen, S_ISDIR(info.st_mode));
    masks->covered = true;
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "cannot hide '%s'", path) : 0;
}

/* ---- sets ---- */

static void set_done(struct overlay_mask_set *set)
{
    free(set->message);
    free(set->texts);
    *set = (struct overlay_mask_set){0};
}

/* Splits the strings of a message, after the first, which is the home's path. */
static int read_texts(struct overlay_mask_set *set, struct brig_error *err)
{
    const struct home_request *head = &set->message->head;
    const char *text = set->message->text, *end = text + head->length;
    size_t count = 0, wanted = (size_t)head->mask_count + head->shown_count + head->own_count +
                               head->filter_count;
    if (wanted > HOME_RULES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are too many: at most %d",
                         HOME_RULES_MAX);
    set->texts = calloc(wanted + 1, sizeof *set->texts);
    if (!set->texts)
        return brig_fail_nomem(err);
    for (text += strlen(text) + 1; text < end && count < wanted; text += strlen(text) + 1)
        set->texts[count++] = text;
    if (count != wanted)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are fewer than was said");
    set->rules = (struct mask_rules){
        .hidden = set->texts,
        .hidden_count = head->mask_count,
        .shown = set->texts + head->mask_count,
        .shown_count = head->shown_count,
    };
    set->own = set->rules.shown + head->shown_count;
    set->own_count = head->own_count;
    set->filter =
        (struct startup_filter){.rules = set->own + head->own_count, .count = head->filter_count};
    return 0;
}

static int set_init(struct overlay_mask_set *set, const struct home_message *message,
                    struct brig_error *err)
{
    size_t size = sizeof message->head + message->head.length + 1;
    *set = (struct overlay_mask_set){.message = malloc(size)};
    if (!set->message)
        return brig_fail_nomem(err);
    memcpy((void *)set->message, message, size);
    return read_texts(set, err);
}

bool overlay_masks_have(const struct overlay_masks *masks, const struct home_message *message)
{
    const struct home_request *head = &message->head;
    for (size_t i = 0; i < masks->set_count; i++) {
        const struct home_message *known = masks->sets[i].message;
        if (head->mask_count == known->head.mask_count &&
            head->shown_count == known->head.shown_count &&
            head->own_count == known->head.own_count &&
            head->filter_count == known->head.filter_count && head->length == known->head.length &&
            memcmp(known->text, message->text, head->length) == 0)
            return true;
    }
    return false;
}

/* ---- applying ---- */

int overlay_masks_hide_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct overlay_masks *masks = context;
    if (path->outside)
        return 0; /* the runs themselves cover it */
    int status = hide_in_layer(masks, path->path, false, err);
    if (masks->changes >= 0 && (status == 0 || masks->looking))
        status = cover(masks, path->path, err);
    return masks->looking ? 0 : status;
}

static int apply(struct overlay_masks *masks, const struct overlay_mask_set *set,
                 struct brig_error *err)
{
    const struct mask_visitor visitor = {overlay_masks_hide_path, masks, &masks->watch};
    int status = mask_each(&masks->home, &set->rules, &visitor, err);
    for (size_t i = 0; i < set->own_count && status == 0; i++)
        if (mask_is_path(set->own[i]))
            status = hide_in_layer(masks, set->own[i], true, err);
    return status;
}

int overlay_masks_add(struct overlay_masks *masks, const struct home_message *message,
                      struct brig_error *err)
{
    if (overlay_masks_have(masks, message))
        return 0;
    if (masks->set_count == OVERLAY_MASKS_SETS_MAX)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "the runs in this jail have %d different sets of masks, and more are not "
                         "possible: end some of them first",
                         OVERLAY_MASKS_SETS_MAX);
    struct overlay_mask_set set;
    int status = set_init(&set, message, err);
    if (status == 0)
        status = apply(masks, &set, err);
    if (status < 0) {
        set_done(&set);
        return status;
    }
    masks->sets[masks->set_count++] = set;
    return overlay_startup_show(masks, err); /* after the masks, which go first */
}

/* ---- applying again, for new names ---- */

void overlay_masks_look(struct overlay_masks *masks)
{
    masks->looking = true;
    mask_watch_begin(&masks->watch);
    for (size_t i = 0; i < masks->set_count; i++)
        (void)apply(masks, &masks->sets[i], NULL);
    (void)overlay_startup_show(masks, NULL);
    mask_watch_end(&masks->watch);
    masks->looking = false;
}

void overlay_masks_watch(struct overlay_masks *masks)
{
    (void)mask_watch_open(&masks->watch); /* if it fails, everything is checked periodically */
    overlay_masks_look(masks);
}

void overlay_masks_process(struct overlay_masks *masks)
{
    if (!mask_watch_has_news(&masks->watch))
        return;
    mounts_forget(); /* a cached dentry would show a replaced directory without its files */
    overlay_masks_look(masks);
}

void overlay_masks_refresh(struct overlay_masks *masks)
{
    if (clock_now_ms() - masks->watch.looked_ms >= REFRESH_MS)
        overlay_masks_look(masks);
}

/* ---- start and end ---- */

int overlay_masks_begin(struct overlay_masks *masks, int home, const char *path,
                        struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    overlay_masks_end(masks);
    masks->home.fd = fcntl(home, F_DUPFD_CLOEXEC, 0);
    masks->layer = mounts_open_masks();
    masks->path = strdup(path);
    masks->real = path_resolve(path, real) ? strdup(real) : NULL;
    if (masks->home.fd < 0 || masks->layer < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot keep the home directory open");
    if (!masks->path)
        return brig_fail_nomem(err);
    masks->home.path = masks->path;
    masks->home.real = masks->real;
    return 0;
}

static int cover_copy(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct overlay_masks *masks = context;
    return !path->outside && has_copy(masks, path->path) ? cover(masks, path->path, err) : 0;
}

/* Covers copies of masked files that earlier runs have changed: in the upper directory they are
 * above the whiteouts. */
int overlay_masks_mounted(struct overlay_masks *masks, int changes, bool created,
                          struct brig_error *err)
{
    const struct mask_visitor visitor = {.path = cover_copy, .context = masks};
    masks->changes = fcntl(changes, F_DUPFD_CLOEXEC, 0);
    int status = 0;
    for (size_t i = 0; i < masks->set_count && status == 0 && !created; i++)
        status = mask_each(&masks->home, &masks->sets[i].rules, &visitor, err);
    masks->covered = false; /* these covers are made in every mount of the overlay */
    return status;
}

void overlay_masks_end(struct overlay_masks *masks)
{
    int fds[] = {masks->home.fd, masks->layer, masks->changes};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(&fds[i]);
    for (size_t i = 0; i < masks->set_count; i++)
        set_done(&masks->sets[i]);
    free(masks->path);
    free(masks->real);
    mask_watch_done(&masks->watch);
    *masks = OVERLAY_MASKS_INIT;
}
