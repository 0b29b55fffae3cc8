/* SPDX-License-Identifier: MIT */
/* The effects of a plan's build steps: an interpreter that keeps a mount table in memory instead of
 * making mounts. The result does not depend on the order or number of the steps, so plans that
 * build the same jail in different ways have the same effects. Pure: it makes no system calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct brig_error;
struct plan;

enum effects_kind {
    EFFECTS_NOTHING,
    EFFECTS_TMPFS,
    EFFECTS_PROC,
    EFFECTS_DEVPTS,
    EFFECTS_MQUEUE,
    EFFECTS_LAYERS, /* an overlay of host trees, written to in memory */
    EFFECTS_HOST,   /* a host tree */
    EFFECTS_MAPPED, /* a host tree with its owner mapped to the jail's */
    EFFECTS_GIVEN,  /* a mount made by another process for the run */
};

/* A mount, or a part of one that was cloned. */
struct effects_tree {
    enum effects_kind kind;
    int mount;           /* number of the mount; a clone gets a new number */
    int filesystem;      /* mounts with the same number show the same filesystem */
    const char *options; /* of a new filesystem, as in its step */
    const char *path;    /* in the filesystem: "" or without leading slash; of the host: absolute */
    unsigned flags;      /* enum plan_attr */
    bool alone;          /* without the host mounts below it */
};

struct effects_mount {
    const char *path; /* in the jail */
    struct effects_tree tree;
    bool optional; /* a failure to mount is reported, but does not end the start */
};

enum effects_object_kind { EFFECTS_DIRECTORY, EFFECTS_FILE, EFFECTS_LINK };

/* A file, directory or link that is created in a filesystem of the jail. */
struct effects_object {
    enum effects_object_kind kind;
    int filesystem;
    const char *path; /* in the filesystem */
    unsigned mode;
    const char *data; /* content of a file, or target of a link */
    size_t length;
};

/* An existing file that is written to: a kernel setting. */
struct effects_write {
    const char *path;
    const char *data;
    size_t length;
    bool optional;
};

struct effects {
    struct arena arena;
    struct arena texts;           /* a copy of the plan's strings, see job_foresee_effects() */
    struct effects_mount *mounts; /* visible at the end, sorted by path */
    size_t mount_count;
    struct effects_object *objects; /* sorted by filesystem and path */
    size_t object_count;
    struct effects_write *writes; /* in the order of the steps */
    size_t write_count;
    const char **places; /* mount points that are created in the jail's home if missing */
    size_t place_count;
    const char *hostname;
    size_t hostname_length;
    const char *listens; /* path of the socket for tools, or NULL */
    bool drops_groups;   /* setgroups() with an empty list */
    bool terminal;       /* a pty inside the jail is opened */
    bool is_private;     /* mounts do not propagate to the host */
    bool keeps_host;     /* the host tree stays mounted below the jail's root */
};

/* Release with effects_done(). Fails only when memory runs out. */
int effects_of(const struct plan *plan, struct effects *ret_effects, struct brig_error *err);
void effects_done(struct effects *effects);

/* Returns the mount that a path in the jail is on, or NULL. */
const struct effects_mount *effects_mount_of(const struct effects *effects, const char *path);
bool effects_is_read_only(const struct effects_mount *mount);
/* Returns the object created at a path of a filesystem, or NULL. */
const struct effects_object *effects_object_at(const struct effects *effects, int filesystem,
                                               const char *path);
