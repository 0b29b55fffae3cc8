/* SPDX-License-Identifier: MIT */
/* Completions from the tables of options, verbs, presets and profiles, and from the user's files. */
#include "cli/complete.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/credentials/inject.h"
#include "cli/help.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/run/image.h"
#include "cli/settings/config.h"
#include "cli/settings/options.h"
#include "cli/settings/profile.h"
#include "image/images.h"
#include "policy/net_rules.h"

#define COMPLETE_NAME_MAX 64 /* of an option */
/* Begins a line that is not a candidate. No candidate begins with it, whatever a file is called:
 * shells evaluate the number after it. */
#define DIRECTIVE "\t"

/* The state of a completion. */
struct completion {
    struct str out;
    const char *word; /* the last word */
    size_t before;    /* bytes of the word before the value: "--mode=" */
    struct identity identity;
    struct config_files files;
};

/* The part of the word that is to be completed. */
static const char *typed(const struct completion *c)
{
    return c->word + c->before;
}

/* Offers a text of this length if it begins as typed. `end` is " " if it is complete. */
static void offer_about(struct completion *c, const char *text, size_t length, const char *end,
                        const char *about)
{
    if (strlen(typed(c)) > length || strncmp(text, typed(c), strlen(typed(c))) != 0)
        return;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            return;
    str_append_bytes(&c->out, c->word, c->before);
    str_append_bytes(&c->out, text, length);
    str_concat(&c->out, end, about ? "\t" : "", about ? about : "", "\n");
}

static void offer(struct completion *c, const char *text, const char *end)
{
    offer_about(c, text, strlen(text), end, NULL);
}

static void offer_choices(struct completion *c, const char *choices, size_t length)
{
    for (size_t at = 0, end; at < length; at = end + 1) {
        end = at;
        while (end < length && choices[end] != '|')
            end++;
        offer_about(c, choices + at, end - at, " ", NULL);
    }
}

/* ---- Files and names of jails ---- */

/* Lets the shell offer paths. */
static void offer_paths(struct completion *c, const char *kind)
{
    str_appendf(&c->out, DIRECTIVE "%s %zu\n", kind, c->before);
}

/* Lets the shell complete a command that begins with this word. */
static void offer_command(struct completion *c, int word)
{
    str_appendf(&c->out, DIRECTIVE "_command_offset %d\n", word);
}

/* Offers the names in a directory that end with the suffix, without it. */
static void offer_stems(struct completion *c, const char *dir, const char *suffix, const char *end)
{
    autodir DIR *list = opendir(dir);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        size_t length = strlen(entry->d_name), rest = strlen(suffix);
        char name[sizeof entry->d_name + 1];
        if (length <= rest || entry->d_name[0] == '.' || !str_ends_with(entry->d_name, suffix))
            continue;
        (void)str_fill(name, sizeof name, entry->d_name);
        (void)str_fill(name + length - rest, sizeof name - (length - rest), end);
        offer(c, name, strcmp(end, "") == 0 ? " " : "");
    }
}

static void offer_jails(struct completion *c)
{
    offer_stems(c, c->files.storage, ".jail", "");
}

static int offer_image(void *context, const struct image_record *record, struct brig_error *err)
{
    (void)err;
    if (record->name)
        offer(context, record->name, " ");
    return 0;
}

static void offer_images(struct completion *c)
{
    autoimages struct images store = IMAGES_INIT;
    char path[PATH_LENGTH_MAX + 1];
    if (c->files.storage && image_store_path(c->files.storage, path) &&
        images_open(path, IMAGES_READ, &store, NULL) == 0)
        (void)images_each(&store, offer_image, c, NULL);
}

/* Offers files in the home directory by their path relative to it, which the shell cannot do. */
static void offer_home_files(struct completion *c)
{
    const char *slash = strrchr(typed(c), '/');
    size_t length = slash ? (size_t)(slash - typed(c)) + 1 : 0;
    autofree char *prefix = strndup(typed(c), length);
    autofree char *dir = NULL;
    bool hidden = typed(c)[length] == '.';
    int status = prefix ? str_make(&dir, NULL, c->files.home, "/", prefix) : -1;
    autodir DIR *list = status < 0 ? NULL : opendir(dir);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        struct stat info;
        autofree char *path = NULL;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (name[0] == '.') != hidden)
            continue;
        bool directory = fstatat(dirfd(list), name, &info, 0) == 0 && S_ISDIR(info.st_mode);
        if (str_make(&path, NULL, prefix, name) == 0)
            offer(c, path, directory ? "/" : " ");
    }
}

