/* SPDX-License-Identifier: MIT */
/* The builders of a policy's filesystem: the view, the grants, and the jail's private files. */
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
#include "policy/layers.h"
#include "policy/policy.h"

int brig_policy_view(struct brig_policy *policy, enum brig_view view, const char *root_path,
                     struct brig_error *err)
{
    if (view < BRIG_VIEW_SYSTEM || view > BRIG_VIEW_EMPTY)
        return policy_bad_value(err, "view", (int)view, policy_choices(POLICY_VIEW));
    char *path = NULL;
    if (view == BRIG_VIEW_ROOT) {
        int rc = policy_path(policy, "root directory", root_path, PATH_KEEP_DOTDOT, &path, err);
        if (rc < 0)
            return rc;
        if (strcmp(path, "/") == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'/' cannot be the root directory: choose the view 'host' instead");
    } else if (root_path) {
        return brig_fail(err, BRIG_E_INVALID, 0, "the view '%s' has no root directory ('%s')",
                         policy_word(POLICY_VIEW, view), str_shown(root_path).text);
    }
    policy->view = view;
    policy->root_path = path;
    policy->layers = NULL;
    policy->layer_count = 0;
    return 0;
}

int policy_layers(struct brig_policy *policy, const char *const *layers, size_t count,
                  struct brig_error *err)
{
    if (count < 1 || count > ROOT_LAYERS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a root has 1 to %d layers, not %zu",
                         ROOT_LAYERS_MAX, count);
    char **paths = arena_alloc(&policy->arena, count * sizeof *paths);
    if (!paths) {
        policy->arena.failed = 0;
        return brig_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        int rc = policy_path(policy, "layer", layers[i], PATH_KEEP_DOTDOT, &paths[i], err);
        if (rc < 0)
            return rc;
    }
    policy->view = VIEW_LAYERS;
    policy->root_path = NULL;
    policy->layers = paths;
    policy->layer_count = count;
    return 0;
}

void policy_unshare_layers(struct brig_policy *copy)
{
    struct arena *arena = &copy->arena;
    if (copy->layer_count == 0)
        return;
    copy->layers = arena_copy(arena, copy->layers, copy->layer_count * sizeof *copy->layers);
    for (size_t i = 0; copy->layers && i < copy->layer_count; i++)
        policy_own(arena, &copy->layers[i]);
}

static int check_grant_flags(enum brig_access access, unsigned flags, struct brig_error *err)
{
    if (access < BRIG_READ_WRITE || access > BRIG_PROTECT)
        return policy_bad_value(err, "access", (int)access, policy_choices(POLICY_ACCESS));
    if (flags & ~(unsigned)(BRIG_GRANT_OPTIONAL | BRIG_GRANT_CREATE))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown flags 0x%x in a grant", flags);
    if ((flags & BRIG_GRANT_CREATE) && access != BRIG_READ_WRITE && access != BRIG_READ_ONLY)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a %s rule cannot create: only read-write and read-only grants can",
                         policy_word(POLICY_ACCESS, access));
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
    const char *what = dest ? "destination" : "grant";
    if (!dest)
        dest = source;
    if (access == BRIG_MASK)
        source = dest;
    char *dest_path = NULL, *source_path = NULL, *origin = NULL;
    if ((rc = policy_path(policy, what, dest, 0, &dest_path, err)) < 0 ||
        (rc = str_equal(source, dest) ? policy_text(policy, dest_path, &source_path, err)
                                      : policy_path(policy, "source", source, PATH_KEEP_DOTDOT,
                                                    &source_path, err)) < 0 ||
        (rc = policy_check_grant(access, source_path, dest_path, err)) < 0 ||
        (rc = policy_text(policy, policy->origin, &origin, err)) < 0)
        return rc;
    if (!array_grow(&policy->grants, policy->grant_count))
        return brig_fail_nomem(err);
    policy->grants[policy->grant_count++] = (struct policy_grant){
        .access = access,
        .flags = flags,
        .fd = -1,
        .source = source_path,
        .dest = dest_path,
        .origin = origin,
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

/* A mount can only be made from a name: the name of an fd is valid in the mount namespace in which
 * it was opened. */
int policy_grant_fd(struct brig_policy *policy, enum brig_access access, int fd, const char *dest,
                    struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (!path_of_fd(fd, path) || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out what fd %d is", fd);
    int rc = brig_policy_grant(policy, access, path, dest, 0, err);
    if (rc < 0)
        return rc;
    struct policy_grant *grant = &policy->grants[policy->grant_count - 1];
    grant->checked = true;
    grant->dev = info.st_dev;
    grant->ino = info.st_ino;
    return 0;
}

const struct policy_grant *policy_rule_of(const struct brig_policy *policy, const char *path)
{
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (path_is_beneath(grant->dest, path) &&
            (!best || path_depth(grant->dest) >= path_depth(best->dest)))
            best = grant;
    }
    return best;
}

size_t policy_remove_grants(struct brig_policy *policy, const char *dest, bool masks_only)
{
    size_t kept = 0;
    for (size_t i = 0; i < policy->grant_count; i++) {
        struct policy_grant *grant = &policy->grants[i];
        if (strcmp(grant->dest, dest) != 0 || (masks_only && grant->access != BRIG_MASK))
            policy->grants[kept++] = *grant;
    }
    size_t removed = policy->grant_count - kept;
    policy->grant_count = kept;
    return removed;
}

int brig_policy_ungrant(struct brig_policy *policy, const char *dest, size_t *ret_removed,
                        struct brig_error *err)
{
    char *path = NULL;
    int rc = policy_path(policy, "destination", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    size_t removed = policy_remove_grants(policy, path, false);
    if (ret_removed)
        *ret_removed = removed;
    return 0;
}

int brig_policy_workdir(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    return policy_path(policy, "working directory", path, 0, &policy->workdir, err);
}

/* ---- Private directories and files -------------------------------------------------------- */

#define PERMISSIONS 0777

/* A file that only its owner may read can be a secret. */
void policy_private_done(struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->file_count; i++)
        if (policy->files[i].bytes && !(policy->files[i].mode & 077))
            explicit_bzero(policy->files[i].bytes, policy->files[i].length);
    free(policy->privates);
    free(policy->files);
}

void policy_unshare_private(struct brig_policy *copy)
{
    struct arena *arena = &copy->arena;
    copy->privates =
        policy_copy_items(arena, copy->privates, &copy->private_count, sizeof *copy->privates);
    for (size_t i = 0; i < copy->private_count; i++)
        policy_own(arena, &copy->privates[i].dest, &copy->privates[i].origin);
    copy->files = policy_copy_items(arena, copy->files, &copy->file_count, sizeof *copy->files);
    for (size_t i = 0; i < copy->file_count; i++) {
        policy_own(arena, &copy->files[i].dest);
        copy->files[i].bytes = arena_copy(arena, copy->files[i].bytes, copy->files[i].length);
    }
}

static struct policy_private *find_private(const struct brig_policy *policy, const char *dest)
{
    for (size_t i = 0; i < policy->private_count; i++)
        if (strcmp(policy->privates[i].dest, dest) == 0)
            return &policy->privates[i];
    return NULL;
}

int brig_policy_private(struct brig_policy *policy, enum brig_access access, const char *dest,
                        struct brig_error *err)
{
    char *path = NULL, *origin = NULL;
    if (access != BRIG_READ_WRITE && access != BRIG_READ_ONLY)
        return policy_bad_value(err, "access of a private directory", (int)access,
                                "read-write or read-only");
    if (policy->private_count >= POLICY_PRIVATE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many private directories: at most %d",
                         POLICY_PRIVATE_MAX);
    int rc = policy_path(policy, "private directory", dest, 0, &path, err);
    if (rc < 0 || (rc = policy_check_grant(access, path, path, err)) < 0 ||
        (rc = policy_text(policy, policy->origin, &origin, err)) < 0)
        return rc;
    if (find_private(policy, path))
        return brig_fail(err, BRIG_E_INVALID, 0, "the private directory '%s' is given twice",
                         str_shown(path).text);
    if (!array_grow(&policy->privates, policy->private_count))
        return brig_fail_nomem(err);
    policy->privates[policy->private_count++] = (struct policy_private){
        .dest = path, .origin = origin, .read_only = access == BRIG_READ_ONLY};
    return 0;
}

int brig_policy_file(struct brig_policy *policy, const char *dest, const void *bytes, size_t length,
                     mode_t mode, struct brig_error *err)
{
    char *path = NULL;
    void *copy = NULL;
    if (mode & ~(mode_t)PERMISSIONS)
        return brig_fail(err, BRIG_E_INVALID, 0, "mode %o of '%s': at most 777", (unsigned)mode,
                         str_shown(dest ? dest : "").text);
    if (policy->file_count >= POLICY_PRIVATE_FILES_MAX || length > POLICY_FILE_BYTES_MAX)
        return brig_fail(
            err, BRIG_E_INVALID, 0, "'%s' is too much: at most %d files of %zu bytes each",
            str_shown(dest ? dest : "").text, POLICY_PRIVATE_FILES_MAX, POLICY_FILE_BYTES_MAX);
    if (!bytes && length > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the %zu bytes of '%s' are NULL", length,
                         str_shown(dest ? dest : "").text);
    int rc = policy_path(policy, "file", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < policy->file_count; i++)
        if (strcmp(policy->files[i].dest, path) == 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "the file '%s' is given twice",
                             str_shown(path).text);
    if (!array_grow(&policy->files, policy->file_count) ||
        !(copy = arena_copy(&policy->arena, bytes, length))) {
        policy->arena.failed = 0;
        return brig_fail_nomem(err);
    }
    policy->files[policy->file_count++] =
        (struct policy_private_file){.dest = path, .bytes = copy, .length = length, .mode = mode};
    return 0;
}

int policy_late_file(struct brig_policy *policy, const char *dest, mode_t mode,
                     struct brig_error *err)
{
    for (size_t i = 0; i < policy->file_count; i++)
        if (policy->files[i].late)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is filled late already, and one is all",
                             policy->files[i].dest);
    int rc = brig_policy_file(policy, dest, "", 0, mode, err);
    if (rc == 0)
        policy->files[policy->file_count - 1].late = true;
    return rc;
}

int brig_policy_keep(struct brig_policy *policy, const char *dest, struct brig_error *err)
{
    char *path = NULL;
    int rc = policy_path(policy, "directory to keep", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    struct policy_private *private = find_private(policy, path);
    if (!private)
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "'%s' is not a private directory: only those made by brig_policy_private() can be kept",
            str_shown(path).text);
    for (size_t i = 0; i < policy->private_count; i++)
        if (policy->privates[i].kept && &policy->privates[i] != private)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is kept already, and one is all",
                             policy->privates[i].dest);
    private->kept = true;
    return 0;
}
