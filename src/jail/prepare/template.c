/* SPDX-License-Identifier: MIT */
/* Theory of operation: a jail prepared in advance.
 *
 * A holder process, the jail's init without a command, keeps a user and a mount namespace in which
 * everything that runs cannot write to is mounted already. A maker process, the same program in
 * another mode, keeps a few network namespaces ready. A run joins the user namespace, copies the
 * mount namespace, takes an unused network namespace, and adds private directories, /proc,
 * terminals, and pid, ipc and uts namespaces. */
#include "jail/prepare/template.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "jail/cgroup/limits.h"
#include "jail/job/spawn.h"
#include "jail/plan/plan.h"
#include "jail/sys.h"

/* Network namespaces kept ready; each costs about 240 kB of kernel memory. */
#define SPARE_NETWORKS 8
/* When this few are left, several are made at once: making one occupies a CPU for half as long as a
 * whole run takes, so most runs should not coincide with it. */
#define SPARE_NETWORKS_LOW 2

static int open_namespace(pid_t pid, const char *which, struct brig_error *err)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, which);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the template's namespace '%s'",
                         path);
    return fd;
}

static int start_holder(struct brig_template *template, struct plan *held, struct brig_error *err)
{
    held->slots =
        arena_alloc(&template->compiled.arena, ((size_t)held->slot_count + 1) * sizeof(int));
    if (!held->slots)
        return brig_fail_nomem(err);
    int result = spawn_jail(held, &template->holder, err);
    if (result < 0)
        return result;
    template->fresh.join_userns = open_namespace(template->holder.pid, "user", err);
    if (template->fresh.join_userns < 0)
        return template->fresh.join_userns;
    template->fresh.join_mntns = open_namespace(template->holder.pid, "mnt", err);
    return template->fresh.join_mntns < 0 ? template->fresh.join_mntns : 0;
}

