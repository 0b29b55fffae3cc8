/* SPDX-License-Identifier: MIT */
/* Executes the build steps of a plan on a mount table in memory. */
#include "jail/plan/effects.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "jail/plan/plan.h"

#define HOST_FILESYSTEM (-1)

struct table {
    const struct plan *plan;
    struct effects *effects;
    struct effects_tree *slots;
    int filesystems, mounts;
    unsigned taken; /* a bit for each enum plan_op without further effects */
};

static struct arena *arena_of(const struct table *table)
{
    return &table->effects->arena;
}

/* Joins two paths in a tree: "a" and "b" give "a/b"; either may be empty. */
static const char *join(const struct table *table, const char *above, const char *name)
{
    while (*name == '/')
        name++;
    if (!*name)
        return above;
    if (!*above)
        return name;
    bool slash = above[strlen(above) - 1] == '/';
    const char *path = arena_concat(arena_of(table), above, slash ? "" : "/", name);
    return path ? path : "";
}

/* ---- trees ---- */

static void new_tree(struct table *table, int slot, enum effects_kind kind,
                     const struct plan_step *step)
{
    bool host = kind == EFFECTS_HOST || kind == EFFECTS_MAPPED;
    table->slots[slot] = (struct effects_tree){
        .kind = kind,
        .mount = table->mounts++,
        .filesystem = host ? HOST_FILESYSTEM : table->filesystems++,
        .options = host || kind == EFFECTS_GIVEN ? NULL : step->path,
        .path = host ? step->path : "",
        .flags = step->flags &
                 (PLAN_ATTR_RDONLY | PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_NOEXEC),
    };
}

static void clone_part(struct table *table, const struct plan_step *step)
{
    struct effects_tree part = table->slots[step->from];
    part.mount = table->mounts++;
    part.path = join(table, part.path, step->path);
    part.alone = part.kind == EFFECTS_HOST && !(step->flags & PLAN_ATTR_RECURSIVE);
    table->slots[step->slot] = part;
}

/* ---- mounts ---- */

/* A mount covers earlier mounts at or below its path. */
static void cover(struct effects *effects, const char *path)
{
    size_t kept = 0;
    for (size_t i = 0; i < effects->mount_count; i++)
        if (!path_is_beneath(path, effects->mounts[i].path))
            effects->mounts[kept++] = effects->mounts[i];
    effects->mount_count = kept;
}

static void mount_tree(struct table *table, const struct effects_tree *tree, const char *path,
                       bool optional)
{
    struct effects *effects = table->effects;
    cover(effects, path);
    effects->mounts[effects->mount_count++] =
        (struct effects_mount){.path = path, .tree = *tree, .optional = optional};
}

/* Returns the entry of a mount, or NULL. */
static struct effects_mount *find_mount(const struct table *table, int number)
{
    struct effects *effects = table->effects;
    for (size_t i = 0; i < effects->mount_count; i++)
        if (effects->mounts[i].tree.mount == number)
            return &effects->mounts[i];
    return NULL;
}

/* A slot refers to the mount itself, wherever it is attached. */
static void set_flags(struct table *table, const struct plan_step *step)
{
    struct effects *effects = table->effects;
    unsigned flags = step->flags & ~(unsigned)PLAN_ATTR_RECURSIVE;
    table->slots[step->slot].flags |= flags;
    struct effects_mount *top = find_mount(table, table->slots[step->slot].mount);
    if (!top)
        return;
    top->tree.flags |= flags;
    for (size_t i = 0; step->flags & PLAN_ATTR_RECURSIVE && i < effects->mount_count; i++)
        if (path_is_beneath(top->path, effects->mounts[i].path))
            effects->mounts[i].tree.flags |= flags;
}

/* ---- objects in filesystems of the jail ---- */

static void make_object(struct table *table, enum effects_object_kind kind,
                        const struct plan_step *step)
{
    struct effects *effects = table->effects;
    const struct effects_tree *tree = &table->slots[step->slot];
    const char *path = join(table, tree->path, step->path);
    if (effects_object_at(effects, tree->filesystem, path))
        return; /* an existing object is kept unchanged */
    effects->objects[effects->object_count++] = (struct effects_object){
        .kind = kind,
        .filesystem = tree->filesystem,
        .path = path,
        .mode = step->mode,
        .data = step->data,
        .length = kind == EFFECTS_LINK ? strlen(step->data) : step->length,
    };
}

static void make_place(struct table *table, const struct plan_step *step)
{
    struct effects *effects = table->effects;
    const struct effects_mount *mount = find_mount(table, table->slots[step->slot].mount);
    effects->places[effects->place_count++] = join(table, mount ? mount->path : "?", step->path);
}

static void write_file(struct table *table, const struct plan_step *step)
{
    struct effects *effects = table->effects;
    effects->writes[effects->write_count++] = (struct effects_write){
        .path = step->path, .data = step->data, .length = step->length, .optional = step->soft};
}

/* ---- steps ---- */

static void mount_device(struct table *table, const struct plan_step *step)
{
    struct effects_tree device = {.kind = EFFECTS_HOST,
                                  .mount = table->mounts++,
                                  .filesystem = HOST_FILESYSTEM,
                                  .path = step->path,
                                  .alone = true};
    mount_tree(table, &device, step->path, true);
}

