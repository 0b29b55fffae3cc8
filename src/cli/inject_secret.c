/* SPDX-License-Identifier: MIT */
/* Reads the secrets that are injected, with the ids of the user. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/inject.h"
#include "policy/policy.h"

/* ---- Sources of secrets: a variable, a file, a descriptor, a program ---- */

#define ROOM (POLICY_SECRET_MAX + 2) /* the end of a line, and one byte to detect excess */
#define EXIT_NO_EXEC 127

static int from_variable(const char *name, char **ret_secret, struct brig_error *err)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return brig_fail(err, BRIG_E_INVALID, 0, "the variable '%s' is not set",
                         str_shown(name).text);
    return str_copy(value, ret_secret, err);
}

/* Reads everything, up to the maximum length of a secret. */
static int read_secret(int fd, const char *what, char **ret_secret, struct brig_error *err)
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
        *ret_secret = text;
        return 0;
    }
    explicit_bzero(text, ROOM);
    free(text);
    return brig_fail(err, BRIG_E_INVALID, failed, "no secret of 1 to %d bytes without NUL in '%s'",
                     POLICY_SECRET_MAX, str_shown(what).text);
}

bool inject_file_path(const struct inject_spec *spec, const struct identity *identity,
                      char path[static PATH_LENGTH_MAX + 1])
{
    bool at_home = str_starts_with(spec->where, "~/") && identity->host_home;
    return str_fill(path, PATH_LENGTH_MAX + 1, at_home ? identity->host_home : "",
                    spec->where + at_home);
}

static int from_file(const struct inject_spec *spec, const struct identity *identity,
                     char **ret_secret, struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    const char *path = spec->where;
    bool fits = inject_file_path(spec, identity, full);
    identity_enter(identity);
    autoclose int fd = fits ? open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    int failed = fits ? errno : ENAMETOOLONG;
    identity_leave(identity);
    if (fd < 0)
        return brig_fail(err, BRIG_E_INVALID, failed, "cannot read the secret in '%s'",
                         str_shown(path).text);
    return read_secret(fd, path, ret_secret, err);
}

static int from_number(const char *text, char **ret_secret, struct brig_error *err)
{
    uint64_t number = 0;
    int status = parse_uint(text, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return status;
    if (fcntl((int)number, F_GETFD) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "file descriptor %s is not open", text);
    status = read_secret((int)number, text, ret_secret, err);
    (void)close((int)number); /* so that no other program reads it */
    return status;
}

/* Executes the command with the ids of the user for whom brig acts. */
static __attribute__((noreturn)) void execute(const char *line, const struct identity *identity,
                                              int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        identity_become(identity) == 0)
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(EXIT_NO_EXEC);
}

static int from_command(const char *line, const struct identity *identity, char **ret_secret,
                        struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int input = pair[0];
    autoclose int output = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        execute(line, identity, output);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot run '%s'", str_shown(line).text);
    (void)close(take_fd(&output));
    int status = read_secret(input, line, ret_secret, err), ended = 0;
    (void)close(take_fd(&input)); /* a program that continues to write gets SIGPIPE */
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return status;
    if (status == 0)
        policy_free_secret(take_ptr(ret_secret));
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' failed, and so gave no secret",
                     str_shown(line).text);
}

int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err)
{
    switch (spec->source) {
    case INJECT_ENV:
        return from_variable(spec->where, ret_secret, err);
    case INJECT_FILE:
        return from_file(spec, identity, ret_secret, err);
    case INJECT_FD:
        return from_number(spec->where, ret_secret, err);
    case INJECT_COMMAND:
        return from_command(spec->where, identity, ret_secret, err);
    case INJECT_GIVEN:
        return str_copy(spec->secret, ret_secret, err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "no such source");
}
