/* SPDX-License-Identifier: MIT */
/* Compiles a policy and a command into a plan: the order of the build, from the id maps to the
 * command. view*.c plan the filesystem. */
#include "jail/plan/plan.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "init_blob.h"
#include "jail/cgroup/limits.h"
#include "jail/child/child_start.h"
#include "jail/confine/identity.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"
#include "jail/plan/facts.h"
#include "jail/view/view.h"

struct plan_step *plan_add(struct plan *plan, enum plan_op op, const char *what)
{
    bool room = plan_reserve(plan, (void **)&plan->steps, plan->step_count, &plan->step_room,
                             sizeof *plan->steps);
    struct plan_step *step = room ? &plan->steps[plan->step_count++] : &plan->spare_step;
    *step = (struct plan_step){
        .op = op, .slot = PLAN_NO_SLOT, .from = PLAN_NO_SLOT, .fd = -1, .what = what};
    return step;
}

int plan_new_slot(struct plan *plan)
{
    return plan->slot_count++;
}

void plan_add_rule(struct plan *plan, int slot, const char *path, uint64_t access)
{
    if (plan_reserve(plan, (void **)&plan->rules, plan->rule_count, &plan->rule_room,
                     sizeof *plan->rules))
        plan->rules[plan->rule_count++] =
            (struct plan_rule){.slot = slot, .path = path, .access = access};
}

void plan_own_fd(struct plan *plan, int fd)
{
    if (plan_reserve(plan, (void **)&plan->owned_fds, plan->owned_count, &plan->owned_room,
                     sizeof *plan->owned_fds))
        plan->owned_fds[plan->owned_count++] = fd;
    else
        (void)close(fd);
}

static void release_start(struct plan *plan)
{
    for (size_t i = 0; i < plan->owned_count; i++)
        (void)close(plan->owned_fds[i]);
    plan->owned_count = 0;
    free(plan->environment);
    plan->environment = NULL;
}

/* A running job still needs only the masks; they are copied, because they may belong to a
 * template. */
static void copy_masks(struct plan *to, const struct plan *from)
{
    to->masks = arena_alloc(&to->arena, from->mask_count * sizeof *to->masks);
    for (size_t i = 0; to->masks && i < from->mask_count; i++) {
        const struct plan_mask *mask = &from->masks[i];
        to->masks[i] = (struct plan_mask){
            .cover = mask->cover,
            .host_dir = arena_strdup(&to->arena, mask->host_dir),
            .name = arena_strdup(&to->arena, mask->name),
            .host_path = arena_strdup(&to->arena, mask->host_path),
            .path = arena_strdup(&to->arena, mask->path),
            .writable = mask->writable ? arena_strdup(&to->arena, mask->writable) : NULL,
        };
    }
    to->mask_count = to->mask_room = to->arena.failed ? 0 : from->mask_count;
}

static void copy_places(struct plan *to, const struct plan *from)
{
    to->places = arena_alloc(&to->arena, from->place_count * sizeof *to->places);
    for (size_t i = 0; to->places && i < from->place_count; i++) {
        const struct plan_place *place = &from->places[i];
        to->places[i] = (struct plan_place){
            .dest = arena_strdup(&to->arena, place->dest),
            .host = place->host ? arena_strdup(&to->arena, place->host) : NULL,
            .writable = place->writable,
        };
    }
    to->place_count = to->arena.failed ? 0 : from->place_count;
}

