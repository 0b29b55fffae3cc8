/* SPDX-License-Identifier: MIT */
/* Who the jail is on the host and inside, and what becomes of supplementary groups. */
#pragma once

#include "base/arena.h"
#include "policy/policy.h"

/* What a jail with an id that root gave it sees itself as. */
#define IDENTITY_INSIDE_UID POLICY_INSIDE_UID

struct jail_identity {
    bool become;    /* the caller is root and takes host_uid before anything else */
    bool synthetic; /* the host knows no such user: passwd and group must be ours */
    uid_t host_uid, inside_uid;
    gid_t host_gid, inside_gid;
    const char *name, *home, *shell;
    bool groups_stay;      /* supplementary groups that cannot be dropped */
    bool map_groups;       /* newgidmap with this subordinate gid lets us drop them */
    gid_t subordinate_gid; /* from /etc/subgid */
    gid_t groups[64];      /* those that stay, for hiding what only they can reach */
    size_t group_count;
};

/* Root of the machine (or of a container without a user namespace), as opposed to uid 0 in a user
 * namespace, which is some ordinary user outside and has no other id to take. */
bool identity_is_root(void);

/* The first id of a range that /etc/subuid or /etc/subgid gives a user, by number or by name (which may
 * be NULL). */
bool identity_subordinate_id(const char *path, uid_t uid, const char *name, unsigned *ret_id);

/* Strings live in the arena or in the policy. */
int identity_choose(const struct brig_policy *policy, struct arena *arena,
                    struct brig_unenforced *unenforced, struct jail_identity *ret_identity,
                    struct brig_error *err);
