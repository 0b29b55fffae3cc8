/* SPDX-License-Identifier: MIT */
/* Mounts grants, masks and private directories over the root in order of depth: the most specific
 * is mounted last and wins, whatever the order of the rules. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "jail/job/result.h"
#include "jail/sys.h"
#include "jail/view/idmap.h"
#include "jail/view/view_build.h"

static int compare_entries(const void *left, const void *right)
{
    const struct view_entry *a = left, *b = right;
    int order = strcmp(a->dest, b->dest); /* a directory sorts before the paths below it */
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

struct view_entry *view_add_entry(struct view *view, struct view_entries *entries,
                                  enum view_entry_kind kind, const char *wanted)
{
    const char *dest = view->frame ? view_without_alias(&view->plan->arena, wanted) : wanted;
    if (!dest)
        return NULL;
    if (!plan_reserve(view->plan, (void **)&entries->items, entries->count, &entries->room,
                      sizeof *entries->items))
        return NULL;
    struct view_entry *entry = &entries->items[entries->count];
    *entry = (struct view_entry){.kind = kind, .dest = dest, .order = entries->count};
    entries->count++;
    return entry;
}

/* ---- private directories ---- */

static void add_private(struct view *view, struct view_entries *entries)
{
    /* In a root built by brig a symlink suffices where the host tree needs a mount. */
    enum { ANY_ROOT, OUR_ROOT, HOST_ROOT };
    const struct {
        const char *dest, *part;
        int root;
    } table[] = {
        {"/tmp", VIEW_SCRATCH_TMP, ANY_ROOT},
        {"/var/tmp", VIEW_SCRATCH_TMP, HOST_ROOT},
        {"/run", VIEW_SCRATCH_RUN, ANY_ROOT},
        {"/dev/shm", VIEW_SCRATCH_SHM, view->layered ? ANY_ROOT : HOST_ROOT},
        {view->identity->home, VIEW_SCRATCH_HOME, OUR_ROOT},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
        const struct view_place *place = view_place_of(view, table[i].dest);
        if (table[i].root != ANY_ROOT &&
            (table[i].root == OUR_ROOT) != (view->frame || view->layered))
            continue;
        if (table[i].root == OUR_ROOT && (place->host || table[i].dest[1] == 0))
            continue;
        if (place->host && strcmp(table[i].dest, "/tmp") != 0) {
            char path[4200];
            (void)str_fill(path, sizeof path, place->host, table[i].dest);
            if (access(path, F_OK) < 0)
                continue; /* no such directory in this view */
        }
        struct view_entry *entry = view_add_entry(view, entries, ENTRY_PRIVATE, table[i].dest);
        if (entry)
            entry->part = table[i].part;
    }
    if (!view->frame)
        return;
    view_symlink(view, view->root, "var/run", "../run");
    view_symlink(view, view->root, "var/tmp", "../tmp");
}

/* ---- grants ---- */

/* Returns the part of path below directory, starting with its slash, or NULL if it is not below
 * it. */
static const char *view_below(const char *directory, const char *path)
{
    size_t length = strlen(directory);
    return strncmp(directory, path, length) == 0 && path[length] == '/' ? path + length : NULL;
}

static void add_entry_of(struct view *view, struct view_entries *entries, enum view_entry_kind kind,
                         const char *dest, const struct policy_grant *grant)
{
    struct view_entry *entry = dest ? view_add_entry(view, entries, kind, dest) : NULL;
    if (entry)
        entry->grant = grant;
}

/* Hides the path in the jail, and the host path of the same name wherever else it is granted. */
static void add_mask(struct view *view, struct view_entries *entries,
                     const struct policy_grant *mask)
{
    add_entry_of(view, entries, ENTRY_MASK, mask->dest, mask);
    for (size_t i = 0; i < view->policy->grant_count; i++) {
        const struct policy_grant *grant = &view->policy->grants[i];
        const char *rest =
            grant->access == BRIG_MASK ? NULL : view_below(grant->source, mask->dest);
        if (!rest || strcmp(grant->source, grant->dest) == 0)
            continue;
        add_entry_of(view, entries, ENTRY_MASK, arena_concat(&view->plan->arena, grant->dest, rest),
                     mask);
    }
}

