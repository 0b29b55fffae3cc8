/* SPDX-License-Identifier: MIT */
/* Tools of an MCP server: their arguments and their results. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

#define TOOL_WORDS_MAX 640 /* of an argument that is a list */
/* A result stays below 25,000 tokens, the limit of a common client: the output is in it twice, as
 * text and as a value. */
#define TOOL_OUTPUT_BYTES 24576
#define TOOL_DENIED_MAX 20

/* The table of tools of a document {"run_schema", "tools"}, in which an outputSchema that is a text
 * stands for the run_schema. `open_world`: runs can reach a network. NULL if memory is lacking. */
json_t *tool_list_load(const void *document, size_t length, bool open_world);
/* Checks the arguments against the input schema of the tool; false and a message, which is for the
 * caller to free and NULL if memory is lacking, if they do not match. */
bool tool_check(const json_t *tools, const char *name, const json_t *arguments, char **ret_message);

/* Appends "unknown tool 'NAME'; there are …", or that the name is missing (NULL). */
void tool_append_unknown(const json_t *tools, const char *name, struct str *out);

/* A result with a text, and a value that the output schema describes, which may be NULL and is taken
 * over. */
json_t *tool_result(const char *text, json_t *structured, bool is_error);

/* The result of reading a part of a file of `size` bytes, from `offset`. */
json_t *tool_file_result(const char *bytes, size_t length, uint64_t offset, uint64_t size);
/* The bytes of an argument `content` in its `encoding`: false if it is not base64, or memory is
 * lacking. */
bool tool_content(const json_t *arguments, struct str *ret_bytes);

/* How an interpreter takes a text: PROGRAM OPTION CODE BEFORE-ARGUMENTS. Relative names in it then
 * start at the working directory, in imports as well. */
struct tool_language {
    const char *name, *program, *option, *before; /* before: NULL, or a word */
};
const struct tool_language *tool_language_find(const char *name); /* or NULL */

/* The end of a run. Texts are UTF-8. */
struct tool_run {
    const char *status; /* one of the run_schema */
    int exit_code;      /* -1: none */
    const char *signal; /* or NULL */
    const struct str *output, *errors;
    bool truncated;
    int64_t duration_ms;
    json_t *denied, *messages; /* arrays of texts; taken over */
    json_t *files;             /* the same of objects; NULL: the schema has none */
};
json_t *tool_run_result(const struct tool_run *run);
