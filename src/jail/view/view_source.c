/* SPDX-License-Identifier: MIT */
/* What a grant is about on the host: found without being led astray, or made. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/sys.h"
#include "jail/view/view_entries.h"

static int make_directories(char *path, struct brig_error *err)
{
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char kept = *at;
        *at = 0;
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot create '%s'", path);
        *at = kept;
        if (!kept)
            return 0;
    }
}

/* mkdir -p for `create` grants, as the user the jail is for. */
static int create_source(struct view *view, const char *path, struct brig_error *err)
{
    const struct identity *identity = view->identity;
    char *copy = arena_strdup(&view->plan->arena, path);
    if (!copy)
        return brig_fail_nomem(err);
    bool for_user = identity->become && !identity->synthetic;
    if (for_user) { /* of this thread only, and only for the filesystem */
        (void)SYS(setfsgid, identity->host_gid);
        (void)SYS(setfsuid, identity->host_uid);
    }
    int result = make_directories(copy, err);
    if (for_user) {
        (void)SYS(setfsuid, 0);
        (void)SYS(setfsgid, 0);
    }
    return result;
}

/* The outermost other grant through which an earlier run could have planted something on the way. */
static const struct policy_grant *writable_above(const struct view *view,
                                                 const struct policy_grant *grant)
{
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < view->policy->grant_count; i++) {
        const struct policy_grant *other = &view->policy->grants[i];
        if (other->access == BRIG_READ_WRITE && view_below(other->source, grant->source) &&
            (!best || strlen(other->source) < strlen(best->source)))
            best = other;
    }
    return best;
}

/* Opens a path below a directory, following no symlink; -1 with errno, ELOOP if there is one. */
static int open_without_links(int directory, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    long result = SYS(openat2, directory, path, &how, sizeof how);
    if (result == -ENOSYS) /* the child follows none either, and compares what it finds */
        result = SYS(openat, directory, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
    struct stat info;
    if (result >= 0 && fstat((int)result, &info) == 0 && S_ISLNK(info.st_mode)) {
        (void)close((int)result);
        result = -ELOOP;
    }
    if (result < 0)
        errno = (int)-result;
    return result < 0 ? -1 : (int)result;
}

/* What a grant is about: 0 and its identity, an errno, or a negative code and the failure in words.
 * Below a directory that is granted for writing no symlink is followed: a jail could have put it
 * there, to have something else granted to the next one. */
static int find_source(const struct view *view, const struct policy_grant *grant,
                       struct stat *ret_info, struct brig_error *err)
{
    const struct policy_grant *above = writable_above(view, grant);
    autoclose int base = open(above ? above->source : grant->source, O_PATH | O_CLOEXEC);
    if (base < 0)
        return errno;
    autoclose int fd = -1;
    if (above) {
        fd = open_without_links(base, view_below(above->source, grant->source) + 1);
        if (fd < 0 && (errno == ELOOP || errno == EXDEV))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' leads through a symbolic link below '%s', which is writable in "
                             "the jail. Write the path without the link [%s]",
                             grant->source, above->source, grant->origin);
        if (fd < 0)
            return errno;
    }
    struct statfs system;
    if (fstatfs(above ? fd : base, &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is in the host's /proc, which is never granted [%s]", grant->source,
                         grant->origin);
    return fstat(above ? fd : base, ret_info) < 0 ? errno : 0;
}

int view_find_source(struct view *view, const struct policy_grant *grant, struct stat *ret_info,
                     struct brig_error *err)
{
    int found = find_source(view, grant, ret_info, err);
    if (found == ENOENT && (grant->flags & BRIG_GRANT_CREATE) && view->policy->facts) {
        *ret_info = (struct stat){.st_mode = S_IFDIR | 0755, .st_uid = view->identity->host_uid};
        return 1; /* as it will be */
    }
    if (found == ENOENT && (grant->flags & BRIG_GRANT_CREATE)) {
        int result = create_source(view, grant->source, err);
        if (result < 0)
            return result;
        found = find_source(view, grant, ret_info, err);
    }
    if (found < 0)
        return found;
    if (found == 0 && grant->checked &&
        (ret_info->st_dev != grant->dev || ret_info->st_ino != grant->ino))
        return brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' changed while it was being granted [%s]",
                         grant->source, grant->origin);
    if (found == 0)
        return 1;
    if ((grant->flags & BRIG_GRANT_OPTIONAL) && (found == ENOENT || found == ENOTDIR))
        return 0;
    (void)brig_fail(err, BRIG_E_SETUP, found, "cannot grant '%s' [%s]", grant->source,
                    grant->origin);
    if (found == ENOENT)
        (void)brig_advise(
            err, BRIG_E_SETUP,
            grant->access == BRIG_READ_WRITE
                ? "Create it first, or use --dir! to have it made, --dir? to do without"
            : grant->access == BRIG_READ_ONLY ? "Create it first, or use --rdir? to do without"
                                              : "Use --device? to do without");
    return BRIG_E_SETUP;
}

int view_find_mount(const struct policy_grant *grant, struct stat *ret_info, struct brig_error *err)
{
    if (fstat(grant->fd, ret_info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot mount '%s' [%s]", grant->source,
                         grant->origin);
    return 1;
}
