/* SPDX-License-Identifier: MIT */
/* Theory of operation: a jail prepared ahead.
 *
 * A holder process, the jail's init with nothing to run, keeps a user and a mount namespace in
 * which everything that no run can write to is already mounted. A maker process, the same program
 * in another mood, keeps a few network namespaces ready. A run joins the user namespace, copies the
 * mount namespace, takes a network namespace that no other run ever had, and adds its own private
 * directories, /proc, terminals, pid, ipc and uts namespaces. */
#include "jail/prepare/template.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/limits.h"
#include "jail/job/spawn.h"
#include "jail/sys.h"

/* Network namespaces kept ready; each costs about 240 kB of kernel memory. */
#define SPARE_NETWORKS 8
/* They are made several at a time, when this few are left: making one keeps a CPU for half as long as
 * a whole run takes, so most runs had better have none made beside them. */
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

/* What the template holds stays where it is: opened once, a run need not look it up. What cannot be
 * opened here the run opens itself. */
static void open_rules(struct brig_template *template)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/%d/root", template->holder.pid);
    autoclose int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < template->fresh.rule_count; i++) {
        struct plan_rule *rule = &template->fresh.rules[i];
        struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        if (rule->slot != PLAN_NO_SLOT || root < 0)
            continue;
        long fd = SYS(openat2, root, rule->path, &how, sizeof how);
        if (fd < 0)
            continue;
        rule->fd = (int)fd;
        plan_own_fd(&template->compiled, rule->fd);
    }
}

void template_refill(struct brig_template *template)
{
    if (template->networks > SPARE_NETWORKS_LOW)
        return;
    for (; template->networks < SPARE_NETWORKS; template->networks++) {
        struct wire_message order = {.type = WIRE_NETWORK};
        (void)send(template->maker.wire, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
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

/* The parent writes the maps of a range, as root; nothing of the plan's own is to be mapped. */
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
    open_rules(template);
    /* A network with a door is made for each run: its sockets are. */
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

int template_new(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err)
{
    int result = check_policy(policy, err);
    if (result < 0)
        return result;
    struct brig_template *template = calloc(1, sizeof *template);
    if (!template)
        return brig_fail_nomem(err);
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
    /* What cannot be prepared is built for each run, by the same rules. */
    if (result < 0 && (result != BRIG_E_UNSUPPORTED || kind == PLAN_NESTED)) {
        brig_template_free(template);
        return result;
    }
    *ret_template = template;
    return 0;
}

int brig_template_new(const struct brig_policy *policy, struct brig_template **ret_template,
                      struct brig_error *err)
{
    return template_new(policy, PLAN_SHARED, NULL, ret_template, err);
}

int template_plan(struct brig_template *template, struct plan *ret_plan)
{
    struct plan plan = template->fresh;
    int network = -1;
    struct wire_message message;
    while (template->maker.pid > 0 && network < 0 &&
           spawn_receive(template->maker.wire, &message, &network) == 1)
        ; /* its first word is that it started */
    if (network >= 0) {
        template->networks--;
        plan.join_netns = network;
        plan.clone_flags &= ~(unsigned long)CLONE_NEWNET;
        plan.loopback = false; /* it is up */
    }
    *ret_plan = plan;
    return network;
}

void brig_template_free(struct brig_template *template)
{
    if (!template)
        return;
    spawn_end(&template->maker);
    spawn_end(&template->holder);
    if (template->fresh.join_userns >= 0)
        (void)close(template->fresh.join_userns);
    if (template->fresh.join_mntns >= 0)
        (void)close(template->fresh.join_mntns);
    plan_done(&template->compiled);
    brig_policy_free(template->policy);
    free(template);
}
