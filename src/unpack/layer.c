/* SPDX-License-Identifier: MIT */
#include "unpack/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"

#define WHITEOUT ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define WHITEOUT_OTHER ".wh..wh." /* aufs keeps its own files under such names */
#define COPY_BYTES 65536

void layer_init(struct layer *layer, int root, int hidden)
{
    *layer = (struct layer){.root = root, .hidden = hidden, .above_fd = -1};
}

void layer_done(struct layer *layer)
{
    close_fd(&layer->above_fd);
}

/* ---- names ---- */

bool layer_clean_name(const char *name, char ret_name[TAR_NAME_MAX + 1])
{
    size_t used = 0, depth = 0;
    while (*name) {
        size_t length = strcspn(name, "/");
        bool dot = length == 1 && name[0] == '.';
        if (length == 2 && name[0] == '.' && name[1] == '.')
            return false;
        if (length > PATH_COMPONENT_MAX || (length > 0 && !dot && ++depth > LAYER_DEPTH_MAX))
            return false;
        if (length > 0 && !dot) {
            if (used > 0)
                ret_name[used++] = '/';
            memcpy(ret_name + used, name, length);
            used += length;
        }
        name += length + (name[length] == '/');
    }
    ret_name[used] = '\0';
    return true;
}

/* Splits "a/b/c" into "a/b" and "c", in place. */
static char *split_name(char *name, const char **ret_above)
{
    char *slash = strrchr(name, '/');
    *ret_above = slash ? name : "";
    if (slash)
        *slash = '\0';
    return slash ? slash + 1 : name;
}

static int bad_name(struct brig_error *err, const char *name)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "the image has a file with the unsafe name '%s'",
                     str_shown(name).text);
}

static int fail_at(struct brig_error *err, const char *what, const char *name)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot %s '%s'", what, str_shown(name).text);
}

/* ---- directories ---- */