static int add_grant(struct view *view, struct view_entries *entries,
                     const struct policy_grant *grant, struct brig_error *err)
{
    if (grant->access == BRIG_MASK) {
        add_mask(view, entries, grant);
        return 0;
    }
    if (grant->access == BRIG_PROTECT) {
        add_entry_of(view, entries, ENTRY_PROTECT, grant->dest, grant);
        return 0;
    }
    struct stat info;
    int found = view_find_source(view, grant, &info, err);
    if (found <= 0)
        return found;
    struct view_entry *entry = view_add_entry(view, entries, ENTRY_TREE, grant->dest);
    if (entry) {
        entry->grant = grant;
        entry->info = info;
    }
    return 0;
}

/* ---- mounting ---- */

static int lay_private(struct view *view, const struct view_entry *entry, struct brig_error *err)
{
    bool ours;
    int result = view_mountpoint(view, entry->dest, true, &ours, err);
    if (result < 0)
        return result;
    int slot = (entry->read_only ? view_read_only_subtree : view_subtree)(
        view, view->scratch, entry->part, "make a private directory");
    (void)view_attach(view, slot, entry->dest, ours,
                      arena_concat(&view->plan->arena, "mount a private '", entry->dest, "'"));
    view_landlock(view, slot, entry->dest,
                  entry->read_only ? LANDLOCK_GRANT_READ : LANDLOCK_GRANT_WRITE, true);
    if (entry->kept)
        plan_add(view->plan, PLAN_KEEP, "keep a private directory")->slot = slot;
    view_add_place(
        view, (struct view_place){.dest = entry->dest,
                                  .slot = view->scratch,
                                  .prefix = arena_concat(&view->plan->arena, entry->part, "/")});
    return 0;
}

static void watch_cover(struct view *view, enum plan_cover cover, const struct view_place *place,
                        const char *host_path, const char *dest)
{
    const struct plan_place tree = {place->dest, place->host, place->writable};
    plan_watch_cover(view->plan, cover, &tree, host_path, dest);
}

/* Attaches a slot at a name directly in a place: a lookup of one name, which no symlink can
 * divert. */
static void attach_in(struct view *view, int slot, const struct view_place *place, const char *dest,
                      const char *what)
{
    struct plan_step *step = plan_add(view->plan, PLAN_ATTACH, what);
    step->slot = slot;
    step->from = place->slot;
    step->path = dest;
    step->length = strlen(place->dest) + 1;
    step->flags = PLAN_ATTACH_NAME;
}

/* Mounts a file, directory or symlink on itself: a mount point cannot be renamed or removed. All
 * directories between it and its place are pinned already, and are places themselves. */
static void pin(struct view *view, const char *dest, enum plan_cover cover)
{
    struct arena *arena = &view->plan->arena;
    struct view_place place = *view_place_of(view, dest); /* adding places may move the array */
    const char *name = dest + strlen(place.dest) + 1;
    char *host = arena_concat(arena, place.host, "/", name);
    const char *what = arena_concat(arena, "hold '", dest, "' in place");
    if (!host || !what)
        return;
    int slot = plan_new_slot(view->plan);
    struct plan_step *step = plan_add(view->plan, PLAN_SUBTREE, what);
    step->slot = slot;
    step->from = place.slot;
    step->path = name;
    step->flags = PLAN_ATTR_RECURSIVE;
    step->check_identity = true;
    bool writable = cover == PLAN_COVER_PIN;
    if (!writable && (step = plan_add(view->plan, PLAN_ATTR, what))) {
        step->slot = slot;
        step->flags = PLAN_ATTR_RDONLY | PLAN_ATTR_RECURSIVE;
    }
    attach_in(view, slot, &place, dest, what);
    watch_cover(view, cover, &place, host, dest);
    view_add_place(
        view, (struct view_place){.dest = dest, .host = host, .writable = writable, .slot = slot});
}

/* A rule below a writable directory could be evaded by renaming a directory above its path and
 * putting another one in its place: so each directory between the governing place and the path is
 * pinned. */
