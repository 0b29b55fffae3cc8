/* SPDX-License-Identifier: MIT */
#include "rpc/tool.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"

json_t *tool_list_load(const void *document, size_t length, bool open_world)
{
    json_t *root = json_loadb(document, length, 0, NULL);
    json_t *run_schema = json_object_get(root, "run_schema"), *tool;
    json_t *tools = json_incref(json_object_get(root, "tools"));
    size_t index;
    json_array_foreach(tools, index, tool)
    {
        if (!json_is_string(json_object_get(tool, "outputSchema")))
            continue;
        (void)json_object_set(tool, "outputSchema", run_schema);
        (void)json_object_set_new(json_object_get(tool, "annotations"), "openWorldHint",
                                  json_boolean(open_world));
    }
    json_decref(root);
    return tools;
}

/* ---- Arguments ---- */

static const json_t *find_listed(const json_t *tools, const char *name)
{
    const json_t *tool;
    size_t index;
    json_array_foreach(tools, index, tool)
    {
        if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
            return tool;
    }
    return NULL;
}

static bool has_text(const json_t *list, const json_t *text)
{
    const json_t *item;
    size_t index;
    json_array_foreach(list, index, item)
    {
        if (json_equal(item, text))
            return true;
    }
    return false;
}

static bool is_plain_text(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

/* Only standard input and the content of a file may contain NUL characters. */
static const char *find_text_fault(const char *name, const json_t *schema, const json_t *value)
{
    const json_t *choices = json_object_get(schema, "enum");
    bool raw = strcmp(name, "stdin") == 0 || strcmp(name, "content") == 0;
    if (!json_is_string(value))
        return "must be a string";
    if (!raw && !is_plain_text(value))
        return "must not contain NUL characters";
    return choices && !has_text(choices, value) ? "is not one of the allowed words" : NULL;
}

static const char *find_list_fault(const json_t *value)
{
    const json_t *item;
    size_t index;
    if (!json_is_array(value) || json_array_size(value) > TOOL_WORDS_MAX)
        return "must be a list of strings";
    json_array_foreach(value, index, item)
    {
        if (!is_plain_text(item))
            return "must be a list of strings without NUL characters";
    }
    return NULL;
}

static const char *find_object_fault(const json_t *value)
{
    const char *name;
    const json_t *item;
    if (!json_is_object(value) || json_object_size(value) > TOOL_WORDS_MAX)
        return "must be an object of strings";
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (!json_is_string(item))
            return "must be an object of strings";
    }
    return NULL;
}

static const char *find_number_fault(const json_t *schema, const json_t *value)
{
    const json_t *least = json_object_get(schema, "minimum");
    const json_t *most = json_object_get(schema, "maximum");
    if (!json_is_integer(value))
        return "must be an integer";
    if ((least && json_integer_value(value) < json_integer_value(least)) ||
        (most && json_integer_value(value) > json_integer_value(most)))
        return "is out of range";
    return NULL;
}

/* What the schema of an argument wants, NULL if the value has it. */
static const char *find_fault(const char *name, const json_t *schema, const json_t *value)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (strcmp(type, "string") == 0)
        return find_text_fault(name, schema, value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value) ? NULL : "must be true or false";
    if (strcmp(type, "array") == 0)
        return find_list_fault(value);
    if (strcmp(type, "object") == 0)
        return find_object_fault(value);
    return find_number_fault(schema, value);
}

bool tool_check(const json_t *tools, const char *name, const json_t *arguments, char **ret_message)
{
    const json_t *schema = json_object_get(find_listed(tools, name), "inputSchema");
    const json_t *properties = json_object_get(schema, "properties"), *required, *value;
    const char *argument, *fault = NULL, *culprit = NULL;
    size_t index;
    json_object_foreach((json_t *)(uintptr_t)arguments, argument, value)
    {
        const json_t *wanted = json_object_get(properties, argument);
        const char *found =
            wanted ? find_fault(argument, wanted, value) : "is not known to this tool";
        if (found && !fault) {
            fault = found;
            culprit = argument;
        }
    }
    json_array_foreach(json_object_get(schema, "required"), index, required)
    {
        if (!fault && !json_object_get(arguments, json_string_value(required))) {
            fault = "is missing";
            culprit = json_string_value(required);
        }
    }
    if (!fault)
        return true;
    (void)str_make(ret_message, NULL, "The argument '", str_shown(culprit).text, "' ", fault, ".");
    return false;
}

/* ---- Languages ---- */

