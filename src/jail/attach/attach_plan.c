/* SPDX-License-Identifier: MIT */
/* The plan for a command in a running jail: the namespaces it joins, and its restrictions. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "jail/attach/attach.h"
#include "jail/cgroup/limits.h"
#include "jail/cgroup/process.h"
#include "jail/confine/seccomp.h"
#include "jail/plan/plan.h"

#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

/* ---- the jail's first process ---- */

static bool is_child_of(int process, pid_t parent)
{
    char text[1024];
    struct process_stat stat;
    return attach_proc_read(process, "stat", text, sizeof text) > 0 &&
           process_stat_parse(text, &stat) && stat.parent == parent;
}

/* Opens init's directory in /proc. Init is a child of the supervisor, which alone reaps it, so its
 * pid is not reused while the supervisor lives. */
static int open_init(const struct attach *entry, struct brig_error *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d", entry->record.facts.init);
    autoclose int init = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (init < 0 || !is_child_of(init, entry->supervisor) || !attach_is_alive(entry))
        return brig_fail(err, BRIG_E_STATE, 0, "the run of process %d has just ended",
                         entry->supervisor);
    return take_fd(&init);
}

/* ---- the entering process ---- */

static bool has_group(const char *groups, gid_t group)
{
    while (*groups && *groups != '\n') {
        char *end;
        unsigned long found = strtoul(groups, &end, 10);
        if (end == groups)
            return false;
        if (found == group)
            return true;
        groups = end + strspn(end, " \t");
    }
    return false;
}

/* Supplementary groups that cannot be dropped give access to files. The entering process must not
 * have groups that the run does not have. */
static int check_groups(int init, struct brig_error *err)
{
    char status[ENTRY_STATUS_MAX];
    const char *theirs = attach_proc_read(init, "status", status, sizeof status) > 0
                             ? attach_proc_line(status, "Groups:")
                             : NULL;
    autofree gid_t *own = calloc(GROUPS_MAX, sizeof *own);
    int count = own ? getgroups(GROUPS_MAX, own) : -1;
    if (!theirs || count < 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "cannot compare our groups with the run's");
    theirs += strspn(theirs, " \t");
    for (int i = 0; i < count; i++)
        if (own[i] != getegid() && !has_group(theirs, own[i]))
            return brig_fail(err, BRIG_E_STATE, 0,
                             "the run has not the group %u, which you have now and cannot drop. "
                             "Start it again, or enter it from the login it was started in",
                             own[i]);
    return 0;
}

static int check_identity(const struct attach_facts *facts, int init, struct brig_error *err)
{
    if (geteuid() == 0) /* never root, on the host or inside */
        return facts->become && facts->host_uid != 0
                   ? 0
                   : brig_fail(err, BRIG_E_STATE, 0, "the run is not one that root started");
    if (facts->become || facts->host_uid != geteuid() || facts->host_gid != getegid())
        return brig_fail(err, BRIG_E_STATE, 0,
                         "the run is of user %u and group %u, and you are %u and %u",
                         facts->host_uid, facts->host_gid, geteuid(), getegid());
    return facts->drop_groups ? 0 : check_groups(init, err);
}

/* ---- namespaces ---- */

