/* SPDX-License-Identifier: MIT */
#include "cli/verbs/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/profile.h"
#include "cli/settle.h"

#define COUNTED_MAX 10000 /* changes elsewhere; of more, "more than" is said */

/* Builds the settings of a run with -D: the working directory may be one that is not granted. */
static int make_setup(struct verb_layers *v, const char *jail, struct brig_error *err)
{
    char *words[] = {(char *)(uintptr_t) "run", (char *)(uintptr_t) "-D",
                     (char *)(uintptr_t) "--jail", (char *)(uintptr_t)jail, NULL};
    int count = jail ? 4 : 2;
    struct settings_scan scan;
    words[count] = NULL;
    int status = settings_scan(count, words, &scan, err);
    scan.of_verb = true;
    return status < 0 ? status : setup_make(&v->setup, &scan, count, words, true, err);
}

static int open_layers(struct verb_layers *v, const char *verb, const char *jail, bool settled,
                       struct brig_error *err)
{
    struct jails_place place;
    v->layers.count = 0;
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    if (status == 0 && jail)
        status = jails_check(&place, verb, jail, err);
    if (status >= 0)
        status = make_setup(v, jail, err);
    if (status < 0)
        return status;
    if (settled)
        status = settle_here(v->setup.settings.storage, v->setup.settings.jail, err);
    if (status == 0)
        status =
            masks_find_hidden(&v->setup.settings, v->setup.identity.host_home, &v->hidden, err);
    if (status == 0)
        status = layers_open(v->setup.settings.storage, v->setup.settings.jail,
                             v->hidden.layer.home, &v->hidden.layer, &v->layers, err);
    if (status < 0)
        verb_layers_done(v);
    return status;
}

int verb_layers_open(struct verb_layers *v, const char *verb, const char *jail,
                     struct brig_error *err)
{
    return open_layers(v, verb, jail, false, err);
}

int verb_layers_settled(struct verb_layers *v, const char *verb, const char *jail,
                        struct brig_error *err)
{
    return open_layers(v, verb, jail, true, err);
}

void verb_layers_done(struct verb_layers *v)
{
    layers_done(&v->layers);
    masks_hidden_done(&v->hidden);
    setup_done(&v->setup);
}

/* Resolves the links in the directories of an absolute path, as far as they exist. */
static int resolve_above(char *path, char **ret_path, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    for (char *slash = strrchr(path, '/'); slash && slash > path;) {
        *slash = '\0';
        bool found = path_resolve(path, real);
        char *before = strrchr(path, '/');
        *slash = '/';
        if (found)
            return str_make(ret_path, err, strcmp(real, "/") == 0 ? "" : real, slash);
        slash = before;
    }
    return str_copy(path, ret_path, err);
}

int verb_resolve_path(const char *typed, char **ret_path, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *absolute = NULL;
    int status = path_make_absolute(getcwd(cwd, sizeof cwd) ? cwd : "/", typed, &absolute, err);
    return status < 0 ? status : resolve_above(absolute, ret_path, err);
}

const struct layer *verb_layers_find(const struct verb_layers *v, const char *typed,
                                     char **ret_path, struct brig_error *err)
{
    autofree char *real = NULL;
    const char *below;
    if (verb_resolve_path(typed, &real, err) < 0)
        return NULL;
    const struct layer *layer = layers_find(&v->layers, real, &below);
    if (!layer) {
        (void)brig_fail(err, BRIG_E_INVALID, 0,
                        "the jail '%s' has no copy of '%s'. See brig status%s",
                        v->setup.settings.jail, str_shown(real).text,
                        jails_option(v->setup.settings.jail).text);
        return NULL;
    }
    return str_copy(below, ret_path, err) < 0 ? NULL : layer;
}

/* ---- this directory, and elsewhere ---- */

const char *verb_layers_here(const struct verb_layers *v)
{
    char cwd[PATH_LENGTH_MAX + 1];
    const char *below;
    const struct layer *layer =
        getcwd(cwd, sizeof cwd) ? layers_find(&v->layers, cwd, &below) : NULL;
    return layer && !layer_is_home(layer->name) ? layer->root : NULL;
}

struct elsewhere {
    struct str state; /* of programs, in the home: not counted */
    uint64_t count;
};

static int count_change(void *context, const struct change *change, struct brig_error *err)
{
    struct elsewhere *elsewhere = context;
    (void)err;
    if (layer_is_home(change->layer->name) && inventory_is_state(&elsewhere->state, change->path))
        return 0;
    return ++elsewhere->count > COUNTED_MAX ? CHANGE_STOP : 0;
}

void verb_tell_elsewhere(const struct verb_layers *v, const char *here, const char *verb)
{
    static const struct change_options quick = {.quick = true};
    autostr struct str roots = {0};
    struct elsewhere elsewhere = {0};
    if (here && profile_list_state(&elsewhere.state, NULL) < 0)
        return;
    uint64_t count = 0;
    for (size_t i = 0; here && i < v->layers.count && count <= COUNTED_MAX; i++) {
        const struct layer *layer = &v->layers.items[i];
        uint64_t before = count;
        if (strcmp(layer->root, here) != 0)
            (void)changes_walk(layer, &quick, count_change, &elsewhere, NULL);
        count = elsewhere.count;
        if (count > before) {
            str_append_char(&roots, ' ');
            str_append_word(&roots, layer->root);
        }
    }
    str_done(&elsewhere.state);
    if (count > 0 && !roots.failed)
        message_note(
            "%s%ju change%s elsewhere: brig %s%s%s", count > COUNTED_MAX ? "more than " : "",
            (uintmax_t)(count > COUNTED_MAX ? COUNTED_MAX : count), count == 1 ? " is" : "s are",
            verb, jails_option(v->setup.settings.jail).text, roots.data);
}

void verb_append_path(struct str *out, const char *root, const char *path)
{
    if (strcmp(root, "/") != 0)
        str_append_shown(out, root, strlen(root), "");
    str_append_char(out, '/');
    str_append_shown(out, path, strlen(path), "");
}