int plan_trim(struct plan *plan, struct brig_error *err)
{
    struct plan rest = PLAN_INIT;
    rest.rung = plan->rung;
    rest.enters = plan->enters;
    rest.unenforced = plan->unenforced;
    if (plan->mask_count > 0)
        copy_masks(&rest, plan);
    if (plan->place_count > 0)
        copy_places(&rest, plan);
    release_start(plan);
    arena_done(&plan->arena);
    *plan = rest;
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

void plan_done(struct plan *plan)
{
    release_start(plan);
    arena_done(&plan->arena);
    *plan = PLAN_INIT;
}

/* ---- namespaces and ids ---- */

static struct plan_step *add_write(struct plan *plan, const char *path, const char *text,
                                   const char *what, const char *hint)
{
    struct plan_step *step = plan_add(plan, PLAN_WRITE, what);
    step->path = path;
    step->data = text;
    step->length = text ? strlen(text) : 0; /* NULL: memory ran out */
    step->hint = hint;
    return step;
}

static char *map_text(struct arena *arena, unsigned inside, unsigned outside)
{
    return arena_printf(arena, "%u %u 1\n", inside, outside);
}

static void plan_ids(struct plan *plan, const struct jail_identity *identity)
{
    plan->become = identity->become;
    plan->host_uid = identity->host_uid;
    plan->host_gid = identity->host_gid;
    plan->inside_uid = identity->inside_uid;
    plan->inside_gid = identity->inside_gid;
    if (plan->rung != PLAN_FULL)
        return;
    plan->clone_flags |= CLONE_NEWUSER;
    plan->parent_maps = identity->map_groups;
    char *uids = map_text(&plan->arena, identity->inside_uid, identity->host_uid);
    char *gids = map_text(&plan->arena, identity->inside_gid, identity->host_gid);
    if (!identity->map_groups)
        (void)add_write(plan, "/proc/self/setgroups", "deny", "give up setgroups", NULL);
    (void)add_write(plan, "/proc/self/uid_map", uids, "map the jail's user id", NULL);
    if (identity->map_groups)
        (void)plan_add(plan, PLAN_SETGROUPS, "drop the supplementary groups");
    else
        (void)add_write(plan, "/proc/self/gid_map", gids, "map the jail's group id", NULL);
}

/* Returns whether the command can create inet sockets at all; if not, loopback is not brought
 * up. */
static bool has_inet(const struct brig_policy *policy)
{
    return policy->seccomp != BRIG_SECCOMP_CODE ||
           (policy->disabled_layers & BRIG_LAYER_SECCOMP) != 0;
}

static void plan_namespaces(struct plan *plan, const struct brig_policy *policy)
{
    plan->clone_flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (plan->missing & PLAN_NO_CGROUP_NAMESPACE) {
        plan->clone_flags &= ~(unsigned long)CLONE_NEWCGROUP;
        unenforced_add(&plan->unenforced, "no cgroup namespace: the jail sees where its group is");
    }
    if (policy->network != BRIG_NET_HOST)
        plan->clone_flags |= CLONE_NEWNET;
    plan->loopback = policy->network == BRIG_NET_LOOPBACK ||
                     (policy->network == BRIG_NET_NONE && has_inet(policy));
    if (!policy->allow_nested && !(policy->disabled_layers & BRIG_LAYER_NESTED)) {
        add_write(plan, "/proc/sys/user/max_user_namespaces", "0",
                  "refuse nested user namespaces by sysctl",
                  "nested user namespaces are refused by seccomp only")
            ->soft = true;
    }
    /* A process in a new cgroup namespace can mount the hierarchies, and if the cgroup belongs to
     * the jail's user, it can lift the limits or create groups. This needs a user namespace. */
    if (policy->allow_nested && !(policy->disabled_layers & BRIG_LAYER_NESTED)) {
        struct plan_step *step = add_write(plan, "/proc/sys/user/max_cgroup_namespaces", "0",
                                           "refuse cgroup namespaces by sysctl",
                                           "nested cgroup namespaces reach the jail's group");
        step->soft = step->alone = true;
    }
    uint64_t watches = policy->limits[BRIG_LIMIT_INOTIFY_WATCHES];
    if (watches > 0)
        (void)add_write(plan, "/proc/sys/user/max_inotify_watches",
                        arena_number(&plan->arena, watches), "limit inotify watches", NULL);
    (void)plan_add(plan, PLAN_PRIVATE, "make the mount namespace private");
    const char *name = policy->hostname ? policy->hostname : "brig";
    struct plan_step *step = plan_add(plan, PLAN_HOSTNAME, "set the jail's host name");
    step->data = name;
    step->length = strlen(name);
}

/* ---- the command ---- */

static void add_rlimit(struct plan *plan, int resource, uint64_t soft, uint64_t hard)
{
    plan->rlimits[plan->rlimit_count++] =
        (struct plan_rlimit){.resource = resource, .limit = {.rlim_cur = soft, .rlim_max = hard}};
}

void plan_rlimits(struct plan *plan, const struct brig_policy *policy)
{
    const uint64_t *limits = policy->limits;
    /* One byte, not 0: a limit of 0 does not prevent a core dump that is piped to a program. */
    add_rlimit(plan, RLIMIT_CORE, 1, 1);
    if (limits[BRIG_LIMIT_ADDRESS_SPACE])
        add_rlimit(plan, RLIMIT_AS, limits[BRIG_LIMIT_ADDRESS_SPACE],
                   limits[BRIG_LIMIT_ADDRESS_SPACE]);
    if (policy->stack_bytes)
        add_rlimit(plan, RLIMIT_STACK, policy->stack_bytes, policy->stack_bytes);
    if (limits[BRIG_LIMIT_FILE_SIZE])
        add_rlimit(plan, RLIMIT_FSIZE, limits[BRIG_LIMIT_FILE_SIZE], limits[BRIG_LIMIT_FILE_SIZE]);
    if (limits[BRIG_LIMIT_OPEN_FILES])
        add_rlimit(plan, RLIMIT_NOFILE, limits[BRIG_LIMIT_OPEN_FILES],
                   limits[BRIG_LIMIT_OPEN_FILES]);
    else if (policy->files_before.rlim_max)
        add_rlimit(plan, RLIMIT_NOFILE, policy->files_before.rlim_cur,
                   policy->files_before.rlim_max);
    if (limits[BRIG_LIMIT_MEMORY_BYTES] && plan->limits_missing & CGROUP_MEMORY)
        add_rlimit(plan, RLIMIT_DATA, limits[BRIG_LIMIT_MEMORY_BYTES],
                   limits[BRIG_LIMIT_MEMORY_BYTES]);
    /* Init counts, too. If a cgroup limits processes, it should be the one that refuses, because it
     * counts refusals. */
    if (limits[BRIG_LIMIT_PROCESSES] && plan->limits_missing & CGROUP_PIDS)
        add_rlimit(plan, RLIMIT_NPROC, limits[BRIG_LIMIT_PROCESSES] + 1,
                   limits[BRIG_LIMIT_PROCESSES] + 1);
    if (limits[BRIG_LIMIT_CPU_MS]) {
        /* The kernel enforces this per process; the supervisor adds up the tree. */
        uint64_t seconds = (limits[BRIG_LIMIT_CPU_MS] + 999) / 1000;
        add_rlimit(plan, RLIMIT_CPU, seconds, seconds + 1);
    }
}

static int plan_programs(struct plan *plan, const struct brig_command *command,
                         struct brig_error *err)
{
    struct arena *arena = &plan->arena;
    const char *name = command->argv[0];
    size_t argc = 1; /* the command exists */
    while (command->argv[argc])
        argc++;
    const char **script = arena_alloc(arena, (argc + 2) * sizeof *script);
    if (!script)
        return brig_fail_nomem(err);
    script[0] = "/bin/sh";
    for (size_t i = 1; i < argc; i++)
        script[i + 1] = command->argv[i];
    plan->argv = command->argv;
    plan->script_argv = script;

    const char *path = NULL;
    for (size_t i = 0; plan->envp[i]; i++)
        if (strncmp(plan->envp[i], "PATH=", 5) == 0)
            path = plan->envp[i] + 5;
    size_t room = 2;
    for (const char *at = path; at && *at; at++)
        room += *at == ':';
    const char **programs = arena_alloc(arena, room * sizeof *programs);
    if (!programs)
        return brig_fail_nomem(err);
    plan->programs = programs;
    if (strchr(name, '/')) {
        programs[0] = name;
        return 0;
    }
    size_t count = 0;
    while (path && *path) {
        size_t length = strcspn(path, ":");
        /* Only absolute directories: a command is never looked up relative to the working
         * directory. */
        if (path[0] == '/')
            programs[count++] = arena_concat(arena, arena_strndup(arena, path, length), "/", name);
        path += length + (path[length] == ':');
    }
    return arena->failed ? brig_fail_nomem(err) : 0;
}

static const char *choose_workdir(const struct plan *plan, const struct brig_policy *policy)
{
    if (policy->workdir)
        return policy->workdir;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE)
            return policy->grants[i].dest;
    bool framed = policy->view != BRIG_VIEW_HOST && policy->view != BRIG_VIEW_ROOT;
    return plan->rung == PLAN_FULL && framed ? plan->home : "/";
}

