/* SPDX-License-Identifier: MIT */
#include "cli/verbs/layers_git.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "cli/jails.h"
#include "git/guard.h"

/* Opens NAME.git; -1 if there is none. */
static int open_git(const struct layers *layers, const char *storage)
{
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return layers->count == 0 || dir < 0
               ? -1
               : jails_open_part(dir, layers->items[0].jail, JAILS_GIT_PART, false);
}

static struct guard_options options_of(const struct layer *layer, int git, struct git_user user)
{
    return (struct guard_options){.storage = git,
                                  .held = -1,
                                  .jail = layer->jail,
                                  .user = user,
                                  .environment = (const char *const *)environ};
}

/* Records the transfer in the log, by the first line about it. */
static void note(const struct layer *layer, const struct str *notes, size_t before)
{
    char text[OPERATION_TEXT_MAX];
    const char *line = notes->data ? notes->data + before : "";
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    (void)operation_note(layer->record, OPERATION_GIT, *text ? text : layer->root, NULL, NULL,
                         NULL);
}

static int apply_layer(const struct layer *layer, bool wanted, int git, struct git_user user,
                       struct str *notes, struct brig_error *err)
{
    static const struct change_options quick = {.quick = true};
    const struct guard_options options = options_of(layer, git, user);
    size_t before = notes->length;
    if (layer_is_home(layer->name) || !guard_has_reviewed(&options, layer->root))
        return 0;
    int left = changes_walk(layer, &quick, change_stop, NULL, err);
    if (left < 0)
        return left;
    if (left == CHANGE_STOP) {
        if (wanted)
            str_append(notes, "git: branches, HEAD and index move when no change is left: apply or "
                              "discard the others\n");
        return 0;
    }
    if (!wanted) {
        str_appendf(notes,
                    "git: the jail's commits wait: brig apply%s --all moves branches, HEAD "
                    "and index\n",
                    jails_option(layer->jail).text);
        return 0;
    }
    int status = guard_apply(&options, layer->root, notes, err);
    if (status > 0)
        note(layer, notes, before);
    return status < 0 ? status : 0;
}

int layers_apply_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct git_user user, struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status == 0; i++)
        status = apply_layer(&layers->items[i], !wanted || wanted[i], git, user, notes, err);
    return status;
}

int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status >= 0; i++) {
        const struct guard_options options = options_of(&layers->items[i], git, GIT_USER_SELF);
        status = layer_is_home(layers->items[i].name) || (wanted && !wanted[i])
                     ? 0
                     : guard_discard(&options, layers->items[i].root, err);
        if (status > 0)
            str_append(notes, "git: the jail's branches are dropped; what was fetched is still "
                              "below refs/brig\n");
    }
    return status < 0 ? status : 0;
}
