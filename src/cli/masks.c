/* SPDX-License-Identifier: MIT */
/* The masks of a run. */
#include "cli/masks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings.h"
#include "jail/view/mask_names.h"
#include "policy/defaults.h"
#include "policy/policy.h"

/* ---- rules in their order ---- */

static void drop(const char **list, size_t count, size_t which)
{
    memmove(list + which, list + which + 1, (count - which - 1) * sizeof *list);
}

static void hide(struct masks *masks, const char *path, const char *origin)
{
    struct mask_rules *rules = &masks->rules;
    for (size_t i = rules->shown_count; i-- > 0;)
        if (path_is_beneath(path, rules->shown[i]))
            drop(rules->shown, rules->shown_count--, i);
    masks->origins[rules->hidden_count] = origin;
    rules->hidden[rules->hidden_count++] = path; /* a rule that is there twice does no harm */
}

/* Takes back the same rule and those that it matches; below a hidden directory it is an exception. */
static void show(struct masks *masks, const char *path)
{
    struct mask_rules *rules = &masks->rules;
    for (size_t i = rules->hidden_count; i-- > 0;)
        if (path_is_beneath(path, rules->hidden[i]) ||
            policy_pattern_matches(path, rules->hidden[i])) {
            drop(masks->origins, rules->hidden_count, i);
            drop(rules->hidden, rules->hidden_count--, i);
        }
    rules->shown[rules->shown_count++] = path;
}

static size_t count_defaults(void)
{
    size_t count = 0;
    for (const char *mask = policy_default_masks; *mask; mask = policy_next_mask(mask))
        count++;
    return count;
}

int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err)
{
    size_t room = settings->mask_count + (settings->late_masks ? count_defaults() : 0) + 1;
    struct masks masks = {
        .rules = {.hidden = calloc(room, sizeof *masks.rules.hidden),
                  .shown = calloc(room, sizeof *masks.rules.shown)},
        .origins = calloc(room, sizeof *masks.origins),
    };
    if (!masks.rules.hidden || !masks.origins || !masks.rules.shown) {
        masks_done(&masks);
        return brig_fail_nomem(err);
    }
    for (const char *mask = policy_default_masks; settings->late_masks && *mask;
         mask = policy_next_mask(mask))
        hide(&masks, mask, SETTINGS_BUILT_IN);
    for (size_t i = 0; i < settings->mask_count; i++)
        if (settings->masks[i].unmask)
            show(&masks, settings->masks[i].path);
        else
            hide(&masks, settings->masks[i].path, settings->masks[i].origin);
    *ret_masks = masks;
    return 0;
}

void masks_done(struct masks *masks)
{
    free(masks->rules.hidden);
    free(masks->rules.shown);
    free(masks->origins);
    for (size_t i = 0; i < masks->owned_count; i++)
        free(masks->owned[i]);
    free(masks->owned);
    *masks = (struct masks){0};
}

int masks_add(struct masks *masks, const char *path, const char *origin, struct brig_error *err)
{
    size_t count = masks->rules.hidden_count;
    const char **hidden = reallocarray(masks->rules.hidden, count + 1, sizeof *hidden);
    masks->rules.hidden = hidden ? hidden : masks->rules.hidden;
    const char **origins = reallocarray(masks->origins, count + 1, sizeof *origins);
    masks->origins = origins ? origins : masks->origins;
    char **owned = reallocarray(masks->owned, masks->owned_count + 1, sizeof *owned);
    masks->owned = owned ? owned : masks->owned;
    char *copy = strdup(path);
    if (!hidden || !origins || !owned || !copy) {
        free(copy);
        return brig_fail_nomem(err);
    }
    owned[masks->owned_count++] = copy;
    origins[count] = origin;
    hidden[count] = copy;
    masks->rules.hidden_count++;
    return 0;
}

/* ---- the paths that they come to ---- */

/* Resolves rules in a home directory, which need not exist. */
static int resolve(const char *home, const char *real, const struct mask_rules *rules,
                   int (*visit)(void *, const struct mask_path *, struct brig_error *),
                   void *context, struct brig_error *err)
{
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct mask_home where = {.fd = fd, .path = home, .real = real};
    const struct mask_visitor visitor = {.path = visit, .context = context};
    return fd < 0 ? 0 : mask_each(&where, rules, &visitor, err);
}

static int resolve_home(const char *home, const struct mask_rules *rules,
                        int (*visit)(void *, const struct mask_path *, struct brig_error *),
                        void *context, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    return resolve(home, path_resolve(home, real) ? real : NULL, rules, visit, context, err);
}

struct marking {
    struct settings *settings;
    const char *home;
};

static int mark_found(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct marking *marking = context;
    struct settings_mask *mask = &marking->settings->masks[path->rule];
    char whole[PATH_LENGTH_MAX + 1];
    struct stat info;
    (void)err;
    if (!mask->found && !path->linked &&
        str_fill(whole, sizeof whole, marking->home, "/", path->path))
        mask->found = lstat(whole, &info) == 0;
    return 0;
}

int masks_mark_found(struct settings *settings, const char *home, struct brig_error *err)
{
    autofree const char **all = calloc(settings->mask_count + 1, sizeof *all);
    if (!all)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < settings->mask_count; i++)
        all[i] = settings->masks[i].path;
    const struct mask_rules rules = {.hidden = all, .hidden_count = settings->mask_count};
    struct marking marking = {settings, home};
    return resolve_home(home, &rules, mark_found, &marking, err);
}

struct applying {
    const struct masks *masks;
    const struct mask_names *names;
};

static int apply_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct applying *applying = context;
    const char *origin = applying->masks->origins[path->rule];
    char whole[PATH_LENGTH_MAX + 1];
    bool fits = path->outside
                    ? str_fill(whole, sizeof whole, path->path)
                    : str_fill(whole, sizeof whole, applying->names->home, "/", path->path);
    return fits ? mask_names_hide(applying->names, whole, origin ? origin : "masks", err) : 0;
}

int masks_apply(const struct masks *masks, const struct mask_names *names, struct brig_error *err)
{
    struct applying applying = {masks, names};
    return resolve(names->home, names->real_home, &masks->rules, apply_path, &applying, err);
}

static int add_linked(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct masks *masks = context;
    return path->linked && !path->outside
               ? masks_add(masks, path->path, masks->origins[path->rule], err)
               : 0;
}

int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err)
{
    const size_t count = masks->rules.hidden_count; /* the array grows meanwhile */
    autofree const char **hidden = calloc(count + 1, sizeof *hidden);
    if (!hidden)
        return brig_fail_nomem(err);
    memcpy(hidden, masks->rules.hidden, count * sizeof *hidden);
    struct mask_rules rules = masks->rules;
    rules.hidden = hidden;
    return resolve_home(home, &rules, add_linked, masks, err);
}
