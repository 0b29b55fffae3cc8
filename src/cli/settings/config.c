/* SPDX-License-Identifier: MIT */
/* The configuration chain: reads the files in order and derives the decisions. */
#include "cli/settings/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/project.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

#define PROJECT_JAILS_MAX 99 /* of the same name; project_jail() has room for two digits */

/* The file that is being read. */
struct reading {
    struct config *config;
    const struct config_world *world;
    const struct settings_scan *scan;
    char *const *argv; /* whose options set variables */
    int argc;
    enum config_layer layer;
    char project_jail[PROJECT_JAIL_MAX]; /* "": the working directory is in no project */
};

void config_done(struct config *config)
{
    for (size_t i = 0; i < config->line_count; i++) {
        free(config->lines[i].value);
        free(config->lines[i].origin);
    }
    free(config->lines);
    free(config->dir);
    free(config->storage);
    free(config->jail);
    free(config->jail_here);
    free(config->mode_origin);
    free(config->project_text);
    profile_done(&config->profile);
    *config = (struct config){0};
}

/* ---- Lines ---- */

static int add_line(struct reading *r, const struct option_row *row, const char *value,
                    const char *origin, struct brig_error *err)
{
    struct config *config = r->config;
    if (config->line_count == CONFIG_LINES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many directives: at most %d are possible",
                         CONFIG_LINES_MAX);
    if (!array_grow(&config->lines, config->line_count))
        return brig_fail_nomem(err);
    struct config_line *line = &config->lines[config->line_count++];
    *line = (struct config_line){.row = row, .layer = r->layer};
    int status = str_copy(value, &line->value, err);
    return status < 0 ? status : str_copy(origin, &line->origin, err);
}

/* The last line of this option in a layer, or in all layers (-1); NULL if there is none. */
static const struct config_line *last_line(const struct config *config, enum option_id id,
                                           int layer)
{
    for (size_t i = config->line_count; i > 0; i--) {
        const struct config_line *line = &config->lines[i - 1];
        if (line->row->id == id && (layer < 0 || (int)line->layer == layer))
            return line;
    }
    return NULL;
}

/* ---- Variables in files ---- */

/* The jail without -j: that of the files, else that of the project, if the run has one. */
static const char *jail_without_option(const struct reading *r, bool has_project)
{
    const struct config_line *line = last_line(r->config, OPTION_JAIL, -1);
    bool nocwd = last_line(r->config, OPTION_NOCWD, -1) != NULL;
    if (line)
        return line->value;
    return has_project && r->project_jail[0] && !nocwd ? r->project_jail : SETTINGS_JAIL;
}

static const char *jail_so_far(const struct reading *r)
{
    const char *given = r->scan->given[OPTION_JAIL];
    bool has_project = r->scan->of_verb || !r->scan->given[OPTION_NOCWD];
    return given ? given : jail_without_option(r, has_project);
}

/* Jails that are used without a name are casual. */
static enum brig_mode default_mode(const struct reading *r, const char *jail)
{
    const char *storage = r->config->storage ? r->config->storage : r->world->storage;
    char project[PATH_LENGTH_MAX + 1];
    bool unnamed = strcmp(jail, SETTINGS_JAIL) == 0 || strcmp(jail, r->project_jail) == 0 ||
                   r->world->of_project(r->world->context, storage, jail, project);
    return unnamed ? BRIG_MODE_CASUAL : BRIG_MODE_STRICT;
}

static enum brig_mode mode_so_far(const struct reading *r)
{
    const struct config_line *line = last_line(r->config, OPTION_MODE, -1);
    if (r->scan->given[OPTION_MODE])
        return r->scan->mode;
    return line ? (enum brig_mode)policy_word_value(POLICY_MODE, line->value)
                : default_mode(r, jail_so_far(r));
}

const char *config_assigned(const char *text, const char *name)
{
    size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == '=' ? text + length + 1 : NULL;
}

static const char *set_by_files(const struct reading *r, const char *name)
{
    for (size_t i = r->config->line_count; i > 0; i--) {
        const struct config_line *line = &r->config->lines[i - 1];
        const char *value =
            line->row->id == OPTION_SETENV ? config_assigned(line->value, name) : NULL;
        if (value)
            return value;
        if (line->row->id == OPTION_UNSETENV && policy_pattern_matches(line->value, name))
            return NULL;
    }
    return NULL;
}

