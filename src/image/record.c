/* SPDX-License-Identifier: MIT */
#include "image/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/layers.h"

#define FIRST_LINE "brig-image 1\n"
#define VALUE_MAX 131072 /* as long as a word of a command line can be */

void image_record_done(struct image_record *record)
{
    free(record->env.items);
    free(record->entrypoint.items);
    free(record->cmd.items);
    arena_done(&record->arena);
    *record = (struct image_record){0};
}

int image_words_add(struct image_record *record, struct image_words *words, const char *text,
                    struct brig_error *err)
{
    if (words->count == IMAGE_WORDS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the image has more than %d variables or words of a command",
                         IMAGE_WORDS_MAX);
    char **items = reallocarray(words->items, words->count + 2, sizeof *items);
    if (!items)
        return brig_fail_nomem(err);
    words->items = items;
    items[words->count] = arena_strdup(&record->arena, text);
    if (!items[words->count])
        return brig_fail_nomem(err);
    items[++words->count] = NULL;
    return 0;
}

/* ---- names ---- */

static bool is_digit_of(char c, const char *more)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(more, c));
}

/* The part before the tag: components with something in each, and ':' for a port in the first. */
static bool is_path(const char *name, size_t length)
{
    char before = '/';
    bool first = true;
    for (size_t i = 0; i < length; i++) {
        bool separator = name[i] == '/';
        if (!separator && !is_digit_of(name[i], first ? "._-:" : "._-"))
            return false;
        if (strchr("/:.-_", before) && strchr("/:.", name[i]))
            return false; /* an empty component, or "..", or one that begins with a dot */
        first = first && !separator;
        before = name[i];
    }
    return length > 0 && !strchr("/:.", before);
}

static bool is_tag(const char *tag)
{
    if (!*tag || *tag == '.' || *tag == '-' || strlen(tag) > 128)
        return false;
    for (; *tag; tag++)
        if (!is_digit_of(*tag, "._-") && (*tag < 'A' || *tag > 'Z'))
            return false;
    return true;
}

int image_check_name(const char *name, struct brig_error *err)
{
    const char *slash = strrchr(name, '/');
    const char *colon = strrchr(name, ':');
    bool tagged = colon && (!slash || colon > slash);
    size_t length = tagged ? (size_t)(colon - name) : strlen(name);
    if (strlen(name) <= IMAGE_NAME_MAX && is_path(name, length) && (!tagged || is_tag(colon + 1)))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is not the name of an image; write it like python:3.12-slim",
                     str_shown(name).text);
}

const char *image_short_name(const char *name)
{
    static const char registry[] = "docker.io/", library[] = "library/";
    if (!str_starts_with(name, registry))
        return name;
    name += sizeof registry - 1;
    return str_starts_with(name, library) ? name + sizeof library - 1 : name;
}

bool image_is_digest(const char *text)
{
    return strlen(text) == SHA256_HEX_LENGTH &&
           strspn(text, "0123456789abcdef") == SHA256_HEX_LENGTH;
}

/* ---- writing ---- */

static void write_value(struct str *out, const char *key, const char *value)
{
    if (!value)
        return;
    str_concat(out, key, " ");
    for (const unsigned char *at = (const unsigned char *)value; *at; at++)
        if (*at < 0x20 || *at == 0x7f || *at == '%')
            str_appendf(out, "%%%02x", *at);
        else
            str_append_char(out, (char)*at);
    str_append_char(out, '\n');
}

static void write_words(struct str *out, const char *key, const struct image_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        write_value(out, key, words->items[i]);
}

void image_record_write(const struct image_record *record, struct str *out)
{
    str_append(out, FIRST_LINE);
    write_value(out, "name", record->name);
    write_value(out, "digest", record->digest);
    write_value(out, "architecture", record->architecture);
    for (size_t i = 0; i < record->layer_count; i++)
        write_value(out, "layer", record->layers[i]);
    write_words(out, "env", &record->env);
    write_words(out, "entrypoint", &record->entrypoint);
    write_words(out, "cmd", &record->cmd);
    write_value(out, "workdir", record->workdir);
    write_value(out, "user", record->user);
}

