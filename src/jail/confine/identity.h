/* SPDX-License-Identifier: MIT */
/* The jail's ids on the host and inside, and the handling of supplementary groups. */
#pragma once

#include "base/arena.h"
#include "jail/job/result.h"
#include "policy/policy.h"

/* The ids inside a jail whose host id was chosen by root. */
#define IDENTITY_INSIDE_UID POLICY_INSIDE_UID

struct jail_identity {
    bool become;    /* the caller is root and takes host_uid first */
    bool synthetic; /* the host has no such user: brig supplies passwd and group */
    uid_t host_uid, inside_uid;
    gid_t host_gid, inside_gid;
    const char *name, *home, *shell;
    bool groups_stay;      /* supplementary groups that cannot be dropped remain */
    bool map_groups;       /* newgidmap with this subordinate gid allows dropping them */
    gid_t subordinate_gid; /* from /etc/subgid */
    gid_t groups[64];      /* the remaining groups; files only they can access are hidden */
    size_t group_count;
};

/* Returns whether the caller is root of the machine (or of a container without a user namespace).
 * Uid 0 in a user namespace is an ordinary user outside, and has no other id to take. */
bool identity_is_root(void);

/* Finds the first id of a range that /etc/subuid or /etc/subgid gives a user, by number or by name
 * (which may be NULL). */
bool identity_subordinate_id(const char *path, uid_t uid, const char *name, unsigned *ret_id);

/* The strings live in the arena or in the policy. */
int identity_choose(const struct brig_policy *policy, struct arena *arena,
                    struct brig_unenforced *unenforced, struct jail_identity *ret_identity,
                    struct brig_error *err);
