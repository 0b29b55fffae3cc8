/* SPDX-License-Identifier: MIT */
/* What the files that plan a view share: places (who governs a path) and small step builders. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "jail/view/view.h"

/* A directory of the jail and what is behind it. The longest destination that is a path's prefix
 * governs the path: it says where a mount point can be made, or that it must exist on the host. */
struct view_place {
    const char *dest;   /* inside the jail */
    const char *host;   /* the host tree behind it; NULL: ours, in a slot */
    bool writable;      /* a tree the command can change */
    bool jails;         /* one of the jail's own, changed by earlier runs of it */
    int slot;           /* the filesystem, if it is ours or writable */
    const char *prefix; /* ours: path of dest in it, "" or ending in '/' */
};

struct view {
    struct plan *plan;
    const struct brig_policy *policy;
    const struct jail_identity *identity;
    int abi;     /* Landlock's */
    int root;    /* slot of the jail's root */
    int scratch; /* slot of the private tmpfs */
    int dev;     /* slot of /dev, where it is a filesystem of its own */
    bool frame;  /* the root is a tmpfs of ours */
    struct view_place *places;
    size_t place_count, place_room;
};

void view_add_place(struct view *view, struct view_place place);
const struct view_place *view_place_of(const struct view *view, const char *dest);

/* In a slot: all directories above path, then path itself as directory. */
void view_mkdirs(struct view *view, int slot, const char *path, unsigned mode);
void view_mkfile(struct view *view, int slot, const char *path, unsigned mode, const void *data,
                 size_t length);
void view_symlink(struct view *view, int slot, const char *path, const char *target);

/* Plans the mount point for dest; *ret_ours says whether it is in a filesystem of ours. */
int view_mountpoint(struct view *view, const char *dest, bool directory, bool *ret_ours,
                    struct brig_error *err);
/* Attaches slot at dest; `ours` as view_mountpoint said. */
struct plan_step *view_attach(struct view *view, int slot, const char *dest, bool ours,
                              const char *what);
/* A clone of a part of an attached slot. */
int view_subtree(struct view *view, int from, const char *path, const char *what);
/* The same, read-only. */
int view_read_only_subtree(struct view *view, int from, const char *path, const char *what);
/* A Landlock rule for what is attached at dest. */
void view_landlock(struct view *view, int slot, const char *dest, enum landlock_grant grant,
                   bool directory);

/* Names in the scratch filesystem. */
#define VIEW_SCRATCH_TMP "tmp"
#define VIEW_SCRATCH_RUN "run"
#define VIEW_SCRATCH_SHM VIEW_SCRATCH_RUN "/shm" /* where /dev/shm is, or points to */
#define VIEW_SCRATCH_HOME "home"
#define VIEW_SCRATCH_OWN "own"
#define VIEW_EMPTY_DIR "empty"
#define VIEW_EMPTY_FILE "nothing"

/* view_system.c */
int view_add_system(struct view *view, struct brig_error *err); /* /usr … and /etc */
void view_add_identity_files(struct view *view); /* passwd and group over the host's */
void view_add_dev(struct view *view);
void view_add_proc(struct view *view);

void view_add_door(struct view *view); /* how to find its name server */

/* Read-only where nothing else is: system directories of the host. */
extern const char *const view_system_dirs[];
extern const size_t view_system_dir_count;

/* view_grants.c */
int view_add_entries(struct view *view, struct brig_error *err);

/* ---- view entries ---- */

/* Grants, masks and private directories on their way into a view: what view_grants.c lays, and
 * what the files that find them share. */

/* Something to be laid over the root. */
enum view_entry_kind {
    ENTRY_PRIVATE, /* a part of the scratch filesystem */
    ENTRY_TREE,    /* a host file or directory */
    ENTRY_MASK,
    ENTRY_PROTECT,
};

struct view_entry {
    enum view_entry_kind kind;
    const char *dest;
    const char *part; /* ENTRY_PRIVATE, as are these two: */
    bool read_only, kept;
    const struct policy_grant *grant;
    struct stat info; /* ENTRY_TREE */
    size_t order;
};

struct view_entries {
    struct view_entry *items;
    size_t count, room;
};

/* A new entry, in the arena; NULL when memory is short. */
struct view_entry *view_add_entry(struct view *view, struct view_entries *entries,
                                  enum view_entry_kind kind, const char *dest);

/* The rest of a path below a directory, from its slash on, or NULL if it is not below it. */
const char *view_below(const char *directory, const char *path);

/* The policy's own directories. */
void view_add_privates(struct view *view, struct view_entries *entries);

/* What a view of the host must hide besides what the policy masks. */
void view_add_hidden(struct view *view, struct view_entries *entries);

/* What a grant is about, made if the grant says so. 1 and its identity, 0 if it is optional and missing,
 * or the failure in words. */
int view_find_source(struct view *view, const struct policy_grant *grant, struct stat *ret_info,
                     struct brig_error *err);
