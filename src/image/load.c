/* SPDX-License-Identifier: MIT */
#include "image/load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
#include "image/images.h"

#define WORK "/unpack"         /* in the jail */
#define SOURCE "/image"        /* a directory */
#define PROGRAM "/brig-unpack" /* the program */
#define WALL_MS (UINT64_C(30) * 60 * 1000)
#define HIDDEN_MAX ((size_t)16 << 20) /* bytes of the list of a layer */
#define DESCRIPTION_MAX ((size_t)4 << 20)
#define PLACES_MAX ((size_t)ROOT_LAYERS_MAX * (PATH_LENGTH_MAX + 64))
#define OPAQUE "user.overlay.opaque"

static const char *const program_places[] = {"brig-unpack", "../unpack/brig-unpack",
                                             "../libexec/brig/brig-unpack",
                                             "../../src/unpack/brig-unpack", NULL};

/* ---- what is loaded ---- */

static const struct {
    const char *prefix;
    enum load_format format;
} prefixes[] = {{"oci:", LOAD_OCI}, {"oci-archive:", LOAD_OCI}, {"docker-archive:", LOAD_DOCKER}};

/* Splits "PATH:TAG", unless a file is called so. */
static int split_wanted(const char *text, char **ret_path, char **ret_wanted,
                        struct brig_error *err)
{
    struct stat info;
    const char *colon = strchr(text, ':');
    if (!colon || stat(text, &info) == 0)
        return str_copy(text, ret_path, err);
    *ret_path = strndup(text, (size_t)(colon - text));
    return *ret_path ? str_copy(colon + 1, ret_wanted, err) : brig_fail_nomem(err);
}

static int refuse_transport(const char *source, struct brig_error *err)
{
    (void)brig_fail(err, BRIG_E_INVALID, 0, "brig does not fetch images itself");
    return brig_advise(err, BRIG_E_INVALID,
                       "Use skopeo copy '%s' oci-archive:image.tar, then brig image load image.tar",
                       str_shown(source).text);
}

int load_parse(const char *source, const char *cwd, struct load *load, char **ret_path,
               char **ret_wanted, struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *wanted = NULL;
    const char *rest = source;
    load->format = LOAD_ANY;
    if (strstr(source, "://"))
        return refuse_transport(source, err);
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
        if (str_starts_with(source, prefixes[i].prefix)) {
            load->format = prefixes[i].format;
            rest = source + strlen(prefixes[i].prefix);
        }
    int result =
        rest == source ? str_copy(source, &path, err) : split_wanted(rest, &path, &wanted, err);
    if (result == 0)
        result = path_make_absolute(cwd, path, ret_path, err);
    if (result < 0)
        return result;
    load->path = *ret_path;
    load->wanted = *ret_wanted = take_ptr(&wanted);
    return 0;
}

/* ---- the jails ---- */

struct loading {
    const struct load *load;
    struct images store;
    char program[PATH_LENGTH_MAX + 1];            /* brig-unpack */
    char temporary[sizeof IMAGES_TEMPORARY + 16]; /* in the store */
    int work;                                     /* the same, opened */
    int source;                                   /* the directory or archive */
    bool directory;
    struct str *notes;
};

/* `work` is where the program writes. */
static int grant_all(struct brig_policy *policy, const struct loading *loading, int work,
                     bool with_directory, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!path_of_fd(work, path))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find the path of the store");
    int result = brig_policy_grant(policy, BRIG_READ_WRITE, path, WORK, 0, err);
    if (result == 0)
        result = brig_policy_grant(policy, BRIG_READ_ONLY, loading->program, PROGRAM, 0, err);
    if (result == 0 && with_directory)
        result = brig_policy_grant(policy, BRIG_READ_ONLY, loading->load->path, SOURCE, 0, err);
    return result;
}

static int make_policy(const struct loading *loading, int work, bool with_directory,
                       struct brig_policy **ret_policy, struct brig_error *err)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return brig_fail_nomem(err);
    int result = brig_policy_origin(policy, "brig image load", err);
    if (result == 0)
        result = grant_all(policy, loading, work, with_directory, err);
    if (result == 0)
        result = brig_policy_workdir(policy, WORK, err);
    if (result == 0)
        result = brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, WALL_MS, err);
    if (result < 0) {
        brig_policy_free(policy);
        return result;
    }
    *ret_policy = policy;
    return 0;
}

