/* SPDX-License-Identifier: MIT */
/* `brig mask` and `brig unmask`: hide or show paths of the home directory in a jail, also while it
 * is running. The jail remembers them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/project.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "home/home.h"
#include "home/jails.h"

#define PATHS_MAX 256

/* The parsed command line. */
struct wanted {
    bool unmask;
    const char *jail;
    char *paths[PATHS_MAX]; /* relative to the home directory */
    size_t count;
};

static void wanted_done(struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        free(wanted->paths[i]);
}

/* ---- paths ---- */

static bool begins_here(const char *value)
{
    return value[0] == '/' || str_starts_with(value, "./") || str_starts_with(value, "../");
}

static bool exists(const char *directory, const char *path)
{
    autostr struct str whole = {0};
    struct stat info;
    str_appendf(&whole, "%s/%s", directory, path);
    return !whole.failed && lstat(whole.data, &info) == 0;
}

/* The part of a path below the home directory, by either of its names; NULL if it is elsewhere. */
static const char *rest_in_home(const char *home, const char *path)
{
    char real[PATH_LENGTH_MAX + 1];
    const char *rest = path_below(home, path);
    return rest || !path_resolve(home, real) ? rest : path_below(real, path);
}

/* As for --mask: a relative path is relative to the home directory, unless it begins with a dot. */
static int find_path(const char *value, const char *home, const char *cwd, char **ret_path,
                     struct brig_error *err)
{
    autofree char *path = NULL;
    int status = path_make_absolute(begins_here(value) ? cwd : home, value, &path, err);
    if (status < 0)
        return status;
    const char *rest = rest_in_home(home, path);
    if (rest && !*rest)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is the whole home directory; choose the mode bare or strict instead",
                         str_shown(value).text);
    if (!rest)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not in the home directory; in a jail's file, `mask %s` hides it "
                         "in the runs to come",
                         str_shown(value).text, str_shown(path).text);
    if (!begins_here(value) && !strpbrk(value, "*?[") && !exists(home, rest) && exists(cwd, value))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is relative to the home directory, where it does not exist; for the "
                         "file in the working directory write ./%s",
                         str_shown(value).text, str_shown(value).text);
    return str_copy(rest, ret_path, err);
}

static int find_paths(struct wanted *wanted, char **values, int count,
                      const struct jails_place *place, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    const char *home = place->identity.host_home;
    if (!home)
        return brig_fail(err, BRIG_E_INVALID, 0, "this user has no home directory");
    if (!getcwd(cwd, sizeof cwd))
        (void)snprintf(cwd, sizeof cwd, "/");
    if (count > PATHS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "these are too many paths: at most %d", PATHS_MAX);
    int status = 0;
    identity_enter(&place->identity);
    for (int i = 0; i < count && status == 0; i++) {
        status = find_path(values[i], home, cwd, &wanted->paths[wanted->count], err);
        wanted->count += status == 0;
    }
    identity_leave(&place->identity);
    return status;
}

/* ---- applying masks ---- */

static int check_jail(const struct jails_place *place, const char *name, struct brig_error *err)
{
    struct jail_info jail;
    int status = jails_check_name(name, err);
    if (status < 0 || strcmp(name, place->jail) == 0) /* it is created on first use */
        return status;
    identity_enter(&place->identity);
    status = jails_find(place->storage, name, place->uid, &jail, err);
    identity_leave(&place->identity);
    return status != 0 ? (status < 0 ? status : 0)
                       : jails_fail_unknown(place, cmd_mask.name, name, err);
}

static int hide_now(struct jails_place *place, const struct wanted *wanted,
                    struct home_masked *ret_masked, struct brig_error *err)
{
    const struct home_masks masks = {
        .user_home = place->identity.host_home,
        .paths = (const char *const *)wanted->paths,
        .count = wanted->count,
    };
    struct home_masked other = {.done = true};
    int status = 0;
    if (place->stranger != (uid_t)-1)
        status = home_mask(place->storage, wanted->jail, place->stranger, &masks, &other, err);
    if (status == 0)
        status = jails_become_user(place, err);
    if (status == 0)
        status = home_mask(place->storage, wanted->jail, place->uid, &masks, ret_masked, err);
    ret_masked->runs += other.runs;
    ret_masked->done = ret_masked->done && other.done;
    return status;
}

