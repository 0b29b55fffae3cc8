/* SPDX-License-Identifier: MIT */
/* What the build steps of a plan come to: an interpreter that keeps a mount table in place of making
 * mounts. It says nothing about how the steps got there, so plans that build the same jail in
 * different ways have the same effects. Pure: nothing is looked up and nothing is made. */
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
    EFFECTS_HOST,   /* a tree of the host */
    EFFECTS_MAPPED, /* the same, with its owner mapped to the jail's */
    EFFECTS_GIVEN,  /* a mount that somebody else made for the run */
};

/* A mount, or a part of one that was cloned. */
struct effects_tree {
    enum effects_kind kind;
    int mount;           /* its number: a clone is another mount */
    int filesystem;      /* of the same number: the same filesystem */
    const char *options; /* of a new filesystem, as in the step */
    const char *path;    /* in it: "" or without a slash in front; of the host: absolute */
    unsigned flags;      /* enum plan_attr */
    bool alone;          /* without what is mounted below it on the host */
};

struct effects_mount {
    const char *path; /* in the jail */
    struct effects_tree tree;
    bool optional; /* that it cannot be mounted is reported, and no failure */
};

enum effects_object_kind { EFFECTS_DIRECTORY, EFFECTS_FILE, EFFECTS_LINK };

/* Something that is made in a filesystem of the jail's own. */
struct effects_object {
    enum effects_object_kind kind;
    int filesystem;
    const char *path; /* in it */
    unsigned mode;
    const char *data; /* of a file, or what a link points to */
    size_t length;
};

/* A file that exists and is written to: the kernel's settings. */
struct effects_write {
    const char *path;
    const char *data;
    size_t length;
    bool optional;
};

struct effects {
    struct arena arena;
    struct arena texts;           /* of the plan, if it is gone; see job_foresee_effects() */
    struct effects_mount *mounts; /* those that can be seen at the end, sorted by path */
    size_t mount_count;
    struct effects_object *objects; /* sorted by filesystem and path */
    size_t object_count;
    struct effects_write *writes; /* in their order */
    size_t write_count;
    const char **places; /* mount points that are made in the jail's home if they are missing */
    size_t place_count;
    const char *hostname;
    size_t hostname_length;
    const char *listens; /* where a socket for tools is made, or NULL */
    bool drops_groups;   /* setgroups() with none */
    bool terminal;       /* a terminal of the jail's own is opened */
    bool is_private;     /* mounts do not propagate to the host */
    bool keeps_host;     /* the host's own tree stays below the jail's root */
};

/* Release with effects_done(). Fails for lack of memory only. */
int effects_of(const struct plan *plan, struct effects *ret_effects, struct brig_error *err);
void effects_done(struct effects *effects);

/* The mount that a path of the jail is on, or NULL. */
const struct effects_mount *effects_mount_of(const struct effects *effects, const char *path);
/* Whether a mount is read-only. */
bool effects_is_read_only(const struct effects_mount *mount);
/* What was made at a path of a filesystem, or NULL. */
const struct effects_object *effects_object_at(const struct effects *effects, int filesystem,
                                               const char *path);
