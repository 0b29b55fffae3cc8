/* SPDX-License-Identifier: MIT */
/* What is hidden of the home directory, from the rules in their order. */
#include "cli/masks.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/path_aliases.h"
#include "cli/settings.h"
#include "home/hide.h"
#include "policy/defaults.h"
#include "policy/policy.h"

static bool is_below(const char *parent, const char *path)
{
    size_t length = strlen(parent);
    return strncmp(path, parent, length) == 0 && path[length] == '/';
}

static void drop(const char **list, size_t count, size_t which)
{
    memmove(list + which, list + which + 1, (count - which - 1) * sizeof *list);
}

static void hide(struct masks *masks, const char *path, const char *origin)
{
    for (size_t i = masks->shown_count; i-- > 0;)
        if (strcmp(masks->shown[i], path) == 0 || is_below(path, masks->shown[i]))
            drop(masks->shown, masks->shown_count--, i);
    masks->origins[masks->hidden_count] = origin;
    masks->hidden[masks->hidden_count++] = path; /* twice is no harm, and looking for it is */
}

/* The identical rule is taken back, and what else the name stands for; below a hidden directory the
 * path is an exception. */
static void show(struct masks *masks, const char *path)
{
    for (size_t i = masks->hidden_count; i-- > 0;)
        if (strcmp(masks->hidden[i], path) == 0 || is_below(path, masks->hidden[i]) ||
            policy_pattern_matches(path, masks->hidden[i])) {
            drop(masks->origins, masks->hidden_count, i);
            drop(masks->hidden, masks->hidden_count--, i);
        }
    masks->shown[masks->shown_count++] = path;
}

int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err)
{
    struct masks masks = {
        .hidden = calloc(settings->mask_count + 1, sizeof *masks.hidden),
        .origins = calloc(settings->mask_count + 1, sizeof *masks.origins),
        .shown = calloc(settings->mask_count + 1, sizeof *masks.shown),
    };
    if (!masks.hidden || !masks.origins || !masks.shown) {
        masks_done(&masks);
        return brig_fail_nomem(err);
    }
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
    free(masks->hidden);
    free(masks->origins);
    free(masks->shown);
    for (size_t i = 0; i < masks->owned_count; i++)
        free(masks->owned[i]);
    free(masks->owned);
    *masks = (struct masks){0};
}

/* Whether a pattern can have to do with a path at all: of hundreds most begin with another character. */
static bool begins_alike(const char *pattern, const char *path)
{
    char first = pattern[0];
    return first == path[0] || first == '*' || first == '?' || first == '[' || first == '\\';
}

/* Whether a pattern is for a path or for something above it, as glob() would have it. */
static bool covers(const char *pattern, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    for (size_t length = 1; length <= PATH_LENGTH_MAX; length++) {
        if (path[length] == '/' || path[length] == '\0') {
            memcpy(part, path, length);
            part[length] = '\0';
            if (strcmp(pattern, part) == 0 || fnmatch(pattern, part, FNM_PATHNAME) == 0)
                return true;
        }
        if (path[length] == '\0')
            break;
    }
    return false;
}

int masks_find(const struct masks *masks, const char *path)
{
    for (size_t i = 0; i < masks->shown_count; i++)
        if (strcmp(masks->shown[i], path) == 0 || is_below(masks->shown[i], path) ||
            is_below(path, masks->shown[i]))
            return -1;
    for (size_t i = 0; i < masks->hidden_count && *path != '\0'; i++)
        if (begins_alike(masks->hidden[i], path) && covers(masks->hidden[i], path))
            return (int)i;
    return -1;
}

void masks_look(struct settings *settings, const char *home)
{
    for (size_t i = 0; i < settings->mask_count; i++) {
        char path[PATH_LENGTH_MAX + 1];
        struct stat info;
        struct settings_mask *mask = &settings->masks[i];
        int length = snprintf(path, sizeof path, "%s/%s", home, mask->path);
        if (length < 0 || (size_t)length >= sizeof path)
            continue;
        mask->found = lstat(path, &info) == 0;
        glob_t found = {0};
        if (!mask->found && strpbrk(mask->path, "*?["))
            mask->found = glob(path, GLOB_NOSORT | GLOB_PERIOD, NULL, &found) == 0;
        globfree(&found);
    }
}

/* ---- wherever they show ---- */

