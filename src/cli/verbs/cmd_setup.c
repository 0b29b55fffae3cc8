/* SPDX-License-Identifier: MIT */
/* `brig setup`: lets brig create user namespaces where a setting of the system refuses them. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/verbs/allow_userns.h"

#define PARSER "/usr/sbin/apparmor_parser"

static int refuse_without_root(const char *program, bool revert, struct brig_error *err)
{
    autostr struct str command = {0};
    const char *option = revert ? " --revert" : "";
    allow_userns_command(program, &command);
    (void)brig_fail(err, BRIG_E_STATE, 0,
                    "setup changes settings of the system, which only root can do");
    return brig_advise(err, BRIG_E_STATE, "Run %s%s, or brig setup%s --dry-run to see the changes",
                       command.failed ? "sudo brig setup" : command.data, option, option);
}

static int apply(const struct allow_userns *request, struct brig_error *err)
{
    int count = allow_userns_apply(request, err);
    if (count == 0)
        str_append(request->out, "Nothing to do: no setting of this system refuses user namespaces "
                                 "to brig. brig doctor says what else may be missing.\n");
    else if (count > 0 && !request->dry_run)
        str_append(request->out, "Done. brig doctor tests it; brig setup --revert undoes it.\n");
    return count < 0 ? count : 0;
}

static int run_setup(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    char program[PATH_LENGTH_MAX + 1];
    autostr struct str out = {0};
    struct allow_userns request = {.root = "", .program = program, .parser = PARSER, .out = &out};
    bool revert = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dry-run") == 0)
            request.dry_run = true;
        else if (strcmp(argv[i], "--revert") == 0)
            revert = true;
        else
            return command_refuse(app, argc, argv, i, err);
    }
    if (!path_resolve("/proc/self/exe", program))
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the path of brig is not known: /proc is missing");
    if (geteuid() != 0 && !request.dry_run)
        return refuse_without_root(program, revert, err);
    int status = revert ? allow_userns_revert(&request, err) : apply(&request, err);
    /* What was done before a failure, too. */
    int printed = message_print(&out, status < 0 ? NULL : err);
    return status < 0 ? status : printed;
}

const struct command cmd_setup = {
    .name = "setup",
    .summary = "let brig create user namespaces where the system refuses them (as root)",
    .usage = "[--dry-run] [--revert]",
    .run = run_setup,
};