static void hold_between(struct view *view, const struct view_place *place, const char *dest)
{
    if (!place->host || !place->writable)
        return;
    const char *top = place->host; /* adding places may move the array */
    const char *rest = dest + strlen(place->dest) + 1;
    for (const char *slash = strchr(rest, '/'); slash; slash = strchr(slash + 1, '/')) {
        char path[4200];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s/%.*s", top, (int)(slash - rest), rest);
        if (lstat(path, &info) < 0)
            return;
        if (!S_ISDIR(info.st_mode)) { /* the symlink's target is what matters */
            unenforced_add(&view->plan->unenforced,
                           "'%s' goes through a symlink, which can be replaced", dest);
            return;
        }
        char *above = arena_strndup(&view->plan->arena, dest, (size_t)(slash - dest));
        if (above)
            pin(view, above, PLAN_COVER_PIN);
    }
}

static void hold_parents(struct view *view, const char *dest)
{
    hold_between(view, view_place_of(view, dest), dest);
}

bool view_is_mapped(const struct view *view, const struct stat *info)
{
    const struct brig_policy *policy = view->policy;
    return view->identity->synthetic &&
           (!policy->stranger || policy->owner == 0 || info->st_uid == policy->owner);
}

static int open_tree_of(struct view *view, const struct policy_grant *grant,
                        const struct stat *info)
{
    struct plan *plan = view->plan;
    int slot = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_TREE,
                                      arena_concat(&plan->arena, "mount '", grant->source, "' on '",
                                                   grant->dest, "' [", grant->origin, "]"));
    step->slot = slot;
    step->path = grant->source;
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_RECURSIVE |
                  (grant->access == BRIG_DEVICE ? 0 : PLAN_ATTR_NODEV) |
                  (grant->access == BRIG_READ_ONLY ? PLAN_ATTR_RDONLY : 0);
    step->check_identity = true;
    step->dev = info->st_dev;
    step->ino = info->st_ino;
    return slot;
}

static unsigned plan_flags(uint64_t attributes)
{
    return PLAN_ATTR_RECURSIVE | (attributes & MOUNT_ATTR_NOSUID ? PLAN_ATTR_NOSUID : 0U) |
           (attributes & MOUNT_ATTR_NODEV ? PLAN_ATTR_NODEV : 0U) |
           (attributes & MOUNT_ATTR_RDONLY ? PLAN_ATTR_RDONLY : 0U);
}

int view_mapped_tree(struct view *view, const char *path, const struct stat *info,
                     uint64_t attributes, const char *what, int *ret_slot, struct brig_error *err)
{
    struct plan *plan = view->plan;
    int fd = -1;
    if (!view->policy->facts) {
        fd = prepared_tree(path, info, view->identity->host_uid, view->identity->host_gid,
                           attributes, err);
        if (fd < 0)
            return fd;
        plan_own_fd(plan, fd);
    }
    *ret_slot = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_PREPARED, what);
    step->slot = *ret_slot;
    step->fd = fd;
    step->path = path; /* only for printing, as are the flags */
    step->flags = plan_flags(attributes);
    return 0;
}

/* Finds the tree of an entry: a mount made by the caller or here, or a host tree. */
static int find_tree(struct view *view, const struct view_entry *entry, const char *what,
                     int *ret_slot, struct brig_error *err)
{
    const struct policy_grant *grant = entry->grant;
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                          (grant->access == BRIG_READ_ONLY ? (uint64_t)MOUNT_ATTR_RDONLY : 0);
    if (grant->fd >= 0) {
        *ret_slot = plan_new_slot(view->plan);
        struct plan_step *step = plan_add(view->plan, PLAN_PREPARED, what);
        step->slot = *ret_slot;
        step->fd = grant->fd;
        return 0;
    }
    if (grant->access == BRIG_DEVICE || !view_is_mapped(view, &entry->info)) {
        *ret_slot = open_tree_of(view, grant, &entry->info);
        return 0;
    }
    int result =
        view_mapped_tree(view, grant->source, &entry->info, attributes, what, ret_slot, err);
    return result < 0 ? brig_wrap(err, result, "grant '%s' [%s]", grant->source, grant->origin) : 0;
}

