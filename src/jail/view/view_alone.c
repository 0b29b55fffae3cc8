/* SPDX-License-Identifier: MIT */
/* A policy's view where nothing can be mounted: as Landlock rules on the host's own tree. */
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/confine/unenforced.h"
#include "jail/view/view_entries.h"

static void add_path_rule(struct view *view, const char *path, enum landlock_grant grant)
{
    struct stat info;
    if (stat(path, &info) == 0)
        plan_add_rule(view->plan, PLAN_NO_SLOT, path,
                      landlock_rights(view->abi, grant, S_ISDIR(info.st_mode)));
}

int view_plan_landlock_only(struct plan *plan, const struct brig_policy *policy,
                            const struct identity *identity, int landlock_abi,
                            struct brig_error *err)
{
    static const char *const readable[] = {"/usr",
                                           "/bin",
                                           "/sbin",
                                           "/lib",
                                           "/lib32",
                                           "/lib64",
                                           "/libx32",
                                           "/etc/alternatives",
                                           "/etc/ld.so.cache",
                                           "/etc/ld.so.conf",
                                           "/etc/ld.so.conf.d",
                                           "/etc/localtime",
                                           "/etc/nsswitch.conf",
                                           "/etc/passwd",
                                           "/etc/group",
                                           "/etc/hosts",
                                           "/etc/resolv.conf",
                                           "/etc/ssl/certs",
                                           "/etc/ssl/openssl.cnf",
                                           "/etc/services",
                                           "/etc/protocols",
                                           "/proc"};
    static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom", "/dev/tty",  "/dev/pts"};
    struct view view = {.plan = plan, .policy = policy, .identity = identity, .abi = landlock_abi};
    if (policy->view == BRIG_VIEW_HOST) {
        add_path_rule(&view, "/", LANDLOCK_GRANT_READ);
    } else if (policy->view != BRIG_VIEW_EMPTY) {
        for (size_t i = 0; i < ARRAY_LENGTH(readable); i++)
            add_path_rule(&view, readable[i], LANDLOCK_GRANT_READ);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(devices); i++)
        add_path_rule(&view, devices[i], LANDLOCK_GRANT_DEVICE);
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access == BRIG_PROTECT || grant->own)
            unenforced_add(&plan->unenforced,
                           "protected paths can be written to (needs namespaces)");
        if (grant->access == BRIG_MASK || grant->access == BRIG_PROTECT || grant->own)
            continue;
        if (grant->fd >= 0)
            return brig_fail(err, BRIG_E_SETUP, 0,
                             "without namespaces the jail cannot have a private '%s' [%s]",
                             grant->dest, grant->origin);
        if (strcmp(grant->source, grant->dest) != 0) {
            /* No lower rung would do it either, and would leave more open. */
            return brig_fail(err, BRIG_E_SETUP, 0,
                             "'%s' cannot be granted at another path '%s' without namespaces [%s]",
                             grant->source, grant->dest, grant->origin);
        }
        struct stat info;
        int found = view_find_source(&view, grant, &info, err);
        if (found < 0)
            return found;
        if (found == 0)
            continue;
        add_path_rule(&view, grant->source,
                      grant->access == BRIG_READ_WRITE  ? LANDLOCK_GRANT_WRITE
                      : grant->access == BRIG_READ_ONLY ? LANDLOCK_GRANT_READ
                                                        : LANDLOCK_GRANT_DEVICE);
    }
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}