/* Opens a directory below another; creates it if `make` is set. */
static int enter(int directory, const char *name, bool make)
{
    int fd = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    if (mkdirat(directory, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens a directory of the layer name by name: the caller's filter has no openat2(). */
static int walk(int root, const char *path, bool make)
{
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    while (*path && at >= 0) {
        char name[PATH_COMPONENT_MAX + 1];
        size_t length = strcspn(path, "/");
        memcpy(name, path, length);
        name[length] = '\0';
        path += length + (path[length] == '/');
        int next = enter(at, name, make);
        int failed = errno;
        (void)close(at);
        errno = failed;
        at = next;
    }
    return at;
}

/* The directory of the next entry: usually that of the last one. It stays the layer's. */
static int open_above(struct layer *layer, const char *path, struct brig_error *err)
{
    if (layer->above_fd >= 0 && strcmp(layer->above, path) == 0)
        return layer->above_fd;
    close_fd(&layer->above_fd);
    layer->above_fd = walk(layer->root, path, true);
    if (layer->above_fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the image has files below '%s', which is not a directory",
                         str_shown(path).text);
    if (layer->above_fd < 0)
        return fail_at(err, "make the directory", path);
    (void)snprintf(layer->above, sizeof layer->above, "%s", path);
    return layer->above_fd;
}

/* Removes what an earlier entry has made at a name. A directory is kept for another one. */
static int make_room(struct layer *layer, int above, const char *name, bool for_directory,
                     struct brig_error *err)
{
    struct stat info;
    if (fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_at(err, "look at", name);
    if (!S_ISDIR(info.st_mode))
        return unlinkat(above, name, 0) < 0 ? fail_at(err, "replace", name) : 0;
    if (for_directory)
        return 1;
    int result = tree_remove(above, name, err);
    close_fd(&layer->above_fd); /* it may have been inside */
    return result;
}

/* ---- kinds of entries ---- */

static void set_time(int above, const char *name, int64_t mtime)
{
    const struct timespec times[2] = {{.tv_sec = mtime}, {.tv_sec = mtime}};
    (void)utimensat(above, name, times, AT_SYMLINK_NOFOLLOW);
}

static int make_directory(int above, const char *name, const struct tar_entry *entry, bool exists,
                          struct brig_error *err)
{
    if (!exists && mkdirat(above, name, 0700) < 0)
        return fail_at(err, "make the directory", name);
    /* The name is a directory that only this process changes. */
    return fchmodat(above, name, (entry->mode & 0777) | 0700, 0) < 0
               ? fail_at(err, "set the mode of", name)
               : 0;
}

static int make_file(int above, const char *name, const struct tar_entry *entry, struct tar *tar,
                     struct brig_error *err)
{
    char buffer[COPY_BYTES];
    autoclose int fd =
        openat(above, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_at(err, "make the file", name);
    int got;
    while ((got = tar_read(tar, buffer, sizeof buffer, err)) > 0) {
        int written = write_all(fd, buffer, (size_t)got);
        if (written < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -written, "cannot write '%s'",
                             str_shown(name).text);
    }
    if (got < 0)
        return got;
    if (fchmod(fd, (entry->mode & 0777) | 0600) < 0)
        return fail_at(err, "set the mode of", name);
    set_time(above, name, entry->mtime);
    return 0;
}

static int make_symlink(int above, const char *name, const struct tar_entry *entry,
                        struct brig_error *err)
{
    if (!entry->link[0])
        return brig_fail(err, BRIG_E_INVALID, 0, "the symbolic link '%s' has no target",
                         str_shown(name).text);
    if (symlinkat(entry->link, above, name) < 0)
        return fail_at(err, "make the symbolic link", name);
    set_time(above, name, entry->mtime);
    return 0;
}

/* A link to a file of the same layer that is no directory. */
static int make_hard_link(struct layer *layer, int above, const char *name,
                          const struct tar_entry *entry, struct brig_error *err)
{
    char target[TAR_NAME_MAX + 1];
    struct stat info;
    if (!layer_clean_name(entry->link, target) || !target[0])
        return bad_name(err, entry->link);
    const char *directory;
    const char *last = split_name(target, &directory);
    autoclose int from = walk(layer->root, directory, false);
    if (from < 0 || fstatat(from, last, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the hard link '%s' leads to '%s', which is not a file of the same layer",
                         str_shown(entry->name).text, str_shown(entry->link).text);
    return linkat(from, last, above, name, 0) < 0 ? fail_at(err, "make the hard link", name) : 0;
}

/* Whether a hard link leads to its own name: then it must not be removed first. */
static bool is_itself(const struct tar_entry *entry, const char *clean)
{
    char target[TAR_NAME_MAX + 1];
    return entry->type == TAR_HARD_LINK && layer_clean_name(entry->link, target) &&
           strcmp(target, clean) == 0;
}

/* ---- what hides files of lower layers ---- */

static int list_hidden(struct layer *layer, char kind, const char *above, const char *name,
                       struct brig_error *err)
{
    autostr struct str line = {0};
    str_append_char(&line, kind);
    str_concat(&line, above, *above && *name ? "/" : "", name);
    str_append_char(&line, '\0');
    int result = line.failed ? -ENOMEM : write_all(layer->hidden, line.data, line.length);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot list a whiteout") : 0;
}

static int hide(struct layer *layer, const char *above, const char *name, struct brig_error *err)
{
    int directory = open_above(layer, above, err);
    if (directory < 0)
        return directory;
    if (strcmp(name, WHITEOUT_OPAQUE) == 0)
        return list_hidden(layer, 'o', above, "", err);
    if (str_starts_with(name, WHITEOUT_OTHER))
        return 0;
    const char *hidden = name + strlen(WHITEOUT);
    if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return bad_name(err, name);
    return list_hidden(layer, 'w', above, hidden, err);
}

/* Whether a directory of a path has the name of a whiteout: no archive has such files. */
static bool is_below_whiteout(const char *path)
{
    for (; path; path = strchr(path, '/') ? strchr(path, '/') + 1 : NULL)
        if (str_starts_with(path, WHITEOUT))
            return true;
    return false;
}

/* ---- the archive ---- */

static int make(struct layer *layer, int above, const char *name, const struct tar_entry *entry,
                struct tar *tar, bool exists, struct brig_error *err)
{
    switch (entry->type) {
    case TAR_FILE:
        return make_file(above, name, entry, tar, err);
    case TAR_HARD_LINK:
        return make_hard_link(layer, above, name, entry, err);
    case TAR_SYMLINK:
        return make_symlink(above, name, entry, err);
    case TAR_DIRECTORY:
        return make_directory(above, name, entry, exists, err);
    case TAR_SPECIAL:
        break;
    }
    return 0;
}

static int take(struct layer *layer, const struct tar_entry *entry, struct tar *tar,
                struct brig_error *err)
{
    char clean[TAR_NAME_MAX + 1], parts[TAR_NAME_MAX + 1];
    if (!layer_clean_name(entry->name, clean))
        return bad_name(err, entry->name);
    if (!clean[0]) /* the root itself */
        return entry->type == TAR_DIRECTORY ? 0 : bad_name(err, entry->name);
    (void)snprintf(parts, sizeof parts, "%s", clean);
    const char *directory;
    const char *name = split_name(parts, &directory);
    if (is_below_whiteout(directory))
        return bad_name(err, entry->name);
    if (str_starts_with(name, WHITEOUT))
        return hide(layer, directory, name, err);
    if (entry->type == TAR_SPECIAL) {
        layer->special++;
        return 0;
    }
    int above = open_above(layer, directory, err);
    if (above < 0 || is_itself(entry, clean))
        return above < 0 ? above : 0;
    int room = make_room(layer, above, name, entry->type == TAR_DIRECTORY, err);
    if (room >= 0)
        above = open_above(layer, directory, err);
    return room < 0 || above < 0 ? (room < 0 ? room : above)
                                 : make(layer, above, name, entry, tar, room > 0, err);
}

int layer_unpack(struct layer *layer, struct tar *tar, struct brig_error *err)
{
    struct tar_entry entry;
    int result;
    while ((result = tar_next(tar, &entry, err)) > 0) {
        if (++layer->entries > LAYER_ENTRIES_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "the image has more than %d files",
                             LAYER_ENTRIES_MAX);
        result = take(layer, &entry, tar, err);
        if (result < 0)
            return result;
    }
    return result;
}
