/* SPDX-License-Identifier: MIT */
/* Runs of a template with a policy of their own: which policies it is good for, and what of the
 * prepared plan becomes the run's. */
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/prepare/template.h"

/* ---- whether it fits ---- */

static bool same_privates(const struct brig_policy *ours, const struct brig_policy *theirs)
{
    if (ours->private_count != theirs->private_count)
        return false;
    for (size_t i = 0; i < ours->private_count; i++) {
        const struct policy_private *own = &ours->privates[i], *other = &theirs->privates[i];
        if (strcmp(own->dest, other->dest) != 0 || own->read_only != other->read_only ||
            (other->kept && !own->kept)) /* one that is handed out for nothing does no harm */
            return false;
    }
    return true;
}

/* What is in them is the run's. The template's are known by where their bytes are. */
static bool same_files(const struct brig_policy *ours, const struct brig_policy *theirs)
{
    if (ours->file_count != theirs->file_count)
        return false;
    for (size_t i = 0; i < ours->file_count; i++) {
        const struct policy_private_file *own = &ours->files[i], *other = &theirs->files[i];
        if (strcmp(own->dest, other->dest) != 0 || own->mode != other->mode || own->late ||
            other->late || own->length == 0)
            return false;
    }
    return true;
}

/* Those that are a part of what is built; all others are the run's. */
static bool same_limits(const struct brig_policy *ours, const struct brig_policy *theirs)
{
    static const enum brig_limit built[] = {BRIG_LIMIT_TMP_BYTES, BRIG_LIMIT_TMP_INODES,
                                            BRIG_LIMIT_INOTIFY_WATCHES};
    for (size_t i = 0; i < ARRAY_LENGTH(built); i++)
        if (ours->limits[built[i]] != theirs->limits[built[i]])
            return false;
    return true;
}

static bool is_in_range(const struct brig_template *template, const struct brig_policy *policy)
{
    const struct template_ids *ids = &template->ids;
    return policy->host_uid - ids->first < ids->count && policy->host_gid - ids->first < ids->count;
}

static bool same_identity(const struct brig_template *template, const struct brig_policy *theirs)
{
    const struct brig_policy *ours = template->policy;
    bool same_host = template->ids.count > 0
                         ? is_in_range(template, theirs)
                         : ours->host_uid == theirs->host_uid && ours->host_gid == theirs->host_gid;
    return same_host && ours->inside_uid == theirs->inside_uid &&
           ours->inside_gid == theirs->inside_gid && ours->stranger == theirs->stranger &&
           str_equal(ours->user_name, theirs->user_name) && str_equal(ours->home, theirs->home) &&
           str_equal(ours->shell, theirs->shell);
}

/* What a front does beside the policy's own rules, or with the jail while it runs. */
static bool is_plain(const struct brig_policy *policy)
{
    return policy->grant_count == 0 && !policy->file.dest && !policy->jail_name &&
           !policy_has_door(policy) && !policy->late_input;
}

bool template_fits(const struct brig_template *template, const struct brig_policy *policy)
{
    const struct brig_policy *ours = template->policy;
    return template->ready && template->nested && is_plain(ours) && is_plain(policy) &&
           ours->mode == policy->mode && ours->view == policy->view &&
           str_equal(ours->root_path, policy->root_path) && same_privates(ours, policy) &&
           same_files(ours, policy) && same_limits(ours, policy) &&
           same_identity(template, policy) && ours->network == policy->network &&
           ours->seccomp == policy->seccomp && str_equal(ours->hostname, policy->hostname) &&
           ours->allow_nested == policy->allow_nested &&
           ours->disabled_layers == policy->disabled_layers &&
           ours->on_unsupported == policy->on_unsupported;
}

bool template_is_current(const struct brig_template *template)
{
    const struct plan *plan = &template->compiled;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        struct stat info;
        if (step->op == PLAN_TREE && step->check_identity &&
            (stat(step->path, &info) < 0 || info.st_dev != step->dev || info.st_ino != step->ino))
            return false;
    }
    return true;
}

/* ---- making it the run's ---- */

static void set_content(struct plan *plan, const struct policy_private_file *ours,
                        const struct policy_private_file *theirs)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        struct plan_step *step = &plan->steps[i];
        if (step->op != PLAN_MKFILE || step->data != ours->bytes)
            continue;
        step->data = theirs->bytes;
        step->length = theirs->length;
    }
}

static void set_map(struct plan *plan, const char *path, unsigned inside, unsigned outside)
{
    const char *text = arena_printf(&plan->arena, "%u %u 1\n", inside, outside);
    for (size_t i = 0; text && i < plan->step_count; i++) {
        struct plan_step *step = &plan->steps[i];
        if (step->op != PLAN_WRITE || strcmp(step->path, path) != 0)
            continue;
        step->data = text;
        step->length = strlen(text);
    }
}

int template_adapt(const struct brig_template *template, const struct brig_policy *policy,
                   struct plan *plan, struct brig_error *err)
{
    plan->steps = arena_copy(&plan->arena, plan->steps, plan->step_count * sizeof *plan->steps);
    if (!plan->steps)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < policy->file_count; i++)
        set_content(plan, &template->policy->files[i], &policy->files[i]);
    if (plan->become_joined) {
        plan->host_uid = policy->host_uid;
        plan->host_gid = policy->host_gid;
        set_map(plan, PLAN_UID_MAP, plan->inside_uid, plan->host_uid);
        set_map(plan, PLAN_GID_MAP, plan->inside_gid, plan->host_gid);
    }
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}
