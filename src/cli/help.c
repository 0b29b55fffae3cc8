/* SPDX-License-Identifier: MIT */
/* --help from the tables of verbs and options, brig help TOPIC from the texts of docs/help, and
 * --version. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/settings/options.h"

/* ---- The texts of docs/help ---- */

static const struct help_text {
    const char *name;
    const char *about; /* "": the text is about a verb and is printed with its usage */
    const char *text;
} texts[] = {
#include "help_texts.h"
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)

static const struct help_text *find_text(const char *name)
{
    for (size_t i = 0; i < TEXT_COUNT; i++)
        if (strcmp(texts[i].name, name) == 0)
            return &texts[i];
    return NULL;
}

const char *help_topic_at(size_t index, const char **ret_about)
{
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (texts[i].about[0] == '\0' || index-- > 0)
            continue;
        *ret_about = texts[i].about;
        return texts[i].name;
    }
    for (const struct command *const *command = commands; *command; command++) {
        const struct help_text *text = find_text((*command)->name);
        if ((text && text->about[0] != '\0') || index-- > 0)
            continue;
        *ret_about = (*command)->summary;
        return (*command)->name;
    }
    return NULL;
}

void help_option(const char *verb, const char *option, size_t length,
                 char ret_about[static HELP_OPTION_MAX])
{
    const struct help_text *text = find_text(verb);
    ret_about[0] = '\0';
    for (const char *line = text ? text->text : ""; *line != '\0';
         line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "  ", 2) != 0 || strncmp(line + 2, option, length) != 0 ||
            !strchr(" ,", line[2 + length]))
            continue;
        const char *about = strstr(line + 2 + length, "  ");
        about += about ? strspn(about, " ") : 0;
        if (about)
            (void)snprintf(ret_about, HELP_OPTION_MAX, "%.*s", (int)strcspn(about, "\n"), about);
        return;
    }
}

static void append_subjects(struct str *text)
{
    str_append(text, "\nSubjects (brig help SUBJECT):\n");
    for (size_t i = 0; i < TEXT_COUNT; i++)
        if (texts[i].about[0] != '\0')
            str_appendf(text, "  %-28s%s\n", texts[i].name, texts[i].about);
}

/* ---- --help, within 80 columns ---- */

#define HELP_COLUMN 30
#define HELP_NAMES_MAX 96
#define HELP_WIDTH 79

/* "-d, --dir PATH". */
static void option_names(const struct option_row *row, char names[static HELP_NAMES_MAX])
{
    char letter[8] = "    ";
    if (row->short_name)
        (void)snprintf(letter, sizeof(letter), "-%c, ", row->short_name);
    bool maybe = row->kind == OPTION_KIND_SWITCH;
    (void)snprintf(names, HELP_NAMES_MAX, "%s--%s%s%s%s", letter, row->long_name,
                   maybe          ? "[="
                   : row->metavar ? " "
                                  : "",
                   row->metavar ? row->metavar : "", maybe ? "]" : "");
}

/* Appends words from the help column on, wrapped at the last column. */
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

/* The length of the next word of a usage: "PATH...", or "[--conflict mine|theirs]" with its spaces. */
static size_t usage_word(const char *usage)
{
    size_t length = 0;
    for (int depth = 0; usage[length] != '\0' && (usage[length] != ' ' || depth > 0); length++)
        depth += (usage[length] == '[') - (usage[length] == ']');
    return length;
}

/* Appends "NAME USAGE" from a column on. The lines after the first are indented. */
static void append_usage(struct str *text, const struct command *command, size_t column)
{
    const size_t indent = column + strlen(command->name) + 1;
    str_append(text, command->name);
    column += strlen(command->name);
    for (const char *usage = command->usage; *usage != '\0';) {
        size_t length = usage_word(usage);
        bool wraps = column > indent && column + 1 + length > HELP_WIDTH;
        if (wraps)
            str_appendf(text, "\n%*s", (int)indent, "");
        else
            str_append_char(text, ' ');
        str_append_bytes(text, usage, length);
        column = (wraps ? indent : column + 1) + length;
        usage += length + strspn(usage + length, " ");
    }
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
            option_names(&option_rows[i], names);
            append_row(text, names, option_rows[i].help);
        }
    }
}

