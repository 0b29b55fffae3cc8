/* SPDX-License-Identifier: MIT */
/* Opens the directory of a file to be written, component by component. */
#include "cli/out_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"

#define LINKS_MAX 40 /* as the kernel has it */

/* Whether the jail can create entries in this directory. */
static bool is_writable_inside(int dir_fd, const struct brig_policy *policy)
{
    char link[64], path[PATH_LENGTH_MAX + 1];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return true; /* nothing is known of it */
    path[length] = '\0';
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access != BRIG_READ_WRITE || !grant->source)
            continue;
        autofree char *real = realpath(grant->source, NULL);
        if (path_is_beneath(real ? real : grant->source, path))
            return true;
    }
    return false;
}

/* Puts the target of a link before what is left of the path. */
static int put_target(int link_fd, char rest[static PATH_LENGTH_MAX + 1], size_t used)
{
    char target[PATH_LENGTH_MAX + 1], left[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(link_fd, "", target, sizeof target - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    (void)snprintf(left, sizeof left, "%s", rest + used);
    int made = snprintf(rest, PATH_LENGTH_MAX + 1, "%s/%s", target, left);
    return made > PATH_LENGTH_MAX ? -ENAMETOOLONG : 0;
}

/* Takes the next component from the rest: 0, 1 if it was a link, or -errno, which is -EPERM for a link
 * that a jail may have made. */
static int step(int *at, char rest[static PATH_LENGTH_MAX + 1], const struct brig_policy *policy)
{
    char name[PATH_COMPONENT_MAX + 1];
    size_t length = strcspn(rest, "/");
    if (length > PATH_COMPONENT_MAX)
        return -ENAMETOOLONG;
    memcpy(name, rest, length);
    name[length] = '\0';
    autoclose int fd = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISLNK(info.st_mode)) {
        (void)close(*at);
        *at = take_fd(&fd);
        memmove(rest, rest + length, strlen(rest + length) + 1);
        return 0;
    }
    if (is_writable_inside(*at, policy))
        return -EPERM;
    int status = put_target(fd, rest, length);
    return status < 0 ? status : 1;
}

/* Walks the whole path of a directory; an absolute one begins at the root, also that of a link. */
static int walk(char rest[static PATH_LENGTH_MAX + 1], const struct brig_policy *policy,
                int *ret_fd)
{
    autoclose int at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int links = 0, status = 1; links <= LINKS_MAX; links += status) {
        if (status == 1 && rest[0] == '/') {
            (void)close(at);
            at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        memmove(rest, rest + strspn(rest, "/"), strlen(rest + strspn(rest, "/")) + 1);
        if (at < 0)
            return -errno;
        if (rest[0] == '\0') {
            *ret_fd = take_fd(&at);
            return 0;
        }
        status = step(&at, rest, policy);
        if (status < 0)
            return status;
    }
    return -ELOOP;
}

int out_path_open(const char *path, const struct brig_policy *policy, const char **ret_name,
                  int *ret_dir_fd, struct brig_error *err)
{
    char rest[PATH_LENGTH_MAX + 1];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = (size_t)(name - path);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strlen(name) > PATH_COMPONENT_MAX || length > PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not name a file", str_shown(path).text);
    memcpy(rest, path, length);
    rest[length] = '\0';
    autoclose int fd = -1;
    int status = walk(rest, policy, &fd);
    if (status == -EPERM)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' leads through a symbolic link in a directory that the jail can "
                         "write to, so an earlier run may have made it: write the path without it",
                         str_shown(path).text);
    if (status < 0)
        return brig_fail(err, BRIG_E_INVALID, -status, "cannot write '%s'", str_shown(path).text);
    *ret_name = name;
    *ret_dir_fd = take_fd(&fd);
    return 0;
}
