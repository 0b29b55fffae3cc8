/* SPDX-License-Identifier: MIT */
/* The facts of profiles, and the profiles that are part of brig. */
#include "cli/settings/profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/conf.h"

#define BLANKS " \t"
#define FACTS_MAX 1024

static const struct {
    const char *name;
    bool adds;
} words[] = {
#define PROFILE_WORD_ROW(id, name, adds, says) [PROFILE_##id] = {name, adds},
    PROFILE_WORDS(PROFILE_WORD_ROW)
#undef PROFILE_WORD_ROW
};

static const struct profile_text texts[] = {
#include "profiles.h"
};

void profile_done(struct profile *profile)
{
    for (size_t i = 0; i < profile->count; i++)
        free(profile->facts[i].value);
    free(profile->facts);
    *profile = (struct profile){0};
}

int profile_word(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (strcmp(words[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void remove_all(struct profile *profile, enum profile_word word)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->facts[i].word == word)
            free(profile->facts[i].value);
        else
            profile->facts[kept++] = profile->facts[i];
    }
    profile->count = kept;
}

int profile_add(struct profile *profile, enum profile_word word, const char *value,
                struct brig_error *err)
{
    bool empty = !value || *value == '\0';
    if (empty || !words[word].adds)
        remove_all(profile, word);
    if (empty)
        return 0;
    if (profile->count == FACTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "there are too many lines '%s': at most %d",
                         words[word].name, FACTS_MAX);
    if (!array_grow(&profile->facts, profile->count))
        return brig_fail_nomem(err);
    struct profile_fact *fact = &profile->facts[profile->count];
    *fact = (struct profile_fact){.word = word};
    int status = str_copy(value, &fact->value, err);
    profile->count += status == 0;
    return status;
}

const char *profile_next(const struct profile *profile, enum profile_word word, size_t *at)
{
    while (*at < profile->count) {
        const struct profile_fact *fact = &profile->facts[(*at)++];
        if (fact->word == word)
            return fact->value;
    }
    return NULL;
}

const char *profile_get(const struct profile *profile, enum profile_word word)
{
    size_t at = 0;
    return profile_next(profile, word, &at);
}

bool profile_next_word(const struct profile *profile, enum profile_word word, size_t *at,
                       size_t *offset, char *buffer, size_t size)
{
    for (; *at < profile->count; ++*at, *offset = 0) {
        const struct profile_fact *fact = &profile->facts[*at];
        if (fact->word != word)
            continue;
        const char *rest = fact->value + *offset;
        rest += strspn(rest, BLANKS);
        size_t length = strcspn(rest, BLANKS);
        *offset = (size_t)(rest + length - fact->value);
        if (length == 0)
            continue;
        (void)snprintf(buffer, size, "%.*s", (int)length, rest);
        return true;
    }
    return false;
}

bool profile_next_key(const struct profile *profile, size_t *at, struct profile_key *ret_key)
{
    const char *line;
    while ((line = profile_next(profile, PROFILE_KEY, at))) {
        *ret_key = (struct profile_key){0};
        if (sscanf(line, "%127s %63s %127s", ret_key->name, ret_key->preset, ret_key->placeholder) >
            0)
            return true;
    }
    return false;
}

bool profile_placeholder(const struct profile *profile, const char *variable,
                         char ret_name[static PROFILE_VARIABLE_MAX])
{
    struct profile_key key;
    size_t at = 0;
    while (profile_next_key(profile, &at, &key))
        if (key.placeholder[0] && strcmp(key.name, variable) == 0)
            return str_fill(ret_name, PROFILE_VARIABLE_MAX, key.placeholder);
    return false;
}

/* ---- The profiles that are part of brig ---- */

const struct profile_text *profile_texts(size_t *ret_count)
{
    *ret_count = ARRAY_LENGTH(texts);
    return texts;
}

const struct profile_text *profile_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (strcmp(texts[i].name, name) == 0)
            return &texts[i];
    return NULL;
}

static int take_fact(void *context, const struct conf_directive *directive, struct brig_error *err)
{
    int word = profile_word(directive->name);
    return word < 0 ? 0 : profile_add(context, (enum profile_word)word, directive->value, err);
}

int profile_load(const struct profile_text *text, struct conf_source *ret_source,
                 struct brig_error *err)
{
    autosource struct conf_source source = {.length = strlen(text->text)};
    int status = str_make(&source.name, err, "profile ", text->name);
    if (status == 0)
        status = str_copy(text->text, &source.text, err);
    if (status < 0)
        return status;
    *ret_source = source;
    source = (struct conf_source){0};
    return 1;
}

int profile_read(const struct profile_text *text, struct profile *ret_profile,
                 struct brig_error *err)
{
    const struct conf_hooks hooks = {.context = ret_profile, .directive = take_fact};
    autosource struct conf_source source = {0};
    (void)str_fill(ret_profile->name, sizeof ret_profile->name, text->name);
    int status = profile_load(text, &source, err);
    return status < 0 ? status : conf_read(&source, &hooks, err);
}

int profile_read_file(const char *path, struct profile *profile, struct brig_error *err)
{
    const struct conf_hooks hooks = {.context = profile, .directive = take_fact};
    autosource struct conf_source source = {0};
    int status = conf_load(AT_FDCWD, NULL, path, true, &source, err);
    return status <= 0 ? status : conf_read(&source, &hooks, err);
}

/* Whether a profile is for this command. */
static bool serves(const struct profile_text *text, const char *command)
{
    struct profile profile = {0};
    char name[PROFILE_NAME_MAX];
    size_t at = 0, offset = 0;
    bool found = false;
    if (strcmp(text->name, command) != 0 && !strstr(text->text, command))
        return false;
    if (profile_read(text, &profile, NULL) == 0) {
        found = !profile_get(&profile, PROFILE_COMMANDS) && strcmp(text->name, command) == 0;
        while (!found &&
               profile_next_word(&profile, PROFILE_COMMANDS, &at, &offset, name, sizeof name))
            found = strcmp(name, command) == 0;
    }
    profile_done(&profile);
    return found;
}

const struct profile_text *profile_of_command(const char *command)
{
    const char *slash = strrchr(command, '/');
    const char *name = slash ? slash + 1 : command;
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (serves(&texts[i], name))
            return &texts[i];
    return NULL;
}

int profile_list_state(struct str *list, struct brig_error *err)
{
    static const char *const caches[] = {".cache", ".local/state"};
    char word[PATH_LENGTH_MAX + 1];
    size_t count = 0;
    (void)profile_texts(&count);
    for (size_t i = 0; i < ARRAY_LENGTH(caches); i++)
        str_list_add(list, caches[i]);
    for (size_t i = 0; i < count; i++) {
        struct profile profile = {0};
        size_t at = 0, offset = 0;
        int status = profile_read(&texts[i], &profile, err);
        while (status == 0 &&
               profile_next_word(&profile, PROFILE_STATE, &at, &offset, word, sizeof word))
            str_list_add(list, word);
        profile_done(&profile);
        if (status < 0)
            return status;
    }
    return list->failed ? brig_fail_nomem(err) : 0;
}