static const char *set_by_command_line(const struct reading *r, const char *name)
{
    struct options_cursor cursor = {.argc = r->argc, .argv = r->argv, .next = 1};
    struct option_use use;
    const char *found = NULL;
    while (options_next(&cursor, &use, NULL) > 0)
        if (use.row->id == OPTION_SETENV && config_assigned(use.value, name))
            found = config_assigned(use.value, name);
    return found;
}

/* The future values of the jail's variables, under the names of brig and jai. */
static const char *set_by_jail(const struct reading *r, const char *name)
{
    const char *rest = str_starts_with(name, "BRIG_")  ? name + strlen("BRIG_")
                       : str_starts_with(name, "JAI_") ? name + strlen("JAI_")
                                                       : "";
    if (strcmp(rest, "USER") == 0)
        return r->world->user;
    if (strcmp(rest, "MODE") == 0)
        return policy_word(POLICY_MODE, mode_so_far(r));
    if (strcmp(rest, "JAIL") == 0)
        return jail_so_far(r);
    if (strcmp(rest, "CONFIG_DIR") == 0)
        return r->world->dir;
    return strcmp(name, "HOME") == 0 ? r->world->home : NULL;
}

static const char *on_variable(void *context, const char *name)
{
    const struct reading *r = context;
    const char *value = set_by_files(r, name);
    if (!value)
        value = set_by_command_line(r, name);
    if (!value)
        value = set_by_jail(r, name);
    return value ? value : r->world->variable(r->world->context, name);
}

/* ---- Directives ---- */

static bool on_expands(void *context, const char *name)
{
    (void)context;
    const struct option_row *row = option_find_long(name, strlen(name));
    return row && option_expands(row);
}

static int check_form(const struct option_row *row, const struct conf_directive *directive,
                      struct brig_error *err)
{
    if (!row)
        return option_fail_unknown(directive->name, strlen(directive->name), true, err);
    if (row->group == OPTION_GROUP_RUN)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot stand in a file; give it on the command line, as --%s",
                         row->long_name, row->long_name);
    if (option_needs_value(row) && !directive->value)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' needs a value: %s %s", row->long_name,
                         row->long_name, row->metavar);
    if (!row->metavar && directive->value && *directive->value != '\0')
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' takes no value, but was given '%s'",
                         row->long_name, str_shown(directive->value).text);
    return 0;
}

/* Values that the chain needs are checked while it is read, all others when they are applied. */
static int check_value(const struct reading *r, const struct option_row *row, const char *value,
                       struct brig_error *err)
{
    if (row->id == OPTION_MODE && policy_word_value(POLICY_MODE, value) < 0)
        return brig_wrap(err, nearest_fail(value, policy_choices(POLICY_MODE), err), "mode");
    if (r->layer == CONFIG_PROJECT)
        return config_project_check(row, value, err);
    if (row->id != OPTION_JAIL)
        return 0;
    if (r->layer == CONFIG_JAIL)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'jail' is not possible in a .jail file or a file it includes: the jail "
                         "is chosen before they are read");
    int status = settings_check_jail(value, err);
    return status < 0 ? brig_wrap(err, status, "jail") : 0;
}

static int on_directive(void *context, const struct conf_directive *directive,
                        struct brig_error *err)
{
    struct reading *r = context;
    const struct option_row *row = option_find_long(directive->name, strlen(directive->name));
    const char *value = row && row->metavar ? directive->value : NULL;
    int word = row ? -1 : profile_word(directive->name);
    if (word >= 0 && (r->layer == CONFIG_PROFILE || r->layer == CONFIG_CONF))
        return profile_add(&r->config->profile, (enum profile_word)word, directive->value, err);
    int status = check_form(row, directive, err);
    if (status == 0)
        status = check_value(r, row, value, err);
    if (status < 0)
        return status;
    autofree char *origin = NULL;
    status = str_make(&origin, err, directive->file, ":", str_number(directive->line).text);
    return status < 0 ? status : add_line(r, row, value, origin, err);
}

static int load(const struct reading *r, const char *dir, const char *name, bool exact,
                bool optional, struct conf_source *ret_source, struct brig_error *err)
{
    return r->world->load(r->world->context, dir, name, exact, optional, ret_source, err);
}

/* Adds the built-in replacement for a missing default.conf. */
static int add_built_in(struct reading *r, struct brig_error *err)
{
    static const char *const scripts[] = {".brigrc", ".jairc"};
    enum config_layer layer = r->layer;
    r->layer = CONFIG_BUILT_IN;
    int status = 0;
    for (size_t i = 0; status >= 0 && i < ARRAY_LENGTH(scripts); i++) {
        autosource struct conf_source source = {0};
        status = load(r, r->world->dir, scripts[i], true, true, &source, err);
        if (status > 0)
            status = add_line(r, &option_rows[OPTION_SCRIPT_OPTIONAL], scripts[i],
                              SETTINGS_BUILT_IN, err);
    }
    r->layer = layer;
    return status < 0 ? status : 0;
}

