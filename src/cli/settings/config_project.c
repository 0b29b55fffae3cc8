/* SPDX-License-Identifier: MIT */
/* A project's .brig.conf: it comes with a project that others wrote, so it may only narrow. */
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings/config.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

static int refuse(const char *what, const char *value, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s%s%s' is not possible here: a project's " CONFIG_PROJECT_FILE
                     " may only narrow (rdir of what is granted, mask, unsetenv, lower limits, "
                     "deny, 'net none', review, a stricter mode)",
                     what, value ? " " : "", value ? str_shown(value).text : "");
}

int config_project_check(const struct option_row *row, const char *value, struct brig_error *err)
{
    static const enum option_id narrowing[] = {
        OPTION_MODE,          OPTION_RDIR,     OPTION_RDIR_OPTIONAL, OPTION_MASK,
        OPTION_MASK_OPTIONAL, OPTION_UNSETENV, OPTION_DENY};
    for (size_t i = 0; i < ARRAY_LENGTH(narrowing); i++)
        if (row->id == narrowing[i])
            return 0;
    bool no_network = row->id == OPTION_NET && strcmp(value, "none") == 0;
    bool review = row->id == OPTION_REVIEW && (!value || strcmp(value, "on") == 0);
    return no_network || review || row->group == OPTION_GROUP_LIMITS
               ? 0
               : refuse(row->long_name, value, err);
}

bool config_mode_narrows(enum brig_mode from, enum brig_mode to)
{
    static const int strictness[] = {
        [BRIG_MODE_CASUAL] = 0,
        [BRIG_MODE_BARE] = 1,
        [BRIG_MODE_STRICT] = 2,
        [BRIG_MODE_SEALED] = 3,
    };
    return strictness[to] >= strictness[from];
}

int config_project_apply(struct settings *settings, const struct config_line *line,
                         struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    uint64_t before[BRIG_LIMIT_COUNT_];
    memcpy(before, policy->limits, sizeof before);
    settings->place = SETTINGS_PROJECT;
    int status = settings_apply(settings, &(struct option_use){line->row, line->value}, err);
    for (size_t i = 0; status == 0 && i < BRIG_LIMIT_COUNT_; i++) {
        uint64_t now = policy->limits[i];
        if (now == before[i])
            continue;
        /* Zero is the lowest value of the grace only; for all other limits it means no limit. */
        bool lower = i == BRIG_LIMIT_GRACE_MS ? now < before[i]
                                              : now != 0 && (before[i] == 0 || now < before[i]);
        if (!lower)
            status = refuse(line->row->long_name, line->value, err);
    }
    return status;
}

/* Whether a mask in the home directory covers a path or a parent of it. */
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

/* Masks in the home directory become rules later, and would be weaker than a grant inside a masked
 * directory. */
static bool is_masked(const struct settings *settings, const char *path)
{
    const char *below = path_below(settings->home, path);
    bool masked = false;
    for (size_t i = 0; below && *below && i < settings->mask_count; i++)
        if (mask_covers(settings->masks[i].path, below))
            masked = !settings->masks[i].unmask;
    return masked;
}

static int narrow(struct settings *settings, const struct config_line *line, const char *path,
                  struct brig_error *err)
{
    const struct policy_grant *above = policy_rule_of(settings->policy, path);
    if (!above)
        return refuse(line->row->long_name, line->value, err);
    /* A path that is read-only or hidden already is narrow enough, and the command line has the
     * last word. */
    bool typed = strcmp(above->dest, path) == 0 && strcmp(above->origin, SETTINGS_TYPED) == 0;
    if (above->access != BRIG_READ_WRITE || typed || is_masked(settings, path))
        return 0;
    const char *rest = path + (strcmp(above->dest, "/") == 0 ? 0 : strlen(above->dest));
    autofree char *source = NULL;
    int status = str_make(&source, err, above->source, rest);
    bool optional = line->row->id == OPTION_RDIR_OPTIONAL;
    return status < 0 ? status
                      : brig_policy_grant(settings->policy, BRIG_READ_ONLY, source, path,
                                          optional ? BRIG_GRANT_OPTIONAL : 0, err);
}

int config_project_grant(struct settings *settings, const struct config_line *line,
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
    /* Without "..", which could lead out of the grant. */
    status = path_normalise(path, 0, &normal, err);
    if (status < 0)
        return status;
    status = brig_policy_origin(settings->policy, line->origin, err);
    return status < 0 ? status : narrow(settings, line, normal, err);
}
