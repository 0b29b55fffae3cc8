/* SPDX-License-Identifier: MIT */
/* Makes the files read-only that configure brig. A program that can write to them decides what the next
 * jail is, and `initjail` names a program that runs outside. The directories of configuration and storage
 * are hidden (home.c), but a file can be elsewhere: one that -C or `conf` names, a script, a program, or
 * the target of a link in the directory, as where people keep their settings in a repository. */
#include "cli/own_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings.h"
#include "guard/names.h"
#include "policy/policy.h"

#define HOPS_MAX 40 /* as the kernel follows */

/* brig's own directories, as they are spelt; NULL where there is none. */
struct hidden {
    const char *spelt[2];
};

static bool is_hidden(const struct hidden *hidden, const char *path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(hidden->spelt); i++) {
        const char *spelt = hidden->spelt[i];
        char real[PATH_LENGTH_MAX + 1];
        if (spelt && (path_is_beneath(spelt, path) ||
                      (path_resolve(spelt, real) && path_is_beneath(real, path))))
            return true;
    }
    return false;
}

/* Adds a rule for a path wherever a directory above it is granted for writing. A missing file could be
 * created by the jail, and brig would obey it. */
static int protect_path(const struct settings *settings, const char *path, bool missing,
                        struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    size_t count = policy->grant_count;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        size_t length = strlen(grant->source);
        char dest[PATH_LENGTH_MAX + 1];
        if (grant->access != BRIG_READ_WRITE || grant->fd >= 0 || grant->own ||
            !path_is_beneath(grant->source, path) || path[length] != '/' ||
            names_is_excepted((const char *const *)settings->unprotect, settings->unprotect_count,
                              grant->source, path + length + 1))
            continue;
        if (missing)
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "brig's configuration leads to '%s', which does not exist and which the "
                "command could create. Create it, or remove the link",
                str_shown(path).text);
        if (!str_fill(dest, sizeof dest, grant->dest, path + length))
            return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s'",
                             str_shown(path).text);
        status = brig_policy_grant(policy, BRIG_PROTECT, path, dest, BRIG_GRANT_OPTIONAL, err);
    }
    return status;
}

static int protect_name(const struct settings *settings, const struct hidden *hidden,
                        const char *path, bool missing, struct brig_error *err)
{
    if (strstr(path, "/../") || is_hidden(hidden, path))
        return 0;
    return protect_path(settings, path, missing, err);
}

/* What the link at a path leads to next, without links in the directories above it as far as they are
 * there; NULL if it is none. The caller frees it. */
static char *target_of(const char *path)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return NULL;
    target[length] = '\0';
    char above[PATH_LENGTH_MAX + 1], real[PATH_LENGTH_MAX + 1], *next = NULL;
    (void)snprintf(above, sizeof above, "%.*s", (int)(strrchr(path, '/') + 1 - path), path);
    return path_resolve(above, real) && path_make_absolute(real, target, &next, NULL) == 0 ? next
                                                                                           : NULL;
}

/* By its name, because links on the way could be replaced, by the name of each link that it leads to, and
 * by its real name. */
static int protect_file(const struct settings *settings, const struct hidden *hidden,
                        const char *path, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    bool found = path_resolve(path, real);
    autofree char *at = strdup(path);
    bool missing = false;
    int status = at ? 0 : brig_fail_nomem(err);
    for (int links = 0; status == 0 && at && links <= HOPS_MAX; links++) {
        status = protect_name(settings, hidden, at, missing, err);
        char *next = target_of(at);
        free(at);
        at = next;
        missing = !found;
    }
    if (status < 0 || !found || strcmp(real, path) == 0)
        return status;
    return protect_name(settings, hidden, real, false, err);
}

/* What a run has read. Right in brig's own directories, where nearly all is, links are looked at
 * anyway: here, and in home.c for jails. */
static int protect_read(const struct settings *settings, const struct hidden *hidden,
                        const char *path, struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(hidden->spelt); i++) {
        size_t length = hidden->spelt[i] ? strlen(hidden->spelt[i]) : 0;
        if (length > 0 && path_is_beneath(hidden->spelt[i], path) && path[length] == '/' &&
            !strchr(path + length + 1, '/'))
            return 0;
    }
    return protect_file(settings, hidden, path, err);
}

/* Also those that this run has not read: another may. */
static int protect_links(const struct settings *settings, const struct hidden *hidden,
                         const char *directory, struct brig_error *err)
{
    autodir DIR *dir = opendir(directory);
    const struct dirent *item;
    int status = 0;
    while (dir && status == 0 && (item = readdir(dir))) {
        char path[PATH_LENGTH_MAX + 1];
        if (item->d_type != DT_LNK && item->d_type != DT_UNKNOWN)
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", directory, item->d_name);
        if (length > 0 && (size_t)length < sizeof path)
            status = protect_file(settings, hidden, path, err);
    }
    return status;
}

static int protect_programs(const struct settings *settings, const struct hidden *hidden,
                            const struct settings_programs *programs, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < programs->count && status == 0; i++)
        status = protect_read(settings, hidden, programs->items[i].path, err);
    return status;
}

int own_files_protect(const struct settings *settings, struct brig_error *err)
{
    const struct hidden hidden = {.spelt = {settings->config_dir, settings->storage}};
    int status =
        settings->config_dir ? protect_links(settings, &hidden, settings->config_dir, err) : 0;
    for (size_t i = 0; i < settings->source_count && status == 0; i++)
        status = protect_read(settings, &hidden, settings->sources[i], err);
    if (status == 0)
        status = protect_programs(settings, &hidden, &settings->scripts, err);
    return status < 0 ? status : protect_programs(settings, &hidden, &settings->initjails, err);
}