/* A mask is relative to the home directory, or absolute, or begins with ./ or ../. */
static void offer_masks(struct completion *c)
{
    if (typed(c)[0] == '/' || str_starts_with(typed(c), "./") || str_starts_with(typed(c), "../"))
        offer_paths(c, "_files");
    else
        offer_home_files(c);
}

static void offer_variables(struct completion *c, const char *end)
{
    for (char **entry = environ; *entry; entry++)
        offer_about(c, *entry, strcspn(*entry, "="), end, NULL);
}

/* ---- Presets and profiles ---- */

static void offer_destinations(struct completion *c)
{
    size_t count = 0;
    const struct net_preset *presets = net_presets(&count);
    for (size_t i = 0; i < count; i++) {
        offer_about(c, presets[i].name, strlen(presets[i].name), " ", presets[i].summary);
        char mirrors[NET_PRESET_NAME_MAX + sizeof "+mirrors"];
        (void)str_fill(mirrors, sizeof mirrors, presets[i].name, "+mirrors");
        if (presets[i].mirrors != 0 && str_starts_with(typed(c), presets[i].name))
            offer_about(c, mirrors, strlen(mirrors), " ", "and the mirrors of your configuration");
    }
    offer(c, NET_HOST_NAME ":", "");
}

/* Offers the names of profiles; with `agents` only of programs that log in. */
static void offer_profiles(struct completion *c, bool agents)
{
    size_t count = 0;
    const struct profile_text *texts = profile_texts(&count);
    for (size_t i = 0; i < count; i++) {
        struct profile profile = {0};
        if (profile_read(&texts[i], &profile, NULL) == 0 &&
            (!agents || profile_get(&profile, PROFILE_LOGIN)))
            offer_about(c, texts[i].name, strlen(texts[i].name), " ",
                        profile_get(&profile, PROFILE_ABOUT));
        profile_done(&profile);
    }
}

/* Offers [bearer:|basic:USER:]SOURCE:WHERE. */
static void offer_secret_source(struct completion *c)
{
    const char *colon = strchr(typed(c), ':');
    if (str_starts_with(typed(c), "basic:") && colon)
        colon = strchr(colon + 1, ':');
    if (colon && (str_starts_with(typed(c), "bearer:") || str_starts_with(typed(c), "basic:")))
        c->before += (size_t)(colon + 1 - typed(c));
    const char *value = strchr(typed(c), ':');
    size_t before = value ? (size_t)(value + 1 - typed(c)) : 0;
    if (str_starts_with(typed(c), "env:")) {
        c->before += before;
        offer_variables(c, "");
    } else if (str_starts_with(typed(c), "file:")) {
        c->before += before;
        offer_paths(c, "_files");
    } else if (str_starts_with(typed(c), "oauth:")) {
        c->before += before;
        offer_profiles(c, true);
    } else {
        static const char *const words[] = {
            "env:", "file:", "fd:", "oauth:", "cmd:", "bearer:", "basic:"};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            offer(c, words[i], "");
    }
}

/* The value of --inject: a preset or a name, and further words after blanks. */
static void offer_credentials(struct completion *c)
{
    const char *blank = strrchr(typed(c), ' ');
    if (!blank) {
        const char *name, *about;
        for (size_t i = 0; (name = inject_preset_at(i, &about)); i++)
            offer_about(c, name, strlen(name), " ", about);
        return;
    }
    bool preset = typed(c)[0] == '@';
    c->before += (size_t)(blank + 1 - typed(c));
    const char *equals = strchr(typed(c), '=');
    if (equals)
        c->before += (size_t)(equals + 1 - typed(c));
    if (preset || equals)
        offer_secret_source(c);
    if (!equals) {
        static const char *const words[] = {"authorization=", "x-api-key=", "methods=", "path=",
                                            "upstream=",      "strip=",     "ca=",      "url="};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            offer(c, words[i], "");
    }
}

/* ---- Options of a run ---- */

