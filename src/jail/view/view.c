/* SPDX-License-Identifier: MIT */
/* The filesystem of a jail: the root, the private directories, and the order of the steps. */
#include "jail/view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "jail/job/result.h"
#include "jail/view/view_build.h"
#include "policy/layers.h"

/* Enough for a plan without grants; steps need more. Growing an array copies it to new pages, and
 * arrays allocated next to each other touch fewer pages. */
#define PLAN_FIRST_ITEMS 24
#define PLAN_FIRST_STEPS 160

/* ---- places and small steps ---- */

bool plan_reserve(struct plan *plan, void **items, size_t count, size_t *room, size_t item_size)
{
    if (count < *room)
        return true;
    size_t first = items == (void **)&plan->steps ? PLAN_FIRST_STEPS : PLAN_FIRST_ITEMS;
    size_t wanted = *room ? *room * 4 : first;
    void *grown = arena_alloc(&plan->arena, wanted * item_size);
    if (!grown)
        return false;
    if (count > 0)
        memcpy(grown, *items, count * item_size);
    *items = grown;
    *room = wanted;
    return true;
}

void view_add_place(struct view *view, struct view_place place)
{
    if (plan_reserve(view->plan, (void **)&view->places, view->place_count, &view->place_room,
                     sizeof *view->places))
        view->places[view->place_count++] = place;
}

const char *view_without_alias(struct arena *arena, const char *dest)
{
    static const struct {
        const char *alias, *real;
    } aliases[] = {{"/dev/shm", "/run/shm"}, {"/var/run", "/run"}, {"/var/tmp", "/tmp"}};
    for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++) {
        size_t length = strlen(aliases[i].alias);
        if (strncmp(dest, aliases[i].alias, length) == 0 && (!dest[length] || dest[length] == '/'))
            return arena_concat(arena, aliases[i].real, dest + length);
    }
    return dest;
}

const struct view_place *view_place_of(const struct view *view, const char *dest)
{
    const struct view_place *best = NULL;
    for (size_t i = 0; i < view->place_count; i++) {
        const struct view_place *place = &view->places[i];
        if (path_is_beneath(place->dest, dest) &&
            (!best || strlen(place->dest) >= strlen(best->dest))) /* a later one is on top */
            best = place;
    }
    return best;
}

/* Returns the path of dest inside its place. */
static const char *rest_in(const struct view_place *place, const char *dest)
{
    const char *rest = dest + strlen(place->dest);
    return rest + strspn(rest, "/");
}

/* An existing file or directory is kept. */
static void make_one(struct view *view, int slot, const char *path, unsigned mode)
{
    if (!*path)
        return;
    struct plan_step *step = plan_add(view->plan, PLAN_MKDIR, "make a directory in the jail");
    step->slot = slot;
    step->path = path;
    step->mode = mode;
}

void view_mkdirs(struct view *view, int slot, const char *path, unsigned mode)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *above = arena_copy(&view->plan->arena, path, (size_t)(slash - path) + 1);
        if (!above)
            return;
        above[slash - path] = 0;
        make_one(view, slot, above, 0755);
    }
    make_one(view, slot, path, mode);
}

