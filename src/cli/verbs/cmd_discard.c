/* SPDX-License-Identifier: MIT */
/* `brig discard`: drops what a jail has changed, and deletes files that were held back. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/operation/apply.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/verbs/held.h"
#include "cli/verbs/layers.h"
#include "cli/verbs/layers_git.h"
#include "cli/verbs/selection.h"
#include "git/git.h"

#define SKIPPED 1    /* the exit status if something was not discarded */
#define TOLD_MAX 100 /* lines about changes that were not discarded */

struct words {
    const char *jail;
    bool all;
    bool shown; /* only changes, and only as they were shown */
    int count;
    char **paths;
};

struct discarding {
    struct verb_layers layers;
    struct selections selections;
    const char *here; /* the directory that --all means; NULL: all */
    size_t layer;
    uint64_t discarded, skipped;
    bool held; /* files that were held back were deleted */
};

static void report(void *context, const char *root, const char *path, const char *reason)
{
    struct discarding *discarding = context;
    autostr struct str shown = {0};
    verb_append_path(&shown, root, path);
    if (discarding->skipped++ < TOLD_MAX)
        message_warning("not discarded: %s: %s", shown.failed ? "" : shown.data, reason);
}

static void tell(void *context, const struct change *change, enum apply_choice choice,
                 const char *reason)
{
    struct discarding *discarding = context;
    if (choice == APPLY_SKIP)
        report(context, change->layer->root, change->path, reason);
    else
        discarding->discarded++;
}

static int choose(void *context, const struct change *change, enum apply_choice *choice,
                  const char **reason, struct brig_error *err)
{
    struct discarding *discarding = context;
    (void)err;
    if (!selection_has(&discarding->selections, discarding->layer, change, reason))
        *choice = APPLY_SKIP;
    return 0;
}

static int draft_layer(struct discarding *discarding, struct operation *operation, size_t index,
                       struct brig_error *err)
{
    const struct selection *selection = &discarding->selections.items[index];
    const struct apply_options options = {.paths = selection->paths,
                                          .path_count = selection->path_count,
                                          .choose = choose,
                                          .tell = tell,
                                          .context = discarding};
    discarding->layer = index;
    return selection_is_empty(&discarding->selections, index)
               ? 0
               : discard_plan(operation, &discarding->layers.layers.items[index], &options, err);
}

static int finish(const struct discarding *discarding, uint64_t id)
{
    const char *unmatched = selections_unmatched(&discarding->selections);
    if (discarding->discarded > 0)
        message_note("discarded %ju change%s; brig undo%s %ju restores %s",
                     (uintmax_t)discarding->discarded, discarding->discarded == 1 ? "" : "s",
                     jails_option(discarding->layers.setup.settings.jail).text, (uintmax_t)id,
                     discarding->discarded == 1 ? "it" : "them");
    if (unmatched)
        message_warning("nothing has changed at '%s', and it is not held back",
                        str_shown(unmatched).text);
    else if (discarding->discarded == 0 && discarding->skipped == 0 && !discarding->held)
        message_note("there is nothing to discard");
    return discarding->skipped > 0 || unmatched ? SKIPPED : 0;
}

/* Branches of the directories that were discarded as a whole. */
static int discard_git(const struct discarding *discarding, uint64_t id, struct brig_error *err)
{
    autostr struct str notes = {0};
    bool wanted[LAYERS_MAX];
    for (size_t i = 0; i < LAYERS_MAX; i++)
        wanted[i] = selection_is_whole(&discarding->selections, i);
    int status = layers_discard_git(&discarding->layers.layers, wanted,
                                    discarding->layers.setup.settings.storage,
                                    discarding->discarded > 0 ? id : 0, &notes, err);
    message_lines(&notes);
    return status;
}

static int read_shown(struct discarding *discarding, struct brig_error *err)
{
    struct git git = {0};
    int status = git_find_own(&git, err);
    if (status == 0)
        status = selections_read_shown(&discarding->selections, &discarding->layers, &git, err);
    git_done(&git);
    for (const char *path = NULL; (path = str_list_next(&discarding->selections.changed, path));)
        report(discarding, "/", path + 1, SELECTION_CHANGED);
    const struct selection *items = &discarding->selections.git;
    for (size_t i = 0; i < items->count; i++)
        if (discarding->skipped++ < TOLD_MAX)
            message_warning(
                "not discarded: %s: what was done in git goes with its whole directory: "
                "brig discard DIRECTORY",
                str_shown(items->words[i].typed).text);
    return status;
}