/* Explains a failed run, else takes the program's notes. */
static int take_result(const struct brig_result *result, struct str *notes, struct brig_error *err)
{
    size_t length = 0;
    const char *text = brig_result_output(result, STDERR_FILENO, &length, NULL);
    autostr struct str shown = {0};
    str_append_shown(&shown, text ? text : "", length, "\n");
    if (shown.failed)
        return brig_fail_nomem(err);
    bool exited = brig_result_outcome(result) == BRIG_EXITED;
    if (exited && brig_result_exit_code(result) == 0) {
        str_append(notes, shown.data ? shown.data : "");
        return 0;
    }
    if (exited && shown.length > 0) {
        shown.data[strcspn(shown.data, "\n")] = '\0';
        return brig_fail(err, BRIG_E_INVALID, 0, "%s", shown.data);
    }
    const struct brig_error *why = brig_result_error(result);
    return brig_fail(err, BRIG_E_SETUP, 0, "the image could not be read: %s",
                     why && why->message[0] ? why->message
                                            : brig_outcome_name(brig_result_outcome(result)));
}

/* Runs brig-unpack with these arguments. Standard input is `input`; -1: nothing, and the program sees
 * the directory of the image. */
static int run_jail(const struct loading *loading, int work, const char *const *argv, int input,
                    struct brig_error *err)
{
    struct brig_policy *policy = NULL;
    int result = make_policy(loading, work, input < 0, &policy, err);
    if (result < 0)
        return result;
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0] = input < 0 ? (struct brig_stdio){.kind = BRIG_STDIO_BYTES}
                                 : (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = input};
    command.stdio[1].kind = command.stdio[2].kind = BRIG_STDIO_CAPTURE;
    struct brig_result *done = NULL;
    result = brig_run(policy, &command, &done, err);
    brig_policy_free(policy);
    if (result == 0)
        result = take_result(done, loading->notes, err);
    brig_result_free(done);
    return result;
}

static int find_program(struct loading *loading, struct brig_error *err)
{
    if (path_find_program(program_places, BRIG_UNPACK_PATH, loading->program,
                          sizeof loading->program))
        return 0;
    return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                     "brig-unpack is not installed beside brig, nor as '%s'. Build brig with "
                     "zlib and jansson to have it",
                     BRIG_UNPACK_PATH);
}

static int describe(const struct loading *loading, struct brig_error *err)
{
    static const char *const formats[] = {"any", "oci", "docker"};
    const char *const argv[] = {PROGRAM,
                                "image",
                                loading->directory ? SOURCE : "-",
                                formats[loading->load->format],
                                loading->load->wanted,
                                NULL};
    return run_jail(loading, loading->work, argv, loading->directory ? -1 : loading->source, err);
}

/* Reads a file that brig-unpack has written. */
static int read_written(int work, const char *name, size_t max, struct str *ret_text,
                        struct brig_error *err)
{
    autoclose int fd = openat(work, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int result = fd < 0 ? -errno : read_all(fd, max, ret_text);
    if (result == 0 && ret_text->length > max)
        result = -EFBIG;
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result,
                                  "cannot read what brig-unpack says about the image")
                      : 0;
}

/* ---- places of the image ---- */

/* A part of the archive, or a file of the directory. */
struct place {
    int fd; /* owned */
    uint64_t offset, size;
    char digest[SHA256_HEX_LENGTH + 1];
};

static int hash_place(struct place *place, struct brig_error *err)
{
    char buffer[65536];
    struct sha256 hash;
    uint64_t left = place->size;
    sha256_begin(&hash);
    while (left > 0) {
        size_t wanted = left < sizeof buffer ? (size_t)left : sizeof buffer;
        ssize_t got = pread(place->fd, buffer, wanted, (off_t)(place->offset + place->size - left));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return brig_fail(err, BRIG_E_INVALID, got < 0 ? errno : 0, "cannot read the image");
        sha256_add(&hash, buffer, (size_t)got);
        left -= (uint64_t)got;
    }
    sha256_end(&hash, place->digest);
    return 0;
}

static char *next_line(char **rest)
{
    char *line = *rest, *end = line + strcspn(line, "\n");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return line;
}

