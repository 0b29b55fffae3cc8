/* SPDX-License-Identifier: MIT */
/* Options about programs beside the command: scripts, initjail and the line of shell. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings.h"
#include "cli/settings_parts.h"
#include "policy/policy.h"

void settings_programs_done(struct settings_programs *programs)
{
    for (size_t i = 0; i < programs->count; i++) {
        free(programs->items[i].path);
        free(programs->items[i].origin);
    }
    free(programs->items);
    *programs = (struct settings_programs){0};
}

static bool has(const struct settings_programs *programs, const char *path)
{
    for (size_t i = 0; i < programs->count; i++)
        if (strcmp(programs->items[i].path, path) == 0)
            return true;
    return false;
}

/* Where the next one goes: what is typed comes before what files say, in the order of typing. */
static size_t place_for(const struct settings_programs *programs, bool typed)
{
    size_t at = 0;
    while (at < programs->count && (!typed || programs->items[at].typed))
        at++;
    return at;
}

/* Inserts *program and leaves it empty. */
static int insert(struct settings_programs *programs, struct settings_program *program,
                  struct brig_error *err)
{
    if (programs->count == SETTINGS_PROGRAMS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is one too many: at most %d are possible",
                         str_shown(program->path).text, SETTINGS_PROGRAMS_MAX);
    struct settings_program *grown =
        reallocarray(programs->items, programs->count + 1, sizeof *programs->items);
    if (!grown)
        return brig_fail_nomem(err);
    programs->items = grown;
    size_t at = place_for(programs, program->typed);
    memmove(&grown[at + 1], &grown[at], (programs->count - at) * sizeof *grown);
    grown[at] = *program;
    programs->count++;
    return 0;
}

int settings_set_program(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err)
{
    bool typed = settings->place == SETTINGS_COMMAND_LINE;
    bool script = setter->what == SETTINGS_SCRIPT;
    autofree char *path = NULL;
    autofree char *origin = NULL;
    if (*value == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0, "'' names no file");
    bool tilde = !typed && str_starts_with(value, "~/");
    const char *base = tilde ? settings->home : typed ? settings->cwd : settings->config_dir;
    int status = path_make_absolute(base, tilde ? value + 2 : value, &path, err);
    if (status == 0)
        status = str_copy(settings->policy->origin, &origin, err);
    if (status < 0)
        return status;
    struct settings_programs *programs = script ? &settings->scripts : &settings->initjails;
    if (has(programs, path))
        return 0;
    struct settings_program program = {
        .path = path,
        .optional = setter->flags & BRIG_GRANT_OPTIONAL,
        .typed = typed,
        .origin = origin,
    };
    status = insert(programs, &program, err);
    if (status == 0)
        path = origin = NULL;
    return status;
}

int settings_set_command(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err)
{
    (void)setter;
    autofree char *copy = NULL;
    int status = str_copy(value, &copy, err);
    if (status < 0)
        return status;
    free(settings->command);
    settings->command = take_ptr(&copy);
    return 0;
}
