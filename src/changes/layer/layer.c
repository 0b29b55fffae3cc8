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
#include "base/files.h"
#include "base/record.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/fork.h"
#include "changes/layer/hidden.h"
#include "changes/layer/upper.h"
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

void record_jail(int record, char ret_jail[LAYER_JAIL_MAX])
{
    char path[PATH_LENGTH_MAX + 1];
    const char *slash = path_of_fd(record, path) ? strrchr(path, '/') : NULL;
    size_t length = slash ? strlen(slash + 1) : 0, end = strlen(LAYER_RECORD_PART);
    (void)snprintf(ret_jail, LAYER_JAIL_MAX, "%.*s", length > end ? (int)(length - end) : 0,
                   slash ? slash + 1 : "");
}

struct jails_option record_option(int record)
{
    char jail[LAYER_JAIL_MAX];
    record_jail(record, jail);
    return jails_option(jail);
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

/* ---- N.root ---- */

#define KEY_ROOT "root"
#define KEY_REPLACED "replaced"

/* The record of a root. Earlier versions wrote the path alone. */
struct root {
    char path[PATH_LENGTH_MAX + 1];
    struct place place;
    bool replaced; /* the layer has changes that were made for another directory */
};

/* Reads N.root; false if it is missing or damaged. */
static bool root_read(int review, const char *file, struct root *ret_root)
{
    struct record_place at = {0};
    const char *key, *value;
    autostr struct str text = {0};
    *ret_root = (struct root){0};
    if (record_read(review, file, &text, NULL) <= 0 || text.length == 0)
        return false;
    if (*text.data == '/')
        return strlen(text.data) == text.length &&
               str_fill(ret_root->path, sizeof ret_root->path, text.data);
    while (record_next(&text, &at, &key, &value))
        if (strcmp(key, KEY_ROOT) == 0)
            (void)str_fill(ret_root->path, sizeof ret_root->path, value);
        else if (strcmp(key, PLACE_KEY) == 0)
            (void)place_read(value, &ret_root->place);
        else if (strcmp(key, KEY_REPLACED) == 0)
            ret_root->replaced = true;
    return !at.damaged && *ret_root->path == '/';
}

static int root_write(int review, const char *name, const struct root *root, struct brig_error *err)
{
    char file[PART_MAX];
    autostr struct str text = {0};
    (void)snprintf(file, sizeof file, "%s" ROOT, name);
    record_add(&text, KEY_ROOT, root->path);
    place_add(&text, &root->place);
    if (root->replaced)
        record_add_number(&text, KEY_REPLACED, 1);
    return record_write(review, file, &text, true, err);
}

/* Fills in everything but the upper directory. */
static int begin_layer(int record, const char *jail, const char *name, const struct root *root,
                       struct layer *layer, struct brig_error *err)
{
    struct place now;
    *layer = (struct layer){.lower = -1, .record = -1, .place = root->place};
    if (!str_fill(layer->jail, sizeof layer->jail, jail) ||
        !str_fill(layer->name, sizeof layer->name, name) ||
        !str_fill(layer->root, sizeof layer->root, root->path))
        return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "the directory '%s'",
                         str_shown(root->path).text);
    layer->record = fcntl(record, F_DUPFD_CLOEXEC, 3);
    if (layer->record < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    layer->lower = open(root->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    layer->replaced =
        root->replaced || (layer->lower >= 0 && place_of(layer->lower, &now, NULL) == 0 &&
                           !place_equal(&root->place, &now));
    return 0;
}

bool layer_is_home(const char *name)
{
    return strcmp(name, LAYER_HOME) == 0;
}

int layer_open(const char *storage, const char *jail, const char *name, const char *root,
               struct layer *ret_layer, struct brig_error *err)
{
    struct root known = {0};
    char file[PART_MAX];
    bool home = layer_is_home(name);
    autoclose int place = open_storage(storage, err);
    autoclose int record = place < 0 ? place : open_part(place, jail, LAYER_RECORD_PART, true, err);
    autoclose int review =
        record < 0 || home ? -1 : open_part(place, jail, LAYER_REVIEW_PART, true, err);
    if (record < 0 || (!home && review < 0))
        return record < 0 ? record : review;
    (void)snprintf(file, sizeof file, "%s" ROOT, name);
    if (!home && !root_read(review, file, &known))
        return brig_fail(err, BRIG_E_STATE, 0, "'%s' in the jail's storage is damaged", file);
    (void)str_fill(known.path, sizeof known.path, root);
    int status = begin_layer(record, jail, name, &known, ret_layer, err);
    if (status == 0)
        status = open_upper(home ? place : review, home ? jail : name, ret_layer, err);
    if (status < 0)
        layer_done(ret_layer);
    return status;
}

/* The number in a file name "N.root"; 0 if it is another file. */
static unsigned long root_number(const char *file)
{
    char *end;
    unsigned long number = *file >= '1' && *file <= '9' ? strtoul(file, &end, 10) : 0;
    return number > 0 && strcmp(end, ROOT) == 0 ? number : 0;
}

static int add_layer(struct layers *layers, int record, int place, const char *jail,
                     const char *name, const struct root *root, struct brig_error *err)
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
        char name[LAYER_NAME_MAX];
        struct root root;
        unsigned long number = root_number(item->d_name);
        if (number == 0 || !root_read(review, item->d_name, &root))
            continue;
        if (layers->count == LAYERS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the jail '%s' has changes of more than %d directories", jail,
                             LAYERS_MAX - 1);
        (void)snprintf(name, sizeof name, "%lu", number);
        status = add_layer(layers, record, review, jail, name, &root, err);
    }
    return status;
}

