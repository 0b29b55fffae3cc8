/* SPDX-License-Identifier: MIT */
/* Removes directories from PATH that are not the user's alone. */
#include "git/outside_path.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "git/git.h"
#include "policy/policy.h"

bool outside_path_is_writable(const struct brig_policy *policy, const char *path)
{
    for (size_t i = 0; policy && i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE &&
            path_is_beneath(policy->grants[i].source, path))
            return true;
    return false;
}

/* ---- the project ---- */

static bool has_git(const char *directory)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    return str_fill(path, sizeof path, directory, "/.git") && lstat(path, &info) == 0;
}

/* Whether a directory contains the home, with everything that the user has installed there. */
static bool is_above_home(const char *directory, const char *home)
{
    return strcmp(directory, "/") == 0 || (home && path_is_beneath(directory, home));
}

static bool is_system(const char *directory)
{
    static const char *const system[] = {"/usr", "/bin", "/sbin", "/nix"};
    for (size_t i = 0; i < ARRAY_LENGTH(system); i++)
        if (path_is_beneath(system[i], directory))
            return true;
    return false;
}

/* Finds the outermost directory with a `.git` around the working directory, because a jail can make a repository in a
 * repository; else the working directory. Empty: there is no project. */
static void find_project(const char *home, char ret_path[static PATH_LENGTH_MAX + 1])
{
    char at[PATH_LENGTH_MAX + 1];
    *ret_path = '\0';
    if (!getcwd(at, sizeof at) || is_above_home(at, home))
        return;
    if (!is_system(at))
        (void)str_fill(ret_path, PATH_LENGTH_MAX + 1, at);
    while (!is_above_home(at, home)) {
        if (has_git(at))
            (void)str_fill(ret_path, PATH_LENGTH_MAX + 1, at);
        char *slash = strrchr(at, '/');
        slash[slash == at] = '\0';
    }
}

/* ---- the list ---- */

static bool is_foreign(const char *path, const struct brig_policy *policy, const char *project)
{
    return outside_path_is_writable(policy, path) || (*project && path_is_beneath(project, path));
}

int outside_path(const char *const *environment, const struct brig_policy *policy, char **ret_list,
                 struct brig_error *err)
{
    char project[PATH_LENGTH_MAX + 1];
    autostr struct str list = {0};
    find_project(git_variable(environment, "HOME"), project);
    str_append(&list, "");
    for (const char *at = git_variable(environment, "PATH"); at && *at;) {
        size_t length = strcspn(at, ":");
        char path[PATH_LENGTH_MAX + 1], real[PATH_LENGTH_MAX + 1];
        int used = snprintf(path, sizeof path, "%.*s", (int)length, at);
        if (at[0] == '/' && (size_t)used < sizeof path && path_resolve(path, real) &&
            !is_foreign(path, policy, project) && !is_foreign(real, policy, project))
            str_concat(&list, list.length > 0 ? ":" : "", path);
        at += length + (at[length] == ':');
    }
    return str_take(&list, ret_list, err);
}