int help_print(struct brig_error *err)
{
    autostr struct str text = {0};
    str_append(&text, "Usage: brig [run] [OPTIONS] [--] [CMD...]\n"
                      "Runs CMD, or your shell, in a jail. It can write to the working directory\n"
                      "and to what is granted, and to nothing else.\n"
                      "\nCommands (as the first word only):\n");
    for (const struct command *const *command = commands; *command; command++) {
        autostr struct str names = {0};
        append_usage(&names, *command, 2);
        append_row(&text, names.failed ? (*command)->name : names.data, (*command)->summary);
    }
    append_options(&text);
    append_subjects(&text);
    str_append(&text, "\nExit status: the command's; 128+N if a signal N ended it; 124 after a\n"
                      "timeout; 125 if brig failed; 126 not executable; 127 not found.\n"
                      "A program named like a verb: brig run doctor, or brig -- doctor.\n");
    return message_print(&text, err);
}

int help_print_command(const struct command *command, struct brig_error *err)
{
    if (command == &cmd_run)
        return help_print(err);
    static const char usage[] = "Usage: brig ";
    autostr struct str text = {0};
    const struct help_text *more = find_text(command->name);
    str_append(&text, usage);
    append_usage(&text, command, sizeof usage - 1);
    str_appendf(&text, "\n\n%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    if (more)
        str_concat(&text, "\n", more->text);
    else if (strstr(command->usage, "--"))
        str_append(&text, "The manual page brig(1) describes the options.\n");
    return message_print(&text, err);
}

/* ---- The version ---- */

/* How the programs were built: "KEY: VALUE" lines. */
static const char *const facts[] = {
#include "build_facts.h"
};

int help_print_version(bool verbose, struct brig_error *err)
{
    autostr struct str text = {0};
    struct utsname kernel;
    str_appendf(&text, "brig %s\n", brig_version());
    for (size_t i = 0; verbose && i < sizeof facts / sizeof *facts; i++)
        str_concat(&text, facts[i], "\n");
    if (verbose && uname(&kernel) == 0)
        str_appendf(&text, "kernel: %s %s, %s\n", kernel.sysname, kernel.release, kernel.machine);
    return message_print(&text, err);
}

/* ---- Verbs ---- */

static int fail_unknown(const char *word, struct brig_error *err)
{
    struct nearest nearest;
    const char *name, *about;
    nearest_begin(&nearest, word);
    for (size_t i = 0; (name = help_topic_at(i, &about)); i++)
        nearest_offer(&nearest, name, strlen(name));
    return nearest.best[0]
               ? brig_fail(err, BRIG_E_INVALID, 0, "there is no topic '%s'. Did you mean '%s'?",
                           str_shown(word).text, nearest.best)
               : brig_fail(err, BRIG_E_INVALID, 0,
                           "there is no topic '%s'. See brig help; to run a program "
                           "called help: brig run help %s",
                           str_shown(word).text, str_shown(word).text);
}

static int run_help(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    if (argc == 1)
        return help_print(err);
    const struct command *command = command_find(argv[1]);
    const struct help_text *text = find_text(argv[1]);
    if (!command && !text)
        return fail_unknown(argv[1], err);
    if (argc > 2)
        return command_refuse(app, argc, argv, 2, err);
    if (command)
        return help_print_command(command, err);
    autostr struct str out = {0};
    str_append(&out, text->text);
    return message_print(&out, err);
}

const struct command cmd_help = {
    .name = "help",
    .summary = "print this help, or a page about a command or subject",
    .usage = "[TOPIC]",
    .words = COMMAND_WORDS_TOPICS,
    .run = run_help,
};

static int run_version(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    bool verbose = argc == 2 && (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--verbose") == 0);
    return argc > 1 && !verbose ? command_refuse(app, argc, argv, 1, err)
                                : help_print_version(verbose, err);
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "[-v|--verbose]",
    .run = run_version,
};
