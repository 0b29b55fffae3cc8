/* SPDX-License-Identifier: MIT */
#include "unpack/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "unpack/layer.h"
#include "unpack/tar.h"

struct file {
    char *name; /* clean */
    char *link; /* of a link, clean; NULL: a file */
    struct blob blob;
};

struct source {
    int directory; /* or -1 */
    int opened;    /* the last file of the directory, or -1 */
    struct file *files;
    size_t count;
};

/* ---- directories ---- */

int source_of_directory(int directory, struct source **ret_source, struct brig_error *err)
{
    struct source *source = calloc(1, sizeof *source);
    if (!source)
        return brig_fail_nomem(err);
    source->directory = directory;
    source->opened = -1;
    *ret_source = source;
    return 0;
}

/* Opens a file below a directory without following a link. */
static int open_plain(int directory, const char *path)
{
    autoclose int at = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    while (at >= 0 && strchr(path, '/')) {
        char name[NAME_MAX + 1];
        size_t length = strcspn(path, "/");
        if (length > NAME_MAX)
            return -1;
        memcpy(name, path, length);
        name[length] = '\0';
        path += length + 1;
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close_fd(&at);
        at = next;
    }
    return at < 0 ? -1 : openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static int find_in_directory(struct source *source, const char *path, struct blob *ret_blob,
                             struct brig_error *err)
{
    struct stat info;
    close_fd(&source->opened);
    source->opened = open_plain(source->directory, path);
    if (source->opened < 0 && errno == ENOENT)
        return 0;
    if (source->opened < 0 || fstat(source->opened, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s' of the image",
                         str_shown(path).text);
    if (!S_ISREG(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' of the image is not a file",
                         str_shown(path).text);
    *ret_blob = (struct blob){.fd = source->opened, .size = (uint64_t)info.st_size};
    return 1;
}

/* ---- archives ---- */

/* A position in the archive, for reading headers only. */
struct cursor {
    int fd;
    uint64_t offset;
};

static int read_at(void *context, void *buffer, size_t length, struct brig_error *err)
{
    struct cursor *cursor = context;
    size_t used = 0;
    while (used < length) {
        ssize_t got =
            pread(cursor->fd, (char *)buffer + used, length - used, (off_t)cursor->offset);
        if (got < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the archive");
        if (got == 0)
            break;
        used += (size_t)got;
        cursor->offset += (uint64_t)got;
    }
    return (int)used;
}

/* The target of a symbolic link, relative to the link's directory: a few levels of "../" at its
 * start, as docker save writes them. */
static bool resolve_link(const char *name, const char *target, char ret_name[TAR_NAME_MAX + 1])
{
    char joined[2 * TAR_NAME_MAX + 2];
    const char *slash = strrchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0;
    memcpy(joined, name, length);
    while (str_starts_with(target, "../")) {
        if (length == 0)
            return false;
        while (length > 0 && joined[length - 1] != '/')
            length--;
        length -= length > 0;
        target += 3;
    }
    if (length + strlen(target) + 1 > TAR_NAME_MAX)
        return false;
    joined[length] = '/';
    memcpy(joined + length + 1, target, strlen(target) + 1);
    return layer_clean_name(joined, ret_name);
}

static struct file *find(struct source *source, const char *name)
{
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->files[i].name, name) == 0)
            return &source->files[i];
    return NULL;
}

static int add_file(struct source *source, const struct tar_entry *entry,
                    const struct cursor *cursor, struct brig_error *err)
{
    char name[TAR_NAME_MAX + 1], target[TAR_NAME_MAX + 1];
    bool link = entry->type == TAR_SYMLINK || entry->type == TAR_HARD_LINK;
    if (entry->type == TAR_DIRECTORY || entry->type == TAR_SPECIAL)
        return 0;
    if (!layer_clean_name(entry->name, name))
        return brig_fail(err, BRIG_E_INVALID, 0, "the archive has a file with the unsafe name '%s'",
                         str_shown(entry->name).text);
    if (link && !(entry->type == TAR_SYMLINK ? resolve_link(name, entry->link, target)
                                             : layer_clean_name(entry->link, target)))
        return 0; /* it leads nowhere in the archive */
    if (find(source, name))
        return brig_fail(err, BRIG_E_INVALID, 0, "the archive has '%s' twice",
                         str_shown(name).text);
    if (source->count == SOURCE_FILES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the archive has more than %d files",
                         SOURCE_FILES_MAX);
    if (!array_grow(&source->files, source->count))
        return brig_fail_nomem(err);
    struct file *file = &source->files[source->count];
    *file = (struct file){.name = strdup(name),
                          .link = link ? strdup(target) : NULL,
                          .blob = {cursor->fd, cursor->offset, entry->size}};
    if (!file->name || (link && !file->link)) {
        free(file->name);
        free(file->link);
        return brig_fail_nomem(err);
    }
    source->count++;
    return 0;
}

static int read_archive(struct source *source, int fd, struct brig_error *err)
{
    struct cursor cursor = {.fd = fd};
    struct tar tar = {.input = {read_at, &cursor}};
    struct tar_entry entry;
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the archive");
    int result;
    while ((result = tar_next(&tar, &entry, err)) > 0) {
        result = add_file(source, &entry, &cursor, err);
        if (result < 0)
            return result;
        cursor.offset += tar.left; /* over the contents */
        tar.left = 0;
        if (cursor.offset > (uint64_t)info.st_size)
            return brig_fail(err, BRIG_E_INVALID, 0, "the archive ends early");
    }
    return result;
}

int source_of_archive(int file, struct source **ret_source, struct brig_error *err)
{
    struct source *source = calloc(1, sizeof *source);
    if (!source)
        return brig_fail_nomem(err);
    source->directory = source->opened = -1;
    int result = read_archive(source, file, err);
    if (result < 0) {
        source_free(source);
        return result;
    }
    *ret_source = source;
    return 0;
}

void source_free(struct source *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < source->count; i++) {
        free(source->files[i].name);
        free(source->files[i].link);
    }
    free(source->files);
    own_close(&source->opened);
    free(source);
}

int source_find(struct source *source, const char *path, struct blob *ret_blob,
                struct brig_error *err)
{
    if (source->directory >= 0)
        return find_in_directory(source, path, ret_blob, err);
    char clean[TAR_NAME_MAX + 1];
    if (strlen(path) > TAR_NAME_MAX || !layer_clean_name(path, clean))
        return 0;
    const struct file *file = find(source, clean);
    if (file && file->link)
        file = find(source, file->link);
    if (!file || file->link)
        return 0;
    *ret_blob = file->blob;
    return 1;
}
