/* SPDX-License-Identifier: MIT */
/* The builders of what a jail has for itself: private directories, and the files put there. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"
#include "policy/validate.h"

#define PERMISSIONS 0777

static void private_done(struct policy_private *private)
{
    free(private->dest);
    free(private->origin);
}

/* What only its owner may read may be a secret. */
static void file_done(struct policy_private_file *file)
{
    if (file->bytes && !(file->mode & 077))
        explicit_bzero(file->bytes, file->length);
    free(file->dest);
    free(file->bytes);
}

void policy_private_done(struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->private_count; i++)
        private_done(&policy->privates[i]);
    for (size_t i = 0; i < policy->file_count; i++)
        file_done(&policy->files[i]);
    free(policy->privates);
    free(policy->files);
}

static int copy_bytes(const void *bytes, size_t length, void **ret_copy)
{
    void *copy = malloc(length + 1);
    if (!copy)
        return BRIG_E_NOMEM;
    if (length > 0)
        memcpy(copy, bytes, length);
    *ret_copy = copy;
    return 0;
}

int policy_private_copy(const struct brig_policy *from, struct brig_policy *to)
{
    to->privates = calloc(from->private_count + 1, sizeof *to->privates);
    to->files = calloc(from->file_count + 1, sizeof *to->files);
    if (!to->privates || !to->files)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->private_count; i++) {
        const struct policy_private *source = &from->privates[i];
        struct policy_private *copy = &to->privates[to->private_count++];
        copy->read_only = source->read_only;
        copy->kept = source->kept;
        if (str_copy(source->dest, &copy->dest, NULL) < 0 ||
            str_copy(source->origin, &copy->origin, NULL) < 0)
            return BRIG_E_NOMEM;
    }
    for (size_t i = 0; i < from->file_count; i++) {
        const struct policy_private_file *source = &from->files[i];
        struct policy_private_file *copy = &to->files[to->file_count++];
        copy->length = source->length;
        copy->mode = source->mode;
        copy->late = source->late;
        if (str_copy(source->dest, &copy->dest, NULL) < 0 ||
            copy_bytes(source->bytes, source->length, &copy->bytes) < 0)
            return BRIG_E_NOMEM;
    }
    return 0;
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
    autofree char *path = NULL;
    autofree char *origin = NULL;
    if (access != BRIG_READ_WRITE && access != BRIG_READ_ONLY)
        return policy_bad_value(err, "access of a private directory", (int)access,
                                "read-write or read-only");
    if (policy->private_count >= POLICY_PRIVATE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many private directories: at most %d",
                         POLICY_PRIVATE_MAX);
    int rc = policy_path("private directory", dest, 0, &path, err);
    if (rc < 0 || (rc = policy_check_grant(access, path, path, err)) < 0 ||
        (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    if (find_private(policy, path))
        return brig_fail(err, BRIG_E_INVALID, 0, "the private directory '%s' is given twice",
                         str_shown(path).text);
    struct policy_private *grown =
        reallocarray(policy->privates, policy->private_count + 1, sizeof *grown);
    if (!grown)
        return brig_fail_nomem(err);
    policy->privates = grown;
    policy->privates[policy->private_count++] =
        (struct policy_private){.dest = take_ptr(&path),
                                .origin = take_ptr(&origin),
                                .read_only = access == BRIG_READ_ONLY};
    return 0;
}

int brig_policy_file(struct brig_policy *policy, const char *dest, const void *bytes, size_t length,
                     mode_t mode, struct brig_error *err)
{
    autofree char *path = NULL;
    void *copy = NULL;
    if (mode & ~(mode_t)PERMISSIONS)
        return brig_fail(err, BRIG_E_INVALID, 0, "mode %o of '%s': at most 777", (unsigned)mode,
                         str_shown(dest ? dest : "").text);
    if (policy->file_count >= POLICY_PRIVATE_FILES_MAX || length > POLICY_FILE_BYTES_MAX)
        return brig_fail(
            err, BRIG_E_INVALID, 0, "'%s' is too much: at most %d files of %zu bytes each",
            str_shown(dest ? dest : "").text, POLICY_PRIVATE_FILES_MAX, POLICY_FILE_BYTES_MAX);
    int rc = policy_path("file", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < policy->file_count; i++)
        if (strcmp(policy->files[i].dest, path) == 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "the file '%s' is given twice",
                             str_shown(path).text);
    struct policy_private_file *grown =
        reallocarray(policy->files, policy->file_count + 1, sizeof *grown);
    if (grown)
        policy->files = grown;
    if (!grown || copy_bytes(bytes, length, &copy) < 0)
        return brig_fail_nomem(err);
    policy->files[policy->file_count++] = (struct policy_private_file){
        .dest = take_ptr(&path), .bytes = copy, .length = length, .mode = mode};
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
    autofree char *path = NULL;
    int rc = policy_path("directory to keep", dest, 0, &path, err);
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
