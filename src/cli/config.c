/* SPDX-License-Identifier: MIT */
/* The chain of configuration: reads the files in their order and decides what they decide. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/config_project.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

#define autosource __attribute__((cleanup(conf_source_done)))

/* A file being read. */
struct reading {
    struct config *config;
    const struct config_world *world;
    const struct settings_scan *scan;
    char *const *argv; /* of which variables are set on the command line */
    int argc;
    enum config_layer layer;
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
    free(config->mode_origin);
    free(config->project_text);
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
    autofree char *value_copy = NULL;
    autofree char *origin_copy = NULL;
    int status = str_copy(value, &value_copy, err);
    if (status == 0)
        status = str_copy(origin, &origin_copy, err);
    if (status < 0)
        return status;
    struct config_line *grown =
        reallocarray(config->lines, config->line_count + 1, sizeof *config->lines);
    if (!grown)
        return brig_fail_nomem(err);
    config->lines = grown;
    config->lines[config->line_count++] = (struct config_line){
        .row = row,
        .value = take_ptr(&value_copy),
        .origin = take_ptr(&origin_copy),
        .layer = r->layer,
    };
    return 0;
}

/* The last line of this option in a layer, or in all of them (-1); NULL if there is none. */
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

static const char *jail_so_far(const struct reading *r)
{
    const struct config_line *line = last_line(r->config, OPTION_JAIL, -1);
    return r->scan->jail ? r->scan->jail : line ? line->value : SETTINGS_JAIL;
}

static enum brig_mode default_mode(const char *jail)
{
    return strcmp(jail, SETTINGS_JAIL) == 0 ? BRIG_MODE_CASUAL : BRIG_MODE_STRICT;
}

static enum brig_mode mode_so_far(const struct reading *r)
{
    const struct config_line *line = last_line(r->config, OPTION_MODE, -1);
    if (r->scan->mode_given)
        return r->scan->mode;
    return line ? (enum brig_mode)policy_mode_parse(line->value) : default_mode(jail_so_far(r));
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

/* What the jail's own variables will be, under the names of both programs. */
static const char *set_by_jail(const struct reading *r, const char *name)
{
    const char *rest = str_starts_with(name, "BRIG_")  ? name + strlen("BRIG_")
                       : str_starts_with(name, "JAI_") ? name + strlen("JAI_")
                                                       : "";
    if (strcmp(rest, "USER") == 0)
        return r->world->user;
    if (strcmp(rest, "MODE") == 0)
        return policy_mode_name(mode_so_far(r));
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

static int fail_unknown(const char *name, struct brig_error *err)
{
    struct nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < OPTION_COUNT_; i++)
        if (option_rows[i].group != OPTION_GROUP_RUN)
            nearest_offer(&nearest, option_rows[i].long_name, strlen(option_rows[i].long_name));
    (void)brig_fail(err, BRIG_E_INVALID, 0, "unknown directive '%s'", str_shown(name).text);
    return nearest.best[0] ? nearest_advise(&nearest, "", BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See brig.conf(5)");
}

static int check_form(const struct option_row *row, const struct conf_directive *directive,
                      struct brig_error *err)
{
    if (!row)
        return fail_unknown(directive->name, err);
    if (row->group == OPTION_GROUP_RUN)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot stand in a file; give it on the command line, as --%s",
                         row->long_name, row->long_name);
    if (row->metavar && !directive->value)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' needs a value: %s %s", row->long_name,
                         row->long_name, row->metavar);
    if (!row->metavar && directive->value && *directive->value != '\0')
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' takes no value, but was given '%s'",
                         row->long_name, str_shown(directive->value).text);
    return 0;
}

