/* SPDX-License-Identifier: MIT */
/* The host's tree as the jail's root, without a second copy of it. A mount namespace begins with a copy:
 * that one can be made read-only and stay, and then no other has to be cloned, changed to, and let go
 * of, for which the kernel waits for all CPUs.
 *
 * Then what is granted must be opened first of all: before the tree is read-only, as that would be
 * granted too, and before anything is laid over it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "jail/view/view_entries.h"

/* What is laid over the tree before the grants are known for certain, or could be opened. */
static const char *const covered[] = {"/dev", "/etc", "/proc", "/tmp"};

/* Whether a path leads past what is covered: neither in it nor above it, nor by a link to anywhere. */
static bool is_apart(const char *path)
{
    char part[PATH_LENGTH_MAX + 1], target[1];
    size_t length = strlen(path);
    for (size_t i = 0; i < ARRAY_LENGTH(covered); i++)
        if (path_is_beneath(covered[i], path) || path_is_beneath(path, covered[i]))
            return false;
    if (length >= sizeof part)
        return false;
    memcpy(part, path, length + 1);
    for (char *end = part; end;) { /* what is not there is no link either */
        end = strchr(end + 1, '/');
        if (end)
            *end = 0;
        if (readlink(part, target, sizeof target) >= 0 || (errno != EINVAL && errno != ENOENT))
            return false;
        if (end)
            *end = '/';
    }
    return true;
}

static bool is_of_host(const struct policy_grant *grant)
{
    return grant->fd < 0 && grant->access != BRIG_MASK && grant->access != BRIG_PROTECT;
}

bool view_can_keep_tree(const struct view *view)
{
    const struct brig_policy *policy = view->policy;
    if (policy->view != BRIG_VIEW_HOST || !policy->jail_name || view->identity->synthetic)
        return false;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (is_of_host(&policy->grants[i]) &&
            (policy->grants[i].flags & BRIG_GRANT_CREATE || !is_apart(policy->grants[i].source)))
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
                                         .dest = grant->dest,
                                         .access = grant->access,
                                         .dev = info.st_dev,
                                         .ino = info.st_ino,
                                         .slot = view_open_tree(view, grant, &info)};
    }
    return view->plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* What is granted at two places has a tree for each: one that is attached is moved by attaching it again. */
int view_source_slot(const struct view *view, const struct policy_grant *grant,
                     const struct stat *info)
{
    for (size_t i = 0; i < view->source_count; i++) {
        const struct view_own_source *source = &view->sources[i];
        if (source->access == grant->access && source->dev == info->st_dev &&
            source->ino == info->st_ino && strcmp(source->path, grant->source) == 0 &&
            strcmp(source->dest, grant->dest) == 0)
            return source->slot;
    }
    return PLAN_NO_SLOT;
}