const struct tool_language *tool_language_find(const char *name)
{
    static const struct tool_language languages[] = {
        {"python", "python3", "-c", NULL}, {"javascript", "node", "-e", "--"},
        {"bash", "bash", "-c", "bash"},    {"sh", "sh", "-c", "sh"},
        {"ruby", "ruby", "-e", "--"},      {"perl", "perl", "-e", "--"},
        {"php", "php", "-r", "--"},        {"node", "node", "-e", "--"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(languages); i++)
        if (strcmp(languages[i].name, name) == 0)
            return &languages[i];
    return NULL;
}

/* ---- Results ---- */

void tool_append_unknown(const json_t *tools, const char *name, struct str *out)
{
    const json_t *tool;
    size_t index;
    if (!name) {
        str_append(out, "name is missing");
        return;
    }
    str_concat(out, "unknown tool '", str_shown(name).text, "'; there are ");
    json_array_foreach(tools, index, tool)
        str_concat(out, index > 0 ? ", " : "", json_string_value(json_object_get(tool, "name")));
}

json_t *tool_result(const char *text, json_t *structured, bool is_error)
{
    return json_pack("{s:[{s:s, s:s}], s:o*, s:b}", "content", "type", "text", "text",
                     text ? text : "", "structuredContent", structured, "isError", (int)is_error);
}

static bool is_text(const char *bytes, size_t length)
{
    return utf8_is_valid(bytes, length) && !memchr(bytes, '\0', length);
}

/* The length without a character that continues in the next part of the file. */
static size_t without_part(const char *bytes, size_t length, bool more)
{
    for (size_t back = 1; more && back <= 3 && back <= length; back++)
        if (utf8_is_beginning((const unsigned char *)bytes + length - back, back))
            return length - back;
    return length;
}

json_t *tool_file_result(const char *bytes, size_t length, uint64_t offset, uint64_t size)
{
    size_t whole = without_part(bytes, length, offset + length < size);
    autostr struct str content = {0};
    bool text = is_text(bytes, whole);
    if (text)
        str_append_bytes(&content, bytes, whole);
    else
        base64_append(&content, bytes, whole = length);
    uint64_t next = offset + whole;
    json_t *value = json_pack("{s:s, s:s, s:I}", "content", content.data ? content.data : "",
                              "encoding", text ? "utf-8" : "base64", "size", (json_int_t)size);
    if (next < size && whole > 0) {
        (void)json_object_set_new(value, "next_offset", json_integer((json_int_t)next));
        str_appendf(&content, "\n[bytes %llu to %llu of %llu; continue with offset %llu]",
                    (unsigned long long)offset, (unsigned long long)next, (unsigned long long)size,
                    (unsigned long long)next);
    }
    return tool_result(content.data, value, false);
}

bool tool_content(const json_t *arguments, struct str *ret_bytes)
{
    const json_t *content = json_object_get(arguments, "content");
    const char *encoding = json_string_value(json_object_get(arguments, "encoding"));
    size_t length = json_string_length(content);
    str_append_bytes(ret_bytes, json_string_value(content), length);
    if (ret_bytes->failed)
        return false;
    if (!encoding || strcmp(encoding, "base64") != 0 || length == 0)
        return true;
    bool good = base64_decode(ret_bytes->data, length, ret_bytes->data, &length);
    ret_bytes->length = good ? length : 0;
    return good;
}

static void add_line(struct str *text, const char *line)
{
    if (text->length > 0 && text->data[text->length - 1] != '\n')
        str_append_char(text, '\n');
    str_append(text, line);
}

static void add_list(struct str *text, const json_t *list)
{
    const json_t *line;
    size_t index;
    json_array_foreach(list, index, line)
    {
        add_line(text, "[");
        str_concat(text, json_string_value(line), "]");
    }
}

/* How it ended, for people and models; nothing if it went well. */
static void add_end(struct str *text, const struct tool_run *run)
{
    autostr struct str line = {0};
    if (strcmp(run->status, "exited") == 0 && run->exit_code != 0)
        str_appendf(&line, "[exit code %d]", run->exit_code);
    else if (strcmp(run->status, "signalled") == 0)
        str_concat(&line, "[ended by ", run->signal ? run->signal : "a signal", "]");
    else if (strcmp(run->status, "timeout") == 0)
        str_append(&line, "[ended by the time limit; a longer one is set with timeout_s]");
    else if (strcmp(run->status, "exited") != 0)
        str_concat(&line, "[", run->status, "]");
    if (line.length > 0)
        add_line(text, line.data);
}

json_t *tool_run_result(const struct tool_run *run)
{
    const struct str *output = run->output, *errors = run->errors;
    autostr struct str text = {0};
    str_append_bytes(&text, output->data, output->length);
    if (errors->length > 0) {
        add_line(&text, "[stderr]\n");
        str_append_bytes(&text, errors->data, errors->length);
    }
    add_end(&text, run);
    add_list(&text, run->denied);
    add_list(&text, run->messages);
    json_t *value =
        json_pack("{s:s, s:s#, s:s#, s:b, s:I, s:o, s:o, s:o*}", "status", run->status, "stdout",
                  output->data ? output->data : "", output->length, "stderr",
                  errors->data ? errors->data : "", errors->length, "truncated",
                  (int)run->truncated, "duration_ms", (json_int_t)run->duration_ms, "denied",
                  run->denied, "messages", run->messages, "files", run->files);
    if (run->exit_code >= 0)
        (void)json_object_set_new(value, "exit_code", json_integer(run->exit_code));
    if (run->signal)
        (void)json_object_set_new(value, "signal", json_string(run->signal));
    bool good = strcmp(run->status, "exited") == 0 && run->exit_code == 0;
    return text.failed ? NULL : tool_result(text.data, value, !good);
}
