/* SPDX-License-Identifier: MIT */
#include "cli/beside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/jails.h"

int beside_become_user(struct brig_error *err)
{
    struct jails_place place;
    int status = jails_place_find(&place, err);
    if (status < 0)
        return status;
    bool acts_for_user = getuid() != place.uid;
    status = jails_become_user(&place, err);
    if (status == 0 && acts_for_user && place.identity.host_home &&
        setenv("HOME", place.identity.host_home, 1) < 0)
        return brig_fail_nomem(err);
    return status;
}

int beside_execute(const struct beside_program *program, const char *role, const char *const *words,
                   struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1], brig[PATH_LENGTH_MAX + 1];
    size_t count = 0, given = 0;
    if (!path_find_program(program->places, program->installed, path, sizeof path)) {
        int status =
            brig_fail(err, BRIG_E_UNSUPPORTED, 0, "%s is not installed beside brig, nor as '%s'",
                      program->name, program->installed);
        return program->advice ? brig_advise(err, status, "%s", program->advice) : status;
    }
    if (!path_resolve("/proc/self/exe", brig))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find the path of brig");
    while (words[given])
        given++;
    autofree const char **all = calloc(given + 4, sizeof *all);
    if (!all)
        return brig_fail_nomem(err);
    all[count++] = path;
    if (role)
        all[count++] = role;
    all[count++] = brig;
    for (size_t i = 0; i < given; i++)
        all[count++] = words[i];
    (void)execv(path, (char **)(uintptr_t)all);
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot run '%s'", path);
}