struct applying {
    const struct masks *masks;
    const size_t *which; /* of each rule its index in masks->hidden */
    const struct path_aliases *path_aliases;
};

static int hide_place(void *context, const struct hide_place *place, struct brig_error *err)
{
    const struct applying *applying = context;
    const struct path_aliases *path_aliases = applying->path_aliases;
    char path[PATH_LENGTH_MAX + 1];
    int length = place->outside
                     ? snprintf(path, sizeof path, "%s", place->path)
                     : snprintf(path, sizeof path, "%s/%s", path_aliases->home, place->path);
    if (length < 0 || (size_t)length >= sizeof path)
        return 0;
    const char *origin = applying->masks->origins[applying->which[place->rule]];
    return path_aliases_hide(path_aliases, path, origin ? origin : "masks", err);
}

/* The part of a pattern that is above its first wildcard. */
static size_t fixed_length(const char *mask)
{
    size_t length = strcspn(mask, "*?[");
    while (mask[length] && length > 0 && mask[length - 1] != '/')
        length--;
    return mask[length] && length > 0 ? length - 1 : length;
}

/* Whether a granted directory of the home could hold what a pattern stands for: all of it lies below
 * the fixed part of it. Seldom asked, so what asks of every mask is a few instructions without it. */
static __attribute__((noinline)) bool may_hold(const char *inside, const char *mask)
{
    size_t length = fixed_length(mask);
    size_t size = 0;
    while (size < length && inside[size] && inside[size] == mask[size])
        size++;
    if (!inside[size])
        return mask[size] == '/' || size == length;
    /* It may be, or lie in, one of several directories that a wildcard stands for. */
    return size == length && (length == 0 || inside[length] == '/') &&
           strchr(mask + length + (length > 0), '/');
}

static void relevant_done(struct masks_relevant *relevant)
{
    free(relevant->inside);
}

void masks_add_granted(struct masks_relevant *relevant, const char *home, const char *granted)
{
    if (path_is_beneath(granted, home))
        relevant->all = true;
    else if (path_is_beneath(home, granted))
        relevant->inside[relevant->count++] = granted + strlen(home) + 1;
}

/* Once for all masks, of which there are hundreds. */
static int relevant_init(struct masks_relevant *relevant, const struct path_aliases *path_aliases,
                         bool links, struct brig_error *err)
{
    const char *home = path_aliases->home, *real_home = path_aliases->real_home;
    bool linked = strcmp(home, real_home) != 0;
    relevant->all = links || path_aliases->aliases || path_aliases->home_shows;
    relevant->inside = calloc(path_aliases->grant_count * 3 + 1, sizeof *relevant->inside);
    if (!relevant->inside)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < path_aliases->grant_count && !relevant->all; i++) {
        const struct path_aliases_grant *grant = &path_aliases->grants[i];
        masks_add_granted(relevant, home, grant->source);
        if (linked)
            masks_add_granted(relevant, real_home, grant->source);
        if (grant->real)
            masks_add_granted(relevant, real_home, grant->real);
    }
    return 0;
}

bool masks_matters(const struct masks_relevant *relevant, const char *mask)
{
    for (size_t i = 0; i < relevant->count && !relevant->all; i++)
        if (begins_alike(mask, relevant->inside[i]) && may_hold(relevant->inside[i], mask))
            return true;
    return relevant->all;
}

