/* SPDX-License-Identifier: MIT */
/* The layer of masks of an overlay. */
#include "home/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define PATH_SIZE 4096
#define ENTRIES_FIRST 512
#define ENTRIES_MAX (1U << 20)
#define ROOT 0U

struct part {
    const char *text;
    size_t length;
};

/* The next name of a path; of length 0 at its end. */
static struct part next_part(const char **path)
{
    struct part part = {0};
    do {
        const char *end = *path;
        while (*end == '/')
            end++;
        part.text = end;
        while (*end && *end != '/')
            end++;
        part.length = (size_t)(end - part.text);
        *path = end;
    } while (part.length == 1 && part.text[0] == '.');
    return part;
}

/* FNV-1a. */
static unsigned bucket_of(uint32_t parent, struct part part)
{
    uint64_t hash = (14695981039346656037U ^ parent) * 1099511628211U;
    for (size_t i = 0; i < part.length; i++)
        hash = (hash ^ (unsigned char)part.text[i]) * 1099511628211U;
    return (unsigned)(hash ^ hash >> 32) % LAYER_BUCKETS;
}

/* 0 if there is none. */
static uint32_t find(const struct layer *layer, uint32_t parent, struct part part)
{
    uint32_t at = layer->buckets[bucket_of(parent, part)];
    for (; at != 0; at = layer->entries[at].chained) {
        const char *name = layer->names.data + layer->entries[at].name;
        if (layer->entries[at].parent == parent && strncmp(name, part.text, part.length) == 0 &&
            name[part.length] == '\0')
            return at;
    }
    return 0;
}