/* `name` is for the message if there is no such profile. */
static int load_profile(const struct profile_text *text, const char *name,
                        struct conf_source *ret_source, struct brig_error *err)
{
    return text ? profile_load(text, ret_source, err)
                : brig_fail(err, BRIG_E_INVALID, 0, "there is no profile '%s'. See brig profiles",
                            str_shown(name).text);
}

/* Included files are relative to the configuration directory, even with a slash in the name. jai
 * creates a missing .defaults; here its contents are built in. */
static int on_include(void *context, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    struct reading *r = context;
    if (r->layer == CONFIG_PROJECT)
        return config_project_check(&option_rows[OPTION_CONF], name, err);
    if (name[0] == '@')
        return load_profile(profile_find(name + 1), name, ret_source, err);
    if (str_starts_with(name, "~/"))
        return load(r, r->world->home, name + 2, true, optional, ret_source, err);
    bool defaults = strcmp(name, ".defaults") == 0;
    int status = load(r, r->world->dir, name, false, optional || defaults, ret_source, err);
    return status == 0 && defaults ? add_built_in(r, err) : status;
}

static int read_source(struct reading *r, const struct conf_source *source, enum config_layer layer,
                       struct brig_error *err)
{
    const struct conf_hooks hooks = {
        .context = r,
        .directive = on_directive,
        .expands = on_expands,
        .variable = on_variable,
        .include = on_include,
    };
    r->layer = layer;
    return conf_read(source, &hooks, err);
}

/* ---- Files ---- */

/* Whether a command is a plain program name, and not a path. */
static bool is_plain_name(const char *command)
{
    return command && command[0] != '\0' && command[0] != '.' && !strchr(command, '/') &&
           strlen(command) < PATH_COMPONENT_MAX - strlen(".conf");
}

/* Loads the .conf file: 1, or 0 if there is none. */
static int load_conf(const struct reading *r, const char *command, struct conf_source *ret_source,
                     struct brig_error *err)
{
    const char *dir = r->world->dir, *optional = r->scan->given[OPTION_CONF_OPTIONAL];
    const char *given = optional ? optional : r->scan->given[OPTION_CONF];
    int status = 0;
    if (given) {
        status = load(r, strchr(given, '/') ? NULL : dir, given, false, optional, ret_source, err);
        if (status < 0)
            return brig_wrap(err, status, "--conf");
    }
    if (status == 0 && is_plain_name(command)) {
        autofree char *name = NULL;
        status = str_make(&name, err, command, ".conf");
        if (status == 0)
            status = load(r, dir, name, true, true, ret_source, err);
    }
    return status == 0 ? load(r, dir, "default.conf", true, true, ret_source, err) : status;
}

static bool is_in_project(const struct config_world *world, const char *file)
{
    autofree char *path = NULL;
    return path_make_absolute(world->cwd, file, &path, NULL) == 0 &&
           path_is_beneath(world->project, path);
}

/* Whether a command is a file of the project, by its path or by PATH: then its author has chosen its
 * name, and a profile would let it use the user's credentials. */
static bool is_of_project(const struct config_world *world, const char *command)
{
    char file[PATH_LENGTH_MAX + 1];
    const char *list = world->variable(world->context, "PATH");
    if (!world->project || strchr(command, '/'))
        return world->project && is_in_project(world, command);
    while (world->is_program && path_next_program(&list, command, file))
        if (world->is_program(world->context, file))
            return is_in_project(world, file);
    return false;
}

/* The profile that --profile names, else that of the command. */
static int read_profile(struct reading *r, const char *command, struct brig_error *err)
{
    const char *typed = r->scan->given[OPTION_PROFILE];
    const struct profile_text *text = typed ? profile_find(typed)
                                      : command && !is_of_project(r->world, command)
                                          ? profile_of_command(command)
                                          : NULL;
    autosource struct conf_source source = {0};
    if ((typed && strcmp(typed, PROFILE_NONE) == 0) || (!typed && !text))
        return 0;
    int status = load_profile(text, typed ? typed : text->name, &source, err);
    if (status < 0)
        return brig_wrap(err, status, "--profile");
    r->config->profile_typed = typed != NULL;
    (void)snprintf(r->config->profile.name, sizeof r->config->profile.name, "%s", text->name);
    return read_source(r, &source, CONFIG_PROFILE, err);
}

