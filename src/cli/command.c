/* SPDX-License-Identifier: MIT */
/* The table of verbs, and the output generated from it and from the table of options. */
#include "cli/command.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/config.h"
#include "cli/identity.h"
#include "cli/options.h"
#include "cli/report.h"

const struct command *const commands[] = {
    &cmd_run,   &cmd_explain,  &cmd_why,      &cmd_list,    &cmd_enter,  &cmd_stop, &cmd_rm,
    &cmd_cp,    &cmd_mask,     &cmd_unmask,   &cmd_sync,    &cmd_status, &cmd_diff, &cmd_review,
    &cmd_apply, &cmd_discard,  &cmd_undo,     &cmd_log,     &cmd_held,   &cmd_keep, &cmd_fork,
    &cmd_gc,    &cmd_allow,    &cmd_profiles, &cmd_login,   &cmd_logout, &cmd_init, &cmd_doctor,
    &cmd_mcp,   &cmd_mcp_wrap, &cmd_help,     &cmd_version, NULL,
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
    str_append(&text, usage);
    append_usage(&text, command, sizeof usage - 1);
    str_appendf(&text, "\n\n%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    if (strstr(command->usage, "--"))
        str_append(&text, "The manual page brig(1) describes the options.\n");
    return message_print(&text, err);
}

int help_print_version(struct brig_error *err)
{
    autostr struct str text = {0};
    str_appendf(&text, "brig %s\n", brig_version());
    return message_print(&text, err);
}

/* ---- Completions, from the table of options and existing files ---- */

#define COMPLETE_NAME_MAX 64 /* of an option */

/* The state of a completion. */
struct completion {
    struct str out;
    char before[COMPLETE_NAME_MAX]; /* the part of the word before the value: "--mode=" */
    const char *typed;              /* the value so far */
    bool paths;                     /* words that are not options are paths, not a command */
    struct identity identity;
    struct config_files files;
};

static void offer(struct completion *c, const char *text, size_t length, const char *end)
{
    if (strlen(c->typed) > length || strncmp(text, c->typed, strlen(c->typed)) != 0)
        return;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            return;
    str_appendf(&c->out, "%s%.*s%s\n", c->before, (int)length, text, end);
}

static void offer_choices(struct completion *c, const char *choices)
{
    while (*choices != '\0') {
        size_t length = strcspn(choices, "|");
        offer(c, choices, length, " ");
        choices += length + (choices[length] == '|');
    }
}

/* ---- Files ---- */

/* Offers the names in a directory that end with the suffix, without it. */
static void offer_stems(struct completion *c, const char *dir, const char *suffix)
{
    autodir DIR *list = opendir(dir);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        size_t length = strlen(entry->d_name);
        size_t end = strlen(suffix);
        if (length > end && entry->d_name[0] != '.' &&
            strcmp(entry->d_name + length - end, suffix) == 0)
            offer(c, entry->d_name, length - end, " ");
    }
}

static void offer_file(struct completion *c, int dir_fd, const char *prefix, const char *name,
                       bool directories)
{
    struct stat info;
    bool is_directory = fstatat(dir_fd, name, &info, 0) == 0 && S_ISDIR(info.st_mode);
    autofree char *path = NULL;
    if ((is_directory || !directories) && str_make(&path, NULL, prefix, name) == 0)
        offer(c, path, strlen(path), is_directory ? "/" : " ");
}

/* Offers files whose path begins as typed; relative paths are relative to base. */
static void offer_files(struct completion *c, const char *base, bool directories)
{
    const char *slash = strrchr(c->typed, '/');
    size_t length = slash ? (size_t)(slash - c->typed) + 1 : 0;
    autofree char *prefix = strndup(c->typed, length);
    autofree char *dir = NULL;
    bool absolute = c->typed[0] == '/';
    int status =
        prefix ? str_make(&dir, NULL, absolute ? "" : base, absolute ? "" : "/", prefix) : -1;
    autodir DIR *list = status < 0 ? NULL : opendir(dir);
    bool hidden = c->typed[length] == '.';
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (name[0] == '.') != hidden)
            continue;
        offer_file(c, dirfd(list), prefix, name, directories);
    }
}

static void offer_variables(struct completion *c, const char *end)
{
    for (char **entry = environ; *entry; entry++)
        offer(c, *entry, strcspn(*entry, "="), end);
}

/* ---- Words ---- */

static void offer_options(struct completion *c)
{
    for (int i = 0; i < OPTION_COUNT_; i++) {
        char name[COMPLETE_NAME_MAX];
        (void)str_fill(name, sizeof name, "--", option_rows[i].long_name);
        offer(c, name, strlen(name), " ");
    }
}

static void offer_value(struct completion *c, const struct option_row *row)
{
    switch (row->kind) {
    case OPTION_KIND_NONE:
    case OPTION_KIND_TEXT:
        break;
    case OPTION_KIND_CHOICE:
    case OPTION_KIND_SWITCH:
        offer_choices(c, row->metavar);
        break;
    case OPTION_KIND_PATH:
    case OPTION_KIND_FILE:
        offer_files(c, ".", false);
        break;
    case OPTION_KIND_DIRECTORY:
        offer_files(c, ".", true);
        break;
    case OPTION_KIND_CONF:
        if (strchr(c->typed, '/'))
            offer_files(c, ".", false);
        else
            offer_stems(c, c->files.dir, ".conf");
        break;
    case OPTION_KIND_JAIL:
        offer_stems(c, c->files.storage, ".jail");
        break;
    case OPTION_KIND_HOME:
        offer_files(c, c->files.home, false);
        break;
    case OPTION_KIND_VARIABLE:
        offer_variables(c, " ");
        break;
    case OPTION_KIND_ASSIGNMENT:
        offer_variables(c, "");
        break;
    }
}

