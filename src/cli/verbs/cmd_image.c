/* SPDX-License-Identifier: MIT */
/* `brig image`: container images as roots of jails. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "base/tree.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/run/image.h"
#include "image/images.h"
#include "image/load.h"

#define CONTAINERS_STORAGE "containers-storage:"
#define SHOWN_DIGITS 12

/* What the verb was given. */
struct words {
    const struct app *app;
    const char *store_given, *name;
    bool json, dry;
    char store[PATH_LENGTH_MAX + 1];
    int count;
    char **items;
};

extern char **environ;

/* ---- load ---- */

static int run_skopeo(const char *from, const char *to, struct brig_error *err)
{
    const char *const argv[] = {"skopeo", "copy", "--quiet", from, to, NULL};
    pid_t pid;
    int failed = posix_spawnp(&pid, "skopeo", NULL, NULL, (char *const *)(uintptr_t)argv, environ);
    if (failed == ENOENT)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "skopeo, which reads containers-storage, is not installed");
    if (failed != 0)
        return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot run skopeo");
    int status = process_wait(pid);
    return status == 0 ? 0
                       : brig_fail(err, BRIG_E_INVALID, 0, "skopeo could not copy '%s'",
                                   str_shown(from).text);
}

static int load_one(const struct load *load, struct brig_error *err)
{
    autorecord struct image_record record = {0};
    autostr struct str notes = {0};
    int status = load_image(load, &record, &notes, err);
    if (status < 0)
        return status;
    message_lines(&notes);
    message_note("loaded %s, sha256:%.*s, %zu layer%s", record.name, SHOWN_DIGITS, record.digest,
                 record.layer_count, record.layer_count == 1 ? "" : "s");
    return 0;
}

/* The copy is beside the images: there is room for the layers, too, and brig image gc finds it. */
static int load_from_storage(const struct words *words, const char *source, struct brig_error *err)
{
    char copy[PATH_LENGTH_MAX + 1];
    const char *name = source + strlen(CONTAINERS_STORAGE);
    autofree char *target = NULL;
    int status = path_make_directories(words->store, strlen(words->store), 0700, err);
    if (status < 0)
        return status;
    if (!str_fill(copy, sizeof copy, words->store, "/" IMAGES_TEMPORARY "XXXXXX") || !mkdtemp(copy))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a directory in '%s'",
                         words->store);
    const struct load load = {.store = words->store,
                              .path = copy,
                              .format = LOAD_OCI,
                              .name = words->name ? words->name : name};
    status = str_make(&target, err, "oci:", copy, ":image");
    if (status == 0)
        status = run_skopeo(source, target, err);
    if (status == 0)
        status = load_one(&load, err);
    (void)tree_remove(AT_FDCWD, copy, NULL);
    return status;
}

static int run_load(struct words *words, struct brig_error *err)
{
    autofree char *cwd = NULL;
    autofree char *path = NULL;
    autofree char *wanted = NULL;
    struct load load = {.store = words->store, .name = words->name};
    if (words->count != 1)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "brig image load needs one image: oci:DIR[:TAG], oci-archive:FILE, "
                         "docker-archive:FILE[:NAME], containers-storage:NAME, or a path");
    if (str_starts_with(words->items[0], CONTAINERS_STORAGE))
        return load_from_storage(words, words->items[0], err);
    if (!(cwd = getcwd(NULL, 0)))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the working directory");
    int status = load_parse(words->items[0], cwd, &load, &path, &wanted, err);
    return status < 0 ? status : load_one(&load, err);
}

/* ---- list and inspect ---- */

struct listing {
    const struct images *store;
    struct str *out;
    struct json *json; /* or NULL */
};

static void print_words(struct json *json, const char *key, const struct image_words *words)
{
    json_open_array(json, key);
    for (size_t i = 0; i < words->count; i++)
        json_text(json, NULL, words->items[i]);
    json_close_array(json);
}

