/* SPDX-License-Identifier: MIT */
/* One value of the configuration: from text, and back. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"

static const char *const booleans[] = {"false", "true", NULL};

static void *place_of(const struct config_key *key, const void *base)
{
    return (char *)(uintptr_t)base + key->offset;
}

/* Both supported architectures are little-endian, so one copy works for every width. */
static uint64_t load_integer(const struct config_key *key, const void *base)
{
    uint64_t value = 0;
    memcpy(&value, place_of(key, base), key->width);
    return value;
}

static const char *const *choices_of(const struct config_key *key)
{
    return key->type == CONFIG_BOOLEAN ? booleans : key->choices;
}

/* Returns the items of a list, their number and the maximum. */
static const char **items_of(const struct config_key *key, const void *base, size_t *ret_count,
                             size_t *ret_max)
{
    struct config_list *list = place_of(key, base);
    const char **words = place_of(key, base);
    *ret_max = key->type == CONFIG_LIST ? CONFIG_LIST_MAX : key->max;
    if (key->type == CONFIG_LIST) {
        *ret_count = list->count;
        return list->items;
    }
    for (*ret_count = 0; words[*ret_count];)
        ++*ret_count;
    return words;
}

/* ---- Describing ---- */

static void print_duration(uint64_t ms, struct str *out)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = ms == 0 ? 3 : 0;
    while (ms % units[i].ms != 0)
        i++;
    str_appendf(out, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
}

static void print_size(uint64_t bytes, struct str *out)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t i = 0;
    for (; i + 1 < ARRAY_LENGTH(units) && bytes != 0 && bytes % 1024 == 0; i++)
        bytes /= 1024;
    str_appendf(out, "%" PRIu64 "%s", bytes, units[i]);
}

static bool is_integer(const struct config_key *key)
{
    return key->type == CONFIG_NUMBER || key->type == CONFIG_SIZE || key->type == CONFIG_DURATION;
}

static void print_integer(const struct config_key *key, uint64_t value, struct str *out)
{
    if (key->type == CONFIG_SIZE)
        print_size(value, out);
    else if (key->type == CONFIG_DURATION)
        print_duration(value, out);
    else
        str_appendf(out, "%" PRIu64, value);
}

void config_value_describe(const struct config_key *key, struct str *out)
{
    static const char *const kinds[] = {
        [CONFIG_TEXT] = "a text",
        [CONFIG_PATH] = "an absolute path",
        [CONFIG_NUMBER] = "a whole number from ",
        [CONFIG_SIZE] = "a size from ",
        [CONFIG_DURATION] = "a duration from ",
        [CONFIG_BOOLEAN] = "true or false",
        [CONFIG_CHOICE] = "one of ",
        [CONFIG_LIST] = "a list of at most ",
        [CONFIG_WORDS] = "a list of at most ",
    };
    str_append(out, kinds[key->type]);
    if (is_integer(key)) {
        print_integer(key, key->min, out);
        str_append(out, " to ");
        print_integer(key, key->max, out);
    }
    for (size_t i = 0; key->type == CONFIG_CHOICE && key->choices[i]; i++)
        str_concat(out, i ? ", " : "", key->choices[i]);
    if (key->type == CONFIG_LIST || key->type == CONFIG_WORDS)
        str_append(out, str_number(key->type == CONFIG_LIST ? CONFIG_LIST_MAX : key->max).text);
}

static int refuse(const struct config_key *key, const char *text, struct brig_error *err)
{
    autostr struct str allowed = {0};
    config_value_describe(key, &allowed);
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not %s",
                     key->secret ? "***" : str_shown(text).text, allowed.data ? allowed.data : "");
}

/* ---- Setting ---- */