/* Opens the place of a line "OFFSET SIZE PATH", and computes its digest. */
static int open_place(const struct loading *loading, char *line, struct place *ret_place,
                      struct brig_error *err)
{
    struct stat info;
    char *size = line + strcspn(line, " ");
    char *path = *size ? size + 1 + strcspn(size + 1, " ") : size;
    if (!*size || !*path)
        return brig_fail(err, BRIG_E_SETUP, 0, "the image could not be described");
    *size++ = *path++ = '\0';
    int result = parse_uint(line, INT64_MAX, PARSE_ZERO_OK, &ret_place->offset, err);
    if (result == 0)
        result = parse_uint(size, INT64_MAX, PARSE_ZERO_OK, &ret_place->size, err);
    if (result < 0)
        return result;
    ret_place->fd = loading->directory
                        ? path_open_plain(loading->source, path, O_RDONLY | O_NONBLOCK)
                        : fcntl(loading->source, F_DUPFD_CLOEXEC, 0);
    if (ret_place->fd < 0 || fstat(ret_place->fd, &info) < 0 || !S_ISREG(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, errno, "cannot open '%s' of the image",
                         str_shown(path).text);
    return hash_place(ret_place, err);
}

/* ---- layers ---- */

/* Whether each component of a path is a name; "" is the layer itself. */
static bool is_clean(const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length == 1 && path[0] == '.') ||
            (length == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += length;
        if (*path == '/' && !*++path)
            return false;
    }
    return true;
}

