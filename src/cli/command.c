/* SPDX-License-Identifier: MIT */
/* The table of verbs. */
#include "command.h"

#include <string.h>

#include "base/nearest.h"
#include "base/str.h"
#include "cli/message.h"

const struct command *const commands[] = {
    &cmd_run,  &cmd_explain, &cmd_why,    &cmd_list,    &cmd_enter, &cmd_stop, &cmd_rm,
    &cmd_cp,   &cmd_mask,    &cmd_unmask, &cmd_sync,    &cmd_held,  &cmd_keep, &cmd_discard,
    &cmd_init, &cmd_doctor,  &cmd_help,   &cmd_version, NULL,
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

bool command_suggest(const char *word)
{
    struct nearest nearest;
    command_nearest(word, &nearest);
    if (nearest.best[0])
        message_error("there is no command '%s'. Did you mean '%s'?", word, nearest.best);
    return nearest.best[0];
}

int command_refuse(const struct command *command, int argc, char **argv, int index)
{
    struct str words = {0};
    for (int i = 1; i < argc; i++)
        str_appendf(&words, " %s", argv[i]);
    message_error("brig %s does not take '%s', so nothing was done. See brig %s --help; to run a "
                  "program called %s: brig run %s%s",
                  command->name, argv[index], command->name, command->name, command->name,
                  words.data && !words.failed ? words.data : "");
    str_done(&words);
    return APP_FAILED;
}
