/* SPDX-License-Identifier: MIT */
/* A plan as text: the jail's ids, its view, its permissions and limits. */
#include "jail/plan/plan_print.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "jail/plan/effects.h"
#include "jail/plan/facts.h"

/* ---- helpers ---- */

/* Appends text of any length on one line; bytes that are not printable ASCII are escaped. */
static void append_text(struct str *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            str_append(out, "\\n");
        else if (c == '\t')
            str_append(out, "\\t");
        else if (c == '\\')
            str_append(out, "\\\\");
        else if (c < ' ' || c > '~')
            str_appendf(out, "\\x%02x", c);
        else
            str_append_char(out, (char)c);
    }
}

static void append_line(struct str *out, const char *text)
{
    append_text(out, text, strlen(text));
    str_append_char(out, '\n');
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* ---- the command and its ids ---- */

static void print_command(struct str *out, const struct plan *plan)
{
    str_append(out, "command:\n");
    for (size_t i = 0; plan->programs[i]; i++) {
        str_appendf(out, "  program %zu ", i);
        append_line(out, plan->programs[i]);
    }
    for (size_t i = 0; plan->argv[i]; i++) {
        str_appendf(out, "  argument %zu ", i);
        append_line(out, plan->argv[i]);
    }
    str_append(out, "  directory ");
    append_line(out, plan->workdir);
}

/* "inside outside count" of a map file, as the plan or newgidmap writes it. */
static void print_maps(struct str *out, const struct plan *plan, const struct effects *effects)
{
    for (size_t i = 0; i < effects->write_count; i++) {
        const struct effects_write *write = &effects->writes[i];
        const char *name = strrchr(write->path, '/') + 1;
        if (!str_starts_with(write->path, "/proc/self/"))
            continue;
        str_appendf(out, "  %s ", name);
        append_text(out, write->data, write->length - (write->data[write->length - 1] == '\n'));
        str_append_char(out, '\n');
    }
    if (plan->parent_maps)
        str_appendf(out, "  gid_map by newgidmap: %u %u 1, and subordinate %u\n",
                    plan->map_inside_gid, plan->map_host_gid, plan->map_subordinate_gid);
}

static void print_identity(struct str *out, const struct plan *plan,
                           const struct jail_identity *identity, const struct effects *effects)
{
    str_appendf(out, "identity:\n  outside uid %u gid %u%s\n", plan->host_uid, plan->host_gid,
                plan->become ? ", taken by root" : "");
    str_appendf(out, "  inside uid %u gid %u name %s home %s shell %s\n", plan->inside_uid,
                plan->inside_gid, identity->name, identity->home, identity->shell);
    print_maps(out, plan, effects);
    str_append(out, "  supplementary groups ");
    if (identity->group_count == 0)
        str_append(out, "none");
    else if (plan->become || effects->drops_groups)
        str_append(out, "dropped");
    else
        str_append(out, "kept:");
    for (size_t i = 0; identity->groups_stay && i < identity->group_count; i++)
        str_appendf(out, " %u", identity->groups[i]);
    str_appendf(out, "\n  capabilities %s\n", plan->drop_caps ? "dropped" : "kept");
}

static void print_namespaces(struct str *out, const struct plan *plan,
                             const struct effects *effects)
{
    static const struct {
        unsigned long flag;
        const char *name;
    } names[] = {{CLONE_NEWCGROUP, "cgroup"}, {CLONE_NEWIPC, "ipc"}, {CLONE_NEWNS, "mount"},
                 {CLONE_NEWNET, "net"},       {CLONE_NEWPID, "pid"}, {CLONE_NEWUSER, "user"},
                 {CLONE_NEWUTS, "uts"}};
    str_append(out, "namespaces:\n  own");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (plan->clone_flags & names[i].flag)
            str_appendf(out, " %s", names[i].name);
    str_append(out, plan->clone_flags ? "\n" : " none\n");
    if (effects->hostname) {
        str_append(out, "  host name ");
        append_text(out, effects->hostname, effects->hostname_length);
        str_append_char(out, '\n');
    }
    if (plan->rung == PLAN_FULL && !effects->is_private)
        str_append(out, "  MOUNTS PROPAGATE TO THE HOST\n");
    if (plan->rung == PLAN_FULL && effects->keeps_host)
        str_append(out, "  THE HOST'S TREE STAYS REACHABLE\n");
    for (size_t i = 0; i < effects->write_count; i++) {
        const struct effects_write *write = &effects->writes[i];
        if (!str_starts_with(write->path, "/proc/sys/"))
            continue;
        str_appendf(out, "  %s = ", write->path + strlen("/proc/sys/"));
        append_text(out, write->data, write->length);
        str_append(out, write->optional ? ", if it can be set\n" : "\n");
    }
}

/* ---- the view ---- */

static void append_options(struct str *out, const char *options)
{
    for (const char *at = options; at && *at; at += strlen(at) + 1)
        str_appendf(out, " %s", at);
}

static bool is_empty_part(const struct effects *effects, const struct effects_tree *tree)
{
    for (size_t i = 0; i < effects->object_count; i++) {
        const struct effects_object *object = &effects->objects[i];
        if (object->filesystem == tree->filesystem && strcmp(object->path, tree->path) != 0 &&
            (!*tree->path || path_is_beneath(tree->path, object->path)))
            return false;
    }
    return true;
}

/* Returns the first path, sorted by name, at which the same part is visible. */
static const char *first_path(const struct effects *effects, const struct effects_mount *mount)
{
    for (size_t i = 0; i < effects->mount_count; i++) {
        const struct effects_tree *other = &effects->mounts[i].tree;
        if (other->filesystem == mount->tree.filesystem &&
            strcmp(other->path, mount->tree.path) == 0)
            return effects->mounts[i].path;
    }
    return mount->path;
}

/* Prints a part of a tmpfs with several uses: an empty read-only part is a mask. */
static void print_part(struct str *out, const struct effects *effects,
                       const struct effects_mount *mount)
{
    const struct effects_tree *tree = &mount->tree;
    const struct effects_object *object = effects_object_at(effects, tree->filesystem, tree->path);
    bool empty = is_empty_part(effects, tree) && (!object || object->length == 0);
    const char *kind = object && object->kind == EFFECTS_FILE ? "file" : "directory";
    if (empty && tree->flags & PLAN_ATTR_RDONLY) {
        str_appendf(out, "empty %s", kind);
        return;
    }
    str_appendf(out, "private %s", kind);
    const char *first = first_path(effects, mount);
    if (strcmp(first, mount->path) != 0)
        str_appendf(out, ", that of %s", first);
}

static void print_host(struct str *out, const struct effects_mount *mount)
{
    const struct effects_tree *tree = &mount->tree;
    const char *path = *tree->path ? tree->path : "/";
    str_append(out, "host");
    if (strcmp(path, mount->path) != 0) {
        str_append_char(out, ' ');
        append_text(out, path, strlen(path));
    }
    if (tree->kind == EFFECTS_MAPPED)
        str_append(out, ", its owner is the jail's user");
    if (access(path, F_OK) < 0)
        str_append(out, ", made for the run");
}

static void print_mount(struct str *out, const struct effects *effects,
                        const struct effects_mount *mount)
{
    const struct effects_tree *tree = &mount->tree;
    str_append(out, "  ");
    append_text(out, mount->path, strlen(mount->path));
    str_append(out, ": ");
    switch (tree->kind) {
    case EFFECTS_TMPFS:
        if (*tree->path)
            print_part(out, effects, mount);
        else
            str_append(out, "tmpfs");
        append_options(out, *tree->path ? NULL : tree->options);
        break;
    case EFFECTS_PROC:
        str_append(out, *tree->path ? "proc, a part of it" : "proc, new");
        break;
    case EFFECTS_DEVPTS:
        str_append(out, "devpts");
        append_options(out, tree->options);
        break;
    case EFFECTS_MQUEUE:
        str_append(out, "mqueue");
        break;
    case EFFECTS_LAYERS:
        str_append(out, "the image's layers, changed in memory");
        break;
    case EFFECTS_HOST:
    case EFFECTS_MAPPED:
        print_host(out, mount);
        break;
    case EFFECTS_GIVEN:
        str_append(out, "the jail's own");
        break;
    case EFFECTS_NOTHING:
        str_append(out, "NOTHING");
        break;
    }
    str_appendf(out, ", %s%s%s%s%s\n", tree->flags & PLAN_ATTR_RDONLY ? "ro" : "rw",
                tree->flags & PLAN_ATTR_NOSUID ? " nosuid" : "",
                tree->flags & PLAN_ATTR_NODEV ? " nodev" : "",
                tree->flags & PLAN_ATTR_NOEXEC ? " noexec" : "",
                mount->optional ? ", if it can be" : "");
}

/* Prints the limits that several private directories share. */
static void print_private_options(struct str *out, const struct effects *effects)
{
    for (size_t i = 0; i < effects->mount_count; i++) {
        const struct effects_tree *tree = &effects->mounts[i].tree;
        if (tree->kind != EFFECTS_TMPFS || !*tree->path)
            continue;
        str_append(out, "  private directories together: tmpfs");
        append_options(out, tree->options);
        str_append_char(out, '\n');
        return;
    }
}

static void print_mounts(struct str *out, const struct effects *effects)
{
    str_append(out, "mounts:\n");
    for (size_t i = 0; i < effects->mount_count; i++)
        print_mount(out, effects, &effects->mounts[i]);
    print_private_options(out, effects);
    for (size_t i = 0; i < effects->place_count; i++) {
        str_append(out, "  made in the jail's own if missing: ");
        append_line(out, effects->places[i]);
    }
}

/* Prints an object of a mount at its path in the jail; nothing if it is not visible. */
static void print_object(struct str *out, const struct effects *effects,
                         const struct effects_mount *mount, const struct effects_object *object)
{
    const char *below = object->path + strlen(mount->tree.path);
    below += *below == '/';
    bool root = strcmp(mount->path, "/") == 0;
    autostr struct str path = {0};
    str_appendf(&path, "%s%s%s", *below && root ? "" : mount->path, *below ? "/" : "", below);
    if (path.failed || effects_mount_of(effects, path.data) != mount)
        return;
    if (*below && mount->path[0] && strcmp(path.data, mount->path) == 0)
        return;
    str_append(out, "  ");
    append_text(out, path.data, path.length);
    switch (object->kind) {
    case EFFECTS_DIRECTORY:
        str_appendf(out, ": directory %04o\n", object->mode);
        break;
    case EFFECTS_LINK:
        str_appendf(out, ": link to %s\n", object->data);
        break;
    case EFFECTS_FILE:
        str_appendf(out, ": file %04o \"", object->mode);
        append_text(out, object->data, object->length);
        str_append(out, "\"\n");
        break;
    }
}

/* Prints the files made for the jail, by mount and sorted in each. */
static void print_files(struct str *out, const struct effects *effects)
{
    str_append(out, "files:\n");
    for (size_t i = 0; i < effects->mount_count; i++) {
        const struct effects_mount *mount = &effects->mounts[i];
        bool mask = mount->tree.flags & PLAN_ATTR_RDONLY && *mount->tree.path &&
                    is_empty_part(effects, &mount->tree);
        for (size_t k = 0; k < effects->object_count; k++) {
            const struct effects_object *object = &effects->objects[k];
            if (object->filesystem == mount->tree.filesystem && !(mask && object->length == 0) &&
                (!*mount->tree.path || path_is_beneath(mount->tree.path, object->path)))
                print_object(out, effects, mount, object);
        }
    }
}

/* ---- mounts that are restored when the host replaces the file ---- */

static void print_covers(struct str *out, const struct plan *plan)
{
    static const char *const names[] = {[PLAN_COVER_MASK] = "hidden",
                                        [PLAN_COVER_PROTECT] = "read-only",
                                        [PLAN_COVER_PIN] = "in place",
                                        [PLAN_COVER_PRIVATE] = "private"};
    autofree const char **lines = calloc(plan->mask_count + 1, sizeof *lines);
    struct arena arena = {0};
    size_t count = 0;
    for (size_t i = 0; lines && i < plan->mask_count; i++) {
        const struct plan_mask *mask = &plan->masks[i];
        bool moved = strcmp(mask->host_path, mask->path) != 0;
        lines[count++] = arena_concat(&arena, mask->path, " ", names[mask->cover],
                                      moved ? ", host " : "", moved ? mask->host_path : "");
    }
    if (!lines || arena.failed) {
        out->failed = true;
    } else {
        qsort(lines, count, sizeof *lines, compare_texts);
        str_append(out, "kept when the host replaces it:\n");
        for (size_t i = 0; i < count; i++)
            if (i == 0 || strcmp(lines[i - 1], lines[i]) != 0) {
                str_append(out, "  ");
                append_line(out, lines[i]);
            }
    }
    arena_done(&arena);
}

/* ---- environment and fds ---- */

static const char *find_variable(const char *const *envp, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (size_t i = 0; envp && envp[i]; i++)
        if (strncmp(envp[i], variable, length) == 0)
            return envp[i];
    return NULL;
}

static void print_environment(struct str *out, const struct plan *plan, const char *const *envp)
{
    size_t count = 0;
    while (plan->envp[count])
        count++;
    autofree const char **sorted = calloc(count + 1, sizeof *sorted);
    if (!sorted) {
        out->failed = true;
        return;
    }
    memcpy(sorted, plan->envp, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_texts);
    str_append(out, "environment:\n");
    for (size_t i = 0; i < count; i++) {
        const char *before = find_variable(envp, sorted[i]);
        bool same = before && strcmp(before, sorted[i]) == 0;
        str_append(out, "  ");
        append_text(out, sorted[i], same ? strcspn(sorted[i], "=") : strlen(sorted[i]));
        str_append(out, same ? ", the caller's\n" : "\n");
    }
}

static void print_descriptors(struct str *out, const struct plan *plan,
                              const struct effects *effects)
{
    str_append(out, "descriptors:\n");
    for (size_t i = 0; i < plan->fd_count; i++) {
        const struct plan_fd *fd = &plan->fds[i];
        const char *what = fd->fd == PLAN_FD_PTY    ? "the jail's terminal"
                           : fd->fd == PLAN_FD_NULL ? "/dev/null"
                           : fd->fd == fd->number   ? "the caller's"
                                                    : "a pipe to brig";
        str_appendf(out, "  %d %s\n", fd->number, what);
    }
    if (effects->terminal)
        str_append(out, "  a terminal of the jail's own, whose other end goes to brig\n");
    if (effects->listens)
        str_appendf(out, "  a socket at %s for tools to ask for limits, if it can be\n",
                    effects->listens);
}

static void print_unenforced(struct str *out, const struct plan *plan)
{
    const char *lines[BRIG_UNENFORCED_MAX] = {0};
    size_t count = plan->unenforced.count;
    for (size_t i = 0; i < count; i++)
        lines[i] = plan->unenforced.text[i];
    qsort(lines, count, sizeof *lines, compare_texts);
    str_append(out, "not enforced:\n");
    for (size_t i = 0; i < count; i++)
        str_appendf(out, "  %s\n", lines[i]);
}

int plan_print(const struct plan *plan, const struct brig_policy *policy,
               const struct jail_identity *identity, unsigned grouped, const char *const *envp,
               struct str *out, struct brig_error *err)
{
    static const char *const rungs[] = {[PLAN_FULL] = "full jail",
                                        [PLAN_LANDLOCK] = "without namespaces",
                                        [PLAN_LIMITS] = "without namespaces and Landlock"};
    __attribute__((cleanup(effects_done))) struct effects effects = {0};
    int result = effects_of(plan, &effects, err);
    if (result < 0)
        return result;
    str_appendf(out, "jail:\n  mode %s\n  %s\n", policy_word(POLICY_MODE, policy->mode),
                rungs[plan->rung]);
    print_command(out, plan);
    print_identity(out, plan, identity, &effects);
    print_namespaces(out, plan, &effects);
    print_mounts(out, &effects);
    print_files(out, &effects);
    print_covers(out, plan);
    plan_print_landlock(out, plan, policy->facts->landlock);
    plan_print_filter(out, plan, policy);
    plan_print_limits(out, plan, policy, grouped);
    print_environment(out, plan, envp);
    plan_print_network(out, plan, policy);
    print_descriptors(out, plan, &effects);
    print_unenforced(out, plan);
    return 0;
}
