/* SPDX-License-Identifier: MIT */
/* Reads the secrets that are injected, with the ids of the user. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/host_command.h"
#include "cli/identity.h"
#include "policy/policy.h"

/* ---- Sources of secrets: a variable, a file, a descriptor, a program ---- */

static int from_variable(const char *name, char **ret_secret, struct brig_error *err)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return brig_fail(err, BRIG_E_INVALID, 0, "the variable '%s' is not set",
                         str_shown(name).text);
    return str_copy(value, ret_secret, err);
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
    return host_read_text(fd, path, ret_secret, err);
}

static int from_number(const char *text, char **ret_secret, struct brig_error *err)
{
    uint64_t number = 0;
    int status = parse_uint(text, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return status;
    if (fcntl((int)number, F_GETFD) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "file descriptor %s is not open", text);
    status = host_read_text((int)number, text, ret_secret, err);
    (void)close((int)number); /* so that no other program reads it */
    return status;
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
        return host_command(spec->where, identity, ret_secret, err);
    case INJECT_OAUTH: /* inject_find_token() */
    case INJECT_GIVEN:
        return str_copy(spec->secret, ret_secret, err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "no such source");
}