static int lay_tree(struct view *view, const struct view_entry *entry, struct brig_error *err)
{
    const struct policy_grant *grant = entry->grant;
    struct plan *plan = view->plan;
    bool directory = S_ISDIR(entry->info.st_mode), ours;
    bool read_only = grant->access == BRIG_READ_ONLY, device = grant->access == BRIG_DEVICE;
    hold_parents(view, entry->dest);
    int result = view_mountpoint(view, entry->dest, directory, &ours, err);
    if (result < 0)
        return brig_wrap(err, result, "grant '%s' [%s]", entry->grant->source, grant->origin);
    const char *what = arena_concat(&plan->arena, "mount '", entry->grant->source, "' on '",
                                    entry->dest, "' [", grant->origin, "]");
    int slot;
    if ((result = find_tree(view, entry, what, &slot, err)) < 0)
        return result;
    (void)view_attach(view, slot, entry->dest, ours, what);
    const struct view_place *below = view_place_of(view, entry->dest);
    if (grant->own && below->host) {
        const char *host =
            arena_concat(&plan->arena, below->host, entry->dest + strlen(below->dest));
        if (host)
            watch_cover(view, PLAN_COVER_PRIVATE, below, host, entry->dest);
    }
    view_landlock(view, slot, entry->dest,
                  device      ? LANDLOCK_GRANT_DEVICE
                  : read_only ? LANDLOCK_GRANT_READ
                              : LANDLOCK_GRANT_WRITE,
                  directory);
    view_add_place(view, (struct view_place){.dest = entry->dest,
                                             .host = grant->fd < 0 ? entry->grant->source : NULL,
                                             .writable = !read_only && !device && directory,
                                             .jails = grant->fd >= 0,
                                             .slot = slot,
                                             .prefix = ""});
    return 0;
}

/* A mask of a missing path hides nothing now, and is usually a typing error. If the path is also
 * hidden in a second grant, only the entry with the rule's own path reports it. */
static bool is_mistyped(const struct view_entry *entry)
{
    return entry->grant && !(entry->grant->flags & BRIG_GRANT_OPTIONAL) &&
           strcmp(entry->dest, entry->grant->dest) == 0;
}

static int lay_mask(struct view *view, const struct view_entry *entry, struct brig_error *err);

/* Hides the target of a masked symlink as well, if it is in the same tree. */
static int mask_link_target(struct view *view, const struct view_place *place,
                            const char *host_path, const struct view_entry *entry,
                            struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1], tree[PATH_LENGTH_MAX + 1];
    if (!path_resolve(host_path, target) || !path_resolve(*place->host ? place->host : "/", tree))
        return 0;
    const char *rest = strcmp(tree, "/") == 0 ? target : view_below(tree, target);
    if (!rest || strcmp(target, host_path) == 0)
        return 0;
    struct view_entry other = *entry;
    other.dest =
        arena_concat(&view->plan->arena, strcmp(place->dest, "/") == 0 ? "" : place->dest, rest);
    return other.dest ? lay_mask(view, &other, err) : brig_fail_nomem(err);
}

static int lay_mask(struct view *view, const struct view_entry *entry, struct brig_error *err)
{
    struct plan *plan = view->plan;
    const struct view_place *place = view_place_of(view, entry->dest);
    if (!place->host && place->slot == view->scratch)
        return 0; /* private and empty: nothing to hide */
    const char *rest =
        strcmp(place->dest, "/") == 0 ? entry->dest : entry->dest + strlen(place->dest);
    char *host_path = place->host ? arena_concat(&plan->arena, place->host, rest)
                                  : arena_strdup(&plan->arena, entry->dest);
    if (!host_path)
        return brig_fail_nomem(err);
    struct stat info;
    bool exists = lstat(host_path, &info) == 0, of_host = place->host != NULL;
    if (of_host && entry->grant)
        watch_cover(view, PLAN_COVER_MASK, place, host_path, entry->dest);
    if (exists && S_ISLNK(info.st_mode) && of_host) {
        int result = mask_link_target(view, place, host_path, entry, err);
        if (result < 0)
            return result;
        if (!place->writable) /* the link cannot be replaced, so hiding its target suffices */
            return 0;
    }
    hold_parents(view, entry->dest);
    const struct policy_grant *grant = entry->grant;
    if (!exists && of_host && grant && is_mistyped(entry))
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "cannot hide '%s', which does not exist [%s]. Check the name, or use "
                         "BRIG_GRANT_OPTIONAL to hide it as soon as it does",
                         entry->dest, grant->origin);
    if (!exists)
        return 0;
    bool directory = S_ISDIR(info.st_mode);
    const char *what = arena_concat(&plan->arena, "hide '", entry->dest, "' [",
                                    entry->grant ? entry->grant->origin : "built in", "]");
    if (directory)
        view_mkdirs(view, view->scratch, VIEW_EMPTY_DIR, 0555);
    int slot = view_read_only_subtree(view, view->scratch,
                                      directory ? VIEW_EMPTY_DIR : VIEW_EMPTY_FILE, what);
    struct plan_step *step = view_attach(view, slot, entry->dest, false, what);
    step->if_reachable = true;
    step->soft = !of_host; /* a root built by brig may lack this name */
    if (directory)
        view_add_place(view, (struct view_place){.dest = entry->dest,
                                                 .slot = view->scratch,
                                                 .prefix = VIEW_EMPTY_DIR "/"});
    return 0;
}

