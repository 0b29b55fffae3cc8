/* SPDX-License-Identifier: MIT */
/* The table of verbs. */
#include "cli/command.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"

const struct command *const commands[] = {
    &cmd_run,      &cmd_explain, &cmd_why,      &cmd_list,    &cmd_enter,   &cmd_stop,
    &cmd_rm,       &cmd_cp,      &cmd_mask,     &cmd_unmask,  &cmd_sync,    &cmd_status,
    &cmd_diff,     &cmd_review,  &cmd_apply,    &cmd_discard, &cmd_undo,    &cmd_log,
    &cmd_held,     &cmd_keep,    &cmd_fork,     &cmd_gc,      &cmd_image,   &cmd_allow,
    &cmd_profiles, &cmd_login,   &cmd_logout,   &cmd_init,    &cmd_import,  &cmd_doctor,
    &cmd_setup,    &cmd_mcp,     &cmd_mcp_wrap, &cmd_help,    &cmd_version, NULL,
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

void command_nearest(const char *word, struct nearest *ret_nearest)
{
    nearest_begin(ret_nearest, word);
    for (const struct command *const *command = commands; *command; command++)
        nearest_offer(ret_nearest, (*command)->name, strlen((*command)->name));
}

/* Finds an option in the usage of a verb. Returns the character after it, or 0: a space if the option
 * has a value. */
static char usage_after(const char *usage, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = usage; option[0] == '-' && (at = strstr(at, option)); at += length)
        if (at > usage && strchr("[|", at[-1]) && at[length] != '\0' && strchr(" |]", at[length]))
            return at[length];
    return '\0';
}

int command_refuse(const struct app *app, int argc, char **argv, int index, struct brig_error *err)
{
    const char *name = app->command->name;
    autostr struct str words = {0};
    const char after = usage_after(app->command->usage, argv[index]);
    if (after == ' ' && index == argc - 1)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s needs a value. See brig %s --help",
                         argv[index], name);
    if (after != '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "options come before other words: write brig %s %s ...", name,
                         argv[index]);
    for (int i = 1; i < argc; i++)
        str_appendf(&words, " %s", argv[i]);
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "brig %s does not take '%s', so nothing was done. See brig %s --help; to run "
                     "a program called %s: brig run %s%s",
                     name, argv[index], name, name, name,
                     words.data && !words.failed ? words.data : "");
}
