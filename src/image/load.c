/* SPDX-License-Identifier: MIT */
#include "image/load.h"

#include <errno.h>
#include <fcntl.h>
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
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "image/images.h"

#define WORK "/unpack"         /* in the jail */
#define SOURCE "/image"        /* a directory */
#define PROGRAM "/brig-unpack" /* the program */
#define WALL_MS (UINT64_C(30) * 60 * 1000)
#define HIDDEN_MAX ((size_t)16 << 20) /* bytes of the list of a layer */
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

/* ---- the jail ---- */

struct loading {
    const struct load *load;
    struct images store;
    char temporary[sizeof IMAGES_TEMPORARY + 16]; /* in the store */
    int work;                                     /* the same, opened */
    int source;                                   /* the directory or archive */
    bool directory;
};

static int grant_all(struct brig_policy *policy, const struct loading *loading, const char *program,
                     struct brig_error *err)
{
    char work[PATH_LENGTH_MAX + 1];
    if (!path_of_fd(loading->work, work))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find the path of the store");
    int result = brig_policy_grant(policy, BRIG_READ_WRITE, work, WORK, 0, err);
    if (result == 0)
        result = brig_policy_grant(policy, BRIG_READ_ONLY, program, PROGRAM, 0, err);
    if (result == 0 && loading->directory)
        result = brig_policy_grant(policy, BRIG_READ_ONLY, loading->load->path, SOURCE, 0, err);
    return result;
}

static int make_policy(const struct loading *loading, const char *program,
                       struct brig_policy **ret_policy, struct brig_error *err)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return brig_fail_nomem(err);
    int result = brig_policy_origin(policy, "brig image load", err);
    if (result == 0)
        result = grant_all(policy, loading, program, err);
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

static int run_jail(const struct loading *loading, struct str *notes, struct brig_error *err)
{
    static const char *const formats[] = {"any", "oci", "docker"};
    char program[PATH_LENGTH_MAX + 1];
    if (!path_find_program(program_places, BRIG_UNPACK_PATH, program, sizeof program))
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "brig-unpack is not installed beside brig, nor as '%s'. Build brig with "
                         "zlib and jansson to have it",
                         BRIG_UNPACK_PATH);
    struct brig_policy *policy = NULL;
    int result = make_policy(loading, program, &policy, err);
    if (result < 0)
        return result;
    const char *const argv[] = {PROGRAM, loading->directory ? SOURCE : "-",
                                formats[loading->load->format], loading->load->wanted, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0] = loading->directory
                           ? (struct brig_stdio){.kind = BRIG_STDIO_BYTES}
                           : (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = loading->source};
    command.stdio[1].kind = command.stdio[2].kind = BRIG_STDIO_CAPTURE;
    struct brig_result *done = NULL;
    result = brig_run(policy, &command, &done, err);
    brig_policy_free(policy);
    if (result == 0)
        result = take_result(done, notes, err);
    brig_result_free(done);
    return result;
}

/* ---- what the jail has written ---- */

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

static int hide_all(int work, const char *digits, int layer, struct brig_error *err)
{
    autostr struct str list = {0};
    char file[SHA256_HEX_LENGTH + 16];
    (void)snprintf(file, sizeof file, "%s.hidden", digits);
    autoclose int fd = openat(work, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int result = fd < 0 ? -errno : read_all(fd, HIDDEN_MAX, &list);
    if (result == 0 && list.length > HIDDEN_MAX)
        result = -EFBIG;
    for (char *at = list.data, *end = at + list.length; result == 0 && at < end;) {
        size_t length = strnlen(at, (size_t)(end - at));
        result = at + length == end || length == 0 ? -EINVAL : hide(layer, at[0], at + 1);
        at += length + 1;
    }
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "cannot hide files of lower layers")
                      : 0;
}

/* Moves a new layer into the store. */
static int install_layer(const struct loading *loading, const char *digits, struct brig_error *err)
{
    char name[IMAGES_LAYER_NAME_MAX];
    images_layer_name(digits, name);
    if (faccessat(loading->store.layers, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    autoclose int layer =
        openat(loading->work, digits, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "a layer was not unpacked");
    int result = hide_all(loading->work, digits, layer, err);
    if (result < 0)
        return result;
    if (fchmod(layer, 0755) < 0 || syncfs(layer) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot store a layer");
    result = path_rename_new(loading->work, digits, loading->store.layers, name);
    return result < 0 && result != -EEXIST
               ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot store a layer")
               : 0;
}

static int name_record(const struct loading *loading, struct image_record *record,
                       struct brig_error *err)
{
    const char *name = loading->load->name;
    if (!name && !record->name)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image has no name. Give it one with --name");
    if (!name)
        return 0;
    int result = image_check_name(name, err);
    if (result == 0 && !(record->name = arena_strdup(&record->arena, name)))
        result = brig_fail_nomem(err);
    return result;
}

static int install(const struct loading *loading, struct image_record *ret_record,
                   struct brig_error *err)
{
    autostr struct str text = {0};
    autorecord struct image_record record = {0};
    autoclose int fd =
        openat(loading->work, "record", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int failed = fd < 0 ? -errno : read_all(fd, IMAGE_RECORD_MAX + 1, &text);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SETUP, -failed, "cannot read the record of the image");
    int result = image_record_read(text.data ? text.data : "", text.length, &record, err);
    if (result == 0)
        result = name_record(loading, &record, err);
    for (size_t i = 0; i < record.layer_count && result == 0; i++)
        result = install_layer(loading, record.layers[i], err);
    if (result == 0)
        result = images_put(&loading->store, &record, err);
    if (result < 0)
        return result;
    *ret_record = record;
    record = (struct image_record){0};
    return 0;
}

/* ---- the whole ---- */

static int list_have(const struct loading *loading, struct brig_error *err)
{
    autostr struct str have = {0};
    autoclose int fd = openat(loading->work, "have", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int copy = openat(loading->store.layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *item;
    while (dir && (item = readdir(dir)))
        if (str_starts_with(item->d_name, IMAGES_LAYER_PREFIX))
            str_concat(&have, item->d_name + strlen(IMAGES_LAYER_PREFIX), "\n");
    int result = fd < 0 ? -errno : have.failed ? -ENOMEM : write_all(fd, have.data, have.length);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot list the layers") : 0;
}

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
    return loading->work < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", path)
                             : list_have(loading, err);
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
    struct loading loading = {.load = load, .store = IMAGES_INIT, .work = -1, .source = -1};
    int result = open_source(&loading, err);
    if (result == 0)
        result = images_open(load->store, IMAGES_ADD, &loading.store, err);
    if (result == 0)
        result = make_work(&loading, load->store, err);
    if (result == 0)
        result = run_jail(&loading, notes, err);
    if (result == 0)
        result = install(&loading, ret_record, err);
    if (loading.temporary[0])
        (void)tree_remove(loading.store.fd, loading.temporary, NULL);
    own_close(&loading.work);
    own_close(&loading.source);
    images_done(&loading.store);
    return result;
}
