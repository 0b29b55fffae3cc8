/* SPDX-License-Identifier: MIT */
/* `brig init`: writes initial configuration files. */
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "policy/defaults.h"

static const char default_conf[] =
    "# Options for every command without a configuration file such as claude.conf.\n"
    "# brig.conf(5) describes the syntax; brig explain prints the options of a run.\n"
    "\n"
    "conf .defaults\n"
    "\n"
    "# Another mode: bare, strict or sealed.\n"
    "# mode strict\n"
    "\n"
    "# A separate jail, with a separate home and /tmp.\n"
    "# jail work\n"
    "\n"
    "# More directories, relative to the home directory: read-write, or read-only.\n"
    "# dir? .cache/pip\n"
    "# rdir? src/shared\n"
    "\n"
    "# Paths to hide, and exceptions from the default masks.\n"
    "# mask Documents\n"
    "# unmask .npmrc\n"
    "\n"
    "# Variables to set, to keep although a default filter removes them, and to remove.\n"
    "# setenv EDITOR=vi\n"
    "# setenv ANTHROPIC_API_KEY\n"
    "# unsetenv COMPANY_*\n"
    "\n"
    "# Limits, and no network.\n"
    "# memory 8G\n"
    "# pids 2000\n"
    "# net none\n";

static const char brigrc[] =
    "# The shell in the jail reads this script before it executes the command, see .defaults.\n"
    "# export PATH=\"$HOME/.local/bin:$PATH\"\n";

static const char defaults_head[] =
    "# The built-in masks and environment filters. They apply without this file too; "
    "'no-defaults'\n"
    "# disables them. The line 'conf .defaults' in another file includes this file: add masks for\n"
    "# all commands here. For an exception, write 'unmask PATH' or 'setenv NAME' after that line.\n"
    "\n"
    "# A shell in the jail reads this script, then executes the command.\n"
    "script? .brigrc\n"
    "command . \"${BRIG_SCRIPT:-/dev/null}\"; exec \"$0\" \"$@\"\n"
    "\n"
    "# Hidden paths, relative to the home directory.\n";

static void append_defaults(struct str *text)
{
    str_append(text, defaults_head);
    for (const char *mask = policy_default_masks; *mask; mask = policy_next_default(mask))
        str_appendf(text, "mask? %s\n", mask);
    str_append(text, "\n# Variables that are removed. A pattern matches the name in upper or lower "
                     "case; a pattern\n"
                     "# with :// matches a URL in the value.\n");
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

/* Writes the missing files, and prints their names. */
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
    return status;
}

static int run_init(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    if (argc > 1)
        return command_refuse(app, argc, argv, 1, err);
    struct identity identity;
    struct config_files files = {0};
    char cwd[PATH_LENGTH_MAX + 1] = "/";
    (void)!getcwd(cwd, sizeof cwd); /* needed only if the environment names a relative path */
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