static int read_conf(struct reading *r, const char *command, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = load_conf(r, command, &source, err);
    if (status == 0)
        return add_built_in(r, err);
    return status < 0 ? status : read_source(r, &source, CONFIG_CONF, err);
}

static int read_jail(struct reading *r, struct brig_error *err)
{
    /* A sealed run keeps nothing, and is in a jail only if one is named. */
    if (!r->scan->given[OPTION_JAIL] && r->scan->given[OPTION_MODE] &&
        r->scan->mode == BRIG_MODE_SEALED)
        return 0;
    autosource struct conf_source source = {0};
    autofree char *name = NULL;
    int status = str_make(&name, err, r->config->jail, ".jail");
    if (status == 0)
        status = load(r, r->config->storage, name, true, true, &source, err);
    if (status <= 0)
        return status;
    r->config->jail_exists = true;
    return read_source(r, &source, CONFIG_JAIL, err);
}

static int read_project(struct reading *r, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = r->world->load_project(r->world->context, &source, err);
    if (status <= 0)
        return status;
    status = read_source(r, &source, CONFIG_PROJECT, err);
    if (status < 0)
        return status;
    r->config->project_text = take_ptr(&source.text);
    return 0;
}

/* ---- Decisions ---- */

static int choose_storage(struct reading *r, struct brig_error *err)
{
    const struct config_world *world = r->world;
    const char *typed = r->scan->given[OPTION_STORAGE];
    const struct config_line *line = typed ? NULL : last_line(r->config, OPTION_STORAGE, -1);
    const char *value = typed ? typed : line ? line->value : "";
    if (*value == '\0')
        value = world->storage;
    else if (!typed && str_starts_with(value, "~/"))
        value += 2;
    char *path = NULL;
    int status = path_make_absolute(typed ? world->cwd : world->home, value, &path, err);
    if (status < 0)
        return line ? brig_wrap(err, status, "%s: storage", str_shown(line->origin).text)
                    : brig_wrap(err, status, "--storage");
    free(r->config->storage);
    r->config->storage = path;
    return 0;
}

/* The mode comes from the command line, else from the jail's file, else from the .conf file, else
 * from the jail's name. */
static int choose_mode(struct reading *r, struct brig_error *err)
{
    struct config *config = r->config;
    const struct config_line *line = last_line(config, OPTION_MODE, CONFIG_JAIL);
    if (!line)
        line = last_line(config, OPTION_MODE, CONFIG_CONF);
    config->mode = r->scan->given[OPTION_MODE] ? r->scan->mode
                   : line ? (enum brig_mode)policy_word_value(POLICY_MODE, line->value)
                          : default_mode(r, config->jail);
    const char *origin = r->scan->given[OPTION_MODE] ? SETTINGS_TYPED : line ? line->origin : NULL;
    const struct config_line *project = last_line(config, OPTION_MODE, CONFIG_PROJECT);
    if (project && !r->scan->given[OPTION_MODE]) {
        enum brig_mode wanted = (enum brig_mode)policy_word_value(POLICY_MODE, project->value);
        if (!config_mode_narrows(config->mode, wanted))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "%s: mode %s is less strict than %s: a project's " CONFIG_PROJECT_FILE
                             " may only narrow",
                             str_shown(project->origin).text, policy_word(POLICY_MODE, wanted),
                             policy_word(POLICY_MODE, config->mode));
        config->mode = wanted;
        origin = project->origin;
    }
    return str_copy(origin, &config->mode_origin, err);
}

/* Chooses a name for the project's jail that no other project has. */
static int choose_project_jail(struct reading *r, struct brig_error *err)
{
    const char *project = r->world->project;
    char path[PATH_LENGTH_MAX + 1];
    unsigned number = 1;
    while (project && number <= PROJECT_JAILS_MAX &&
           r->world->of_project(r->world->context, r->config->storage, r->project_jail, path) &&
           strcmp(path, project) != 0)
        project_jail(project, ++number, r->project_jail);
    return number <= PROJECT_JAILS_MAX
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0,
                           "there are too many jails named as that of this project; choose another "
                           "name with -j");
}

