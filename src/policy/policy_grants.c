/* SPDX-License-Identifier: MIT */
/* The builders of a policy's filesystem: the view and the grants. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"
#include "policy/validate.h"

int brig_policy_view(struct brig_policy *policy, enum brig_view view, const char *root_path,
                     struct brig_error *err)
{
    if (view < BRIG_VIEW_SYSTEM || view > BRIG_VIEW_EMPTY)
        return policy_bad_value(err, "view", (int)view, policy_view_choices());
    autofree char *path = NULL;
    if (view == BRIG_VIEW_ROOT) {
        int rc = policy_path("root directory", root_path, PATH_KEEP_DOTDOT, &path, err);
        if (rc < 0)
            return rc;
        if (strcmp(path, "/") == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'/' cannot be the root directory: choose the view 'host' instead");
    } else if (root_path) {
        return brig_fail(err, BRIG_E_INVALID, 0, "the view '%s' has no root directory ('%s')",
                         policy_view_name(view), str_shown(root_path).text);
    }
    policy->view = view;
    policy_replace(&policy->root_path, &path);
    return 0;
}

static int check_grant_flags(enum brig_access access, unsigned flags, struct brig_error *err)
{
    if (access < BRIG_READ_WRITE || access > BRIG_PROTECT)
        return policy_bad_value(err, "access", (int)access,
                                "read-write, read-only, mask, device or protect");
    if (flags & ~(unsigned)(BRIG_GRANT_OPTIONAL | BRIG_GRANT_CREATE))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown flags 0x%x in a grant", flags);
    if ((flags & BRIG_GRANT_CREATE) && access != BRIG_READ_WRITE && access != BRIG_READ_ONLY)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a %s rule cannot create: only read-write and read-only grants can",
                         policy_access_name(access));
    return 0;
}

int brig_policy_grant(struct brig_policy *policy, enum brig_access access, const char *source,
                      const char *dest, unsigned flags, struct brig_error *err)
{
    int rc = check_grant_flags(access, flags, err);
    if (rc < 0)
        return rc;
    if (policy->grant_count >= POLICY_GRANTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many grants: at most %d are possible",
                         POLICY_GRANTS_MAX);
    if (!dest)
        dest = source;
    if (access == BRIG_MASK)
        source = dest;
    autofree char *dest_path = NULL;
    autofree char *source_path = NULL;
    autofree char *origin = NULL;
    if ((rc = policy_path("destination", dest, 0, &dest_path, err)) < 0 ||
        (rc = str_equal(source, dest)
                  ? str_copy(dest_path, &source_path, err)
                  : policy_path("source", source, PATH_KEEP_DOTDOT, &source_path, err)) < 0 ||
        (rc = policy_check_grant(access, source_path, dest_path, err)) < 0 ||
        (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    struct policy_grant *grown =
        reallocarray(policy->grants, policy->grant_count + 1, sizeof *policy->grants);
    if (!grown)
        return brig_fail_nomem(err);
    policy->grants = grown;
    policy->grants[policy->grant_count++] = (struct policy_grant){
        .access = access,
        .flags = flags,
        .fd = -1,
        .source = take_ptr(&source_path),
        .dest = take_ptr(&dest_path),
        .origin = take_ptr(&origin),
    };
    return 0;
}

int policy_mount(struct brig_policy *policy, int fd, const char *source, const char *dest,
                 struct brig_error *err)
{
    int rc = brig_policy_grant(policy, BRIG_READ_WRITE, source, dest, 0, err);
    if (rc == 0)
        policy->grants[policy->grant_count - 1].fd = fd;
    return rc;
}

/* A mount can only be made from a name: the fd's own is in the mount namespace of who opened it. */
int policy_grant_fd(struct brig_policy *policy, enum brig_access access, int fd, const char *dest,
                    struct brig_error *err)
{
    char link[64], path[PATH_LENGTH_MAX + 1];
    struct stat info;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_LENGTH_MAX);
    if (length <= 0 || length >= PATH_LENGTH_MAX || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out what fd %d is", fd);
    path[length] = '\0';
    int rc = brig_policy_grant(policy, access, path, dest, 0, err);
    if (rc < 0)
        return rc;
    struct policy_grant *grant = &policy->grants[policy->grant_count - 1];
    grant->checked = true;
    grant->dev = info.st_dev;
    grant->ino = info.st_ino;
    return 0;
}

int brig_policy_ungrant(struct brig_policy *policy, const char *dest, size_t *ret_removed,
                        struct brig_error *err)
{
    autofree char *path = NULL;
    int rc = policy_path("destination", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    size_t kept = 0;
    for (size_t i = 0; i < policy->grant_count; i++) {
        if (strcmp(policy->grants[i].dest, path) == 0)
            policy_grant_done(&policy->grants[i]);
        else
            policy->grants[kept++] = policy->grants[i];
    }
    size_t removed = policy->grant_count - kept;
    policy->grant_count = kept;
    if (ret_removed)
        *ret_removed = removed;
    return 0;
}

int brig_policy_workdir(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    autofree char *copy = NULL;
    int rc = policy_path("working directory", path, 0, &copy, err);
    if (rc < 0)
        return rc;
    policy_replace(&policy->workdir, &copy);
    return 0;
}
