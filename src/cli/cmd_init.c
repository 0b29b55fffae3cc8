/* SPDX-License-Identifier: MIT */
/* `brig init`: writes files to start a configuration from. */
#include <unistd.h>

#include "base/path.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/starter.h"

static int run_init(const struct app *app, int argc, char **argv)
{
    (void)app;
    if (argc > 1)
        return command_refuse(&cmd_init, argc, argv, 1);
    struct brig_error err = {0};
    struct identity identity;
    struct config_files files = {0};
    char cwd[PATH_LENGTH_MAX + 1] = "/";
    (void)!getcwd(cwd, sizeof cwd); /* only where the environment names a relative path */
    identity_find(&identity);
    int status = config_files_find(&files, &identity, cwd, &err);
    if (status == 0) {
        identity_enter(&identity);
        status = starter_write(files.dir, files.storage, &err);
        identity_leave(&identity);
    }
    config_files_done(&files);
    return message_status(status, &err);
}

const struct command cmd_init = {
    .name = "init",
    .summary = "write files to start a configuration from",
    .usage = "",
    .run = run_init,
};