/* Makes a part of a writable grant read-only. Does nothing if another mount covers the path, or if
 * it is not writable. */
static int lay_protect(struct view *view, const struct view_entry *entry, struct brig_error *err)
{
    const struct policy_grant *grant = entry->grant;
    const struct view_place *place = view_place_of(view, entry->dest);
    if (!place->host || !place->writable || strcmp(place->dest, entry->dest) == 0)
        return 0;
    const char *rest = entry->dest + strlen(place->dest);
    char *host_path = arena_concat(&view->plan->arena, place->host, rest);
    if (!host_path)
        return brig_fail_nomem(err);
    struct stat info;
    if (strcmp(host_path, grant->source) != 0)
        return 0;
    if (lstat(host_path, &info) < 0) {
        if (grant->flags & BRIG_GRANT_OPTIONAL)
            return 0;
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot protect '%s' [%s]", host_path,
                         grant->origin);
    }
    hold_between(view, place, entry->dest);
    pin(view, entry->dest, PLAN_COVER_PROTECT);
    return 0;
}

static int lay(struct view *view, const struct view_entry *entry, struct brig_error *err)
{
    switch (entry->kind) {
    case ENTRY_PRIVATE:
        return lay_private(view, entry, err);
    case ENTRY_TREE:
        return lay_tree(view, entry, err);
    case ENTRY_MASK:
        return lay_mask(view, entry, err);
    case ENTRY_PROTECT:
        return lay_protect(view, entry, err);
    }
    return 0;
}

