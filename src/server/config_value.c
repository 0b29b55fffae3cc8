/* SPDX-License-Identifier: MIT */
/* One value of the configuration: from text to its place, and back. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/config.h"
#include "server/config_keys.h"

static void *place_of(const struct config_key *key, void *base)
{
    return (char *)base + key->offset;
}

static const void *value_of(const struct config_key *key, const void *base)
{
    return (const char *)base + key->offset;
}

static void store_integer(const struct config_key *key, void *base, uint64_t value)
{
    void *place = place_of(key, base);
    switch (key->width) {
    case sizeof(uint16_t):
        *(uint16_t *)place = (uint16_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)place = (uint32_t)value;
        break;
    default:
        *(uint64_t *)place = value;
    }
}

static uint64_t load_integer(const struct config_key *key, const void *base)
{
    const void *place = value_of(key, base);
    switch (key->width) {
    case sizeof(uint16_t):
        return *(const uint16_t *)place;
    case sizeof(uint32_t):
        return *(const uint32_t *)place;
    default:
        return *(const uint64_t *)place;
    }
}

/* ---- What is allowed, in words ---- */

static void print_duration(uint64_t ms, struct str *out)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    if (ms == 0) {
        str_append(out, "0s");
        return;
    }
    size_t i = 0;
    while (ms % units[i].ms != 0)
        i++;
    str_appendf(out, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
}

static void print_size(uint64_t bytes, struct str *out)
{
    static const char units[] = "\0kMGT";
    size_t i = 0;
    while (i < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        i++;
    }
    str_appendf(out, "%" PRIu64, bytes);
    if (units[i])
        str_append_char(out, units[i]);
}

static void print_number(uint64_t number, struct str *out)
{
    str_appendf(out, "%" PRIu64, number);
}

static void describe_range(const struct config_key *key, const char *kind,
                           void (*print)(uint64_t, struct str *), struct str *out)
{
    str_appendf(out, "%s from ", kind);
    print(key->min, out);
    str_append(out, " to ");
    print(key->max, out);
}

static void describe_choices(const struct config_key *key, struct str *out)
{
    str_append(out, "one of ");
    for (size_t i = 0; key->choices[i]; i++)
        str_appendf(out, "%s%s", i ? ", " : "", key->choices[i]);
}

void config_value_describe(const struct config_key *key, struct str *out)
{
    switch (key->type) {
    case CONFIG_TEXT:
        str_append(out, "a text");
        return;
    case CONFIG_PATH:
        str_append(out, "an absolute path");
        return;
    case CONFIG_NUMBER:
        describe_range(key, "a whole number", print_number, out);
        return;
    case CONFIG_SIZE:
        describe_range(key, "a size", print_size, out);
        return;
    case CONFIG_DURATION:
        describe_range(key, "a duration", print_duration, out);
        return;
    case CONFIG_BOOLEAN:
        str_append(out, "true or false");
        return;
    case CONFIG_CHOICE:
        describe_choices(key, out);
        return;
    case CONFIG_LIST:
        str_appendf(out, "a list of at most %d", CONFIG_LIST_MAX);
        return;
    case CONFIG_WORDS:
        str_appendf(out, "a list of at most %" PRIu64, key->max);
        return;
    }
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
    store_integer(key, base, value);
    return 0;
}

static int set_boolean(const struct config_key *key, void *base, const char *text,
                       struct brig_error *err)
{
    bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return refuse(key, text, err);
    *(bool *)place_of(key, base) = value;
    return 0;
}

static int set_choice(const struct config_key *key, void *base, const char *text,
                      struct brig_error *err)
{
    for (unsigned i = 0; key->choices[i]; i++) {
        if (strcmp(key->choices[i], text) == 0) {
            store_integer(key, base, i);
            return 0;
        }
    }
    return refuse(key, text, err);
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
    struct config_list *list = place_of(key, base);
    const char **items = key->type == CONFIG_LIST ? list->items : place_of(key, base);
    size_t limit = key->type == CONFIG_LIST ? CONFIG_LIST_MAX : key->max, count = 0;
    while (key->type == CONFIG_LIST ? count < list->count : items[count] != NULL)
        count++;
    if (count == limit)
        return brig_fail(err, BRIG_E_INVALID, 0, "it takes at most %zu items", limit);
    const char *copy = arena_strdup(arena, text);
    if (!copy)
        return brig_fail_nomem(err);
    items[count] = copy;
    if (key->type == CONFIG_LIST)
        list->count++;
    return 0;
}

int config_value_set(const struct config_key *key, void *base, struct arena *arena,
                     const char *text, struct brig_error *err)
{
    /* An empty text leaves a value out, but it is an item of a list. */
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
        return set_boolean(key, base, text, err);
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

/* Double quotes, inside which every character can be written. */
static void print_text(const char *text, struct str *out)
{
    str_append_char(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            str_append_char(out, '\\');
        if (*c < ' ' || *c == 0x7f)
            str_appendf(out, "\\x%02x", *c);
        else
            str_append_char(out, (char)*c);
    }
    str_append_char(out, '"');
}

static void print_items(const char *const *items, size_t count, struct str *out)
{
    str_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        str_append(out, i ? ", " : "");
        print_text(items[i], out);
    }
    str_append_char(out, ']');
}

static void print_words(const char *const *words, struct str *out)
{
    size_t count = 0;
    while (words[count])
        count++;
    print_items(words, count, out);
}

void config_value_print(const struct config_key *key, const void *base, struct str *out)
{
    const void *place = value_of(key, base);
    const struct config_list *list = place;
    const char *text;
    switch (key->type) {
    case CONFIG_TEXT:
    case CONFIG_PATH:
        text = *(const char *const *)place;
        print_text(text ? text : "", out);
        return;
    case CONFIG_NUMBER:
        print_number(load_integer(key, base), out);
        return;
    case CONFIG_SIZE:
        print_size(load_integer(key, base), out);
        return;
    case CONFIG_DURATION:
        print_duration(load_integer(key, base), out);
        return;
    case CONFIG_BOOLEAN:
        str_append(out, *(const bool *)place ? "true" : "false");
        return;
    case CONFIG_CHOICE:
        str_append(out, key->choices[load_integer(key, base)]);
        return;
    case CONFIG_LIST:
        print_items(list->items, list->count, out);
        return;
    case CONFIG_WORDS:
        print_words(place, out);
        return;
    }
}