static void take_step(struct table *table, const struct plan_step *step)
{
    static const enum effects_kind kinds[] = {
        [PLAN_TMPFS] = EFFECTS_TMPFS,    [PLAN_PROC] = EFFECTS_PROC,
        [PLAN_DEVPTS] = EFFECTS_DEVPTS,  [PLAN_MQUEUE] = EFFECTS_MQUEUE,
        [PLAN_OVERLAY] = EFFECTS_LAYERS, [PLAN_TREE] = EFFECTS_HOST};
    static const enum effects_object_kind objects[] = {[PLAN_MKDIR] = EFFECTS_DIRECTORY,
                                                       [PLAN_MKFILE] = EFFECTS_FILE,
                                                       [PLAN_SYMLINK] = EFFECTS_LINK};
    struct effects *effects = table->effects;
    switch (step->op) {
    case PLAN_TMPFS:
    case PLAN_PROC:
    case PLAN_DEVPTS:
    case PLAN_MQUEUE:
    case PLAN_OVERLAY:
    case PLAN_TREE:
        return new_tree(table, step->slot, kinds[step->op], step);
    case PLAN_PREPARED:
        return new_tree(table, step->slot, step->path ? EFFECTS_MAPPED : EFFECTS_GIVEN, step);
    case PLAN_SUBTREE:
        return clone_part(table, step);
    case PLAN_ATTR:
        return set_flags(table, step);
    case PLAN_ROOT:
        return mount_tree(table, &table->slots[step->slot], "/", false);
    case PLAN_DEVICE:
        return mount_device(table, step);
    case PLAN_ATTACH:
        return mount_tree(table, &table->slots[step->slot], step->path, step->soft);
    case PLAN_WRITE:
        return write_file(table, step);
    case PLAN_MKDIR:
    case PLAN_MKFILE:
    case PLAN_SYMLINK:
        return make_object(table, objects[step->op], step);
    case PLAN_MKPATH:
        return make_place(table, step);
    case PLAN_HOSTNAME:
        effects->hostname = step->data;
        effects->hostname_length = step->length;
        return;
    case PLAN_LISTEN:
        effects->listens = step->path;
        return;
    case PLAN_SETGROUPS:
    case PLAN_PRIVATE:
    case PLAN_PIVOT:
    case PLAN_DETACH:
    case PLAN_PTY:
        table->taken |= 1U << step->op;
        return;
    case PLAN_OPEN_ROOT: /* these have no effect that the command sees */
    case PLAN_OPEN:
    case PLAN_KEEP:
    case PLAN_LATE:
        return;
    }
}

/* ---- the whole plan ---- */

static int compare_mounts(const void *left, const void *right)
{
    return strcmp(((const struct effects_mount *)left)->path,
                  ((const struct effects_mount *)right)->path);
}

static int compare_objects(const void *left, const void *right)
{
    const struct effects_object *a = left, *b = right;
    if (a->filesystem != b->filesystem)
        return a->filesystem < b->filesystem ? -1 : 1;
    return strcmp(a->path, b->path);
}

int effects_of(const struct plan *plan, struct effects *ret_effects, struct brig_error *err)
{
    struct effects effects = {0};
    size_t room = plan->step_count + 1; /* a step creates at most one of each */
    struct table table = {.plan = plan, .effects = &effects};
    table.slots = arena_alloc(&effects.arena, ((size_t)plan->slot_count + 1) * sizeof *table.slots);
    effects.mounts = arena_alloc(&effects.arena, room * sizeof *effects.mounts);
    effects.objects = arena_alloc(&effects.arena, room * sizeof *effects.objects);
    effects.writes = arena_alloc(&effects.arena, room * sizeof *effects.writes);
    effects.places = arena_alloc(&effects.arena, room * sizeof *effects.places);
    for (size_t i = 0; i < plan->step_count && !effects.arena.failed; i++)
        take_step(&table, &plan->steps[i]);
    if (effects.arena.failed) {
        effects_done(&effects);
        return brig_fail_nomem(err);
    }
    effects.drops_groups = table.taken & 1U << PLAN_SETGROUPS;
    effects.is_private = table.taken & 1U << PLAN_PRIVATE;
    effects.terminal = table.taken & 1U << PLAN_PTY;
    effects.keeps_host = !(table.taken & 1U << PLAN_PIVOT && table.taken & 1U << PLAN_DETACH);
    qsort(effects.mounts, effects.mount_count, sizeof *effects.mounts, compare_mounts);
    qsort(effects.objects, effects.object_count, sizeof *effects.objects, compare_objects);
    *ret_effects = effects;
    return 0;
}

void effects_done(struct effects *effects)
{
    arena_done(&effects->arena);
    arena_done(&effects->texts);
    *effects = (struct effects){0};
}

const struct effects_mount *effects_mount_of(const struct effects *effects, const char *path)
{
    const struct effects_mount *best = NULL; /* sorted: deeper paths come later */
    for (size_t i = 0; i < effects->mount_count; i++)
        if (path_is_beneath(effects->mounts[i].path, path))
            best = &effects->mounts[i];
    return best;
}

bool effects_is_read_only(const struct effects_mount *mount)
{
    return mount->tree.flags & PLAN_ATTR_RDONLY;
}

const struct effects_object *effects_object_at(const struct effects *effects, int filesystem,
                                               const char *path)
{
    for (size_t i = 0; i < effects->object_count; i++)
        if (effects->objects[i].filesystem == filesystem &&
            strcmp(effects->objects[i].path, path) == 0)
            return &effects->objects[i];
    return NULL;
}
