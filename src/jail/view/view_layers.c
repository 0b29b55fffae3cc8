/* SPDX-License-Identifier: MIT */
/* A root of layers: an overlay of the policy's directories with its changes in memory.
 *
 * The kernel takes the parts of an overlay from mounts of the caller's namespace only (before
 * 6.15). So the scratch tmpfs is attached first, as a root that no process ever enters; the layers
 * are attached in it, and the overlay is made from them by short names. The overlay then becomes
 * the root, on top. The tmpfs and the layers are detached with the host's tree. */
#include <errno.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/str.h"
#include "jail/view/view_build.h"
#include "policy/layers.h"

#define UPPER VIEW_SCRATCH_IMAGE "/upper"
#define WORK VIEW_SCRATCH_IMAGE "/work"
#define MERGED VIEW_SCRATCH_IMAGE "/root"

/* Plans the clone of a layer. */
static int open_layer(struct view *view, const char *path, const char *what, int *ret_slot,
                      struct brig_error *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot use '%s' as a layer of the jail's root",
                         path);
    if (!S_ISDIR(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, ENOTDIR,
                         "cannot use '%s' as a layer of the jail's root", path);
    if (view_is_mapped(view, &info))
        return view_mapped_tree(view, path, &info,
                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, what,
                                ret_slot, err);
    *ret_slot = plan_new_slot(view->plan);
    struct plan_step *step = plan_add(view->plan, PLAN_TREE, what);
    step->slot = *ret_slot;
    step->path = path;
    step->flags = PLAN_ATTR_RDONLY | PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_RECURSIVE;
    step->check_identity = true;
    step->dev = info.st_dev;
    step->ino = info.st_ino;
    return 0;
}

static int attach_layer(struct view *view, size_t number, struct brig_error *err)
{
    struct plan *plan = view->plan;
    const char *path = view->policy->layers[number];
    const char *what = arena_concat(&plan->arena, "mount the layer '", path, "'");
    const char *place = arena_printf(&plan->arena, "/" VIEW_SCRATCH_IMAGE "/%zu", number);
    if (!what || !place)
        return brig_fail_nomem(err);
    int slot;
    int result = open_layer(view, path, what, &slot, err);
    if (result < 0)
        return result;
    view_mkdirs(view, view->scratch, place + 1, 0700);
    struct plan_step *step = plan_add(plan, PLAN_ATTACH, what);
    step->slot = slot;
    step->from = view->scratch;
    step->path = place;
    step->mode = true; /* every directory of the path is brig's */
    return 0;
}

/* The options of the overlay, as for mount(2). At most ROOT_LAYERS_MAX short names: far less than
 * the page that the kernel reads. */
static const char *overlay_options(struct view *view)
{
    struct str text = {0};
    for (size_t i = 0; i < view->policy->layer_count; i++)
        str_appendf(&text, "%s" VIEW_SCRATCH_IMAGE "/%zu", i == 0 ? "lowerdir=" : ":", i);
    str_append(&text, ",upperdir=" UPPER ",workdir=" WORK ",userxattr,index=off");
    const char *options = text.failed ? NULL : arena_strdup(&view->plan->arena, text.data);
    str_done(&text);
    return options;
}

int view_add_layers(struct view *view, struct brig_error *err)
{
    struct plan *plan = view->plan;
    struct plan_step *step = plan_add(plan, PLAN_ROOT, "attach the memory of the jail's root");
    step->slot = view->scratch;
    view_mkdirs(view, view->scratch, UPPER, 0755);
    view_mkdirs(view, view->scratch, WORK, 0700);
    view_mkdirs(view, view->scratch, MERGED, 0755);
    for (size_t i = 0; i < view->policy->layer_count; i++) {
        int result = attach_layer(view, i, err);
        if (result < 0)
            return result;
    }
    const char *options = overlay_options(view);
    if (!options)
        return brig_fail_nomem(err);
    step = plan_add(plan, PLAN_OVERLAY, "mount the layers as the jail's root (overlayfs)");
    step->slot = view->root;
    step->from = view->scratch;
    step->path = MERGED;
    step->data = options;
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV;
    step->hint =
        "The kernel must be able to mount overlayfs in a user namespace; run `brig doctor`";
    view_add_place(
        view, (struct view_place){
                  .dest = "/", .slot = view->root, .prefix = "", .jails = true, .writable = true});
    return 0;
}
