/* SPDX-License-Identifier: MIT */
#include "changes/layer/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/base.h"
#include "changes/layer/fork.h"
#include "changes/layer/hidden.h"
#include "home/home.h"
#include "home/storage.h"
#include "jail/view/mask.h"

#define ROOT ".root"
#define PART_MAX 128

/* ---- the record ---- */

static int open_part(int storage, const char *jail, const char *part, bool make,
                     struct brig_error *err)
{
    char name[PART_MAX];
    (void)snprintf(name, sizeof name, "%s%s", jail, part);
    if (make && mkdirat(storage, name, 0700) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s' in the storage directory",
                         name);
    int fd = openat(storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno,
                              "cannot open '%s' in the storage directory", name)
                  : fd;
}

static int open_storage(const char *storage, struct brig_error *err)
{
    int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the storage directory '%s'",
                              storage)
                  : fd;
}

int record_open(const char *storage, const char *jail, struct brig_error *err)
{
    autoclose int fd = open_storage(storage, err);
    return fd < 0 ? fd : open_part(fd, jail, LAYER_RECORD_PART, true, err);
}

int record_lock(int record, struct brig_error *err)
{
    autoclose int fd = openat(record, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            close_fd(&fd);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's record")
                  : take_fd(&fd);
}

struct jails_option record_option(int record)
{
    char path[PATH_LENGTH_MAX + 1];
    char *slash = path_of_fd(record, path) ? strrchr(path, '/') : NULL;
    size_t length = slash ? strlen(slash + 1) : 0, end = strlen(LAYER_RECORD_PART);
    if (length <= end)
        return jails_option("");
    slash[1 + length - end] = '\0';
    return jails_option(slash + 1);
}

/* ---- opening ---- */

void layer_done(struct layer *layer)
{
    for (size_t i = 0; i < layer->upper_count; i++)
        (void)close(layer->uppers[i]);
    layer->upper_count = 0;
    hidden_free(take_ptr(&layer->hidden));
    close_fd(&layer->lower);
    close_fd(&layer->record);
}

void layers_done(struct layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        layer_done(&layers->items[i]);
    layers->count = 0;
}

/* Opens the upper directory NAME.changes in `place`, if it exists, and looks at the owner of its
 * files. `place` is the storage directory, or NAME.review in it. */
static int open_upper(int place, const char *name, struct layer *layer, struct brig_error *err)
{
    char part[PART_MAX];
    struct stat inside, outside;
    (void)snprintf(part, sizeof part, "%s.changes", name);
    int upper = openat(place, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0)
        return 0;
    layer->uppers[layer->upper_count++] = upper;
    (void)snprintf(part, sizeof part, "../%s.work", name);
    autoclose int work = openat(upper, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    layer->fuse = work >= 0 && storage_is_fuse(work);
    if (fstat(upper, &inside) == 0 && fstat(place, &outside) == 0) {
        layer->jail_uid = inside.st_uid;
        layer->jail_gid = inside.st_gid;
        layer->owner = outside.st_uid;
        layer->owner_gid = outside.st_gid;
    }
    struct storage_below below;
    int status = storage_open_below(place, name, &below, err);
    for (size_t i = 0; i < below.count; i++)
        layer->uppers[layer->upper_count++] = below.fds[i];
    return status;
}

/* Fills in everything but the upper directory. */
static int begin_layer(int record, const char *jail, const char *name, const char *root,
                       struct layer *layer, struct brig_error *err)
{
    *layer = (struct layer){.lower = -1, .record = -1};
    if (!str_fill(layer->jail, sizeof layer->jail, jail) ||
        !str_fill(layer->name, sizeof layer->name, name) ||
        !str_fill(layer->root, sizeof layer->root, root))
        return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "the directory '%s'",
                         str_shown(root).text);
    layer->record = fcntl(record, F_DUPFD_CLOEXEC, 3);
    if (layer->record < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    layer->lower = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return 0;
}

bool layer_is_home(const char *name)
{
    return strcmp(name, LAYER_HOME) == 0;
}

int layer_open(const char *storage, const char *jail, const char *name, const char *root,
               struct layer *ret_layer, struct brig_error *err)
{
    autoclose int place = open_storage(storage, err);
    autoclose int record = place < 0 ? place : open_part(place, jail, LAYER_RECORD_PART, true, err);
    int status = record < 0 ? record : begin_layer(record, jail, name, root, ret_layer, err);
    autoclose int review = status < 0 || layer_is_home(name)
                               ? -1
                               : open_part(place, jail, LAYER_REVIEW_PART, true, err);
    if (status == 0 && !layer_is_home(name) && review < 0)
        status = review;
    if (status == 0)
        status = open_upper(layer_is_home(name) ? place : review, layer_is_home(name) ? jail : name,
                            ret_layer, err);
    if (status < 0 && record >= 0)
        layer_done(ret_layer);
    return status;
}

/* Reads N.root; false if it is missing or damaged. */
static bool read_root(int review, const char *file, char ret_root[PATH_LENGTH_MAX + 2])
{
    autoclose int fd = openat(review, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, ret_root, PATH_LENGTH_MAX + 1);
    if (length <= 0 || length > PATH_LENGTH_MAX || *ret_root != '/')
        return false;
    ret_root[length] = '\0';
    return strlen(ret_root) == (size_t)length;
}

/* The number in a file name "N.root"; 0 if it is another file. */
static unsigned long root_number(const char *file)
{
    char *end;
    unsigned long number = *file >= '1' && *file <= '9' ? strtoul(file, &end, 10) : 0;
    return number > 0 && strcmp(end, ROOT) == 0 ? number : 0;
}

static int add_layer(struct layers *layers, int record, int place, const char *jail,
                     const char *name, const char *root, struct brig_error *err)
{
    struct layer *layer = &layers->items[layers->count];
    int status = begin_layer(record, jail, name, root, layer, err);
    if (status == 0)
        status = open_upper(place, layer_is_home(name) ? jail : name, layer, err);
    if (status == 0)
        status = hidden_read(record, name, &layer->hidden, err);
    if (status < 0 || layer->upper_count == 0) {
        layer_done(layer);
        return status;
    }
    layer->running = base_has_run(record, name);
    layers->count++;
    return 0;
}

static int compare_roots(const void *left, const void *right)
{
    const struct layer *a = left, *b = right;
    if (layer_is_home(a->name) != layer_is_home(b->name))
        return layer_is_home(a->name) ? -1 : 1;
    return strcmp(a->root, b->root);
}

static int add_reviewed(struct layers *layers, int record, int review, const char *jail,
                        struct brig_error *err)
{
    autodir DIR *dir = review < 0 ? NULL : files_list(review, ".");
    int status = 0;
    for (const struct dirent *item; status == 0 && dir && (item = readdir(dir));) {
        char root[PATH_LENGTH_MAX + 2], name[LAYER_NAME_MAX];
        unsigned long number = root_number(item->d_name);
        if (number == 0 || !read_root(review, item->d_name, root))
            continue;
        if (layers->count == LAYERS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the jail '%s' has changes of more than %d directories", jail,
                             LAYERS_MAX - 1);
        (void)snprintf(name, sizeof name, "%lu", number);
        status = add_layer(layers, record, review, jail, name, root, err);
    }
    return status;
}

int layers_open(const char *storage, const char *jail, const char *home,
                const struct layer_masks *masks, struct layers *ret_layers, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    ret_layers->count = 0;
    autoclose int place = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return errno == ENOENT ? 0
                               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", storage);
    autoclose int changes = open_part(place, jail, ".changes", false, NULL);
    autoclose int review = open_part(place, jail, LAYER_REVIEW_PART, false, NULL);
    if (changes < 0 && review < 0)
        return 0;
    autoclose int record = open_part(place, jail, LAYER_RECORD_PART, true, err);
    int status = record < 0 ? record : 0;
    if (status == 0 && home && path_resolve(home, real))
        status = add_layer(ret_layers, record, place, jail, LAYER_HOME, real, err);
    if (status == 0)
        status = add_reviewed(ret_layers, record, review, jail, err);
    qsort(ret_layers->items, ret_layers->count, sizeof *ret_layers->items, compare_roots);
    for (size_t i = 0; i < ret_layers->count && masks; i++)
        ret_layers->items[i].masks = *masks;
    if (status < 0)
        layers_done(ret_layers);
    return status;
}

const struct layer *layers_find(const struct layers *layers, const char *path,
                                const char **ret_path)
{
    const struct layer *best = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const char *below = path_below(layers->items[i].root, path);
        if (!below || (best && strlen(best->root) > strlen(layers->items[i].root)))
            continue;
        best = &layers->items[i];
        *ret_path = below;
    }
    return best;
}

/* ---- masks ---- */

bool layer_hides(const struct layer *layer, const char *path)
{
    const struct layer_masks *masks = &layer->masks;
    char whole[2 * (PATH_LENGTH_MAX + 1)];
    if (layer->hidden && hidden_has(layer->hidden, path))
        return true;
    if (!masks->home && masks->path_count == 0)
        return false;
    (void)str_fill(whole, sizeof whole, layer->root, "/", path);
    for (size_t i = 0; i < masks->path_count; i++)
        if (path_is_beneath(masks->paths[i], whole))
            return true;
    const char *below = masks->home ? path_below(masks->home, whole) : NULL;
    return below && mask_find(masks->rules, below) >= 0;
}

/* ---- locking ---- */

/* The path of the storage directory that the layer's upper directory is in. */
static bool find_place(const struct layer *layer, char ret_path[PATH_LENGTH_MAX + 1])
{
    char record[PATH_LENGTH_MAX + 1];
    char *slash = path_of_fd(layer->record, record) ? strrchr(record, '/') : NULL;
    if (!slash)
        return false;
    *slash = '\0';
    return layer_is_home(layer->name) ? str_fill(ret_path, PATH_LENGTH_MAX + 1, record)
                                      : str_fill(ret_path, PATH_LENGTH_MAX + 1, record, "/",
                                                 layer->jail, LAYER_REVIEW_PART);
}

#define STOP_TRIES 20
#define STOP_PAUSE_NS 50000000

/* Ends the holder, which keeps the overlay mounted for a while after the last run. */
static int unmount(const struct layer *layer, struct brig_error *err)
{
    char place[PATH_LENGTH_MAX + 1];
    struct home_state state;
    if (!find_place(layer, place))
        return brig_fail(err, BRIG_E_SYSTEM, ENOENT, "cannot find the jail's storage");
    const char *name = layer_is_home(layer->name) ? layer->jail : layer->name;
    int status = home_stop(place, name, layer->jail_uid, &state, err);
    /* Other verbs, such as the diff in a view, talk to the holder for a moment. */
    for (int i = 0; i < STOP_TRIES && status == BRIG_E_STATE && state.pid_count > 0; i++) {
        const struct timespec pause = {.tv_nsec = STOP_PAUSE_NS};
        (void)nanosleep(&pause, NULL);
        status = home_stop(place, name, layer->jail_uid, &state, err);
    }
    if (status == BRIG_E_STATE && state.pid_count > 0) /* the holder knows only the layer's name */
        return brig_fail(err, BRIG_E_STATE, 0, "the jail '%s' is in use by process %d", layer->jail,
                         state.pids[0]);
    return status;
}

int layers_lock(struct layers *layers, struct brig_error *err)
{
    if (layers->count == 0)
        return brig_fail(err, BRIG_E_STATE, 0, "there are no changes");
    autoclose int lock = record_lock(layers->items[0].record, err);
    int status = lock < 0 ? lock : 0;
    for (size_t i = 0; i < layers->count && status == 0; i++) {
        status = unmount(&layers->items[i], err);
        if (status == 0)
            status = base_settle(&layers->items[i], err);
        if (status == 0)
            status = fork_flatten(&layers->items[i], err);
    }
    return status < 0 ? status : take_fd(&lock);
}

/* ---- directories that are gone ---- */

static int remove_parts(int dir, const char *name, const char *const *parts, struct brig_error *err)
{
    int status = 0;
    for (; *parts && status == 0; parts++) {
        char part[PART_MAX];
        (void)snprintf(part, sizeof part, "%s%s", name, *parts);
        status = tree_remove(dir, part, err);
    }
    return status;
}

int layer_remove(const struct layer *layer, struct brig_error *err)
{
    static const char *const recorded[] = {".base", ".bases", ".hidden", ".start", NULL};
    static const char *const stored[] = {".changes", ".work", "." STORAGE_BELOW,
                                         ".lock",    ROOT,    NULL};
    autoclose int storage = files_open_dir(layer->record, "..");
    autoclose int review = open_part(storage, layer->jail, LAYER_REVIEW_PART, false, err);
    int status = review < 0 ? review : remove_parts(layer->record, layer->name, recorded, err);
    return status < 0 ? status : remove_parts(review, layer->name, stored, err);
}

/* ---- for runs ---- */

int layer_number(const char *storage, const char *jail, const char *root,
                 char ret_name[LAYER_NAME_MAX], struct brig_error *err)
{
    autoclose int place = open_storage(storage, err);
    autoclose int review = place < 0 ? place : open_part(place, jail, LAYER_REVIEW_PART, true, err);
    autodir DIR *dir = review < 0 ? NULL : files_list(review, ".");
    if (!dir)
        return review < 0 ? review : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot list '%s'", jail);
    unsigned long greatest = 0;
    for (const struct dirent *item; (item = readdir(dir));) {
        char found[PATH_LENGTH_MAX + 2];
        unsigned long number = root_number(item->d_name);
        greatest = number > greatest ? number : greatest;
        if (number == 0 || !read_root(review, item->d_name, found) || strcmp(found, root) != 0)
            continue;
        (void)snprintf(ret_name, LAYER_NAME_MAX, "%lu", number);
        return 0;
    }
    char file[PART_MAX];
    (void)snprintf(file, sizeof file, "%lu" ROOT, greatest + 1);
    autoclose int made =
        openat(review, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = made < 0 ? -errno : write_all(made, root, strlen(root));
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's storage");
    (void)snprintf(ret_name, LAYER_NAME_MAX, "%lu", greatest + 1);
    return 0;
}