static void print_json(struct json *json, const struct images *store,
                       const struct image_record *record)
{
    autostr struct str digest = {0};
    str_concat(&digest, "sha256:", record->digest);
    json_open_object(json, NULL);
    json_text(json, "name", record->name);
    json_text(json, "digest", digest.data);
    json_text(json, "architecture", record->architecture);
    json_uint(json, "bytes", images_size(store, record));
    print_words(json, "env", &record->env);
    print_words(json, "entrypoint", &record->entrypoint);
    print_words(json, "cmd", &record->cmd);
    json_text(json, "workdir", record->workdir);
    json_text(json, "user", record->user);
    json_open_array(json, "layers");
    for (size_t i = 0; i < record->layer_count; i++)
        json_text(json, NULL, record->layers[i]);
    json_close_array(json);
    json_close_object(json);
}

static int print_row(void *context, const struct image_record *record, struct brig_error *err)
{
    struct listing *listing = context;
    (void)err;
    if (listing->json) {
        print_json(listing->json, listing->store, record);
        return 0;
    }
    str_appendf(listing->out, "%-40s %.*s %6zu  %s\n", record->name ? record->name : "?",
                SHOWN_DIGITS, record->digest, record->layer_count,
                str_size(images_size(listing->store, record)).text);
    return 0;
}

static int run_list(struct words *words, struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    autostr struct str out = {0};
    struct json json;
    struct listing listing = {.store = &store, .out = &out, .json = words->json ? &json : NULL};
    if (words->count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "brig image list takes no names; see inspect");
    int status = images_open(words->store, IMAGES_READ, &store, err);
    if (status < 0 && status != BRIG_E_NOT_FOUND)
        return status;
    bool none = status < 0;
    if (words->json) {
        json_init(&json, &out);
        json_open_array(&json, NULL);
    } else if (!none) {
        str_appendf(&out, "%-40s %-12s %6s  %s\n", "NAME", "DIGEST", "LAYERS", "SIZE");
    }
    status = none ? 0 : images_each(&store, print_row, &listing, err);
    if (words->json) {
        json_close_array(&json);
        str_append_char(&out, '\n');
    }
    return status < 0 ? status : message_print(&out, err);
}

static void print_lines(struct str *out, const char *label, const struct image_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        str_appendf(out, "%-14s", label);
        str_append_shown(out, words->items[i], strlen(words->items[i]), "");
        str_append_char(out, '\n');
    }
}

static void print_line(struct str *out, const char *label, const char *text)
{
    char *item = (char *)(uintptr_t)text;
    print_lines(out, label, &(struct image_words){&item, text != NULL});
}

static void print_record(struct str *out, const struct images *store,
                         const struct image_record *record)
{
    print_line(out, "name", record->name);
    str_appendf(out, "%-14ssha256:%s\n", "digest", record->digest);
    print_line(out, "architecture", record->architecture);
    print_line(out, "size", str_size(images_size(store, record)).text);
    print_lines(out, "entrypoint", &record->entrypoint);
    print_lines(out, "cmd", &record->cmd);
    print_line(out, "workdir", record->workdir);
    print_line(out, "user", record->user);
    print_lines(out, "env", &record->env);
    for (size_t i = 0; i < record->layer_count; i++)
        str_appendf(out, "%-14ssha256:%s\n", "layer", record->layers[i]);
}

static int run_inspect(struct words *words, struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    autorecord struct image_record record = {0};
    autostr struct str out = {0};
    if (words->count != 1)
        return brig_fail(err, BRIG_E_INVALID, 0, "brig image inspect needs the name of an image");
    int status = images_open(words->store, IMAGES_READ, &store, err);
    if (status == 0)
        status = images_find(&store, words->items[0], &record, err);
    if (status < 0)
        return status;
    if (words->json) {
        struct json json;
        json_init(&json, &out);
        print_json(&json, &store, &record);
        str_append_char(&out, '\n');
    } else {
        print_record(&out, &store, &record);
    }
    return message_print(&out, err);
}