static int describe(const struct discarding *discarding, const struct words *words,
                    struct operation *operation, struct brig_error *err)
{
    autostr struct str text = {0};
    if (words->shown)
        selections_describe(&discarding->selections, &text);
    else if (words->count > 0)
        str_append(&text, words->paths[0]);
    else
        str_append(&text, discarding->here ? discarding->here : "--all");
    if (text.failed)
        return brig_fail_nomem(err);
    operation_describe(operation, text.data ? text.data : "");
    return 0;
}

static int discard_layers(struct discarding *discarding, const struct words *words,
                          struct brig_error *err)
{
    struct layers *layers = &discarding->layers.layers;
    struct operation *operation = NULL;
    autoclose int lock = layers_lock(layers, err);
    int status = lock < 0 ? lock : 0;
    char *here = (char *)(uintptr_t)discarding->here;
    if (status == 0 && words->shown)
        status = read_shown(discarding, err);
    else if (status == 0)
        status = selections_make(&discarding->selections, &discarding->layers, false,
                                 here ? 1 : words->count, here ? &here : words->paths, err);
    if (status == 0)
        status =
            operation_begin(layers, layers->items[0].record, OPERATION_DISCARD, &operation, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        status = draft_layer(discarding, operation, i, err);
    if (status == 0)
        status = describe(discarding, words, operation, err);
    interrupt_begin(discarding->layers.setup.settings.jail);
    if (status == 0)
        status = operation_run(operation, report, discarding, err);
    interrupt_end();
    uint64_t id = operation ? operation_id(operation) : 0;
    operation_free(operation);
    if (status == 0)
        status = finish(discarding, id);
    close_fd(&lock);
    int followed = status >= 0 ? discard_git(discarding, id, err) : 0;
    selections_done(&discarding->selections);
    return followed < 0 ? followed : status;
}

/* Discards changes. Paths of files that were held back are gone from `words` by now. */
static int discard_changes(const struct words *words, struct brig_error *err)
{
    autofree struct discarding *discarding = calloc(1, sizeof *discarding);
    if (!discarding)
        return brig_fail_nomem(err);
    int status = verb_layers_settled(&discarding->layers, cmd_discard.name, words->jail, err);
    if (status < 0)
        return status;
    if (words->all) {
        discarding->here = verb_layers_here(&discarding->layers);
        status = held_discard_all(discarding->layers.setup.settings.jail, discarding->here, err);
        discarding->held = status > 0;
        status = status < 0 ? status : 0;
    }
    if (status == 0 && discarding->layers.layers.count > 0)
        status = discard_layers(discarding, words, err);
    if (status >= 0)
        verb_tell_elsewhere(&discarding->layers, discarding->here, cmd_diff.name);
    if (status == 0 && discarding->layers.layers.count == 0 && words->count > 0)
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "'%s' is not held back, and the jail '%s' has no changes. See brig held",
                           str_shown(words->paths[0]).text, discarding->layers.setup.settings.jail);
    verb_layers_done(&discarding->layers);
    return status;
}

static int parse(const struct app *app, int argc, char **argv, struct words *words,
                 struct brig_error *err)
{
    const struct jails_word options[] = {
        {"--all", &words->all, NULL}, {"--shown", &words->shown, NULL}, {0}};
    int at = jails_parse_words(app, argc, argv, options, &words->jail, err);
    if (at < 0)
        return at;
    words->paths = argv + at;
    words->count = argc - at;
    if (words->all && words->count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "--all takes no paths");
    if (words->shown && (words->all || words->count > 0))
        return brig_fail(err, BRIG_E_INVALID, 0, "--shown takes neither --all nor paths");
    if (!words->all && !words->shown && words->count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "discard needs a path, or --all. See brig status%s and brig held",
                         jails_option(words->jail ? words->jail : "").text);
    return 0;
}

static int run_discard(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct words words = {0};
    int status = parse(app, argc, argv, &words, err), left = 0;
    if (status < 0)
        return status;
    if (words.all || words.shown)
        return discard_changes(&words, err);
    autofree bool *done = calloc((size_t)words.count, sizeof *done);
    if (!done)
        return brig_fail_nomem(err);
    status = held_discard_words(words.jail, words.count, words.paths, done, err);
    for (int i = 0; i < words.count; i++)
        if (!done[i])
            words.paths[left++] = words.paths[i];
    words.count = left;
    return status < 0 || left == 0 ? status : discard_changes(&words, err);
}

const struct command cmd_discard = {
    .name = "discard",
    .summary = "drop changes of a jail, or delete a file that was held back",
    .usage = "[-j NAME] [--all|--shown] [PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run_discard,
};
