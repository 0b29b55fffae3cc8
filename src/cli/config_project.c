/* SPDX-License-Identifier: MIT */
/* What a project's .brig.conf may say, and that it only narrows. */
#include "config_project.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/config.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "policy/policy.h"

static int refuse(const char *what, const char *value, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s%s%s' is not possible here: a project's " CONFIG_PROJECT_FILE
                     " may only narrow (rdir of what is granted, mask, unsetenv, lower limits, "
                     "deny, 'net none', a stricter mode)",
                     what, value ? " " : "", value ? str_shown(value).text : "");
}

int project_check(const struct option_row *row, const char *value, struct brig_error *err)
{
    static const enum option_id narrowing[] = {
        OPTION_MODE,          OPTION_RDIR,     OPTION_RDIR_OPTIONAL, OPTION_MASK,
        OPTION_MASK_OPTIONAL, OPTION_UNSETENV, OPTION_DENY};
    for (size_t i = 0; i < ARRAY_LENGTH(narrowing); i++)
        if (row->id == narrowing[i])
            return 0;
    bool no_network = row->id == OPTION_NET && strcmp(value, "none") == 0;
    return no_network || row->group == OPTION_GROUP_LIMITS ? 0 : refuse(row->long_name, value, err);
}

bool project_mode_narrows(enum brig_mode from, enum brig_mode to)
{
    static const int strictness[] = {
        [BRIG_MODE_CASUAL] = 0,
        [BRIG_MODE_BARE] = 1,
        [BRIG_MODE_STRICT] = 2,
        [BRIG_MODE_SEALED] = 3,
    };
    return strictness[to] >= strictness[from];
}

static int apply_limit(struct settings *settings, const struct config_line *line,
                       struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    uint64_t before[BRIG_LIMIT_COUNT_];
    memcpy(before, policy->limits, sizeof before);
    struct option_use use = {.row = line->row, .value = line->value};
    int status = settings_apply(settings, &use, err);
    for (size_t i = 0; status == 0 && i < BRIG_LIMIT_COUNT_; i++) {
        uint64_t now = policy->limits[i];
        if (now == before[i])
            continue;
        /* Only of the grace zero is the lowest; of all others it means none. */
        bool lower = i == BRIG_LIMIT_GRACE_MS ? now < before[i]
                                              : now != 0 && (before[i] == 0 || now < before[i]);
        if (!lower)
            status = refuse(line->row->long_name, line->value, err);
    }
    return status;
}

int project_apply(struct settings *settings, const struct config_line *line, struct brig_error *err)
{
    settings->place = SETTINGS_PROJECT;
    if (line->row->group == OPTION_GROUP_LIMITS)
        return apply_limit(settings, line, err);
    struct option_use use = {.row = line->row, .value = line->value};
    return settings_apply(settings, &use, err);
}

const struct policy_grant *project_rule_of(const struct brig_policy *policy, const char *path)
{
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (path_is_beneath(grant->dest, path) &&
            (!best || path_depth(grant->dest) >= path_depth(best->dest)))
            best = grant;
    }
    return best;
}

/* Whether a mask in the home directory is for a path, or for something above it. */
static bool mask_covers(const char *pattern, const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    for (size_t length = 1; length <= PATH_LENGTH_MAX; length++) {
        if (path[length] == '/' || path[length] == '\0') {
            memcpy(part, path, length);
            part[length] = '\0';
            if (strcmp(pattern, part) == 0 ||
                fnmatch(pattern, part, FNM_PATHNAME | FNM_NOESCAPE) == 0)
                return true;
        }
        if (path[length] == '\0')
            break;
    }
    return false;
}

/* Masks in the home directory become rules later, and would be weaker than a grant inside of what
 * they hide. */
static bool is_masked(const struct settings *settings, const char *path)
{
    size_t home = strlen(settings->home);
    if (!path_is_beneath(settings->home, path) || path[home] != '/')
        return false;
    bool masked = false;
    for (size_t i = 0; i < settings->mask_count; i++)
        if (mask_covers(settings->masks[i].path, path + home + 1))
            masked = !settings->masks[i].unmask;
    return masked;
}

static int narrow(struct settings *settings, const struct config_line *line, const char *path,
                  struct brig_error *err)
{
    const struct policy_grant *above = project_rule_of(settings->policy, path);
    if (!above)
        return refuse(line->row->long_name, line->value, err);
    /* What is read-only or hidden already is narrow enough, and what is typed has the last word. */
    bool typed = strcmp(above->dest, path) == 0 && strcmp(above->origin, SETTINGS_TYPED) == 0;
    if (above->access != BRIG_READ_WRITE || typed || is_masked(settings, path))
        return 0;
    const char *rest = path + (strcmp(above->dest, "/") == 0 ? 0 : strlen(above->dest));
    autostr struct str source = {0};
    str_appendf(&source, "%s%s", above->source, rest);
    if (source.failed)
        return brig_fail_nomem(err);
    bool optional = line->row->id == OPTION_RDIR_OPTIONAL;
    return brig_policy_grant(settings->policy, BRIG_READ_ONLY, source.data, path,
                             optional ? BRIG_GRANT_OPTIONAL : 0, err);
}

int project_apply_grant(struct settings *settings, const struct config_line *line,
                        struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *dest = NULL;
    autofree char *normal = NULL;
    settings->place = SETTINGS_PROJECT;
    int status = settings_split_path(settings, line->value, false, &path, &dest, err);
    if (status < 0)
        return status;
    if (dest)
        return refuse(line->row->long_name, line->value, err);
    /* Without "..", which could lead out of what is granted. */
    status = path_normalise(path, 0, &normal, err);
    if (status < 0)
        return status;
    status = brig_policy_origin(settings->policy, line->origin, err);
    return status < 0 ? status : narrow(settings, line, normal, err);
}
