/* SPDX-License-Identifier: MIT */
/* Grants, masks and private directories on their way into a view: what view_grants.c lays, and what
 * the files that find them share. */
#pragma once

#include <sys/stat.h>

#include "jail/view/view_parts.h"

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
    const char *source;
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

/* view_private.c: the policy's own directories. */
void view_add_privates(struct view *view, struct view_entries *entries);

/* view_hidden.c: what a view of the host must hide besides what the policy masks. */
void view_add_hidden(struct view *view, struct view_entries *entries);

/* view_source.c: what a grant is about, made if the grant says so. 1 and its identity, 0 if it is
 * optional and missing, or the failure in words. */
int view_find_source(struct view *view, const struct policy_grant *grant, struct stat *ret_info,
                     struct brig_error *err);
/* The same of a mount that the caller made. */
int view_find_mount(const struct policy_grant *grant, struct stat *ret_info,
                    struct brig_error *err);
