/* SPDX-License-Identifier: MIT */
/* Splitting a plan for a template: what can be made once and shared because nobody can write to it
 * through a run, and what must be fresh for each run: the private directories, /proc, the
 * terminals, and everything made of them. */
#include <sched.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "jail/plan/plan.h"

/* Steps that speak of the namespaces a run makes for itself. */
static bool is_always_fresh(const struct plan_step *step)
{
    switch (step->op) {
    case PLAN_HOSTNAME:
    case PLAN_DEVPTS:
    case PLAN_KEEP:
    case PLAN_LATE:
    case PLAN_LISTEN:
    case PLAN_PTY:
        return true;
    case PLAN_WRITE:
    case PLAN_SETGROUPS:
    case PLAN_PRIVATE:
    case PLAN_TMPFS:
    case PLAN_PROC:
    case PLAN_TREE:
    case PLAN_PREPARED:
    case PLAN_SUBTREE:
    case PLAN_ATTR:
    case PLAN_ROOT:
    case PLAN_DEVICE:
    case PLAN_MKDIR:
    case PLAN_MKFILE:
    case PLAN_SYMLINK:
    case PLAN_MKPATH:
    case PLAN_ATTACH:
    case PLAN_OPEN_ROOT:
    case PLAN_OPEN:
    case PLAN_PIVOT:
    case PLAN_DETACH:
        return false;
    }
    return true;
}

struct split {
    const struct plan *plan;
    struct arena *arena;
    bool nested;
    bool *fresh_slots;
    const char **fresh_paths; /* where something fresh is attached */
    size_t fresh_path_count;
    int proc_slot; /* procfs is in both halves: the kernel grants a new one only to whom sees one */
    int root_slot;
};

static bool is_attach(const struct plan_step *step)
{
    return step->op == PLAN_ATTACH;
}

static bool is_below_fresh(const struct split *split, const char *path)
{
    for (size_t i = 0; i < split->fresh_path_count; i++)
        if (path_is_beneath(split->fresh_paths[i], path))
            return true;
    return false;
}

static bool is_fresh(const struct split *split, const struct plan_step *step)
{
    if (step->fresh || is_always_fresh(step))
        return true;
    if (step->op == PLAN_SUBTREE)
        return split->fresh_slots[step->from];
    return step->slot != PLAN_NO_SLOT && split->fresh_slots[step->slot];
}

static void append(struct plan *part, const struct plan_step *step)
{
    part->steps[part->step_count++] = *step;
}

/* ---- a user namespace for each run ---- */

/* What is about the user namespace of the runs, not of the template. */
static bool is_of_nested(const struct split *split, const struct plan_step *step)
{
    return split->nested && step->op == PLAN_WRITE &&
           strncmp(step->path, "/proc/sys/", strlen("/proc/sys/")) == 0;
}

/* The template's procfs is of other pids: a run writes by its own, which is open for that until it is
 * made what it is to be. */
static void append_write(const struct split *split, struct plan *fresh, const char *path,
                         const char *data, const struct plan_step *like)
{
    struct plan_step step = *like;
    step.op = PLAN_WRITE;
    step.slot = split->proc_slot;
    step.path = path;
    step.data = data;
    step.length = data ? strlen(data) : 0;
    append(fresh, &step);
}

static void append_map(const struct split *split, struct plan *fresh, const char *path, unsigned id)
{
    const struct plan_step like = {
        .from = PLAN_NO_SLOT, .fd = -1, .what = "map the ids of a nested user namespace"};
    append_write(split, fresh, path, arena_printf(split->arena, "%u %u 1\n", id, id), &like);
}

/* What a run writes about its own user namespace. The template's knows the policy's ids, so they are the
 * same in both; where each run takes ids of its own, who starts it puts them in. */
static void append_nested(struct split *split, struct plan *fresh, const struct plan_step *proc)
{
    const struct plan *plan = split->plan;
    const struct plan_step like = {.from = PLAN_NO_SLOT, .fd = -1, .what = "give up setgroups"};
    struct plan_step open = *proc, attr = *proc;
    open.flags = 0;
    attr.op = PLAN_ATTR;
    split->proc_slot = proc->slot;
    split->fresh_slots[proc->slot] = true;
    append(fresh, &open);
    append_write(split, fresh, "self/setgroups", "deny", &like);
    append_map(split, fresh, PLAN_UID_MAP, plan->inside_uid);
    append_map(split, fresh, PLAN_GID_MAP, plan->inside_gid);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        if (is_of_nested(split, step) && !step->alone)
            append_write(split, fresh, step->path + strlen("/proc/"), step->data, step);
    }
    append(fresh, &attr);
}

