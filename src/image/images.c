/* SPDX-License-Identifier: MIT */
#include "image/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"

#define LOCK "lock"
#define LATEST ":latest"
#define ALGORITHM "sha256:"
#define PREFIX_DIGITS_MIN 12
#define RECORD_FILE_MAX (IMAGE_NAME_MAX + 1)

/* ---- opening ---- */

static int open_part(int store, const char *name, bool make)
{
    if (make && mkdirat(store, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_parts(struct images *store, bool make, const char *path, struct brig_error *err)
{
    store->layers = open_part(store->fd, IMAGES_LAYERS, make);
    if (store->layers >= 0)
        store->records = open_part(store->fd, IMAGES_RECORDS, make);
    if (store->records >= 0)
        store->lock = openat(store->fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (store->lock < 0 && errno == EACCES) /* a store that this process may only read */
        store->lock = openat(store->fd, LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return store->lock < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the images in '%s'", path)
               : 0;
}

int images_open(const char *path, enum images_use use, struct images *ret_store,
                struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    int result = use == IMAGES_ADD ? path_make_directories(path, strlen(path), 0700, err) : 0;
    if (result < 0)
        return result;
    store.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store.fd < 0 && errno == ENOENT)
        return brig_fail(err, BRIG_E_NOT_FOUND, 0,
                         "there are no images yet; brig image load adds "
                         "one");
    if (store.fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", path);
    if ((result = open_parts(&store, use == IMAGES_ADD, path, err)) < 0)
        return result;
    int operation = use == IMAGES_REMOVE ? LOCK_EX | LOCK_NB : LOCK_SH;
    while (flock(store.lock, operation) < 0)
        if (errno != EINTR)
            return brig_fail(err, BRIG_E_STATE, errno == EWOULDBLOCK ? 0 : errno,
                             "another process is loading or removing images");
    *ret_store = store;
    store = IMAGES_INIT;
    return 0;
}

void images_done(struct images *store)
{
    own_close(&store->lock);
    own_close(&store->records);
    own_close(&store->layers);
    own_close(&store->fd);
    *store = IMAGES_INIT;
}

void images_layer_name(const char *digits, char ret_name[IMAGES_LAYER_NAME_MAX])
{
    (void)snprintf(ret_name, IMAGES_LAYER_NAME_MAX, IMAGES_LAYER_PREFIX "%s", digits);
}

/* ---- records ---- */

/* The file of an image. No name has a plus sign. */
static void file_of(const char *name, char ret_file[RECORD_FILE_MAX])
{
    (void)snprintf(ret_file, RECORD_FILE_MAX, "%s", name);
    for (char *at = ret_file; (at = strchr(at, '/'));)
        *at = '+';
}

/* Reads the record in a file. Returns 1, 0 if there is none, or a negative code. */
static int read_record(const struct images *store, const char *file,
                       struct image_record *ret_record, struct brig_error *err)
{
    autostr struct str text = {0};
    autoclose int fd = openat(store->records, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0
                               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the record '%s'",
                                           str_shown(file).text);
    int result = read_all(fd, IMAGE_RECORD_MAX + 1, &text);
    if (result < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -result, "cannot read the record '%s'",
                         str_shown(file).text);
    result = image_record_read(text.data ? text.data : "", text.length, ret_record, err);
    return result < 0 ? brig_wrap(err, result, "%s", str_shown(file).text) : 1;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* The entries of a directory, sorted; without those that begin with a dot. */
static int list_names(int directory, char ***ret_names, size_t *ret_count, struct brig_error *err)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot list images");
    char **names = NULL;
    size_t count = 0;
    const struct dirent *item;
    while ((item = readdir(dir))) {
        if (item->d_name[0] == '.')
            continue;
        if (!array_grow(&names, count) || !(names[count] = strdup(item->d_name))) {
            free_names(names, count);
            return brig_fail_nomem(err);
        }
        count++;
    }
    if (count > 0)
        qsort(names, count, sizeof *names, compare_names);
    *ret_names = names;
    *ret_count = count;
    return 0;
}

int images_each(const struct images *store, images_visit visit, void *context,
                struct brig_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int result = list_names(store->records, &names, &count, err);
    for (size_t i = 0; i < count && result >= 0; i++) {
        autorecord struct image_record record = {0};
        result = read_record(store, names[i], &record, err);
        if (result > 0)
            result = visit(context, &record, err);
    }
    free_names(names, count);
    return result < 0 ? result : 0;
}

/* ---- finding ---- */

struct wanted {
    const char *digits; /* the beginning of a digest */
    char name[IMAGE_NAME_MAX + 1];
    size_t count;
};

static int match_digest(void *context, const struct image_record *record, struct brig_error *err)
{
    struct wanted *wanted = context;
    (void)err;
    if (record->name && str_starts_with(record->digest, wanted->digits)) {
        (void)str_fill(wanted->name, sizeof wanted->name, record->name);
        wanted->count++;
    }
    return 0;
}

static int find_digest(const struct images *store, const char *digits,
                       struct image_record *ret_record, struct brig_error *err)
{
    struct wanted wanted = {.digits = digits};
    char file[RECORD_FILE_MAX];
    if (strlen(digits) < PREFIX_DIGITS_MIN)
        return brig_fail(err, BRIG_E_INVALID, 0, "give at least %d digits of a digest",
                         PREFIX_DIGITS_MIN);
    int result = images_each(store, match_digest, &wanted, err);
    if (result < 0 || wanted.count == 0)
        return result;
    file_of(wanted.name, file);
    return read_record(store, file, ret_record, err);
}

static int find_name(const struct images *store, const char *name, struct image_record *ret_record,
                     struct brig_error *err)
{
    char file[RECORD_FILE_MAX], tagged[IMAGE_NAME_MAX + sizeof LATEST];
    int result = image_check_name(name, err);
    if (result < 0)
        return result;
    file_of(name, file);
    result = read_record(store, file, ret_record, err);
    const char *slash = strrchr(name, '/'), *colon = strrchr(name, ':');
    if (result != 0 || (colon && (!slash || colon > slash)))
        return result;
    (void)snprintf(tagged, sizeof tagged, "%s" LATEST, name);
    if (strlen(tagged) > IMAGE_NAME_MAX)
        return 0;
    file_of(tagged, file);
    return read_record(store, file, ret_record, err);
}

int images_find(const struct images *store, const char *name, struct image_record *ret_record,
                struct brig_error *err)
{
    autofree char *plain = strdup(image_short_name(name));
    if (!plain)
        return brig_fail_nomem(err);
    char *pin = strchr(plain, '@');
    if (pin)
        *pin++ = '\0';
    if (pin && (!str_starts_with(pin, ALGORITHM) || !image_is_digest(pin + strlen(ALGORITHM))))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not end with @sha256: and 64 digits",
                         str_shown(name).text);
    int result = str_starts_with(plain, ALGORITHM)
                     ? find_digest(store, plain + strlen(ALGORITHM), ret_record, err)
                     : find_name(store, plain, ret_record, err);
    if (result > 0 && pin && strcmp(ret_record->digest, pin + strlen(ALGORITHM)) != 0) {
        image_record_done(ret_record);
        return brig_fail(err, BRIG_E_NOT_FOUND, 0, "the image '%s' has another digest than '%s'",
                         plain, pin);
    }
    if (result == 0)
        return brig_fail(err, BRIG_E_NOT_FOUND, 0, "there is no image '%s'; see brig image list",
                         str_shown(name).text);
    return result < 0 ? result : 0;
}

/* ---- changing ---- */

int images_put(const struct images *store, const struct image_record *record,
               struct brig_error *err)
{
    autostr struct str text = {0};
    char file[RECORD_FILE_MAX], temporary[64];
    image_record_write(record, &text);
    if (text.failed)
        return brig_fail_nomem(err);
    file_of(record->name, file);
    (void)snprintf(temporary, sizeof temporary, ".new-%d", (int)getpid());
    autoclose int fd = openat(store->records, temporary,
                              O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = fd < 0 ? -errno : write_all(fd, text.data, text.length);
    if (failed == 0 &&
        (fsync(fd) < 0 || renameat(store->records, temporary, store->records, file) < 0))
        failed = -errno;
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write the record of '%s'",
                                  record->name)
                      : 0;
}

int images_remove(const struct images *store, const char *name, struct brig_error *err)
{
    autorecord struct image_record record = {0};
    char file[RECORD_FILE_MAX];
    int result = images_find(store, name, &record, err);
    if (result < 0)
        return result;
    file_of(record.name, file);
    return unlinkat(store->records, file, 0) < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove the image '%s'", record.name)
               : 0;
}

uint64_t images_size(const struct images *store, const struct image_record *record)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < record->layer_count; i++) {
        char name[IMAGES_LAYER_NAME_MAX];
        images_layer_name(record->layers[i], name);
        autoclose int layer =
            openat(store->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bytes += layer < 0 ? 0 : tree_size(layer);
    }
    return bytes;
}

/* ---- collecting ---- */

static int add_used(void *context, const struct image_record *record, struct brig_error *err)
{
    struct str *used = context;
    for (size_t i = 0; i < record->layer_count; i++)
        str_concat(used, record->layers[i], "\n");
    return used->failed ? brig_fail_nomem(err) : 0;
}

static int collect_layer(const struct images *store, const char *name, bool dry,
                         struct images_removed *removed, struct brig_error *err)
{
    autoclose int layer =
        openat(store->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer >= 0 && flock(layer, LOCK_EX | LOCK_NB) < 0) {
        removed->busy++;
        return 0;
    }
    removed->bytes += layer < 0 ? 0 : tree_size(layer);
    removed->layers++;
    return dry ? 0 : tree_remove(store->layers, name, err);
}

/* What a killed process has left; the lock says that none is at work. */
static int collect_temporary(const struct images *store, struct brig_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int result = list_names(store->fd, &names, &count, err);
    for (size_t i = 0; i < count && result == 0; i++)
        if (str_starts_with(names[i], IMAGES_TEMPORARY))
            result = tree_remove(store->fd, names[i], err);
    free_names(names, count);
    return result;
}

int images_collect(const struct images *store, bool dry, struct images_removed *ret_removed,
                   struct brig_error *err)
{
    autostr struct str used = {0};
    char **names = NULL;
    size_t count = 0;
    *ret_removed = (struct images_removed){0};
    int result = images_each(store, add_used, &used, err);
    if (result == 0)
        result = list_names(store->layers, &names, &count, err);
    for (size_t i = 0; i < count && result == 0; i++) {
        const char *digits = str_starts_with(names[i], IMAGES_LAYER_PREFIX)
                                 ? names[i] + strlen(IMAGES_LAYER_PREFIX)
                                 : names[i];
        if (!used.data || !strstr(used.data, digits))
            result = collect_layer(store, names[i], dry, ret_removed, err);
    }
    free_names(names, count);
    return result < 0 || dry ? result : collect_temporary(store, err);
}

/* ---- an image in use ---- */

/* Opens the layers from the top. A layer that occurs twice is used once, as the upper one: it hides
 * everything of the lower one, and overlayfs refuses the same directory twice. */
static int open_layers(struct image *image, const struct images *store, const char *path,
                       struct brig_error *err)
{
    struct image_record *record = &image->record;
    for (size_t i = record->layer_count; i-- > 0;) {
        char name[IMAGES_LAYER_NAME_MAX];
        bool twice = false;
        for (size_t j = i + 1; j < record->layer_count; j++)
            twice = twice || strcmp(record->layers[i], record->layers[j]) == 0;
        if (twice)
            continue;
        images_layer_name(record->layers[i], name);
        int fd = openat(store->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0) {
            int failed = errno;
            own_close(&fd);
            return brig_fail(err, BRIG_E_SETUP, failed,
                             "cannot use a layer of the image '%s'. Load the image again",
                             record->name ? record->name : "?");
        }
        image->locks[image->count] = fd;
        image->paths[image->count++] =
            arena_concat(&record->arena, path, "/" IMAGES_LAYERS "/", name);
    }
    return record->arena.failed ? brig_fail_nomem(err) : 0;
}

int image_open(const char *store_path, const char *name, struct image *ret_image,
               struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    *ret_image = (struct image){0};
    int result = images_open(store_path, IMAGES_READ, &store, err);
    if (result == 0)
        result = images_find(&store, name, &ret_image->record, err);
    if (result == 0)
        result = open_layers(ret_image, &store, store_path, err);
    if (result < 0)
        image_done(ret_image);
    return result;
}

void image_done(struct image *image)
{
    for (size_t i = 0; i < image->count; i++)
        own_close(&image->locks[i]);
    image->count = 0;
    image_record_done(&image->record);
}