/* Makes a whiteout, or hides everything of lower layers in a directory. */
static int hide(int layer, char kind, char *path)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!is_clean(path))
        return -EINVAL;
    if (kind == 'o') {
        autoclose int directory = path_open_plain(layer, path, O_RDONLY | O_DIRECTORY);
        return directory < 0 || fsetxattr(directory, OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
    }
    if (slash)
        *slash = '\0';
    autoclose int above = path_open_plain(layer, slash ? path : "", O_PATH | O_DIRECTORY);
    if (kind != 'w' || !*name)
        return -EINVAL;
    /* A file of the same name in the layer hides the lower one, too. */
    return above < 0 || (mknodat(above, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
               ? -errno
               : 0;
}

static int hide_all(int work, int layer, struct brig_error *err)
{
    autostr struct str list = {0};
    int result = read_written(work, "hidden", HIDDEN_MAX, &list, err);
    if (result < 0)
        return result;
    for (char *at = list.data, *end = at + list.length; result == 0 && at < end;) {
        size_t length = strnlen(at, (size_t)(end - at));
        result = at + length == end || length == 0 ? -EINVAL : hide(layer, at[0], at + 1);
        at += length + 1;
    }
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "cannot hide files of lower layers")
                      : 0;
}

/* Moves a layer that was unpacked in `work` into the store. */
static int store_layer(const struct loading *loading, int work, const char *name,
                       struct brig_error *err)
{
    autoclose int layer = openat(work, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "a layer was not unpacked");
    int result = hide_all(work, layer, err);
    if (result < 0)
        return result;
    if (fchmod(layer, 0755) < 0 || syncfs(layer) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot store a layer");
    result = path_rename_new(work, "files", loading->store.layers, name);
    return result < 0 && result != -EEXIST
               ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot store a layer")
               : 0;
}

/* Unpacks a layer in a directory and a jail of its own, unless the store has it. */
static int add_layer(const struct loading *loading, const struct place *place, const char *content,
                     struct brig_error *err)
{
    char name[IMAGES_LAYER_NAME_MAX], offset[24], size[24];
    images_layer_name(place->digest, name);
    if (faccessat(loading->store.layers, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    autoclose int work = -1;
    if (mkdirat(loading->work, place->digest, 0700) == 0)
        work =
            openat(loading->work, place->digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (work < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a directory in the store");
    (void)snprintf(offset, sizeof offset, "%" PRIu64, place->offset);
    (void)snprintf(size, sizeof size, "%" PRIu64, place->size);
    const char *const argv[] = {PROGRAM, "layer", offset, size, place->digest, content, NULL};
    int result = run_jail(loading, work, argv, place->fd, err);
    return result < 0 ? result : store_layer(loading, work, name, err);
}

/* The description has the image's digest: it must name each layer, in this order. */
static int check_named(const char **description, const char *digest, struct brig_error *err)
{
    const char *found = strstr(*description, digest);
    if (!found)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a layer does not have its digest: the image's "
                         "description has no sha256:%s",
                         digest);
    *description = found + SHA256_HEX_LENGTH;
    return 0;
}

static int add_layers(const struct loading *loading, struct image_record *record,
                      const char *description, char *lines, struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; i < record->layer_count && result == 0; i++) {
        struct place place = {.fd = -1};
        result = open_place(loading, next_line(&lines), &place, err);
        if (result == 0)
            result = check_named(&description, place.digest, err);
        if (result == 0)
            result = add_layer(loading, &place, record->layers[i], err);
        if (result == 0 && !(record->layers[i] = arena_strdup(&record->arena, place.digest)))
            result = brig_fail_nomem(err);
        own_close(&place.fd);
    }
    return result;
}

static int name_record(const struct loading *loading, struct image_record *record,
                       struct brig_error *err)
{
    const char *name = loading->load->name ? image_short_name(loading->load->name) : NULL;
    if (!name && !record->name)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image has no name. Give it one with --name");
    if (!name)
        return 0;
    int result = image_check_name(name, err);
    if (result == 0 && !(record->name = arena_strdup(&record->arena, name)))
        result = brig_fail_nomem(err);
    return result;
}

/* Reads what has the image's digest, which becomes that of the record. */
static int read_description(const struct loading *loading, char *line, struct image_record *record,
                            struct str *ret_text, struct brig_error *err)
{
    struct place place = {.fd = -1};
    int result = open_place(loading, line, &place, err);
    if (result == 0 && place.size > DESCRIPTION_MAX)
        result = brig_fail(err, BRIG_E_INVALID, 0, "the image's description is too large");
    char *text = result == 0 ? str_extend(ret_text, (size_t)place.size) : NULL;
    if (result == 0 && !text)
        result = brig_fail_nomem(err);
    if (result == 0 &&
        pread(place.fd, text, (size_t)place.size, (off_t)place.offset) != (ssize_t)place.size)
        result = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the image");
    if (result == 0) {
        char digest[SHA256_HEX_LENGTH + 1];
        sha256_hex(text, (size_t)place.size, digest);
        record->digest = arena_strdup(&record->arena, digest);
        result = record->digest ? 0 : brig_fail_nomem(err);
    }
    own_close(&place.fd);
    return result;
}

static int install(const struct loading *loading, struct image_record *ret_record,
                   struct brig_error *err)
{
    autostr struct str text = {0};
    autostr struct str places = {0};
    autostr struct str description = {0};
    autorecord struct image_record record = {0};
    int result = read_written(loading->work, "record", IMAGE_RECORD_MAX, &text, err);
    if (result == 0)
        result = image_record_read(text.data ? text.data : "", text.length, &record, err);
    if (result == 0)
        result = name_record(loading, &record, err);
    if (result == 0)
        result = read_written(loading->work, "places", PLACES_MAX, &places, err);
    char *lines = places.data ? places.data : (char[]){""};
    if (result == 0)
        result = read_description(loading, next_line(&lines), &record, &description, err);
    if (result == 0)
        result = add_layers(loading, &record, description.data, lines, err);
    if (result == 0)
        result = images_put(&loading->store, &record, err);
    if (result < 0)
        return result;
    *ret_record = record;
    record = (struct image_record){0};
    return 0;
}

/* ---- the whole ---- */

/* The store may be in a directory that the user's programs write to: names are chosen at random. */
static int make_work(struct loading *loading, const char *store, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!str_fill(path, sizeof path, store, "/" IMAGES_TEMPORARY "XXXXXX"))
        return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "'%s'", store);
    if (!mkdtemp(path))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a directory in '%s'", store);
    (void)snprintf(loading->temporary, sizeof loading->temporary, "%s", strrchr(path, '/') + 1);
    loading->work = openat(loading->store.fd, loading->temporary,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return loading->work < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", path) : 0;
}

static int open_source(struct loading *loading, struct brig_error *err)
{
    struct stat info;
    loading->source = open(loading->load->path, O_RDONLY | O_CLOEXEC);
    if (loading->source < 0 || fstat(loading->source, &info) < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "cannot open '%s'",
                         str_shown(loading->load->path).text);
    loading->directory = S_ISDIR(info.st_mode);
    if (!loading->directory && !S_ISREG(info.st_mode))
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "'%s' is neither a file nor a directory; write the archive to a file first",
            str_shown(loading->load->path).text);
    return 0;
}

int load_image(const struct load *load, struct image_record *ret_record, struct str *notes,
               struct brig_error *err)
{
    struct loading loading = {
        .load = load, .store = IMAGES_INIT, .work = -1, .source = -1, .notes = notes};
    int result = find_program(&loading, err);
    if (result == 0)
        result = open_source(&loading, err);
    if (result == 0)
        result = images_open(load->store, IMAGES_ADD, &loading.store, err);
    if (result == 0)
        result = make_work(&loading, load->store, err);
    if (result == 0)
        result = describe(&loading, err);
    if (result == 0)
        result = install(&loading, ret_record, err);
    if (loading.temporary[0])
        (void)tree_remove(loading.store.fd, loading.temporary, NULL);
    own_close(&loading.work);
    own_close(&loading.source);
    images_done(&loading.store);
    return result;
}