static int set_integer(const struct config_key *key, void *base, const char *text,
                       struct brig_error *err)
{
    uint64_t value = 0;
    int result = key->type == CONFIG_NUMBER
                     ? parse_uint(text, UINT64_MAX, PARSE_ZERO_OK, &value, NULL)
                 : key->type == CONFIG_SIZE ? parse_size(text, PARSE_ZERO_OK, &value, NULL)
                                            : parse_duration(text, PARSE_ZERO_OK, &value, NULL);
    if (result < 0 || value < key->min || value > key->max)
        return refuse(key, text, err);
    memcpy(place_of(key, base), &value, key->width);
    return 0;
}

static int set_choice(const struct config_key *key, void *base, const char *text,
                      struct brig_error *err)
{
    const char *const *choices = choices_of(key);
    uint64_t value = 0;
    while (choices[value] && strcmp(choices[value], text) != 0)
        value++;
    if (!choices[value])
        return refuse(key, text, err);
    memcpy(place_of(key, base), &value, key->width);
    return 0;
}

static int set_text(const struct config_key *key, void *base, struct arena *arena, const char *text,
                    struct brig_error *err)
{
    const char **place = place_of(key, base);
    if (text[0] == '\0' && key->initial)
        return brig_fail(err, BRIG_E_INVALID, 0, "it cannot be empty. Leave it out for '%s'",
                         key->initial);
    const char *copy = text[0] ? arena_strdup(arena, text) : NULL;
    if (text[0] && !copy)
        return brig_fail_nomem(err);
    *place = copy;
    return 0;
}

static int add_item(const struct config_key *key, void *base, struct arena *arena, const char *text,
                    struct brig_error *err)
{
    size_t count, max;
    const char **items = items_of(key, base, &count, &max);
    if (count == max)
        return brig_fail(err, BRIG_E_INVALID, 0, "it takes at most %zu items", max);
    const char *copy = arena_strdup(arena, text);
    if (!copy)
        return brig_fail_nomem(err);
    items[count] = copy;
    if (key->type == CONFIG_LIST)
        ((struct config_list *)place_of(key, base))->count++;
    return 0;
}

int config_value_set(const struct config_key *key, void *base, struct arena *arena,
                     const char *text, struct brig_error *err)
{
    /* An empty text means no value, except as an item of a list. */
    bool given = text[0] || key->type == CONFIG_LIST;
    int result = key->check && given ? key->check(text, err) : 0;
    if (result == 0 && key->type == CONFIG_PATH && text[0])
        result = config_check_path(text, err);
    if (result < 0)
        return result;
    switch (key->type) {
    case CONFIG_TEXT:
    case CONFIG_PATH:
        return set_text(key, base, arena, text, err);
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        return set_integer(key, base, text, err);
    case CONFIG_BOOLEAN:
    case CONFIG_CHOICE:
        return set_choice(key, base, text, err);
    case CONFIG_LIST:
    case CONFIG_WORDS:
        return add_item(key, base, arena, text, err);
    }
    return 0;
}

void config_value_clear(const struct config_key *key, void *base)
{
    memset(place_of(key, base), 0, key->width);
}

/* ---- Printing ---- */

/* In double quotes every character can be written. */
static void print_text(const char *text, struct str *out)
{
    str_append_char(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 0x7f)
            str_appendf(out, "\\x%02x", *c);
        else
            str_appendf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    }
    str_append_char(out, '"');
}

static void print_items(const struct config_key *key, const void *base, struct str *out)
{
    size_t count, max;
    const char **items = items_of(key, base, &count, &max);
    str_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        str_append(out, i ? ", " : "");
        print_text(items[i], out);
    }
    str_append_char(out, ']');
}

void config_value_print(const struct config_key *key, const void *base, struct str *out)
{
    const char *const *text = place_of(key, base);
    switch (key->type) {
    case CONFIG_TEXT:
    case CONFIG_PATH:
        print_text(*text ? *text : "", out);
        return;
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        print_integer(key, load_integer(key, base), out);
        return;
    case CONFIG_BOOLEAN:
    case CONFIG_CHOICE:
        str_append(out, choices_of(key)[load_integer(key, base)]);
        return;
    case CONFIG_LIST:
    case CONFIG_WORDS:
        print_items(key, base, out);
        return;
    }
}