void template_refill(struct brig_template *template)
{
    if (pthread_mutex_trylock(&template->lock) != 0)
        return; /* the next run orders them */
    bool low = template->networks <= SPARE_NETWORKS_LOW;
    for (; low && template->networks < SPARE_NETWORKS; template->networks++) {
        struct wire_message order = {.type = WIRE_NETWORK};
        (void)send(template->maker.wire, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    (void)pthread_mutex_unlock(&template->lock);
}

static int start_maker(struct brig_template *template, struct brig_error *err)
{
    struct plan maker = PLAN_INIT;
    maker.rung = PLAN_FULL;
    maker.become = template->fresh.become;
    maker.become_joined = template->fresh.become_joined;
    maker.host_uid = template->fresh.host_uid;
    maker.host_gid = template->fresh.host_gid;
    maker.join_userns = template->fresh.join_userns;
    maker.clone_flags = CLONE_NEWNET;
    maker.init_fd = template->fresh.init_fd;
    maker.init_mode = template->fresh.loopback ? "M" : "m";
    int result = spawn_jail(&maker, &template->maker, err);
    if (result < 0)
        return result;
    template_refill(template);
    return 0;
}

/* The parent, as root, writes the maps of a range; the plan's maps are not written. */
static void map_range(struct plan *held, const struct template_ids *ids)
{
    size_t kept = 0;
    for (size_t i = 0; i < held->step_count; i++)
        if (held->steps[i].op != PLAN_WRITE && held->steps[i].op != PLAN_SETGROUPS)
            held->steps[kept++] = held->steps[i];
    held->step_count = kept;
    held->become = false;
    held->parent_maps = true;
    held->range_first = ids->first;
    held->range_count = ids->count;
    held->host_uid = held->host_gid = ids->first + ids->count - 1;
}

static int prepare(struct brig_template *template, enum plan_split_kind kind,
                   const struct template_ids *ids, struct brig_error *err)
{
    struct plan held = PLAN_INIT;
    int result = plan_compile(template->policy, PLAN_FULL, 0, NULL, &template->compiled, err);
    if (result == 0)
        result = plan_open_init(&template->compiled, err);
    if (result == 0)
        result = plan_split(&template->compiled, kind, &template->compiled.arena, &held,
                            &template->fresh, err);
    if (result == 0 && ids && ids->count > 0) {
        map_range(&held, ids);
        template->fresh.become = false;
        template->fresh.become_joined = true;
        template->fresh.host_uid = held.host_uid;
        template->fresh.host_gid = held.host_gid;
    }
    if (result == 0)
        result = start_holder(template, &held, err);
    if (result < 0)
        return result;
    template->fresh.unenforced = held.unenforced;
    /* A network namespace with a door is made for each run, because its sockets are. */
    if (template->fresh.clone_flags & CLONE_NEWNET && !template->fresh.door)
        result = start_maker(template, err);
    return result;
}

static int check_policy(const struct brig_policy *policy, struct brig_error *err)
{
    int result = policy_validate(policy, err);
    for (size_t i = 0; result == 0 && i < policy->grant_count; i++)
        if (policy->grants[i].fd >= 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "a mount is moved into one jail: '%s' cannot be part of a template",
                             policy->grants[i].dest);
    return result;
}

static int build(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err)
{
    int result = 0;
    struct brig_template *template = calloc(1, sizeof *template);
    if (!template)
        return brig_fail_nomem(err);
    (void)pthread_mutex_init(&template->lock, NULL);
    template->owner = getpid();
    template->compiled = template->fresh = PLAN_INIT;
    template->holder = template->maker = (struct spawned){0};
    template->nested = kind == PLAN_NESTED;
    if (ids)
        template->ids = *ids;
    template->policy = brig_policy_copy(policy);
    if (!template->policy)
        result = brig_fail_nomem(err);
    else if (policy->disabled_layers & BRIG_LAYER_NAMESPACES || policy->allow_nested)
        result = brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                           "nested jails need a user namespace that is limited for one");
    if (result == 0)
        result = prepare(template, kind, ids, err);
    template->ready = result == 0;
    /* Parts that cannot be prepared are built for each run, by the same rules. */
    if (result < 0 && (result != BRIG_E_UNSUPPORTED || kind == PLAN_NESTED)) {
        brig_template_free(template);
        return result;
    }
    *ret_template = template;
    return 0;
}

/* If a file of the host was replaced meanwhile, everything is looked up again. */
int template_new(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err)
{
    int result = check_policy(policy, err);
    if (result < 0)
        return result;
    struct brig_error local;
    for (int i = 0; i <= PLAN_REPEATS; i++) {
        local = (struct brig_error){0};
        result = build(policy, kind, ids, ret_template, &local);
        if (result == 0 || local.sys_errno != ESTALE)
            break;
    }
    if (err && local.code != 0)
        *err = local;
    return result;
}

int brig_template_new(const struct brig_policy *policy, struct brig_template **ret_template,
                      struct brig_error *err)
{
    int filled = fds_fill_standard(err);
    if (filled < 0)
        return filled;
    if (policy)
        return template_new(policy, PLAN_SHARED, NULL, ret_template, err);
    struct brig_policy *sealed = brig_policy_new(BRIG_MODE_SEALED);
    if (!sealed)
        return brig_fail_nomem(err);
    int result = template_new(sealed, PLAN_SHARED, NULL, ret_template, err);
    brig_policy_free(sealed);
    return result;
}

int template_plan(struct brig_template *template, struct plan *ret_plan)
{
    struct plan plan = template->fresh;
    int network = -1;
    struct wire_message message;
    if (pthread_mutex_trylock(&template->lock) == 0) { /* else the run makes its own */
        while (template->maker.pid > 0 && network < 0 &&
               spawn_receive(template->maker.wire, &message, &network) == 1)
            ; /* the first message is WIRE_STARTED */
        template->networks -= network >= 0;
        (void)pthread_mutex_unlock(&template->lock);
    }
    if (network >= 0) {
        plan.join_netns = network;
        plan.clone_flags &= ~(unsigned long)CLONE_NEWNET;
        plan.loopback = false; /* loopback is up already */
    }
    *ret_plan = plan;
    return network;
}

void brig_template_free(struct brig_template *template)
{
    if (!template)
        return;
    if (template->owner == getpid()) { /* a forked process leaves them to their parent */
        spawn_end(&template->maker);
        spawn_end(&template->holder);
    } else {
        spawn_forget(&template->maker);
        spawn_forget(&template->holder);
    }
    close_fd(&template->fresh.join_userns);
    close_fd(&template->fresh.join_mntns);
    plan_done(&template->compiled);
    brig_policy_free(template->policy);
    (void)pthread_mutex_destroy(&template->lock);
    free(template);
}

/* ---- runs with other policies ---- */

/* Decides which policies a template fits, and adapts the prepared plan to a run's policy. */

/* ---- whether a policy fits ---- */

static bool same_privates(const struct brig_policy *ours, const struct brig_policy *theirs)
{
    if (ours->private_count != theirs->private_count)
        return false;
    for (size_t i = 0; i < ours->private_count; i++) {
        const struct policy_private *own = &ours->privates[i], *other = &theirs->privates[i];
        if (strcmp(own->dest, other->dest) != 0 || own->read_only != other->read_only ||
            (other->kept && !own->kept)) /* keeping a directory that is not requested is harmless */
            return false;
    }
    return true;
}

/* The content of the files may differ. set_content() finds the template's steps by the address of
 * their data. */
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

/* Compares the limits that are part of the prepared mounts; all others belong to the run. */
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

/* Returns whether a policy has nothing that a front end adds beside the rules, or uses while the
 * jail runs. */
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
           str_equal(ours->gitconfig, policy->gitconfig) &&
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

/* ---- adapting the plan ---- */

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

/* ---- splitting a plan ---- */

/* Steps whose result runs cannot write to are executed once and shared. Private directories, /proc,
 * terminals, and everything made from them are made for each run. */

/* Steps that concern the namespaces that each run creates. */
static bool is_always_fresh(const struct plan_step *step)
{
    static const enum plan_op fresh[] = {PLAN_HOSTNAME, PLAN_DEVPTS, PLAN_MQUEUE, PLAN_KEEP,
                                         PLAN_LATE,     PLAN_LISTEN, PLAN_PTY};
    for (size_t i = 0; i < ARRAY_LENGTH(fresh); i++)
        if (step->op == fresh[i])
            return true;
    return false;
}

struct split {
    const struct plan *plan;
    struct arena *arena;
    bool nested;
    bool *fresh_slots;
    const char **fresh_paths; /* mount points of fresh slots */
    size_t fresh_path_count;
    int proc_slot; /* in both parts: a new procfs needs a visible one */
    int root_slot;
};

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

/* Returns whether a step concerns the user namespace of the runs, not of the template. */
static bool is_of_nested(const struct split *split, const struct plan_step *step)
{
    return split->nested && step->op == PLAN_WRITE &&
           strncmp(step->path, "/proc/sys/", strlen("/proc/sys/")) == 0;
}

/* The template's procfs shows other pids: a run writes through its new procfs, which stays writable
 * until its final attributes are set. */
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

/* Adds the writes for the run's user namespace. The template's maps contain the policy's ids, so
 * the ids are the same in both; if each run takes different ids, the process that starts it fills
 * them in. */
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

/* The kernel refuses a procfs with fewer restrictions than the visible one, and a run's procfs
 * starts without restrictions. */
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

/* Landlock rules on parts of the template use paths: a run has no fd for them. */
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
        bool proc =
            step->slot == split->proc_slot && (step->op == PLAN_PROC || step->op == PLAN_ATTACH);
        bool made_fresh = proc || is_fresh(split, step);
        if (proc)
            append_held_proc(split, held, step);
        if (made_fresh) {
            if (!split->nested || step->op != PLAN_PROC) /* which came first */
                append(fresh, step);
            if (step->slot != PLAN_NO_SLOT)
                split->fresh_slots[step->slot] = true;
            if (step->op == PLAN_ATTACH && !proc)
                split->fresh_paths[split->fresh_path_count++] = step->path;
            continue;
        }
        if (step->op == PLAN_ATTACH && is_below_fresh(split, step->path))
            return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                             "'%s' lies in a private directory: a template cannot hold it",
                             step->path);
        append(held, step);
    }
    return 0;
}

static bool has_overlay(const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].op == PLAN_OVERLAY)
            return true;
    return false;
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
    if (has_overlay(plan)) /* its upper directory belongs to one run */
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "a root of layers is mounted for each run");
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
    /* A run finds the template's root in place, and opens it to attach mounts. */
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
    fresh.step_room = fresh.step_count; /* full: adding a step to a copy reallocates */
    held.clone_flags &= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;
    held.init_mode = "h";
    held.loopback = false;
    held.door = NULL;
    if (!split.nested)
        fresh.clone_flags &= ~(unsigned long)CLONE_NEWUSER;
    fresh.parent_maps = false;
    /* The compiled plan keeps ownership of the memory and fds. */
    held.arena = fresh.arena = (struct arena){0};
    held.owned_fds = fresh.owned_fds = NULL;
    held.owned_count = held.owned_room = fresh.owned_count = fresh.owned_room = 0;
    *ret_held = held;
    *ret_fresh = fresh;
    return 0;
}