/* A sealed run has no holder that could tell it about new masks. Finds a reviewed directory of such a run. */
static bool has_deaf_run(const struct jails_place *place, const struct wanted *wanted,
                         char ret_root[PATH_LENGTH_MAX + 1])
{
    autofree struct layers *layers = calloc(1, sizeof *layers);
    bool found = false;
    if (!layers || layers_open(place->storage, wanted->jail, NULL, NULL, layers, NULL) < 0)
        return false;
    for (size_t i = 0; i < layers->count && !found; i++) {
        found = layers->items[i].running;
        (void)str_fill(ret_root, PATH_LENGTH_MAX + 1, layers->items[i].root);
    }
    layers_done(layers);
    return found;
}

static void say_masked(const struct jails_place *place, const struct wanted *wanted,
                       const struct home_masked *masked)
{
    const char *jail = wanted->jail;
    char root[PATH_LENGTH_MAX + 1];
    if (masked->runs == 0 && has_deaf_run(place, wanted, root))
        message_warning("hidden in the jail '%s' from its next run on; the run that is active in "
                        "'%s' may still see it",
                        jail, str_shown(root).text);
    else if (masked->runs == 0)
        message_note("hidden in the jail '%s' from its next run on", jail);
    else if (masked->done)
        message_note("hidden in the jail '%s' from now on, also in what runs in it (%u)", jail,
                     masked->runs);
    else
        message_warning("hidden in the jail '%s', but not confirmed by all of its %u runs: a "
                        "stopped one hides it when it continues",
                        jail, masked->runs);
}

/* Masks apply to the user's files: a private home of the jail contains none of them except
 * grants. */
static void say_whose(const struct jails_place *place, const struct wanted *wanted)
{
    char mode[16];
    jails_mode(place->storage, wanted->jail, mode, sizeof mode);
    if (strcmp(mode, "bare") == 0 || strcmp(mode, "strict") == 0)
        message_note("in the mode %s this hides files of your home that are granted; the jail's "
                     "own home stays as it is",
                     mode);
}

/* A mask also applies to files created later, so a missing file is not an error; but it may be a
 * typing error. */
static void say_missing(const struct jails_place *place, const struct wanted *wanted)
{
    const char *home = place->identity.host_home;
    for (size_t i = 0; i < wanted->count; i++) {
        if (strpbrk(wanted->paths[i], "*?["))
            continue;
        identity_enter(&place->identity);
        bool there = exists(home, wanted->paths[i]);
        identity_leave(&place->identity);
        if (!there)
            message_warning("'%s/%s' does not exist; the rule is kept for when it does",
                            str_shown(home).text, str_shown(wanted->paths[i]).text);
    }
}

static void record_project(const struct jails_place *place)
{
    autoclose int storage = open(place->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (storage >= 0)
        project_record(storage, place->jail, place->project);
}

static int apply(struct jails_place *place, const struct wanted *wanted, struct brig_error *err)
{
    identity_enter(&place->identity);
    int status =
        jail_file_set_masks(place->storage, wanted->jail, (const char *const *)wanted->paths,
                            wanted->count, wanted->unmask, err);
    if (status == 0 && place->project[0] && strcmp(wanted->jail, place->jail) == 0)
        record_project(place);
    identity_leave(&place->identity);
    if (status < 0)
        return status;
    say_missing(place, wanted);
    if (wanted->unmask) {
        message_note(
            "the mask is removed from the jail '%s'; this takes effect when no command runs in it",
            wanted->jail);
        return 0;
    }
    struct home_masked masked = {0};
    status = hide_now(place, wanted, &masked, err);
    if (status < 0)
        return status;
    say_masked(place, wanted, &masked);
    say_whose(place, wanted);
    return 0;
}

static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    const char *verb = app->command->name;
    struct jails_place place;
    static struct wanted all; /* large */
    all = (struct wanted){.unmask = app->command == &cmd_unmask};
    int first = jails_parse_words(app, argc, argv, &(struct jails_word){0}, &all.jail, err);
    if (first < 0)
        return first;
    if (first >= argc)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s needs a path in the home directory: brig %s [-j NAME] PATH…", verb,
                         verb);
    int status = jails_place_find(&place, err);
    if (!all.jail)
        all.jail = place.jail;
    if (status == 0)
        status = check_jail(&place, all.jail, err);
    if (status == 0)
        status = find_paths(&all, argv + first, argc - first, &place, err);
    if (status == 0)
        status = apply(&place, &all, err);
    wanted_done(&all);
    return status;
}

const struct command cmd_mask = {
    .name = "mask",
    .summary = "hide a path of your home in a jail, at once",
    .usage = "[-j NAME] PATH...",
    .words = COMMAND_WORDS_MASKS,
    .run = run,
};

const struct command cmd_unmask = {
    .name = "unmask",
    .summary = "show it again, from the jail's next mount on",
    .usage = "[-j NAME] PATH...",
    .words = COMMAND_WORDS_MASKS,
    .run = run,
};
