/* SPDX-License-Identifier: MIT */
/* Prints --help from the tables of options and verbs, within 80 columns. */
#include "help.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/write.h"
#include "cli/command.h"
#include "cli/message.h"
#include "cli/options.h"

#define HELP_COLUMN 30
#define HELP_WIDTH 79

static int print_and_release(struct str *text)
{
    int status = APP_FAILED;
    if (text->failed)
        message_error("out of memory");
    else if (write_all(STDOUT_FILENO, text->data, text->length) < 0)
        message_error("cannot write to standard output");
    else
        status = 0;
    str_done(text);
    return status;
}

void help_option_names(const struct option_row *row, char names[static HELP_NAMES_MAX])
{
    char letter[8] = "    ";
    if (row->short_name)
        (void)snprintf(letter, sizeof(letter), "-%c, ", row->short_name);
    (void)snprintf(names, HELP_NAMES_MAX, "%s--%s%s%s", letter, row->long_name,
                   row->metavar ? " " : "", row->metavar ? row->metavar : "");
}

/* Appends words from the help column on, broken before the last column. */
static void append_wrapped(struct str *text, const char *words)
{
    size_t column = HELP_COLUMN;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            str_appendf(text, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            str_append_char(text, ' ');
            column++;
        }
        str_append_bytes(text, words, length);
        column += length;
        words += length + strspn(words + length, " ");
    }
    str_append_char(text, '\n');
}

static void append_row(struct str *text, const char *names, const char *help)
{
    if (strlen(names) + 2 > HELP_COLUMN - 2)
        str_appendf(text, "  %s\n%*s", names, HELP_COLUMN, "");
    else
        str_appendf(text, "  %-*s", HELP_COLUMN - 2, names);
    append_wrapped(text, help);
}

static void append_options(struct str *text)
{
    for (int group = 0; group < OPTION_GROUP_COUNT_; group++) {
        str_appendf(text, "\n%s:\n", option_headings[group]);
        for (int i = 0; i < OPTION_COUNT_; i++) {
            if ((int)option_rows[i].group != group)
                continue;
            char names[HELP_NAMES_MAX];
            help_option_names(&option_rows[i], names);
            append_row(text, names, option_rows[i].help);
        }
    }
}

int help_print(void)
{
    struct str text = {0};
    str_append(&text, "Usage: brig [run] [OPTIONS] [--] [CMD...]\n"
                      "Runs CMD, or your shell, in a jail. It can write to the working directory\n"
                      "and to what is granted, and to nothing else.\n"
                      "\nCommands (as the first word only):\n");
    for (const struct command *const *command = commands; *command; command++) {
        char names[HELP_NAMES_MAX];
        (void)snprintf(names, sizeof(names), "%s %s", (*command)->name, (*command)->usage);
        append_row(&text, names, (*command)->summary);
    }
    append_options(&text);
    str_append(&text, "\nExit status: the command's; 128+N if a signal N ended it; 124 after a\n"
                      "timeout; 125 if brig failed; 126 not executable; 127 not found.\n"
                      "A program named like a verb: brig run doctor, or brig -- doctor.\n");
    return print_and_release(&text);
}

int help_print_command(const struct command *command)
{
    if (command == &cmd_run)
        return help_print();
    struct str text = {0};
    str_appendf(&text, "Usage: brig %s%s%s\n\n%s.\n", command->name,
                command->usage[0] != '\0' ? " " : "", command->usage, command->summary);
    return print_and_release(&text);
}

int help_print_version(void)
{
    struct str text = {0};
    str_appendf(&text, "brig %s\n", brig_version());
    return print_and_release(&text);
}