/* A run is refused a procfs that can do more than the one it sees; and its own begins without limits. */
static void append_held_proc(const struct split *split, struct plan *held,
                             const struct plan_step *step)
{
    struct plan_step own = *step;
    if (split->nested && step->op == PLAN_PROC)
        own.flags = 0;
    append(held, &own);
}

static const struct plan_step *find_proc(const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].op == PLAN_PROC)
            return &plan->steps[i];
    return NULL;
}

/* Rules on what the template holds go by path: a run has no fd of it. */
static int split_rules(const struct split *split, struct arena *arena, struct plan *fresh,
                       struct brig_error *err)
{
    struct plan_rule *rules =
        arena_copy(arena, split->plan->rules, split->plan->rule_count * sizeof *rules);
    if (!rules)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < split->plan->rule_count; i++)
        if (rules[i].slot != PLAN_NO_SLOT && !split->fresh_slots[rules[i].slot])
            rules[i].slot = PLAN_NO_SLOT;
    fresh->rules = rules;
    fresh->rule_room = fresh->rule_count = split->plan->rule_count;
    return 0;
}

static int split_steps(struct split *split, struct plan *held, struct plan *fresh,
                       struct brig_error *err)
{
    for (size_t i = 0; i < split->plan->step_count; i++) {
        const struct plan_step *step = &split->plan->steps[i];
        if (step->alone || is_of_nested(split, step))
            continue;
        if (step->op == PLAN_ROOT)
            split->root_slot = step->slot;
        if (step->op == PLAN_PROC)
            split->proc_slot = step->slot;
        bool proc = step->slot == split->proc_slot && (step->op == PLAN_PROC || is_attach(step));
        bool made_fresh = proc || is_fresh(split, step);
        if (proc)
            append_held_proc(split, held, step);
        if (made_fresh) {
            if (!split->nested || step->op != PLAN_PROC) /* which was the first of all */
                append(fresh, step);
            if (step->slot != PLAN_NO_SLOT)
                split->fresh_slots[step->slot] = true;
            if (is_attach(step) && !proc)
                split->fresh_paths[split->fresh_path_count++] = step->path;
            continue;
        }
        if (is_attach(step) && is_below_fresh(split, step->path))
            return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                             "'%s' lies in a private directory: a template cannot hold it",
                             step->path);
        append(held, step);
    }
    return 0;
}

int plan_split(const struct plan *plan, enum plan_split_kind kind, struct arena *arena,
               struct plan *ret_held, struct plan *ret_fresh, struct brig_error *err)
{
    struct split split = {.plan = plan,
                          .arena = arena,
                          .nested = kind == PLAN_NESTED,
                          .proc_slot = -2,
                          .root_slot = PLAN_NO_SLOT};
    const struct plan_step *proc = find_proc(plan);
    if (split.nested && !proc)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "a jail without /proc cannot be forked");
    struct plan held = *plan, fresh = *plan;
    size_t steps = (2 * plan->step_count + 4) * sizeof *plan->steps;
    split.fresh_slots = arena_alloc(arena, ((size_t)plan->slot_count + 1) * sizeof(bool));
    split.fresh_paths = arena_alloc(arena, (plan->step_count + 1) * sizeof(char *));
    held.steps = arena_alloc(arena, steps);
    fresh.steps = arena_alloc(arena, steps);
    if (arena->failed)
        return brig_fail_nomem(err);
    held.step_count = fresh.step_count = 0;
    /* A run finds the template's root in place, and opens it to attach in. */
    append(&fresh, &(struct plan_step){.op = PLAN_OPEN_ROOT,
                                       .slot = PLAN_NO_SLOT,
                                       .from = PLAN_NO_SLOT,
                                       .fd = -1,
                                       .what = "open the template's root"});
    if (split.nested)
        append_nested(&split, &fresh, proc);
    int result = split_steps(&split, &held, &fresh, err);
    if (result < 0 || (result = split_rules(&split, arena, &fresh, err)) < 0)
        return result;
    fresh.steps[0].slot = split.root_slot;
    held.step_room = held.step_count;
    fresh.step_room = fresh.step_count; /* full: a step added to a copy moves into that copy */
    held.clone_flags &= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;
    held.init_mode = "h";
    held.loopback = false;
    held.door = NULL;
    if (!split.nested)
        fresh.clone_flags &= ~(unsigned long)CLONE_NEWUSER;
    fresh.parent_maps = false;
    /* What the parts point to stays the compiled plan's. */
    held.arena = fresh.arena = (struct arena){0};
    held.owned_fds = fresh.owned_fds = NULL;
    held.owned_count = held.owned_room = fresh.owned_count = fresh.owned_room = 0;
    *ret_held = held;
    *ret_fresh = fresh;
    return 0;
}