static int make_room(struct layer *layer)
{
    if (layer->count < layer->capacity)
        return 0;
    size_t capacity = layer->capacity ? 2 * layer->capacity : ENTRIES_FIRST;
    struct layer_entry *grown =
        capacity > ENTRIES_MAX ? NULL : realloc(layer->entries, capacity * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    layer->entries = grown;
    layer->capacity = capacity;
    if (layer->count == 0)
        layer->entries[layer->count++] = (struct layer_entry){.kind = LAYER_DIRECTORY};
    return 0;
}

static int add(struct layer *layer, uint32_t parent, struct part part, struct layer_entry entry,
               uint32_t *ret_entry)
{
    if (part.length > NAME_MAX)
        return -ENAMETOOLONG;
    int result = make_room(layer);
    if (result < 0)
        return result;
    uint32_t *bucket = &layer->buckets[bucket_of(parent, part)], index = (uint32_t)layer->count;
    entry.name = layer->names.length;
    str_append_bytes(&layer->names, part.text, part.length);
    str_append_bytes(&layer->names, "", 1);
    if (layer->names.failed)
        return -ENOMEM;
    entry.parent = parent;
    entry.chained = *bucket;
    entry.next_child = layer->entries[parent].first_child;
    layer->entries[index] = entry;
    layer->entries[parent].first_child = index;
    layer->count++;
    *bucket = index;
    *ret_entry = index;
    return 0;
}

/* The first `length` bytes of a path are a directory in the home that the layer has not: it gets one with
 * its mode and times, as of directories in two layers the upper one's are seen. 0 if it is none. */
static int add_directory(struct layer *layer, int home, const char *path, size_t length,
                         uint32_t parent, struct part part, uint32_t *ret_entry)
{
    char name[PATH_SIZE];
    struct stat info;
    if (length >= sizeof name)
        return -ENAMETOOLONG;
    memcpy(name, path, length);
    name[length] = '\0';
    if (fstatat(home, name, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(info.st_mode))
        return 0;
    const struct layer_entry entry = {.kind = LAYER_DIRECTORY,
                                      .mode = info.st_mode & 07777,
                                      .times = {info.st_atim, info.st_mtim}};
    int result = add(layer, parent, part, entry, ret_entry);
    return result < 0 ? result : 1;
}

int layer_hide(struct layer *layer, int home, const char *path, enum layer_kind kind)
{
    const char *rest = path;
    uint32_t above = ROOT, found;
    struct part part = next_part(&rest);
    for (;;) {
        if (part.length == 0 || (part.length == 2 && memcmp(part.text, "..", 2) == 0))
            return 0;
        const char *after = rest;
        struct part next = next_part(&after);
        found = find(layer, above, part);
        if (next.length == 0)
            break;
        int result = found != 0 ? 1
                                : add_directory(layer, home, path, (size_t)(rest - path), above,
                                                part, &found);
        if (result <= 0)
            return result;
        if (layer->entries[found].kind != LAYER_DIRECTORY)
            return 1;
        above = found;
        part = next;
        rest = after;
    }
    int result = found != 0 ? 0 : add(layer, above, part, (struct layer_entry){0}, &found);
    if (result == 0 && layer->entries[found].kind == LAYER_DIRECTORY)
        layer->entries[found].kind = kind; /* and nothing below it is made */
    return result < 0 ? result : 1;
}

bool layer_hides(const struct layer *layer, const char *path)
{
    uint32_t at = ROOT;
    for (struct part part = next_part(&path); part.length > 0; part = next_part(&path)) {
        at = find(layer, at, part);
        if (at == 0)
            return false;
        if (layer->entries[at].kind != LAYER_DIRECTORY)
            return true;
    }
    return false;
}

/* ---- making it ---- */

struct making {
    const struct layer *layer;
    int root, base;
    const char *whiteout;
    struct brig_error *err;
};

static const char *name_of(const struct layer *layer, uint32_t entry)
{
    return layer->names.data + layer->entries[entry].name;
}

/* From the layer's own directory; put together from its end. */
static const char *path_of(const struct layer *layer, uint32_t entry, char buffer[PATH_SIZE])
{
    char *at = buffer + PATH_SIZE - 1;
    *at = '\0';
    for (; entry != ROOT; entry = layer->entries[entry].parent) {
        const char *name = name_of(layer, entry);
        size_t length = strlen(name), slash = *at ? 1 : 0;
        if ((size_t)(at - buffer) < length + slash)
            return NULL;
        if (slash)
            *--at = '/';
        at -= length;
        memcpy(at, name, length);
    }
    return *at ? at : ".";
}

/* A directory that hides the one below it is marked; before 6.6 it cannot be, and is a whiteout. */
static int make_opaque(const struct making *making, int above, const char *name)
{
    if (mkdirat(above, name, 0755) < 0)
        return -1;
    autoclose int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0)
        return 0;
    (void)unlinkat(above, name, AT_REMOVEDIR);
    return linkat(making->base, making->whiteout, above, name, 0);
}

static int make_entry(const struct making *making, int above, uint32_t entry)
{
    const char *name = name_of(making->layer, entry);
    int result = 0;
    switch (making->layer->entries[entry].kind) {
    case LAYER_DIRECTORY:
        result = mkdirat(above, name, 0700);
        break;
    case LAYER_WHITEOUT:
        result = linkat(making->base, making->whiteout, above, name, 0);
        break;
    case LAYER_OPAQUE:
        result = make_opaque(making, above, name);
        break;
    }
    return result < 0 ? brig_fail(making->err, BRIG_E_SETUP, errno, "cannot hide '%s'", name) : 0;
}

/* What is in a directory, and then its mode and times, which that has changed. */
static int fill_directory(const struct making *making, uint32_t which)
{
    char buffer[PATH_SIZE];
    const struct layer_entry *directory = &making->layer->entries[which];
    const char *path = path_of(making->layer, which, buffer);
    autoclose int fd = path ? openat(making->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return brig_fail(making->err, BRIG_E_SETUP, path ? errno : ENAMETOOLONG,
                         "cannot hide what is in '%s'",
                         path ? path : name_of(making->layer, which));
    int status = 0;
    for (uint32_t at = directory->first_child; at != 0 && status == 0;
         at = making->layer->entries[at].next_child)
        status = make_entry(making, fd, at);
    if (status < 0 || which == ROOT)
        return status;
    if (fchmod(fd, directory->mode) < 0)
        return brig_fail(making->err, BRIG_E_SETUP, errno, "cannot make '%s' as it is", path);
    (void)futimens(fd, directory->times);
    return 0;
}

/* Whether it is not made, as what is above it is hidden. */
static bool is_left_out(const struct layer *layer, uint32_t entry)
{
    while (entry != ROOT) {
        entry = layer->entries[entry].parent;
        if (layer->entries[entry].kind != LAYER_DIRECTORY)
            return true;
    }
    return false;
}

int layer_make(const struct layer *layer, int directory, int base, const char *whiteout,
               struct brig_error *err)
{
    const struct making making = {layer, directory, base, whiteout, err};
    int status = 0;
    for (uint32_t i = 0; i < layer->count && status == 0; i++) /* what is above comes first */
        if (layer->entries[i].kind == LAYER_DIRECTORY && !is_left_out(layer, i))
            status = fill_directory(&making, i);
    return status;
}

void layer_done(struct layer *layer)
{
    free(layer->entries);
    str_done(&layer->names);
    *layer = (struct layer){0};
}
