/* SPDX-License-Identifier: MIT */
/* Reads files of the user, and runs shell commands for their output. */
#include "cli/host_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "cli/identity.h"
#include "git/outside_path.h"
#include "policy/policy.h"

#define ROOM (POLICY_SECRET_MAX + 2) /* the end of a line, and one byte to detect excess */
#define FILE_LENGTH_MAX 65536
#define EXIT_NO_EXEC 127
#define SYSTEM_PATH                                                                                \
    "/usr/bin:/bin" /* if nothing else is left: an empty PATH is the working directory */

int host_read_text(int fd, const char *what, char **ret_text, struct brig_error *err)
{
    char *text = calloc(1, ROOM + 1);
    size_t length = 0;
    ssize_t count = 1;
    if (!text)
        return brig_fail_nomem(err);
    while (length < ROOM && count != 0) {
        count = read(fd, text + length, ROOM - length);
        if (count < 0 && errno != EINTR)
            break;
        length += count > 0 ? (size_t)count : 0;
    }
    int failed = count < 0 ? errno : 0;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    if (failed == 0 && length > 0 && length <= POLICY_SECRET_MAX && strlen(text) == length) {
        *ret_text = text;
        return 0;
    }
    explicit_bzero(text, ROOM);
    free(text);
    return brig_fail(err, BRIG_E_INVALID, failed, "no secret of 1 to %d bytes without NUL in '%s'",
                     POLICY_SECRET_MAX, str_shown(what).text);
}

char *host_read_file(const char *home, const char *name, const struct identity *identity,
                     char *ret_path)
{
    bool absolute = name[0] == '/';
    if (!str_fill(ret_path, PATH_LENGTH_MAX + 1, absolute ? "" : home, absolute ? "" : "/", name))
        return NULL;
    identity_enter(identity);
    autoclose int fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = fd >= 0 ? calloc(1, FILE_LENGTH_MAX + 1) : NULL;
    if (text && read(fd, text, FILE_LENGTH_MAX) < 0)
        text[0] = '\0';
    identity_leave(identity);
    return text;
}

/* Executes the command with the ids of the user for whom brig acts. `path` is PATH without directories in which a jail
 * could have put a program. */
static __attribute__((noreturn)) void execute(const char *line, const char *path,
                                              const struct identity *identity, int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        identity_become(identity) == 0 && setenv("PATH", *path ? path : SYSTEM_PATH, 1) == 0)
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(EXIT_NO_EXEC);
}

int host_command(const char *line, const struct identity *identity, char **ret_text,
                 struct brig_error *err)
{
    int pair[2];
    autofree char *path = NULL;
    if (outside_path((const char *const *)environ, NULL, &path, err) < 0)
        return BRIG_E_NOMEM;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int input = pair[0];
    autoclose int output = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        execute(line, path, identity, output);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot run '%s'", str_shown(line).text);
    (void)close(take_fd(&output));
    int status = host_read_text(input, line, ret_text, err);
    (void)close(take_fd(&input)); /* a program that continues to write gets SIGPIPE */
    if (process_wait(pid) == 0)
        return status;
    if (status == 0)
        policy_free_secret(take_ptr(ret_text));
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' failed", str_shown(line).text);
}