int masks_apply(const struct masks *masks, const struct path_aliases *path_aliases, bool links,
                struct brig_error *err)
{
    __attribute__((cleanup(relevant_done))) struct masks_relevant relevant = {0};
    int status = relevant_init(&relevant, path_aliases, links, err);
    if (status < 0)
        return status;
    size_t first = 0;
    while (first < masks->hidden_count && !masks_matters(&relevant, masks->hidden[first]))
        first++;
    if (first == masks->hidden_count)
        return 0;
    autofree const char **hidden = calloc(masks->hidden_count + 1, sizeof *hidden);
    autofree size_t *which = calloc(masks->hidden_count + 1, sizeof *which);
    if (!hidden || !which)
        return brig_fail_nomem(err);
    size_t count = 0;
    for (size_t i = first; i < masks->hidden_count; i++)
        if (masks_matters(&relevant, masks->hidden[i])) {
            which[count] = i;
            hidden[count++] = masks->hidden[i];
        }
    const struct hide_rules rules = {.hidden = hidden,
                                     .hidden_count = count,
                                     .shown = masks->shown,
                                     .shown_count = masks->shown_count};
    autoclose int fd =
        count > 0 ? open(path_aliases->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const struct links_home home = {
        .fd = fd, .path = path_aliases->home, .real = path_aliases->real_home, .ignore = !links};
    struct applying applying = {masks, which, path_aliases};
    return fd < 0 ? 0 : hide_each(&home, &rules, hide_place, &applying, err);
}

int masks_resolve_late(const struct settings *settings, struct masks *ret_masks,
                       struct brig_error *err)
{
    size_t count = 0;
    const char *mask;
    for (mask = policy_default_masks; *mask; mask = policy_next_mask(mask))
        count++;
    autofree struct settings_mask *rules = calloc(count + settings->mask_count + 1, sizeof *rules);
    if (!rules)
        return brig_fail_nomem(err);
    mask = policy_default_masks;
    for (size_t i = 0; i < count; i++, mask = policy_next_mask(mask))
        rules[i] = (struct settings_mask){.path = mask, .origin = SETTINGS_BUILT_IN};
    for (size_t i = 0; i < settings->mask_count; i++)
        rules[count + i] = settings->masks[i];
    const struct settings all = {.masks = rules, .mask_count = count + settings->mask_count};
    return masks_resolve(&all, ret_masks, err);
}

int masks_apply_late(const struct settings *settings, const struct path_aliases *path_aliases,
                     struct brig_error *err)
{
    if (!settings->late_masks)
        return 0;
    __attribute__((cleanup(relevant_done))) struct masks_relevant relevant = {0};
    int status = relevant_init(&relevant, path_aliases, false, err);
    if (status < 0)
        return status;
    const char *mask = policy_default_masks;
    while (*mask && !masks_matters(&relevant, mask))
        mask = policy_next_mask(mask);
    if (!*mask)
        return 0;
    __attribute__((cleanup(masks_done))) struct masks masks = {0};
    status = masks_resolve_late(settings, &masks, err);
    return status < 0 ? status : masks_apply(&masks, path_aliases, false, err);
}

int masks_apply_places(const char *places, size_t length, const struct path_aliases *path_aliases,
                       struct brig_error *err)
{
    int status = 0;
    for (size_t at = 0; at < length && status == 0; at += strlen(places + at) + 1) {
        char path[PATH_LENGTH_MAX + 1];
        const char *place = places + at;
        (void)snprintf(path, sizeof path, "%s%s%s", *place == '/' ? "" : path_aliases->home,
                       *place == '/' ? "" : "/", place);
        status = path_aliases_hide(path_aliases, path, "masks, by a symbolic link", err);
    }
    return status;
}

/* ---- for whoever asks ---- */

static int add_linked(void *context, const struct hide_place *place, struct brig_error *err)
{
    struct masks *masks = context;
    if (!place->linked || place->outside)
        return 0;
    size_t count = masks->hidden_count;
    const char **hidden = reallocarray(masks->hidden, count + 1, sizeof *hidden);
    masks->hidden = hidden ? hidden : masks->hidden;
    const char **origins = reallocarray(masks->origins, count + 1, sizeof *origins);
    masks->origins = origins ? origins : masks->origins;
    char **owned = reallocarray(masks->owned, masks->owned_count + 1, sizeof *owned);
    masks->owned = owned ? owned : masks->owned;
    char *copy = strdup(place->path);
    if (!hidden || !origins || !owned || !copy) {
        free(copy);
        return brig_fail_nomem(err);
    }
    masks->owned[masks->owned_count++] = copy;
    masks->hidden[count] = copy;
    masks->origins[count] = masks->origins[place->rule];
    masks->hidden_count++;
    return 0;
}

int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err)
{
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *real = realpath(home, NULL);
    const struct links_home where = {.fd = fd, .path = home, .real = real};
    autofree const char **hidden = calloc(masks->hidden_count + 1, sizeof *hidden);
    if (!hidden)
        return brig_fail_nomem(err);
    memcpy(hidden, masks->hidden, masks->hidden_count * sizeof *hidden);
    const struct hide_rules rules = {.hidden = hidden,
                                     .hidden_count = masks->hidden_count,
                                     .shown = masks->shown,
                                     .shown_count = masks->shown_count};
    return fd < 0 ? 0 : hide_each(&where, &rules, add_linked, masks, err);
}
