/* SPDX-License-Identifier: MIT */
/* `brig rm`: removes a jail with all its data. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/profile.h"
#include "cli/verbs/held.h"
#include "git/guard.h"
#include "home/jails.h"

#define NAMED_MAX 5
#define COUNTED_MAX 10000

/* The number of reviewed directories with changes. Those of the home are removed without a
 * question. */
static size_t count_reviewed(const struct jails_place *place, const char *name)
{
    autofree struct layers *layers = calloc(1, sizeof *layers);
    const struct change_options options = {.quick = true};
    size_t count = 0;
    if (!layers || layers_open(place->storage, name, NULL, NULL, layers, NULL) < 0)
        return 0;
    for (size_t i = 0; i < layers->count; i++)
        count += changes_walk(&layers->items[i], &options, change_stop, NULL, NULL) != 0;
    layers_done(layers);
    return count;
}

static const char *between(const struct str *lost)
{
    return lost->length > 0 ? " and " : "";
}

int jails_refuse_loss(const struct jails_place *place, const char *name, struct brig_error *err)
{
    autostr struct str lost = {0};
    size_t held = 0;
    autoclose int storage = open(place->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int git = jails_open_part(storage, name, GUARD_PART, false);
    int status = held_count(storage, name, &held, err);
    if (held > 0)
        str_appendf(&lost, "files that were held back (%zu; see brig held -j %s)", held, name);
    size_t reviewed = count_reviewed(place, name);
    if (reviewed > 0)
        str_appendf(&lost,
                    "%schanges that were not applied (%zu director%s; see brig status -j %s)",
                    between(&lost), reviewed, reviewed == 1 ? "y" : "ies", name);
    if (git >= 0 && guard_has_left(git))
        str_appendf(&lost, "%sgit changes that were not transferred (see brig sync --show -j %s)",
                    between(&lost), name);
    autoclose int record = jails_open_part(storage, name, LAYER_RECORD_PART, false);
    uint64_t interrupted = record < 0 ? 0 : operation_interrupted(record);
    if (interrupted > 0)
        str_appendf(&lost, "%san operation that was interrupted (%ju; see brig status -j %s)",
                    between(&lost), (uintmax_t)interrupted, name);
    if (status < 0 || lost.length == 0)
        return status;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the jail '%s' has %s. To delete it with these: brig rm -f %s", name,
                     lost.data, name);
}

/* ---- what is deleted without a question ---- */

struct home_changes {
    struct str state; /* of programs: not named */
    struct str names;
    size_t count;
};

static int name_change(void *context, const struct change *change, struct brig_error *err)
{
    struct home_changes *changes = context;
    (void)err;
    bool made = S_ISDIR(change->after.st_mode) && !S_ISDIR(change->before.st_mode);
    if (made || inventory_is_state(&changes->state, change->path))
        return 0;
    if (++changes->count <= NAMED_MAX) {
        str_append(&changes->names, changes->count > 1 ? ", " : "");
        str_append_shown(&changes->names, change->path, strlen(change->path), "");
    }
    return changes->count > COUNTED_MAX ? CHANGE_STOP : 0;
}

/* Appends a line about the jail's copy of the home: its changes exist nowhere else. */
static void describe_home(const struct jails_place *place, const char *name, struct str *line)
{
    static const struct change_options quick = {.quick = true};
    autofree struct layers *layers = calloc(1, sizeof *layers);
    struct home_changes changes = {0};
    if (!layers || profile_list_state(&changes.state, NULL) < 0 ||
        layers_open(place->storage, name, place->identity.host_home, NULL, layers, NULL) < 0)
        return;
    for (size_t i = 0; i < layers->count; i++)
        if (layer_is_home(layers->items[i].name))
            (void)changes_walk(&layers->items[i], &quick, name_change, &changes, NULL);
    if (changes.count > 0 && !changes.names.failed)
        str_appendf(line, "deleted %s%zu change%s of the jail '%s' in its copy of your home: %s%s",
                    changes.count > COUNTED_MAX ? "more than " : "",
                    changes.count > COUNTED_MAX ? (size_t)COUNTED_MAX : changes.count,
                    changes.count == 1 ? "" : "s", name, changes.names.data,
                    changes.count > NAMED_MAX ? " …" : "");
    layers_done(layers);
    str_done(&changes.state);
    str_done(&changes.names);
}

int jails_delete(const struct jails_place *place, const char *name, bool force,
                 struct brig_error *err)
{
    int status = jails_check(place, cmd_rm.name, name, err);
    if (status < 0)
        return status;
    status = jails_unuse(place->storage, name, place->uid, err);
    if (status == 0 && !force)
        status = jails_refuse_loss(place, name, err);
    autostr struct str line = {0};
    if (status == 0)
        describe_home(place, name, &line);
    if (status == 0)
        status = jails_remove(place->storage, name, place->uid, err);
    if (status == 0 && line.length > 0)
        message_note("%s", line.data);
    return status == BRIG_E_STATE ? brig_advise(err, status, "End that first: brig stop %s", name)
                                  : status;
}

static int run_rm(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    (void)app;
    struct jails_place place;
    int first = 1;
    while (first < argc && (strcmp(argv[first], "-f") == 0 || strcmp(argv[first], "--force") == 0))
        first++;
    if (first >= argc)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "rm needs the name of a jail: brig rm JAIL…. See brig list");
    struct home_state state;
    int status = jails_place_find(&place, err);
    for (int i = first; i < argc && status == 0 && place.stranger != (uid_t)-1; i++)
        status = jails_stop(place.storage, argv[i], place.stranger, &state, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    for (int i = first; i < argc && status == 0; i++)
        status = jails_delete(&place, argv[i], first > 1, err);
    return status;
}

const struct command cmd_rm = {
    .name = "rm",
    .summary = "remove a jail with its home and changes",
    .usage = "[-f] JAIL...",
    .words = COMMAND_WORDS_JAILS,
    .run = run_rm,
};