static void make_parents(struct view *view, int slot, const char *path)
{
    char *copy = arena_strdup(&view->plan->arena, path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    if (!slash)
        return;
    *slash = 0;
    view_mkdirs(view, slot, copy, 0755);
}

void view_mkfile(struct view *view, int slot, const char *path, unsigned mode, const void *data,
                 size_t length)
{
    make_parents(view, slot, path);
    struct plan_step *step = plan_add(view->plan, PLAN_MKFILE, "make a file in the jail");
    step->slot = slot;
    step->path = path;
    step->mode = mode;
    step->data = data;
    step->length = length;
}

void view_symlink(struct view *view, int slot, const char *path, const char *target)
{
    make_parents(view, slot, path);
    struct plan_step *step = plan_add(view->plan, PLAN_SYMLINK, "make a symbolic link in the jail");
    step->slot = slot;
    step->path = path;
    step->data = target;
}

/* Returns whether a run would create a missing directory, see view_find_source(). */
static bool will_be_made(const struct brig_policy *policy, const char *path)
{
    for (size_t i = 0; policy->facts && i < policy->grant_count; i++)
        if (policy->grants[i].flags & BRIG_GRANT_CREATE &&
            strcmp(policy->grants[i].source, path) == 0)
            return true;
    return false;
}

int view_mountpoint(struct view *view, const char *dest, bool directory, bool *ret_ours,
                    struct brig_error *err)
{
    const struct view_place *place = view_place_of(view, dest);
    if (!place) /* the root is always a place, unless memory ran out */
        return brig_fail_nomem(err);
    const char *rest = rest_in(place, dest);
    if (place->host) {
        char *path = arena_concat(&view->plan->arena, place->host, "/", rest);
        struct stat info;
        *ret_ours = false;
        if (!path)
            return brig_fail_nomem(err);
        if (lstat(path, &info) == 0 || errno == EACCES || will_be_made(view->policy, path))
            return 0;
        (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot mount at '%s': '%s'", dest, path);
        return brig_advise(err, BRIG_E_SETUP,
                           "A mount needs something to be mounted on: create it there first");
    }
    char *path = arena_concat(&view->plan->arena, place->prefix, rest);
    if (!path)
        return brig_fail_nomem(err);
    if (place->jails) { /* earlier runs may have left anything there: resolved name by name */
        struct plan_step *step =
            plan_add(view->plan, PLAN_MKPATH,
                     arena_concat(&view->plan->arena, "make '", dest, "' to mount on"));
        step->slot = place->slot;
        step->path = path;
        step->mode = directory;
        step->hint =
            place->slot == view->root
                ? "The image has something else in its place, such as a symbolic link"
                : "An earlier run may have put something else in its place, in the jail's home";
        *ret_ours = false;
        return 0;
    }
    *ret_ours = true;
    if (directory)
        view_mkdirs(view, place->slot, path, 0755);
    else
        view_mkfile(view, place->slot, path, 0444, NULL, 0);
    return 0;
}

struct plan_step *view_attach(struct view *view, int slot, const char *dest, bool ours,
                              const char *what)
{
    struct plan_step *step = plan_add(view->plan, PLAN_ATTACH, what);
    step->slot = slot;
    step->from = view->root;
    step->path = dest;
    step->mode = ours;
    const struct view_place *place = view_place_of(view, dest);
    if (!ours && (place->host || place->jails) && place->writable) {
        step->data = place->dest;
        step->length = place->dest[1] ? strlen(place->dest) : 0;
    }
    return step;
}

int view_subtree(struct view *view, int from, const char *path, const char *what)
{
    int slot = plan_new_slot(view->plan);
    struct plan_step *step = plan_add(view->plan, PLAN_SUBTREE, what);
    step->slot = slot;
    step->from = from;
    step->path = path;
    return slot;
}

int view_read_only_subtree(struct view *view, int from, const char *path, const char *what)
{
    int slot = view_subtree(view, from, path, what);
    struct plan_step *step = plan_add(view->plan, PLAN_ATTR, what);
    step->slot = slot;
    step->flags = PLAN_ATTR_RDONLY;
    return slot;
}

void view_landlock(struct view *view, int slot, const char *dest, enum landlock_grant grant,
                   bool directory)
{
    plan_add_rule(view->plan, slot, dest, landlock_rights(view->abi, grant, directory));
}

/* ---- the memory of private directories ---- */

/* One tmpfs, and so one limit, for all of them. */
static int new_scratch(struct view *view, struct brig_error *err)
{
    struct plan *plan = view->plan;
    const uint64_t *limits = view->policy->limits;
    view->scratch = plan_new_slot(plan);
    char *options = arena_alloc(&plan->arena, 96);
    if (!options)
        return brig_fail_nomem(err);
    int used = snprintf(options, 96, "mode=0711") + 1;
    if (limits[BRIG_LIMIT_TMP_BYTES])
        used += snprintf(options + used, 96 - (size_t)used, "size=%llu",
                         (unsigned long long)limits[BRIG_LIMIT_TMP_BYTES]) +
                1;
    if (limits[BRIG_LIMIT_TMP_INODES])
        (void)snprintf(options + used, 96 - (size_t)used, "nr_inodes=%llu",
                       (unsigned long long)limits[BRIG_LIMIT_TMP_INODES]);
    struct plan_step *step = plan_add(plan, PLAN_TMPFS, "make the jail's private directories");
    step->fresh = true;
    step->slot = view->scratch;
    step->path = options;
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV;
    return 0;
}

/* ---- the root ---- */

static void add_frame_root(struct view *view)
{
    struct plan_step *step = plan_add(view->plan, PLAN_TMPFS, "make the jail's root");
    step->slot = view->root;
    step->path = "mode=0755\0size=16m\0nr_inodes=8192\0";
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV;
    view_add_place(view, (struct view_place){.dest = "/", .slot = view->root, .prefix = ""});
}

static int add_host_root(struct view *view, const char *path, struct brig_error *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot use '%s' as the jail's root", path);
    if (!S_ISDIR(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, ENOTDIR, "cannot use '%s' as the jail's root", path);
    struct plan_step *step =
        plan_add(view->plan, PLAN_TREE,
                 arena_concat(&view->plan->arena, "mount '", path, "' as the jail's root"));
    step->slot = view->root;
    step->path = path;
    step->flags = PLAN_ATTR_RDONLY | PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_RECURSIVE;
    step->check_identity = true;
    step->dev = info.st_dev;
    step->ino = info.st_ino;
    const char *host = strcmp(path, "/") == 0 ? "" : path;
    view_add_place(view, (struct view_place){.dest = "/", .host = host});
    return 0;
}

static int add_root(struct view *view, struct brig_error *err)
{
    view->root = plan_new_slot(view->plan);
    int result = 0;
    switch (view->policy->view) {
    case BRIG_VIEW_SYSTEM:
    case BRIG_VIEW_EMPTY:
        view->frame = true;
        add_frame_root(view);
        break;
    case BRIG_VIEW_HOST:
        result = add_host_root(view, "/", err);
        break;
    case BRIG_VIEW_ROOT:
        result = add_host_root(view, view->policy->root_path, err);
        break;
    }
    if (view->policy->view == VIEW_LAYERS) {
        view->layered = true;
        result = new_scratch(view, err);
        if (result == 0)
            result = view_add_layers(view, err);
    }
    if (result < 0)
        return result;
    struct plan_step *step = plan_add(view->plan, PLAN_ROOT, "attach the jail's root");
    step->slot = view->root;
    uint64_t access =
        landlock_rights(view->abi, view->layered ? LANDLOCK_GRANT_ROOT : LANDLOCK_GRANT_READ, true);
    if (view->frame) /* listing only: readable directories have separate rules */
        access &= landlock_rights(view->abi, LANDLOCK_GRANT_READ, true) ^
                  landlock_rights(view->abi, LANDLOCK_GRANT_READ, false);
    plan_add_rule(view->plan, view->root, "/", access);
    return 0;
}

/* ---- private directories ---- */

/* The root of the tmpfs is mounted at /tmp and at once covered by one of its directories, so that
 * the jail cannot name the other ones. With layers it is mounted already, below the jail's root. */
static int add_scratch(struct view *view, struct brig_error *err)
{
    struct plan *plan = view->plan;
    bool ours;
    int result = view->layered ? 0 : new_scratch(view, err);
    if (result == 0 && !view->layered)
        result = view_mountpoint(view, "/tmp", true, &ours, err);
    if (result < 0)
        return result;
    if (!view->layered)
        (void)view_attach(view, view->scratch, "/tmp", ours,
                          "attach the jail's private directories");
    view_mkdirs(view, view->scratch, VIEW_SCRATCH_TMP, 01777);
    view_mkdirs(view, view->scratch, VIEW_SCRATCH_RUN, 0755);
    view_mkdirs(view, view->scratch, VIEW_SCRATCH_SHM, 01777);
    if (!view->frame) /* $XDG_RUNTIME_DIR may point there */
        view_mkdirs(
            view, view->scratch,
            arena_printf(&plan->arena, VIEW_SCRATCH_RUN "/user/%u", view->identity->inside_uid),
            0700);
    view_mkdirs(view, view->scratch, VIEW_SCRATCH_HOME, 0700);
    view_mkfile(view, view->scratch, VIEW_EMPTY_FILE, 0444, NULL, 0);
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* ---- the whole view ---- */

/* Only in jails for agents, and if the jail's cgroup can be divided. */
static void add_tools_socket(struct view *view)
{
    struct plan_step *step = plan_add(view->plan, PLAN_LISTEN, "make the socket for tools");
    step->path = NESTED_LIMITS_SOCKET;
    step->soft = true; /* the jail may have no /run */
}

static void finish(struct view *view)
{
    struct plan_step *attr = plan_add(view->plan, PLAN_ATTR, "make the jail's root read-only");
    /* a host root is read-only already, and only /dev is made by brig */
    attr->slot = view->frame ? view->root : view->dev;
    attr->flags = PLAN_ATTR_RDONLY;
    struct plan_step *step = plan_add(view->plan, PLAN_PIVOT, "change to the jail's root");
    step->slot = view->root;
    const struct plan *plan = view->plan;
    if (view->policy->seccomp == BRIG_SECCOMP_DEV && (plan->cgroup_fd >= 0 || plan->join_count > 0))
        add_tools_socket(view);
    if (view->layered) /* the tmpfs is mounted on top of the host's tree, and detached first */
        (void)plan_add(view->plan, PLAN_DETACH, "let go of the parts of the jail's root");
    (void)plan_add(view->plan, PLAN_DETACH, "let go of the host's tree");
}

/* Keeps the places for job_hide(), which hides paths while the jail runs. */
static void keep_places(const struct view *view)
{
    struct plan *plan = view->plan;
    plan->places = arena_alloc(&plan->arena, view->place_count * sizeof *plan->places);
    for (size_t i = 0; plan->places && i < view->place_count; i++)
        plan->places[plan->place_count++] = (struct plan_place){
            view->places[i].dest, view->places[i].host, view->places[i].writable};
}

/* Adds the parts that do not depend on grants and masks. */
static int add_frame(struct view *view, struct brig_error *err)
{
    const struct brig_policy *policy = view->policy;
    int result = add_root(view, err);
    if (result < 0 || (result = add_scratch(view, err)) < 0)
        return result;
    view_add_dev(view);
    view_add_proc(view);
    if (policy->view == BRIG_VIEW_SYSTEM && (result = view_add_system(view, err)) < 0)
        return result;
    if (!view->frame)
        view_add_identity_files(view);
    if (policy_has_door(policy))
        view_add_door(view);
    return 0;
}

/* ---- private directories of the policy ---- */

/* Each private directory is a numbered directory of the scratch tmpfs: names could be of any
 * length. */
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

/* Adds a new file in a private directory. If earlier runs may have changed the directory, the file
 * must be directly in it: a deeper path could contain planted symlinks. */
static int add_file(struct view *view, const char *dest, unsigned mode, const void *bytes,
                    size_t length, bool late, struct brig_error *err)
{
    const struct view_place *place = view_place_of(view, dest);
    const char *name = rest_in(place, dest);
    bool fits = place->jails ? !strchr(name, '/') : place->slot == view->scratch;
    if (place->host || !fits || !*name)
        return brig_fail(err, BRIG_E_SETUP, 0, "'%s' is not in a private directory of the jail",
                         dest);
    const char *path = arena_concat(&view->plan->arena, place->prefix, name);
    int slot = place->slot;
    if (!path)
        return brig_fail_nomem(err);
    view_mkfile(view, slot, path, mode, bytes, length);
    if (late) {
        struct plan_step *step =
            plan_add(view->plan, PLAN_LATE, "open a file that is filled later");
        step->slot = slot;
        step->path = path;
    }
    return 0;
}

static int add_files(struct view *view, struct brig_error *err)
{
    const struct policy_file *own = &view->policy->file;
    int result =
        own->dest ? add_file(view, own->dest, own->mode, own->data, own->length, false, err) : 0;
    for (size_t i = 0; i < view->policy->file_count && result == 0; i++) {
        const struct policy_private_file *file = &view->policy->files[i];
        result = add_file(view, file->dest, file->mode, file->bytes, file->length, file->late, err);
    }
    return result;
}

int view_plan(struct plan *plan, const struct brig_policy *policy,
              const struct jail_identity *identity, int landlock_abi, struct brig_error *err)
{
    struct view view = {.plan = plan, .policy = policy, .identity = identity, .abi = landlock_abi};
    int result = add_frame(&view, err);
    if (result < 0 || (result = view_add_entries(&view, err)) < 0 ||
        (result = add_files(&view, err)) < 0)
        return result;
    finish(&view);
    keep_places(&view);
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* ---- without mounts ---- */

/* Without mounts, the view becomes Landlock rules on the host tree. */

void view_path_rule(struct view *view, const char *path, enum landlock_grant grant)
{
    struct stat info;
    if (stat(path, &info) == 0)
        plan_add_rule(view->plan, PLAN_NO_SLOT, path,
                      landlock_rights(view->abi, grant, S_ISDIR(info.st_mode)));
}

int view_plan_landlock_only(struct plan *plan, const struct brig_policy *policy,
                            const struct jail_identity *identity, int landlock_abi,
                            struct brig_error *err)
{
    static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom", "/dev/tty",  "/dev/pts"};
    struct view view = {.plan = plan, .policy = policy, .identity = identity, .abi = landlock_abi};
    if (policy->view == VIEW_LAYERS)
        return brig_fail(err, BRIG_E_SETUP, 0, "a root of layers needs namespaces");
    if (policy->view == BRIG_VIEW_HOST) {
        view_path_rule(&view, "/", LANDLOCK_GRANT_READ);
    } else if (policy->view != BRIG_VIEW_EMPTY) {
        for (size_t i = 0; i < view_system_dir_count; i++)
            view_path_rule(&view, view_system_dirs[i], LANDLOCK_GRANT_READ);
        view_add_etc_rules(&view);
        view_path_rule(&view, VIEW_SYS_CPU, LANDLOCK_GRANT_READ);
        view_path_rule(&view, "/proc", LANDLOCK_GRANT_READ);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(devices); i++)
        view_path_rule(&view, devices[i], LANDLOCK_GRANT_DEVICE);
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access == BRIG_PROTECT || grant->own)
            unenforced_add(&plan->unenforced,
                           "protected paths can be written to (needs namespaces)");
        if (grant->access == BRIG_MASK || grant->access == BRIG_PROTECT || grant->own)
            continue;
        if (grant->fd >= 0)
            return brig_fail(err, BRIG_E_SETUP, 0,
                             "without namespaces the jail cannot have a private '%s' [%s]",
                             grant->dest, grant->origin);
        if (strcmp(grant->source, grant->dest) != 0) {
            /* A lower rung could not do it either, and would restrict less. */
            return brig_fail(err, BRIG_E_SETUP, 0,
                             "'%s' cannot be granted at another path '%s' without namespaces [%s]",
                             grant->source, grant->dest, grant->origin);
        }
        struct stat info;
        int found = view_find_source(&view, grant, &info, err);
        if (found < 0)
            return found;
        if (found == 0)
            continue;
        view_path_rule(&view, grant->source,
                       grant->access == BRIG_READ_WRITE  ? LANDLOCK_GRANT_WRITE
                       : grant->access == BRIG_READ_ONLY ? LANDLOCK_GRANT_READ
                                                         : LANDLOCK_GRANT_DEVICE);
    }
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}