static void offer_options(struct completion *c)
{
    for (int i = 0; i < OPTION_COUNT_; i++) {
        char name[COMPLETE_NAME_MAX];
        (void)str_fill(name, sizeof name, "--", option_rows[i].long_name);
        offer_about(c, name, strlen(name), " ", option_rows[i].help);
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
        offer_choices(c, row->metavar, strlen(row->metavar));
        break;
    case OPTION_KIND_PATH:
    case OPTION_KIND_FILE:
        offer_paths(c, "_files");
        break;
    case OPTION_KIND_DIRECTORY:
        offer_paths(c, "_directories");
        break;
    case OPTION_KIND_CONF:
        if (strchr(typed(c), '/'))
            offer_paths(c, "_files");
        else
            offer_stems(c, c->files.dir, ".conf", "");
        break;
    case OPTION_KIND_JAIL:
        offer_jails(c);
        break;
    case OPTION_KIND_HOME:
        offer_masks(c);
        break;
    case OPTION_KIND_VARIABLE:
        offer_variables(c, " ");
        break;
    case OPTION_KIND_ASSIGNMENT:
        offer_variables(c, "");
        break;
    case OPTION_KIND_DESTINATION:
        offer_destinations(c);
        break;
    case OPTION_KIND_CREDENTIAL:
        offer_credentials(c);
        break;
    case OPTION_KIND_IMAGE:
        offer_images(c);
        break;
    case OPTION_KIND_PROFILE:
        offer_profiles(c, false);
        offer_about(c, PROFILE_NONE, strlen(PROFILE_NONE), " ", "no profile");
        break;
    }
}

/* If a word is an option with its value, returns the row and the length of "--name=". */
static const struct option_row *split_word(const char *word, size_t *ret_before)
{
    const char *equals = word[0] == '-' && word[1] == '-' ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : 0;
    const struct option_row *row = equals ? option_find_long(word + 2, length - 2) : NULL;
    if (!row || !row->metavar)
        return NULL;
    *ret_before = length + 1;
    return row;
}

/* The last word, which is the value of `row` if that is not NULL. */
static void complete_last(struct completion *c, const struct option_row *row, bool paths, int index)
{
    const struct option_row *joined = row ? NULL : split_word(c->word, &c->before);
    if (row || joined) {
        offer_value(c, row ? row : joined);
    } else if (c->word[0] == '-') {
        offer_options(c);
    } else if (paths) {
        offer_paths(c, "_files");
    } else {
        for (const struct command *const *verb = commands; index == 0 && *verb; verb++)
            offer_about(c, (*verb)->name, strlen((*verb)->name), " ", (*verb)->summary);
        offer_command(c, index + 1);
    }
}

/* The words before the last are parsed as the option parser does. */
static void complete_run(struct completion *c, bool paths, int from, int count, char *const *words)
{
    int last = count - 1, status;
    struct options_cursor cursor = {.argc = last, .argv = words, .next = from};
    struct option_use use;
    do {
        use = (struct option_use){0};
        status = options_next(&cursor, &use, NULL);
    } while (status > 0);
    bool awaits_value = status < 0 && use.row && cursor.next == last;
    if (status < 0 && !awaits_value)
        return;
    if (status == 0 && !paths && (cursor.ended || cursor.next < last)) {
        offer_command(c, cursor.next + 1);
        return;
    }
    complete_last(c, awaits_value ? use.row : NULL, paths, last);
}

/* ---- Verbs ---- */

/* An option in the usage of a verb, "[--patch FILE]"; slices of it. */
struct usage_option {
    const char *name, *value;
    size_t length, value_length; /* 0: takes no value */
};

/* Finds the next option from *at on, which is moved behind it. */
static bool usage_next(const char **at, struct usage_option *ret)
{
    for (; **at != '\0'; (*at)++) {
        if ((*at)[0] != '[' && (*at)[0] != '|')
            continue;
        const char *name = *at + 1;
        size_t length = name[0] == '-' ? strcspn(name, " |]") : 0;
        if (length < 2 || (length == 2 && name[1] == '-'))
            continue;
        const char *value = name + length + 1;
        bool valued = name[length] == ' ' && value[0] != '[';
        *ret = (struct usage_option){
            .name = name,
            .length = length,
            .value = value,
            .value_length = valued ? strcspn(value, "]") : 0,
        };
        *at += length;
        return true;
    }
    return false;
}

static bool is_option(const struct usage_option *option, const char *word)
{
    bool jail = option->length == 2 && strncmp(option->name, "-j", 2) == 0;
    return (strlen(word) == option->length && strncmp(option->name, word, option->length) == 0) ||
           (jail && strcmp(word, "--jail") == 0);
}

/* Offers the options of a verb. */
static void offer_usage(struct completion *c, const struct command *verb)
{
    struct usage_option option;
    for (const char *at = verb->usage; usage_next(&at, &option);) {
        char about[HELP_OPTION_MAX] = "";
        bool jail = is_option(&option, "--jail");
        help_option(verb->name, option.name, option.length, about);
        offer_about(c, jail ? "--jail" : option.name, jail ? strlen("--jail") : option.length, " ",
                    about[0] ? about
                    : jail   ? "the jail"
                             : NULL);
    }
    offer_about(c, "--help", strlen("--help"), " ", "print the usage");
}