/* ---- reading ---- */

static int bad_record(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "the record of an image is damaged");
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a value in place; NULL if it is not valid. */
static const char *decode(char *value)
{
    char *to = value;
    for (const char *from = value; *from; from++) {
        if ((unsigned char)*from < 0x20)
            return NULL;
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_value(from[1]), low = high < 0 ? -1 : hex_value(from[2]);
        if (low < 0 || (high == 0 && low == 0))
            return NULL;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return value;
}

/* A text that can be given once. */
static int set_once(struct image_record *record, char **text, const char *value,
                    struct brig_error *err)
{
    if (*text)
        return bad_record(err);
    *text = arena_strdup(&record->arena, value);
    return *text ? 0 : brig_fail_nomem(err);
}

static int add_layer(struct image_record *record, const char *value, struct brig_error *err)
{
    if (!image_is_digest(value) || record->layer_count == ROOT_LAYERS_MAX)
        return bad_record(err);
    return set_once(record, &record->layers[record->layer_count++], value, err);
}

/* A variable has a name that shells accept the bytes of, and a value. */
static int add_env(struct image_record *record, const char *value, struct brig_error *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return bad_record(err);
    return image_words_add(record, &record->env, value, err);
}

static int set_digest(struct image_record *record, const char *value, struct brig_error *err)
{
    return image_is_digest(value) ? set_once(record, &record->digest, value, err) : bad_record(err);
}

static int set_name(struct image_record *record, const char *value, struct brig_error *err)
{
    int result = image_check_name(value, err);
    return result < 0 ? result : set_once(record, &record->name, value, err);
}

static int take_line(struct image_record *record, const char *key, const char *value,
                     struct brig_error *err)
{
    if (strcmp(key, "name") == 0)
        return set_name(record, value, err);
    if (strcmp(key, "digest") == 0)
        return set_digest(record, value, err);
    if (strcmp(key, "architecture") == 0)
        return set_once(record, &record->architecture, value, err);
    if (strcmp(key, "layer") == 0)
        return add_layer(record, value, err);
    if (strcmp(key, "env") == 0)
        return add_env(record, value, err);
    if (strcmp(key, "entrypoint") == 0)
        return image_words_add(record, &record->entrypoint, value, err);
    if (strcmp(key, "cmd") == 0)
        return image_words_add(record, &record->cmd, value, err);
    if (strcmp(key, "workdir") == 0)
        return set_once(record, &record->workdir, value, err);
    if (strcmp(key, "user") == 0)
        return set_once(record, &record->user, value, err);
    return bad_record(err);
}

static int take_lines(struct image_record *record, char *text, struct brig_error *err)
{
    int result = 0;
    for (char *line; result == 0 && text && *text && (line = strsep(&text, "\n"));) {
        char *blank = strchr(line, ' ');
        if (!blank || strlen(blank) > VALUE_MAX)
            return bad_record(err);
        *blank = '\0';
        const char *value = decode(blank + 1);
        result = value ? take_line(record, line, value, err) : bad_record(err);
    }
    if (result == 0 && (!record->digest || record->layer_count == 0 ||
                        (record->workdir && record->workdir[0] != '/')))
        return bad_record(err);
    return result;
}

int image_record_read(const char *text, size_t length, struct image_record *ret_record,
                      struct brig_error *err)
{
    autorecord struct image_record record = {0};
    size_t first = strlen(FIRST_LINE);
    if (length > IMAGE_RECORD_MAX || length < first || memcmp(text, FIRST_LINE, first) != 0 ||
        memchr(text, '\0', length))
        return bad_record(err);
    autofree char *copy = strndup(text + first, length - first);
    if (!copy)
        return brig_fail_nomem(err);
    int result = take_lines(&record, copy, err);
    if (result < 0)
        return result;
    *ret_record = record;
    record = (struct image_record){0};
    return 0;
}
