/* SPDX-License-Identifier: MIT */
/* `brig status`: what a jail has changed in its copies of the user's files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/profile.h"
#include "cli/verbs/held.h"
#include "cli/verbs/layers.h"
#include "cli/verbs/layers_git.h"
#include "cli/verbs/selection.h"
#include "cli/verbs/status_print.h"
#include "git/git.h"

struct words {
    const char *jail;
    bool json, grouped, verbose;
    int count;
    char **paths;
};

struct asking {
    struct verb_layers layers;
    struct git git;
    struct status_printer printer;
    struct selections selections; /* the paths that were given */
    struct str state;             /* where programs keep theirs */
};

/* ---- the words ---- */

static int parse(const struct app *app, int argc, char **argv, struct words *words,
                 struct brig_error *err)
{
    const struct jails_word options[] = {{"--json", &words->json, NULL},
                                         {"--grouped", &words->grouped, NULL},
                                         {"-v", &words->verbose, NULL},
                                         {0}};
    int at = jails_parse_words(app, argc, argv, options, &words->jail, err);
    if (at < 0)
        return at;
    words->paths = argv + at;
    words->count = argc - at;
    return 0;
}

/* ---- facts about the jail ---- */

static uint64_t count_held(const char *storage, const char *jail)
{
    size_t count = 0;
    autoclose int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && held_count(fd, jail, &count, NULL) == 0 ? count : 0;
}

/* Also of a jail without layers: the undo of a run with a checkpoint can be interrupted. */
static uint64_t find_interrupted(const char *storage, const char *jail)
{
    autoclose int fd = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int record = fd < 0 ? -1 : jails_open_part(fd, jail, LAYER_RECORD_PART, false);
    return record < 0 ? 0 : operation_interrupted(record);
}

/* ---- other jails ---- */

struct others {
    const struct asking *asking;
    struct str jails; /* a list of names */
};

/* Whether a layer has changes in a directory. */
static bool has_changes_in(const struct layer *layer, const char *directory)
{
    const char *below = path_below(layer->root, directory);
    const struct change_options options = {.paths = &below, .path_count = 1, .quick = true};
    return below && changes_walk(layer, &options, change_stop, NULL, NULL) == CHANGE_STOP;
}

static int look_at_other(void *context, int storage, const char *jail, struct brig_error *err)
{
    struct others *others = context;
    const struct verb_layers *mine = &others->asking->layers;
    (void)storage;
    (void)err;
    autofree struct layers *layers = malloc(sizeof *layers);
    if (strcmp(jail, mine->setup.settings.jail) == 0 || !layers ||
        layers_open(mine->setup.settings.storage, jail, mine->hidden.layer.home,
                    &mine->hidden.layer, layers, NULL) < 0)
        return 0;
    bool found = false;
    for (size_t i = 0; i < layers->count && !found; i++)
        found = has_changes_in(&layers->items[i], mine->setup.cwd);
    if (found && !str_list_has(&others->jails, jail))
        str_list_add(&others->jails, jail);
    layers_done(layers);
    return 0;
}

/* Says that there are no changes, and which other jails have some in this directory. */
static int say_nothing(const struct asking *asking, struct brig_error *err)
{
    struct jails_place place;
    struct others others = {.asking = asking};
    message_note("no changes");
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_each_part(&place, "status", NULL, ".changes", look_at_other, &others, err);
    if (status == 0)
        status =
            jails_each_part(&place, "status", NULL, LAYER_REVIEW_PART, look_at_other, &others, err);
    for (const char *jail = NULL; status == 0 && (jail = str_list_next(&others.jails, jail));)
        message_note("the jail '%s' has changes in this directory: brig status -j %s", jail, jail);
    str_done(&others.jails);
    return status;
}

/* ---- the verb ---- */

static int show_layer(struct asking *asking, size_t index, struct brig_error *err)
{
    const struct layer *layer = &asking->layers.layers.items[index];
    const struct selection *selection = &asking->selections.items[index];
    struct inventory *inventory = NULL;
    if (selection_is_empty(&asking->selections, index))
        return 0;
    const struct inventory_options options = {.paths = selection->paths,
                                              .path_count = selection->path_count,
                                              .git = &asking->git,
                                              .state = &asking->state,
                                              .tokens = asking->printer.json};
    int result = inventory_make(layer, &options, &inventory, err);
    if (result == 0)
        result = status_print_layer(&asking->printer, layer, inventory, err);
    inventory_free(inventory);
    return result;
}

static int show_git(void *context, struct git_printer *printer, struct brig_error *err)
{
    struct asking *asking = context;
    bool wanted[LAYERS_MAX] = {false};
    for (size_t i = 0; i < asking->layers.layers.count; i++)
        wanted[i] = selection_has_root(&asking->selections, i);
    return layers_list_git(&asking->layers.layers, wanted, asking->layers.setup.settings.storage,
                           printer, err);
}

static int show(struct asking *asking, struct brig_error *err)
{
    const struct layers *layers = &asking->layers.layers;
    const struct settings *settings = &asking->layers.setup.settings;
    struct status_printer *printer = &asking->printer;
    printer->jail = settings->jail;
    printer->held = count_held(settings->storage, settings->jail);
    printer->interrupted = find_interrupted(settings->storage, settings->jail);
    printer->git = show_git;
    printer->git_context = asking;
    for (size_t i = 0; i < layers->count; i++)
        printer->running = printer->running || layers->items[i].running;
    const char *here = verb_layers_here(&asking->layers);
    int status = status_print_begin(printer, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        if (here && strcmp(layers->items[i].root, here) == 0)
            status = show_layer(asking, i, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        if (!here || strcmp(layers->items[i].root, here) != 0)
            status = show_layer(asking, i, err);
    if (status == 0)
        status = status_print_end(printer, err);
    if (status == 0 && !printer->json && printer->changes + printer->items.items == 0)
        status = say_nothing(asking, err);
    return status;
}

static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct words words = {0};
    autofree struct asking *asking = calloc(1, sizeof *asking);
    if (!asking)
        return brig_fail_nomem(err);
    int status = parse(app, argc, argv, &words, err);
    if (status == 0)
        status = verb_layers_open(&asking->layers, "status", words.jail, err);
    if (status < 0)
        return status;
    asking->printer.json = words.json;
    asking->printer.grouped = words.grouped;
    asking->printer.state = words.verbose;
    status = git_find_own(&asking->git, err);
    if (status == 0)
        status = profile_list_state(&asking->state, err);
    if (status == 0)
        status = selections_make(&asking->selections, &asking->layers, true, words.count,
                                 words.paths, err);
    if (status == 0)
        status = show(asking, err);
    selections_done(&asking->selections);
    str_done(&asking->printer.items.listed);
    str_done(&asking->printer.out);
    str_done(&asking->state);
    git_done(&asking->git);
    verb_layers_done(&asking->layers);
    return status;
}

const struct command cmd_status = {
    .name = "status",
    .summary = "list what a jail has changed in its copies of your files",
    .usage = "[-j NAME] [-v] [--json [--grouped]] [PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run,
};