static void plan_fds(struct plan *plan, const struct plan_input *input)
{
    for (int i = 0; i < 3; i++)
        plan->fds[plan->fd_count++] = (struct plan_fd){.fd = input->stdio_fds[i], .number = i};
    for (size_t i = 0; i < input->command->pass_fd_count; i++)
        plan->fds[plan->fd_count++] = (struct plan_fd){
            .fd = input->command->pass_fds[i].fd, .number = input->command->pass_fds[i].number};
}

/* A terminal's settings belong to its foreground process group. If a shell started brig in the
 * background, they are those of the shell's line editor, without echo and line mode. */
static bool is_in_background(int terminal)
{
    pid_t foreground = tcgetpgrp(terminal);
    return foreground > 0 && foreground != getpgrp();
}

static void plan_pty(struct plan *plan, int host_terminal)
{
    struct child_terminal *terminal = arena_alloc(&plan->arena, sizeof *terminal);
    struct plan_step *step = plan_add(plan, PLAN_PTY, "open the jail's terminal");
    if (!terminal)
        return;
    step->slot = PLAN_PTY_SLOT;
    step->data = terminal;
    if (host_terminal >= 0) {
        terminal->has_settings = !is_in_background(host_terminal) &&
                                 ioctl(host_terminal, TCGETS, terminal->settings) == 0;
        terminal->has_size = ioctl(host_terminal, TIOCGWINSZ, terminal->size) == 0;
    } else {
        memcpy(terminal->size, &PLAN_PTY_SIZE, sizeof terminal->size);
        terminal->has_size = true;
    }
}