/* If a word is an option with its value, returns the row and "--name=". */
static const struct option_row *split_word(const char *word, char before[COMPLETE_NAME_MAX])
{
    const char *equals = word[0] == '-' && word[1] == '-' ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : 0;
    const struct option_row *row = equals ? option_find_long(word + 2, length - 2) : NULL;
    if (!row || !row->metavar || length + 1 >= COMPLETE_NAME_MAX)
        return NULL;
    memcpy(before, word, length + 1);
    before[length + 1] = '\0';
    return row;
}

static void complete_last(struct completion *c, const struct option_row *row, const char *word,
                          int index)
{
    const struct option_row *joined = row ? NULL : split_word(word, c->before);
    c->typed = joined ? strchr(word, '=') + 1 : word;
    if (row || joined)
        offer_value(c, row ? row : joined);
    else if (word[0] == '-')
        offer_options(c);
    else if (c->paths)
        offer_files(c, ".", false);
    else
        str_appendf(&c->out, "_command_offset %d\n", index + 1);
}

/* Completes the words of `mask`, `held` and other verbs that take -j and paths, relative to
 * `base`. */
static void complete_jail_paths(struct completion *c, const char *before, const char *base)
{
    if (strcmp(before, "-j") == 0 || strcmp(before, "--jail") == 0)
        offer_stems(c, c->files.storage, ".jail");
    else if (c->typed[0] == '-')
        offer(c, "--jail", strlen("--jail"), " ");
    else
        offer_files(c, base, false);
}

/* Completes the words of a verb that takes no options of a run; false if it does. */
static bool complete_verb(struct completion *c, enum command_words kind, int count,
                          char *const *words)
{
    const char *before = count > 1 ? words[count - 2] : "";
    c->typed = count > 0 ? words[count - 1] : "";
    switch (kind) {
    case COMMAND_WORDS_NONE:
    case COMMAND_WORDS_RUN:
    case COMMAND_WORDS_PATHS:
        return false;
    case COMMAND_WORDS_MASKS:
        complete_jail_paths(c, before, c->files.home);
        return true;
    case COMMAND_WORDS_JAIL_PATHS:
        complete_jail_paths(c, before, ".");
        return true;
    case COMMAND_WORDS_JAIL_COMMAND:
        if (count > 2) {
            str_append(&c->out, "_command_offset 3\n");
            return true;
        }
        __attribute__((fallthrough));
    case COMMAND_WORDS_JAILS:
        offer_stems(c, c->files.storage, ".jail");
        return true;
    }
    return false;
}

/* The words before the last are parsed as the option parser does. */
static void complete_words(struct completion *c, int count, char *const *words)
{
    const struct command *verb = count > 1 ? command_find(words[0]) : NULL;
    enum command_words kind = verb ? verb->words : COMMAND_WORDS_NONE;
    if (count == 0 || complete_verb(c, kind, count, words))
        return;
    c->paths = kind == COMMAND_WORDS_PATHS;
    int from = c->paths || kind == COMMAND_WORDS_RUN ? 1 : 0, last = count - 1, status;
    struct options_cursor cursor = {.argc = last, .argv = words, .next = from};
    struct option_use use;
    do {
        use = (struct option_use){0};
        status = options_next(&cursor, &use, NULL);
    } while (status > 0);
    bool awaits_value = status < 0 && use.row && cursor.next == last;
    if (status < 0 && !awaits_value)
        return;
    if (status == 0 && !c->paths && (cursor.ended || cursor.next < last)) {
        /* The verbs take nothing that could be completed here. */
        if (from > 0 || cursor.next > 0 || !verb)
            str_appendf(&c->out, "_command_offset %d\n", cursor.next + 1);
        return;
    }
    complete_last(c, awaits_value ? use.row : NULL, words[last], last);
}

int complete_print(int count, char *const *words)
{
    struct completion c = {.typed = ""};
    char cwd[PATH_LENGTH_MAX + 1] = "/";
    (void)!getcwd(cwd, sizeof cwd);
    identity_find(&c.identity);
    int status = config_files_find(&c.files, &c.identity, cwd, NULL);
    if (status == 0) {
        identity_enter(&c.identity);
        complete_words(&c, count, words);
        identity_leave(&c.identity);
    }
    if (status == 0 && c.out.length > 0)
        status = message_print(&c.out, NULL);
    str_done(&c.out);
    config_files_done(&c.files);
    return status < 0 ? APP_FAILED : 0;
}

/* ---- Verbs ---- */

static int run_help(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    if (argc == 1)
        return help_print(err);
    const struct command *command = command_find(argv[1]);
    if (command && argc == 2)
        return help_print_command(command, err);
    if (command)
        return command_refuse(app, argc, argv, 2, err);
    struct nearest nearest;
    command_nearest(argv[1], &nearest);
    return nearest.best[0]
               ? brig_fail(err, BRIG_E_INVALID, 0, "there is no command '%s'. Did you mean '%s'?",
                           str_shown(argv[1]).text, nearest.best)
               : brig_fail(err, BRIG_E_INVALID, 0,
                           "there is no command '%s'. See brig help; to run a program "
                           "called help: brig run help %s",
                           str_shown(argv[1]).text, str_shown(argv[1]).text);
}

const struct command cmd_help = {
    .name = "help",
    .summary = "print this help, or the usage of a command",
    .usage = "[COMMAND]",
    .run = run_help,
};

static int run_version(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    return argc > 1 ? command_refuse(app, argc, argv, 1, err) : help_print_version(err);
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "",
    .run = run_version,
};
