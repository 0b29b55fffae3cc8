/* SPDX-License-Identifier: MIT */
/* What is hidden of the home directory, from the rules in their order. */
#include "cli/masks.h"

#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "cli/settings.h"
#include "policy/policy.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

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
    *masks = (struct masks){0};
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
        if (covers(masks->hidden[i], path))
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

/* ---- grants ---- */

static bool is_granted(const struct brig_policy *policy, const char *path)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        /* By its source: it may be granted at another place, and the engine hides it there too. */
        if (grant->access != BRIG_MASK && grant->fd < 0 && path_is_beneath(grant->source, path) &&
            strcmp(grant->source, path) != 0)
            return true;
    }
    return false;
}

static bool is_shown(const struct masks *masks, const char *relative)
{
    for (size_t i = 0; i < masks->shown_count; i++)
        if (strcmp(masks->shown[i], relative) == 0 || is_below(masks->shown[i], relative))
            return true;
    return false;
}

/* Which of the masks to apply. */
typedef bool (*masks_wanted)(const struct brig_policy *policy, const char *path);

static int apply_one(const struct masks *masks, size_t which, const char *home, const char *path,
                     masks_wanted wanted, struct brig_policy *policy, struct brig_error *err)
{
    if (!wanted(policy, path) || is_shown(masks, path + strlen(home) + 1))
        return 0;
    const char *origin = masks->origins[which];
    int status = brig_policy_origin(policy, origin ? origin : "masks", err);
    if (status < 0)
        return status;
    return brig_policy_grant(policy, BRIG_MASK, path, NULL, BRIG_GRANT_OPTIONAL, err);
}

static bool exists(const struct brig_policy *policy, const char *path)
{
    (void)policy;
    struct stat info;
    return lstat(path, &info) == 0;
}

/* Whether anything of the home directory is granted, or all of it. */
static bool is_home_granted(const struct brig_policy *policy, const char *home)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access != BRIG_MASK && grant->fd < 0 &&
            (path_is_beneath(home, grant->source) || path_is_beneath(grant->source, home)))
            return true;
    }
    return false;
}

/* Whether something granted could hold what a pattern stands for. */
static bool may_be_granted(const struct brig_policy *policy, const char *path)
{
    char fixed[PATH_LENGTH_MAX + 1];
    (void)snprintf(fixed, sizeof fixed, "%.*s", (int)strcspn(path, "*?["), path);
    char *slash = strrchr(fixed, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access != BRIG_MASK && grant->fd < 0 &&
            (path_is_beneath(grant->source, fixed) ||
             (strchr(path + strlen(fixed) + 1, '/') && path_is_beneath(fixed, grant->source))))
            return true;
    }
    return false;
}

static int apply_all(const struct masks *masks, const char *home, masks_wanted wanted,
                     struct brig_policy *policy, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < masks->hidden_count && status == 0; i++) {
        char path[PATH_LENGTH_MAX + 1];
        int length = snprintf(path, sizeof path, "%s/%s", home, masks->hidden[i]);
        if (length < 0 || (size_t)length >= sizeof path)
            continue;
        if (!strpbrk(masks->hidden[i], "*?[")) {
            status = apply_one(masks, i, home, path, wanted, policy, err);
            continue;
        }
        if (wanted == is_granted && !may_be_granted(policy, path))
            continue;
        glob_t found = {0};
        if (glob(path, GLOB_NOSORT | GLOB_PERIOD, NULL, &found) == 0)
            for (size_t j = 0; j < found.gl_pathc && status == 0; j++)
                if (!is_dots(strrchr(found.gl_pathv[j], '/') + 1))
                    status = apply_one(masks, i, home, found.gl_pathv[j], wanted, policy, err);
        globfree(&found);
    }
    return status;
}

int masks_apply_to_grants(const struct masks *masks, const char *home, struct brig_policy *policy,
                          struct brig_error *err)
{
    return is_home_granted(policy, home) ? apply_all(masks, home, is_granted, policy, err) : 0;
}

int masks_apply_to_home(const struct masks *masks, const char *home, struct brig_policy *policy,
                        struct brig_error *err)
{
    return apply_all(masks, home, exists, policy, err);
}