/* A door and a private loopback need a network namespace. Without one there is no network; but inside another jail `open`
 * is the surrounding jail's network, with its door or without. */
static enum brig_network reachable_network(const struct plan *plan,
                                           const struct brig_policy *policy)
{
    bool needs_namespace = policy_has_door(policy) || policy->network == BRIG_NET_LOOPBACK;
    if (plan->rung == PLAN_FULL || !needs_namespace)
        return policy->network;
    return plan->tool_token != 0 && policy->network == BRIG_NET_OPEN ? BRIG_NET_HOST
                                                                     : BRIG_NET_NONE;
}

static int plan_confine(struct plan *plan, const struct brig_policy *policy, int abi,
                        struct brig_error *err)
{
    unsigned off = policy->disabled_layers;
    enum brig_network network = reachable_network(plan, policy);
    plan->landlock = !(off & BRIG_LAYER_LANDLOCK) && abi > 0 && plan->rung != PLAN_LIMITS;
    if (plan->landlock) {
        landlock_fill_attr(abi, network, policy->allow_nested, &plan->landlock_attr,
                           &plan->unenforced);
        if (plan->rung == PLAN_LANDLOCK)
            landlock_stand_alone(abi, network, true, false, &plan->landlock_attr,
                                 &plan->unenforced);
        plan->landlock_attr_size = landlock_attr_size(abi);
        if (policy->allow_nested)
            plan->rule_count = 0;
        if (landlock_attr_is_empty(&plan->landlock_attr))
            plan->landlock = false;
    } else if (!(off & BRIG_LAYER_LANDLOCK) && abi == 0) {
        unenforced_add(&plan->unenforced, "Landlock is not available on this kernel");
    }
    if (plan->missing & BRIG_LAYER_SECCOMP) {
        unenforced_add(&plan->unenforced, "no syscall filter: this system has no seccomp");
    } else if (!(off & BRIG_LAYER_SECCOMP)) {
        plan->seccomp = seccomp_program(policy->seccomp, network, policy->allow_nested);
        if (!plan->seccomp)
            return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "no syscall filter for this architecture");
    }
    static const struct {
        unsigned layer;
        const char *text;
    } switched[] = {{BRIG_LAYER_LANDLOCK, "Landlock was switched off"},
                    {BRIG_LAYER_SECCOMP, "the syscall filter was switched off"},
                    {BRIG_LAYER_CAPS, "dropping capabilities was switched off"},
                    {BRIG_LAYER_NAMESPACES, "namespaces were switched off"},
                    {BRIG_LAYER_NESTED, "the nested user namespace limit was switched off"}};
    for (size_t i = 0; i < ARRAY_LENGTH(switched); i++)
        if (off & switched[i].layer)
            unenforced_add(&plan->unenforced, "%s", switched[i].text);
    return 0;
}

