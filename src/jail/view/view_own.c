/* SPDX-License-Identifier: MIT */
/* The host's tree as the jail's root, without a second copy of it. A mount namespace begins with a copy:
 * that one can be made read-only and stay, and then no other has to be cloned, changed to, and let go
 * of, for which the kernel waits for all CPUs.
 *
 * Then what is granted must be opened first of all: before the tree is read-only, as that would be
 * granted too, and before anything is laid over it. */

#include "base/error.h"
#include "jail/view/view_entries.h"

static bool is_of_host(const struct policy_grant *grant)
{
    return grant->fd < 0 && grant->access != BRIG_MASK && grant->access != BRIG_PROTECT;
}

/* Not where something granted has to be made first, before it is known whether there will be a jail. */
bool view_can_keep_tree(const struct view *view)
{
    const struct brig_policy *policy = view->policy;
    if (policy->view != BRIG_VIEW_HOST || !policy->jail_name || view->identity->synthetic)
        return false;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (is_of_host(&policy->grants[i]) && policy->grants[i].flags & BRIG_GRANT_CREATE)
            return false;
    return true;
}

int view_open_sources(struct view *view, struct brig_error *err)
{
    const struct brig_policy *policy = view->policy;
    view->sources = arena_alloc(&view->plan->arena, policy->grant_count * sizeof *view->sources);
    for (size_t i = 0; view->sources && i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        struct stat info;
        int found = is_of_host(grant) ? view_find_source(view, grant, &info, err) : 0;
        if (found < 0)
            return found;
        if (found > 0)
            view->sources[view->source_count++] =
                (struct view_own_source){.path = grant->source,
                                         .dev = info.st_dev,
                                         .ino = info.st_ino,
                                         .slot = view_open_tree(view, grant, &info)};
    }
    return view->plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* By whose text it is, as grants may have moved, and their destinations have changed. What is granted at two places
 * has a tree for each: one that is attached is moved by attaching it again. */
int view_source_slot(const struct view *view, const struct policy_grant *grant,
                     const struct stat *info)
{
    for (size_t i = 0; i < view->source_count; i++) {
        const struct view_own_source *source = &view->sources[i];
        if (source->path == grant->source)
            return source->dev == info->st_dev && source->ino == info->st_ino ? source->slot
                                                                              : PLAN_NO_SLOT;
    }
    return PLAN_NO_SLOT;
}
