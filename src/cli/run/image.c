/* SPDX-License-Identifier: MIT */
#include "cli/run/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/settings/settings.h"
#include "image/images.h"
#include "policy/layers.h"
#include "policy/policy.h"

/* What container engines set if the image does not. */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

bool image_store_path(const char *storage, char ret_path[PATH_LENGTH_MAX + 1])
{
    return str_fill(ret_path, PATH_LENGTH_MAX + 1, storage, "/images");
}

/* Whether a rule gives the variable a value. */
static bool is_set(const struct brig_policy *policy, const char *name, size_t length)
{
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_SET && strlen(policy->env[i].name) == length &&
            memcmp(policy->env[i].name, name, length) == 0)
            return true;
    return false;
}

static int set_variable(struct brig_policy *policy, const char *text, struct brig_error *err)
{
    const char *equals = strchr(text, '=');
    size_t length = (size_t)(equals - text);
    if (is_set(policy, text, length))
        return 0;
    autofree char *name = strndup(text, length);
    return name ? brig_policy_setenv(policy, name, equals + 1, err) : brig_fail_nomem(err);
}

static int set_variables(struct brig_policy *policy, const struct image_words *env,
                         struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < env->count && status == 0; i++)
        status = set_variable(policy, env->items[i], err);
    return status < 0 ? status : set_variable(policy, "PATH=" DEFAULT_PATH, err);
}

int image_apply(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    char store[PATH_LENGTH_MAX + 1];
    if (!settings->image)
        return 0;
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return brig_fail_nomem(err);
    if (!settings->storage || !image_store_path(settings->storage, store)) {
        free(image);
        return brig_fail(err, BRIG_E_INVALID, 0, "--image: there is no storage directory");
    }
    identity_enter(identity);
    int status = image_open(store, settings->image, image, err);
    identity_leave(identity);
    if (status < 0) {
        free(image);
        return brig_wrap(err, status, "--image %s", str_shown(settings->image).text);
    }
    settings->image_used = image;
    status = brig_policy_origin(policy, "the image", err);
    if (status == 0)
        status = policy_layers(policy, image->paths, image->count, err);
    return status < 0 ? status : set_variables(policy, &image->record.env, err);
}

const char **image_command(const struct settings *settings)
{
    const struct image_record *record = &settings->image_used->record;
    const struct image_words *parts[] = {&record->entrypoint, &record->cmd};
    const char **words = calloc(record->entrypoint.count + record->cmd.count + 2, sizeof *words);
    size_t count = 0;
    for (size_t i = 0; words && i < ARRAY_LENGTH(parts); i++)
        for (size_t k = 0; k < parts[i]->count; k++)
            words[count++] = parts[i]->items[k];
    if (words && count == 0)
        words[0] = "/bin/sh";
    return words;
}

void image_release(struct settings *settings)
{
    if (settings->image_used)
        image_done(settings->image_used);
    free(take_ptr(&settings->image_used));
    free(take_ptr(&settings->image));
}