int plan_add_command(struct plan *plan, const struct plan_input *input, struct brig_error *err)
{
    plan->wants_pty = input->wants_pty && plan->rung == PLAN_FULL;
    plan->pty_fd = input->pty_fd;
    if (plan->wants_pty)
        plan_pty(plan, input->host_terminal);
    int result = policy_environment(input->policy, input->command->envp, &plan->environment, err);
    if (result < 0)
        return result;
    plan->envp = (const char *const *)plan->environment;
    if ((result = plan_programs(plan, input->command, err)) < 0)
        return result;
    plan_fds(plan, input);
    plan->workdir = choose_workdir(plan, input->policy);
    plan_rlimits(plan, input->policy);
    plan->slots = arena_alloc(&plan->arena, (size_t)plan->slot_count * sizeof *plan->slots);
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* ---- the whole plan ---- */

static int begin(struct plan *plan, const struct brig_policy *policy,
                 struct jail_identity *identity, struct brig_error *err)
{
    (void)plan_new_slot(plan); /* PLAN_PTY_SLOT */
    int result = identity_choose(policy, &plan->arena, &plan->unenforced, identity, err);
    if (result < 0)
        return result;
    plan->home = identity->home;
    plan->drop_caps = !(policy->disabled_layers & BRIG_LAYER_CAPS);
    plan_ids(plan, identity);
    if (identity->map_groups) {
        plan->map_inside_gid = identity->inside_gid;
        plan->map_host_gid = identity->host_gid;
        plan->map_subordinate_gid = identity->subordinate_gid;
    }
    plan->init_mode = plan->rung != PLAN_FULL ? "s" : policy->held ? "k" : "n";
    if (plan->rung == PLAN_FULL)
        plan_namespaces(plan, policy);
    if (plan->rung == PLAN_FULL && policy_has_door(policy) &&
        (result = plan_add_door(plan, policy, err)) < 0)
        return result;
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

static int find_abi(const struct brig_policy *policy)
{
    if (policy->disabled_layers & BRIG_LAYER_LANDLOCK)
        return 0;
    return policy->facts ? policy->facts->landlock : landlock_abi();
}

/* Lists the restrictions that a plan without namespaces does not enforce. */
static void note_rung(struct plan *plan, const struct brig_policy *policy)
{
    struct brig_unenforced *list = &plan->unenforced;
    enum plan_rung rung = plan->rung;
    if (rung == PLAN_FULL)
        return;
    unenforced_add(list, "no namespaces: processes, IPC and host name are the host's");
    unenforced_add(list, "no private /tmp, /run, /dev and /proc, no masks, and no read-only grants "
                         "below writable ones");
    unenforced_add(list, "other processes of the user can be seen, slowed down and limited");
    if (policy->network == BRIG_NET_NONE || policy->network == BRIG_NET_LOOPBACK)
        unenforced_add(list, "network %s: only as far as the syscall filter and Landlock reach",
                       policy_word(POLICY_NETWORK, policy->network));
    if (policy->network == BRIG_NET_OPEN && plan->tool_token != 0)
        unenforced_add(list, "network open: it is the network of the jail around this one");
    else if (policy_has_door(policy))
        unenforced_add(list,
                       "network %s: without a network namespace, connections are refused only by "
                       "the syscall filter and Landlock",
                       policy_word(POLICY_NETWORK, policy->network));
    if (rung == PLAN_LIMITS)
        unenforced_add(list,
                       "no Landlock: the filesystem is restricted by ordinary permissions only");
}

void plan_use_limits(struct plan *plan, const struct brig_policy *policy,
                     const struct limits *limits)
{
    plan->limits_missing = limits_note(limits, policy, plan->rung == PLAN_FULL, &plan->unenforced);
    if (limits->lease) {
        plan->tool_token = nested_limits_lease_token(limits->lease);
        unenforced_add(&plan->unenforced, "inside another jail: its namespaces are this one's too");
    } else if (limits->group) {
        plan->cgroup_fd = cgroup_clone_fd(limits->group);
        plan->join_count = cgroup_join_fds(limits->group, plan->join_fds);
    } else if (limits->foreseen) {
        plan->join_count = 1; /* the view only asks whether there is a cgroup */
    }
}

static int finish(struct plan *plan, const struct brig_policy *policy,
                  const struct jail_identity *identity, struct brig_error *err)
{
    int abi = find_abi(policy);
    int result = 0;
    if (plan->rung == PLAN_FULL)
        result = view_plan(plan, policy, identity, abi, err);
    else if (plan->rung == PLAN_LANDLOCK)
        result = view_plan_landlock_only(plan, policy, identity, abi, err);
    if (result < 0 || (result = plan_confine(plan, policy, abi, err)) < 0)
        return result;
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

int plan_compile(const struct brig_policy *policy, enum plan_rung rung, unsigned missing,
                 const struct limits *limits, struct plan *ret_plan, struct brig_error *err)
{
    struct plan plan = PLAN_INIT;
    struct jail_identity identity;
    plan.rung = rung;
    plan.missing = missing;
    int result = begin(&plan, policy, &identity, err);
    if (result == 0 && limits)
        plan_use_limits(&plan, policy, limits);
    if (result == 0)
        note_rung(&plan, policy);
    if (result == 0)
        result = finish(&plan, policy, &identity, err);
    if (result < 0) {
        plan_done(&plan);
        return result;
    }
    *ret_plan = plan;
    return 0;
}

/* ---- init ---- */

/* The jail's init in a memfd: nothing to install, nothing to look up at run time. */

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int open_init_image(struct brig_error *err)
{
    int created = memfd_create("brig-init", MFD_CLOEXEC | MFD_EXEC);
    if (created < 0 && errno == EINVAL) /* before 6.3 every memfd is executable */
        created = memfd_create("brig-init", MFD_CLOEXEC);
    autoclose int fd = created;
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return brig_fail(err, BRIG_E_UNSUPPORTED, errno,
                         "a jail cannot be built inside this jail, whose syscall filter refuses "
                         "what it needs. Build it outside, or give the outer one BRIG_SECCOMP_DEV");
    if (fd < 0) {
        (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot make a memory file for the jail's init");
        return errno == EACCES ? brig_advise(err, BRIG_E_SETUP, "vm.memfd_noexec forbids it")
                               : BRIG_E_SETUP;
    }
    if (write(fd, init_blob, sizeof init_blob) != (ssize_t)sizeof init_blob)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot write the jail's init");
    /* If its user cannot read a program, the kernel makes the process undumpable from its first
     * instruction. */
    if (fchmod(fd, 0111) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot protect the jail's init");
    return take_fd(&fd);
}

int plan_open_init(struct plan *plan, struct brig_error *err)
{
    if (plan->init_fd >= 0)
        return 0;
    plan->init_fd = open_init_image(err);
    if (plan->init_fd < 0)
        return plan->init_fd;
    plan_own_fd(plan, plan->init_fd);
    return 0;
}

/* ---- watched names ---- */

/* Adds a name on the host whose creation can uncover a covered path. */

static void watch_name(struct plan *plan, const char *host_path, size_t length, size_t name_at,
                       struct plan_mask covered)
{
    if (!plan_reserve(plan, (void **)&plan->masks, plan->mask_count, &plan->mask_room,
                      sizeof *plan->masks))
        return;
    covered.host_dir = arena_strndup(&plan->arena, host_path, name_at > 1 ? name_at - 1 : 1);
    covered.name = arena_strndup(&plan->arena, host_path + name_at, length - name_at);
    plan->masks[plan->mask_count++] = covered;
}

void plan_watch_cover(struct plan *plan, enum plan_cover cover, const struct plan_place *place,
                      const char *host_path, const char *dest)
{
    struct plan_mask covered = {.cover = cover, .host_path = host_path, .path = dest};
    if (place->writable)
        covered.writable = place->dest;
    size_t name_at = strlen(place->host) + 1;
    while (host_path[name_at]) {
        size_t length = name_at + strcspn(host_path + name_at, "/");
        watch_name(plan, host_path, length, name_at, covered);
        name_at = length + (host_path[length] == '/');
    }
}
