/* SPDX-License-Identifier: MIT */
/* `brig init`: writes files to start a configuration from. */
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/settings.h"
#include "policy/defaults.h"

static const char default_conf[] =
    "# What holds for every command that has no file of its own, such as claude.conf.\n"
    "# The language is described in brig.conf(5); what is in force is shown by: brig --dry-run\n"
    "\n"
    "conf .defaults\n"
    "\n"
    "# Another mode: bare, strict or sealed.\n"
    "# mode strict\n"
    "\n"
    "# A jail of its own, with its own home and /tmp.\n"
    "# jail work\n"
    "\n"
    "# Directories besides the working directory, relative to home: writable, or only readable.\n"
    "# dir? .cache/pip\n"
    "# rdir? src/shared\n"
    "\n"
    "# What is not to be seen, and what of the defaults is to be seen after all.\n"
    "# mask Documents\n"
    "# unmask .npmrc\n"
    "\n"
    "# Variables: to set, to pass on although a default takes it away, to take away.\n"
    "# setenv EDITOR=vi\n"
    "# setenv ANTHROPIC_API_KEY\n"
    "# unsetenv COMPANY_*\n"
    "\n"
    "# Limits, and no network.\n"
    "# memory 8G\n"
    "# pids 2000\n"
    "# net none\n";

static const char brigrc[] =
    "# Read by a shell in the jail before it starts the command, if .defaults says so.\n"
    "# export PATH=\"$HOME/.local/bin:$PATH\"\n";

static const char defaults_head[] =
    "# The masks and filters of brig, which hold whether this file is read or not ('no-defaults'\n"
    "# turns them off). Read by 'conf .defaults': a place for more of the kind, for all commands.\n"
    "# To see something after all, write 'unmask PATH' or 'setenv NAME' behind that line.\n"
    "\n"
    "# What a shell reads in the jail before it starts the command, and how it does.\n"
    "script? .brigrc\n"
    "command . \"${BRIG_SCRIPT:-/dev/null}\"; exec \"$0\" \"$@\"\n"
    "\n"
    "# Hidden, relative to the home directory.\n";

static void append_defaults(struct str *text)
{
    str_append(text, defaults_head);
    for (const char *mask = policy_default_masks; *mask; mask = policy_next_default(mask))
        str_appendf(text, "mask? %s\n", mask);
    str_append(text, "\n# Not passed on: variables by their name, whatever the case of letters, "
                     "and such that have\n"
                     "# an address of this kind in their value.\n");
    for (const char *filter = policy_default_filters; *filter; filter = policy_next_default(filter))
        str_appendf(text, "unsetenv %s\n", filter);
}

int defaults_print(struct brig_error *err)
{
    autostr struct str text = {0};
    append_defaults(&text);
    return message_print(&text, err);
}

static int write_file(int dir_fd, const char *dir, const char *name, const char *text,
                      struct brig_error *err)
{
    int status = out_file_write(dir_fd, name, text, 0600, false, err);
    if (status < 0)
        return brig_wrap(err, status, "%s", str_shown(dir).text);
    message_note(status > 0 ? "wrote %s/%s" : "left %s/%s as it is", dir, name);
    return 0;
}

/* Writes what is missing, and says which. */
static int write_files(const char *dir, const char *storage, struct brig_error *err)
{
    autostr struct str defaults = {0};
    autoclose int dir_fd = -1;
    autoclose int storage_fd = -1;
    append_defaults(&defaults);
    if (defaults.failed)
        return brig_fail_nomem(err);
    int status = config_make_directory(dir, &dir_fd, err);
    if (status == 0)
        status = config_make_directory(storage, &storage_fd, err);
    if (status == 0)
        status = write_file(dir_fd, dir, ".defaults", defaults.data, err);
    if (status == 0)
        status = write_file(dir_fd, dir, "default.conf", default_conf, err);
    if (status == 0)
        status = write_file(dir_fd, dir, ".brigrc", brigrc, err);
    if (status == 0)
        status = config_write_jail(storage_fd, SETTINGS_JAIL, BRIG_MODE_CASUAL, err);
    return status;
}

static int run_init(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    if (argc > 1)
        return command_refuse(app, argc, argv, 1, err);
    struct identity identity;
    struct config_files files = {0};
    char cwd[PATH_LENGTH_MAX + 1] = "/";
    (void)!getcwd(cwd, sizeof cwd); /* only where the environment names a relative path */
    identity_find(&identity);
    int status = config_files_find(&files, &identity, cwd, err);
    if (status == 0) {
        identity_enter(&identity);
        status = write_files(files.dir, files.storage, err);
        identity_leave(&identity);
    }
    config_files_done(&files);
    return status;
}

const struct command cmd_init = {
    .name = "init",
    .summary = "write example configuration files",
    .usage = "",
    .run = run_init,
};