/* What the chain itself needs is checked while it is read, all else when it is applied. */
static int check_value(const struct reading *r, const struct option_row *row, const char *value,
                       struct brig_error *err)
{
    if (row->id == OPTION_MODE && policy_mode_parse(value) < 0)
        return brig_wrap(err, nearest_fail(value, policy_mode_choices(), err), "mode");
    if (r->layer == CONFIG_PROJECT)
        return project_check(row, value, err);
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
    int status = check_form(row, directive, err);
    if (status == 0)
        status = check_value(r, row, value, err);
    if (status < 0)
        return status;
    autostr struct str origin = {0};
    str_concat(&origin, directive->file, ":", str_number(directive->line).text);
    return origin.failed ? brig_fail_nomem(err) : add_line(r, row, value, origin.data, err);
}

/* What default.conf would say if there were one. */
static int add_built_in(struct reading *r, struct brig_error *err)
{
    static const char *const scripts[] = {".brigrc", ".jairc"};
    const struct config_world *world = r->world;
    enum config_layer layer = r->layer;
    r->layer = CONFIG_BUILT_IN;
    int status = 0;
    for (size_t i = 0; status >= 0 && i < ARRAY_LENGTH(scripts); i++) {
        autosource struct conf_source source = {0};
        status = world->load(world->context, world->dir, scripts[i], true, true, &source, err);
        if (status > 0)
            status = add_line(r, &option_rows[OPTION_SCRIPT_OPTIONAL], scripts[i],
                              SETTINGS_BUILT_IN, err);
    }
    r->layer = layer;
    return status < 0 ? status : 0;
}

/* Included files are those of the configuration directory, also with a slash in the name. jai makes
 * .defaults where it is missing; here its contents are built in. */
