/* SPDX-License-Identifier: MIT */
/* Shared by the files that plan a view: places and small step builders. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "jail/view/view.h"

/* A directory of the jail and its source. The place with the longest `dest` that is a prefix of a
 * path governs the path: it says whether a mount point can be created there or must exist on the
 * host. */
struct view_place {
    const char *dest;   /* inside the jail */
    const char *host;   /* its host tree; NULL: made by brig, in a slot */
    bool writable;      /* a tree that the command can change */
    bool jails;         /* belongs to the jail and may have been changed by its earlier runs */
    int slot;           /* the filesystem, if made by brig or writable */
    const char *prefix; /* made by brig: path of dest in the slot, "" or ending in '/' */
};

struct view {
    struct plan *plan;
    const struct brig_policy *policy;
    const struct jail_identity *identity;
    int abi;      /* of Landlock */
    int root;     /* slot of the jail's root */
    int scratch;  /* slot of the private tmpfs */
    int dev;      /* slot of /dev, if it is a separate filesystem */
    bool frame;   /* the root is a tmpfs made by brig */
    bool layered; /* the root is an overlay of the policy's layers */
    struct view_place *places;
    size_t place_count, place_room;
};

void view_add_place(struct view *view, struct view_place place);
const struct view_place *view_place_of(const struct view *view, const char *dest);

/* Creates path and all directories above it in a slot. */
void view_mkdirs(struct view *view, int slot, const char *path, unsigned mode);
void view_mkfile(struct view *view, int slot, const char *path, unsigned mode, const void *data,
                 size_t length);
void view_symlink(struct view *view, int slot, const char *path, const char *target);

/* Plans the mount point for dest; *ret_ours says whether it is in a filesystem made by brig. */
int view_mountpoint(struct view *view, const char *dest, bool directory, bool *ret_ours,
                    struct brig_error *err);
/* Attaches slot at dest; `ours` is from view_mountpoint(). */
struct plan_step *view_attach(struct view *view, int slot, const char *dest, bool ours,
                              const char *what);
/* Clones a part of an attached slot. */
int view_subtree(struct view *view, int from, const char *path, const char *what);
/* The same, read-only. */
int view_read_only_subtree(struct view *view, int from, const char *path, const char *what);
/* Adds a Landlock rule for the mount at dest. */
void view_landlock(struct view *view, int slot, const char *dest, enum landlock_grant grant,
                   bool directory);

/* Names in the scratch tmpfs. */
#define VIEW_SCRATCH_TMP "tmp"
#define VIEW_SCRATCH_RUN "run"
#define VIEW_SCRATCH_SHM VIEW_SCRATCH_RUN "/shm" /* /dev/shm, or the target of its link */
#define VIEW_SCRATCH_HOME "home"
#define VIEW_SCRATCH_OWN "own"
#define VIEW_SCRATCH_IMAGE "image" /* the upper directory of an image, see view_layers.c */
#define VIEW_EMPTY_DIR "empty"
#define VIEW_EMPTY_FILE "nothing"

/* view_system.c */
int view_add_system(struct view *view, struct brig_error *err); /* /usr …, /etc, part of /sys */
/* Binds a host path read-only at the same path in the jail. */
void view_bind_read_only(struct view *view, const char *path, const struct stat *info);
/* Copies a small file into the jail's root; false if it is larger or cannot be read. */
bool view_copy_file(struct view *view, const char *path);
#define VIEW_LINK_BYTES 4096
bool view_read_link(const char *path, char target[VIEW_LINK_BYTES]);
/* Creates a copy of a host symlink in the jail. */
void view_repeat_link(struct view *view, const char *path, const char *target);
void view_add_identity_files(struct view *view); /* passwd and group over the host's */
void view_add_dev(struct view *view);
void view_add_proc(struct view *view);

void view_add_door(struct view *view); /* files that point to its name server */

/* Host system directories, mounted read-only unless a rule covers them. */
extern const char *const view_system_dirs[];
extern const size_t view_system_dir_count;

/* The only part of /sys that is shown: runtimes size their thread pools by it, lscpu prints it. */
#define VIEW_SYS_CPU "/sys/devices/system/cpu"

/* view_etc.c */
void view_add_etc(struct view *view);
void view_add_etc_rules(struct view *view); /* without mounts: Landlock rules on the host's files */
/* Adds a Landlock rule for a host path, if it exists. */
void view_path_rule(struct view *view, const char *path, enum landlock_grant grant);

/* view_layers.c: makes the overlay in the root's slot. The scratch tmpfs becomes the root first. */
int view_add_layers(struct view *view, struct brig_error *err);

/* view_grants.c */
/* Returns whether a host tree is id-mapped, so that a jail with a separate id owns it. A tree that
 * belongs to other users than the one root acts for is as accessible to the jail as to any other
 * user. */
bool view_is_mapped(const struct view *view, const struct stat *info);
/* Clones and id-maps a host tree, with the attributes (MOUNT_ATTR_…). */
int view_mapped_tree(struct view *view, const char *path, const struct stat *info,
                     uint64_t attributes, const char *what, int *ret_slot, struct brig_error *err);
int view_add_entries(struct view *view, struct brig_error *err);

/* ---- view entries ---- */

/* A grant, mask or private directory to mount over the root. */
enum view_entry_kind {
    ENTRY_PRIVATE, /* a part of the scratch filesystem */
    ENTRY_TREE,    /* a host file or directory */
    ENTRY_MASK,
    ENTRY_PROTECT,
};

struct view_entry {
    enum view_entry_kind kind;
    const char *dest;
    const char *part; /* for ENTRY_PRIVATE, like the next two: */
    bool read_only, kept;
    const struct policy_grant *grant;
    struct stat info; /* for ENTRY_TREE */
    size_t order;
};

struct view_entries {
    struct view_entry *items;
    size_t count, room;
};

/* Returns a new entry in the arena; NULL when memory runs out. */
struct view_entry *view_add_entry(struct view *view, struct view_entries *entries,
                                  enum view_entry_kind kind, const char *dest);

/* Adds the policy's private directories. */
void view_add_privates(struct view *view, struct view_entries *entries);

/* Adds paths that a view of the host hides in addition to the policy's masks. */
void view_add_hidden(struct view *view, struct view_entries *entries);

/* Looks up the source of a grant, and creates it if the grant says so. Returns 1 and its identity,
 * 0 if it is optional and missing, or an error. */
int view_find_source(struct view *view, const struct policy_grant *grant, struct stat *ret_info,
                     struct brig_error *err);
