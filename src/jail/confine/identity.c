/* SPDX-License-Identifier: MIT */
/* The jail's ids on the host and inside, and the handling of supplementary groups. */
#include "jail/confine/identity.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/job/result.h"
#include "jail/plan/facts.h"

#define NEWGIDMAP "/usr/bin/newgidmap"

bool identity_is_root(void)
{
    if (geteuid() != 0)
        return false;
    autofile FILE *file = fopen("/proc/self/uid_map", "re");
    char line[64];
    if (!file || !fgets(line, sizeof line, file))
        return true;
    char *rest = line; /* inside, outside, count */
    unsigned long inside = strtoul(rest, &rest, 10);
    (void)strtoul(rest, &rest, 10);
    unsigned long count = strtoul(rest, &rest, 10);
    return inside == 0 && (count == UINT32_MAX || count > policy_isolated_uid(0));
}

bool identity_subordinate_id(const char *path, uid_t uid, const char *name, unsigned *ret_id)
{
    autofile FILE *file = fopen(path, "re");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        char *start = strchr(line, ':');
        if (!start)
            continue;
        *start++ = 0;
        char *end = NULL;
        unsigned long as_number = strtoul(line, &end, 10);
        bool by_number = *line && !*end && as_number == uid;
        if (!by_number && (!name || strcmp(line, name) != 0))
            continue;
        unsigned long first = strtoul(start, &end, 10);
        if (*end == ':' && strtoul(end + 1, NULL, 10) >= 1 && first > 0) {
            *ret_id = (unsigned)first;
            return true;
        }
    }
    return false;
}

static void choose_groups(struct jail_identity *identity, const struct facts *facts,
                          struct brig_unenforced *unenforced)
{
    gid_t own[1024];
    const gid_t *groups = facts ? facts->groups : own;
    int count = facts ? (int)facts->group_count : getgroups(ARRAY_LENGTH(own), own);
    for (int i = 0; i < count; i++)
        if (groups[i] != identity->host_gid &&
            identity->group_count < ARRAY_LENGTH(identity->groups))
            identity->groups[identity->group_count++] = groups[i];
    if (identity->group_count == 0 || identity->become)
        return;
    if (access(NEWGIDMAP, X_OK) == 0 &&
        identity_subordinate_id("/etc/subgid", identity->host_uid, identity->name,
                                &identity->subordinate_gid)) {
        identity->map_groups = true;
        return;
    }
    identity->groups_stay = true;
    unenforced_add(unenforced,
                   "supplementary groups stay effective (newgidmap or a range in /etc/subgid "
                   "is missing)");
}

int identity_choose(const struct brig_policy *policy, struct arena *arena,
                    struct brig_unenforced *unenforced, struct jail_identity *ret_identity,
                    struct brig_error *err)
{
    struct jail_identity identity = {.become =
                                         policy->facts ? policy->facts->root : identity_is_root()};
    uid_t own_uid = geteuid();
    gid_t own_gid = getegid();
    bool chosen = policy->host_uid != (uid_t)-1;
    if (identity.become) {
        identity.synthetic = !chosen || policy->stranger;
        identity.host_uid = chosen ? policy->host_uid : policy_isolated_uid(0);
        identity.host_gid = policy->host_gid != (gid_t)-1 ? policy->host_gid : identity.host_uid;
        if (identity.host_uid == 0 || identity.host_gid == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "a jail never runs as uid or gid 0 on the host");
    } else {
        if (chosen && policy->host_uid != own_uid)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "only root can run a jail as another user (host uid %u)",
                             policy->host_uid);
        identity.host_uid = own_uid;
        identity.host_gid = own_gid;
    }
    bool hidden = identity.synthetic || identity.host_uid == 0;
    identity.inside_uid = policy->inside_uid != (uid_t)-1 ? policy->inside_uid
                          : hidden                        ? IDENTITY_INSIDE_UID
                                                          : identity.host_uid;
    identity.inside_gid = policy->inside_gid != (gid_t)-1 ? policy->inside_gid
                          : hidden                        ? IDENTITY_INSIDE_UID
                                                          : identity.host_gid;
    identity.name = policy->user_name ? policy->user_name : "brig";
    identity.home = policy->home ? policy->home : arena_printf(arena, "/home/%s", identity.name);
    identity.shell = policy->shell ? policy->shell : "/bin/sh";
    if (arena->failed)
        return brig_fail_nomem(err);
    choose_groups(&identity, policy->facts, unenforced);
    *ret_identity = identity;
    return 0;
}