/* *ret_fd is -1 if the namespace is the caller's already, such as the host's network. */
static int open_namespace(int init, const char *path, bool needed, int *ret_fd,
                          struct brig_error *err)
{
    int same = attach_proc_same_namespace(init, path);
    if (same == 1 && !needed) {
        *ret_fd = -1;
        return 0;
    }
    autoclose int fd = same == 0 ? openat(init, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, same < 0 ? -same : errno,
                         "cannot open the jail's namespace '%s'", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int plan_join(struct plan *plan, int init, struct brig_error *err)
{
    static const char *const more[] = {"ns/pid", "ns/ipc", "ns/uts", "ns/cgroup"};
    _Static_assert(ARRAY_LENGTH(more) == PLAN_JOIN_MAX, "there is room for each");
    int *const first[] = {&plan->join_userns, &plan->join_mntns, &plan->join_netns};
    static const char *const paths[] = {"ns/user", "ns/mnt", "ns/net"};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        int result = open_namespace(init, paths[i], i < 2, first[i], err);
        if (result < 0)
            return result;
        if (*first[i] >= 0)
            plan_own_fd(plan, *first[i]);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(more); i++) {
        int fd = -1, result = open_namespace(init, more[i], i == 0, &fd, err);
        if (result < 0)
            return result;
        if (fd < 0)
            continue;
        plan_own_fd(plan, fd);
        plan->join_more[plan->join_more_count++] = fd;
    }
    return 0;
}

static int plan_group(struct plan *plan, const struct attach *entry, const struct limits *leaf,
                      struct brig_error *err)
{
    struct cgroup_joining joining = {.clone_fd = -1};
    int result = 0;
    if (!leaf)
        result = cgroup_open_published(entry->process, &entry->record.facts.group, &joining, err);
    else if (leaf->group)
        result = cgroup_join_leaf(leaf->group, &joining, err);
    plan->cgroup_fd = joining.clone_fd;
    if (joining.clone_fd >= 0)
        plan_own_fd(plan, joining.clone_fd);
    for (size_t i = 0; i < joining.join_count; i++) {
        plan->join_fds[plan->join_count++] = joining.join_fds[i];
        plan_own_fd(plan, joining.join_fds[i]);
    }
    return result;
}

/* ---- restrictions ---- */

/* In directories that the jail can change, a symlink may have replaced the file for which the run's
 * rule was made. Returns the outermost such directory above path, or NULL. */
static const char *writable_above(const struct attach_record *record, const char *path,
                                  uint64_t making)
{
    const char *found = NULL;
    for (size_t i = 0; i < record->rule_count; i++) {
        const char *above = record->rules[i].path;
        if (record->rules[i].access & making && strcmp(above, path) != 0 &&
            path_is_beneath(above, path) && (!found || strlen(above) < strlen(found)))
            found = above;
    }
    return found;
}

static void plan_rule(struct plan *plan, const struct attach_record *record,
                      const struct attach_rule *rule, int root, int abi)
{
    uint64_t of_files = landlock_rights(abi, LANDLOCK_GRANT_WRITE, false) |
                        landlock_rights(abi, LANDLOCK_GRANT_DEVICE, false);
    uint64_t making = landlock_rights(abi, LANDLOCK_GRANT_WRITE, true) & ~of_files &
                      ~landlock_rights(abi, LANDLOCK_GRANT_READ, true);
    int slot = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_OPEN, "open what the jail may use");
    if (!step)
        return;
    step->slot = slot;
    step->from = root;
    step->path = rule->path;
    step->mode = (rule->access & ~of_files) != 0;
    step->data = writable_above(record, rule->path, making);
    step->length = step->data ? strlen(step->data) : 0;
    if (step->length == 1) /* "/": open_target() skips the slash after it */
        step->length = 0;
    plan_add_rule(plan, slot, rule->path, rule->access);
}

static int plan_confine(struct plan *plan, const struct attach_record *record,
                        struct brig_error *err)
{
    const struct attach_facts *facts = &record->facts;
    const struct brig_policy *policy = record->policy;
    plan->drop_caps = facts->drop_caps;
    plan->seccomp = facts->has_seccomp
                        ? seccomp_program(policy->seccomp, policy->network, policy->allow_nested)
                        : NULL;
    if (facts->has_seccomp && !plan->seccomp)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "no syscall filter for this architecture");
    plan->landlock = facts->has_landlock;
    plan->landlock_attr = facts->landlock;
    plan->landlock_attr_size = (size_t)facts->landlock_size;
    int root = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_OPEN_ROOT, "open the jail's root");
    if (step)
        step->slot = root;
    int abi = plan->landlock ? landlock_abi() : 0;
    for (size_t i = 0; i < record->rule_count && plan->landlock; i++)
        plan_rule(plan, record, &record->rules[i], root, abi);
    return 0;
}

static int fill(struct plan *plan, const struct attach *entry, const struct limits *leaf,
                struct brig_error *err)
{
    const struct attach_facts *facts = &entry->record.facts;
    if (!facts->has_namespaces)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "the run of process %d has no namespaces that could be entered",
                         entry->supervisor);
    autoclose int init = open_init(entry, err);
    if (init < 0)
        return init;
    int result = check_identity(facts, init, err);
    if (result == 0)
        result = plan_join(plan, init, err);
    if (result == 0)
        result = plan_group(plan, entry, leaf, err);
    if (result < 0)
        return result;
    (void)plan_new_slot(plan); /* PLAN_PTY_SLOT */
    plan->become = facts->become;
    plan->host_uid = facts->host_uid;
    plan->host_gid = facts->host_gid;
    plan->limits_missing = facts->limits_missing;
    if (facts->drop_groups)
        (void)plan_add(plan, PLAN_SETGROUPS, "drop the supplementary groups");
    result = plan_confine(plan, &entry->record, err);
    return plan->arena.failed ? brig_fail_nomem(err) : result;
}

int attach_plan(const struct attach *entry, const struct limits *leaf, struct plan *ret_plan,
                struct brig_error *err)
{
    struct plan plan = PLAN_INIT;
    plan.rung = PLAN_FULL;
    plan.enters = true;
    plan.init_mode = "s"; /* of the processes in the namespace, init may kill only the command's */
    plan.home = entry->record.policy->home;
    int result = fill(&plan, entry, leaf, err);
    if (result < 0) {
        plan_done(&plan);
        return result;
    }
    *ret_plan = plan;
    return 0;
}
