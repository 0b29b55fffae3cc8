/* SPDX-License-Identifier: MIT */
/* Writes the result of a run where --result says. */
#include "result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/given.h"
#include "cli/out_path.h"

#define RESULT_MODE 0644
#define RESULT_TRIES 8

static int open_number(const char *digits, struct result_file *file, struct brig_error *err)
{
    uint64_t number = 0;
    int status = parse_uint(digits, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return brig_wrap(err, status, "--result");
    int flags = fcntl((int)number, F_GETFL);
    if (flags < 0 || !given_fd((int)number))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--result: file descriptor %s is not open; for a file write './%s'",
                         digits, digits);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--result: file descriptor %s is open for reading only", digits);
    file->fd = (int)number;
    return 0;
}

static int open_directory_of(const char *path, const struct brig_policy *policy,
                             const struct identity *identity, struct result_file *file,
                             struct brig_error *err)
{
    const char *name = NULL;
    int status = out_path_open(path, policy, identity, &name, &file->dir_fd, err);
    if (status < 0)
        return brig_wrap(err, status, "--result");
    (void)snprintf(file->name, sizeof(file->name), "%s", name);
    return 0;
}

/* A device or a pipe is written to, not replaced. Opening a pipe waits for a reader, for ever if
 * need be, unless told not to; writing then waits as it should. */
static int open_special(struct result_file *file, const char *path, struct brig_error *err)
{
    bool in_dev = file->dir_fd < 0; /* where links such as /dev/stdout are the system's */
    autoclose int fd =
        openat(in_dev ? AT_FDCWD : file->dir_fd, in_dev ? path : file->name,
               O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (in_dev ? 0 : O_NOFOLLOW));
    if (fd < 0 && errno == ENXIO)
        return brig_fail(err, BRIG_E_INVALID, 0, "--result: no process reads from the pipe '%s'",
                         str_shown(path).text);
    if (fd < 0 || fcntl(fd, F_SETFL, O_WRONLY) < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "--result: cannot write '%s'",
                         str_shown(path).text);
    file->fd = take_fd(&fd);
    file->owned = true;
    if (file->dir_fd >= 0)
        (void)close(take_fd(&file->dir_fd));
    return 0;
}

/* A file is replaced, and so is a symbolic link, which a jail may have made. */
static int open_path(const char *path, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *file,
                     struct brig_error *err)
{
    struct stat there;
    if (str_starts_with(path, "/dev/") && stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return open_special(file, path, err);
    int status = open_directory_of(path, policy, identity, file, err);
    if (status < 0)
        return status;
    if (fstatat(file->dir_fd, file->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
        return open_special(file, path, err);
    if (faccessat(file->dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "--result: cannot write '%s'",
                         str_shown(path).text);
    return 0;
}

int result_file_open(const char *where, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *ret_file,
                     struct brig_error *err)
{
    struct result_file file = {.fd = -1, .dir_fd = -1};
    int status = 0;
    if (str_starts_with(where, "fd:"))
        status = open_number(where + 3, &file, err);
    else if (where[strspn(where, "0123456789")] == '\0')
        status = open_number(where, &file, err);
    else
        status = open_path(where, policy, identity, &file, err);
    if (status < 0) {
        result_file_done(&file);
        return status;
    }
    *ret_file = file;
    return 0;
}

/* A new file beside the wanted one, under a name nobody can have prepared. */
static int create_beside(const struct result_file *file, char name[static RESULT_NAME_MAX])
{
    int fd = -1;
    for (int i = 0; fd < 0 && i < RESULT_TRIES; i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -1;
        (void)snprintf(name, RESULT_NAME_MAX, ".brig-result-%016llx", (unsigned long long)random);
        fd = openat(file->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    RESULT_MODE);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

static int replace_file(const struct result_file *file, const char *text, size_t length,
                        struct brig_error *err)
{
    char name[RESULT_NAME_MAX];
    autoclose int fd = create_beside(file, name);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "--result: cannot create a file beside '%s'",
                         str_shown(file->name).text);
    int failed = write_all(fd, text, length);
    if (failed == 0 && renameat(file->dir_fd, name, file->dir_fd, file->name) < 0)
        failed = -errno;
    if (failed < 0) {
        (void)unlinkat(file->dir_fd, name, 0);
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "--result: cannot write '%s'",
                         str_shown(file->name).text);
    }
    return 0;
}

int result_file_write(const struct result_file *file, const struct brig_result *result,
                      struct brig_error *err)
{
    autofree char *json = NULL;
    int status = brig_result_json(result, &json, err);
    if (status < 0)
        return status;
    if (file->dir_fd >= 0)
        return replace_file(file, json, strlen(json), err);
    int failed = write_all(file->fd, json, strlen(json));
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "--result: cannot write");
    return 0;
}

void result_file_done(struct result_file *file)
{
    if (file->owned && file->fd >= 0)
        (void)close(file->fd);
    if (file->dir_fd >= 0)
        (void)close(file->dir_fd);
    *file = (struct result_file){.fd = -1, .dir_fd = -1};
}
