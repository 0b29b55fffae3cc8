/* SPDX-License-Identifier: MIT */
/* The directory of the host that a request wants to work in: opened once, below a root the operator
 * named, and judged by what was opened. */
#include "server/executor/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "server/config.h"

static const char *const refused_trees[] = {"/etc", "/var",  "/root", "/proc", "/sys",
                                            "/dev", "/boot", "/run",  "/usr"};
static const char *const refused_names[] = {".ssh", ".aws", ".gnupg", ".claude"};
/* A directory that has these in it is somebody's home. */
static const char *const private_entries[] = {".ssh", ".aws", ".gnupg",
                                              ".claude/.credentials.json"};

bool executor_workdir_is_refused(const char *path)
{
    if (strcmp(path, "/") == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(refused_trees); i++)
        if (path_is_beneath(refused_trees[i], path))
            return true;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        for (size_t i = 0; i < ARRAY_LENGTH(refused_names); i++)
            if (strncmp(part, refused_names[i], strlen(refused_names[i])) == 0 &&
                strchr("/", part[strlen(refused_names[i])]))
                return true;
    }
    return false;
}

/* The name the kernel has for what was opened. */
static int name_of(int fd, char path[PATH_LENGTH_MAX + 1], struct brig_error *err)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_LENGTH_MAX);
    if (length <= 0 || length >= PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out what work_dir is");
    path[length] = '\0';
    return 0;
}

static int judge(int fd, const char *wanted, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int result = name_of(fd, path, err);
    if (result < 0)
        return result;
    if (executor_workdir_is_refused(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "work_dir '%s' is a directory that is never given "
                         "to a run",
                         str_shown(wanted).text);
    for (size_t i = 0; i < ARRAY_LENGTH(private_entries); i++)
        if (faccessat(fd, private_entries[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "work_dir '%s' has %s in it, which is never given to a run: name a "
                             "directory without",
                             str_shown(wanted).text, private_entries[i]);
    return 0;
}

/* Below one root: 1 and the fd, 0 if it does not lie there. */
static int open_below(const char *root, const char *path, int *ret_fd, struct brig_error *err)
{
    autofree char *normal = NULL;
    if (path_normalise(root, 0, &normal, NULL) < 0 || !path_is_beneath(normal, path))
        return 0;
    autoclose int top = open(normal, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "the root '%s' of work_dir", normal);
    const char *rest = path + strlen(normal);
    while (*rest == '/')
        rest++;
    int result = path_open_beneath(top, *rest ? rest : ".", O_PATH | O_DIRECTORY, 0, ret_fd, err);
    if (result < 0)
        return brig_fail(err, BRIG_E_INVALID, err ? err->sys_errno : 0,
                         "work_dir '%s' cannot be opened below '%s'", str_shown(path).text, normal);
    return 1;
}

int executor_open_workdir(const char *path, const struct config_list *roots, int *ret_fd,
                          struct brig_error *err)
{
    autofree char *normal = NULL;
    autoclose int fd = -1;
    int result = path_normalise(path, 0, &normal, err);
    if (result < 0)
        return brig_wrap(err, BRIG_E_INVALID, "work_dir");
    for (size_t i = 0; i < roots->count; i++) {
        result = open_below(roots->items[i], normal, &fd, err);
        if (result < 0 || (result > 0 && (result = judge(fd, normal, err)) < 0))
            return result;
        if (fd < 0)
            continue;
        *ret_fd = take_fd(&fd);
        return 0;
    }
    return brig_fail(
        err, BRIG_E_INVALID, 0,
        "work_dir '%s' is not below a directory of sandbox.allowed_workdir_roots, or of "
        "the key's own workdir_roots (%s)",
        str_shown(normal).text, roots->count ? "see --print-config" : "there is none");
}
