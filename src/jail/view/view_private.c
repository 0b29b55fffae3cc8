/* SPDX-License-Identifier: MIT */
/* What a policy gives a jail for itself: directories of its private memory, and files in them. */
#include <string.h>

#include "base/error.h"
#include "jail/view/view_entries.h"

/* Each has a part of the scratch filesystem, by number: names could be of any length. */
void view_add_privates(struct view *view, struct view_entries *entries)
{
    for (size_t i = 0; i < view->policy->private_count; i++) {
        const struct policy_private *private = &view->policy->privates[i];
        char *part = arena_printf(&view->plan->arena, VIEW_SCRATCH_OWN "/%zu", i);
        struct view_entry *entry = view_add_entry(view, entries, ENTRY_PRIVATE, private->dest);
        if (!part || !entry)
            return;
        view_mkdirs(view, view->scratch, part, 0755);
        entry->part = part;
        entry->read_only = private->read_only;
        entry->kept = private->kept;
    }
}

void view_keep(struct view *view, int slot)
{
    struct plan_step *step = plan_add(view->plan, PLAN_KEEP, "keep a private directory");
    if (step)
        step->slot = slot;
}

static bool is_private(const struct view *view, const struct view_place *place)
{
    return place && !place->host && !place->jails && place->slot == view->scratch;
}

static void add_late(struct view *view, const char *path)
{
    struct plan_step *step = plan_add(view->plan, PLAN_LATE, "open a file that is filled later");
    if (!step)
        return;
    step->slot = view->scratch;
    step->path = path;
}

int view_add_files(struct view *view, struct brig_error *err)
{
    for (size_t i = 0; i < view->policy->file_count; i++) {
        const struct policy_private_file *file = &view->policy->files[i];
        const struct view_place *place = view_place_of(view, file->dest);
        if (!is_private(view, place) || strlen(place->dest) >= strlen(file->dest))
            return brig_fail(err, BRIG_E_SETUP, 0, "'%s' is not in a private directory of the jail",
                             file->dest);
        const char *name = file->dest + strlen(place->dest) + 1;
        const char *path = arena_concat(&view->plan->arena, place->prefix, name);
        view_mkfile(view, view->scratch, path, file->mode, file->bytes, file->length);
        if (file->late)
            add_late(view, path);
    }
    return view->plan->arena.failed ? brig_fail_nomem(err) : 0;
}