int view_add_entries(struct view *view, struct brig_error *err)
{
    struct view_entries entries = {0};
    add_private(view, &entries);
    view_add_privates(view, &entries);
    if (view->policy->view == BRIG_VIEW_HOST)
        view_add_hidden(view, &entries);
    for (size_t i = 0; i < view->policy->grant_count; i++) {
        int result = add_grant(view, &entries, &view->policy->grants[i], err);
        if (result < 0)
            return result;
    }
    if (view->plan->arena.failed)
        return brig_fail_nomem(err);
    struct view_entry *items = entries.items;
    qsort(items, entries.count, sizeof *items, compare_entries);
    for (size_t i = 0; i < entries.count; i++) {
        if (i + 1 < entries.count && strcmp(items[i].dest, items[i + 1].dest) == 0)
            continue; /* of two rules for one path, the later one */
        int result = lay(view, &items[i], err);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- sources of grants ---- */

/* mkdir -p for `create` grants, as the jail's user. */
static int create_source(struct view *view, const char *path, struct brig_error *err)
{
    const struct jail_identity *identity = view->identity;
    bool for_user = identity->become && !identity->synthetic;
    if (for_user) { /* affects only this thread and only filesystem access */
        (void)SYS(setfsgid, identity->host_gid);
        (void)SYS(setfsuid, identity->host_uid);
    }
    int result = path_make_directories(path, strlen(path), 0777, err);
    if (for_user) {
        (void)SYS(setfsuid, 0);
        (void)SYS(setfsgid, 0);
    }
    return result;
}

/* Returns the outermost other writable grant above the path, through which an earlier run could
 * have planted a symlink. */
static const struct policy_grant *writable_above(const struct view *view,
                                                 const struct policy_grant *grant)
{
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < view->policy->grant_count; i++) {
        const struct policy_grant *other = &view->policy->grants[i];
        if (other->access == BRIG_READ_WRITE && view_below(other->source, grant->source) &&
            (!best || strlen(other->source) < strlen(best->source)))
            best = other;
    }
    return best;
}

/* Opens a path below a directory without following symlinks; -1 with errno, ELOOP if there is
 * one. */
static int open_without_links(int directory, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    long result = SYS(openat2, directory, path, &how, sizeof how);
    if (result == -ENOSYS) /* the child follows none either, and compares the identity */
        result = SYS(openat, directory, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
    struct stat info;
    if (result >= 0 && fstat((int)result, &info) == 0 && S_ISLNK(info.st_mode)) {
        (void)close((int)result);
        result = -ELOOP;
    }
    if (result < 0)
        errno = (int)-result;
    return result < 0 ? -1 : (int)result;
}

/* Looks up the source of a grant. Returns 0 and its identity, an errno, or a negative code with err
 * set. Below a directory that is granted for writing no symlink is followed: a jail could have
 * created it to get another path granted to the next run. */
static int find_source(const struct view *view, const struct policy_grant *grant,
                       struct stat *ret_info, struct brig_error *err)
{
    const struct policy_grant *above = writable_above(view, grant);
    autoclose int base = open(above ? above->source : grant->source, O_PATH | O_CLOEXEC);
    if (base < 0)
        return errno;
    autoclose int fd = -1;
    if (above) {
        fd = open_without_links(base, view_below(above->source, grant->source) + 1);
        if (fd < 0 && (errno == ELOOP || errno == EXDEV))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' leads through a symbolic link below '%s', which is writable in "
                             "the jail. Write the path without the link [%s]",
                             grant->source, above->source, grant->origin);
        if (fd < 0)
            return errno;
    }
    struct statfs system;
    if (fstatfs(above ? fd : base, &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is in the host's /proc, which is never granted [%s]", grant->source,
                         grant->origin);
    return fstat(above ? fd : base, ret_info) < 0 ? errno : 0;
}

int view_find_source(struct view *view, const struct policy_grant *grant, struct stat *ret_info,
                     struct brig_error *err)
{
    if (grant->fd >= 0) /* a mount made by the caller */
        return fstat(grant->fd, ret_info) == 0
                   ? 1
                   : brig_fail(err, BRIG_E_SETUP, errno, "cannot mount '%s' [%s]", grant->source,
                               grant->origin);
    if (grant->review) /* never the directory itself */
        return brig_fail(err, BRIG_E_SETUP, 0, "'%s' has no copy-on-write mount [%s]",
                         grant->source, grant->origin);
    int found = find_source(view, grant, ret_info, err);
    if (found == ENOENT && (grant->flags & BRIG_GRANT_CREATE) && view->policy->facts) {
        *ret_info = (struct stat){.st_mode = S_IFDIR | 0755, .st_uid = view->identity->host_uid};
        return 1; /* as it will be created */
    }
    if (found == ENOENT && (grant->flags & BRIG_GRANT_CREATE)) {
        int result = create_source(view, grant->source, err);
        if (result < 0)
            return result;
        found = find_source(view, grant, ret_info, err);
    }
    if (found < 0)
        return found;
    if (found == 0 && grant->checked &&
        (ret_info->st_dev != grant->dev || ret_info->st_ino != grant->ino))
        return brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' changed while it was being granted [%s]",
                         grant->source, grant->origin);
    if (found == 0)
        return 1;
    if ((grant->flags & BRIG_GRANT_OPTIONAL) && (found == ENOENT || found == ENOTDIR))
        return 0;
    (void)brig_fail(err, BRIG_E_SETUP, found, "cannot grant '%s' [%s]", grant->source,
                    grant->origin);
    if (found == ENOENT)
        (void)brig_advise(err, BRIG_E_SETUP,
                          grant->access == BRIG_READ_WRITE
                              ? "Create it, or use BRIG_GRANT_CREATE to create a directory, or "
                                "BRIG_GRANT_OPTIONAL to skip it"
                          : grant->access == BRIG_READ_ONLY
                              ? "Create it, or use BRIG_GRANT_OPTIONAL to skip it"
                              : "Use BRIG_GRANT_OPTIONAL with BRIG_DEVICE to skip it");
    return BRIG_E_SETUP;
}