/* ---- rm and gc ---- */

static int collect(const struct images *store, bool dry, struct brig_error *err)
{
    struct images_removed removed;
    int status = images_collect(store, dry, &removed, err);
    if (status < 0)
        return status;
    message_note("%s %zu layer%s, %s", dry ? "would remove" : "removed", removed.layers,
                 removed.layers == 1 ? "" : "s", str_size(removed.bytes).text);
    if (removed.busy > 0)
        message_note("%zu more %s in use by running jails; run brig image gc later", removed.busy,
                     removed.busy == 1 ? "is" : "are");
    return 0;
}

static int run_rm(struct words *words, struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    if (words->count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "brig image rm needs the name of an image");
    int status = images_open(words->store, IMAGES_REMOVE, &store, err);
    for (int i = 0; i < words->count && status == 0; i++)
        status = images_remove(&store, words->items[i], err);
    return status < 0 ? status : collect(&store, false, err);
}

static int run_gc(struct words *words, struct brig_error *err)
{
    autoimages struct images store = IMAGES_INIT;
    if (words->count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "brig image gc takes no names; see rm");
    int status = images_open(words->store, IMAGES_REMOVE, &store, err);
    if (status == BRIG_E_NOT_FOUND)
        return 0;
    return status < 0 ? status : collect(&store, words->dry, err);
}

/* ---- the verb ---- */

static const struct {
    const char *name;
    int (*run)(struct words *words, struct brig_error *err);
} actions[] = {{"load", run_load},
               {"list", run_list},
               {"inspect", run_inspect},
               {"rm", run_rm},
               {"gc", run_gc}};

/* The store: that of --store, else in the storage directory of the user whose jails are meant. */
static int find_store(struct words *words, struct brig_error *err)
{
    struct jails_place place;
    autofree char *cwd = NULL;
    autofree char *path = NULL;
    int status = jails_place_find(&place, err);
    if (status < 0)
        return status;
    if (!words->store_given) {
        status = jails_become_user(&place, err);
        return status < 0 || image_store_path(place.storage, words->store)
                   ? status
                   : brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "the storage directory");
    }
    if (!(cwd = getcwd(NULL, 0)))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the working directory");
    status = path_make_absolute(cwd, words->store_given, &path, err);
    return status < 0 || str_fill(words->store, sizeof words->store, path)
               ? status
               : brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "--store");
}

static int run_image(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct words words = {.app = app};
    const char *jail = NULL;
    const struct jails_word options[] = {{"--store", NULL, &words.store_given},
                                         {"--name", NULL, &words.name},
                                         {"--json", &words.json, NULL},
                                         {"--dry-run", &words.dry, NULL},
                                         {0}};
    for (size_t i = 0; argc > 1 && i < ARRAY_LENGTH(actions); i++) {
        if (strcmp(argv[1], actions[i].name) != 0)
            continue;
        int at = jails_parse_options(app, argc - 1, argv + 1, options, &jail, err);
        if (at < 0)
            return at;
        if (at < argc - 1 && argv[1 + at][0] == '-' && argv[1 + at][1])
            return command_refuse(app, argc, argv, 1 + at, err);
        words.items = argv + 1 + at;
        words.count = argc - 1 - at;
        int status = find_store(&words, err);
        return status < 0 ? status : actions[i].run(&words, err);
    }
    return brig_fail(
        err, BRIG_E_INVALID, 0,
        "brig image needs one of load, list, inspect, rm and gc. See brig image --help");
}

const struct command cmd_image = {
    .name = "image",
    .summary = "load container images, for --image",
    .usage = "load|list|inspect|rm|gc [--store DIR] [--name IMAGE] [--json] [--dry-run] "
             "[SOURCE|IMAGE...]",
    .words = COMMAND_WORDS_IMAGES,
    .run = run_image,
};
