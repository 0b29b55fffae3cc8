/* SPDX-License-Identifier: MIT */
/* `brig gc`: removes what was kept for undoing, and what belongs to directories that do not exist any
 * more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/layer/fork.h"
#include "changes/layer/layer.h"
#include "changes/operation/collect.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/project.h"
#include "cli/report.h"
#include "home/jails.h"

#define OLDER_MS ((uint64_t)30 * 24 * 60 * 60 * 1000) /* the default of --older */
#define NS_PER_MS 1000000

struct gathering {
    const struct jails_place *place;
    const char *jail;
    bool dry, gone; /* remove the changes of directories that are gone */
    uint64_t older_ms;
    struct git git;
    struct collected collected;
    size_t gone_count;
};

/* ---- directories that are gone ---- */

static int treat_gone(struct gathering *gathering, const struct layer *layer,
                      struct brig_error *err)
{
    bool removes = gathering->gone && !gathering->dry;
    message_note("%s: '%s' does not exist any more%s", layer->jail, str_shown(layer->root).text,
                 removes           ? "; its changes are removed"
                 : gathering->gone ? "; its changes would be removed"
                                   : "; brig gc --gone removes its changes");
    gathering->gone_count++;
    return removes ? layer_remove(layer, err) : 0;
}

/* A directory that cannot be opened for another reason may come back. */
static bool is_gone(const struct layer *layer)
{
    struct stat info;
    return layer->lower < 0 && lstat(layer->root, &info) < 0 && errno == ENOENT;
}

static int find_gone(struct gathering *gathering, const char *jail, struct brig_error *err)
{
    autofree struct layers *layers = calloc(1, sizeof *layers);
    if (!layers)
        return brig_fail_nomem(err);
    int status = layers_open(gathering->place->storage, jail, NULL, NULL, layers, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        if (is_gone(&layers->items[i]) && !layers->items[i].running)
            status = treat_gone(gathering, &layers->items[i], err);
    layers_done(layers);
    return status;
}

/* ---- one jail ---- */

static int gather(void *context, int storage, const char *jail, struct brig_error *err)
{
    struct gathering *gathering = context;
    struct collected collected = {0};
    autoclose int record = jails_open_part(storage, jail, LAYER_RECORD_PART, false);
    if (record < 0)
        return 0;
    autoclose int lock = record_lock(record, err);
    if (lock < 0)
        return lock;
    int64_t before = clock_wall_ns() - (int64_t)gathering->older_ms * NS_PER_MS;
    int status = collect_operations(record, before, gathering->dry, &collected, err);
    gathering->collected.operations += collected.operations;
    gathering->collected.bytes += collected.bytes;
    if (status == 0 && !gathering->dry)
        status = checkpoint_collect(record, &gathering->git, err);
    return status < 0 ? status : find_gone(gathering, jail, err);
}

/* ---- jails of projects that are gone ---- */

/* A jail that cannot be removed, because it has something that is nowhere else, is only reported. */
static int treat_jail(void *context, const struct jail_info *jail, struct brig_error *err)
{
    struct gathering *gathering = context;
    const struct jails_place *place = gathering->place;
    char project[PATH_LENGTH_MAX + 1];
    struct stat info;
    struct brig_error failure = {0};
    (void)err;
    if ((gathering->jail && strcmp(gathering->jail, jail->name) != 0) ||
        !project_of(place->storage, jail->name, project) || lstat(project, &info) == 0 ||
        errno != ENOENT)
        return 0;
    bool removes = gathering->gone && !gathering->dry;
    int status = 0;
    if (removes)
        status = jails_delete(place, jail->name, false, &failure);
    else if (gathering->gone)
        status = jails_refuse_loss(place, jail->name, &failure);
    if (status < 0)
        message_warning("%s", failure.message);
    else
        message_note("%s: its project '%s' does not exist any more; %s", jail->name,
                     str_shown(project).text,
                     removes           ? "the jail is removed"
                     : gathering->gone ? "the jail would be removed"
                                       : "brig gc --gone removes the jail");
    return 0;
}

/* ---- the verb ---- */

static int read_words(const struct app *app, int argc, char **argv, struct gathering *gathering,
                      struct brig_error *err)
{
    const char *older = NULL;
    const struct jails_word options[] = {{"--older", NULL, &older},
                                         {"--dry-run", &gathering->dry, NULL},
                                         {"--gone", &gathering->gone, NULL},
                                         {0}};
    int at = jails_parse_options(app, argc, argv, options, &gathering->jail, err);
    if (at < 0 || at < argc)
        return at < 0 ? at : command_refuse(app, argc, argv, at, err);
    int status = older ? parse_duration(older, PARSE_ZERO_OK, &gathering->older_ms, err) : 0;
    return status < 0 ? brig_wrap(err, status, "--older") : 0;
}

static int run_gc(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct jails_place place;
    struct gathering gathering = {.place = &place, .older_ms = OLDER_MS};
    int status = read_words(app, argc, argv, &gathering, err);
    if (status == 0)
        status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    if (status == 0)
        status = git_find_own(&gathering.git, err);
    if (status == 0)
        status = jails_each_part(&place, cmd_gc.name, gathering.jail, LAYER_RECORD_PART, gather,
                                 &gathering, err);
    git_done(&gathering.git);
    if (status >= 0)
        status = jails_each(place.storage, place.uid, false, treat_jail, &gathering, err);
    int frozen = status < 0 ? status : fork_collect(place.storage, gathering.dry, err);
    if (frozen < 0)
        return frozen;
    const struct collected *collected = &gathering.collected;
    message_note("%s %llu operation%s%s, %llu KiB, and %d shared director%s",
                 gathering.dry ? "would remove" : "removed",
                 (unsigned long long)collected->operations, collected->operations == 1 ? "" : "s",
                 gathering.jail ? "" : " of all jails",
                 (unsigned long long)(collected->bytes >> 10), frozen, frozen == 1 ? "y" : "ies");
    return 0;
}

const struct command cmd_gc = {
    .name = "gc",
    .summary = "remove old operations, and jails of projects that are gone",
    .usage = "[-j NAME] [--older AGE] [--gone] [--dry-run]",
    .words = COMMAND_WORDS_NONE,
    .run = run_gc,
};
