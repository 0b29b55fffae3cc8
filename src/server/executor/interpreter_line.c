/* SPDX-License-Identifier: MIT */
/* The lines that the executor and an interpreter exchange. */
#include "server/executor/interpreter_line.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/execution.h"

struct cursor {
    const char *at, *end;
};

static bool takes(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool takes_number(struct cursor *cursor, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *first = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        if (number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(*cursor->at++ - '0');
    }
    *ret_number = number;
    return cursor->at > first;
}

static bool is_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* A name with other characters is left out. */
static void take_name(struct cursor *cursor, char name[INTERPRETER_NAME_MAX + 1])
{
    size_t length = 0;
    name[0] = '\0';
    if (!takes(cursor, ",\"name\":\""))
        return;
    while (length < INTERPRETER_NAME_MAX && cursor->at + length < cursor->end &&
           is_in_name(cursor->at[length]))
        length++;
    if (cursor->at + length == cursor->end || cursor->at[length] != '"')
        return;
    memcpy(name, cursor->at, length);
    name[length] = '\0';
}

bool interpreter_line_read(const char *line, size_t length, struct interpreter_line *ret)
{
    static const char *const words[] = {[INTERPRETER_READY] = "ready\"",
                                        [INTERPRETER_BEGUN] = "begun\"",
                                        [INTERPRETER_RESULT] = "result\"",
                                        [INTERPRETER_ERROR] = "error\"",
                                        [INTERPRETER_DONE] = "done\""};
    struct cursor cursor = {line, line + length};
    struct interpreter_line found = {0};
    size_t word = 0;
    if (length < 2 || line[length - 1] != '}' || !takes(&cursor, "{\"type\":\""))
        return false;
    while (word < ARRAY_LENGTH(words) && !takes(&cursor, words[word]))
        word++;
    if (word == ARRAY_LENGTH(words))
        return false;
    found.word = (enum interpreter_word)word;
    if (found.word != INTERPRETER_READY &&
        (!takes(&cursor, ",\"run\":") || !takes_number(&cursor, &found.run)))
        return false;
    bool more = found.word == INTERPRETER_RESULT || found.word == INTERPRETER_ERROR;
    if (more ? *cursor.at != ',' : cursor.at + 1 != cursor.end)
        return false;
    if (found.word == INTERPRETER_ERROR)
        take_name(&cursor, found.name);
    *ret = found;
    return true;
}

static void write_text(struct str *out, const char *text, size_t length)
{
    size_t plain = 0; /* begin of what can be copied */
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        str_append_bytes(out, text + plain, i - plain);
        str_appendf(out, "\\u%04x", c);
        plain = i + 1;
    }
    str_append_bytes(out, text + plain, length - plain);
}

void interpreter_line_write(struct str *out, uint64_t run, const struct execution_pair *env,
                            size_t env_count, const char *code, size_t length)
{
    str_appendf(out, "{\"run\":%llu,\"env\":[", (unsigned long long)run);
    for (size_t i = 0; i < env_count; i++) {
        str_append(out, i ? ",\"" : "\"");
        write_text(out, env[i].name, strlen(env[i].name));
        str_append_char(out, '=');
        write_text(out, env[i].value, strlen(env[i].value));
        str_append_char(out, '"');
    }
    str_append(out, "],\"code\":\"");
    write_text(out, code, length);
    str_append(out, "\"}\n");
}