int layers_open(const char *storage, const char *jail, const char *home,
                const struct layer_masks *masks, struct layers *ret_layers, struct brig_error *err)
{
    struct root user = {0};
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
    if (status == 0 && home && path_resolve(home, user.path))
        status = add_layer(ret_layers, record, place, jail, LAYER_HOME, &user, err);
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

int layer_unmount(const struct layer *layer, struct brig_error *err)
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
        status = layer_unmount(&layers->items[i], err);
        if (status == 0)
            status = base_settle(&layers->items[i], err);
        if (status == 0)
            status = fork_flatten(&layers->items[i], err);
        if (status == 0)
            status = changes_tidy(&layers->items[i], err);
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

/* Whether the directory of a record was moved to another path: there it has the same place, which is known for certain
 * only by its time of birth. */
static bool root_was_moved(const struct root *old, const struct place *place)
{
    struct place there;
    autoclose int fd = open(old->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return old->place.inode && old->place.birth_ns && place->birth_ns &&
           place_equal(&old->place, place) &&
           (fd < 0 || place_of(fd, &there, NULL) < 0 || !place_equal(&there, place));
}

/* Finds the record of a root by its path, or else by its place. *ret_number gets the number of it, or 0, and *ret_greatest
 * that of the last one. */
static void find_root(DIR *dir, const struct root *root, unsigned long *ret_number,
                      unsigned long *ret_greatest, struct root *ret_found)
{
    struct root found;
    bool here = false;
    *ret_number = *ret_greatest = 0;
    for (const struct dirent *item; (item = readdir(dir));) {
        unsigned long number = root_number(item->d_name);
        *ret_greatest = number > *ret_greatest ? number : *ret_greatest;
        if (number == 0 || here || !root_read(dirfd(dir), item->d_name, &found))
            continue;
        here = strcmp(found.path, root->path) == 0;
        if (!here && !root_was_moved(&found, &root->place))
            continue;
        *ret_number = number;
        *ret_found = found;
    }
}

int layer_number(const char *storage, const char *jail, const char *path,
                 char ret_name[LAYER_NAME_MAX], struct brig_error *err)
{
    struct root root = {0}, found = {0};
    unsigned long number, greatest;
    autoclose int place = open_storage(storage, err);
    autoclose int review = place < 0 ? place : open_part(place, jail, LAYER_REVIEW_PART, true, err);
    autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir DIR *dir = review < 0 ? NULL : files_list(review, ".");
    if (!dir)
        return review < 0 ? review : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot list '%s'", jail);
    if (!str_fill(root.path, sizeof root.path, path) || fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, fd < 0 ? errno : ENAMETOOLONG, "cannot open '%s'",
                         str_shown(path).text);
    int status = place_of(fd, &root.place, err);
    if (status < 0)
        return status;
    find_root(dir, &root, &number, &greatest, &found);
    (void)snprintf(ret_name, LAYER_NAME_MAX, "%lu", number ? number : greatest + 1);
    if (number && strcmp(found.path, path) == 0 && found.place.inode)
        return 0;
    root.replaced = found.replaced;
    return root_write(review, ret_name, &root, err);
}

/* Whether something in an upper directory is not just a directory that the user has, too. `.git` is the place of a mount. */
static int find_entry(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    (void)context;
    (void)err;
    if (strcmp(entry->path, ".git") == 0)
        return UPPER_SKIP;
    return S_ISDIR(entry->upper.st_mode) && S_ISDIR(entry->lower.st_mode) ? 0 : UPPER_STOP;
}

int layer_adopt(struct layer *layer, struct brig_error *err)
{
    struct root root = {0};
    if (!layer->replaced || layer->lower < 0)
        return 0;
    if (base_has_run(layer->record, layer->name))
        return brig_fail(err, BRIG_E_STATE, 0,
                         "'%s' was replaced by another directory, and a run of the jail '%s' has "
                         "the old one: end that first (see `brig list`)",
                         str_shown(layer->root).text, layer->jail);
    autoclose int storage = files_open_dir(layer->record, "..");
    autoclose int review = open_part(storage, layer->jail, LAYER_REVIEW_PART, false, err);
    int left = review < 0 ? review : upper_walk(layer, true, find_entry, NULL, err);
    int status = left < 0 ? left : place_of(layer->lower, &root.place, err);
    if (status < 0)
        return status;
    (void)str_fill(root.path, sizeof root.path, layer->root);
    layer->place = root.place;
    layer->replaced = root.replaced = left == UPPER_STOP;
    return root_write(review, layer->name, &root, err);
}