static int on_include(void *context, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    struct reading *r = context;
    if (r->layer == CONFIG_PROJECT)
        return project_check(&option_rows[OPTION_CONF], name, err);
    const struct config_world *world = r->world;
    if (str_starts_with(name, "~/"))
        return world->load(world->context, world->home, name + 2, true, optional, ret_source, err);
    bool defaults = strcmp(name, ".defaults") == 0;
    int status =
        world->load(world->context, world->dir, name, false, optional || defaults, ret_source, err);
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

/* What a person calls a program, and not a path to one. */
static bool is_plain_name(const char *command)
{
    return command && command[0] != '\0' && command[0] != '.' && !strchr(command, '/') &&
           strlen(command) < PATH_COMPONENT_MAX - strlen(".conf");
}

/* The .conf file: 1, or 0 if there is none. */
static int load_conf(const struct reading *r, const char *command, struct conf_source *ret_source,
                     struct brig_error *err)
{
    const struct config_world *world = r->world;
    const char *given = r->scan->conf;
    int status = 0;
    if (given) {
        const char *dir = strchr(given, '/') ? NULL : world->dir;
        status =
            world->load(world->context, dir, given, false, r->scan->conf_optional, ret_source, err);
        if (status < 0)
            return brig_wrap(err, status, "--conf");
    }
    if (status == 0 && is_plain_name(command)) {
        autostr struct str name = {0};
        str_concat(&name, command, ".conf");
        status = name.failed ? brig_fail_nomem(err)
                             : world->load(world->context, world->dir, name.data, true, true,
                                           ret_source, err);
    }
    if (status == 0)
        status =
            world->load(world->context, world->dir, "default.conf", true, true, ret_source, err);
    return status;
}

static int read_conf(struct reading *r, const char *command, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = load_conf(r, command, &source, err);
    if (status == 0)
        return add_built_in(r, err);
    return status < 0 ? status : read_source(r, &source, CONFIG_CONF, err);
}

/* A sealed run keeps nothing, and is in a jail only if one is named. */
static bool has_jail(const struct reading *r)
{
    return r->scan->jail || !r->scan->mode_given || r->scan->mode != BRIG_MODE_SEALED;
}

static int read_jail(struct reading *r, struct brig_error *err)
{
    if (!has_jail(r))
        return 0;
    autosource struct conf_source source = {0};
    autostr struct str name = {0};
    str_concat(&name, r->config->jail, ".jail");
    if (name.failed)
        return brig_fail_nomem(err);
    int status =
        r->world->load(r->world->context, r->config->storage, name.data, true, true, &source, err);
    if (status <= 0)
        return status;
    r->config->jail_exists = true;
    return read_source(r, &source, CONFIG_JAIL, err);
}

static int read_project(struct reading *r, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = r->world->project(r->world->context, &source, err);
    if (status <= 0)
        return status;
    status = read_source(r, &source, CONFIG_PROJECT, err);
    if (status < 0)
        return status;
    r->config->project_length = source.length;
    r->config->project_text = take_ptr(&source.text);
    return 0;
}

/* ---- Decisions ---- */

static int choose_jail(struct reading *r, struct brig_error *err)
{
    r->config->jail_given = r->scan->jail != NULL;
    return str_copy(jail_so_far(r), &r->config->jail, err);
}

static int choose_storage(struct reading *r, struct brig_error *err)
{
    const struct config_world *world = r->world;
    const struct config_line *line = last_line(r->config, OPTION_STORAGE, -1);
    const char *value = r->scan->storage ? r->scan->storage : line ? line->value : "";
    const char *base = r->scan->storage ? world->cwd : world->home;
    if (*value == '\0')
        value = world->storage;
    else if (!r->scan->storage && str_starts_with(value, "~/"))
        value += 2;
    autofree char *path = NULL;
    int status = path_make_absolute(base, value, &path, err);
    if (status < 0)
        return r->scan->storage || !line
                   ? brig_wrap(err, status, "--storage")
                   : brig_wrap(err, status, "%s: storage", str_shown(line->origin).text);
    free(r->config->storage);
    r->config->storage = take_ptr(&path);
    return 0;
}

/* The command line, else the jail's file, else the .conf file, else what the name is for. */
static int choose_mode(struct reading *r, struct brig_error *err)
{
    struct config *config = r->config;
    const struct config_line *line = last_line(config, OPTION_MODE, CONFIG_JAIL);
    if (!line)
        line = last_line(config, OPTION_MODE, CONFIG_CONF);
    config->mode = r->scan->mode_given ? r->scan->mode
                   : line              ? (enum brig_mode)policy_mode_parse(line->value)
                                       : default_mode(config->jail);
    const char *origin = r->scan->mode_given ? SETTINGS_TYPED : line ? line->origin : NULL;
    const struct config_line *project = last_line(config, OPTION_MODE, CONFIG_PROJECT);
    if (project && !r->scan->mode_given) {
        enum brig_mode wanted = (enum brig_mode)policy_mode_parse(project->value);
        if (!project_mode_narrows(config->mode, wanted))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "%s: mode %s is less strict than %s: a project's " CONFIG_PROJECT_FILE
                             " may only narrow",
                             str_shown(project->origin).text, policy_mode_name(wanted),
                             policy_mode_name(config->mode));
        config->mode = wanted;
        origin = project->origin;
    }
    return str_copy(origin, &config->mode_origin, err);
}

static int read_files(struct reading *r, const char *command, struct brig_error *err)
{
    struct config *config = r->config;
    int status = str_copy(r->world->dir, &config->dir, err);
    if (status == 0)
        status = read_conf(r, command, err);
    if (status == 0)
        status = choose_jail(r, err);
    if (status == 0)
        status = choose_storage(r, err);
    if (status == 0)
        status = read_jail(r, err);
    if (status == 0)
        status = choose_storage(r, err);
    if (status < 0)
        return status;
    config->no_defaults = r->scan->no_defaults || last_line(config, OPTION_NO_DEFAULTS, -1);
    config->nocwd = r->scan->nocwd || last_line(config, OPTION_NOCWD, -1);
    if (!config->nocwd)
        status = read_project(r, err);
    return status < 0 ? status : choose_mode(r, err);
}

int config_read(const struct config_world *world, const struct settings_scan *scan, int argc,
                char *const *argv, struct config *config, struct brig_error *err)
{
    struct reading r = {.config = config, .world = world, .scan = scan, .argv = argv, .argc = argc};
    int status = read_files(&r, scan->command < argc ? argv[scan->command] : NULL, err);
    if (status < 0)
        config_done(config);
    return status;
}
