/* SPDX-License-Identifier: MIT */
/* Applies what the files of the configuration say, in the order in which later rules win. */
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/config.h"
#include "cli/config_project.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* Names of this program and of jai, weaker than every rule: `unsetenv *` takes them. */
static int set_variables(const struct config *config, const struct config_world *world,
                         struct settings *settings, struct brig_error *err)
{
    const struct {
        const char *name;
        const char *value;
    } rows[] = {
        {"BRIG_USER", world->user},
        {"JAI_USER", world->user},
        {"BRIG_MODE", policy_mode_name(config->mode)},
        {"JAI_MODE", policy_mode_name(config->mode)},
        {"BRIG_JAIL", config->jail},
        {"JAI_JAIL", config->jail},
        {"JAI_CONFIG_DIR", config->dir},
        {"PWD", world->cwd},
    };
    int status = brig_policy_origin(settings->policy, "the jail", err);
    for (size_t i = 0; status == 0 && i < ARRAY_LENGTH(rows); i++)
        status = brig_policy_setenv(settings->policy, rows[i].name, rows[i].value, err);
    return status;
}

static int apply_line(struct settings *settings, const struct config_line *line,
                      struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, line->origin, err);
    if (status < 0)
        return status;
    struct option_use use = {.row = line->row, .value = line->value};
    settings->place = SETTINGS_FILE;
    status = line->layer == CONFIG_PROJECT ? project_apply(settings, line, err)
                                           : settings_apply(settings, &use, err);
    return status < 0 ? brig_wrap(err, status, "%s", str_shown(line->origin).text) : 0;
}

/* Grants of a project are made last, when it is known what there is to narrow; its mode was chosen. */
static bool is_project_grant(const struct config_line *line)
{
    return line->layer == CONFIG_PROJECT &&
           (line->row->id == OPTION_RDIR || line->row->id == OPTION_RDIR_OPTIONAL);
}

int config_apply(const struct config *config, const struct config_world *world,
                 struct settings *settings, struct brig_error *err)
{
    settings->home = world->home;
    settings->config_dir = config->dir;
    settings->jail = config->jail;
    settings->jail_given = config->jail_given;
    settings->jail_exists = config->jail_exists;
    settings->mode = config->mode;
    settings->mode_origin = config->mode_origin;
    settings->storage = config->storage;
    bool sealed = config->mode == BRIG_MODE_SEALED;
    bool defaults = !sealed && !config->no_defaults;
    settings->late_masks = sealed && !config->no_defaults; /* mostly there is nothing to hide */
    int status = sealed ? 0 : set_variables(config, world, settings, err);
    if (status == 0 && defaults)
        status = settings_apply_defaults(settings, err);
    if (status == 0 && settings->late_masks)
        status = settings_hide_outside(settings, err);
    for (size_t i = 0; status == 0 && i < config->line_count; i++) {
        const struct config_line *line = &config->lines[i];
        if (!is_project_grant(line) && (defaults || line->layer != CONFIG_BUILT_IN))
            status = apply_line(settings, line, err);
    }
    return status;
}

int config_apply_project(const struct config *config, struct settings *settings,
                         struct brig_error *err)
{
    for (size_t i = 0; i < config->line_count; i++) {
        const struct config_line *line = &config->lines[i];
        if (!is_project_grant(line))
            continue;
        int status = project_apply_grant(settings, line, err);
        if (status < 0)
            return brig_wrap(err, status, "%s", str_shown(line->origin).text);
    }
    return 0;
}
