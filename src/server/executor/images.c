/* SPDX-License-Identifier: MIT */
/* Opens the container images of runtimes and sandboxes. */
#include "server/executor/images.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "image/images.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"

/* Finds the program that runs the image, and those that prepare it. */
static void find_backend(struct server_config *config, struct runtime *runtime)
{
    static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/usr/local/bin",
                                          "/usr/local/sbin"};
    const char *name = runtime_backend_names[runtime->backend];
    for (size_t i = 0; runtime->backend != BACKEND_BRIG && i < ARRAY_LENGTH(folders); i++) {
        char path[64];
        if (str_fill(path, sizeof path, folders[i], "/", name) && access(path, X_OK) == 0) {
            runtime->backend_program = arena_strdup(&config->arena, path);
            return;
        }
    }
    if (runtime->backend != BACKEND_BRIG)
        runtime->image_problem = arena_printf(
            &config->arena, "backend '%s' is not in /usr or /usr/local: install it", name);
}

/* What is missing has to be loaded into the store of brigd, which is not that of a user. */
static int open_image(const struct server_config *config, const char *name, struct image *ret_image,
                      struct brig_error *err)
{
    const char *store = config->sandbox.image_dir;
    struct brig_error found = {0};
    int result = image_open(store, name, ret_image, &found);
    bool other = strstr(found.message, "another digest");
    if (result == BRIG_E_NOT_FOUND && other)
        return brig_fail(err, result, 0,
                         "%s; load that one as the user of brigd: brig image load --store %s FILE",
                         found.message, store);
    if (result == BRIG_E_NOT_FOUND)
        return brig_fail(err, result, 0,
                         "there is no image '%s'; load it as the user of brigd: brig image load "
                         "--store %s FILE",
                         str_shown(name).text, store);
    if (result < 0 && err)
        *err = found;
    return result;
}

static void open_one(struct server_config *config, struct runtime *runtime)
{
    struct brig_error err = {0};
    struct image *image = calloc(1, sizeof *image);
    int result = image ? open_image(config, runtime->image, image, &err) : brig_fail_nomem(&err);
    if (result == 0) {
        runtime->opened = image;
        find_backend(config, runtime);
        return;
    }
    free(image);
    runtime->image_problem =
        err.code == BRIG_E_NOT_FOUND
            ? arena_strdup(&config->arena, err.message)
            : arena_printf(&config->arena, "image '%s': %s", runtime->image, err.message);
}

void executor_images_open(struct server_config *config)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        if (config->runtimes[i].image && !config->runtimes[i].disabled)
            open_one(config, &config->runtimes[i]);
}

void executor_images_close(struct server_config *config)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct image *image = config->runtimes[i].opened;
        config->runtimes[i].opened = NULL;
        if (image)
            image_done(image);
        free(image);
    }
}

int executor_image_use(const struct server_config *config, const struct runtime *runtime,
                       const char *name, struct runtime **ret_copy, struct brig_error *err)
{
    int result = config_check_image(name, err);
    if (result < 0)
        return result;
    struct runtime *copy = malloc(sizeof *copy);
    struct image *image = calloc(1, sizeof *image);
    result = copy && image ? open_image(config, name, image, err) : brig_fail_nomem(err);
    if (result < 0) {
        free(image);
        free(copy);
        return result;
    }
    *copy = *runtime;
    copy->root = NULL;
    copy->image = name;
    copy->opened = image;
    copy->image_problem = NULL;
    *ret_copy = copy;
    return 0;
}

void executor_image_release(struct runtime *copy)
{
    if (!copy)
        return;
    image_done(copy->opened);
    free(copy->opened);
    free(copy);
}
