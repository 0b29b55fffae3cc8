/* SPDX-License-Identifier: MIT */
/* Completes options and their values by the table of options and by what files there are. */
#include "complete.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/command.h"
#include "cli/config_files.h"
#include "cli/identity.h"
#include "cli/options.h"

#define COMPLETE_NAME_MAX 64 /* of an option */

/* What is being completed. */
struct completion {
    struct str out;
    char before[COMPLETE_NAME_MAX]; /* what stands before the value in the same word: "--mode=" */
    const char *typed;              /* of the value so far */
    bool paths;                     /* what are no options are paths, and no command */
    struct identity identity;
    struct config_files files;
};

static void offer(struct completion *c, const char *text, size_t length, const char *end)
{
    if (strncmp(text, c->typed, strlen(c->typed)) != 0)
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
        char word[64];
        if (length < sizeof word) {
            memcpy(word, choices, length);
            word[length] = '\0';
            offer(c, word, length, " ");
        }
        choices += length + (choices[length] == '|');
    }
}

/* ---- Files ---- */

/* The names in a directory that end so, without the end. */
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
    autostr struct str path = {0};
    str_appendf(&path, "%s%s", prefix, name);
    if (!path.failed && (is_directory || !directories))
        offer(c, path.data, path.length, is_directory ? "/" : " ");
}

/* Files whose path begins as typed; a relative one begins at base. */
static void offer_files(struct completion *c, const char *base, bool directories)
{
    const char *slash = strrchr(c->typed, '/');
    size_t length = slash ? (size_t)(slash - c->typed) + 1 : 0;
    autostr struct str prefix = {0};
    autostr struct str dir = {0};
    str_append_bytes(&prefix, c->typed, length);
    str_appendf(&dir, "%s%s%s", c->typed[0] == '/' ? "" : base, c->typed[0] == '/' ? "" : "/",
                prefix.data ? prefix.data : "");
    autodir DIR *list = prefix.failed || dir.failed ? NULL : opendir(dir.data);
    bool hidden = c->typed[length] == '.';
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (name[0] == '.') != hidden)
            continue;
        offer_file(c, dirfd(list), prefix.data ? prefix.data : "", name, directories);
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
        char name[COMPLETE_NAME_MAX] = "--";
        strncat(name, option_rows[i].long_name, sizeof name - 3);
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

/* The option whose value the next word is, or NULL. */
static const struct option_row *awaits_value(const char *word)
{
    const struct option_row *row = NULL;
    if (word[0] == '-' && word[1] == '-')
        row = strchr(word, '=') ? NULL : option_find_long(word + 2, strlen(word + 2));
    else if (word[0] == '-')
        for (const char *letter = word + 1; *letter != '\0'; letter++) {
            row = option_find_short(*letter);
            if (row && row->metavar)
                return letter[1] == '\0' ? row : NULL;
        }
    return row && row->metavar ? row : NULL;
}

/* "--name=" of a word that is an option with its value, whose row is then returned. */
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

/* What follows a verb, if it is one. */
static enum command_words words_of(const char *word)
{
    const struct command *command = command_find(word);
    return command ? command->words : COMMAND_WORDS_NONE;
}

/* Behind a verb that takes no options of a run; false if the words are for others. */
static bool complete_jail(struct completion *c, int count, char *const *words)
{
    enum command_words kind = count > 1 ? words_of(words[0]) : COMMAND_WORDS_NONE;
    bool command = kind == COMMAND_WORDS_JAIL_COMMAND;
    if (kind != COMMAND_WORDS_JAILS && !command)
        return false;
    c->typed = words[count - 1];
    if (command && count > 2)
        str_append(&c->out, "_command_offset 3\n");
    else
        offer_stems(c, c->files.storage, ".jail");
    return true;
}

/* Behind `mask`, `held` and others that take -j. */
static bool complete_jail_paths(struct completion *c, int count, char *const *words)
{
    enum command_words kind = count > 1 ? words_of(words[0]) : COMMAND_WORDS_NONE;
    if (kind != COMMAND_WORDS_MASKS && kind != COMMAND_WORDS_JAIL_PATHS)
        return false;
    const char *before = words[count - 2];
    c->typed = words[count - 1];
    if (strcmp(before, "-j") == 0 || strcmp(before, "--jail") == 0)
        offer_stems(c, c->files.storage, ".jail");
    else if (c->typed[0] == '-')
        offer(c, "--jail", strlen("--jail"), " ");
    else
        offer_files(c, kind == COMMAND_WORDS_MASKS ? c->files.home : ".", false);
    return true;
}

static void complete_words(struct completion *c, int count, char *const *words)
{
    const struct option_row *row = NULL;
    if (complete_jail(c, count, words) || complete_jail_paths(c, count, words))
        return;
    enum command_words kind = count > 1 ? words_of(words[0]) : COMMAND_WORDS_NONE;
    c->paths = kind == COMMAND_WORDS_PATHS;
    int from = c->paths || kind == COMMAND_WORDS_RUN ? 1 : 0;
    for (int i = from; i < count - 1; i++) {
        bool is_value = row != NULL;
        row = is_value ? NULL : awaits_value(words[i]);
        bool ends = !is_value && strcmp(words[i], "--") == 0;
        if (c->paths || (!ends && (is_value || words[i][0] == '-')))
            continue;
        /* The verbs take nothing that could be completed here. */
        if (ends || i > from || from > 0 || !command_find(words[i]))
            str_appendf(&c->out, "_command_offset %d\n", i + 1 + ends);
        return;
    }
    if (count > 0)
        complete_last(c, row, words[count - 1], count - 1);
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
    if (status == 0 && !c.out.failed && c.out.length > 0)
        status = write_all(STDOUT_FILENO, c.out.data, c.out.length);
    str_done(&c.out);
    config_files_done(&c.files);
    return status < 0 ? APP_FAILED : 0;
}