static int read_files(struct reading *r, const char *command, struct brig_error *err)
{
    struct config *config = r->config;
    int status = str_copy(r->world->dir, &config->dir, err);
    if (status == 0)
        status = read_profile(r, command, err);
    if (status == 0)
        status = read_conf(r, command, err);
    config->jail_given = r->scan->given[OPTION_JAIL] != NULL;
    if (status == 0)
        status = choose_storage(r, err);
    if (status == 0)
        status = choose_project_jail(r, err);
    if (status == 0)
        status = str_copy(jail_so_far(r), &config->jail, err);
    if (status == 0)
        status = str_copy(jail_without_option(r, true), &config->jail_here, err);
    if (status == 0 && strcmp(config->jail, r->project_jail) == 0)
        config->project = r->world->project;
    if (status == 0)
        status = read_jail(r, err);
    if (status == 0)
        status = choose_storage(r, err);
    if (status < 0)
        return status;
    config->no_defaults =
        r->scan->given[OPTION_NO_DEFAULTS] || last_line(config, OPTION_NO_DEFAULTS, -1);
    config->nocwd = r->scan->given[OPTION_NOCWD] || last_line(config, OPTION_NOCWD, -1);
    if (!config->nocwd)
        status = read_project(r, err);
    return status < 0 ? status : choose_mode(r, err);
}

int config_read(const struct config_world *world, const struct settings_scan *scan, int argc,
                char *const *argv, struct config *config, struct brig_error *err)
{
    struct reading r = {.config = config, .world = world, .scan = scan, .argv = argv, .argc = argc};
    if (world->project)
        project_jail(world->project, 1, r.project_jail);
    int status = read_files(&r, scan->command < argc ? argv[scan->command] : NULL, err);
    if (status < 0)
        config_done(config);
    return status;
}

/* ---- Applying, in the order in which later rules win ---- */

void config_variables(const struct settings *settings, const char *user,
                      struct config_variable ret_rows[CONFIG_VARIABLES])
{
    const char *mode = policy_word(POLICY_MODE, settings->mode);
    const struct config_variable rows[CONFIG_VARIABLES] = {
        {"BRIG_USER", user},
        {"JAI_USER", user},
        {"BRIG_MODE", mode},
        {"JAI_MODE", mode},
        {"BRIG_JAIL", settings->jail},
        {"JAI_JAIL", settings->jail},
        {"JAI_CONFIG_DIR", settings->config_dir},
    };
    memcpy(ret_rows, rows, sizeof rows);
}

/* Weaker than every rule: `unsetenv *` removes them. */
static int set_variables(const struct config_world *world, struct settings *settings,
                         struct brig_error *err)
{
    struct config_variable rows[CONFIG_VARIABLES];
    config_variables(settings, world->user, rows);
    int status = brig_policy_origin(settings->policy, "the jail", err);
    for (size_t i = 0; status == 0 && i < CONFIG_VARIABLES; i++)
        status = brig_policy_setenv(settings->policy, rows[i].name, rows[i].value, err);
    return status < 0 ? status : brig_policy_setenv(settings->policy, "PWD", world->cwd, err);
}

static int apply_line(struct settings *settings, const struct config_line *line,
                      struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, line->origin, err);
    if (status < 0)
        return status;
    settings->place = SETTINGS_FILE;
    status = line->layer == CONFIG_PROJECT
                 ? config_project_apply(settings, line, err)
                 : settings_apply(settings, &(struct option_use){line->row, line->value}, err);
    return status < 0 ? brig_wrap(err, status, "%s", str_shown(line->origin).text) : 0;
}

/* Grants of a project are applied last, when it is known what they narrow; its mode was chosen
 * before. */
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
    settings->nocwd = config->nocwd;
    settings->jail_exists = config->jail_exists;
    settings->project = config->project;
    settings->mode = config->mode;
    settings->mode_origin = config->mode_origin;
    settings->storage = config->storage;
    bool sealed = config->mode == BRIG_MODE_SEALED;
    bool defaults = !sealed && !config->no_defaults;
    /* The mode sealed is for code, not for agents: a profile would only widen it. */
    bool profiled = !sealed || config->profile_typed;
    settings->profile = profiled && config->profile.name[0] ? &config->profile : NULL;
    settings->late_masks = sealed && !config->no_defaults; /* usually there is nothing to hide */
    int status = sealed ? 0 : set_variables(world, settings, err);
    if (status == 0 && defaults)
        status = settings_apply_defaults(settings, err);
    if (status == 0 && settings->late_masks)
        status = settings_hide_outside(settings, err);
    for (size_t i = 0; status == 0 && i < config->line_count; i++) {
        const struct config_line *line = &config->lines[i];
        if (!is_project_grant(line) && (defaults || line->layer != CONFIG_BUILT_IN) &&
            (profiled || line->layer != CONFIG_PROFILE))
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
        int status = config_project_grant(settings, line, err);
        if (status < 0)
            return brig_wrap(err, status, "%s", str_shown(line->origin).text);
    }
    return 0;
}