/* Offers values for the word before, if it is an option of the verb that takes one. */
static bool complete_usage_value(struct completion *c, const struct command *verb,
                                 const char *before)
{
    struct usage_option option;
    for (const char *at = verb->usage; usage_next(&at, &option);) {
        if (!is_option(&option, before) || option.value_length == 0)
            continue;
        if (strncmp(option.value, "NAME]", 5) == 0 || strncmp(option.value, "A B", 3) == 0)
            offer_jails(c);
        else if (strncmp(option.value, "FILE", 4) == 0)
            offer_paths(c, "_files");
        else if (memchr(option.value, '|', option.value_length))
            offer_choices(c, option.value, option.value_length);
        return true;
    }
    return false;
}

/* JAIL:PATH, or a path of the host. */
static void offer_copy(struct completion *c)
{
    if (strchr(c->word, ':') && !strchr(c->word, '/'))
        return;
    if (!strchr(c->word, '/'))
        offer_stems(c, c->files.storage, ".jail", ":");
    offer_paths(c, "_files");
}

static void complete_verb(struct completion *c, const struct command *verb, int count,
                          char *const *words)
{
    const char *usage = verb->usage;
    switch (verb->words) {
    case COMMAND_WORDS_NONE: /* a word that has to follow, as in "jai [--from DIR]" */
        if (count == 2 && usage[0] >= 'a' && usage[0] <= 'z')
            offer_about(c, usage, strcspn(usage, " "), " ", NULL);
        break;
    case COMMAND_WORDS_RUN:
    case COMMAND_WORDS_PATHS:
        break;
    case COMMAND_WORDS_JAIL_COMMAND:
        if (count == 2 || strcmp(words[1], "--pid") == 0)
            offer_jails(c);
        else
            offer_command(c, strcmp(words[2], "--") == 0 ? 4 : 3);
        break;
    case COMMAND_WORDS_JAILS:
        offer_jails(c);
        break;
    case COMMAND_WORDS_MASKS:
        offer_masks(c);
        break;
    case COMMAND_WORDS_FILES:
        offer_paths(c, "_files");
        break;
    case COMMAND_WORDS_COPY:
        offer_copy(c);
        break;
    case COMMAND_WORDS_IMAGES:
        if (count == 2)
            offer_choices(c, usage, strcspn(usage, " "));
        else if (strcmp(words[1], "load") == 0)
            offer_paths(c, "_files");
        else
            offer_images(c);
        break;
    case COMMAND_WORDS_PROFILES:
        offer_profiles(c, false);
        break;
    case COMMAND_WORDS_AGENTS:
        offer_profiles(c, true);
        break;
    case COMMAND_WORDS_TOPICS: {
        const char *name, *about;
        for (size_t i = 0; (name = help_topic_at(i, &about)); i++)
            offer_about(c, name, strlen(name), " ", about);
        break;
    }
    }
}

/* Options of mcp-wrap come before those of a run: the index of the first word after them. */
static int skip_usage(const struct command *verb, int count, char *const *words)
{
    int at = 1;
    for (bool found = true; found && at < count - 1;) {
        struct usage_option option;
        found = false;
        for (const char *usage = verb->usage; !found && usage_next(&usage, &option);)
            found = is_option(&option, words[at]);
        at += found ? 1 + (option.value_length > 0) : 0;
    }
    return at;
}

static void complete_words(struct completion *c, int count, char *const *words)
{
    if (count == 0)
        return;
    const struct command *verb = count > 1 ? command_find(words[0]) : NULL;
    c->word = words[count - 1];
    if (!verb) {
        complete_run(c, false, 0, count, words);
        return;
    }
    bool run = verb->words == COMMAND_WORDS_RUN || verb->words == COMMAND_WORDS_PATHS;
    if (complete_usage_value(c, verb, words[count - 2]))
        return;
    int from = skip_usage(verb, count, words);
    if (c->word[0] == '-' && (!run || from == count - 1) &&
        (verb->words != COMMAND_WORDS_JAIL_COMMAND || count == 2))
        offer_usage(c, verb);
    else if (!run)
        complete_verb(c, verb, count, words);
    if (run && from < count)
        complete_run(c, verb->words == COMMAND_WORDS_PATHS, from, count, words);
}

int complete_print(int count, char *const *words)
{
    struct completion c = {.word = ""};
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
