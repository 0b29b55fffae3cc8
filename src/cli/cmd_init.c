/* SPDX-License-Identifier: MIT */
/* `brig init`: writes files to start a configuration from. */
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/command.h"
#include "cli/config_files.h"
#include "cli/identity.h"
#include "cli/message.h"
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
    if (status < 0)
        message_error("%s", err.message);
    config_files_done(&files);
    return status < 0 ? APP_FAILED : 0;
}

const struct command cmd_init = {
    .name = "init",
    .summary = "write files to start a configuration from",
    .usage = "",
    .run = run_init,
};
